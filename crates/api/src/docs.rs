//! The API documentation pages, generated from the table of routes: every operation, and every error code.

use crate::encode::escaped;
use crate::openapi;
use axum::http::{HeaderValue, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde_json::{Map, Value};
use std::fmt::Write;
use std::sync::LazyLock;

const ERRORS: &str = include_str!("../../../docs/errors.md");
const STYLE: &str = include_str!("docs.css");
const POLICY: &str =
    "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

static PAGE: LazyLock<String> = LazyLock::new(|| whole("The HTTP API", &operations(openapi::document())));
static CODES: LazyLock<String> = LazyLock::new(|| whole("Error codes", &markdown(ERRORS)));

pub(crate) async fn page() -> Response {
    guarded(Html(PAGE.as_str()).into_response())
}

pub(crate) async fn errors() -> Response {
    guarded(Html(CODES.as_str()).into_response())
}

pub(crate) async fn style() -> Response {
    guarded(([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE).into_response())
}

pub(crate) async fn there() -> Redirect {
    Redirect::permanent("/api/docs")
}

fn guarded(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

fn whole(title: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} · Rutter</title>\n\
         <link rel=\"stylesheet\" href=\"/api/docs/style.css\">\n</head>\n<body>\n\
         <header><a href=\"/\">Rutter</a> <a href=\"/api/docs\">API</a> <a href=\"/api/docs/errors\">Codes</a> \
         <a href=\"/api/v1/openapi.json\">OpenAPI</a></header>\n<main>\n<h1>{title}</h1>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// Every operation, grouped by tag.
fn operations(document: &Map<String, Value>) -> String {
    let mut tags: Vec<(String, String, String)> = Vec::new();
    let paths = document["paths"].as_object();
    for (path, methods) in paths.into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let tag = operation["tags"][0].as_str().unwrap_or_default();
            let (mut link, mut text) = (String::new(), String::new());
            // Writing to a string cannot fail.
            let _ = describe(&mut link, &mut text, document, path, method, operation);
            match tags.iter_mut().find(|(known, _, _)| known == tag) {
                Some((_, links, texts)) => {
                    links.push_str(&link);
                    texts.push_str(&text);
                }
                None => tags.push((tag.to_owned(), link, text)),
            }
        }
    }
    let links: String = tags.iter().map(|(tag, links, _)| format!("<li>{tag}<ul>{links}</ul></li>\n")).collect();
    let texts: String =
        tags.iter().map(|(tag, _, texts)| format!("<section><h2>{tag}</h2>\n{texts}</section>\n")).collect();
    format!(
        "<p>Everything is JSON. Send <code>Authorization: Bearer KEY</code>; <code>rutter key create</code> creates a \
         key. Errors are <code>application/problem+json</code> with a \
         <a href=\"/api/docs/errors\">code</a>.</p>\n<nav aria-label=\"Operations\"><ul>\n{links}</ul></nav>\n{texts}"
    )
}

fn describe(
    link: &mut String,
    text: &mut String,
    document: &Map<String, Value>,
    path: &str,
    method: &str,
    operation: &Value,
) -> std::fmt::Result {
    let id = escaped(operation["operationId"].as_str().unwrap_or_default());
    let (path, method) = (escaped(path), method.to_uppercase());
    write!(link, "<li><a href=\"#{id}\"><b>{method}</b> {path}</a></li>")?;
    writeln!(text, "<article id=\"{id}\">\n<h3><b>{method}</b> <code>{path}</code></h3>")?;
    let summary = escaped(operation["summary"].as_str().unwrap_or_default());
    let scope = operation["x-scope"].as_str().unwrap_or("none");
    writeln!(text, "<p>{summary}. Scope: <code>{scope}</code>.</p>")?;
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let rows: String = parameters
        .map(|parameter| {
            let place = parameter["in"].as_str().unwrap_or_default();
            row(parameter["name"].as_str().unwrap_or_default(), place, &parameter["schema"], &parameter["description"])
        })
        .collect();
    table(text, "Parameters", &rows)?;
    let body = resolved(document, &operation["requestBody"]["content"]["application/json"]["schema"]);
    table(text, "Body", &fields(body))?;
    let responses = operation["responses"].as_object();
    for (status, response) in responses.into_iter().flatten().filter(|(status, _)| status.starts_with('2')) {
        let schema = resolved(document, &response["content"]["application/json"]["schema"]);
        table(text, &format!("Response {status}"), &fields(schema))?;
    }
    let refusals = responses.into_iter().flatten().filter(|(status, _)| !status.starts_with('2'));
    let refusals: Vec<&str> = refusals.map(|(status, _)| status.as_str()).collect();
    writeln!(text, "<p>Other responses: {}.</p>\n</article>", refusals.join(", "))
}

fn resolved<'a>(document: &'a Map<String, Value>, schema: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next());
    name.map_or(schema, |name| &document["components"]["schemas"][name])
}

fn fields(schema: &Value) -> String {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema["properties"].as_object();
    let each = |(name, field): (&String, &Value)| {
        let place = if required.contains(&name.as_str()) { "always" } else { "" };
        row(name, place, field, &field["description"])
    };
    fields.into_iter().flatten().map(each).collect()
}

fn row(name: &str, place: &str, schema: &Value, description: &Value) -> String {
    let meaning = escaped(description.as_str().unwrap_or_default());
    let kind = escaped(&kind(schema));
    format!("<tr><td><code>{}</code></td><td>{place}</td><td>{kind}</td><td>{meaning}</td></tr>\n", escaped(name))
}

fn kind(schema: &Value) -> String {
    let words = |list: &[Value]| list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | ");
    if let Some(reference) = schema["$ref"].as_str() {
        return reference.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if let Some(choices) = schema["enum"].as_array() {
        return words(choices);
    }
    for either in ["anyOf", "oneOf"] {
        if let Some(choices) = schema[either].as_array() {
            let names = choices.iter().map(kind).filter(|name| name != "null");
            return names.collect::<Vec<_>>().join(" | ");
        }
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => words(names).replace(" | null", ""),
        _ => schema["const"].as_str().unwrap_or("any").to_owned(),
    }
}

fn table(text: &mut String, caption: &str, rows: &str) -> std::fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "<table><caption>{caption}</caption><thead><tr><th>name</th><th></th><th>type</th><th>meaning</th></tr></thead>\
         <tbody>\n{rows}</tbody></table>"
    )
}

/// Renders the subset of Markdown that docs/errors.md uses.
fn markdown(text: &str) -> String {
    let mut page = String::new();
    for block in text.split("\n\n").map(str::trim).filter(|block| !block.is_empty() && !block.starts_with("# ")) {
        let inline = |text: &str| {
            let parts = text.split('`').enumerate();
            let answer = parts.map(|(at, part)| match at % 2 {
                0 => escaped(part),
                _ => format!("<code>{}</code>", escaped(part)),
            });
            answer.collect::<String>()
        };
        let message = match (block.strip_prefix("### "), block.strip_prefix("## ")) {
            (Some(rest), _) => {
                let (code, rest) = rest.split_once('\n').unwrap_or((rest, ""));
                let rest = if rest.is_empty() { String::new() } else { format!("<p>{}</p>", inline(rest)) };
                format!("<h3 id=\"{}\">{}</h3>{rest}", escaped(code.trim_matches('`')), inline(code))
            }
            (None, Some(title)) => format!("<h2>{}</h2>", inline(title)),
            (None, None) => format!("<p>{}</p>", inline(block)),
        };
        page.push_str(&message);
        page.push('\n');
    }
    page
}
