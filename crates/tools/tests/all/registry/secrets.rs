//! Secrets reach the server, and appear nowhere else.

use crate::registry::fixture::{CANARY, Heard, Puppet, RegistryFixture, call, done, served};
use rutter_core::id::ToolName;
use rutter_core::port::tools::{CallPermit, CallReturn, ToolGateway, ToolProgress};
use rutter_core::tool::Elicitation;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use rutter_tools::connector::{ConnectorState, ServedTool};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

fn login() -> ServedTool {
    served(
        "login",
        json!({"inputSchema": {"type": "object", "properties": {"token": {"type": "string", "minLength": 8}}}}),
    )
}

fn parameters() -> Value {
    json!({"token": {"secret": "token"}})
}

#[tokio::test]
async fn the_schema_is_checked_against_the_secret_and_not_the_reference() {
    let puppet = Puppet::new(vec![login()]);
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = Arc::clone(&seen);
    puppet.on_call(move |request| {
        log.lock().unwrap().push(Value::clone(&request.parameters));
        async { done(json!({})) }
    });
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    assert_eq!(fixture.call("s.login", parameters()).await, done(json!({})));
    assert_eq!(*seen.lock().unwrap(), [json!({"token": CANARY})]);
}

#[tokio::test]
async fn a_secret_that_is_not_there_stops_the_call_before_it_is_sent() {
    let puppet = Puppet::new(vec![login()]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    let outcome = fixture.call("s.login", json!({"token": {"secret": "tokan"}})).await;
    let missing = ToolFailure::new(FailureCategory::InvalidInput, "there is no secret \"tokan\"");
    assert_eq!(outcome, CallOutcome::NotDone(missing));
    assert_eq!(puppet.calls(), 0);
}

#[tokio::test]
async fn no_way_of_ending_lets_a_secret_out() {
    use base64::Engine;
    let puppet = Puppet::new(vec![login()]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    let encoded = base64::prelude::BASE64_STANDARD.encode(CANARY);
    let message = format!("token {CANARY} also as {encoded}");
    let failure = |category| ToolFailure::new(category, message.clone());
    let outcomes = [
        done(json!({"echo": message, CANARY: [message], "header": format!("Bearer {CANARY}")})),
        CallOutcome::NotDone(failure(FailureCategory::Unauthorized)),
        CallOutcome::Maybe(failure(FailureCategory::ToolError)),
        // Larger than what is checked at once.
        done(json!({"echo": message, "filling": "x".repeat(1 << 20)})),
    ];
    for expected in outcomes {
        puppet.on_call(move |_| std::future::ready(expected.clone()));
        let outcome = format!("{:?}", fixture.call("s.login", parameters()).await);
        assert!(!outcome.contains(CANARY) && !outcome.contains(&encoded), "{outcome}");
        assert!(outcome.contains("[redacted:token]"), "{outcome}");
    }
    *puppet.state.lock().unwrap() = ConnectorState::Down { reason: message.clone(), stderr: vec![message.clone()] };
    let report = serde_json::to_string(&fixture.registry.report()).unwrap();
    assert!(!report.contains(CANARY) && !report.contains(&encoded), "{report}");
}

#[tokio::test]
async fn reports_of_a_tool_have_no_secrets_in_them_either() {
    let puppet = Puppet::new(vec![login()]);
    puppet.on_call(|request| async move {
        let text = format!("using {CANARY}");
        request.reporter.progress(ToolProgress { done: 1.0, total: None, message: Some(text.clone()) });
        let schema = Arc::new(json!({"title": text}));
        let answer = request.reporter.ask(Elicitation { message: text, schema, continuation: None }).await;
        request.reporter.accepted("ticket 1".to_owned()).await;
        done(answer.unwrap())
    });
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    fixture.catalog().await;
    let definition = fixture.registry.definition(&ToolName::new("s.login")).unwrap();
    let heard = Arc::new(Heard::default());
    let mut call = call("s.login", definition, parameters());
    call.reporter = Arc::<Heard>::clone(&heard);
    assert_eq!(
        fixture.registry.call(call, CallPermit::unlimited()).await,
        CallReturn::Outcome(done(json!({"answer": 1})))
    );
    let heard = heard.0.lock().unwrap();
    assert_eq!(
        *heard,
        [
            "progress using [redacted:token]",
            "asked using [redacted:token] {\"title\":\"using [redacted:token]\"}",
            "accepted ticket 1",
        ]
    );
}

#[tokio::test]
async fn the_failure_of_a_listing_is_reported_without_secrets() {
    let puppet = Puppet::new(vec![login()]);
    let refused = ToolFailure::new(FailureCategory::Unauthorized, format!("401 for Bearer {CANARY}"));
    *puppet.listing.lock().unwrap() = crate::registry::fixture::Listing::Fails(refused);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    let catalog = fixture.catalog().await;
    let outcome = fixture.registry.call_once(&ToolName::new("s.login"), None, json!({})).await;
    let text = format!("{:?} {outcome:?} {:?}", catalog.absent, fixture.registry.report());
    assert!(text.contains("401") && !text.contains(CANARY), "{text}");
}
