//! The fields of an event as JSON for readers: payloads in place, times in RFC 3339. Stored bytes keep milliseconds.

use super::event::{AttemptFollowUp, Event, OverdueTimer};
use super::payload::EventPayload;
use crate::time::Timestamp;
use crate::time::calendar::utc;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::convert::Infallible;

impl<P: Serialize> Event<P> {
    /// Returns the fields of the event. Every surface shows these.
    pub fn fields(&self) -> Map<String, Value> {
        let mut event = json!(self);
        let Some(fields) = event.get_mut(self.kind()) else { return Map::new() };
        for (pointer, at) in self.times() {
            if let Some(field) = fields.pointer_mut(pointer) {
                *field = json!(utc(at));
            }
        }
        let (list, timers): (&str, &[OverdueTimer]) = match self {
            Event::Held { due, .. } => ("due", due),
            Event::HoldEnded { expired, .. } => ("expired", expired),
            _ => ("", &[]),
        };
        for (index, timer) in timers.iter().enumerate() {
            if let Some(field) = fields.pointer_mut(&format!("/{list}/{index}/at")) {
                *field = json!(utc(timer.at));
            }
        }
        match fields.take() {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

impl<P> Event<P> {
    /// Returns every time in the event, with the pointer to its field.
    fn times(&self) -> Vec<(&'static str, Timestamp)> {
        match self {
            Event::ApprovalRequested { expires_at, .. } => vec![("/expires_at", *expires_at)],
            Event::CallDelayed { until, .. } => vec![("/until", *until)],
            Event::AttemptStarted { deadline: Some(deadline), .. } => vec![("/deadline", *deadline)],
            Event::AttemptFailed { then: AttemptFollowUp::RetryAt(at), .. }
            | Event::AttemptLost { then: AttemptFollowUp::RetryAt(at), .. }
            | Event::DoubtSettled { then: AttemptFollowUp::RetryAt(at), .. } => vec![("/then/retry_at", *at)],
            Event::ProbePostponed { until, .. } => vec![("/until", *until)],
            Event::Held { since, .. } | Event::AgentSilent { since, .. } => vec![("/since", *since)],
            _ => Vec::new(),
        }
    }
}

impl Event {
    /// Returns the fields of the event with its payloads, each as `show` shows it; an erased one is `{"erased": true}`.
    pub fn fields_with(&self, show: &dyn Fn(&Value) -> Value) -> Map<String, Value> {
        let mut value_of = |payload: EventPayload| -> Result<Value, Infallible> {
            Ok(payload.value().map_or_else(|| json!({ "erased": true }), |value| show(value)))
        };
        let Ok(values) = self.clone().try_map(&mut value_of);
        values.fields()
    }
}
