//! One entry of the ledger as it is told to everybody who follows: written once, however many there are.

use axum::body::Bytes;
use rutter_core::port::feed::Placed;
use rutter_core::time::calendar::utc;
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};

/// Of a text in an event; the journal has all of it.
const TEXT_CHARS_MAX: usize = 300;

#[derive(Debug)]
pub struct Entry {
    pub placed: Placed,
    frame: OnceLock<Bytes>,
}

impl Entry {
    pub(super) fn of(placed: Placed) -> Arc<Entry> {
        Arc::new(Entry { placed, frame: OnceLock::new() })
    }

    pub fn kind(&self) -> &'static str {
        self.placed.stored.event.kind()
    }

    /// As a stream of events has it; the id is the place.
    pub fn frame(&self) -> &Bytes {
        self.frame.get_or_init(|| {
            let place = self.placed.place;
            Bytes::from(format!("id: {place}\nevent: {}\ndata: {}\n\n", self.kind(), self.json()))
        })
    }

    /// What happened, in a few fields and without payloads.
    pub fn json(&self) -> Value {
        let stored = &self.placed.stored;
        let mut told = json!({
            "place": self.placed.place,
            "execution_id": stored.execution,
            "seq": stored.seq,
            "at": utc(stored.at),
            "kind": self.kind(),
            "actor": { "party": stored.actor.party, "name": stored.actor.name },
        });
        let event = json!(stored.event);
        let fields = event.get(self.kind()).and_then(Value::as_object);
        if let (Some(fields), Value::Object(told)) = (fields, &mut told) {
            plain(fields, told);
        }
        told
    }
}

/// The fields everybody understands, by the names they have elsewhere.
fn plain(fields: &Map<String, Value>, told: &mut Map<String, Value>) {
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
                let text = crate::words::cut(text, TEXT_CHARS_MAX);
                told.insert(name.to_owned(), Value::String(text));
            }
            Some(value @ Value::Number(_)) => {
                told.insert(name.to_owned(), value.clone());
            }
            _ => {}
        }
    }
    if let Some(message) = fields.get("failure").and_then(|failure| failure["message"].as_str()) {
        told.insert("error".to_owned(), json!(crate::words::cut(message, TEXT_CHARS_MAX)));
    }
}
