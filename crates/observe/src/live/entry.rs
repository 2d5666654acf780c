//! One ledger entry as followers get it, serialized once for all of them.

use bytes::Bytes;
use rutter_core::journal::describe::describe;
use rutter_core::port::feed::FeedEntry;
use rutter_core::text::cut;
use rutter_core::time::calendar::utc;
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};

/// Longer texts of an event are cut; the journal has all of it.
const TEXT_CHARS_MAX: usize = 300;

#[derive(Debug)]
pub struct LiveEntry {
    pub placed: FeedEntry,
    frame: OnceLock<Bytes>,
}

impl LiveEntry {
    pub fn of(placed: FeedEntry) -> Arc<LiveEntry> {
        Arc::new(LiveEntry { placed, frame: OnceLock::new() })
    }

    pub fn kind(&self) -> &'static str {
        self.placed.stored.event.kind()
    }

    /// The entry as a server-sent event; its id is the position.
    pub fn frame(&self) -> &Bytes {
        self.frame.get_or_init(|| {
            let place = self.placed.position;
            Bytes::from(format!("id: {place}\nevent: {}\ndata: {}\n\n", self.kind(), self.json()))
        })
    }

    /// The entry under the names of `app::view::EntryView`, with the main fields of its event, without payloads.
    pub fn json(&self) -> Value {
        let stored = &self.placed.stored;
        let mut json = json!({
            "place": self.placed.position,
            "execution_id": stored.execution,
            "seq": stored.seq,
            "at": utc(stored.at),
            "kind": self.kind(),
            "actor": stored.actor,
            "text": describe(&stored.event).at(stored.at).sentence_within(TEXT_CHARS_MAX),
            "hash": self.placed.hash,
        });
        if let Value::Object(answer) = &mut json {
            plain(&stored.event.fields(), answer);
        }
        json
    }
}

/// Copies common fields of an event, under the names the other APIs use.
fn plain(fields: &Map<String, Value>, answer: &mut Map<String, Value>) {
    let names = [
        ("part", "step"),
        ("step", "step"),
        ("side", "side"),
        ("attempt", "attempt"),
        ("tool", "tool"),
        ("outcome", "status"),
        ("reason", "reason"),
        ("id", "plan_id"),
        ("name", "name"),
        ("revision", "revision"),
    ];
    for (field, name) in names {
        match fields.get(field) {
            Some(Value::String(text)) => {
                let text = cut(text, TEXT_CHARS_MAX);
                answer.insert(name.to_owned(), Value::String(text));
            }
            Some(value @ Value::Number(_)) => {
                answer.insert(name.to_owned(), value.clone());
            }
            _ => {}
        }
    }
    if let Some(message) = fields.get("failure").and_then(|failure| failure["message"].as_str()) {
        answer.insert("error".to_owned(), json!(cut(message, TEXT_CHARS_MAX)));
    }
}
