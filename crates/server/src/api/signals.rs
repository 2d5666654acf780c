//! Signals: what people and agents say to an execution.

use crate::api::call::Call;
use crate::api::execution::ToldExecution;
use crate::api::executions::{seen, settled, span};
use crate::api::reply::Reply;
use crate::api::route::{About, Keyed, Route};
use crate::auth::{Scope, require};
use crate::fault::Fault;
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event;
use rutter_engine::control::Control;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

pub(crate) fn routes() -> Vec<Route> {
    let about =
        About::post("/executions/{id}/signals", "sendSignal", "Steer an execution, or answer what it asks")
            .refuses(&[409, 412, 422])
            .keyed(Keyed::Journal);
    vec![Route::with_body(about, send)]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Signal")]
struct NewSignal {
    action: Action,
    /// `step` or `step[item]`; needed where more than one thing is asked.
    step_id: Option<String>,
    /// undo: only these and their dependents.
    steps: Option<Vec<String>>,
    /// Stands in the journal; needed for kill, skip, resolve, undo, approve, reject and accept_tool.
    reason: Option<String>,
    /// cancel: whether to undo what was done; default as the plan says.
    undo: Option<bool>,
    /// resolve: how you know.
    #[serde(default)]
    evidence: Option<Value>,
    /// resolve: what later steps read.
    #[serde(default)]
    result: Option<Value>,
    /// resolve: false if it certainly did not happen; default true.
    happened: Option<bool>,
    /// approve, reject: the call as it was seen, so that no other one is approved.
    call: Option<String>,
    /// answer: what to do about a step that failed, an undo that failed, or a limit.
    with: Option<With>,
    /// reply: what the tool asked for; left out declines.
    reply: Option<Map<String, Value>>,
    /// accept_tool: which one, `server.tool`.
    tool: Option<String>,
    /// accept_tool: the tool as it was seen (`found` of the question), so that no other one is accepted.
    definition: Option<String>,
    /// How long to wait for its end afterwards; default 0.
    #[schemars(range(max = 45))]
    wait_seconds: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Pause,
    Resume,
    Cancel,
    Kill,
    Retry,
    Skip,
    Resolve,
    Answer,
    Approve,
    Reject,
    Reply,
    Undo,
    TakeOver,
    HandBack,
    AcceptTool,
}

/// What to do about what failed.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum With {
    Retry,
    Skip,
    Stop,
    Continue,
    Compensate,
    Replan,
}

impl Action {
    /// A person's word.
    fn is_a_persons(self) -> bool {
        matches!(self, Action::Approve | Action::Reject | Action::AcceptTool)
    }

    fn needs_reason(self) -> bool {
        use Action::*;
        matches!(self, Kill | Skip | Resolve | Undo | Approve | Reject | AcceptTool)
    }
}

async fn send(call: Call, signal: NewSignal) -> Result<Reply<ToldExecution>, Fault> {
    let (identity, span) = (call.identity(), span(signal.wait_seconds)?);
    if signal.action.is_a_persons() {
        require(&call.guest, Scope::Approve)?;
    }
    let reason = signal.reason.clone().unwrap_or_default();
    if signal.action.needs_reason() && reason.trim().is_empty() {
        return Err(wrong("this needs a reason; it stands in the journal"));
    }
    let seen = seen(&call, &identity).await?;
    let control = signal.control()?;
    let (engine, actor) = (&call.desk().engine, call.guest.actor());
    engine.control_as_seen(&identity, actor, control, reason, call.key.clone(), seen).await?;
    Ok(Reply::ok(settled(&call, &identity, span).await?))
}

impl NewSignal {
    fn control(self) -> Result<Control, Fault> {
        let part = match &self.step_id {
            None => None,
            Some(text) => {
                let unreadable = || wrong(&format!("{text:?} is neither step nor step[item]"));
                Some(PartId::parse(text).ok_or_else(unreadable)?)
            }
        };
        let hash = |text: &Option<String>, name: &str| {
            let unreadable = || wrong(&format!("{name} is the hash a question has"));
            text.as_ref().map(|text| Hash::parse(text).ok_or_else(unreadable)).transpose()
        };
        let (call, definition) = (hash(&self.call, "call")?, hash(&self.definition, "definition")?);
        let answer = |answer| Control::Answer { about: part.clone(), answer };
        Ok(match self.action {
            Action::Pause => Control::Pause,
            Action::Resume => Control::Resume,
            Action::Cancel => Control::Cancel { undo: self.undo },
            Action::Kill => Control::Kill,
            Action::Retry => answer(event::Answer::Retry),
            Action::Skip => answer(event::Answer::Skip),
            Action::Answer => {
                answer(match self.with.ok_or_else(|| wrong("say with what to answer: `with`"))? {
                    With::Retry => event::Answer::Retry,
                    With::Skip => event::Answer::Skip,
                    With::Stop => event::Answer::Stop,
                    With::Continue => event::Answer::Continue,
                    With::Compensate => event::Answer::Compensate,
                    With::Replan => event::Answer::Replan,
                })
            }
            Action::Resolve => Control::Resolve {
                part,
                happened: self.happened.unwrap_or(true),
                result: self.result.map(Arc::new),
                evidence: self.evidence.map(Arc::new),
            },
            Action::Approve => Control::Approve { part, call },
            Action::Reject => Control::Reject { part, call },
            Action::Reply => {
                Control::Reply { part, answer: self.reply.map(|reply| Arc::new(Value::Object(reply))) }
            }
            Action::Undo => {
                let named = self.steps.into_iter().flatten().chain(self.step_id);
                let steps: Vec<StepId> = named.map(|step| StepId::new(&step)).collect();
                Control::Undo { steps: Some(steps).filter(|steps| !steps.is_empty()) }
            }
            Action::TakeOver => Control::TakeOver,
            Action::HandBack => Control::HandBack,
            Action::AcceptTool => {
                let tool = self.tool.ok_or_else(|| wrong("say which tool is accepted: `tool`"))?;
                Control::AcceptTool { tool: ToolName::new(&tool), definition }
            }
        })
    }
}

fn wrong(message: &str) -> Fault {
    Fault::new("server.arguments", message)
}
