//! How an execution stands, in one sentence, and what to do next in another.

use rutter_core::execution::view::{Ask, Status, View};
use rutter_core::id::{ExecutionId, PartId};
use rutter_core::plan::Driver;
use rutter_core::time::Millis;
use rutter_core::tool::Failure;
use serde_json::{Value, json};

/// Of each text in a question, and of what failed in a step with many parts.
const TEXT_CHARS_MAX: usize = 300;
const FAILURES_MAX: usize = 3;

/// The whole story in one line: "waiting, 1 of 3 steps done; a person must approve charge (payments.charge)".
pub fn summary(view: &View) -> String {
    let mut text = format!("{}, {} of {} steps settled", view.status.as_str(), view.settled, view.total);
    if let Some(ask) = view.questions.first() {
        text.push_str(&format!("; {ask}"));
    }
    match view.questions.len() {
        0 | 1 => {}
        count => text.push_str(&format!("; {} more questions", count - 1)),
    }
    if !view.remains.is_empty() {
        let parts: Vec<String> = view.remains.iter().take(5).map(ToString::to_string).collect();
        text.push_str(&format!("; effects that remain: {}", parts.join(", ")));
    }
    text
}

/// The call to make next, and why.
pub fn next(view: &View) -> String {
    let execution = &view.execution;
    if view.status.has_ended() && view.questions.is_empty() {
        return match view.status {
            Status::Completed => "nothing; it is done".to_owned(),
            _ if view.remains.is_empty() => "tell the user how it ended".to_owned(),
            _ => format!(
                "tell the user what remains; control {} undoes it where that is possible",
                json!({ "execution_id": execution, "action": "compensate", "reason": "…" })
            ),
        };
    }
    if let Some(ask) = view.questions.first() {
        return answer(execution, ask);
    }
    match (view.status, view.driver) {
        (Status::Paused, _) => {
            format!("control {}", json!({ "execution_id": execution, "action": "resume" }))
        }
        (Status::Replanning, _) => format!("replan with execution_id {execution} and the new plan"),
        (_, Driver::Agent) => match view.steps.iter().find(|step| step.status == "pending") {
            Some(step) => format!(
                "call {} yourself, then record_step {}",
                step.tool,
                json!({ "execution_id": execution, "step_id": step.id, "status": "completed", "result": {} })
            ),
            None => "record the end of what is under way with record_step".to_owned(),
        },
        (_, Driver::Server) => again(execution),
    }
}

fn again(execution: &ExecutionId) -> String {
    format!("status {}", json!({ "execution_id": execution, "wait_seconds": 30 }))
}

fn answer(execution: &ExecutionId, ask: &Ask) -> String {
    match ask {
        Ask::Approval { .. } | Ask::Doubt { .. } | Ask::Drift { .. } | Ask::Tool { .. } => {
            format!(
                "tell the user: only a person can answer ({}); then {}",
                how(execution, ask),
                again(execution)
            )
        }
        Ask::Failure { step, .. } => format!(
            "decide, then control {} (or skip, resolve, stop, continue, compensate; or replan)",
            json!({ "execution_id": execution, "action": "retry", "step_id": step, "reason": "…" })
        ),
        Ask::Compensation { part, .. } => format!(
            "decide, then control {} (or skip, resolve)",
            json!({ "execution_id": execution, "action": "retry", "step_id": part, "reason": "…" })
        ),
        Ask::Limit { .. } => format!(
            "decide, then control {} (or stop, compensate; or replan)",
            json!({ "execution_id": execution, "action": "continue", "reason": "…" })
        ),
    }
}

/// The command with which a person answers.
pub fn how(execution: &ExecutionId, ask: &Ask) -> String {
    let rest = match ask {
        Ask::Approval { part, call, .. } => format!("approve {execution} --step '{part}' --call {call}"),
        Ask::Doubt { part, .. } => {
            format!(
                "resolve {execution} --step '{part}' --evidence '…', with --not-done if it did not happen"
            )
        }
        Ask::Failure { step, .. } => format!("retry {execution} --step {step}, or skip, resolve, answer"),
        Ask::Compensation { part, .. } => format!("retry {execution} --step '{part}', or skip, resolve"),
        Ask::Limit { .. } => format!("answer {execution} --with continue|stop|compensate|replan"),
        Ask::Drift { tool, found, .. } => {
            format!("accept-tool {execution} --tool {tool} --definition {found} --reason '…'")
        }
        Ask::Tool { part, .. } => format!("reply {execution} --step '{part}' --answer '{{…}}'"),
    };
    format!("rutter exec {rest}")
}

/// A question as it stands in answers.
pub fn question(execution: &ExecutionId, ask: &Ask, link: Option<&str>) -> Value {
    let mut value = serde_json::to_value(ask).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        // What a tool says, and what a call carries, can be long; the resource has all of it.
        for name in ["reason", "message"] {
            if let Some(Value::String(text)) = fields.get_mut(name) {
                *text = cut(text, TEXT_CHARS_MAX);
            }
        }
        if let Ask::Failure { failures, .. } = ask {
            let said = |(part, failure): &(PartId, Failure)| {
                json!(format!("{part}: {}", cut(&failure.to_string(), TEXT_CHARS_MAX)))
            };
            fields.insert("failures".to_owned(), failures.iter().take(FAILURES_MAX).map(said).collect());
            if failures.len() > FAILURES_MAX {
                fields.insert("failures_count".to_owned(), json!(failures.len()));
            }
        }
        if let Ask::Compensation { failure, .. } = ask {
            fields.insert("failure".to_owned(), json!(cut(&failure.to_string(), TEXT_CHARS_MAX)));
        }
        for name in ["schema", "parameters"] {
            if fields.get(name).is_some_and(|value| value.to_string().len() > 600) {
                fields.insert(name.to_owned(), json!("too long; read the execution's resource"));
            }
        }
        fields.insert("ask".to_owned(), json!(ask.to_string()));
        fields.insert("person".to_owned(), json!(how(execution, ask)));
        if let Some(link) = link {
            fields.insert("link".to_owned(), json!(format!("{link}/executions/{execution}#questions")));
        }
    }
    value
}

/// The beginning of a text, if it is longer than so many characters.
pub fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// A span as people say it: two units at the most.
pub fn span(span: Millis) -> String {
    let ms = span.0;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        10_000..60_000 => format!("{} s", ms / 1_000),
        60_000..3_600_000 => format!("{} min {:02} s", ms / 60_000, ms / 1_000 % 60),
        3_600_000..86_400_000 => format!("{} h {:02} min", ms / 3_600_000, ms / 60_000 % 60),
        _ => format!("{} d {} h", ms / 86_400_000, ms / 3_600_000 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_said_shortly() {
        for (ms, text) in [(12, "12 ms"), (1_250, "1.2 s"), (61_000, "1 min 01 s"), (90_000_000, "1 d 1 h")] {
            assert_eq!(span(Millis(ms)), text);
        }
    }
}
