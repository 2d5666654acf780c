//! What a plan can read of an answer: the check knows it before, and the step gets it.

use crate::mcp::fixture::scripted;
use crate::registry::fixture::Safe;
use rutter_core::plan::Driver;
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::port::tools::{CallReturn, CatalogSnapshot, ServerSelection, ToolGateway};
use rutter_core::time::Timestamp;
use rutter_core::tool::CallOutcome;
use rutter_tools::config::{CallLimits, ServerSettings};
use rutter_tools::registry::{ServerRegistration, ToolRegistry};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

fn codes(catalog: &CatalogSnapshot, read: &str) -> Vec<&'static str> {
    let plan = json!({"name": "p", "steps": [
        {"id": "log", "tool": "log.work"},
        {"id": "say", "tool": "log.work", "parameters": {"text": format!("{{{{ steps.log.result.{read} }}}}")}},
    ]});
    let bytes = plan.to_string().into_bytes();
    let check = read_and_check(&bytes, DocumentFormat::Json, &catalog.tools, Driver::Server, None);
    check.diagnostics.into_iter().map(|found| found.code).filter(|code| code.ends_with("_path")).collect()
}

#[tokio::test]
async fn the_text_of_an_ordinary_answer_is_known_to_the_check_and_in_the_result() {
    let scripted = scripted("plain");
    let connector = Arc::new(scripted.server);
    let registration = ServerRegistration { name: "log".to_owned(), connector, common: ServerSettings::default() };
    let secrets = Arc::new(Safe(BTreeMap::new()));
    let clock = Arc::new(|| Timestamp(0));
    let registry = ToolRegistry::new(vec![registration], &CallLimits::default(), secrets, clock).unwrap();
    let catalog = registry.catalog(ServerSelection::All).await;
    assert_eq!(codes(&catalog, "text"), Vec::<&str>::new());
    assert_eq!(codes(&catalog, "content[0].text"), Vec::<&str>::new());
    assert_eq!(codes(&catalog, "stdout"), ["plan.undeclared_path"]);
    let CallReturn::Outcome(CallOutcome::Done { result, .. }) =
        registry.call_once(&rutter_core::id::ToolName::new("log.work"), None, json!({})).await
    else {
        panic!("the call failed")
    };
    assert_eq!(*result, json!({"text": "worked", "content": [{"type": "text", "text": "worked"}]}));
    registry.close().await;
}
