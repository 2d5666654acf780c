//! How an open question is answered: for people the commands, for agents where people look.

use crate::reader::AnswerReader;
use crate::rights::scope_to_answer;
use crate::scope::AccessScope;
use crate::verb::Verb;
use rutter_core::execution::view::{PendingQuestion, SurpriseKind};
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::{Question, QuestionAnswer};

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
            let choices =
                |part: &str, answers| choices(execution, &format!(" --step {part}"), " --result '{…}'", answers);
            match question.failed_item() {
                None => choices(step.as_str(), answers),
                // About the one item that failed where that is possible, otherwise about the step as a whole.
                Some(item) => {
                    let of_item = choices(&format!("'{item}'"), Question::ITEM_ANSWERS);
                    let is_other = |answer: &&QuestionAnswer| !Question::ITEM_ANSWERS.contains(answer);
                    let others: Vec<QuestionAnswer> = answers.iter().filter(is_other).copied().collect();
                    of_item.into_iter().chain(choices(step.as_str(), &others)).collect()
                }
            }
        }
        PendingQuestion::Compensation { part, answers, .. } => {
            choices(execution, &format!(" --step '{part}'"), "", answers)
        }
        PendingQuestion::SecondEffect { part, surprise, answers, .. } => {
            let step = format!(" --step '{part}'");
            let mut commands = choices(execution, &step, "", answers);
            if *surprise == SurpriseKind::OtherResult {
                commands.insert(0, command(Verb::Correct, execution, &format!("{step} --result '{{…}}'")));
            }
            commands
        }
        PendingQuestion::Limit { answers, .. } => choices(execution, "", "", answers),
        PendingQuestion::Replan { plan, .. } => {
            [Verb::Approve, Verb::Reject].map(|verb| command(verb, execution, &format!(" --call {plan}"))).to_vec()
        }
        PendingQuestion::Hold { .. } => ["", " --expire"].map(|rest| command(Verb::Resume, execution, rest)).to_vec(),
        PendingQuestion::Silence { answers, .. } => {
            let mut commands = choices(execution, "", "", answers);
            commands.splice(1..1, [Verb::HandBack, Verb::TakeOver].map(|verb| command(verb, execution, "")));
            commands
        }
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

/// How a question is answered, for this reader.
pub fn how(reader: &AnswerReader, execution: &ExecutionId, question: &PendingQuestion) -> String {
    if reader.is_person() {
        return first_command(execution, question);
    }
    let place = reader.place(execution);
    match scope_to_answer(question) {
        AccessScope::Approve => format!("a person decides {place}"),
        _ => format!("`control` answers it; people decide {place}"),
    }
}

/// The first of the commands, and the verbs of the others.
fn first_command(execution: &ExecutionId, question: &PendingQuestion) -> String {
    let commands = commands(execution, question);
    let verb = |command: &str| command.split(' ').nth(2).unwrap_or_default().to_owned();
    let mut verbs: Vec<String> = commands.iter().map(|command| verb(command)).collect();
    verbs.dedup();
    let first = commands.into_iter().next().unwrap_or_default();
    match question {
        PendingQuestion::Hold { .. } => {
            format!("{first}, or with --expire to let happen what came due, or --expire=NAMES for some of it")
        }
        PendingQuestion::Doubt { .. } => format!("{first}, or with --not-done if it did not happen"),
        _ if verbs.len() > 1 => format!("{first}, or {}", verbs[1..].join(", ")),
        _ => first,
    }
}
