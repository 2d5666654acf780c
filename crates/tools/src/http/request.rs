//! From a tool and its parameters to the request that is sent. Parameters are encoded, never spliced in.

use super::check::{is_dots, is_visible};
use super::template::{Piece, Template, written};
use super::tool::Tool;
use crate::config::http::Body;
use crate::secret::{Secret, Vault};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::Request;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use rutter_core::tool::{Category, Failure};
use serde_json::{Map, Value};
use url::Url;

const URL_BYTES_MAX: usize = 8 << 10;
const HEADER_BYTES_MAX: usize = 8 << 10;

/// All but the characters that mean themselves everywhere in a URL.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What fills the slots and the secrets of one request.
pub(super) struct Filling<'a> {
    pub(super) parameters: &'a Map<String, Value>,
    pub(super) key: &'a str,
    pub(super) vault: &'a Vault,
}

pub(super) async fn build(tool: &Tool, base: &Url, filling: &Filling<'_>) -> Result<Request, Failure> {
    let url = url(tool, base, filling).await?;
    let method = tool.method.as_str().parse().expect("every method we name is one");
    let mut request = Request::new(method, url);
    *request.headers_mut() = headers(tool, filling).await?;
    if let Some((kind, bytes)) = body(tool, filling.parameters)? {
        request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
        *request.body_mut() = Some(bytes.into());
    }
    Ok(request)
}

async fn url(tool: &Tool, base: &Url, filling: &Filling<'_>) -> Result<Url, Failure> {
    let mut path = base.path().trim_end_matches('/').to_owned();
    for segment in &tool.segments {
        path.push('/');
        path.push_str(&filling.segment(segment)?);
    }
    let mut query = Vec::new();
    for (name, template) in &tool.query {
        for value in filling.texts(name, template).await? {
            query.push(format!("{}={}", encoded(name), encoded(value.text())));
        }
    }
    let mut url = base.clone();
    url.set_path(&path);
    url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
    if url.path() != path {
        return Err(invalid("the path would not arrive as it was written; use plainer values in its slots"));
    }
    if url.as_str().len() > URL_BYTES_MAX {
        return Err(invalid(format!("the URL would be longer than {URL_BYTES_MAX} bytes")));
    }
    Ok(url)
}

async fn headers(tool: &Tool, filling: &Filling<'_>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*;q=0.1"));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
    for (name, template) in &tool.headers {
        if template.only_slot().is_some() {
            headers.remove(name);
        }
        let texts = filling.texts(name.as_str(), template).await?;
        if texts.len() > 1 {
            return Err(invalid(format!("header {name}: expected one value, not a list")));
        }
        for text in texts {
            let mut value = header_value(name, text.text())?;
            value.set_sensitive(template.secrets().next().is_some());
            headers.insert(name.clone(), value);
        }
    }
    if let Some(name) = &tool.idempotency_header {
        headers.insert(name.clone(), header_value(name, filling.key)?);
    }
    Ok(headers)
}

fn header_value(name: &HeaderName, text: &str) -> Result<HeaderValue, Failure> {
    if !text.bytes().all(is_visible) {
        return Err(invalid(format!("header {name}: expected visible ASCII characters")));
    }
    if text.trim() != text {
        return Err(invalid(format!(
            "header {name}: expected no space at its ends, where it would get lost"
        )));
    }
    if text.len() > HEADER_BYTES_MAX {
        return Err(invalid(format!("header {name}: longer than {HEADER_BYTES_MAX} bytes")));
    }
    HeaderValue::from_str(text)
        .map_err(|_| invalid(format!("header {name}: expected visible ASCII characters")))
}

fn body(tool: &Tool, parameters: &Map<String, Value>) -> Result<Option<(&'static str, Vec<u8>)>, Failure> {
    let json = |value: &Map<String, Value>| {
        ("application/json", serde_json::to_vec(value).expect("a JSON value can be written"))
    };
    match &tool.body {
        Body::None => Ok(None),
        Body::Json => Ok(Some(json(parameters))),
        Body::Only(names) => {
            let field = |name: &String| Some((name.clone(), parameters.get(name)?.clone()));
            Ok(Some(json(&names.iter().filter_map(field).collect())))
        }
        Body::Form => {
            let mut pairs = Vec::new();
            for (name, value) in parameters {
                for text in list(name, value)? {
                    pairs.push(format!("{}={}", encoded(name), encoded(&text)));
                }
            }
            Ok(Some(("application/x-www-form-urlencoded", pairs.join("&").into_bytes())))
        }
    }
}

impl Filling<'_> {
    /// Of a path: never empty, and nothing that could lead to another one.
    fn segment(&self, template: &Template) -> Result<String, Failure> {
        let mut segment = String::new();
        for piece in &template.pieces {
            match piece {
                Piece::Text(text) => segment.push_str(text),
                Piece::Slot(name) => segment.push_str(&encoded(&self.in_path(name)?)),
                Piece::Secret(_) => return Err(invalid("a secret cannot be part of a path")),
            }
        }
        if is_dots(&segment) {
            return Err(invalid("`.` and `..` cannot be part of a path"));
        }
        Ok(segment)
    }

    fn in_path(&self, name: &str) -> Result<String, Failure> {
        let text = self.text(name)?;
        if text.is_empty() {
            return Err(invalid(format!("{name:?} must not be empty: it is part of a path")));
        }
        // Encoded they mean nothing else to us, but some servers decode before they look at the path.
        if text.contains(char::is_control) || text.split(['/', '\\']).any(is_dots) {
            return Err(invalid(format!(
                "{name:?} is part of a path: no `..` and no control characters there"
            )));
        }
        Ok(text)
    }

    /// What a template stands for: mostly one text; none or several where it is one slot alone.
    async fn texts(&self, place: &str, template: &Template) -> Result<Vec<Secret>, Failure> {
        if let Some(name) = template.only_slot() {
            let texts = list(place, self.parameters.get(name).unwrap_or(&Value::Null))?;
            return Ok(texts.into_iter().map(Secret::new).collect());
        }
        let mut filled = String::new();
        for piece in &template.pieces {
            match piece {
                Piece::Text(text) => filled.push_str(text),
                Piece::Slot(name) => filled.push_str(&self.text(name)?),
                Piece::Secret(name) => filled.push_str(self.vault.resolve(name).await?.text()),
            }
        }
        Ok(vec![Secret::new(filled)])
    }

    fn text(&self, name: &str) -> Result<String, Failure> {
        let text = self.parameters.get(name).and_then(written);
        text.ok_or_else(|| invalid(format!("{name:?} must be a text, a number or a boolean")))
    }
}

/// The texts of a value that may be left out or be a list.
fn list(name: &str, value: &Value) -> Result<Vec<String>, Failure> {
    let refused = || invalid(format!("{name:?} must be a text, a number, a boolean or a list of these"));
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.iter().map(|item| written(item).ok_or_else(refused)).collect(),
        value => Ok(vec![written(value).ok_or_else(refused)?]),
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Category::InvalidInput, message)
}
