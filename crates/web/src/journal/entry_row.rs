//! One entry as a row of a list.

use crate::format::{IdentifierLink, LEDGER, TimeLabel};
use rutter_core::port::query::EntrySummary;
use rutter_core::text::cut_bytes;
use rutter_core::time::Timestamp;
use serde_json::Value;

/// A longer event is truncated.
const JSON_BYTES_MAX: usize = 64 << 10;
/// The longest quotation in a row; the event has all of it.
const QUOTE_CHARS_MAX: usize = 240;

#[derive(Clone, Debug)]
pub struct EntryRow {
    pub at: TimeLabel,
    pub execution: IdentifierLink,
    pub href: String,
    pub seq: u64,
    pub kind: &'static str,
    pub actor: String,
    pub text: String,
    pub hash: String,
    /// The event as JSON, truncated if very long.
    pub json: String,
    pub is_cut: bool,
}

impl EntryRow {
    pub fn of(entry: &EntrySummary, now: Timestamp) -> EntryRow {
        let record = &entry.record;
        let mut json = serde_json::to_string_pretty(&record.event.fields_with(&Value::clone)).unwrap_or_default();
        let is_cut = json.len() > JSON_BYTES_MAX;
        if is_cut {
            json.truncate(cut_bytes(&json, JSON_BYTES_MAX).len());
        }
        let execution = IdentifierLink::execution(entry.execution.as_str());
        EntryRow {
            at: TimeLabel::of(record.at, now),
            href: match entry.execution.as_str() {
                LEDGER => execution.href.clone(),
                _ => format!("{}?tab=events#entry-{}", execution.href, entry.seq),
            },
            execution,
            seq: entry.seq,
            kind: record.event.kind(),
            actor: record.actor.to_string(),
            text: record.describe().sentence_within(QUOTE_CHARS_MAX),
            hash: entry.hash.short(),
            json,
            is_cut,
        }
    }
}
