//! The OpenAPI 3.1 document, generated from the table of routes.

use crate::idempotent_replies::Idempotency;
use crate::problem::{MEDIA_TYPE, ProblemDetails};
use crate::route::BASE;
use crate::route::{ApiRoute, RouteOutput};
use crate::routes;
use axum::http::StatusCode;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static DOCUMENT: LazyLock<Map<String, Value>> = LazyLock::new(make);

pub fn document() -> &'static Map<String, Value> {
    &DOCUMENT
}

/// Requests and responses need separate schemas: an optional field of a request is always present in a response.
struct SchemaGenerators {
    incoming: SchemaGenerator,
    outgoing: SchemaGenerator,
}

fn make() -> Map<String, Value> {
    let settings = || {
        SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
    };
    let mut generators = SchemaGenerators {
        incoming: settings().into_generator(),
        outgoing: settings().for_serialize().into_generator(),
    };
    let problem = generators.outgoing.subschema_for::<ProblemDetails>();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes::all() {
        let path = paths.entry(format!("{BASE}{}", route.about.path)).or_insert_with(|| json!({}));
        path[route.about.method.as_str().to_lowercase()] = operation(&mut generators, route, &json!(problem));
    }
    let mut schemas = generators.outgoing.take_definitions(true);
    for (name, schema) in generators.incoming.take_definitions(true) {
        schemas.entry(name).or_insert(schema);
    }
    for schema in schemas.values_mut() {
        plain(schema);
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rutter",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Checks plans of tool calls, executes them, and journals what happened \
                            tamper-evidently.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "A key of `rutter key create`, or a token" },
            },
        },
    });
    document.as_object().cloned().unwrap_or_default()
}

fn operation(generators: &mut SchemaGenerators, route: &ApiRoute, problem: &Value) -> Value {
    let about = &route.about;
    let mut operation = json!({
        "operationId": about.operation,
        "summary": about.summary,
        "tags": [about.tag],
        "parameters": parameters(generators, route),
        "responses": responses(generators, route, problem),
    });
    match about.right {
        Some(right) => operation["x-scope"] = json!(right.scope().as_str()),
        None => operation["security"] = json!([]),
    }
    if let Some(body) = route.body {
        let mut schema = json!(body(&mut generators.incoming));
        plain(&mut schema);
        operation["requestBody"] = json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    operation
}

fn parameters(generators: &mut SchemaGenerators, route: &ApiRoute) -> Vec<Value> {
    let about = &route.about;
    let mut parameters: Vec<Value> = about
        .parts()
        .map(|name| {
            let kind = match name {
                "revision" | "number" => json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
                _ => json!({ "type": "string", "minLength": 1 }),
            };
            json!({ "name": name, "in": "path", "required": true, "schema": kind })
        })
        .collect();
    let mut query = json!((route.query)(&mut generators.incoming));
    plain(&mut query);
    let fields = query.get("properties").and_then(Value::as_object);
    for (name, schema) in fields.into_iter().flatten() {
        let mut schema = schema.clone();
        // A query has no null: absent values are omitted.
        without_null(&mut schema);
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let mut parameter = json!({ "name": name, "in": "query", "schema": schema });
        if let Some(description) = description {
            parameter["description"] = description;
        }
        parameters.push(parameter);
    }
    let mut header = |name: &str, description: &str, schema: Value| {
        parameters.push(json!({ "name": name, "in": "header", "description": description, "schema": schema }));
    };
    if about.idempotency != Idempotency::No {
        let schema = json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" });
        header("Idempotency-Key", "A request repeated with the same key takes effect once", schema);
    }
    if about.refuses.contains(&412) {
        let schema = json!({ "type": "string" });
        header("If-Match", "Refused with 412 unless the execution still has this ETag", schema);
    }
    if about.success.contains(&304) {
        header("If-None-Match", "Answered with 304 if it still has this ETag", json!({ "type": "string" }));
    }
    if matches!(route.output, RouteOutput::Other("text/event-stream")) {
        let schema = json!({ "type": "string", "pattern": "^[0-9]{1,18}$" });
        header("Last-Event-ID", "Resume after this position of the ledger", schema);
    }
    parameters
}

fn responses(generators: &mut SchemaGenerators, route: &ApiRoute, problem: &Value) -> Value {
    let mut responses = Map::new();
    let content = match &route.output {
        RouteOutput::Json(schema) => {
            let mut schema = json!(schema(&mut generators.outgoing));
            plain(&mut schema);
            json!({ "application/json": { "schema": schema } })
        }
        RouteOutput::Other(media_type) => json!({ *media_type: { "schema": { "type": "string" } } }),
    };
    let about = &route.about;
    for status in about.success {
        let mut response = json!({ "description": reason(*status) });
        if !matches!(status, 204 | 304) {
            response["content"] = content.clone();
        }
        if about.success.contains(&304) {
            response["headers"] = json!({ "ETag": { "schema": { "type": "string" } } });
        }
        responses.insert(status.to_string(), response);
    }
    for status in route.refusals() {
        let mut response = json!({ "description": reason(status), "content": { MEDIA_TYPE: { "schema": problem } } });
        if matches!(status, 429 | 503) {
            let schema = json!({ "type": "integer" });
            response["headers"] = json!({ "Retry-After": { "description": "Seconds", "schema": schema } });
        }
        responses.insert(status.to_string(), response);
    }
    responses.sort_keys();
    Value::Object(responses)
}

fn reason(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or("Error")
}

/// Removes number formats that are specific to Rust.
fn plain(schema: &mut Value) {
    let Ok(mut typed) = schemars::Schema::try_from(std::mem::take(schema)) else { return };
    let each = |schema: &mut schemars::Schema| {
        let Some(object) = schema.as_object_mut() else { return };
        let is_number = |format: &str| format.starts_with("uint") || format.starts_with("int") || format == "double";
        if object.get("format").and_then(Value::as_str).is_some_and(is_number) {
            object.remove("format");
        }
    };
    RecursiveTransform(each).transform(&mut typed);
    *schema = json!(typed);
}

fn without_null(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(types)) = object.get("type") {
        let types: Vec<Value> = types.iter().filter(|name| *name != "null").cloned().collect();
        if let [only] = types.as_slice() {
            object.insert("type".to_owned(), only.clone());
        }
    }
}
