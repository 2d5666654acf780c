//! Questions that only a person may answer, shown to the user of the client.
//!
//! Modern clients get them as the response to their call and call again with the answers; legacy clients are asked
//! (elicitation) while their call is open. A client without forms, and one whose user's answer would not count as a
//! person's, leaves the question to the command line and the dashboard. A declined question stays open.

use crate::tool_request::ToolRequest;
use crate::wait::settled;
use rmcp::model::RequestStateCodec;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputRequiredResult, SealOptions,
};
use rutter_app::command::{Command, CommandArguments};
use rutter_app::error::{AppError, ErrorKind};
use rutter_app::limits::{PERSON_MAX, QUESTION_AGE_MAX};
use rutter_app::shown_call::shown_call;
use rutter_app::verb::Verb;
use rutter_core::actor::ActorKind;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::call_words::name_of_call;
use rutter_core::execution::view::{ExecutionSnapshot, PendingQuestion};
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::{CallSide, QuestionAnswer};
use rutter_core::plan::document::read_exact;
use rutter_core::text::{cut, cut_counted};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// How often to check whether the question was answered elsewhere.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often a question is asked whose answers are not accepted.
const ASKED_MAX: u32 = 3;
/// The longest text in a question.
const TEXT_CHARS_MAX: usize = 1_000;

pub(crate) enum SettledOrAsking {
    View(Box<ExecutionSnapshot>),
    Ask(Box<InputRequiredResult>),
}

/// Waits for an execution, and lets the user of the client answer what only a person may.
pub(crate) async fn settle(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    span: Duration,
) -> Result<SettledOrAsking, AppError> {
    loop {
        let view = settled(request, identity, span).await?;
        let may_ask = view.questions.iter().filter(|ask| request.may_ask(ask));
        let asked: Vec<QuestionForm> = may_ask.filter_map(|ask| QuestionForm::of(request, &view, ask)).collect();
        if asked.is_empty() || request.gone.is_cancelled() {
            return Ok(SettledOrAsking::View(Box::new(view)));
        }
        if request.is_modern {
            return required(request, identity, asked).map(|required| SettledOrAsking::Ask(Box::new(required)));
        }
        let answered = match asked.into_iter().next() {
            Some(form) => elicit(request, identity, form).await?,
            None => false,
        };
        if !answered {
            return Ok(SettledOrAsking::View(Box::new(view)));
        }
    }
}

/// The user's answers to questions that an earlier round of this call asked.
pub(crate) struct PersonReply {
    pub(crate) identity: ExecutionIdentity,
    /// Some questions stay open and are not asked again in this call.
    pub(crate) declined: bool,
}

/// Sends the user's answers to the execution, if this call has any.
pub(crate) async fn read_replies(request: &ToolRequest) -> Result<Option<PersonReply>, AppError> {
    let Some((state, replies)) = &request.replies else { return Ok(None) };
    let stale = |_| {
        let error =
            AppError::new("server.stale_question", "this answers a question that was not asked here, or has expired")
                .hint("call `status` with the execution's id; open questions are asked again");
        // Who may not approve and answers all the same forges an approval.
        request.app.refusals.note_forged_answer(&request.answering(), error)
    };
    let round: QuestionRound = seal(request)?.open_json_with(state, sealed_for(request).as_bytes()).map_err(stale)?;
    let identity = request.identity(round.execution.as_str());
    let view = request.app.view(&identity).await?;
    let asked = replies.iter().filter(|(key, _)| round.asked.contains(*key));
    let mut declined = apply_replies(request, &identity, &view, asked).await?;
    declined |= round.asked.iter().any(|key| !replies.contains_key(key));
    Ok(Some(PersonReply { identity, declined }))
}

/// The open questions of an execution, for a client that holds a task. The agent is not called until the task ends, so
/// its questions go to the user too.
pub(crate) fn requests(request: &ToolRequest, view: &ExecutionSnapshot) -> Result<InputRequests, AppError> {
    let asked = view.questions.iter().filter(|ask| request.may_ask(ask));
    asked.filter_map(|ask| QuestionForm::for_ticket(request, view, ask)).map(QuestionForm::request).collect()
}

/// Whether the user of the client is asked every open question, and the agent none.
pub(crate) fn only_people_may(request: &ToolRequest, view: &ExecutionSnapshot) -> bool {
    view.questions.iter().all(|ask| request.may_ask(ask) && QuestionForm::of(request, view, ask).is_some())
}

/// Sends the user's answers to questions that are still open. Returns whether some were declined.
pub(crate) async fn apply_replies<'a>(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    view: &ExecutionSnapshot,
    replies: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<bool, AppError> {
    let mut declined = false;
    for (key, reply) in replies {
        let mut forms =
            view.questions.iter().filter_map(|ask| Some((ask, QuestionForm::for_ticket(request, view, ask)?)));
        let Some((ask, form)) = forms.find(|(_, form)| form.key == *key) else {
            // It was answered elsewhere in the meantime.
            continue;
        };
        let reply: ElicitResult = serde_json::from_value(reply.clone())
            .map_err(|error| AppError::new("server.arguments", format!("inputResponses.{key}: {error}")))?;
        declined |= match send_reply(request, identity, &form, reply).await {
            Err(error) if is_about_the_answer(&error) || (is_about_the_person(&error) && request.may_ask(ask)) => {
                tracing::info!(error.code = %error.code, "an answer was not accepted: {}", error.message);
                true
            }
            answered => !answered?,
        };
    }
    Ok(declined)
}

/// State that the client returns with the answers, sealed.
#[derive(Debug, Serialize, Deserialize)]
struct QuestionRound {
    execution: ExecutionId,
    asked: BTreeSet<String>,
}

fn seal(request: &ToolRequest) -> Result<RequestStateCodec, AppError> {
    RequestStateCodec::try_new(request.app.seal.to_vec())
        .map_err(|error| AppError::new("server.internal", error.to_string()))
}

fn sealed_for(request: &ToolRequest) -> String {
    format!("{}|{}|{}", request.principal.tenant, request.principal.name, request.tool)
}

fn required(
    tool_request: &ToolRequest,
    identity: &ExecutionIdentity,
    asked: Vec<QuestionForm>,
) -> Result<InputRequiredResult, AppError> {
    let internal = |error: &dyn std::fmt::Display| AppError::new("server.internal", error.to_string());
    let keys = asked.iter().map(|form| form.key.clone()).collect();
    let round = QuestionRound { execution: identity.execution.clone(), asked: keys };
    let aad = sealed_for(tool_request);
    let options = SealOptions::new().associated_data(aad.as_bytes()).ttl(QUESTION_AGE_MAX);
    let state = seal(tool_request)?.seal_json_with(&round, &options).map_err(|error| internal(&error))?;
    let requests = asked.into_iter().map(QuestionForm::request).collect::<Result<InputRequests, AppError>>()?;
    Ok(InputRequiredResult::new(Some(requests), Some(state)))
}

/// Asks while the call is open. Returns whether the question was answered, here or elsewhere.
async fn elicit(request: &ToolRequest, identity: &ExecutionIdentity, mut form: QuestionForm) -> Result<bool, AppError> {
    let message = form.message.clone();
    for _ in 0..ASKED_MAX {
        match elicit_once(request, identity, &form).await {
            Err(error) if is_about_the_answer(&error) => {
                form.message = format!("This answer was not accepted ({}). {message}", error.message);
            }
            Err(error) if is_about_the_person(&error) => return Ok(false),
            answered => return answered,
        }
    }
    Ok(false)
}

async fn elicit_once(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    form: &QuestionForm,
) -> Result<bool, AppError> {
    let params = form.params().map_err(|error| AppError::new("server.internal", error.to_string()))?;
    let asking = request.peer.create_elicitation_with_timeout(params, Some(PERSON_MAX));
    tokio::pin!(asking);
    loop {
        tokio::select! {
            reply = &mut asking => return match reply {
                Ok(reply) => send_reply(request, identity, form, reply).await,
                Err(error) => {
                    tracing::debug!("elicitation failed: {error}");
                    Ok(false)
                }
            },
            () = request.gone.cancelled() => return Ok(false),
            () = tokio::time::sleep(LOOK_EVERY) => {
                let view = request.app.view(identity).await?;
                request.progress(view.settled, view.total, &form.message).await;
                let open = view.questions.iter().filter_map(|ask| QuestionForm::of(request, &view, ask));
                if !open.into_iter().any(|open| open.key == form.key) {
                    return Ok(true);
                }
            }
        }
    }
}

/// Whether a refusal is about the answer of the user. The question stays open then, and the agent gets the state of the
/// execution, since its own call did what it should.
fn is_about_the_answer(error: &AppError) -> bool {
    matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Unacceptable | ErrorKind::Conflict)
}

/// Whether it was not for this user to answer. Asking them again does not help, and for the agent the question is open.
fn is_about_the_person(error: &AppError) -> bool {
    error.kind() == ErrorKind::Forbidden
}

/// Sends the user's answer to the execution. Returns false if the user declined.
async fn send_reply(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    form: &QuestionForm,
    reply: ElicitResult,
) -> Result<bool, AppError> {
    if reply.action != ElicitationAction::Accept {
        return Ok(false);
    }
    let content = reply.content.unwrap_or_default();
    let (verb, arguments, reason) = form.command(&content)?;
    request.app.perform(Command::new(request.answering(), identity.execution.clone(), verb, arguments, reason)).await?;
    Ok(true)
}

/// A question as a form for a person.
struct QuestionForm {
    /// Identifies the question: another call of the same step is another question.
    key: String,
    message: String,
    schema: Value,
    ask: PendingQuestion,
}

impl QuestionForm {
    /// `None` for questions that agents may answer, and for calls that a form cannot show.
    fn of(request: &ToolRequest, view: &ExecutionSnapshot, ask: &PendingQuestion) -> Option<QuestionForm> {
        let reason =
            json!({ "type": "string", "title": "Why", "description": "Recorded in the journal", "minLength": 1 });
        let (key, message, schema) = match ask {
            PendingQuestion::Approval { part, call, tool, parameters, sends, denied, .. } => {
                let (parameters, is_cut) = match parameters {
                    Some(parameters) => shown_call(parameters, TEXT_CHARS_MAX)?,
                    None => (Value::String("erased parameters".to_owned()), false),
                };
                let mut message = format!("Step {part} wants to call {tool} with {parameters}. ");
                if is_cut {
                    let place = request.app.agent_reader().place(&view.execution);
                    message.push_str(&format!("Not everything is shown here: the whole call is {place}. "));
                }
                if *sends > 1 {
                    message.push_str(&format!(
                        "With this approval it may be sent up to {sends} times, retries included. "
                    ));
                }
                if let Some(denied) = denied {
                    message.push_str(&format!("Before, {}. ", denied.words()));
                }
                message.push_str("Approve this call?");
                let approve = json!({ "type": "boolean", "title": "Approve" });
                let schema = object(json!({ "approve": approve, "reason": reason }), &["approve", "reason"]);
                (format!("approve {part} {call}"), message, schema)
            }
            PendingQuestion::Replan { plan, revision, weakens, changes, .. } => {
                let weakens = cut_counted(&weakens.join("; "), TEXT_CHARS_MAX);
                let changes = cut_counted(&changes.join("; "), TEXT_CHARS_MAX);
                let message = format!(
                    "Revision {revision} of the plan weakens what the plan demands: {weakens}. In all it changes: \
                     {changes}. Approve it?"
                );
                let approve = json!({ "type": "boolean", "title": "Approve" });
                let schema = object(json!({ "approve": approve, "reason": reason }), &["approve", "reason"]);
                (format!("replan {plan}"), message, schema)
            }
            PendingQuestion::Doubt { part, side, attempt, reason: why, failure, .. } => {
                let failure = failure.as_ref().map(|failure| format!("; {}", failure.quoted(TEXT_CHARS_MAX)));
                let name = match side {
                    CallSide::Do => format!("step {part}"),
                    _ => name_of_call(part, *side),
                };
                let call = ask.doubtful_call(TEXT_CHARS_MAX).unwrap_or_default();
                let message = format!(
                    "It is unknown whether {name} took effect ({}{}): {call}. Check outside Rutter first. Did it happen?",
                    cut(why, TEXT_CHARS_MAX),
                    failure.unwrap_or_default()
                );
                let happened = json!({ "type": "boolean", "title": "It happened" });
                let evidence = json!({ "type": "string", "title": "How do you know?", "minLength": 1 });
                let result = json!({
                    "type": "string",
                    "title": "Its result, as JSON",
                    "description": "Where a later step or the compensation reads it; null if nobody knows it"
                });
                let properties = json!({ "happened": happened, "evidence": evidence, "result": result });
                let schema = object(properties, &["happened", "evidence"]);
                (format!("settle {part} {side:?} {attempt}"), message, schema)
            }
            PendingQuestion::Drift { tool, found, .. } => {
                let message = format!("{tool} has changed since the plan was checked. Accept it as it is now?");
                let accept = json!({ "type": "boolean", "title": "Accept the changed tool" });
                let schema = object(json!({ "accept": accept, "reason": reason }), &["accept", "reason"]);
                (format!("accept {tool} {found}"), message, schema)
            }
            PendingQuestion::Tool { part, attempt, message, schema, .. } => {
                let schema = schema.as_ref()?.as_ref().clone();
                let message =
                    format!("The tool of step {part} asks (text from the tool): {}", cut(message, TEXT_CHARS_MAX));
                (format!("reply {part} {attempt}"), message, schema)
            }
            PendingQuestion::Failure { .. }
            | PendingQuestion::Compensation { .. }
            | PendingQuestion::SecondEffect { .. }
            | PendingQuestion::Limit { .. }
            | PendingQuestion::Hold { .. }
            | PendingQuestion::Silence { .. } => return None,
        };
        Some(QuestionForm { key, message, schema, ask: ask.clone() })
    }

    /// Like [`QuestionForm::of`], plus a choice of what to do about a step that failed permanently.
    fn for_ticket(request: &ToolRequest, view: &ExecutionSnapshot, ask: &PendingQuestion) -> Option<QuestionForm> {
        let PendingQuestion::Failure { step, answers, only_people, .. } = ask else {
            return QuestionForm::of(request, view, ask);
        };
        // The attempt is part of the key: a retried step that fails again is another question.
        let attempts = view.steps.iter().find(|other| other.id == *step)?.attempts;
        // Resolving and replanning take more than a form, and a program may not say everything that its user may.
        let is_person = request.answering().actor().party == ActorKind::Person;
        let answers = answers.iter().filter(|answer| {
            let has_form = !matches!(answer, QuestionAnswer::Resolve | QuestionAnswer::Replan);
            has_form && (is_person || !only_people.contains(answer))
        });
        let answers: Vec<Value> = answers.map(|answer| json!(Verb::answering(*answer).name())).collect();
        let answer = json!({ "type": "string", "title": "What to do", "enum": answers });
        let reason =
            json!({ "type": "string", "title": "Why", "description": "Recorded in the journal", "minLength": 1 });
        Some(QuestionForm {
            key: format!("decide {step} {attempts}"),
            message: cut(&ask.to_string(), TEXT_CHARS_MAX),
            schema: object(json!({ "answer": answer, "reason": reason }), &["answer", "reason"]),
            ask: ask.clone(),
        })
    }

    fn request(self) -> Result<(String, InputRequest), AppError> {
        let params = self.params().map_err(|error| AppError::new("server.internal", error.to_string()))?;
        Ok((self.key, InputRequest::Elicitation(ElicitRequest::new(params))))
    }

    fn params(&self) -> serde_json::Result<ElicitRequestParams> {
        let requested_schema: ElicitationSchema = serde_json::from_value(self.schema.clone())?;
        Ok(ElicitRequestParams::FormElicitationParams { meta: None, message: self.message.clone(), requested_schema })
    }

    /// The command for the user's answer, and its reason.
    fn command(&self, content: &Value) -> Result<(Verb, CommandArguments, Option<String>), AppError> {
        let yes = |name: &str| {
            let wrong = || AppError::new("server.arguments", format!("the answer must say {name}: true or false"));
            content[name].as_bool().ok_or_else(wrong)
        };
        let reason = content["reason"].as_str().map(str::to_owned);
        let (verb, arguments) = match &self.ask {
            PendingQuestion::Approval { part, call, .. } => {
                let verb = if yes("approve")? { Verb::Approve } else { Verb::Reject };
                let call = Some(call.to_string());
                (verb, CommandArguments { step: Some(part.to_string()), call, ..Default::default() })
            }
            PendingQuestion::Replan { plan, .. } => {
                let verb = if yes("approve")? { Verb::Approve } else { Verb::Reject };
                (verb, CommandArguments { call: Some(plan.to_string()), ..Default::default() })
            }
            PendingQuestion::Doubt { part, .. } => {
                let (step, happened) = (Some(part.to_string()), Some(yes("happened")?));
                let evidence = Some(content["evidence"].clone());
                let result = content["result"].as_str().filter(|text| !text.trim().is_empty());
                let result = result.filter(|_| happened == Some(true)).map(|text| read_exact(text.as_bytes()));
                let result = result.transpose();
                let not_json = |error| AppError::new("server.arguments", format!("the result must be JSON: {error}"));
                let result = result.map_err(not_json)?;
                (Verb::Resolve, CommandArguments { step, happened, result, evidence, ..Default::default() })
            }
            PendingQuestion::Drift { tool, found, .. } if yes("accept")? => {
                let (tool, definition) = (Some(tool.to_string()), Some(found.to_string()));
                (Verb::AcceptTool, CommandArguments { tool, definition, ..Default::default() })
            }
            // The changed tool is not accepted, so the execution is cancelled.
            PendingQuestion::Drift { .. } => (Verb::Cancel, CommandArguments::default()),
            PendingQuestion::Tool { part, .. } => {
                let (step, reply) = (Some(part.to_string()), content.as_object().cloned());
                (Verb::Reply, CommandArguments { step, reply, ..Default::default() })
            }
            PendingQuestion::Failure { step, .. } => {
                let with = serde_json::from_value(content["answer"].clone()).map_err(|error| {
                    AppError::new("server.arguments", format!("the answer must be one of the choices: {error}"))
                })?;
                let step = Some(step.to_string());
                (Verb::Answer, CommandArguments { step, with: Some(with), ..Default::default() })
            }
            PendingQuestion::Compensation { .. }
            | PendingQuestion::SecondEffect { .. }
            | PendingQuestion::Limit { .. }
            | PendingQuestion::Hold { .. }
            | PendingQuestion::Silence { .. } => {
                return Err(AppError::new("server.internal", "this question has no form"));
            }
        };
        Ok((verb, arguments, reason))
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}
