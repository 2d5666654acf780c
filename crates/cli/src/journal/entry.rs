//! Prints one journal entry: a line for people, an object for programs.

use crate::printable::printable;
use crate::table::{CellColor, wrapped};
use rutter_app::view::{EntryView, PayloadDetail};
use rutter_core::journal::describe::describe;
use rutter_core::journal::payload::EventPayload;
use rutter_core::port::query::EntrySummary;
use rutter_core::time::calendar::utc;
use serde_json::{Value, json};

/// How entries are printed.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryFormat {
    pub(super) is_json: bool,
    /// With their payloads, not only the sizes.
    pub(super) payloads: bool,
    /// With the id of their execution.
    pub(super) executions: bool,
}

impl EntryFormat {
    pub(super) fn write(self, entry: &EntrySummary) -> String {
        if self.is_json { format!("{}\n", self.json(entry)) } else { self.text(entry) }
    }

    fn text(self, entry: &EntrySummary) -> String {
        let EntrySummary { execution, seq, record, .. } = entry;
        let place = match self.executions {
            true => format!("{execution} {seq}"),
            false => format!("{seq:>4}"),
        };
        let carried = record.event.payloads();
        let sizes = carried.iter().filter(|_| !self.payloads).map(|(name, payload)| match payload {
            EventPayload::Present(_) => format!("{name} of {} bytes", bytes(payload)),
            EventPayload::Erased => format!("{name} erased"),
        });
        let sizes: Vec<String> = sizes.collect();
        let sizes = if sizes.is_empty() { String::new() } else { format!(" [{}]", sizes.join(", ")) };
        let words = format!("{}: {}{sizes}", record.actor, describe(&record.event).at(record.at));
        let place = format!("{}  {}", utc(record.at), printable(&place));
        let text = wrapped(&format!("{place}  {}", printable(&words)), 6);
        // Coloured after the layout: escape sequences take no columns.
        let mut text = text.replacen(&place, &CellColor::Dim.on(&place), 1) + "\n";
        for (name, payload) in carried.iter().filter(|_| self.payloads) {
            let value = payload.value().map_or("erased".to_owned(), |value| value.to_string());
            text.push_str(&format!("      {name}: {}\n", printable(&value)));
        }
        text
    }

    fn json(self, entry: &EntrySummary) -> Value {
        let payloads = if self.payloads { PayloadDetail::Whole } else { PayloadDetail::Sizes };
        json!(EntryView::of(entry, payloads))
    }
}

fn bytes(payload: &EventPayload) -> usize {
    payload.value().map_or(0, |value| value.to_string().len())
}
