//! Summaries of executions and plans, made of facts only.
//!
//! A [`SummaryFact`] is one sentence that the journal or the plan supports. `write` selects, orders and groups the
//! facts; it counts what it leaves out and says where to read it.

mod event;
pub mod execution;
mod focus;
mod form;
pub mod plan;

use focus::SummaryFocus;
use rutter_core::text::{one_line, quoted, spelled};
use rutter_core::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One sentence, without its full stop.
#[derive(Clone, Debug)]
pub struct SummaryFact {
    pub kind: FactKind,
    pub at: Option<Timestamp>,
    pub text: String,
}

impl SummaryFact {
    fn new(kind: FactKind, at: impl Into<Option<Timestamp>>, text: impl Into<String>) -> SummaryFact {
        // A fact is one line, whatever text it contains.
        SummaryFact { kind, at: at.into(), text: one_line(&text.into()) }
    }
}

/// The kinds of facts, the most important first: if not all fit, these remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    /// The state or the outcome.
    Outcome,
    /// An open question.
    Question,
    /// An effect that remains although the execution did not complete.
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
    /// The plan's own description.
    Plan,
}

impl FactKind {
    pub fn heading(self) -> &'static str {
        match self {
            FactKind::Outcome => "Outcome",
            FactKind::Question => "Open questions",
            FactKind::Remains => "What remains",
            FactKind::Doubt => "Doubts",
            FactKind::Failure => "Failures",
            FactKind::Compensation => "Undoing",
            FactKind::Deviation => "Differences from the plan",
            FactKind::Approval => "Approvals",
            FactKind::Decision => "Decisions",
            FactKind::Action => "Actions",
            FactKind::Control => "Steering",
            FactKind::Spent => "Time and cost",
            FactKind::Step => "Steps",
            FactKind::Plan => "Plan",
        }
    }
}

// The layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummaryFormat {
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
pub enum SummaryLength {
    Brief,
    #[default]
    Detailed,
    Comprehensive,
}

impl SummaryLength {
    pub fn chars_max(self) -> usize {
        match self {
            SummaryLength::Brief => 600,
            SummaryLength::Detailed => 2_500,
            SummaryLength::Comprehensive => 7_000,
        }
    }

    /// How much of one text of a person or a tool is quoted.
    fn quoted_chars_max(self) -> usize {
        match self {
            SummaryLength::Brief => 60,
            SummaryLength::Detailed => 120,
            SummaryLength::Comprehensive => 240,
        }
    }
}

/// All facts of a summary.
#[derive(Clone, Debug)]
pub struct SummaryContent {
    /// The summary in one line.
    pub headline: String,
    pub facts: Vec<SummaryFact>,
    /// What to do next.
    pub next: String,
    /// Where to read everything.
    pub uri: String,
}

impl SummaryContent {
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for fact in &self.facts {
            *counts.entry(spelled(&fact.kind)).or_default() += 1;
        }
        counts
    }
}

/// The text, within the limit of its length.
pub fn write(account: &SummaryContent, format: SummaryFormat, length: SummaryLength, focus: Option<&str>) -> String {
    let focus = SummaryFocus::read(focus.unwrap_or_default());
    let sections = form::sections(account, format, &focus);
    form::fit(sections, length.chars_max(), &account.uri)
}

/// Text from a tool, an agent or a person: on one line, in quotes, cut.
fn quote(text: &str, length: SummaryLength) -> String {
    quoted(text, length.quoted_chars_max())
}

/// `: "because"`, or nothing where no reason was given.
fn because(reason: &str, length: SummaryLength) -> String {
    if reason.trim().is_empty() { String::new() } else { format!(": {}", quote(reason, length)) }
}
