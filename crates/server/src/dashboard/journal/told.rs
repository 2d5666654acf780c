//! One entry as a line of a list.

use crate::dashboard::format::{Id, LEDGER, Moment};
use crate::summary;
use rutter_core::journal::event::Event;
use rutter_core::port::query::EntrySummary;
use rutter_core::time::Timestamp;
use serde_json::{Value, json};
use std::convert::Infallible;

/// More of an event than this is behind a link.
const JSON_BYTES_MAX: usize = 64 << 10;

#[derive(Clone, Debug)]
pub struct Told {
    pub at: Moment,
    pub execution: Id,
    pub href: String,
    pub seq: u64,
    pub kind: &'static str,
    pub actor: String,
    pub text: String,
    pub hash: String,
    /// The event itself, cut if it is very long.
    pub json: String,
    pub is_cut: bool,
}

impl Told {
    pub fn of(entry: &EntrySummary, now: Timestamp) -> Told {
        let record = &entry.record;
        let fields = fields(&record.event);
        let mut json = serde_json::to_string_pretty(&fields).unwrap_or_default();
        let is_cut = json.len() > JSON_BYTES_MAX;
        if is_cut {
            let end = (0..=JSON_BYTES_MAX).rev().find(|at| json.is_char_boundary(*at)).unwrap_or(0);
            json.truncate(end);
        }
        let execution = Id::execution(entry.execution.as_str());
        Told {
            at: Moment::of(record.at, now),
            href: match entry.execution.as_str() {
                LEDGER => execution.href.clone(),
                _ => format!("{}?tab=events#entry-{}", execution.href, entry.seq),
            },
            execution,
            seq: entry.seq,
            kind: record.event.kind(),
            actor: record.actor.to_string(),
            text: summary::line(record).unwrap_or_else(|| plain(record.event.kind(), &fields)),
            hash: entry.hash.short(),
            json,
            is_cut,
        }
    }
}

/// The fields of an event, with its payloads where they are still there.
pub(super) fn fields(event: &Event) -> Value {
    let kind = event.kind();
    let shown = event.clone().try_map::<Value, Infallible>(&mut |payload| {
        Ok(payload.value().map_or_else(|| json!("erased"), |value| (**value).clone()))
    });
    let shown = shown.map(|event| json!(event)).unwrap_or_default();
    shown.get(kind).cloned().unwrap_or_default()
}

/// What an event says that has no sentence of its own.
fn plain(kind: &str, fields: &Value) -> String {
    let mut text = kind.replace('_', " ");
    for (name, before) in [("part", " · step "), ("step", " · step "), ("tool", " · "), ("name", " · ")] {
        if let Some(value) = fields.get(name).and_then(Value::as_str) {
            text.push_str(before);
            text.push_str(value);
        }
    }
    if let Some(attempt) = fields.get("attempt").and_then(Value::as_u64).filter(|attempt| *attempt > 1) {
        text.push_str(&format!(" · attempt {attempt}"));
    }
    text
}
