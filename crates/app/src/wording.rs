//! The state of an execution in one sentence, and what to do next in another.

use crate::question;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus, PendingQuestion};
use rutter_core::id::ExecutionId;
use rutter_core::plan::Driver;
use rutter_core::time::Millis;
use serde_json::json;

/// The state in one line: "waiting, 1 of 3 steps settled; a person must approve charge (payments.charge)".
pub fn summary(view: &ExecutionSnapshot) -> String {
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

/// The next call to make, and why.
pub fn next(view: &ExecutionSnapshot) -> String {
    let execution = &view.execution;
    if view.status.has_ended() && view.questions.is_empty() {
        return match view.status {
            ExecutionStatus::Completed => "nothing; it is done".to_owned(),
            _ if view.remains.is_empty() => "tell the user how it ended".to_owned(),
            _ => format!(
                "tell the user what remains; control {} undoes it where that is possible",
                json!({ "execution_id": execution, "action": "undo", "reason": "…" })
            ),
        };
    }
    if view.status == ExecutionStatus::Replanning {
        return format!("replan {}", json!({ "execution_id": execution, "plan": {}, "reason": "…" }));
    }
    if let Some(ask) = view.questions.first() {
        return answer(execution, ask);
    }
    match (view.status, view.driver) {
        (ExecutionStatus::Paused, _) => {
            format!("control {}", json!({ "execution_id": execution, "action": "resume" }))
        }
        (_, Driver::Agent) => match view.steps.iter().find(|step| step.status == "pending") {
            Some(step) => format!(
                "call {} yourself, then record_step {}",
                step.tool,
                json!({ "execution_id": execution, "step_id": step.id, "status": "completed", "result": {} })
            ),
            None => "record how the running steps ended with record_step".to_owned(),
        },
        (_, Driver::Server) => again(execution),
    }
}

fn again(execution: &ExecutionId) -> String {
    format!("status {}", json!({ "execution_id": execution, "wait_seconds": 30 }))
}

fn answer(execution: &ExecutionId, ask: &PendingQuestion) -> String {
    match ask {
        PendingQuestion::Approval { .. }
        | PendingQuestion::Doubt { .. }
        | PendingQuestion::Drift { .. }
        | PendingQuestion::Tool { .. } => {
            format!(
                "tell the user: only a person can answer ({}); then {}",
                question::how(execution, ask),
                again(execution)
            )
        }
        PendingQuestion::Failure { step, .. } => format!(
            "decide, then control {} (or skip, resolve, stop, continue, undo; or replan)",
            json!({ "execution_id": execution, "action": "retry", "step_id": step, "reason": "…" })
        ),
        PendingQuestion::Compensation { part, .. } => format!(
            "decide, then control {} (or skip, resolve)",
            json!({ "execution_id": execution, "action": "retry", "step_id": part, "reason": "…" })
        ),
        PendingQuestion::Limit { .. } => format!(
            "decide, then control {} (or stop, undo; or replan)",
            json!({ "execution_id": execution, "action": "continue", "reason": "…" })
        ),
    }
}

/// A duration for people, in at most two units.
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
    fn spans_have_at_most_two_units() {
        for (ms, text) in [(12, "12 ms"), (1_250, "1.2 s"), (61_000, "1 min 01 s"), (90_000_000, "1 d 1 h")] {
            assert_eq!(span(Millis(ms)), text);
        }
    }
}
