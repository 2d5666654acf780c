//! One journal entry as a fact. Entries that only repeat the state of the steps become none.

use super::{FactKind, SummaryFact, SummaryLength, because};
use rutter_core::journal::describe::EventTopic;
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::label::KINDS;
use rutter_core::tool::ToolFailure;

/// The kinds of events that never become a fact; they are not read.
const SILENT: &[&str] = &[
    "execution_opened",
    "execution_started",
    "fan_out_opened",
    "attempt_started",
    "attempt_accepted",
    "context_saved",
    "deviation_found",
    "plan_saved",
    "payloads_erased",
    "executions_removed",
    "ledger_restored",
    "setting_changed",
    "act_refused",
];

/// The kinds of events that may become a fact.
pub fn kinds() -> Vec<String> {
    KINDS.iter().filter(|kind| !SILENT.contains(kind)).map(|kind| (*kind).to_owned()).collect()
}

pub fn fact(record: &EventRecord, length: SummaryLength) -> Option<SummaryFact> {
    let description = record.describe();
    let kind = match description.topic {
        EventTopic::Approval => FactKind::Approval,
        EventTopic::Doubt => FactKind::Doubt,
        EventTopic::Failure => FactKind::Failure,
        EventTopic::Compensation => FactKind::Compensation,
        EventTopic::Decision => FactKind::Decision,
        EventTopic::Action => FactKind::Action,
        EventTopic::Control => FactKind::Control,
        EventTopic::Outcome => FactKind::Outcome,
        // The view lists deviations, including those of earlier revisions.
        EventTopic::Progress | EventTopic::Deviation | EventTopic::Ledger => return None,
    };
    Some(SummaryFact::new(kind, record.at, description.sentence_within(length.quoted_chars_max())))
}

/// The category is Rutter's, the message is the tool's.
pub fn failure_text(failure: &ToolFailure, length: SummaryLength) -> String {
    format!("{}{}", failure.category.as_str(), because(&failure.message, length))
}
