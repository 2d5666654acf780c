//! An execution or a plan in words, made of facts and of nothing else.
//!
//! A [`Fact`] is one sentence the journal or the plan bears out. Which facts are told, in which order and under which
//! headings is the business of `write`; whatever is left out is counted and can be read in full elsewhere.

mod event;
pub mod execution;
mod focus;
mod form;
mod moment;
pub mod plan;

use focus::Focus;
use rutter_core::journal::event::Record;
use rutter_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One sentence, without its full stop.
#[derive(Clone, Debug)]
pub struct Fact {
    pub kind: Kind,
    pub at: Option<Timestamp>,
    pub text: String,
}

impl Fact {
    fn new(kind: Kind, at: impl Into<Option<Timestamp>>, text: impl Into<String>) -> Fact {
        // Whatever somebody put into it, a fact is one line.
        let text = text.into().split_whitespace().collect::<Vec<_>>().join(" ");
        Fact { kind, at: at.into(), text }
    }
}

/// What a fact is about, the most pressing first: when there is no room for all, the first are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// How it stands or ended.
    Outcome,
    /// What waits for somebody.
    Question,
    /// An effect that is still there although the execution did not complete.
    Remains,
    Doubt,
    Failure,
    Compensation,
    Deviation,
    Approval,
    Decision,
    Action,
    /// Pausing, cancelling, replanning, handing over.
    Control,
    /// Time, calls, cost.
    Spent,
    Step,
    /// What the plan says of itself.
    Plan,
}

impl Kind {
    pub fn heading(self) -> &'static str {
        match self {
            Kind::Outcome => "Outcome",
            Kind::Question => "Open questions",
            Kind::Remains => "What remains",
            Kind::Doubt => "Doubts",
            Kind::Failure => "Failures",
            Kind::Compensation => "Undoing",
            Kind::Deviation => "Differences from the plan",
            Kind::Approval => "Approvals",
            Kind::Decision => "Decisions",
            Kind::Action => "Actions",
            Kind::Control => "Steering",
            Kind::Spent => "Time and cost",
            Kind::Step => "Steps",
            Kind::Plan => "Plan",
        }
    }
}

// How it is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    #[default]
    Summary,
    Report,
    Itinerary,
    Analysis,
    Structured,
    BulletPoints,
}

// How much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    Brief,
    #[default]
    Detailed,
    Comprehensive,
}

impl Length {
    pub fn chars_max(self) -> usize {
        match self {
            Length::Brief => 600,
            Length::Detailed => 2_500,
            Length::Comprehensive => 7_000,
        }
    }

    /// How much of one thing somebody or some tool said is quoted.
    fn quoted_chars_max(self) -> usize {
        match self {
            Length::Brief => 60,
            Length::Detailed => 120,
            Length::Comprehensive => 240,
        }
    }
}

/// Everything there is to tell.
#[derive(Clone, Debug)]
pub struct Account {
    /// The whole story in one line.
    pub headline: String,
    pub facts: Vec<Fact>,
    /// What can be done about it.
    pub next: String,
    /// Where everything stands.
    pub uri: String,
}

impl Account {
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for fact in &self.facts {
            *counts.entry(word(fact.kind)).or_default() += 1;
        }
        counts
    }
}

/// The text, never longer than its length allows.
pub fn write(account: &Account, format: Format, length: Length, focus: Option<&str>) -> String {
    let focus = Focus::read(focus.unwrap_or_default());
    let sections = form::sections(account, format, &focus);
    form::fit(sections, length.chars_max(), &account.uri)
}

/// What one entry says, in one line; `None` for one that only moves things on.
pub(crate) fn line(record: &Record) -> Option<String> {
    event::fact(record, Length::Detailed).map(|fact| fact.text)
}

fn word(kind: Kind) -> String {
    serde_json::to_value(kind).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Words of somebody else's: on one line, in quotes, cut.
fn quote(text: &str, length: Length) -> String {
    let max = length.quoted_chars_max();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut quoted = String::from("\"");
    quoted.extend(line.chars().take(max).flat_map(|c| match c {
        '\'' => c.to_string().chars().collect::<Vec<char>>(),
        _ => c.escape_debug().collect(),
    }));
    if line.chars().nth(max).is_some() {
        quoted.push('…');
    }
    quoted.push('"');
    quoted
}

/// `: "because"`, or nothing where no reason was given.
fn because(reason: &str, length: Length) -> String {
    if reason.trim().is_empty() { String::new() } else { format!(": {}", quote(reason, length)) }
}
