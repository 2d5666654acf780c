//! The path of a call: what is checked before anything is sent, what is sent, and what becomes of the answer.

use crate::registry::fixture::{Listing, Puppet, RegistryFixture, call, call_id, done, plain, served};
use rutter_core::hash::Hash;
use rutter_core::id::ToolName;
use rutter_core::limits;
use rutter_core::port::tools::{CallPermit, CallReturn, ToolGateway};
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

fn failure(outcome: CallOutcome) -> (&'static str, FailureCategory, String) {
    match outcome {
        CallOutcome::NotDone(failure) => ("not done", failure.category, failure.message),
        CallOutcome::Maybe(failure) => ("maybe", failure.category, failure.message),
        CallOutcome::Done { result, .. } => panic!("done with {result}"),
    }
}

fn charge() -> rutter_tools::connector::ServedTool {
    served(
        "charge",
        json!({
            "inputSchema": {
                "type": "object",
                "required": ["amount"],
                "properties": {"amount": {"type": "integer", "minimum": 1}, "card": {"type": "string"}},
                "additionalProperties": false,
            },
            "outputSchema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
        }),
    )
}

#[tokio::test]
async fn a_call_reaches_the_server_with_everything_it_needs() {
    let puppet = Puppet::new(vec![charge()]);
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let log = Arc::clone(&seen);
    puppet.on_call(move |request| {
        let seconds = request.timeout.as_secs_f64().ceil();
        let line = json!([request.tool, *request.parameters, request.key, seconds, request.now]);
        log.lock().unwrap().push(line);
        async { done(json!({"id": "ch_1"})) }
    });
    let fixture = RegistryFixture::new(&[("pay", &puppet)]);
    let outcome = fixture.call("pay.charge", json!({"amount": 5})).await;
    assert_eq!(outcome, done(json!({"id": "ch_1"})));
    let key = Hash::of(&[b"key"]).to_string();
    assert_eq!(*seen.lock().unwrap(), [json!(["charge", {"amount": 5}, key, 60.0, 7])]);
}

#[tokio::test]
async fn a_missing_tool_is_not_called() {
    let puppet = Puppet::new(vec![charge(), served("bad", json!({"inputSchema": 7}))]);
    let fixture = RegistryFixture::new(&[("pay", &puppet)]);
    for (tool, says) in [
        ("nobody.charge", "there is no server \"nobody\""),
        ("pay.refund", "server \"pay\" has no tool \"refund\""),
        ("pay.bad", "tool \"bad\" of \"pay\" is not offered: expected a JSON Schema object"),
        ("charge", "there is no server \"charge\""),
    ] {
        let (how, category, message) = failure(fixture.call(tool, json!({})).await);
        assert_eq!((how, category), ("not done", FailureCategory::NotFound), "{tool}");
        assert!(message.starts_with(says), "{message}");
    }
    assert_eq!(puppet.calls(), 0);
}

#[tokio::test]
async fn a_tool_that_is_not_the_pinned_one_is_not_called() {
    let puppet = Puppet::new(vec![charge()]);
    let fixture = RegistryFixture::new(&[("pay", &puppet)]);
    fixture.catalog().await;
    let tool = ToolName::new("pay.charge");
    let pinned = fixture.registry.definition(&tool).unwrap();
    let mut changed = charge();
    changed.definition.insert("description".to_owned(), json!("Charges twice"));
    puppet.serve(vec![changed]);
    // The tools were not listed since.
    let answer = fixture.registry.call(call("pay.charge", pinned, json!({"amount": 5})), CallPermit::unlimited()).await;
    let found = fixture.registry.definition(&tool).unwrap();
    assert_ne!(found, pinned);
    assert_eq!(answer, CallReturn::Drifted { found });
    assert_eq!(puppet.calls(), 0);
}

#[tokio::test]
async fn after_a_restart_the_server_is_asked_before_the_call_is_made() {
    let puppet = Puppet::new(vec![charge()]);
    let before = RegistryFixture::new(&[("pay", &puppet)]);
    before.catalog().await;
    let pinned = before.registry.definition(&ToolName::new("pay.charge")).unwrap();
    puppet.on_call(|_| async { done(json!({"id": "ch_1"})) });
    let fixture = RegistryFixture::new(&[("pay", &puppet)]);
    let answer = fixture.registry.call(call("pay.charge", pinned, json!({"amount": 5})), CallPermit::unlimited()).await;
    assert_eq!(answer, CallReturn::Outcome(done(json!({"id": "ch_1"}))));

    let fixture = RegistryFixture::new(&[("pay", &puppet)]);
    *puppet.listing.lock().unwrap() =
        Listing::Fails(ToolFailure::new(FailureCategory::Unavailable, "connection refused"));
    let answer = fixture.registry.call(call("pay.charge", pinned, json!({"amount": 5})), CallPermit::unlimited()).await;
    let refused = ToolFailure::new(FailureCategory::Unavailable, "connection refused");
    assert_eq!(answer, CallReturn::Outcome(CallOutcome::NotDone(refused)));
    assert_eq!(puppet.calls(), 1);
}

#[tokio::test]
async fn parameters_that_do_not_fit_are_not_sent() {
    let puppet = Puppet::new(vec![charge()]);
    let fixture = RegistryFixture::new(&[("pay", &puppet)]);
    for (parameters, says) in [
        (json!({}), "the parameters do not fit: \"amount\" is required"),
        (json!({"amount": "5"}), "the parameters do not fit: /amount: expected integer, found string"),
        (json!({"amount": 0}), "the parameters do not fit: /amount: expected at least 1"),
        (
            json!({"amount": 1, "cart": "x"}),
            "the parameters do not fit: /cart: unknown key \"cart\", did you mean \"card\"?",
        ),
        (json!([]), "the parameters do not fit: expected object, found array"),
    ] {
        let (how, category, message) = failure(fixture.call("pay.charge", parameters).await);
        assert_eq!((how, category, message.as_str()), ("not done", FailureCategory::InvalidInput, says));
    }
    assert_eq!(puppet.calls(), 0);
}

#[tokio::test]
async fn a_result_that_violates_the_output_schema_does_not_mean_that_nothing_was_done() {
    let puppet = Puppet::new(vec![charge()]);
    let fixture = RegistryFixture::new(&[("pay", &puppet)]);
    puppet.on_call(|_| async { done(json!({"id": 7})) });
    let (how, category, message) = failure(fixture.call("pay.charge", json!({"amount": 5})).await);
    assert_eq!((how, category), ("maybe", FailureCategory::Protocol));
    assert!(message.ends_with("output schema: /id: expected string, found integer"), "{message}");
}

#[tokio::test]
async fn a_result_may_be_as_large_as_can_be_stored_and_no_larger() {
    let puppet = Puppet::new(vec![plain("read")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    // Two of the bytes are the quotes around the text.
    for (bytes, is_kept) in [(0, true), (1, false)] {
        let length = limits::PAYLOAD_BYTES_MAX.checked_add_signed(bytes).unwrap() - 2;
        puppet.on_call(move |_| async move { done(json!("x".repeat(length))) });
        match fixture.call("s.read", json!({})).await {
            CallOutcome::Done { result, .. } => assert!(is_kept && result.as_str().unwrap().len() == length),
            CallOutcome::Maybe(failure) => {
                assert!(!is_kept && failure.category == FailureCategory::Protocol, "{failure}")
            }
            CallOutcome::NotDone(failure) => panic!("{failure}"),
        }
    }
}

#[tokio::test]
async fn cancelling_a_call_ends_that_call_and_no_other() {
    let puppet = Puppet::new(vec![plain("wait")]);
    let (started, mut calls) = tokio::sync::mpsc::unbounded_channel();
    puppet.on_call(move |request| {
        let (end, ended) = oneshot::channel::<()>();
        started.send((request.id.clone(), end)).unwrap();
        async move {
            tokio::select! {
                () = request.cancel.cancelled() => CallOutcome::Maybe(ToolFailure::new(FailureCategory::Cancelled, "stopped")),
                _ = ended => done(json!("finished")),
            }
        }
    });
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    fixture.catalog().await;
    let definition = fixture.registry.definition(&ToolName::new("s.wait")).unwrap();
    let make = |step: &str| {
        let mut call = call("s.wait", definition, json!({}));
        call.id = call_id("exec_1", step);
        fixture.registry.call(call, CallPermit::unlimited())
    };
    let ends = async {
        let (_, _end_one) = calls.recv().await.unwrap();
        let (_, end_two) = calls.recv().await.unwrap();
        let mut other_attempt = call_id("exec_1", "two");
        other_attempt.attempt = 2;
        fixture.registry.cancel(&other_attempt);
        fixture.registry.cancel(&call_id("exec_2", "two"));
        fixture.registry.cancel(&call_id("exec_1", "one"));
        tokio::time::sleep(Duration::from_millis(20)).await;
        end_two.send(()).unwrap();
        _end_one
    };
    let (one, two, _) = tokio::join!(make("one"), make("two"), ends);
    assert_eq!(one, CallReturn::Outcome(CallOutcome::Maybe(ToolFailure::new(FailureCategory::Cancelled, "stopped"))));
    assert_eq!(two, CallReturn::Outcome(done(json!("finished"))));
}

#[tokio::test]
async fn a_call_that_is_cancelled_before_it_begins_is_never_sent() {
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    fixture.catalog().await;
    let definition = fixture.registry.definition(&ToolName::new("s.x")).unwrap();
    let answer = fixture.registry.call(call("s.x", definition, json!({})), CallPermit::unlimited());
    fixture.registry.cancel(&call_id("exec_1", "step"));
    let CallReturn::Outcome(outcome) = answer.await else { panic!("drifted") };
    assert_eq!(failure(outcome).1, FailureCategory::Cancelled);
    assert_eq!(puppet.calls(), 0);
}

#[tokio::test]
async fn a_call_by_hand_takes_the_tool_as_it_is() {
    let puppet = Puppet::new(vec![charge()]);
    let keys: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&keys);
    puppet.on_call(move |request| {
        log.lock().unwrap().push(request.key);
        async { done(json!({"id": "ch_1"})) }
    });
    let fixture = RegistryFixture::new(&[("pay", &puppet)]);
    let tool = ToolName::new("pay.charge");
    for _ in 0..2 {
        let answer = fixture.registry.call_once(&tool, None, json!({"amount": 5})).await;
        assert_eq!(answer, CallReturn::Outcome(done(json!({"id": "ch_1"}))));
    }
    let keys = std::mem::take(&mut *keys.lock().unwrap());
    assert_ne!(keys[0], keys[1], "two calls by hand are two calls");
    let answer = fixture.registry.call_once(&ToolName::new("pay.refund"), None, json!({})).await;
    let CallReturn::Outcome(outcome) = answer else { panic!("drifted") };
    assert_eq!(failure(outcome).1, FailureCategory::NotFound);
    let answer = fixture.registry.call_once(&tool, Some(Hash::ZERO), json!({"amount": 5})).await;
    assert!(matches!(answer, CallReturn::Drifted { .. }), "another definition was judged: {answer:?}");
}

#[tokio::test]
async fn a_call_under_a_ticket_is_followed_even_if_the_tool_is_gone() {
    let puppet = Puppet::new(vec![plain("other")]);
    puppet.on_call(|request| async move { done(json!([request.ticket, request.tool, *request.parameters])) });
    let fixture = RegistryFixture::new(&[("pay", &puppet)]);
    // The tool is gone, the parameters name a secret that is not there, and the definition is another one.
    let mut call = call("pay.charge", Hash::ZERO, json!({"card": {"secret": "gone"}}));
    call.ticket = Some("t1".to_owned());
    let answer = fixture.registry.call(call, CallPermit::unlimited()).await;
    let result = json!(["t1", "charge", {"card": {"secret": "gone"}}]);
    assert_eq!(answer, CallReturn::Outcome(done(result)));
    assert_eq!(puppet.lists(), 0, "no listing is needed for it");
}

#[tokio::test]
async fn a_failure_to_ask_after_a_ticket_does_not_mean_that_nothing_was_done() {
    let puppet = Puppet::new(vec![charge()]);
    let fixture = RegistryFixture::new(&[("pay", &puppet)]);
    for category in FailureCategory::ALL {
        puppet.on_call(move |_| async move { CallOutcome::NotDone(ToolFailure::new(category, "no")) });
        let mut call = call("pay.charge", Hash::ZERO, json!({}));
        call.ticket = Some("t1".to_owned());
        let CallReturn::Outcome(outcome) = fixture.registry.call(call, CallPermit::unlimited()).await else {
            panic!("drifted")
        };
        let is_certain = [
            FailureCategory::ToolError,
            FailureCategory::InvalidInput,
            FailureCategory::Conflict,
            FailureCategory::Cancelled,
        ]
        .contains(&category);
        assert_eq!(failure(outcome).0, if is_certain { "not done" } else { "maybe" }, "{category:?}");
    }
    let mut call = call("nobody.charge", Hash::ZERO, json!({}));
    call.ticket = Some("t1".to_owned());
    let CallReturn::Outcome(outcome) = fixture.registry.call(call, CallPermit::unlimited()).await else {
        panic!("drifted")
    };
    assert_eq!(failure(outcome).0, "maybe");
}
