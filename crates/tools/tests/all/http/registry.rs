//! HTTP tools through the registry: what plans see of them, and one whole call with a secret.

use crate::http::fixture::*;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, StepId, TenantId, ToolName};
use rutter_core::journal::event::CallSide;
use rutter_core::port::tools::{CallPermit, CallReturn, ServerSelection, ToolCallId, ToolCallRequest, ToolGateway};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{CallOutcome, FailureCategory, Safety};
use rutter_tools::registry::{SecretResolver, ServerRegistration, ToolRegistry};
use rutter_tools::secret::SecretVault;
use serde_json::{Value, json};
use std::sync::Arc;

const CANARY: &str = "canary-of-the-mine";

const TEXT: &str = r#"
    [http.shop]
    base = "BASE"
    allow = ["127.0.0.1"]
    [http.shop.tools.find]
    path = "/orders/{id}"
    input = { type = "object", properties = { id = { type = "string" } }, required = ["id"] }
    [http.shop.tools.order]
    method = "POST"
    path = "/orders"
    input = { type = "object", properties = { password = { type = "string" } } }
    [http.shop.tools.keyed]
    method = "POST"
    path = "/orders"
    idempotency_header = "Idempotency-Key"
    [http.shop.tools.put]
    method = "PUT"
    path = "/orders"
    safety = "idempotent"
    [http.shop.tools.secret]
    path = "/"
    hidden = true
    [secrets]
    password = { env = "PASSWORD" }
"#;

fn registry(base: &str, text: &str) -> (ToolRegistry, Arc<SecretVault>) {
    let config = config(base, text).unwrap();
    let vault = Arc::new(SecretVault::new(config.secrets.clone(), Arc::new(|_| Some(CANARY.to_owned()))));
    let connector = Arc::new(with_vault(&config, Arc::clone(&vault)).unwrap());
    let entrant = ServerRegistration { name: "shop".to_owned(), connector, common: config.http["shop"].common() };
    let secrets = Arc::clone(&vault) as Arc<dyn SecretResolver>;
    (ToolRegistry::new(vec![entrant], &config.limits, secrets, Arc::new(|| Timestamp(0))).unwrap(), vault)
}

fn name(text: &str) -> ToolName {
    ToolName::new(text)
}

async fn call_through(registry: &ToolRegistry, tool: &str, definition: Hash, parameters: Value) -> CallReturn {
    let identity = ExecutionIdentity { tenant: TenantId::new("t"), execution: ExecutionId::new("exec_1") };
    let call = ToolCallRequest {
        id: ToolCallId { identity, part: PartId::whole(StepId::new("a")), side: CallSide::Do, attempt: 1 },
        tool: name(tool),
        definition,
        parameters: Arc::new(parameters),
        key: Hash::of(&[b"key"]),
        timeout: Millis::seconds(10),
        now: Timestamp(0),
        ticket: None,
        continuation: None,
        reporter: request(tool, json!({})).reporter,
    };
    registry.call(call, CallPermit::unlimited()).await
}

#[tokio::test]
async fn plans_see_tools_with_the_safety_that_their_requests_have() {
    let fixture = HttpFixture::answering("").await;
    let (registry, _) = registry(&fixture.base(), TEXT);
    let catalog = registry.catalog(ServerSelection::All).await;
    assert!(catalog.absent.is_empty(), "{:?}", catalog.absent);
    let safety: Vec<(&str, Safety)> =
        catalog.tools.tools.values().map(|tool| (tool.name.as_str(), tool.safety)).collect();
    assert_eq!(
        safety,
        [
            ("shop.find", Safety::ReadOnly),
            // Its repeats are dropped by the key, for as long as the key is remembered.
            ("shop.keyed", Safety::Once),
            ("shop.order", Safety::Once),
            ("shop.put", Safety::Idempotent),
        ]
    );
    let keyed: Vec<&str> =
        catalog.tools.tools.values().filter(|tool| tool.sends_key).map(|tool| tool.name.as_str()).collect();
    assert_eq!(keyed, ["shop.keyed"]);
    assert_eq!(fixture.connections(), 0);
}

#[tokio::test]
async fn a_secret_goes_out_and_does_not_come_back() {
    let fixture = HttpFixture::start(|seen| match seen {
        Some(seen) => Act::Send(json_answer("200 OK", &json!({"you sent": seen.json()["password"]}))),
        None => Act::Send(Vec::new()),
    })
    .await;
    let (registry, _) = registry(&fixture.base(), TEXT);
    registry.catalog(ServerSelection::All).await;
    let definition = registry.definition(&name("shop.order")).unwrap();
    let parameters = json!({"password": {"secret": "password"}});
    let CallReturn::Outcome(CallOutcome::Done { result, .. }) =
        call_through(&registry, "shop.order", definition, parameters).await
    else {
        panic!("expected it to be done")
    };
    assert_eq!(fixture.last().json(), json!({"password": CANARY}));
    assert_eq!(*result, json!({"you sent": "[redacted:password]"}));
}

#[tokio::test]
async fn a_request_that_was_edited_is_not_sent_for_an_old_plan() {
    let fixture = HttpFixture::answering("").await;
    let (before, _) = registry(&fixture.base(), TEXT);
    before.catalog(ServerSelection::All).await;
    let pinned = before.definition(&name("shop.order")).unwrap();
    let (after, _) = registry(&fixture.base(), &TEXT.replace("path = \"/orders\"", "path = \"/orders/all\""));
    after.catalog(ServerSelection::All).await;
    let ended = call_through(&after, "shop.order", pinned, json!({})).await;
    assert!(matches!(ended, CallReturn::Drifted { .. }), "{ended:?}");
    assert_eq!(fixture.connections(), 0);
}

#[tokio::test]
async fn an_unknown_secret_sends_nothing() {
    let fixture = HttpFixture::answering("").await;
    let (registry, _) = registry(&fixture.base(), TEXT);
    registry.catalog(ServerSelection::All).await;
    let definition = registry.definition(&name("shop.order")).unwrap();
    let parameters = json!({"password": {"secret": "passwort"}});
    let CallReturn::Outcome(outcome) = call_through(&registry, "shop.order", definition, parameters).await else {
        panic!("expected an outcome")
    };
    let failure = not_done(outcome);
    assert_eq!(failure.category, FailureCategory::InvalidInput);
    assert!(failure.message.contains("passwort"), "{failure}");
    assert_eq!(fixture.connections(), 0);
}
