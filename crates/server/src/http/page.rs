//! The page behind the link in an answer: what an execution asks, for a person with a token to say.
//!
//! The link itself gives no right: an agent has it too. Whoever opens it has entered before, and may answer with the
//! scope `approve` alone.

use crate::auth::enter::escaped;
use crate::auth::{Browser, Scope, require};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::guest::Guest;
use axum::extract::{Form, Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use rutter_core::execution::Identity;
use rutter_core::execution::view::{Ask, View};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, ToolName};
use rutter_core::journal::event::Answer;
use rutter_engine::control::Control;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;\
    color-scheme:light dark}pre{overflow:auto;padding:.6rem;border:1px solid #8886;border-radius:.4rem}\
    form{margin:.6rem 0}button,input{font:inherit;padding:.3rem .7rem;margin:.2rem .3rem .2rem 0}\
    section{border-top:1px solid #8886;padding-top:.6rem}input[name=reason],input[name=evidence]{width:60%}";
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; \
    base-uri 'none'";

pub(super) fn routes(desk: Arc<Desk>) -> Router {
    // Names that could not be one are not looked at any further.
    let plain = from_fn(|Path(execution): Path<ExecutionPath>, request: Request, next: Next| async move {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        match execution.execution.chars().all(is_plain) {
            true => next.run(request).await,
            false => wrong(StatusCode::NOT_FOUND, &Fault::missing("execution", &execution.execution)),
        }
    });
    Router::new()
        .route("/ask/{execution}", get(show))
        .route("/ask/{execution}/answer", post(answer))
        .route_layer(plain)
        .with_state(desk)
}

#[derive(Deserialize)]
struct ExecutionPath {
    execution: String,
}

async fn show(
    State(desk): State<Arc<Desk>>,
    Path(execution): Path<String>,
    Extension(guest): Extension<Guest>,
    Extension(browser): Extension<Browser>,
) -> Response {
    if let Err(fault) = require(&guest, Scope::Approve) {
        return wrong(StatusCode::FORBIDDEN, &fault);
    }
    match desk.engine.view(&identity(&guest, &execution)).await {
        Ok(view) => page(StatusCode::OK, &questions(&view, &browser)),
        Err(error) => wrong(StatusCode::NOT_FOUND, &error.into()),
    }
}

/// What a form said. Which question it answers is named exactly: another call of the same step is another question.
#[derive(Debug, Deserialize)]
struct Said {
    part: Option<String>,
    call: Option<String>,
    tool: Option<String>,
    say: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    evidence: String,
    #[serde(default)]
    content: String,
}

async fn answer(
    State(desk): State<Arc<Desk>>,
    Path(execution): Path<String>,
    Extension(guest): Extension<Guest>,
    Form(said): Form<Said>,
) -> Response {
    if let Err(fault) = require(&guest, Scope::Approve) {
        return wrong(StatusCode::FORBIDDEN, &fault);
    }
    let control = match said.control() {
        Ok(control) => control,
        Err(fault) => return wrong(StatusCode::BAD_REQUEST, &fault),
    };
    let reason = match said.reason.trim() {
        "" => "answered on the page".to_owned(),
        reason => reason.to_owned(),
    };
    match desk.engine.control(&identity(&guest, &execution), guest.actor(), control, reason, None).await {
        Ok(()) => (StatusCode::SEE_OTHER, [(LOCATION, format!("/ask/{execution}"))]).into_response(),
        Err(error) => wrong(StatusCode::CONFLICT, &error.into()),
    }
}

impl Said {
    fn control(&self) -> Result<Control, Fault> {
        let wrong = |what: &str| Fault::new("server.arguments", what);
        let part = self.part.as_deref().map(|part| PartId::parse(part).ok_or_else(|| wrong("no such step")));
        let part = part.transpose()?;
        let call = self.call.as_deref().map(|call| Hash::parse(call).ok_or_else(|| wrong("no such call")));
        let call = call.transpose()?;
        let evidence = Some(Arc::new(json!(self.evidence))).filter(|_| !self.evidence.trim().is_empty());
        Ok(match self.say.as_str() {
            "approve" => Control::Approve { part, call },
            "reject" => Control::Reject { part, call },
            "happened" => Control::Resolve { part, happened: true, result: None, evidence },
            "not_happened" => Control::Resolve { part, happened: false, result: None, evidence },
            "accept_tool" => {
                Control::AcceptTool { tool: ToolName::new(self.tool.as_deref().unwrap_or_default()) }
            }
            "cancel" => Control::Cancel { undo: None },
            "reply" => {
                let answer: Value = serde_json::from_str(&self.content)
                    .map_err(|error| wrong(&format!("the answer must be a JSON object: {error}")))?;
                Control::Reply { part, answer: Some(Arc::new(answer)) }
            }
            "decline" => Control::Reply { part, answer: None },
            name => {
                let answer: Answer =
                    serde_json::from_value(json!(name)).map_err(|_| wrong("no such answer"))?;
                Control::Answer { about: part, answer }
            }
        })
    }
}

fn identity(guest: &Guest, execution: &str) -> Identity {
    Identity { tenant: guest.tenant.clone(), execution: ExecutionId::new(execution) }
}

fn questions(view: &View, browser: &Browser) -> String {
    let head = format!(
        "<h1>{}</h1><p>{} · {} · {} of {} steps settled</p>",
        escaped(&view.plan),
        escaped(view.execution.as_str()),
        view.status.as_str(),
        view.settled,
        view.total
    );
    if view.questions.is_empty() {
        return head + "<p>Nothing waits for you.</p>";
    }
    view.questions.iter().fold(head, |text, ask| text + &question(view, ask, browser))
}

fn question(view: &View, ask: &Ask, browser: &Browser) -> String {
    let hidden =
        |name: &str, value: &str| format!("<input type=hidden name={name} value=\"{}\">", escaped(value));
    let button = |say: &str, text: &str| format!("<button name=say value={say}>{text}</button>");
    let reason = "<input name=reason placeholder=\"Why (stands in the journal)\" aria-label=Why>";
    let evidence = "<input name=evidence placeholder=\"How do you know?\" aria-label=Evidence required>";
    let answers = |answers: &[Answer]| -> String {
        let name = |answer: &Answer| json!(answer).as_str().unwrap_or_default().to_owned();
        let plain = answers.iter().filter(|answer| !matches!(answer, Answer::Resolve | Answer::Replan));
        plain.map(|answer| button(&name(answer), &name(answer))).collect()
    };
    let (shown, fields) = match ask {
        Ask::Approval { part, call, parameters, .. } => {
            let shown = parameters.as_ref().map(|value| pretty(value)).unwrap_or_default();
            let fields = hidden("part", &part.to_string()) + &hidden("call", &call.to_string()) + reason;
            (shown, fields + &button("approve", "Approve this call") + &button("reject", "Reject"))
        }
        Ask::Doubt { part, reason, .. } => {
            let fields = hidden("part", &part.to_string()) + evidence;
            let buttons = button("happened", "It happened") + &button("not_happened", "It did not happen");
            (reason.clone(), fields + &buttons)
        }
        Ask::Failure { step, failures, answers: allowed } => {
            let why: Vec<String> =
                failures.iter().map(|(part, failure)| format!("{part}: {failure}")).collect();
            (why.join("\n"), hidden("part", step.as_str()) + reason + &answers(allowed))
        }
        Ask::Compensation { part, failure, answers: allowed } => {
            (failure.to_string(), hidden("part", &part.to_string()) + reason + &answers(allowed))
        }
        Ask::Limit { answers: allowed, .. } => (String::new(), reason.to_owned() + &answers(allowed)),
        Ask::Drift { tool, pinned, found } => {
            let shown = format!("checked with {}\nis now {}", pinned.short(), found.short());
            let fields = hidden("tool", tool.as_str()) + reason;
            (
                shown,
                fields + &button("accept_tool", "Accept the tool as it is now") + &button("cancel", "Cancel"),
            )
        }
        Ask::Tool { part, message, schema, .. } => {
            let schema = schema.as_ref().map(|schema| pretty(schema)).unwrap_or_default();
            let content = "<textarea name=content rows=4 cols=60 aria-label=Answer>{}</textarea><br>";
            let fields = hidden("part", &part.to_string()) + content + reason;
            (
                format!("{message}\n{schema}"),
                fields + &button("reply", "Answer") + &button("decline", "Decline"),
            )
        }
    };
    format!(
        "<section><h2>{}</h2><pre>{}</pre><form method=post action=\"/ask/{}/answer\">{}{fields}</form></section>",
        escaped(&ask.to_string()),
        escaped(&shown),
        escaped(view.execution.as_str()),
        hidden("csrf", &browser.csrf)
    )
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn wrong(status: StatusCode, fault: &Fault) -> Response {
    let hint = fault.hint.as_deref().unwrap_or_default();
    page(
        status,
        &format!("<h1>{}</h1><p>{}</p><p>{}</p>", fault.code, escaped(&fault.message), escaped(hint)),
    )
}

fn page(status: StatusCode, body: &str) -> Response {
    let text = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>Rutter asks</title><style>{STYLE}</style><main>{body}</main></html>"
    );
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
    ];
    (status, headers, text).into_response()
}
