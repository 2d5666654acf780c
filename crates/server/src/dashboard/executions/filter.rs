//! Which executions an address asks for, and the addresses that ask for others.

use crate::dashboard::format::{Look, bound, query};
use crate::dashboard::page::Visitor;
use rutter_core::execution::view::Status;
use rutter_core::id::PlanId;
use rutter_core::port::query::{Between, ExecutionFilter};
use rutter_core::time::Timestamp;

/// As it was typed.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    statuses: Vec<&'static str>,
    pub(super) plan: String,
    pub(super) tag: String,
    pub(super) text: String,
    pub(super) from: String,
    pub(super) until: String,
    pub(super) asking: bool,
}

/// Something one can click to ask for something else.
pub(super) struct Choice {
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
    ("Under way", "▸", UNDER_WAY),
    ("Paused", "‖", &["paused"]),
    ("Failed", "✗", FAILED),
    ("Completed", "✓", &["completed"]),
    ("Cancelled", "⊘", &["cancelled", "compensated"]),
];

impl Filter {
    pub(super) fn read(visitor: &Visitor) -> Filter {
        let asked = |name: &str| visitor.asked(name).unwrap_or_default().to_owned();
        let statuses = visitor.all_asked("status").filter_map(Status::parse);
        Filter {
            statuses: statuses.map(Status::as_str).collect(),
            plan: asked("plan"),
            tag: asked("tag"),
            text: asked("text"),
            from: asked("from"),
            until: asked("until"),
            asking: visitor.asked("asking").is_some(),
        }
    }

    pub(super) fn wanted(&self, now: Timestamp) -> Result<ExecutionFilter, String> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let time = |text: &str| bound(text, now);
        Ok(ExecutionFilter {
            plan: some(&self.plan).map(|plan| PlanId::new(&plan)),
            tag: some(&self.tag),
            statuses: self.statuses.iter().filter_map(|status| Status::parse(status)).collect(),
            asking: self.asking,
            opened: Between { from: time(&self.from)?, until: time(&self.until)? },
            text: some(&self.text),
        })
    }

    pub(super) fn is_set(&self) -> bool {
        !self.pairs().is_empty()
    }

    /// As it stands in an address.
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

    /// The lists people ask for most, with everything else kept as it is.
    pub(super) fn chips(&self) -> Vec<Choice> {
        let choice = |(label, sign, statuses): &(&'static str, &'static str, &[&'static str])| {
            let other = Filter { statuses: statuses.to_vec(), asking: false, ..self.clone() };
            let is_on = self.statuses == *statuses && !self.asking;
            Choice { href: other.first(), value: "", label, sign, is_on }
        };
        let mut chips: Vec<Choice> = NAMED.iter().map(choice).collect();
        let asking = Filter { statuses: Vec::new(), asking: true, ..self.clone() };
        let (label, sign) = ("Waiting for somebody", "?");
        chips.insert(2, Choice { href: asking.first(), value: "", label, sign, is_on: self.asking });
        chips
    }

    /// Every status, for the form.
    pub(super) fn statuses(&self) -> Vec<Choice> {
        let choice = |status: Status| {
            let look = Look::of(status.as_str());
            let is_on = self.statuses.contains(&status.as_str());
            Choice { href: String::new(), value: status.as_str(), label: look.word, sign: look.sign, is_on }
        };
        Status::ALL.into_iter().map(choice).collect()
    }

    /// The beginning of this list.
    pub(super) fn first(&self) -> String {
        format!("/executions{}", query(&self.pairs()))
    }
}
