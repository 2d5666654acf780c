//! A command to an execution: which verb, by whom, and why. Every surface reaches the engine through it.

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::request_key::RequestKey;
use crate::verb::{OfferedTo, VERBS, Verb};
use crate::wording;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, StepId, ToolName};
use rutter_core::journal::event::QuestionAnswer;
use rutter_core::text::is_hidden;
use rutter_engine::control::ControlAction;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// A request to change an execution.
#[derive(Clone, Debug)]
pub struct Command {
    pub principal: Principal,
    pub execution: ExecutionId,
    pub verb: Verb,
    pub arguments: CommandArguments,
    pub reason: Option<String>,
    /// Commands with the same key are performed once.
    pub request_key: Option<String>,
    /// The number of journal entries the caller has seen; the command is refused if there are others by now.
    pub if_match: Option<u64>,
}

impl Command {
    /// A command that is neither repeated nor bound to a state that was seen.
    pub fn new(
        principal: Principal,
        execution: ExecutionId,
        verb: Verb,
        arguments: CommandArguments,
        reason: Option<String>,
    ) -> Command {
        Command { principal, execution, verb, arguments, reason, request_key: None, if_match: None }
    }
}

/// The arguments of the verbs, as people and programs write them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandArguments {
    /// `step` or `step[item]`; needed if more than one question is open.
    pub step: Option<String>,
    /// undo: only these steps and their dependents.
    pub steps: Option<Vec<String>>,
    /// cancel: whether to undo; the default is the plan's.
    pub undo: Option<bool>,
    /// resume: whether what came due during a hold happens now; by default its time does not count.
    pub expire: Option<bool>,
    /// resume: of these alone, what came due during a hold happens now: steps, `step[item]`, `deadline`, `time`, `agent`.
    pub expire_only: Option<Vec<String>>,
    /// resolve, correct: false if it certainly did not happen; default true.
    pub happened: Option<bool>,
    /// resolve, correct: the result that later steps read.
    pub result: Option<Value>,
    /// resolve, correct: nobody knows the result; what reads it fails until it is added with `correct`.
    pub result_unknown: Option<bool>,
    /// resolve, correct: how this is known.
    pub evidence: Option<Value>,
    /// approve, reject: the hash of the call that was reviewed, so that no other call is approved.
    pub call: Option<String>,
    /// answer: the verb to answer with.
    pub with: Option<Verb>,
    /// reply: the values the tool asked for; none to decline.
    pub reply: Option<Map<String, Value>>,
    /// accept_tool: the tool, as `server.tool`.
    pub tool: Option<String>,
    /// accept_tool: the hash of the definition that was reviewed, so that no other is accepted.
    pub definition: Option<String>,
}

impl App {
    /// Checks the scope, the reason and the arguments; then the execution decides.
    pub async fn perform(&self, command: Command) -> Result<(), AppError> {
        let Command { principal, execution, verb, arguments, reason, request_key, if_match } = command;
        if let Err(error) = self.refusals.require_verb(&principal, verb, Some(&execution)) {
            // On record before the sender knows of it.
            self.refusals.flush().await;
            return Err(error);
        }
        arguments.check_taken_by(verb)?;
        let control = arguments.control(verb)?;
        let reason = arguments.reason(verb, reason)?;
        let identity = ExecutionIdentity { tenant: principal.tenant.clone(), execution };
        let (actor, key) = (principal.actor(), RequestKey::of(&principal, request_key.as_deref())?);
        let done = self.engine.control(&identity, actor, control, reason, key.stored.clone(), if_match).await;
        let done = match done {
            Err(error) => Err(key.error(self, &principal.tenant, error).await),
            Ok(()) => Ok(()),
        };
        match done {
            Err(error) if error.code.starts_with("execution.") => {
                let error = self.refusals.noting(&principal, verb.name(), &identity.execution, error);
                self.refusals.flush().await;
                Err(self.explained(&principal, &identity, error).await)
            }
            done => done,
        }
    }

    /// A refusal by an execution, with the state that it is in, and where people look if one must decide.
    async fn explained(&self, principal: &Principal, identity: &ExecutionIdentity, error: AppError) -> AppError {
        let Ok(snapshot) = self.engine.view(identity).await else { return error };
        let mut state = format!("the execution is {}", wording::summary(&snapshot));
        if error.code == "execution.not_a_person" {
            state = format!("people decide {}; {state}", self.reader(principal).place(&identity.execution));
        }
        let hint = error.hint.as_ref().map_or_else(|| state.clone(), |hint| format!("{hint}; {state}"));
        error.hint(hint)
    }
}

impl CommandArguments {
    /// An argument that the verb does not take is a mistake: its sender expects an effect it will not have.
    fn check_taken_by(&self, verb: Verb) -> Result<(), AppError> {
        let Value::Object(fields) = json!(self) else { unreachable!("a struct is an object") };
        let takes = verb.row().takes;
        let foreign = fields.iter().find(|(name, value)| !value.is_null() && !takes.contains(&name.as_str()));
        let Some((name, _)) = foreign else { return Ok(()) };
        let error = wrong(format!("{verb} does not take `{name}`"));
        Err(match takes {
            [] => error.hint("it takes only a reason"),
            takes => error.hint(format!("it takes {} and a reason", takes.join(", "))),
        })
    }

    /// Whether the command needs a reason besides these arguments.
    pub fn needs_reason(&self, verb: Verb) -> bool {
        self.meant(verb).row().needs_reason && self.evidence_in_words(verb).is_none()
    }

    /// An answer has the requirements of the verb it answers with.
    fn meant(&self, verb: Verb) -> Verb {
        self.with.filter(|_| verb == Verb::Answer).unwrap_or(verb)
    }

    /// The evidence of `resolve`, if it is text, also serves as the reason.
    fn evidence_in_words(&self, verb: Verb) -> Option<&str> {
        let evidence = self.evidence.as_ref().and_then(Value::as_str).filter(|_| verb == Verb::Resolve);
        evidence.filter(|evidence| is_visible(evidence))
    }

    /// Returns the reason, or an error where one is required and missing.
    fn reason(&self, verb: Verb, reason: Option<String>) -> Result<String, AppError> {
        let words = reason.into_iter().chain(self.evidence_in_words(verb).map(str::to_owned));
        let verb = self.meant(verb);
        let reason = words.into_iter().find(|words| is_visible(words));
        match reason {
            Some(reason) => Ok(reason),
            None if verb.row().needs_reason => Err(reason_missing(verb.name())),
            None => Ok(String::new()),
        }
    }

    /// A list says by itself that something expires.
    fn resume(&self) -> Result<ControlAction, AppError> {
        match (self.expire, &self.expire_only) {
            (Some(false), Some(_)) => {
                Err(wrong("`expire` is false, and `expire_only` names what expires").hint("give one of the two"))
            }
            (_, Some(only)) if only.is_empty() => {
                Err(wrong("`expire_only` names nothing").hint("with `expire` everything expires that came due"))
            }
            (_, Some(only)) => Ok(ControlAction::ResumeExpiring { only: only.clone() }),
            (Some(true), None) => Ok(ControlAction::ResumeExpired),
            (Some(false) | None, None) => Ok(ControlAction::Resume),
        }
    }

    fn control(&self, verb: Verb) -> Result<ControlAction, AppError> {
        let part = || self.step.as_deref().map(part).transpose();
        let answer = |with: Verb| -> Result<ControlAction, AppError> {
            Ok(ControlAction::Answer { about: part()?, answer: with.as_answer()? })
        };
        Ok(match verb {
            Verb::Pause => ControlAction::Pause,
            Verb::Resume => self.resume()?,
            Verb::Cancel => ControlAction::Cancel { undo: self.undo },
            Verb::Kill => ControlAction::Kill,
            Verb::TakeOver => ControlAction::TakeOver,
            Verb::HandBack => ControlAction::HandBack,
            Verb::Retry | Verb::Skip | Verb::Stop | Verb::Continue | Verb::Replan => answer(verb)?,
            Verb::Answer => answer(self.with.ok_or_else(|| wrong("give the answer in `with`"))?)?,
            Verb::Resolve => ControlAction::Resolve {
                part: part()?,
                happened: self.happened.unwrap_or(true),
                result: self.result_by_hand()?,
                evidence: self.evidence.clone().map(Arc::new),
            },
            Verb::Correct => ControlAction::Correct {
                part: part()?,
                happened: self.happened.unwrap_or(true),
                result: self.result_by_hand()?,
                evidence: self.evidence.clone().map(Arc::new),
            },
            Verb::Approve => ControlAction::Approve { part: part()?, call: hash(&self.call, "call")? },
            Verb::Reject => ControlAction::Reject { part: part()?, call: hash(&self.call, "call")? },
            Verb::Reply => {
                let answer = self.reply.clone().map(|reply| Arc::new(Value::Object(reply)));
                ControlAction::Reply { part: part()?, answer }
            }
            Verb::Undo if self.steps.as_ref().is_some_and(Vec::is_empty) => {
                return Err(wrong("`steps` names no step").hint("leave it out to undo everything"));
            }
            Verb::Undo => {
                let named = self.steps.iter().flatten().chain(&self.step);
                let steps: Vec<StepId> = named.map(|step| StepId::new(step)).collect();
                ControlAction::Undo { steps: Some(steps).filter(|steps| !steps.is_empty()) }
            }
            Verb::Reopen if self.steps.as_ref().is_some_and(Vec::is_empty) => {
                return Err(wrong("`steps` names no step").hint("leave it out to go on from all that failed"));
            }
            Verb::Reopen => {
                let named = self.steps.iter().flatten().chain(&self.step);
                let steps: Vec<StepId> = named.map(|step| StepId::new(step)).collect();
                ControlAction::Reopen { steps: Some(steps).filter(|steps| !steps.is_empty()) }
            }
            Verb::AcceptTool => {
                let tool = self.tool.as_deref().ok_or_else(|| wrong("name the tool in `tool`"))?;
                let definition = hash(&self.definition, "definition")?;
                ControlAction::AcceptTool { tool: ToolName::new(tool), definition }
            }
        })
    }
}

impl CommandArguments {
    /// The result of a step that was done by hand. An explicit `null` says that nobody knows it.
    fn result_by_hand(&self) -> Result<Option<Arc<Value>>, AppError> {
        match (&self.result, self.result_unknown) {
            (Some(result), Some(true)) if !result.is_null() => {
                Err(wrong("give `result`, or say `result_unknown`, but not both"))
            }
            (_, Some(true)) => Ok(Some(Arc::new(Value::Null))),
            (result, _) => Ok(result.clone().map(Arc::new)),
        }
    }
}

impl Verb {
    /// The answer to a question that needs nothing but a reason. [`Verb::Resolve`] needs more, and is a command.
    fn as_answer(self) -> Result<QuestionAnswer, AppError> {
        let wrong = || {
            let names: Vec<&str> = Verb::answers().map(Verb::name).collect();
            wrong(format!("expected an answer: one of {}", names.join(", ")))
        };
        self.row().answer.filter(|_| self != Verb::Resolve).ok_or_else(wrong)
    }

    /// The verbs that `answer` accepts in `with`.
    pub fn answers() -> impl Iterator<Item = Verb> {
        VERBS.iter().map(|row| row.verb).filter(|verb| verb.row().answer.is_some() && *verb != Verb::Resolve)
    }
}

/// Returns the reason for `what`, or the refusal that every surface gives without one.
pub fn required_reason(what: &str, reason: Option<String>) -> Result<String, AppError> {
    reason.filter(|reason| is_visible(reason)).ok_or_else(|| reason_missing(what))
}

/// Whether a text has characters that a reader of the journal sees.
fn is_visible(text: &str) -> bool {
    text.chars().any(|character| !character.is_whitespace() && !is_hidden(character))
}

fn reason_missing(what: &str) -> AppError {
    let hint = match what == Verb::Resolve.name() {
        true => "say in `evidence` how you know (`--evidence` on the command line): it is the reason too",
        false => "give `reason` (`--reason` on the command line)",
    };
    AppError::new("command.reason_missing", format!("{what} needs a reason, which the journal records")).hint(hint)
}

/// The part of an execution that a text names.
pub fn part(text: &str) -> Result<PartId, AppError> {
    PartId::parse(text).ok_or_else(|| wrong(format!("{text:?} is neither step nor step[item]")))
}

fn hash(text: &Option<String>, name: &str) -> Result<Option<Hash>, AppError> {
    let parse =
        |text: &String| Hash::parse(text).ok_or_else(|| wrong(format!("`{name}` is the hash that the question shows")));
    text.as_ref().map(parse).transpose()
}

fn wrong(message: impl Into<String>) -> AppError {
    AppError::new("server.arguments", message)
}

/// In JSON a verb is its name; synonyms are accepted.
impl<'de> Deserialize<'de> for Verb {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Verb, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Verb::parse(&text).ok_or_else(|| {
            let names: Vec<&str> = VERBS.iter().map(|row| row.name).collect();
            D::Error::custom(format!("unknown action {text:?}, expected one of {}", names.join(", ")))
        })
    }
}

impl Serialize for Verb {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl JsonSchema for Verb {
    fn schema_name() -> Cow<'static, str> {
        "Action".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> =
            VERBS.iter().flat_map(|row| [row.name].into_iter().chain(row.synonyms.iter().copied())).collect();
        let meanings: Vec<String> = VERBS.iter().map(|row| format!("- {}: {}", row.words(), row.meaning)).collect();
        json_schema!({ "type": "string", "description": meanings.join("\n"), "enum": names })
    }
}

/// The schema of the verbs that agents are offered.
pub fn verbs_for_agents(_: &mut SchemaGenerator) -> Schema {
    let names: Vec<&str> = Verb::offered_to(OfferedTo::Agents).map(Verb::name).collect();
    json_schema!({ "type": "string", "enum": names })
}

/// The schema of a reason: which verbs need one.
pub fn reason_schema(_: &mut SchemaGenerator) -> Schema {
    let text = format!("Recorded in the journal; needed for {}.", with_reason(|_| true));
    json_schema!({ "type": ["string", "null"], "description": text })
}

/// The same for agents, in few words.
pub fn reason_schema_for_agents(_: &mut SchemaGenerator) -> Schema {
    let text = format!("Needed for {}.", with_reason(|verb| verb.is_offered_to(OfferedTo::Agents)));
    json_schema!({ "type": ["string", "null"], "description": text })
}

fn with_reason(is_listed: impl Fn(Verb) -> bool) -> String {
    let rows = VERBS.iter().filter(|row| row.needs_reason && is_listed(row.verb));
    rows.map(|row| row.name).collect::<Vec<&str>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hold_ends_for_all_timers_for_none_or_for_those_named() {
        let names = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect::<Vec<_>>());
        let named = |only: &[&str]| Some(ControlAction::ResumeExpiring { only: names(only).unwrap_or_default() });
        for (expire, expire_only, expected) in [
            (None, None, Some(ControlAction::Resume)),
            (Some(false), None, Some(ControlAction::Resume)),
            (Some(true), None, Some(ControlAction::ResumeExpired)),
            (None, names(&["pay", "deadline"]), named(&["pay", "deadline"])),
            (Some(true), names(&["pay"]), named(&["pay"])),
            (Some(false), names(&["pay"]), None),
            (Some(true), names(&[]), None),
        ] {
            let arguments = CommandArguments { expire, expire_only, ..CommandArguments::default() };
            assert_eq!(arguments.control(Verb::Resume).ok(), expected, "{arguments:?}");
        }
        let arguments = CommandArguments { expire_only: names(&["pay"]), ..CommandArguments::default() };
        assert!(arguments.check_taken_by(Verb::Pause).is_err() && arguments.check_taken_by(Verb::Resume).is_ok());
    }
}
