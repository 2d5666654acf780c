//! Connectors that hang, panic and ignore their timeouts: their own calls end, and all others go on.

use crate::registry::fixture::{Listing, Puppet, RegistryFixture, applicant, call, call_id, done, entrant, plain};
use rutter_core::id::ToolName;
use rutter_core::port::tools::{Admission, CallPermit, CallReturn, ToolGateway};
use rutter_core::time::Millis;
use rutter_core::tool::{CallOutcome, FailureCategory};
use rutter_tools::config::{CallLimits, ServerSettings};
use serde_json::json;
use std::sync::Arc;
use tokio::time::Instant;

fn admitted(fixture: &RegistryFixture, tool: &str) -> Option<CallPermit> {
    match fixture.registry.admit(&ToolName::new(tool), &applicant()) {
        Admission::Granted(permit) => Some(permit),
        _ => None,
    }
}

#[tokio::test]
async fn a_connector_that_panics_costs_its_own_call_only() {
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    fixture.catalog().await;
    puppet.on_call(|_| async {
        tokio::task::yield_now().await;
        panic!("in the middle of the call")
    });
    let outcome = fixture.call("s.x", json!({})).await;
    assert!(
        matches!(&outcome, CallOutcome::Maybe(failure) if failure.category == FailureCategory::Internal),
        "{outcome:?}"
    );
    // Before there is even a future.
    *puppet.script.lock().unwrap() = Arc::new(|_| panic!("at once"));
    let outcome = fixture.call("s.x", json!({})).await;
    assert!(
        matches!(&outcome, CallOutcome::Maybe(failure) if failure.category == FailureCategory::Internal),
        "{outcome:?}"
    );
    puppet.on_call(|_| async { done(json!("well")) });
    assert_eq!(fixture.call("s.x", json!({})).await, done(json!("well")));
    assert_eq!(fixture.registry.report()[0].tools[0].stats.in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_ignores_its_timeout_is_ended_soon_after() {
    let puppet = Puppet::new(vec![plain("x")]);
    puppet.on_call(|_| std::future::pending());
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    fixture.catalog().await;
    let definition = fixture.registry.definition(&ToolName::new("s.x")).unwrap();
    let mut call = call("s.x", definition, json!({}));
    call.timeout = Millis::seconds(20);
    let began = Instant::now();
    let CallReturn::Outcome(outcome) = fixture.registry.call(call, CallPermit::unlimited()).await else {
        panic!("drifted")
    };
    assert_eq!(began.elapsed().as_secs(), 35);
    assert!(
        matches!(&outcome, CallOutcome::Maybe(failure) if failure.category == FailureCategory::Timeout),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_nothing_behind() {
    let puppet = Puppet::new(vec![plain("x")]);
    puppet.on_call(|_| std::future::pending());
    let limits = CallLimits { calls_per_server: 1, ..CallLimits::default() };
    let fixture = RegistryFixture::with(vec![entrant("s", &puppet, ServerSettings::default())], &limits);
    fixture.catalog().await;
    let definition = fixture.registry.definition(&ToolName::new("s.x")).unwrap();
    for _ in 0..3 {
        let permit = admitted(&fixture, "s.x").expect("the permit of the call before is free");
        let mut calling = fixture.registry.call(call("s.x", definition, json!({})), permit);
        assert!(futures::poll!(&mut calling).is_pending());
        assert_eq!(fixture.registry.report()[0].tools[0].stats.in_flight, 1);
        assert!(admitted(&fixture, "s.x").is_none());
        drop(calling);
        assert_eq!(fixture.registry.report()[0].tools[0].stats.in_flight, 0);
    }
    assert_eq!(puppet.calls(), 3);
}

/// Makes this many calls one after the other, each of an execution of its own.
async fn make_calls(fixture: &RegistryFixture, tool: &str, count: usize) {
    let definition = fixture.registry.definition(&ToolName::new(tool)).unwrap();
    for at in 0..count {
        let permit = admitted(fixture, tool).expect("no other call uses this server");
        let mut call = call(tool, definition, json!({}));
        call.id = call_id(&format!("exec_{at}"), "step");
        assert_eq!(fixture.registry.call(call, permit).await, CallReturn::Outcome(done(json!({"ok": true}))));
    }
}

#[tokio::test]
async fn while_one_server_hangs_the_calls_of_others_go_on() {
    let (hanging, silent, well) =
        (Puppet::new(vec![plain("x")]), Puppet::new(vec![plain("x")]), Puppet::new(vec![plain("x")]));
    hanging.on_call(|_| std::future::pending());
    let fixture = RegistryFixture::new(&[("hanging", &hanging), ("silent", &silent), ("well", &well)]);
    fixture.catalog().await;

    // All permits of one server are held for ever; another does not even list its tools any more.
    *silent.listing.lock().unwrap() = Listing::Hangs;
    silent.serve(vec![plain("y")]);
    let definition = fixture.registry.definition(&ToolName::new("hanging.x")).unwrap();
    let mut stuck = Vec::new();
    while let Some(permit) = admitted(&fixture, "hanging.x") {
        let mut calling = fixture.registry.call(call("hanging.x", definition, json!({})), permit);
        assert!(futures::poll!(&mut calling).is_pending());
        stuck.push(calling);
    }
    assert_eq!(stuck.len(), 8);
    let mut listing = fixture.registry.call(call("silent.x", definition, json!({})), CallPermit::unlimited());
    assert!(futures::poll!(&mut listing).is_pending());

    make_calls(&fixture, "well.x", 500).await;
    assert_eq!(well.calls(), 500);
}
