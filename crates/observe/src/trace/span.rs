//! Spans and export requests in OTLP/JSON: ids in hex, times and 64-bit numbers as strings, kinds as numbers.

use super::names;
use rutter_core::text::first_chars;
use rutter_core::time::Timestamp;
use serde_json::{Value, json};

/// Span kind "internal", as the conventions ask for tools and plans.
const INTERNAL: u8 = 1;
const OK: u8 = 1;
const ERROR: u8 = 2;
/// Longer texts are cut: some collectors refuse the whole batch for one of them.
const TEXT_CHARS_MAX: usize = 4_096;

#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    pub trace: String,
    pub id: String,
    pub parent: Option<String>,
    pub name: String,
    pub from: Timestamp,
    pub until: Timestamp,
    pub attributes: Vec<(&'static str, SpanAttribute)>,
    /// Ids of other spans of the same trace.
    pub links: Vec<String>,
    pub status: SpanStatus,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SpanAttribute {
    Text(String),
    Number(u64),
    Flag(bool),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanStatus {
    Ok,
    /// Neither success nor error.
    Unset,
    Error(String),
}

impl SpanAttribute {
    pub fn text(text: impl Into<String>) -> SpanAttribute {
        SpanAttribute::Text(text.into())
    }

    fn json(&self) -> Value {
        match self {
            SpanAttribute::Text(text) => json!({ "stringValue": first_chars(text, TEXT_CHARS_MAX) }),
            SpanAttribute::Number(number) => json!({ "intValue": number.to_string() }),
            SpanAttribute::Flag(flag) => json!({ "boolValue": flag }),
        }
    }
}

impl TraceSpan {
    fn json(&self) -> Value {
        let attributes: Vec<Value> =
            self.attributes.iter().map(|(key, value)| json!({ "key": key, "value": value.json() })).collect();
        let links: Vec<Value> =
            self.links.iter().map(|span| json!({ "traceId": self.trace, "spanId": span })).collect();
        let status = match &self.status {
            SpanStatus::Unset => json!({}),
            SpanStatus::Ok => json!({ "code": OK }),
            SpanStatus::Error(message) => {
                json!({ "code": ERROR, "message": first_chars(message, TEXT_CHARS_MAX) })
            }
        };
        let mut span = json!({
            "traceId": self.trace,
            "spanId": self.id,
            "name": first_chars(&self.name, TEXT_CHARS_MAX),
            "kind": INTERNAL,
            "startTimeUnixNano": nanos(self.from),
            "endTimeUnixNano": nanos(self.until.max(self.from)),
            "attributes": attributes,
            "links": links,
            "status": status,
        });
        if let Some(parent) = &self.parent {
            span["parentSpanId"] = json!(parent);
        }
        span
    }
}

/// The body of an export request.
pub fn request(spans: &[TraceSpan], service: &str, version: &str) -> Value {
    let text = |key: &str, text: &str| json!({ "key": key, "value": { "stringValue": text } });
    let resource = [text(names::SERVICE_NAME, service), text(names::SERVICE_VERSION, version)];
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{
            "scope": { "name": "rutter", "version": version },
            "spans": spans.iter().map(TraceSpan::json).collect::<Vec<_>>(),
        }],
    }] })
}

fn nanos(at: Timestamp) -> String {
    (i128::from(at.0.max(0)) * 1_000_000).min(i128::from(u64::MAX)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_texts_and_ids_stay_hex() {
        let span = TraceSpan {
            trace: "0af7651916cd43dd8448eb211c80319c".into(),
            id: "b7ad6b7169203331".into(),
            parent: None,
            name: "x".repeat(5_000),
            from: Timestamp(1_700_000_000_123),
            until: Timestamp(1_600_000_000_000),
            attributes: vec![("n", SpanAttribute::Number(u64::MAX)), ("f", SpanAttribute::Flag(true))],
            links: vec!["00f067aa0ba902b7".into()],
            status: SpanStatus::Error("timeout".into()),
        };
        let sent = request(&[span], "rutter", "1.0.0");
        let span = &sent["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
        assert_eq!(span["startTimeUnixNano"], "1700000000123000000");
        assert_eq!(span["endTimeUnixNano"], "1700000000123000000", "no span ends before it begins");
        assert_eq!(span["attributes"][0]["value"]["intValue"], "18446744073709551615");
        assert_eq!(span["attributes"][1]["value"]["boolValue"], true);
        assert_eq!(span["links"][0]["traceId"], span["traceId"]);
        assert_eq!((&span["kind"], &span["status"]["code"]), (&json!(1), &json!(2)));
        assert_eq!(span["name"].as_str().unwrap().len(), TEXT_CHARS_MAX);
        assert!(span.get("parentSpanId").is_none());
    }
}
