//! Connectors that hang, panic and ignore their timeouts: their own calls end, and everybody else goes on.

use crate::stage::{Listing, Puppet, Stage, call, call_id, done, entrant, plain};
use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::tools::{Admission, Applicant, Berth, Return, Tools};
use rutter_core::time::Millis;
use rutter_core::tool::{Category, Outcome};
use rutter_tools::config::{Common, Limits};
use serde_json::json;
use std::sync::Arc;
use tokio::time::Instant;

struct Applying(TenantId);

impl Applicant for Applying {
    fn tenant(&self) -> &TenantId {
        &self.0
    }

    fn priority(&self) -> i32 {
        0
    }

    fn wake(&self) {}
}

fn admitted(stage: &Stage, tool: &str) -> Option<Berth> {
    let applicant: Arc<dyn Applicant> = Arc::new(Applying(TenantId::new("a")));
    match stage.registry.admit(&ToolName::new(tool), &applicant) {
        Admission::Granted(berth) => Some(berth),
        _ => None,
    }
}

#[tokio::test]
async fn a_connector_that_panics_costs_its_own_call_only() {
    let puppet = Puppet::new(vec![plain("x")]);
    let stage = Stage::new(&[("s", &puppet)]);
    stage.catalog().await;
    puppet.on_call(|_| async {
        tokio::task::yield_now().await;
        panic!("in the middle of the call")
    });
    let outcome = stage.call("s.x", json!({})).await;
    assert!(
        matches!(&outcome, Outcome::Maybe(failure) if failure.category == Category::Internal),
        "{outcome:?}"
    );
    // Before there is even a future.
    *puppet.script.lock().unwrap() = Arc::new(|_| panic!("at once"));
    let outcome = stage.call("s.x", json!({})).await;
    assert!(
        matches!(&outcome, Outcome::Maybe(failure) if failure.category == Category::Internal),
        "{outcome:?}"
    );
    puppet.on_call(|_| async { done(json!("well")) });
    assert_eq!(stage.call("s.x", json!({})).await, done(json!("well")));
    assert_eq!(stage.registry.report()[0].tools[0].stats.in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_connector_that_ignores_its_timeout_is_ended_soon_after() {
    let puppet = Puppet::new(vec![plain("x")]);
    puppet.on_call(|_| std::future::pending());
    let stage = Stage::new(&[("s", &puppet)]);
    stage.catalog().await;
    let definition = stage.registry.definition(&ToolName::new("s.x")).unwrap();
    let mut call = call("s.x", definition, json!({}));
    call.timeout = Millis::seconds(20);
    let began = Instant::now();
    let Return::Outcome(outcome) = stage.registry.call(call, Berth::free()).await else { panic!("drifted") };
    assert_eq!(began.elapsed().as_secs(), 35);
    assert!(
        matches!(&outcome, Outcome::Maybe(failure) if failure.category == Category::Timeout),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_nothing_behind() {
    let puppet = Puppet::new(vec![plain("x")]);
    puppet.on_call(|_| std::future::pending());
    let limits = Limits { calls_per_server: 1, ..Limits::default() };
    let stage = Stage::with(vec![entrant("s", &puppet, Common::default())], &limits);
    stage.catalog().await;
    let definition = stage.registry.definition(&ToolName::new("s.x")).unwrap();
    for _ in 0..3 {
        let berth = admitted(&stage, "s.x").expect("the place of the call before is free");
        let mut calling = stage.registry.call(call("s.x", definition, json!({})), berth);
        assert!(futures::poll!(&mut calling).is_pending());
        assert_eq!(stage.registry.report()[0].tools[0].stats.in_flight, 1);
        assert!(admitted(&stage, "s.x").is_none());
        drop(calling);
        assert_eq!(stage.registry.report()[0].tools[0].stats.in_flight, 0);
    }
    assert_eq!(puppet.calls(), 3);
}

/// Makes this many calls one after the other, each of an execution of its own.
async fn voyage(stage: &Stage, tool: &str, count: usize) {
    let definition = stage.registry.definition(&ToolName::new(tool)).unwrap();
    for at in 0..count {
        let berth = admitted(stage, tool).expect("nobody else uses this server");
        let mut call = call(tool, definition, json!({}));
        call.id = call_id(&format!("exec_{at}"), "step");
        assert_eq!(stage.registry.call(call, berth).await, Return::Outcome(done(json!({"ok": true}))));
    }
}

#[tokio::test]
async fn while_one_server_hangs_the_calls_of_others_go_on() {
    let (hanging, silent, well) =
        (Puppet::new(vec![plain("x")]), Puppet::new(vec![plain("x")]), Puppet::new(vec![plain("x")]));
    hanging.on_call(|_| std::future::pending());
    let stage = Stage::new(&[("hanging", &hanging), ("silent", &silent), ("well", &well)]);
    stage.catalog().await;

    // One server has all its places taken for ever and more in line; another does not even list its tools any more.
    *silent.listing.lock().unwrap() = Listing::Hangs;
    silent.serve(vec![plain("y")]);
    let definition = stage.registry.definition(&ToolName::new("hanging.x")).unwrap();
    let mut stuck = Vec::new();
    while let Some(berth) = admitted(&stage, "hanging.x") {
        let mut calling = stage.registry.call(call("hanging.x", definition, json!({})), berth);
        assert!(futures::poll!(&mut calling).is_pending());
        stuck.push(calling);
    }
    assert_eq!(stuck.len(), 8);
    let mut listing = stage.registry.call(call("silent.x", definition, json!({})), Berth::free());
    assert!(futures::poll!(&mut listing).is_pending());

    voyage(&stage, "well.x", 500).await;
    assert_eq!(well.calls(), 500);
}
