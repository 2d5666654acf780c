//! A question of an execution with the form that answers it, the same on every page.

mod answer;
mod difference;
pub(super) mod field;

pub(super) use answer::answer;
pub use difference::{DiffLine, lines};
pub use field::FormField;

use super::format::{IdentifierLink, StatusBadge, TimeLabel};
use super::shell::PageShell;
use rutter_app::question;
use rutter_app::reader::AnswerReader;
use rutter_app::rights::scope_to_answer;
use rutter_app::shown_call::shown_call;
use rutter_app::verb::Verb;

use rutter_core::execution::call_words::name_of_call;
use rutter_core::execution::view::{ExecutionSnapshot, PendingQuestion, SurpriseKind};
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{CallSide, OverdueTimer, QuestionAnswer};
use rutter_core::text::{cut, cut_bytes, quoted};
use rutter_core::time::calendar::utc_seconds;
use rutter_core::tool::ToolFailure;
use serde_json::Value;

/// A longer call is truncated.
const JSON_BYTES_MAX: usize = 64 << 10;
/// The longest message of a tool or an error.
const WORDS_CHARS_MAX: usize = 4_000;
const FAILURES_MAX: usize = 10;
/// Failed items that a form can be about.
const PARTS_MAX: usize = 100;
/// Timers that came due before a hold, listed on its card.
const DUE_MAX: usize = 20;
/// The field of a form that has the verb.
pub(super) const SAY: &str = "say";

/// One question. `question.html` renders it as `card`, next to a `shell`.
#[derive(Clone, Debug)]
pub struct QuestionCard {
    /// A stable id of the question.
    pub anchor: String,
    pub execution: IdentifierLink,
    pub plan: String,
    pub kind: &'static str,
    pub look: StatusBadge,
    pub title: String,
    pub facts: Vec<(&'static str, String)>,
    /// The message of a tool, an error or a probe. Untrusted.
    pub words: String,
    /// The exact call.
    pub call: Option<String>,
    pub is_cut: bool,
    /// The diff to the call of the previous execution, if any.
    pub difference: Vec<DiffLine>,
    /// Of a new plan: everything that it changes.
    pub changes: Vec<DiffLine>,
    pub expires: Option<TimeLabel>,
    /// Hidden fields that identify the question.
    pub hidden: Vec<(&'static str, String)>,
    /// The step and its failed items, one of which the answer is about; empty if there is no choice.
    pub parts: Vec<String>,
    /// What came due during a hold, to be chosen from: names, and the words for them.
    pub timers: Vec<(String, String)>,
    pub fields: Vec<FormField>,
    /// Whether evidence is required instead of a reason.
    pub needs_evidence: bool,
    pub reason_is_required: bool,
    pub buttons: Vec<AnswerButton>,
    /// It can also be resolved by hand, with evidence.
    pub by_hand: bool,
    /// Why this user cannot answer.
    pub refusal: Option<String>,
    /// For people: agents with a session are not shown it.
    pub command: Option<String>,
}

/// A button sends its verb, and for some a value that tells two buttons of one verb apart.
#[derive(Clone, Debug)]
pub struct AnswerButton {
    /// The field that the button sends: `say` with a verb, or another field beside the form's verb.
    pub name: &'static str,
    pub value: &'static str,
    pub label: &'static str,
    pub class: &'static str,
    /// This button submits the form without a reason and without values.
    pub skips_reason: bool,
}

impl AnswerButton {
    fn of(verb: Verb) -> AnswerButton {
        let class = match verb {
            Verb::Retry | Verb::Approve | Verb::AcceptTool => "main",
            Verb::Undo | Verb::Reject | Verb::Cancel => "risky",
            _ => "",
        };
        let row = verb.row();
        AnswerButton { name: SAY, value: row.name, label: row.label, class, skips_reason: !row.needs_reason }
    }
}

impl QuestionCard {
    /// All questions of an execution.
    pub fn all(view: &ExecutionSnapshot, shell: &PageShell) -> Vec<QuestionCard> {
        view.questions.iter().map(|ask| QuestionCard::of(view, ask, shell)).collect()
    }

    pub fn of(view: &ExecutionSnapshot, ask: &PendingQuestion, shell: &PageShell) -> QuestionCard {
        let needed = scope_to_answer(ask);
        let refusal = (!shell.principal.may(needed))
            .then(|| format!("Answering this needs the scope {needed}, which you do not have."));
        let reader = AnswerReader::of(&shell.principal, None);
        let blank = QuestionCard {
            anchor: String::new(),
            execution: IdentifierLink::execution(view.execution.as_str()),
            plan: view.plan.clone(),
            kind: "",
            look: StatusBadge::of("waiting"),
            title: String::new(),
            facts: Vec::new(),
            words: String::new(),
            call: None,
            is_cut: false,
            difference: Vec::new(),
            changes: Vec::new(),
            expires: None,
            hidden: Vec::new(),
            parts: Vec::new(),
            timers: Vec::new(),
            fields: Vec::new(),
            needs_evidence: false,
            reason_is_required: true,
            buttons: Vec::new(),
            by_hand: false,
            refusal,
            command: shell.principal.is_person().then(|| question::how(&reader, &view.execution, ask)),
        };
        let mut card = filled(blank, ask, shell);
        card.look = StatusBadge::like(if card.kind == "doubt" { "in_doubt" } else { "waiting" }, card.kind);
        card.words = cut(&card.words, WORDS_CHARS_MAX);
        let about: Vec<&str> = card.hidden.iter().map(|(_, value)| value.as_str()).collect();
        let anchor = format!("ask {} {} {}", view.execution, card.kind, about.join(" "));
        card.anchor = anchor.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        card
    }
}

fn filled(blank: QuestionCard, ask: &PendingQuestion, shell: &PageShell) -> QuestionCard {
    let button = |name, value, label, class| AnswerButton { name, value, label, class, skips_reason: false };
    match ask {
        PendingQuestion::Replan { plan, revision, weakens, changes, reason, proof: _ } => QuestionCard {
            kind: "replan",
            title: format!("Approve revision {revision} of the plan?"),
            facts: weakens.iter().map(|line| ("weakens", line.clone())).collect(),
            changes: changes.iter().map(|line| DiffLine::of_change(line)).collect(),
            words: format!("The agent's reason: {}", quoted(reason, WORDS_CHARS_MAX / 4)),
            hidden: vec![("call", plan.to_string())],
            buttons: vec![
                AnswerButton { label: "Approve this plan", ..AnswerButton::of(Verb::Approve) },
                AnswerButton::of(Verb::Reject),
            ],
            ..blank
        },
        PendingQuestion::Approval { part, call, tool, parameters, expires_at, sends, rule, by, denied, .. } => {
            let pretty_parameters = parameters.as_ref().map(|value| pretty_call(value));
            let sends = Some(*sends).filter(|sends| *sends > 1);
            let (json, is_cut) = pretty_parameters.unwrap_or_else(|| ("\"erased\"".to_owned(), false));
            QuestionCard {
                kind: "approval",
                title: format!("Approve {part}?"),
                facts: [("tool", tool.to_string()), ("step", part.to_string()), ("call", call.short())]
                    .into_iter()
                    .chain(rule.iter().map(|rule| ("rule", rule.clone())))
                    .chain(by.iter().map(|name| ("approved by", name.as_str().to_owned())))
                    .chain(sends.map(|sends| ("may be sent", format!("up to {sends} times, retries included"))))
                    .chain(denied.iter().map(|denied| ("before", denied.words())))
                    .collect(),
                call: Some(json),
                is_cut,
                expires: Some(TimeLabel::of(*expires_at, shell.now)),
                hidden: vec![("part", part.to_string()), ("call", call.to_string())],
                buttons: vec![AnswerButton::of(Verb::Approve), AnswerButton::of(Verb::Reject)],
                ..blank
            }
        }
        PendingQuestion::Doubt { part, side, attempt, tool, parameters, key, sent_at, reason, failure } => {
            QuestionCard {
                kind: "doubt",
                title: format!("Did {} take effect?", name_of_call(part, *side)),
                facts: [("step", part.to_string()), ("attempt", attempt_of(*side, *attempt))]
                    .into_iter()
                    .chain(tool.as_ref().map(|tool| ("tool", tool.to_string())))
                    .chain(sent_at.map(|sent_at| ("sent", utc_seconds(sent_at))))
                    .chain(key.map(|key| ("key", key.to_string())))
                    .chain(failure.as_ref().map(|failure| ("failure", failure.to_string())))
                    .collect(),
                call: parameters.as_ref().map(|value| pretty_call(value).0),
                is_cut: parameters.as_ref().is_some_and(|value| pretty_call(value).1),
                words: reason.clone(),
                hidden: vec![(SAY, Verb::Resolve.to_string()), ("part", part.to_string())],
                needs_evidence: true,
                reason_is_required: false,
                buttons: vec![
                    button("happened", "true", "It took effect", "main"),
                    button("happened", "false", "It had no effect", ""),
                ],
                ..blank
            }
        }
        PendingQuestion::Failure { step, failures, answers, .. } => QuestionCard {
            kind: "failure",
            title: format!("{step} failed. What now?"),
            facts: vec![("step", step.to_string())],
            words: failed(failures),
            hidden: if has_items(failures) { Vec::new() } else { vec![("part", step.to_string())] },
            parts: parts(step, failures),
            buttons: buttons(answers),
            by_hand: answers.contains(&QuestionAnswer::Resolve),
            ..blank
        },
        PendingQuestion::Compensation { part, failure, answers } => QuestionCard {
            kind: "compensation",
            title: format!("Undoing {part} failed. What now?"),
            facts: vec![("step", part.to_string())],
            words: failure.to_string(),
            hidden: vec![("part", part.to_string())],
            buttons: buttons(answers),
            by_hand: answers.contains(&QuestionAnswer::Resolve),
            ..blank
        },
        PendingQuestion::SecondEffect { part, surprise, attempts, answers, .. } => QuestionCard {
            kind: "second effect",
            title: match surprise {
                SurpriseKind::Second => format!("{part} took effect more than once. Let that stand?"),
                SurpriseKind::Only => format!("{part} took effect although it had failed. Let that stand?"),
                SurpriseKind::OtherResult => {
                    format!("The tool of {part} answered otherwise. Keep what was given by hand?")
                }
            },
            facts: vec![("step", part.to_string()), ("late attempts", format!("{attempts:?}"))],
            words: ask.surprise_words().unwrap_or_default(),
            hidden: vec![("part", part.to_string())],
            buttons: buttons(answers),
            ..blank
        },
        PendingQuestion::Limit { limit, answers } => QuestionCard {
            kind: "limit",
            title: format!("The limit of {} is reached. What now?", format!("{limit:?}").to_lowercase()),
            buttons: buttons(answers),
            ..blank
        },
        PendingQuestion::Hold { reason, since, due, more } => {
            let timer = |timer: &OverdueTimer| {
                let of = timer.part.as_ref().map(|part| format!(" of {part}")).unwrap_or_default();
                ("came due", format!("{}{of}, {}", timer.what.words(), utc_seconds(timer.at)))
            };
            let left = due.len().saturating_sub(DUE_MAX) as u64 + u64::from(*more);
            let rest = (left > 0).then(|| ("came due", format!("{left} more")));
            let facts = [("time stands still since", utc_seconds(*since))].into_iter();
            QuestionCard {
                kind: "hold",
                title: "Held: look at what came due, then resume".to_owned(),
                facts: facts.chain(due.iter().take(DUE_MAX).map(timer)).chain(rest).collect(),
                timers: due.iter().take(DUE_MAX).map(|timer| (timer.name(), timer.what.words().to_owned())).collect(),
                words: reason.clone(),
                hidden: vec![(SAY, Verb::Resume.to_string())],
                reason_is_required: false,
                buttons: vec![
                    AnswerButton {
                        skips_reason: true,
                        ..button("expire", "false", "Resume; this time does not count", "main")
                    },
                    AnswerButton {
                        skips_reason: true,
                        ..button("expire", "true", "Resume; what came due happens now", "risky")
                    },
                    AnswerButton {
                        skips_reason: true,
                        ..button("expire", "chosen", "Resume; only what is checked happens now", "")
                    },
                ],
                ..blank
            }
        }
        PendingQuestion::Silence { since, answers } => {
            let mut buttons = buttons(answers);
            buttons.splice(1..1, [AnswerButton::of(Verb::HandBack), AnswerButton::of(Verb::TakeOver)]);
            QuestionCard {
                kind: "silence",
                title: "The agent is silent. What now?".to_owned(),
                facts: vec![("last sign of life", utc_seconds(*since))],
                buttons,
                ..blank
            }
        }
        PendingQuestion::Drift { tool, pinned, found } => QuestionCard {
            kind: "drift",
            title: format!("{tool} changed since the plan was checked"),
            facts: vec![("checked definition", pinned.short()), ("current definition", found.short())],
            hidden: vec![("tool", tool.to_string()), ("definition", found.to_string())],
            buttons: vec![AnswerButton::of(Verb::AcceptTool), AnswerButton::of(Verb::Cancel)],
            ..blank
        },
        PendingQuestion::Tool { part, message, schema, attempt, .. } => QuestionCard {
            kind: "tool",
            title: format!("The tool of {part} asks for input"),
            facts: vec![("step", part.to_string()), ("attempt", attempt.to_string())],
            words: message.clone(),
            hidden: vec![(SAY, Verb::Reply.to_string()), ("part", part.to_string())],
            fields: schema.as_ref().map(|schema| field::of(schema)).unwrap_or_default(),
            reason_is_required: false,
            buttons: vec![
                button("decline", "false", "Answer", "main"),
                // Declining needs no values.
                AnswerButton { skips_reason: true, ..button("decline", "true", "Decline", "") },
            ],
            ..blank
        },
    }
}

fn attempt_of(side: CallSide, attempt: u32) -> String {
    match side {
        CallSide::Do => attempt.to_string(),
        CallSide::Fallback => format!("{attempt} of the fallback"),
        CallSide::Undo => format!("{attempt} of the compensation"),
        CallSide::Probe => format!("{attempt} of the probe"),
    }
}

fn buttons(answers: &[QuestionAnswer]) -> Vec<AnswerButton> {
    // Resolving by hand has its own form.
    let answers = answers.iter().filter(|answer| **answer != QuestionAnswer::Resolve);
    answers.map(|answer| AnswerButton::of(Verb::answering(*answer))).collect()
}

/// Whether items of a fan-out failed, about which one can decide one by one.
fn has_items(failures: &[(PartId, ToolFailure)]) -> bool {
    failures.iter().any(|(part, _)| part.item.is_some())
}

fn parts(step: &StepId, failures: &[(PartId, ToolFailure)]) -> Vec<String> {
    let items = failures.iter().take(PARTS_MAX).map(|(part, _)| part.to_string());
    let parts = std::iter::once(step.to_string()).chain(items);
    parts.filter(|_| has_items(failures)).collect()
}

fn failed(failures: &[(PartId, ToolFailure)]) -> String {
    let answer = failures.iter().take(FAILURES_MAX).map(|(part, failure)| format!("{part}: {failure}"));
    let mut lines: Vec<String> = answer.collect();
    if failures.len() > FAILURES_MAX {
        lines.push(format!("and {} more", failures.len() - FAILURES_MAX));
    }
    lines.join("\n")
}

/// The formatted parameters of a call, and whether some were cut: each by itself, so that all are seen.
fn pretty_call(parameters: &Value) -> (String, bool) {
    match shown_call(parameters, JSON_BYTES_MAX / 4) {
        Some((shown, true)) if pretty(parameters).1 => (pretty(&shown).0, true),
        _ => pretty(parameters),
    }
}

/// Formatted JSON, and whether it was truncated.
pub(super) fn pretty(value: &Value) -> (String, bool) {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    if text.len() <= JSON_BYTES_MAX {
        return (text, false);
    }
    text.truncate(cut_bytes(&text, JSON_BYTES_MAX).len());
    (text, true)
}
