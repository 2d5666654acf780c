//! The state of an execution in one sentence, and what to do next in another.

use crate::reader::AnswerReader;
use rutter_core::execution::part::is_refused_for_good;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus, PendingQuestion};
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::QuestionAnswer;
use rutter_core::plan::Driver;
use rutter_core::time::Millis;
use rutter_core::tool::ToolFailure;
use serde_json::json;

/// Of a compensation that an agent carries out, in `next`.
const PARAMETERS_CHARS_MAX: usize = 1_000;

/// The state in one line: "waiting, 1 of 3 steps completed; a person must approve charge (payments.charge)".
pub fn summary(view: &ExecutionSnapshot) -> String {
    view.summary()
}

/// Whether all that failed may not be called, so that trying again changes nothing.
fn is_refused<'a>(failures: impl Iterator<Item = &'a ToolFailure>) -> bool {
    let mut failures = failures.peekable();
    failures.peek().is_some() && failures.all(is_refused_for_good)
}

/// The next call that an agent makes, and why.
pub fn next(view: &ExecutionSnapshot, reader: &AnswerReader) -> String {
    let execution = &view.execution;
    if view.status.has_ended() && view.questions.is_empty() {
        return after_end(view);
    }
    if view.status == ExecutionStatus::Replanning {
        return format!("replan {}", json!({ "execution_id": execution, "plan": {}, "reason": "…" }));
    }
    if let Some(ask) = view.questions.first() {
        return answer(execution, ask, reader);
    }
    match (view.status, view.driver) {
        (ExecutionStatus::Paused, _) => {
            format!("control {}", json!({ "execution_id": execution, "action": "resume" }))
        }
        (_, Driver::Agent) if let Some(due) = &view.compensation_due => format!(
            "{} {}; or control {}: then Rutter undoes it",
            due.instruction(PARAMETERS_CHARS_MAX),
            json!({ "execution_id": execution, "step_id": due.part, "action_taken": "…", "reason": "…" }),
            json!({ "execution_id": execution, "action": "hand_back", "reason": "…" })
        ),
        (_, Driver::Agent) => match &view.due {
            Some((part, tool)) => format!(
                "call {tool} yourself, then record_step {}",
                json!({ "execution_id": execution, "step_id": part, "status": "completed", "result": {} })
            ),
            None => "record how the running steps ended with record_step".to_owned(),
        },
        (_, Driver::Server) => again(execution),
    }
}

/// A brief beside a `next` of its own: they would say the same in other words. Only the brief has a call that is due with
/// its parameters.
pub fn without_next(brief: &str) -> String {
    let is_said_elsewhere = |line: &&str| match line.strip_prefix("Next: ") {
        Some(next) => !next.starts_with("call ") || next.ends_with("record_compensation"),
        None => false,
    };
    brief.lines().filter(|line| !is_said_elsewhere(line)).map(|line| format!("{line}\n")).collect()
}

/// What can follow the end: nothing is done by itself.
fn after_end(view: &ExecutionSnapshot) -> String {
    let control = |action: &str| {
        let mut call = json!({ "execution_id": view.execution, "action": action, "reason": "…" });
        if let (true, Some(failed)) = (action == "retry", view.failures.first()) {
            call["step_id"] = json!(failed.part);
        }
        call
    };
    let mut tell: Vec<&str> = Vec::new();
    if view.status != ExecutionStatus::Completed {
        tell.push("how it ended");
    }
    if !view.unmet.is_empty() {
        tell.push("what is unmet");
    }
    if !view.remains.is_empty() {
        tell.push("what remains");
    }
    if tell.is_empty() {
        return "nothing; it is done".to_owned();
    }
    let mut text = format!("tell the user {}", tell.join(" and "));
    if is_refused(view.failures.iter().map(|failed| &failed.failure)) {
        text.push_str("; a retry of yours would fail again, because the call is not allowed");
    } else if view.can_reopen && view.ended_by_person {
        text.push_str("; only a person can go on from there, because a person stopped or undid it");
    } else if view.can_reopen {
        let action = if view.failures.is_empty() { "reopen" } else { "retry" };
        text.push_str(&format!("; control {} goes on from there", control(action)));
    }
    if !view.remains.is_empty() {
        text.push_str(&format!("; control {} undoes it where that is possible", control("undo")));
    }
    text
}

fn again(execution: &ExecutionId) -> String {
    format!("status {}", json!({ "execution_id": execution, "wait_seconds": 30 }))
}

fn answer(execution: &ExecutionId, ask: &PendingQuestion, reader: &AnswerReader) -> String {
    match ask {
        PendingQuestion::Tool { part, person_only: false, .. } => format!(
            "tell the user what the tool asks (people answer {}), or answer with control {}",
            reader.place(execution),
            json!({ "execution_id": execution, "action": "reply", "step_id": part, "reply": {} })
        ),
        PendingQuestion::Approval { .. }
        | PendingQuestion::Doubt { .. }
        | PendingQuestion::Drift { .. }
        | PendingQuestion::Replan { .. }
        | PendingQuestion::SecondEffect { .. }
        | PendingQuestion::Hold { .. }
        | PendingQuestion::Tool { .. } => {
            format!("tell the user: only a person can answer, {}; then {}", reader.place(execution), again(execution))
        }
        PendingQuestion::Failure { failures, .. } if is_refused(failures.iter().map(|(_, failure)| failure)) => {
            format!(
                "tell the user: this was not allowed, and a retry of yours would fail again; a person may decide, {}; or \
             control {} (or undo; or replan)",
                reader.place(execution),
                json!({ "execution_id": execution, "action": "stop", "reason": "…" })
            )
        }
        PendingQuestion::Failure { step, only_people, .. } if !only_people.is_empty() => format!(
            "tell the user: it needs a person's word to go on without this step, {}; or control {} (or stop, undo; or \
             replan)",
            reader.place(execution),
            json!({ "execution_id": execution, "action": "retry", "step_id": step, "reason": "…" })
        ),
        PendingQuestion::Failure { step, .. } if let Some(item) = ask.failed_item() => format!(
            "decide, then control {} (or skip, resolve; with step_id {step:?} also stop, continue, undo; or replan)",
            json!({ "execution_id": execution, "action": "retry", "step_id": item, "reason": "…" })
        ),
        PendingQuestion::Failure { step, .. } => format!(
            "decide, then control {} (or skip, resolve, stop, continue, undo; or replan)",
            json!({ "execution_id": execution, "action": "retry", "step_id": step, "reason": "…" })
        ),
        PendingQuestion::Compensation { part, .. } => format!(
            "decide, then control {} (or skip, resolve)",
            json!({ "execution_id": execution, "action": "retry", "step_id": part, "reason": "…" })
        ),
        PendingQuestion::Silence { answers, .. } if !answers.contains(&QuestionAnswer::Stop) => format!(
            "control {} and undo what is left, or hand_back",
            json!({ "execution_id": execution, "action": "take_over", "reason": "…" })
        ),
        PendingQuestion::Silence { .. } => format!(
            "go on with it and record each step, or control {} (or hand_back, stop, undo)",
            json!({ "execution_id": execution, "action": "take_over", "reason": "…" })
        ),
        PendingQuestion::Limit { .. } => format!(
            "tell the user: only a person can let it go on, {}; or control {} (or undo)",
            reader.place(execution),
            json!({ "execution_id": execution, "action": "stop", "reason": "…" })
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
    fn a_brief_says_what_is_next_only_where_nothing_else_does() {
        assert_eq!(without_next("Status: failed\nNext: nothing; it has ended\n"), "Status: failed\n");
        let due = "Status: running\nNext: call t.get for step a with {}, and record start and end\n";
        assert_eq!(without_next(due), due);
        assert_eq!(without_next("Status: failed\n"), "Status: failed\n");
        let undo = "Next: call t.undo with {} to undo step a, then record_compensation\nResults: a={}\n";
        assert_eq!(without_next(undo), "Results: a={}\n");
    }

    #[test]
    fn spans_have_at_most_two_units() {
        for (ms, text) in [(12, "12 ms"), (1_250, "1.2 s"), (61_000, "1 min 01 s"), (90_000_000, "1 d 1 h")] {
            assert_eq!(span(Millis(ms)), text);
        }
    }
}
