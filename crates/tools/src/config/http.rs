//! HTTP APIs: each tool is one kind of request, configured by the operator.

use super::{CallRate, ServerSettings, ToolSettings, span_maybe};
use rutter_core::time::Millis;
use rutter_core::tool::attempts::{AttemptSettings, RetrySettings};
use rutter_core::tool::{FailureCategory, Safety};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Every field is written out: a flattened table cannot refuse unknown keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpServerConfig {
    /// The base URL of every request: scheme, host, port and the prefix of all paths.
    pub base: String,
    /// Hosts, addresses and networks that may be reached although they are private, and without TLS.
    pub allow: Vec<String>,
    /// Sent with every request. `${secret:name}` is filled in.
    pub headers: BTreeMap<String, String>,
    /// The default is 5 s.
    #[serde(deserialize_with = "span_maybe")]
    pub timeout_connect: Option<Millis>,
    pub safety: Option<Safety>,
    #[serde(deserialize_with = "span_maybe")]
    pub timeout: Option<Millis>,
    #[serde(deserialize_with = "span_maybe")]
    pub timeout_max: Option<Millis>,
    pub retry: Option<RetrySettings>,
    /// How long its tools remember a key; the default is a day.
    #[serde(deserialize_with = "span_maybe")]
    pub key_window: Option<Millis>,
    pub concurrency: Option<u32>,
    pub rate: Option<CallRate>,
    pub tools: BTreeMap<String, HttpToolConfig>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpToolConfig {
    pub description: String,
    pub method: HttpMethod,
    /// `/orders/{id}`: each slot is a property of the input.
    pub path: String,
    /// A value that is one slot alone is left out when the parameter is, and repeated for a list.
    pub query: BTreeMap<String, String>,
    pub headers: BTreeMap<String, String>,
    /// The default is `json` for POST, PUT and PATCH, otherwise `none`.
    pub body: Option<RequestBody>,
    pub input: Option<SchemaConfig>,
    pub output: Option<SchemaConfig>,
    /// JSON pointer to the result in the answer.
    pub result: Option<String>,
    /// The header that gets the idempotency key. With it the call may be repeated within the key window.
    pub idempotency_header: Option<String>,
    /// The meaning of statuses, where it differs from the usual.
    pub outcome: BTreeMap<StatusPattern, StatusMeaning>,
    /// How many redirects within the same origin are followed, at most 3.
    pub redirects: u8,
    pub safety: Option<Safety>,
    #[serde(deserialize_with = "span_maybe")]
    pub timeout: Option<Millis>,
    #[serde(deserialize_with = "span_maybe")]
    pub timeout_max: Option<Millis>,
    pub retry: Option<RetrySettings>,
    /// How long its tools remember a key; the default is a day.
    #[serde(deserialize_with = "span_maybe")]
    pub key_window: Option<Millis>,
    pub key_parameter: Option<String>,
    pub concurrency: Option<u32>,
    pub rate: Option<CallRate>,
    pub hidden: bool,
}

impl HttpServerConfig {
    /// The settings of every kind of server. The definitions are the operator's own, so they are trusted.
    pub fn common(&self) -> ServerSettings {
        let tools = self.tools.iter().map(|(name, tool)| (name.clone(), tool.settings())).collect();
        let attempts =
            AttemptSettings { timeout: self.timeout, timeout_max: self.timeout_max, retry: self.retry.clone() };
        ServerSettings {
            trust: true,
            safety: self.safety,
            attempts,
            key_window: self.key_window,
            concurrency: self.concurrency,
            rate: self.rate,
            tools,
        }
    }
}

impl HttpToolConfig {
    pub fn settings(&self) -> ToolSettings {
        ToolSettings {
            safety: self.safety,
            grace: None,
            sends_key: self.idempotency_header.is_some() && !self.method.reads(),
            timeout: self.timeout,
            timeout_max: self.timeout_max,
            retry: self.retry.clone(),
            key_parameter: self.key_parameter.clone(),
            key_window: self.key_window,
            concurrency: self.concurrency,
            rate: self.rate,
            hidden: self.hidden,
        }
    }

    pub fn body(&self) -> RequestBody {
        match (&self.body, self.method) {
            (Some(body), _) => body.clone(),
            (None, HttpMethod::Post | HttpMethod::Put | HttpMethod::Patch) => RequestBody::Json,
            (None, HttpMethod::Get | HttpMethod::Head | HttpMethod::Delete) => RequestBody::None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl HttpMethod {
    pub fn as_str(self) -> &'static str {
        match self {
            HttpMethod::Get => "GET",
            HttpMethod::Head => "HEAD",
            HttpMethod::Post => "POST",
            HttpMethod::Put => "PUT",
            HttpMethod::Patch => "PATCH",
            HttpMethod::Delete => "DELETE",
        }
    }

    /// Whether HTTP defines it as read-only.
    pub fn reads(self) -> bool {
        matches!(self, HttpMethod::Get | HttpMethod::Head)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestBody {
    /// All parameters, as JSON.
    Json,
    /// All parameters, as a form.
    Form,
    None,
    /// The named parameters, as JSON.
    Only(Vec<String>),
}

impl<'de> Deserialize<'de> for RequestBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RequestBody, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(kind) if kind == "json" => Ok(RequestBody::Json),
            Value::String(kind) if kind == "form" => Ok(RequestBody::Form),
            Value::String(kind) if kind == "none" => Ok(RequestBody::None),
            list @ Value::Array(_) => {
                let names = serde_json::from_value(list);
                names.map(RequestBody::Only).map_err(|_| serde::de::Error::custom("expected names of parameters"))
            }
            other => Err(serde::de::Error::custom(format!(
                "expected `json`, `form`, `none` or a list of parameters, got {other}"
            ))),
        }
    }
}

/// A JSON Schema, as a table or as JSON text.
#[derive(Clone, Debug, PartialEq)]
pub struct SchemaConfig(pub Map<String, Value>);

impl<'de> Deserialize<'de> for SchemaConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SchemaConfig, D::Error> {
        use serde::de::Error;
        let value = match Value::deserialize(deserializer)? {
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|error| D::Error::custom(format!("expected a JSON Schema: {error}")))?,
            value => value,
        };
        match value {
            Value::Object(schema) => Ok(SchemaConfig(schema)),
            other => Err(D::Error::custom(format!("expected a JSON Schema as an object, got {other}"))),
        }
    }
}

/// One status, `404`, or a class of them, `5xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum StatusPattern {
    One(u16),
    Class(u16),
}

impl TryFrom<String> for StatusPattern {
    type Error = String;

    fn try_from(text: String) -> Result<StatusPattern, String> {
        let statuses = match text.strip_suffix("xx") {
            Some(class) => class.parse().ok().filter(|class| (2..=5).contains(class)).map(StatusPattern::Class),
            None => text.parse().ok().filter(|status| (200..=599).contains(status)).map(StatusPattern::One),
        };
        statuses.ok_or_else(|| format!("expected a status such as `404` or a class such as `5xx`, got {text:?}"))
    }
}

/// What a status means: `done`, `not_done`, `maybe`, a category, or two of these as in `not_done conflict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct StatusMeaning {
    pub verdict: Option<OutcomeVerdict>,
    pub category: Option<FailureCategory>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeVerdict {
    Done,
    NotDone,
    Maybe,
}

impl TryFrom<String> for StatusMeaning {
    type Error = String;

    fn try_from(text: String) -> Result<StatusMeaning, String> {
        let mut meaning = StatusMeaning { verdict: None, category: None };
        for word in text.split_whitespace() {
            let verdict = match word {
                "done" => Some(OutcomeVerdict::Done),
                "not_done" => Some(OutcomeVerdict::NotDone),
                "maybe" => Some(OutcomeVerdict::Maybe),
                _ => None,
            };
            let category = FailureCategory::ALL.into_iter().find(|category| category.as_str() == word);
            match (verdict, category) {
                (Some(_), _) if meaning == (StatusMeaning { verdict: None, category: None }) => {
                    meaning.verdict = verdict
                }
                (_, Some(_)) if meaning.category.is_none() => meaning.category = category,
                _ => return Err(expected(&text)),
            }
        }
        match meaning {
            StatusMeaning { verdict: None, category: None } => Err(expected(&text)),
            StatusMeaning { verdict: Some(OutcomeVerdict::Done), category: Some(_) } => Err(expected(&text)),
            meaning => Ok(meaning),
        }
    }
}

fn expected(text: &str) -> String {
    format!("expected `done`, `not_done`, `maybe`, a category, or `not_done conflict`, got {text:?}")
}
