//! The filter of the Journal page, parsed from the URL.

use crate::format::{bound, query};
use crate::page::PageRequest;
use rutter_core::actor::Actor;
use rutter_core::id::ExecutionId;
use rutter_core::port::query::{EntryFilter, TimeRange};
use rutter_core::time::Timestamp;

/// The filter as typed.
#[derive(Clone, Debug, Default)]
pub(super) struct JournalFilterForm {
    pub(super) execution: String,
    pub(super) kind: String,
    pub(super) actor: String,
    pub(super) text: String,
    pub(super) from: String,
    pub(super) until: String,
}

impl JournalFilterForm {
    pub(super) fn read(request: &PageRequest) -> JournalFilterForm {
        let asked = |name: &str| request.query_value(name).unwrap_or_default().trim().to_owned();
        JournalFilterForm {
            execution: asked("execution"),
            kind: asked("kind"),
            actor: asked("actor"),
            text: asked("text"),
            from: asked("from"),
            until: asked("until"),
        }
    }

    pub(super) fn wanted(&self, now: Timestamp) -> Result<EntryFilter, String> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let time = |text: &str| bound(text, now);
        Ok(EntryFilter {
            execution: some(&self.execution).map(|execution| ExecutionId::new(&execution)),
            kinds: some(&self.kind).into_iter().collect(),
            actor: some(&self.actor).map(|actor| read_actor(&actor)),
            at: TimeRange { from: time(&self.from)?, until: time(&self.until)? },
            text: some(&self.text),
        })
    }

    pub(super) fn is_set(&self) -> bool {
        !self.pairs().is_empty()
    }

    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        let named = [
            ("execution", &self.execution),
            ("kind", &self.kind),
            ("actor", &self.actor),
            ("text", &self.text),
            ("from", &self.from),
            ("until", &self.until),
        ];
        let set = named.into_iter().filter(|(_, value)| !value.is_empty());
        set.map(|(name, value)| (name.to_owned(), value.clone())).collect()
    }

    pub(super) fn first(&self) -> String {
        format!("/journal{}", query(&self.pairs()))
    }

    /// The export of the same entries.
    pub(super) fn export(&self, format: &str) -> String {
        let mut pairs = self.pairs();
        pairs.push(("format".to_owned(), format.to_owned()));
        format!("/journal/export{}", query(&pairs))
    }
}

/// Parses an actor: `rutter`, `agent NAME`, or a person's name.
fn read_actor(text: &str) -> Actor {
    match text.split_once(' ') {
        Some(("agent", name)) => Actor::agent(name.trim()),
        _ if text == "rutter" => Actor::rutter(),
        _ => Actor::person(text),
    }
}
