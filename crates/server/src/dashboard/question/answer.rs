//! Takes what a form said to a question.

use super::{field, scope};
use crate::auth::require;
use crate::dashboard::page::{self, Answer, Posted};
use crate::desk::Desk;
use crate::fault::Fault;
use axum::extract::{Path, State};
use rutter_core::execution::view::{Ask, View};
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, ToolName};
use rutter_core::journal::event;
use rutter_engine::control::Control;
use serde_json::{Value, json};
use std::sync::Arc;

pub(in crate::dashboard) async fn answer(
    State(desk): State<Arc<Desk>>,
    Path(execution): Path<String>,
    posted: Posted,
) -> Answer {
    let guest = &posted.visitor.guest;
    let identity = posted.visitor.identity(&execution);
    let view = desk.engine.view(&identity).await?;
    let part = posted.said("part").map(|part| PartId::parse(part).ok_or_else(|| wrong("no such step")));
    let part = part.transpose()?;
    let say = posted.said("say").ok_or_else(|| wrong("the form does not say what to do"))?;
    let ask = asked(&view, say, part.as_ref(), posted.said("tool"));
    if let Some(ask) = ask {
        require(guest, scope(ask))?;
    }
    let control = control(&posted, say, part, ask)?;
    let reason = match posted.said("reason") {
        Some(reason) => reason.to_owned(),
        None if needs_reason(say) => return Err(wrong("say why; it stands in the journal").into()),
        None => "answered on the dashboard".to_owned(),
    };
    desk.engine.control(&identity, guest.actor(), control, reason, None).await?;
    Ok(page::go(posted.back(), said(say)))
}

fn wrong(message: &str) -> Fault {
    Fault::new("server.arguments", message)
}

fn needs_reason(say: &str) -> bool {
    !matches!(say, "happened" | "not_happened" | "reply" | "decline" | "resolve")
}

fn said(say: &str) -> &'static str {
    match say {
        "approve" => "approved",
        "reject" => "rejected",
        "happened" | "not_happened" => "settled",
        "cancel" => "cancelled",
        _ => "answered",
    }
}

/// The question that is answered, if it is still open; otherwise the execution itself says that it is not.
fn asked<'a>(view: &'a View, say: &str, part: Option<&PartId>, tool: Option<&str>) -> Option<&'a Ask> {
    view.questions.iter().find(|ask| match ask {
        Ask::Approval { part: asked, .. } => matches!(say, "approve" | "reject") && part == Some(asked),
        Ask::Doubt { part: asked, .. } => matches!(say, "happened" | "not_happened") && part == Some(asked),
        Ask::Tool { part: asked, .. } => matches!(say, "reply" | "decline") && part == Some(asked),
        Ask::Drift { tool: asked, .. } => {
            matches!(say, "accept_tool" | "cancel") && tool == Some(asked.as_str())
        }
        Ask::Failure { step, .. } => part.is_some_and(|part| part.item.is_none() && part.step == *step),
        Ask::Compensation { part: asked, .. } => part == Some(asked),
        Ask::Limit { .. } => part.is_none() && tool.is_none(),
    })
}

fn control(posted: &Posted, say: &str, part: Option<PartId>, ask: Option<&Ask>) -> Result<Control, Fault> {
    let hash = |name: &str| {
        let hash = posted.said(name).map(|text| Hash::parse(text).ok_or_else(|| wrong("this is no hash")));
        hash.transpose()
    };
    let (call, definition) = (hash("call")?, hash("definition")?);
    let evidence = posted.said("evidence").map(|evidence| Arc::new(json!(evidence)));
    Ok(match say {
        "approve" => Control::Approve { part, call },
        "reject" => Control::Reject { part, call },
        "happened" => Control::Resolve { part, happened: true, result: None, evidence },
        "not_happened" => Control::Resolve { part, happened: false, result: None, evidence },
        "resolve" => {
            let result = posted.said("result").map(serde_json::from_str::<Value>).transpose();
            let result = result.map_err(|error| wrong(&format!("the result must be JSON: {error}")))?;
            Control::Resolve { part, happened: true, result: result.map(Arc::new), evidence }
        }
        "accept_tool" => {
            let tool = ToolName::new(posted.said("tool").unwrap_or_default());
            Control::AcceptTool { tool, definition }
        }
        "cancel" => Control::Cancel { undo: None },
        "reply" => {
            let schema = match ask {
                Some(Ask::Tool { schema: Some(schema), .. }) => schema,
                _ => return Err(Fault::new("execution.no_question", "the tool does not ask any more")),
            };
            let answer = field::read(schema, |name| posted.said(name))?;
            Control::Reply { part, answer: Some(Arc::new(answer)) }
        }
        "decline" => Control::Reply { part, answer: None },
        name => {
            let answer: event::Answer =
                serde_json::from_value(json!(name)).map_err(|_| wrong("there is no such answer"))?;
            Control::Answer { about: part, answer }
        }
    })
}
