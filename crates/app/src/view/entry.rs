//! A journal entry.

use crate::terse::shortened;
use rutter_core::actor::Actor;
use rutter_core::journal::describe::describe;
use rutter_core::journal::event::EventRecord;
use rutter_core::port::query::EntrySummary;
use rutter_core::text::spelled;
use rutter_core::time::calendar::utc;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
pub struct EntryView {
    /// `ledger` in the ledger's own journal.
    pub execution_id: String,
    pub seq: u64,
    pub at: String,
    pub actor: ActorView,
    pub kind: String,
    /// The event as a sentence.
    pub text: String,
    /// The fields of the event, payloads among them; long ones are cut to text, erased ones are `{"erased": true}`.
    /// Times are RFC 3339.
    pub event: Map<String, Value>,
    pub hash: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Actor")]
pub struct ActorView {
    /// `rutter`, `agent` or `person`.
    pub party: String,
    pub name: String,
    /// `unproven`: only the program that this person uses says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// How much of the payloads of an entry is shown.
#[derive(Clone, Copy, Debug)]
pub enum PayloadDetail {
    Whole,
    /// Longer ones are cut to text.
    Within(usize),
    Sizes,
}

impl ActorView {
    pub fn of(actor: &Actor) -> ActorView {
        ActorView {
            party: spelled(&actor.party),
            name: actor.name.to_string(),
            proof: actor.proof.as_ref().map(spelled),
        }
    }
}

impl EntryView {
    pub fn of(entry: &EntrySummary, payloads: PayloadDetail) -> EntryView {
        let EventRecord { at, actor, event } = &entry.record;
        let show = |value: &Value| match payloads {
            PayloadDetail::Whole => value.clone(),
            PayloadDetail::Within(bytes_max) => shortened(value, bytes_max),
            PayloadDetail::Sizes => json!({ "bytes": value.to_string().len() }),
        };
        EntryView {
            execution_id: entry.execution.to_string(),
            seq: entry.seq,
            at: utc(*at),
            actor: ActorView::of(actor),
            kind: event.kind().to_owned(),
            text: describe(event).at(*at).sentence(),
            event: event.fields_with(&show),
            hash: entry.hash.to_string(),
        }
    }
}
