//! The filter of the list of executions, parsed from the URL.

use crate::format::{StatusBadge, bound, query};
use crate::page::PageRequest;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::PlanId;
use rutter_core::port::query::{ExecutionFilter, TimeRange};
use rutter_core::time::Timestamp;

/// The filter as typed.
#[derive(Clone, Debug, Default)]
pub(super) struct ExecutionFilterForm {
    statuses: Vec<&'static str>,
    pub(super) plan: String,
    pub(super) tag: String,
    pub(super) text: String,
    pub(super) from: String,
    pub(super) until: String,
    pub(super) asking: bool,
}

/// A link to another filter.
pub(super) struct FilterChoice {
    pub(super) href: String,
    pub(super) value: &'static str,
    pub(super) label: &'static str,
    pub(super) sign: &'static str,
    pub(super) is_on: bool,
}

const UNDER_WAY: &[&str] = &["pending", "running", "replanning", "compensating"];
const FAILED: &[&str] = &["failed", "partial"];
const NAMED: &[(&str, &str, &[&str])] = &[
    ("All", "", &[]),
    ("Running", "▸", UNDER_WAY),
    ("Paused", "‖", &["paused"]),
    ("Failed", "✗", FAILED),
    ("Completed", "✓", &["completed"]),
    ("Cancelled", "⊘", &["cancelled", "compensated"]),
];

impl ExecutionFilterForm {
    pub(super) fn read(request: &PageRequest) -> ExecutionFilterForm {
        let asked = |name: &str| request.query_value(name).unwrap_or_default().to_owned();
        let statuses = request.query_values("status").filter_map(ExecutionStatus::parse);
        ExecutionFilterForm {
            statuses: statuses.map(ExecutionStatus::as_str).collect(),
            plan: asked("plan"),
            tag: asked("tag"),
            text: asked("text"),
            from: asked("from"),
            until: asked("until"),
            asking: request.query_value("asking").is_some(),
        }
    }

    pub(super) fn wanted(&self, now: Timestamp) -> Result<ExecutionFilter, String> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let time = |text: &str| bound(text, now);
        Ok(ExecutionFilter {
            plan: some(&self.plan).map(|plan| PlanId::new(&plan)),
            tag: some(&self.tag),
            statuses: self.statuses.iter().filter_map(|status| ExecutionStatus::parse(status)).collect(),
            asking: self.asking,
            opened: TimeRange { from: time(&self.from)?, until: time(&self.until)? },
            text: some(&self.text),
        })
    }

    pub(super) fn is_set(&self) -> bool {
        !self.pairs().is_empty()
    }

    /// The filter as query parameters.
    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut pairs: Vec<_> = self.statuses.iter().map(|status| pair("status", status)).collect();
        pairs.extend([
            pair("plan", &self.plan),
            pair("tag", &self.tag),
            pair("text", &self.text),
            pair("from", &self.from),
            pair("until", &self.until),
        ]);
        if self.asking {
            pairs.push(pair("asking", "yes"));
        }
        pairs.retain(|(_, value)| !value.is_empty());
        pairs
    }

    /// Links to common lists, with the other filters unchanged.
    pub(super) fn chips(&self) -> Vec<FilterChoice> {
        let choice = |(label, sign, statuses): &(&'static str, &'static str, &[&'static str])| {
            let other = ExecutionFilterForm { statuses: statuses.to_vec(), asking: false, ..self.clone() };
            let is_on = self.statuses == *statuses && !self.asking;
            FilterChoice { href: other.first(), value: "", label, sign, is_on }
        };
        let mut chips: Vec<FilterChoice> = NAMED.iter().map(choice).collect();
        let asking = ExecutionFilterForm { statuses: Vec::new(), asking: true, ..self.clone() };
        let (label, sign) = ("Waiting for a person", "?");
        chips.insert(2, FilterChoice { href: asking.first(), value: "", label, sign, is_on: self.asking });
        chips
    }

    /// Every status, for the form.
    pub(super) fn statuses(&self) -> Vec<FilterChoice> {
        let choice = |status: ExecutionStatus| {
            let look = StatusBadge::of(status.as_str());
            let is_on = self.statuses.contains(&status.as_str());
            FilterChoice { href: String::new(), value: status.as_str(), label: look.word, sign: look.sign, is_on }
        };
        ExecutionStatus::ALL.into_iter().map(choice).collect()
    }

    /// The URL of the first page.
    pub(super) fn first(&self) -> String {
        format!("/executions{}", query(&self.pairs()))
    }
}
