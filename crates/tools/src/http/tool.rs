//! One configured kind of request, checked: what the operator wrote became what can be sent.

use super::check::Check;
use super::template::Template;
use crate::config::http::{self, Body, Meaning, Method, Statuses};
use crate::connector::Served;
use reqwest::header::HeaderName;
use rutter_core::hash::Hash;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use url::Url;

const REDIRECTS_MAX: u8 = 3;

#[derive(Debug)]
pub(super) struct Tool {
    pub(super) method: Method,
    /// Between the slashes of the path.
    pub(super) segments: Vec<Template>,
    pub(super) query: Vec<(String, Template)>,
    pub(super) headers: Vec<(HeaderName, Template)>,
    pub(super) body: Body,
    pub(super) result: Option<String>,
    pub(super) idempotency_header: Option<HeaderName>,
    pub(super) outcome: BTreeMap<Statuses, Meaning>,
    pub(super) redirects: u8,
    /// Method and URL with the slots unfilled, for messages.
    pub(super) shape: String,
    pub(super) served: Served,
}

impl Tool {
    /// Reads one tool. All that is wrong with it goes into `check`, and then the tool is not to be used.
    pub(super) fn read(
        name: &str,
        tool: &http::Tool,
        server: &http::Server,
        base: &Url,
        check: &mut Check<'_>,
    ) -> Tool {
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
            if matches!(statuses, Statuses::One(200..=299) | Statuses::Class(2)) && meaning.verdict.is_none()
            {
                check.problem("outcome", "a category for a 2xx needs `not_done` or `maybe` before it");
            }
        }
        let texts = query.iter().map(|(_, text)| text).chain(headers.iter().map(|(_, text)| text));
        check.declared(tool, segments.iter().chain(texts).flat_map(Template::slots));
        let shape = format!("{} {}{}", tool.method.as_str(), base.as_str().trim_end_matches('/'), tool.path);
        let served = Served { name: name.to_owned(), definition: definition(tool, server, &shape) };
        Tool {
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

/// What a plan pins. The request is part of the description, so that a request that became another one is noticed;
/// what a reader does not want to see of it stands there as a hash.
fn definition(tool: &http::Tool, server: &http::Server, shape: &str) -> Map<String, Value> {
    let rest = json!([
        tool.query,
        server.headers,
        tool.headers,
        format!("{:?}", tool.body()),
        tool.result,
        tool.idempotency_header,
        format!("{:?}", tool.outcome),
        tool.redirects,
    ]);
    let rest = Hash::of(&[rest.to_string().as_bytes()]).short();
    let request = format!("Sends {shape} (request {rest}).");
    let description = match tool.description.trim() {
        "" => request,
        description => format!("{description}\n\n{request}"),
    };
    let input =
        tool.input.as_ref().map_or_else(|| json!({"type": "object"}), |schema| schema.0.clone().into());
    let mut definition = Map::new();
    definition.insert("description".to_owned(), description.into());
    definition.insert("inputSchema".to_owned(), input);
    if let Some(output) = &tool.output {
        definition.insert("outputSchema".to_owned(), output.0.clone().into());
    }
    definition.insert("annotations".to_owned(), annotations(tool));
    definition
}

/// A request with its key in a header may be repeated: the server tells a repetition by the key.
fn annotations(tool: &http::Tool) -> Value {
    match (tool.method.reads(), &tool.idempotency_header) {
        (true, _) => json!({"readOnlyHint": true}),
        (false, Some(_)) => json!({"readOnlyHint": false, "idempotentHint": true}),
        (false, None) => json!({"readOnlyHint": false}),
    }
}
