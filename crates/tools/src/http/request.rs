//! Builds the request from a tool and its parameters. Parameters are encoded, never spliced in.

use super::check::{is_dots, is_visible};
use super::template::{HttpTemplate, HttpTemplatePiece, written};
use super::tool::HttpTool;
use crate::config::http::RequestBody;
use crate::secret::{SecretValue, SecretVault};
use reqwest::Request;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use rutter_core::encoding::percent_encoded;
use rutter_core::tool::{FailureCategory, ToolFailure};
use serde_json::{Map, Value};
use url::Url;

const URL_BYTES_MAX: usize = 8 << 10;
const HEADER_BYTES_MAX: usize = 8 << 10;

/// The values for the slots and secrets of one request.
pub(super) struct SlotValues<'a> {
    pub(super) parameters: &'a Map<String, Value>,
    pub(super) key: &'a str,
    pub(super) vault: &'a SecretVault,
}

pub(super) async fn build(tool: &HttpTool, base: &Url, filling: &SlotValues<'_>) -> Result<Request, ToolFailure> {
    let url = url(tool, base, filling).await?;
    let method = tool.method.as_str().parse().expect("every method has a valid name");
    let mut request = Request::new(method, url);
    *request.headers_mut() = headers(tool, filling).await?;
    if let Some((kind, bytes)) = body(tool, filling.parameters)? {
        request.headers_mut().entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
        *request.body_mut() = Some(bytes.into());
    }
    Ok(request)
}

async fn url(tool: &HttpTool, base: &Url, filling: &SlotValues<'_>) -> Result<Url, ToolFailure> {
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

async fn headers(tool: &HttpTool, filling: &SlotValues<'_>) -> Result<HeaderMap, ToolFailure> {
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

fn header_value(name: &HeaderName, text: &str) -> Result<HeaderValue, ToolFailure> {
    if !text.bytes().all(is_visible) {
        return Err(invalid(format!("header {name}: expected visible ASCII characters")));
    }
    if text.trim() != text {
        return Err(invalid(format!("header {name}: expected no leading or trailing space")));
    }
    if text.len() > HEADER_BYTES_MAX {
        return Err(invalid(format!("header {name}: longer than {HEADER_BYTES_MAX} bytes")));
    }
    HeaderValue::from_str(text).map_err(|_| invalid(format!("header {name}: expected visible ASCII characters")))
}

fn body(tool: &HttpTool, parameters: &Map<String, Value>) -> Result<Option<(&'static str, Vec<u8>)>, ToolFailure> {
    let json = |value: &Map<String, Value>| {
        ("application/json", serde_json::to_vec(value).expect("a JSON value can be written"))
    };
    match &tool.body {
        RequestBody::None => Ok(None),
        RequestBody::Json => Ok(Some(json(parameters))),
        RequestBody::Only(names) => {
            let field = |name: &String| Some((name.clone(), parameters.get(name)?.clone()));
            Ok(Some(json(&names.iter().filter_map(field).collect())))
        }
        RequestBody::Form => {
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

impl SlotValues<'_> {
    /// A segment of the path: never empty, and nothing that could lead to another path.
    fn segment(&self, template: &HttpTemplate) -> Result<String, ToolFailure> {
        let mut segment = String::new();
        for piece in &template.pieces {
            match piece {
                HttpTemplatePiece::Text(text) => segment.push_str(text),
                HttpTemplatePiece::Slot(name) => segment.push_str(&encoded(&self.in_path(name)?)),
                HttpTemplatePiece::Secret(_) => return Err(invalid("a secret cannot be part of a path")),
            }
        }
        if is_dots(&segment) {
            return Err(invalid("`.` and `..` cannot be part of a path"));
        }
        Ok(segment)
    }

    fn in_path(&self, name: &str) -> Result<String, ToolFailure> {
        let text = self.text(name)?;
        if text.is_empty() {
            return Err(invalid(format!("{name:?} must not be empty: it is part of a path")));
        }
        // Encoded they are harmless here, but some servers decode before they read the path.
        if text.contains(char::is_control) || text.split(['/', '\\']).any(is_dots) {
            return Err(invalid(format!("{name:?} is part of a path: no `..` and no control characters there")));
        }
        Ok(text)
    }

    /// The values of a template: usually one; none or several if it is a single slot.
    async fn texts(&self, place: &str, template: &HttpTemplate) -> Result<Vec<SecretValue>, ToolFailure> {
        if let Some(name) = template.only_slot() {
            let texts = list(place, self.parameters.get(name).unwrap_or(&Value::Null))?;
            return Ok(texts.into_iter().map(SecretValue::new).collect());
        }
        let mut filled = String::new();
        for piece in &template.pieces {
            match piece {
                HttpTemplatePiece::Text(text) => filled.push_str(text),
                HttpTemplatePiece::Slot(name) => filled.push_str(&self.text(name)?),
                HttpTemplatePiece::Secret(name) => filled.push_str(self.vault.resolve(name).await?.text()),
            }
        }
        Ok(vec![SecretValue::new(filled)])
    }

    fn text(&self, name: &str) -> Result<String, ToolFailure> {
        let text = self.parameters.get(name).and_then(written);
        text.ok_or_else(|| invalid(format!("{name:?} must be a text, a number or a boolean")))
    }
}

/// The texts of a value that may be null or a list.
fn list(name: &str, value: &Value) -> Result<Vec<String>, ToolFailure> {
    let refused = || invalid(format!("{name:?} must be a text, a number, a boolean or a list of these"));
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.iter().map(|item| written(item).ok_or_else(refused)).collect(),
        value => Ok(vec![written(value).ok_or_else(refused)?]),
    }
}

fn encoded(text: &str) -> String {
    percent_encoded(text, "")
}

fn invalid(message: impl Into<String>) -> ToolFailure {
    ToolFailure::new(FailureCategory::InvalidInput, message)
}
