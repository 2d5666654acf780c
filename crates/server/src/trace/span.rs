//! A span, and a request full of them, in the JSON of OTLP: ids as hex, times and large numbers as texts, kinds as
//! numbers.

use super::names;
use rutter_core::time::Timestamp;
use serde_json::{Value, json};

/// Within the process, as the conventions say for tools and plans.
const INTERNAL: u8 = 1;
const OK: u8 = 1;
const ERROR: u8 = 2;
/// Longer texts are cut: some collectors refuse the whole batch for one of them.
const TEXT_CHARS_MAX: usize = 4_096;

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace: String,
    pub id: String,
    pub parent: Option<String>,
    pub name: String,
    pub from: Timestamp,
    pub until: Timestamp,
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Spans of the same trace.
    pub links: Vec<String>,
    pub status: Status,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    Text(String),
    Number(u64),
    Flag(bool),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Ok,
    /// Neither well nor badly.
    Unset,
    Error(String),
}

impl Attribute {
    pub fn text(text: impl Into<String>) -> Attribute {
        Attribute::Text(text.into())
    }

    fn json(&self) -> Value {
        match self {
            Attribute::Text(text) => json!({ "stringValue": cut(text) }),
            Attribute::Number(number) => json!({ "intValue": number.to_string() }),
            Attribute::Flag(flag) => json!({ "boolValue": flag }),
        }
    }
}

impl Span {
    fn json(&self) -> Value {
        let attributes: Vec<Value> =
            self.attributes.iter().map(|(key, value)| json!({ "key": key, "value": value.json() })).collect();
        let links: Vec<Value> =
            self.links.iter().map(|span| json!({ "traceId": self.trace, "spanId": span })).collect();
        let status = match &self.status {
            Status::Unset => json!({}),
            Status::Ok => json!({ "code": OK }),
            Status::Error(message) => json!({ "code": ERROR, "message": cut(message) }),
        };
        let mut span = json!({
            "traceId": self.trace,
            "spanId": self.id,
            "name": cut(&self.name),
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

/// The body of a request.
pub fn request(spans: &[Span], service: &str, version: &str) -> Value {
    let text = |key: &str, text: &str| json!({ "key": key, "value": { "stringValue": text } });
    let resource = [text(names::SERVICE_NAME, service), text(names::SERVICE_VERSION, version)];
    json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{
            "scope": { "name": "rutter", "version": version },
            "spans": spans.iter().map(Span::json).collect::<Vec<_>>(),
        }],
    }] })
}

fn nanos(at: Timestamp) -> String {
    (i128::from(at.0.max(0)) * 1_000_000).min(i128::from(u64::MAX)).to_string()
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(TEXT_CHARS_MAX).map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_texts_and_ids_stay_hex() {
        let span = Span {
            trace: "0af7651916cd43dd8448eb211c80319c".into(),
            id: "b7ad6b7169203331".into(),
            parent: None,
            name: "x".repeat(5_000),
            from: Timestamp(1_700_000_000_123),
            until: Timestamp(1_600_000_000_000),
            attributes: vec![("n", Attribute::Number(u64::MAX)), ("f", Attribute::Flag(true))],
            links: vec!["00f067aa0ba902b7".into()],
            status: Status::Error("timeout".into()),
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
