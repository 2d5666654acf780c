//! HTTP APIs: each tool is one kind of request, written down by the operator.

use super::{Common, Rate, ToolSettings, span_maybe};
use rutter_core::time::Millis;
use rutter_core::tool::{Category, Safety};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Every field is written out: a flattened table cannot refuse unknown keys.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Server {
    /// Where every request goes: scheme, host, port, and what all paths begin with.
    pub base: String,
    /// Hosts, addresses and networks that may be reached although they are private, and without TLS.
    pub allow: Vec<String>,
    /// Sent with every request. `${secret:name}` is filled in.
    pub headers: BTreeMap<String, String>,
    /// The default is 5 s.
    #[serde(deserialize_with = "span_maybe")]
    pub timeout_connect: Option<Millis>,
    pub concurrency: Option<u32>,
    pub rate: Option<Rate>,
    pub tools: BTreeMap<String, Tool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tool {
    pub description: String,
    pub method: Method,
    /// `/orders/{id}`: each slot is a property of the input.
    pub path: String,
    /// A value that is one slot alone is left out when the parameter is, and repeated for a list.
    pub query: BTreeMap<String, String>,
    pub headers: BTreeMap<String, String>,
    /// The default is `json` for POST, PUT and PATCH, otherwise `none`.
    pub body: Option<Body>,
    pub input: Option<Schema>,
    pub output: Option<Schema>,
    /// JSON pointer to the result in the answer.
    pub result: Option<String>,
    /// The header that gets the idempotency key. With it the call counts as idempotent.
    pub idempotency_header: Option<String>,
    /// What statuses mean, where it is not what they usually mean.
    pub outcome: BTreeMap<Statuses, Meaning>,
    /// How many redirects within the same origin are followed, at most 3.
    pub redirects: u8,
    pub safety: Option<Safety>,
    pub key_parameter: Option<String>,
    pub concurrency: Option<u32>,
    pub rate: Option<Rate>,
    pub hidden: bool,
}

impl Server {
    /// What holds for servers of every kind. The definitions are the operator's own, so they are believed.
    pub fn common(&self) -> Common {
        let tools = self.tools.iter().map(|(name, tool)| (name.clone(), tool.settings())).collect();
        Common { trust: true, concurrency: self.concurrency, rate: self.rate, tools }
    }
}

impl Tool {
    pub fn settings(&self) -> ToolSettings {
        ToolSettings {
            safety: self.safety,
            key_parameter: self.key_parameter.clone(),
            concurrency: self.concurrency,
            rate: self.rate,
            hidden: self.hidden,
        }
    }

    pub fn body(&self) -> Body {
        match (&self.body, self.method) {
            (Some(body), _) => body.clone(),
            (None, Method::Post | Method::Put | Method::Patch) => Body::Json,
            (None, Method::Get | Method::Head | Method::Delete) => Body::None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    #[default]
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }

    /// Whether HTTP says that it only reads.
    pub fn reads(self) -> bool {
        matches!(self, Method::Get | Method::Head)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// All parameters, as JSON.
    Json,
    /// All parameters, as a form.
    Form,
    None,
    /// The named parameters, as JSON.
    Only(Vec<String>),
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Body, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(kind) if kind == "json" => Ok(Body::Json),
            Value::String(kind) if kind == "form" => Ok(Body::Form),
            Value::String(kind) if kind == "none" => Ok(Body::None),
            list @ Value::Array(_) => {
                let names = serde_json::from_value(list);
                names.map(Body::Only).map_err(|_| serde::de::Error::custom("expected names of parameters"))
            }
            other => Err(serde::de::Error::custom(format!(
                "expected `json`, `form`, `none` or a list of parameters, got {other}"
            ))),
        }
    }
}

/// A JSON Schema, as a table or as a text of JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema(pub Map<String, Value>);

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Schema, D::Error> {
        use serde::de::Error;
        let value = match Value::deserialize(deserializer)? {
            Value::String(text) => serde_json::from_str(&text)
                .map_err(|error| D::Error::custom(format!("expected a JSON Schema: {error}")))?,
            value => value,
        };
        match value {
            Value::Object(schema) => Ok(Schema(schema)),
            other => Err(D::Error::custom(format!("expected a JSON Schema as an object, got {other}"))),
        }
    }
}

/// One status, `404`, or a class of them, `5xx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub enum Statuses {
    One(u16),
    Class(u16),
}

impl TryFrom<String> for Statuses {
    type Error = String;

    fn try_from(text: String) -> Result<Statuses, String> {
        let statuses = match text.strip_suffix("xx") {
            Some(class) => class.parse().ok().filter(|class| (2..=5).contains(class)).map(Statuses::Class),
            None => text.parse().ok().filter(|status| (200..=599).contains(status)).map(Statuses::One),
        };
        statuses
            .ok_or_else(|| format!("expected a status such as `404` or a class such as `5xx`, got {text:?}"))
    }
}

/// What a status means: `done`, `not_done`, `maybe`, a category, or two of these as in `not_done conflict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Meaning {
    pub verdict: Option<Verdict>,
    pub category: Option<Category>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Done,
    NotDone,
    Maybe,
}

impl TryFrom<String> for Meaning {
    type Error = String;

    fn try_from(text: String) -> Result<Meaning, String> {
        let mut meaning = Meaning { verdict: None, category: None };
        for word in text.split_whitespace() {
            let verdict = match word {
                "done" => Some(Verdict::Done),
                "not_done" => Some(Verdict::NotDone),
                "maybe" => Some(Verdict::Maybe),
                _ => None,
            };
            let category = Category::ALL.into_iter().find(|category| category.as_str() == word);
            match (verdict, category) {
                (Some(_), _) if meaning == (Meaning { verdict: None, category: None }) => {
                    meaning.verdict = verdict
                }
                (_, Some(_)) if meaning.category.is_none() => meaning.category = category,
                _ => return Err(expected(&text)),
            }
        }
        match meaning {
            Meaning { verdict: None, category: None } => Err(expected(&text)),
            Meaning { verdict: Some(Verdict::Done), category: Some(_) } => Err(expected(&text)),
            meaning => Ok(meaning),
        }
    }
}

fn expected(text: &str) -> String {
    format!("expected `done`, `not_done`, `maybe`, a category, or `not_done conflict`, got {text:?}")
}
