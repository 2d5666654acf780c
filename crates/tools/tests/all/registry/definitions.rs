//! Definitions are kept, read again before they count, and every change of them is on record.

use crate::registry::fixture::{Listing, Puppet, RegistryFixture, call, plain, served};
use rutter_core::id::{ExecutionId, TenantId, ToolName};
use rutter_core::journal::event::Event;
use rutter_core::limits::{DEFINITION_AGE_MAX, KNOWN_SERVER_WAIT, UNKNOWN_SERVER_WAIT};
use rutter_core::port::query::{EntryFilter, Pagination, StoreQuery};
use rutter_core::port::register::Register;
use rutter_core::port::tools::{CallPermit, CallReturn, ServerSelection, ToolGateway};
use rutter_core::time::Timestamp;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use rutter_store::{SqliteOptions, SqliteStore};
use rutter_tools::connector::{ConnectorState, ServedTool};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, advance};

fn changed(name: &str) -> ServedTool {
    served(name, json!({"description": "Does something else", "inputSchema": {"type": "object"}}))
}

/// Calls with the definition as it was at first.
async fn call_as_planned(fixture: &RegistryFixture, definition: rutter_core::hash::Hash) -> CallReturn {
    fixture.registry.call(call("s.x", definition, json!({})), CallPermit::unlimited()).await
}

async fn planned(fixture: &RegistryFixture) -> rutter_core::hash::Hash {
    fixture.catalog().await.tools.tools["s.x"].definition
}

#[tokio::test]
async fn a_tool_that_changed_with_a_restart_gets_no_free_call() {
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    let definition = planned(&fixture).await;
    assert!(matches!(call_as_planned(&fixture, definition).await, CallReturn::Outcome(CallOutcome::Done { .. })));
    assert_eq!((puppet.calls(), puppet.lists()), (1, 1), "listed once for all calls to one process");
    // Nothing announces it: the old process is dead.
    *puppet.tools.lock().unwrap() = vec![changed("x")];
    puppet.process.store(2, Ordering::SeqCst);
    assert!(matches!(call_as_planned(&fixture, definition).await, CallReturn::Drifted { .. }));
    assert_eq!(puppet.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_announces_nothing_is_asked_again_before_a_call_with_an_effect() {
    for (age, announces, lists, drifts) in [
        (DEFINITION_AGE_MAX.0 - 1, false, 1, false),
        (DEFINITION_AGE_MAX.0, false, 2, true),
        (DEFINITION_AGE_MAX.0 + 1, true, 1, false),
    ] {
        let puppet = Puppet::new(vec![plain("x")]);
        puppet.announces.store(announces, Ordering::SeqCst);
        let fixture = RegistryFixture::new(&[("s", &puppet)]);
        let definition = planned(&fixture).await;
        *puppet.tools.lock().unwrap() = vec![changed("x")];
        advance(Duration::from_millis(age)).await;
        let answer = call_as_planned(&fixture, definition).await;
        assert_eq!(matches!(answer, CallReturn::Drifted { .. }), drifts, "{age} ms, {announces}: {answer:?}");
        assert_eq!(puppet.lists(), lists, "{age} ms, {announces}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_known_server_that_is_down_costs_no_waiting_and_its_tools_stay_known() {
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    planned(&fixture).await;
    puppet.serve(vec![plain("x")]);
    *puppet.listing.lock().unwrap() = Listing::Hangs;
    // It hangs: a moment is waited once, and nothing from then on.
    for expected in [Duration::from_millis(KNOWN_SERVER_WAIT.0), Duration::ZERO, Duration::ZERO] {
        let began = Instant::now();
        let catalog = fixture.catalog().await;
        assert_eq!(began.elapsed(), expected);
        assert!(catalog.tools.tools.contains_key("s.x") && catalog.absent.is_empty());
        assert!(catalog.tools.unreachable["s"].contains("did not answer in time"), "{:?}", catalog.tools.unreachable);
    }
    // It is down: not even a moment.
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    planned(&fixture).await;
    puppet.serve(vec![plain("x")]);
    *puppet.listing.lock().unwrap() = Listing::Fails(ToolFailure::new(FailureCategory::Unavailable, "it died"));
    *puppet.state.lock().unwrap() = ConnectorState::Down { reason: "it died".to_owned(), stderr: Vec::new() };
    let began = Instant::now();
    let catalog = fixture.catalog().await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(catalog.tools.tools.contains_key("s.x"));
    // Back again, it is listed, and nothing is unreachable any more.
    *puppet.listing.lock().unwrap() = Listing::Answers;
    *puppet.state.lock().unwrap() = ConnectorState::Ready;
    fixture.catalog().await;
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(fixture.catalog().await.tools.unreachable.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_was_never_reached_delays_a_check_only_so_long() {
    let puppet = Puppet::new(vec![plain("x")]);
    *puppet.listing.lock().unwrap() = Listing::Hangs;
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    let began = Instant::now();
    let catalog = fixture.catalog().await;
    assert_eq!(began.elapsed(), Duration::from_millis(UNKNOWN_SERVER_WAIT.0));
    assert!(catalog.tools.unreachable.contains_key("s") && catalog.absent.len() == 1);
}

/// A command that has waited for all servers already does not wait for each of them again.
#[tokio::test(start_paused = true)]
async fn a_check_waits_no_longer_than_it_is_told() {
    let (known, never) = (Puppet::new(vec![plain("x")]), Puppet::new(vec![plain("x")]));
    *never.listing.lock().unwrap() = Listing::Hangs;
    let fixture = RegistryFixture::new(&[("s", &known), ("never", &never)]);
    planned(&fixture).await;
    known.serve(vec![plain("x")]);
    *known.listing.lock().unwrap() = Listing::Hangs;
    let began = Instant::now();
    let catalog = fixture.registry.catalog_within(ServerSelection::All, Duration::ZERO).await;
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert!(catalog.tools.tools.contains_key("s.x") && !catalog.tools.tools.contains_key("never.x"));
    assert_eq!(catalog.tools.unreachable.keys().collect::<Vec<_>>(), ["never", "s"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_reported_although_it_was_listed_a_moment_ago() {
    let puppet = Puppet::new(vec![plain("x")]);
    puppet.announces.store(true, Ordering::SeqCst);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    planned(&fixture).await;
    *puppet.listing.lock().unwrap() = Listing::Fails(ToolFailure::new(FailureCategory::Unavailable, "it died"));
    *puppet.state.lock().unwrap() = ConnectorState::Down { reason: "it died".to_owned(), stderr: Vec::new() };
    let catalog = fixture.catalog().await;
    assert!(catalog.tools.unreachable["s"].contains("it died") && catalog.tools.tools.contains_key("s.x"));
}

#[tokio::test(start_paused = true)]
async fn a_check_asks_a_server_again_that_would_not_have_said_that_it_has_a_new_tool() {
    let puppet = Puppet::new(vec![plain("x")]);
    puppet.announces.store(false, Ordering::SeqCst);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    planned(&fixture).await;
    *puppet.tools.lock().unwrap() = vec![changed("x"), plain("new")];
    assert!(!fixture.catalog().await.tools.tools.contains_key("s.new"), "the list is young");
    advance(Duration::from_millis(DEFINITION_AGE_MAX.0)).await;
    assert!(fixture.catalog().await.tools.tools.contains_key("s.new"));
}

#[tokio::test]
async fn definitions_survive_a_restart_and_a_change_is_in_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let store =
        Arc::new(SqliteStore::open(SqliteOptions::new(folder.path(), Arc::new(|| Timestamp(1_000_000)))).unwrap());
    let register: Arc<dyn Register> = store.clone();
    let first = Puppet::new(vec![plain("x"), plain("gone")]);
    let fixture = RegistryFixture::new(&[("s", &first)]);
    fixture.registry.keep_definitions(Arc::clone(&register)).await.unwrap();
    let definition = planned(&fixture).await;
    assert_eq!(recorded(&store).await, Vec::<String>::new(), "a new server has not changed");

    // The next process cannot reach it, and knows its tools.
    let down = Puppet::new(Vec::new());
    *down.listing.lock().unwrap() = Listing::Fails(ToolFailure::new(FailureCategory::Unavailable, "it died"));
    *down.state.lock().unwrap() = ConnectorState::Down { reason: "it died".to_owned(), stderr: Vec::new() };
    let fixture = RegistryFixture::new(&[("s", &down)]);
    fixture.registry.keep_definitions(Arc::clone(&register)).await.unwrap();
    let catalog = fixture.catalog().await;
    assert_eq!(catalog.tools.tools["s.x"].definition, definition);
    assert!(catalog.tools.unreachable.contains_key("s"));
    assert_eq!(fixture.registry.definition(&ToolName::new("s.x")), None, "remembered is not verified");

    // It comes back changed.
    let back = Puppet::new(vec![changed("x"), plain("new")]);
    let fixture = RegistryFixture::new(&[("s", &back)]);
    fixture.registry.keep_definitions(register).await.unwrap();
    assert!(matches!(call_as_planned(&fixture, definition).await, CallReturn::Drifted { .. }));
    assert_eq!(back.calls(), 0);
    let mut changes = recorded(&store).await;
    changes.sort();
    let starts: Vec<String> = changes.iter().map(|change| change.chars().take(26).collect()).collect();
    assert_eq!(starts, ["s.gone no longer offered, ", "s.new new tool, definition", "s.x definition changed fro"]);
}

async fn recorded(store: &SqliteStore) -> Vec<String> {
    let filter = EntryFilter { execution: Some(ExecutionId::new("ledger")), ..EntryFilter::default() };
    let page = store.entries(&TenantId::new("default"), filter, Pagination::first(100)).await.unwrap();
    let texts = page.items.into_iter().filter_map(|entry| match entry.record.event {
        Event::SettingChanged { setting, id, change } if setting == "tool" => Some(format!("{id} {change}")),
        _ => None,
    });
    texts.collect()
}
