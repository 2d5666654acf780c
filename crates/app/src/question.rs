//! The commands with which a person answers an open question.

use crate::verb::Verb;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::QuestionAnswer;

/// The commands that answer a question, one per choice, as a person types them.
pub fn commands(execution: &ExecutionId, question: &PendingQuestion) -> Vec<String> {
    match question {
        PendingQuestion::Approval { part, call, .. } => [Verb::Approve, Verb::Reject]
            .map(|verb| command(verb, execution, &format!(" --step '{part}' --call {call}")))
            .to_vec(),
        PendingQuestion::Doubt { part, .. } => {
            let step = format!(" --step '{part}'");
            vec![evidence(execution, &step, " --result '{…}'"), evidence(execution, &format!("{step} --not-done"), "")]
        }
        PendingQuestion::Failure { step, answers, .. } => {
            choices(execution, &format!(" --step {step}"), " --result '{…}'", answers)
        }
        PendingQuestion::Compensation { part, answers, .. } => {
            choices(execution, &format!(" --step '{part}'"), "", answers)
        }
        PendingQuestion::Limit { answers, .. } => choices(execution, "", "", answers),
        PendingQuestion::Drift { tool, found, .. } => {
            vec![command(Verb::AcceptTool, execution, &format!(" --tool {tool} --definition {found}"))]
        }
        PendingQuestion::Tool { part, .. } => [" --answer '{…}'", " --decline"]
            .map(|rest| command(Verb::Reply, execution, &format!(" --step '{part}'{rest}")))
            .to_vec(),
    }
}

/// One command per answer; `result` is what resolving by hand may add.
fn choices(execution: &ExecutionId, step: &str, result: &str, answers: &[QuestionAnswer]) -> Vec<String> {
    let choice = |answer: &QuestionAnswer| match Verb::answering(*answer) {
        Verb::Resolve => evidence(execution, step, result),
        // `exec undo` undoes the whole execution; this answers the question.
        Verb::Undo => format!("rutter exec answer {execution}{step} --with undo --reason '…'"),
        verb => command(verb, execution, step),
    };
    answers.iter().map(choice).collect()
}

fn command(verb: Verb, execution: &ExecutionId, rest: &str) -> String {
    let reason = if verb.row().needs_reason { " --reason '…'" } else { "" };
    format!("rutter exec {} {execution}{rest}{reason}", verb.name().replace('_', "-"))
}

/// Resolving: evidence in words is its reason.
fn evidence(execution: &ExecutionId, step: &str, result: &str) -> String {
    format!("rutter exec {} {execution}{step} --evidence '…'{result}", Verb::Resolve.name())
}

/// The first of these commands, and the verbs of the others.
pub fn how(execution: &ExecutionId, question: &PendingQuestion) -> String {
    let commands = commands(execution, question);
    let verb = |command: &str| command.split(' ').nth(2).unwrap_or_default().to_owned();
    let mut verbs: Vec<String> = commands.iter().map(|command| verb(command)).collect();
    verbs.dedup();
    let first = commands.into_iter().next().unwrap_or_default();
    match question {
        PendingQuestion::Doubt { .. } => format!("{first}, or with --not-done if it did not happen"),
        _ if verbs.len() > 1 => format!("{first}, or {}", verbs[1..].join(", ")),
        _ => first,
    }
}
