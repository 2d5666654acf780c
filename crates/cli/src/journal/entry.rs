//! One entry of a journal, as it is told: a line for people, an object for programs.

use super::words::{happened, payloads};
use crate::table::{Paint, wrapped};
use crate::terminal::printable;
use rutter_core::journal::payload::Payload;
use rutter_core::port::query::EntrySummary;
use rutter_core::time::calendar::utc;
use serde_json::{Value, json};

/// How entries are told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    pub(super) is_json: bool,
    /// With what they carry, not only its size.
    pub(super) payloads: bool,
    /// With the execution they are of.
    pub(super) executions: bool,
}

impl Manner {
    pub(super) fn tell(self, entry: &EntrySummary) -> String {
        if self.is_json { format!("{}\n", self.json(entry)) } else { self.text(entry) }
    }

    fn text(self, entry: &EntrySummary) -> String {
        let EntrySummary { execution, seq, record, .. } = entry;
        let place = match self.executions {
            true => format!("{execution} {seq}"),
            false => format!("{seq:>4}"),
        };
        let carried = payloads(&record.event);
        let sizes = carried.iter().filter(|_| !self.payloads).map(|(name, payload)| match payload {
            Payload::Present(_) => format!("{name} of {} bytes", bytes(payload)),
            Payload::Erased => format!("{name} erased"),
        });
        let sizes: Vec<String> = sizes.collect();
        let sizes = if sizes.is_empty() { String::new() } else { format!(" [{}]", sizes.join(", ")) };
        let words = format!("{}: {}{sizes}", record.actor, happened(&record.event));
        let place = format!("{}  {}", utc(record.at), printable(&place));
        let text = wrapped(&format!("{place}  {}", printable(&words)), 6);
        // Painted when it is laid out: what paints takes no room.
        let mut text = text.replacen(&place, &Paint::Dim.on(&place), 1) + "\n";
        for (name, payload) in carried.iter().filter(|_| self.payloads) {
            let value = payload.value().map_or("erased".to_owned(), |value| value.to_string());
            text.push_str(&format!("      {name}: {}\n", printable(&value)));
        }
        text
    }

    fn json(self, entry: &EntrySummary) -> Value {
        let EntrySummary { execution, seq, hash, record } = entry;
        let mut each = |payload: Payload| -> Result<Value, std::convert::Infallible> {
            Ok(match payload {
                Payload::Erased => json!({ "erased": true }),
                Payload::Present(value) if self.payloads => json!({ "value": value }),
                Payload::Present(_) => json!({ "bytes": bytes(&payload) }),
            })
        };
        let Ok(event) = record.event.clone().try_map(&mut each);
        json!({
            "execution": execution,
            "seq": seq,
            "at": record.at,
            "time": utc(record.at),
            "actor": record.actor,
            "kind": record.event.kind(),
            "words": happened(&record.event),
            "event": event,
            "hash": hash,
        })
    }
}

fn bytes(payload: &Payload) -> usize {
    payload.value().map_or(0, |value| value.to_string().len())
}
