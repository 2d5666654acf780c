//! Events for webhooks: CloudEvents 1.0 as JSON. An event has the commitments of payloads, never the payloads.

use super::WatchService;
use super::alert::AlertRecord;
use super::execution_state::ExecutionState;
use super::plans::NamedPlan;
use super::rfc3339::Rfc3339Timestamp;
use super::webhook::ALERT;
use rutter_core::journal::describe::describe;
use rutter_core::limits::DELIVERY_BYTES_MAX;
use rutter_core::port::feed::FeedEntry;
use rutter_core::port::outbox::NewDelivery;
use rutter_core::time::Timestamp;
use serde_json::{Map, Value, json};

/// The id under which the ledger's own journal is stored.
const LEDGER: &str = "ledger";
/// Longer quotations in the sentence of an event are cut; `event` has all of them.
const TEXT_CHARS_MAX: usize = 300;

/// An event to send.
pub struct CloudEvent {
    /// Receivers detect duplicates by this id.
    pub id: String,
    /// Such as `dev.rutter.execution_ended.v1`.
    pub kind: String,
    pub body: Vec<u8>,
}

impl CloudEvent {
    /// The event of a ledger entry; with the state of its execution, if it ended or asks.
    pub fn of(
        placed: &FeedEntry,
        plan: Option<&NamedPlan>,
        state: Option<&ExecutionState>,
        watch: &WatchService,
    ) -> CloudEvent {
        let stored = &placed.stored;
        let (tenant, execution) = (stored.tenant.as_str(), stored.execution.as_str());
        let kind = stored.event.kind();
        let event = stored.event.fields();
        let subject = event.get("part").or_else(|| event.get("step")).and_then(Value::as_str).map(str::to_owned);
        let is_own = execution == LEDGER;
        let url = (!is_own).then(|| watch.page(&format!("executions/{execution}"))).flatten();
        // `execution` and `link` are `execution_id` and `url`, for receivers that read the older names.
        let mut data = json!({
            "tenant": tenant,
            "execution_id": execution,
            "execution": (!is_own).then_some(execution),
            "plan": plan,
            "seq": stored.seq,
            "hash": placed.hash,
            "at": Rfc3339Timestamp(stored.at),
            "actor": stored.actor,
            "kind": kind,
            "text": describe(&stored.event).at(stored.at).sentence_within(TEXT_CHARS_MAX),
            "event": event,
            "url": url,
            "link": url,
        });
        if let Some(state) = state {
            data["execution_state"] = json!(state);
        }
        let source = match is_own {
            true => format!("/tenants/{tenant}/ledger"),
            false => format!("/tenants/{tenant}/executions/{execution}"),
        };
        let envelope = |data: Value| {
            let mut envelope = CloudEventEnvelope {
                id: format!("{tenant}/{}", placed.position),
                kind: kind_of(kind),
                source: source.clone(),
                subject: subject.clone(),
                at: stored.at,
                extension: Map::new(),
                data,
            };
            // Integers of CloudEvents end at 2^31, positions do not.
            envelope.extension.insert("place".to_owned(), json!(placed.position.to_string()));
            envelope.write()
        };
        let written = envelope(data.clone());
        if written.body.len() <= DELIVERY_BYTES_MAX {
            return written;
        }
        data["event"] = json!({ "left_out": "the event is too large to send; read it in the journal" });
        envelope(data)
    }

    pub fn to(&self, webhook: &str, now: Timestamp) -> NewDelivery {
        NewDelivery {
            destination: webhook.to_owned(),
            event: self.id.clone(),
            kind: self.kind.clone(),
            body: self.body.clone(),
            due_at: now,
        }
    }

    /// The notice of an alert: it fires, still fires, or is resolved.
    pub fn alert(tenant: &str, alert: &AlertRecord, watch: &WatchService) -> CloudEvent {
        let notice = if alert.is_firing() { alert.notices.to_string() } else { "resolved".to_owned() };
        let mut data = alert.value();
        if let Some(fields) = data.as_object_mut() {
            fields.remove("to_ring");
            fields.insert("tenant".to_owned(), json!(tenant));
            let page = watch.page("alerts");
            fields.insert("url".to_owned(), json!(page));
            fields.insert("link".to_owned(), json!(page));
        }
        CloudEventEnvelope {
            id: format!("{tenant}/{}/{notice}", alert.id),
            kind: kind_of(ALERT),
            source: format!("/tenants/{tenant}/alerts/{}", alert.id),
            subject: Some(alert.subject.clone()),
            at: alert.resolved_at.or(alert.last_notice_at).unwrap_or(alert.fired_at).0,
            extension: Map::new(),
            data,
        }
        .write()
    }

    /// A test event, to see whether a webhook works.
    pub fn test(tenant: &str, webhook: &str, chance: &str, at: Timestamp) -> CloudEvent {
        let data = json!({ "tenant": tenant, "webhook": webhook, "text": "this is a test; nothing happened" });
        let source = format!("/tenants/{tenant}/webhooks/{webhook}");
        let id = format!("{tenant}/{chance}");
        let (kind, extension) = (kind_of("test"), Map::new());
        CloudEventEnvelope { id, kind, source, subject: None, at, extension, data }.write()
    }
}

struct CloudEventEnvelope {
    id: String,
    kind: String,
    source: String,
    subject: Option<String>,
    at: Timestamp,
    extension: Map<String, Value>,
    data: Value,
}

impl CloudEventEnvelope {
    fn write(self) -> CloudEvent {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("specversion", json!("1.0"));
        put("id", json!(self.id));
        put("source", json!(self.source));
        put("type", json!(self.kind));
        if let Some(subject) = self.subject {
            put("subject", json!(subject));
        }
        put("time", json!(Rfc3339Timestamp(self.at)));
        put("datacontenttype", json!("application/json"));
        fields.extend(self.extension);
        fields.insert("data".to_owned(), self.data);
        CloudEvent { id: self.id, kind: self.kind, body: Value::Object(fields).to_string().into_bytes() }
    }
}

fn kind_of(name: &str) -> String {
    format!("dev.rutter.{name}.v1")
}
