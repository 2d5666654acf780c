//! The OpenAPI document and the API's pages match the program.
//!
//! `UPDATE_GOLDENS=1` regenerates docs/openapi.json; review the diff before committing it.

use crate::api::harbour::Harbour;
use rutter_api::openapi;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn the_committed_document_is_up_to_date() {
    let now = format!("{}\n", serde_json::to_string_pretty(openapi::document()).unwrap());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, &now).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == now, "docs/openapi.json is out of date; UPDATE_GOLDENS=1 regenerates it");
}

#[test]
fn every_operation_id_is_unique_and_every_reference_resolves() {
    let document = Value::Object(openapi::document().clone());
    let mut names = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let name = operation["operationId"].as_str().unwrap();
            assert!(names.insert(name.to_owned()), "{method} {path}: {name} is taken");
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{path}");
        }
    }
    assert!(names.len() > 30);
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    let name = reference.strip_prefix("#/components/schemas/").unwrap();
                    assert!(schemas.contains_key(name), "{reference}");
                }
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    for (name, schema) in schemas {
        assert!(jsonschema::meta::validate(schema).is_ok(), "{name} is no JSON Schema");
    }
}

#[tokio::test]
async fn pages_explain_every_operation_and_every_code() {
    let harbour = Harbour::new().await;
    let anybody = harbour.nobody();
    let page = anybody.get("/api/docs").await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
    assert!(!page.text.contains("<script") && !page.text.contains(" style="));
    for methods in openapi::document()["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(page.text.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }
    let problem = anybody.get("/plans").await;
    let (address, code) = problem.body["type"].as_str().unwrap().split_once('#').unwrap();
    let codes = anybody.get(address).await;
    assert!(codes.text.contains(&format!("<h3 id=\"{code}\">")));
    assert!(anybody.get("/api/docs/style.css").await.header("content-type").starts_with("text/css"));
    let served = anybody.get("/openapi.json").await.good();
    assert_eq!(served, Value::Object(openapi::document().clone()));
}
