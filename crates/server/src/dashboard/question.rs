//! What an execution asks, with the form that answers it. The same on every page where questions stand.

mod answer;
mod difference;
pub(super) mod field;

pub(super) use answer::answer;
pub use difference::{Line, lines};
pub use field::Field;

use super::format::{Id, Look, Moment};
use super::shell::Shell;
use crate::auth::Scope;
use crate::words;
use rutter_core::execution::view::{Ask, View};
use rutter_core::id::PartId;
use rutter_core::journal::event::{Answer, Side};
use rutter_core::tool::Failure;
use serde_json::Value;

/// More of a call than this is behind a link.
const JSON_BYTES_MAX: usize = 64 << 10;
/// Of what a tool or an error says.
const WORDS_CHARS_MAX: usize = 4_000;
const FAILURES_MAX: usize = 10;

/// One question. `question.html` shows it as `card`, beside a `shell`.
#[derive(Clone, Debug)]
pub struct Card {
    /// The same as long as the question is.
    pub anchor: String,
    pub execution: Id,
    pub plan: String,
    pub kind: &'static str,
    pub look: Look,
    pub title: String,
    pub facts: Vec<(&'static str, String)>,
    /// What a tool, an error or a probe said. Not to be trusted.
    pub words: String,
    /// The exact call.
    pub call: Option<String>,
    pub is_cut: bool,
    /// The call beside that of the execution before, where they differ.
    pub difference: Vec<Line>,
    pub expires: Option<Moment>,
    /// What names the question exactly.
    pub hidden: Vec<(&'static str, String)>,
    pub fields: Vec<Field>,
    /// How the answer is known, or why it is given.
    pub needs_evidence: bool,
    pub reason_is_required: bool,
    pub buttons: Vec<Button>,
    /// It can also be done by hand, with evidence.
    pub by_hand: bool,
    /// Why this visitor cannot answer.
    pub refusal: Option<String>,
    pub command: String,
}

#[derive(Clone, Debug)]
pub struct Button {
    pub say: &'static str,
    pub label: &'static str,
    pub class: &'static str,
}

impl Card {
    /// Every question of an execution.
    pub fn all(view: &View, shell: &Shell) -> Vec<Card> {
        view.questions.iter().map(|ask| Card::of(view, ask, shell)).collect()
    }

    pub fn of(view: &View, ask: &Ask, shell: &Shell) -> Card {
        let needed = scope(ask);
        let refusal = (!shell.guest.may(needed))
            .then(|| format!("Answering this needs the scope {needed}, which you do not have."));
        let blank = Card {
            anchor: String::new(),
            execution: Id::execution(view.execution.as_str()),
            plan: view.plan.clone(),
            kind: "",
            look: Look::of("waiting"),
            title: String::new(),
            facts: Vec::new(),
            words: String::new(),
            call: None,
            is_cut: false,
            difference: Vec::new(),
            expires: None,
            hidden: Vec::new(),
            fields: Vec::new(),
            needs_evidence: false,
            reason_is_required: true,
            buttons: Vec::new(),
            by_hand: false,
            refusal,
            command: words::how(&view.execution, ask),
        };
        let mut card = filled(blank, ask, shell);
        card.look = Look::like(if card.kind == "doubt" { "in_doubt" } else { "waiting" }, card.kind);
        card.words = words::cut(&card.words, WORDS_CHARS_MAX);
        let about: Vec<&str> = card.hidden.iter().map(|(_, value)| value.as_str()).collect();
        let anchor = format!("ask {} {} {}", view.execution, card.kind, about.join(" "));
        card.anchor = anchor.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        card
    }
}

fn filled(blank: Card, ask: &Ask, shell: &Shell) -> Card {
    let button = |say, label, class| Button { say, label, class };
    match ask {
        Ask::Approval { part, call, tool, parameters, expires_at } => {
            let shown = parameters.as_ref().map(|value| pretty(value));
            let (json, is_cut) = shown.unwrap_or_else(|| ("\"erased\"".to_owned(), false));
            Card {
                kind: "approval",
                title: format!("Approve {part}?"),
                facts: vec![("tool", tool.to_string()), ("step", part.to_string()), ("call", call.short())],
                call: Some(json),
                is_cut,
                expires: Some(Moment::of(*expires_at, shell.now)),
                hidden: vec![("part", part.to_string()), ("call", call.to_string())],
                buttons: vec![
                    button("approve", "Approve this call", "main"),
                    button("reject", "Reject", "risky"),
                ],
                ..blank
            }
        }
        Ask::Doubt { part, side, attempt, reason } => Card {
            kind: "doubt",
            title: format!("Did {part} happen?"),
            facts: vec![("step", part.to_string()), ("attempt", attempt_of(*side, *attempt))],
            words: reason.clone(),
            hidden: vec![("part", part.to_string())],
            needs_evidence: true,
            reason_is_required: false,
            buttons: vec![
                button("happened", "It happened", "main"),
                button("not_happened", "It did not happen", ""),
            ],
            ..blank
        },
        Ask::Failure { step, failures, answers } => Card {
            kind: "failure",
            title: format!("{step} failed. What now?"),
            facts: vec![("step", step.to_string())],
            words: failed(failures),
            hidden: vec![("part", step.to_string())],
            buttons: buttons(answers),
            by_hand: answers.contains(&Answer::Resolve),
            ..blank
        },
        Ask::Compensation { part, failure, answers } => Card {
            kind: "compensation",
            title: format!("Undoing {part} failed. What now?"),
            facts: vec![("step", part.to_string())],
            words: failure.to_string(),
            hidden: vec![("part", part.to_string())],
            buttons: buttons(answers),
            by_hand: answers.contains(&Answer::Resolve),
            ..blank
        },
        Ask::Limit { limit, answers } => Card {
            kind: "limit",
            title: format!("The limit of {} is reached. What now?", format!("{limit:?}").to_lowercase()),
            buttons: buttons(answers),
            ..blank
        },
        Ask::Drift { tool, pinned, found } => Card {
            kind: "drift",
            title: format!("{tool} is not the tool the plan was checked with"),
            facts: vec![("checked with", pinned.short()), ("is now", found.short())],
            hidden: vec![("tool", tool.to_string()), ("definition", found.to_string())],
            buttons: vec![
                button("accept_tool", "Accept the tool as it is now", "main"),
                button("cancel", "Cancel the execution", "risky"),
            ],
            ..blank
        },
        Ask::Tool { part, message, schema, attempt, .. } => Card {
            kind: "tool",
            title: format!("The tool of {part} asks"),
            facts: vec![("step", part.to_string()), ("attempt", attempt.to_string())],
            words: message.clone(),
            hidden: vec![("part", part.to_string())],
            fields: schema.as_ref().map(|schema| field::of(schema)).unwrap_or_default(),
            reason_is_required: false,
            buttons: vec![button("reply", "Answer", "main"), button("decline", "Decline", "")],
            ..blank
        },
    }
}

fn attempt_of(side: Side, attempt: u32) -> String {
    match side {
        Side::Do => attempt.to_string(),
        Side::Fallback => format!("{attempt}, of the fallback"),
        Side::Undo => format!("{attempt}, of the compensation"),
        Side::Probe => format!("{attempt}, of the probe"),
    }
}

/// Whose word it takes.
fn scope(ask: &Ask) -> Scope {
    match ask {
        Ask::Approval { .. } | Ask::Doubt { .. } | Ask::Drift { .. } => Scope::Approve,
        Ask::Tool { person_only: true, .. } => Scope::Approve,
        Ask::Tool { .. } | Ask::Failure { .. } | Ask::Compensation { .. } | Ask::Limit { .. } => {
            Scope::Operate
        }
    }
}

fn buttons(answers: &[Answer]) -> Vec<Button> {
    let button = |answer: &Answer| {
        let (say, label, class) = match answer {
            Answer::Retry => ("retry", "Try again", "main"),
            Answer::Skip => ("skip", "Leave it out", ""),
            Answer::Continue => ("continue", "Go on", ""),
            Answer::Stop => ("stop", "Stop here", ""),
            Answer::Compensate => ("compensate", "Stop and undo", "risky"),
            Answer::Replan => ("replan", "Change the plan", ""),
            // Has a form of its own.
            Answer::Resolve => return None,
        };
        Some(Button { say, label, class })
    };
    answers.iter().filter_map(button).collect()
}

fn failed(failures: &[(PartId, Failure)]) -> String {
    let told = failures.iter().take(FAILURES_MAX).map(|(part, failure)| format!("{part}: {failure}"));
    let mut told: Vec<String> = told.collect();
    if failures.len() > FAILURES_MAX {
        told.push(format!("and {} more", failures.len() - FAILURES_MAX));
    }
    told.join("\n")
}

/// A value as people read it, and whether it was cut.
pub(super) fn pretty(value: &Value) -> (String, bool) {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    if text.len() <= JSON_BYTES_MAX {
        return (text, false);
    }
    let end = (0..=JSON_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
    (text, true)
}
