//! One configured kind of request, validated and ready to be sent.

use super::check::HttpConfigCheck;
use super::template::HttpTemplate;
use crate::config::http::{self, HttpMethod, RequestBody, StatusMeaning, StatusPattern};
use crate::connector::ServedTool;
use reqwest::header::HeaderName;
use rutter_core::hash::Hash;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use url::Url;

const REDIRECTS_MAX: u8 = 3;

#[derive(Debug)]
pub(super) struct HttpTool {
    pub(super) method: HttpMethod,
    /// Between the slashes of the path.
    pub(super) segments: Vec<HttpTemplate>,
    pub(super) query: Vec<(String, HttpTemplate)>,
    pub(super) headers: Vec<(HeaderName, HttpTemplate)>,
    pub(super) body: RequestBody,
    pub(super) result: Option<String>,
    pub(super) idempotency_header: Option<HeaderName>,
    pub(super) outcome: BTreeMap<StatusPattern, StatusMeaning>,
    pub(super) redirects: u8,
    /// Method and URL with the slots unfilled, for messages.
    pub(super) shape: String,
    pub(super) served: ServedTool,
}

impl HttpTool {
    /// Reads one tool. Its problems go into `check`; a tool with problems must not be used.
    pub(super) fn read(
        name: &str,
        tool: &http::HttpToolConfig,
        server: &http::HttpServerConfig,
        base: &Url,
        check: &mut HttpConfigCheck<'_>,
    ) -> HttpTool {
        let segments = check.path(&tool.path);
        let query = check.query(&tool.query);
        let headers = check.headers(&server.headers, &tool.headers);
        let idempotency_header =
            tool.idempotency_header.as_ref().and_then(|name| check.header_name("idempotency_header", name));
        if let Some(header) = &idempotency_header
            && headers.iter().any(|(other, _)| other == header)
        {
            check.problem("idempotency_header", "this header is under `headers` too; leave it out there");
        }
        if tool.result.as_ref().is_some_and(|pointer| !pointer.is_empty() && !pointer.starts_with('/')) {
            check.problem("result", "expected a JSON pointer such as `/data/order`");
        }
        if tool.redirects > REDIRECTS_MAX {
            check.problem("redirects", &format!("expected at most {REDIRECTS_MAX}"));
        }
        for (statuses, meaning) in &tool.outcome {
            if matches!(statuses, StatusPattern::One(200..=299) | StatusPattern::Class(2)) && meaning.verdict.is_none()
            {
                check.problem("outcome", "a category for a 2xx needs `not_done` or `maybe` before it");
            }
        }
        let texts = query.iter().map(|(_, text)| text).chain(headers.iter().map(|(_, text)| text));
        check.declared(tool, segments.iter().chain(texts).flat_map(HttpTemplate::slots));
        let shape = format!("{} {}{}", tool.method.as_str(), base.as_str().trim_end_matches('/'), tool.path);
        let served = ServedTool { name: name.to_owned(), definition: definition(tool, server, &shape), result: None };
        HttpTool {
            method: tool.method,
            segments,
            query,
            headers,
            body: tool.body(),
            result: tool.result.clone(),
            idempotency_header,
            outcome: tool.outcome.clone(),
            redirects: tool.redirects,
            shape,
            served,
        }
    }
}

/// The definition that a plan pins. The request is part of the description, so that a changed request is drift; its
/// details are included as a hash.
fn definition(tool: &http::HttpToolConfig, server: &http::HttpServerConfig, shape: &str) -> Map<String, Value> {
    let rest = json!([
        tool.query,
        server.headers,
        tool.headers,
        format!("{:?}", tool.body()),
        tool.result,
        tool.idempotency_header,
        // Plans pin the text of earlier versions, in which the type had this name.
        format!("{:?}", tool.outcome).replace("StatusMeaning {", "Meaning {"),
        tool.redirects,
    ]);
    let rest = Hash::of(&[rest.to_string().as_bytes()]).short();
    let request = format!("Sends {shape} (request {rest}).");
    let description = match tool.description.trim() {
        "" => request,
        description => format!("{description}\n\n{request}"),
    };
    let input = tool.input.as_ref().map_or_else(|| json!({"type": "object"}), |schema| schema.0.clone().into());
    let mut definition = Map::new();
    definition.insert("description".to_owned(), description.into());
    definition.insert("inputSchema".to_owned(), input);
    if let Some(output) = &tool.output {
        definition.insert("outputSchema".to_owned(), output.0.clone().into());
    }
    definition.insert("annotations".to_owned(), annotations(tool));
    definition
}

/// Plans pin the hints of earlier versions, in which a request with a key was idempotent; its safety is now that of a
/// call with a key.
fn annotations(tool: &http::HttpToolConfig) -> Value {
    match (tool.method.reads(), &tool.idempotency_header) {
        (true, _) => json!({"readOnlyHint": true}),
        (false, Some(_)) => json!({"readOnlyHint": false, "idempotentHint": true}),
        (false, None) => json!({"readOnlyHint": false}),
    }
}
