//! Questions that only a person may answer, put to the person at the client.
//!
//! Clients of the newer era get them as the answer to their call and call again with what was said; older ones are
//! asked while their call is open. A client that cannot ask leaves the question to the command line. Whoever declines
//! leaves it open: not answering is no answer.

use crate::fault::Fault;
use crate::limits::{PERSON_MAX, QUESTION_AGE_MAX};
use crate::mcp::visit::Visit;
use crate::mcp::wait::settled;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputRequiredResult, SealOptions,
};
use rutter_core::execution::Identity;
use rutter_core::execution::view::{Ask, View};
use rutter_core::id::{ExecutionId, PartId};
use rutter_core::journal::event::Answer;
use rutter_engine::control::Control;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often it is looked whether somebody else has answered meanwhile.
const LOOK_EVERY: Duration = Duration::from_secs(2);

pub(crate) enum Settled {
    View(Box<View>),
    Ask(Box<InputRequiredResult>),
}

/// Waits for an execution, and lets the person at the client answer what only a person may.
pub(crate) async fn settle(visit: &Visit, identity: &Identity, span: Duration) -> Result<Settled, Fault> {
    loop {
        let view = settled(visit, identity, span).await?;
        let asked: Vec<Form> = view.questions.iter().filter_map(Form::of).collect();
        if asked.is_empty() || !visit.can_ask || visit.gone.is_cancelled() {
            return Ok(Settled::View(Box::new(view)));
        }
        if visit.is_modern {
            return required(visit, identity, asked).map(|required| Settled::Ask(Box::new(required)));
        }
        let answered = match asked.into_iter().next() {
            Some(form) => elicit(visit, identity, form).await?,
            None => false,
        };
        if !answered {
            return Ok(Settled::View(Box::new(view)));
        }
    }
}

/// What the person said to questions an earlier round of this call put.
pub(crate) struct Heard {
    pub(crate) identity: Identity,
    /// Something was left open; asking again at once would only annoy.
    pub(crate) declined: bool,
}

/// Passes on what the person said, if this call comes with answers.
pub(crate) async fn hear(visit: &Visit) -> Result<Option<Heard>, Fault> {
    let Some((state, replies)) = &visit.replies else { return Ok(None) };
    let stale = |_| {
        Fault::new(
            "server.stale_question",
            "this answers a question that was not put to you, or too long ago",
        )
        .hint("call `status` with the execution's id; open questions are asked again")
    };
    let round: Round = visit.desk.seal.open_json_with(state, sealed_for(visit).as_bytes()).map_err(stale)?;
    let identity = visit.identity(round.execution.as_str());
    let view = visit.desk.engine.view(&identity).await?;
    let asked = replies.iter().filter(|(key, _)| round.asked.contains(*key));
    let mut declined = take(visit, &identity, &view, asked).await?;
    declined |= round.asked.iter().any(|key| !replies.contains_key(key));
    Ok(Some(Heard { identity, declined }))
}

/// The open questions of an execution, for a client that holds a ticket for it. Nobody but the person hears of them
/// there, so what an agent would decide is asked too.
pub(crate) fn requests(view: &View) -> Result<InputRequests, Fault> {
    view.questions.iter().filter_map(|ask| Form::for_ticket(view, ask)).map(Form::request).collect()
}

/// Whether nothing is asked that an agent may answer.
pub(crate) fn only_people_may(view: &View) -> bool {
    view.questions.iter().all(|ask| Form::of(ask).is_some())
}

/// Passes on what the person said to questions that are still open. Says whether some were left open.
pub(crate) async fn take<'a>(
    visit: &Visit,
    identity: &Identity,
    view: &View,
    replies: impl Iterator<Item = (&'a String, &'a Value)>,
) -> Result<bool, Fault> {
    let mut declined = false;
    for (key, reply) in replies {
        let mut open = view.questions.iter().filter_map(|ask| Form::for_ticket(view, ask));
        let Some(form) = open.find(|form| form.key == *key) else {
            // Somebody else has answered it meanwhile.
            continue;
        };
        let reply: ElicitResult = serde_json::from_value(reply.clone())
            .map_err(|error| Fault::new("server.arguments", format!("inputResponses.{key}: {error}")))?;
        declined |= !say(visit, identity, &form, reply).await?;
    }
    Ok(declined)
}

/// What travels to the client and back, sealed.
#[derive(Debug, Serialize, Deserialize)]
struct Round {
    execution: ExecutionId,
    asked: BTreeSet<String>,
}

fn sealed_for(visit: &Visit) -> String {
    format!("{}|{}|{}", visit.guest.tenant, visit.guest.name, visit.tool)
}

fn required(visit: &Visit, identity: &Identity, asked: Vec<Form>) -> Result<InputRequiredResult, Fault> {
    let internal = |error: &dyn std::fmt::Display| Fault::new("server.internal", error.to_string());
    let keys = asked.iter().map(|form| form.key.clone()).collect();
    let round = Round { execution: identity.execution.clone(), asked: keys };
    let aad = sealed_for(visit);
    let options = SealOptions::new().associated_data(aad.as_bytes()).ttl(QUESTION_AGE_MAX);
    let state = visit.desk.seal.seal_json_with(&round, &options).map_err(|error| internal(&error))?;
    let requests = asked.into_iter().map(Form::request).collect::<Result<InputRequests, Fault>>()?;
    Ok(InputRequiredResult::new(Some(requests), Some(state)))
}

/// Asks while the call is open. Says whether there was an answer, by the person or by somebody else.
async fn elicit(visit: &Visit, identity: &Identity, form: Form) -> Result<bool, Fault> {
    let params = form.params().map_err(|error| Fault::new("server.internal", error.to_string()))?;
    let asking = visit.peer.create_elicitation_with_timeout(params, Some(PERSON_MAX));
    tokio::pin!(asking);
    loop {
        tokio::select! {
            reply = &mut asking => return match reply {
                Ok(reply) => say(visit, identity, &form, reply).await,
                Err(error) => {
                    tracing::debug!("the client could not ask: {error}");
                    Ok(false)
                }
            },
            () = visit.gone.cancelled() => return Ok(false),
            () = tokio::time::sleep(LOOK_EVERY) => {
                let view = visit.desk.engine.view(identity).await?;
                visit.progress(view.settled, view.total, &form.message).await;
                if !view.questions.iter().filter_map(Form::of).any(|open| open.key == form.key) {
                    return Ok(true);
                }
            }
        }
    }
}

/// Tells the execution what the person said. Says whether that was an answer.
async fn say(visit: &Visit, identity: &Identity, form: &Form, reply: ElicitResult) -> Result<bool, Fault> {
    if reply.action != ElicitationAction::Accept {
        return Ok(false);
    }
    let content = reply.content.unwrap_or_default();
    let (control, reason) = form.control(&content)?;
    let engine = &visit.desk.engine;
    engine.control(identity, visit.person(), control, reason, None).await?;
    Ok(true)
}

/// A question as a form for a person.
struct Form {
    /// Names the question exactly: another call of the same step is another question.
    key: String,
    message: String,
    schema: Value,
    ask: Ask,
}

impl Form {
    /// `None` for what agents may answer themselves.
    fn of(ask: &Ask) -> Option<Form> {
        let reason = json!({ "type": "string", "title": "Why", "description": "Stands in the journal" });
        let (key, message, schema) = match ask {
            Ask::Approval { part, call, tool, parameters, .. } => {
                let parameters = parameters.as_ref().map(|value| cut(&value.to_string())).unwrap_or_default();
                let message =
                    format!("Step {part} wants to call {tool} with {parameters}. Approve this call?");
                let approve = json!({ "type": "boolean", "title": "Approve" });
                let schema = object(json!({ "approve": approve, "reason": reason }), &["approve"]);
                (format!("approve {part} {call}"), message, schema)
            }
            Ask::Doubt { part, side, attempt, reason: why } => {
                let message = format!(
                    "Nobody knows whether step {part} took effect ({}). Look outside Rutter first. Did it happen?",
                    cut(why)
                );
                let happened = json!({ "type": "boolean", "title": "It happened" });
                let evidence = json!({ "type": "string", "title": "How do you know?", "minLength": 1 });
                let properties = json!({ "happened": happened, "evidence": evidence });
                let schema = object(properties, &["happened", "evidence"]);
                (format!("settle {part} {side:?} {attempt}"), message, schema)
            }
            Ask::Drift { tool, found, .. } => {
                let message =
                    format!("{tool} has changed since the plan was checked. Accept it as it is now?");
                let accept = json!({ "type": "boolean", "title": "Accept the changed tool" });
                let schema = object(json!({ "accept": accept, "reason": reason }), &["accept"]);
                (format!("accept {tool} {found}"), message, schema)
            }
            Ask::Tool { part, attempt, message, schema, .. } => {
                let schema = schema.as_ref()?.as_ref().clone();
                let message = format!("The tool of step {part} asks (its own words): {}", cut(message));
                (format!("reply {part} {attempt}"), message, schema)
            }
            Ask::Failure { .. } | Ask::Compensation { .. } | Ask::Limit { .. } => return None,
        };
        Some(Form { key, message, schema, ask: ask.clone() })
    }

    /// As [`Form::of`], and for a step that has failed for good the choice of what to do.
    fn for_ticket(view: &View, ask: &Ask) -> Option<Form> {
        let Ask::Failure { step, answers, .. } = ask else { return Form::of(ask) };
        // A step that is tried again and fails again is another question.
        let attempts = view.steps.iter().find(|other| other.id == *step)?.attempts;
        // Doing it by hand and planning anew take more than a form.
        let answers = answers.iter().filter(|answer| !matches!(answer, Answer::Resolve | Answer::Replan));
        let answers: Vec<Value> = answers.map(|answer| json!(answer)).collect();
        let answer = json!({ "type": "string", "title": "What now?", "enum": answers });
        let reason = json!({ "type": "string", "title": "Why", "description": "Stands in the journal" });
        Some(Form {
            key: format!("decide {step} {attempts}"),
            message: cut(&ask.to_string()),
            schema: object(json!({ "answer": answer, "reason": reason }), &["answer"]),
            ask: ask.clone(),
        })
    }

    fn request(self) -> Result<(String, InputRequest), Fault> {
        let params = self.params().map_err(|error| Fault::new("server.internal", error.to_string()))?;
        Ok((self.key, InputRequest::Elicitation(ElicitRequest::new(params))))
    }

    fn params(&self) -> serde_json::Result<ElicitRequestParams> {
        let requested_schema: ElicitationSchema = serde_json::from_value(self.schema.clone())?;
        Ok(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.message.clone(),
            requested_schema,
        })
    }

    fn control(&self, content: &Value) -> Result<(Control, String), Fault> {
        let yes = |name: &str| {
            let wrong =
                || Fault::new("server.arguments", format!("the answer must say {name}: true or false"));
            content[name].as_bool().ok_or_else(wrong)
        };
        let said = |name: &str| content[name].as_str().unwrap_or_default().to_owned();
        let reason = match said("reason") {
            reason if reason.is_empty() => "answered at the client".to_owned(),
            reason => reason,
        };
        Ok(match &self.ask {
            Ask::Approval { part, call, .. } => {
                let (part, call) = (Some(part.clone()), Some(*call));
                match yes("approve")? {
                    true => (Control::Approve { part, call }, reason),
                    false => (Control::Reject { part, call }, reason),
                }
            }
            Ask::Doubt { part, .. } => {
                let (part, happened) = (Some(part.clone()), yes("happened")?);
                let evidence = Some(Arc::new(json!(said("evidence"))));
                (Control::Resolve { part, happened, result: None, evidence }, reason)
            }
            Ask::Drift { tool, found, .. } if yes("accept")? => {
                (Control::AcceptTool { tool: tool.clone(), definition: Some(*found) }, reason)
            }
            // The changed tool is not wanted; what is to happen instead is the plan's business.
            Ask::Drift { .. } => (Control::Cancel { undo: None }, reason),
            Ask::Tool { part, .. } => {
                (Control::Reply { part: Some(part.clone()), answer: Some(Arc::new(content.clone())) }, reason)
            }
            Ask::Failure { step, .. } => {
                let answer = serde_json::from_value(content["answer"].clone()).map_err(|error| {
                    Fault::new("server.arguments", format!("the answer must be one of the choices: {error}"))
                })?;
                (Control::Answer { about: Some(PartId::whole(step.clone())), answer }, reason)
            }
            Ask::Compensation { .. } | Ask::Limit { .. } => {
                return Err(Fault::new("server.internal", "no form is made of this"));
            }
        })
    }
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

fn cut(text: &str) -> String {
    const CHARS_MAX: usize = 1_000;
    match text.char_indices().nth(CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
