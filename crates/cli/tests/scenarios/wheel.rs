//! S9: an agent is at the wheel, repeats a step, skips one and dies in the middle of another. The next one knows nothing
//! but the brief, and hands back to Rutter, which finishes.

use crate::answer::{steps, text};
use crate::stage::{Kind, Stage, until};
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::execution::view::{Status, View};
use rutter_core::id::{PartId, TenantId, WorkerId};
use rutter_core::journal::event::Deviation;
use rutter_core::plan::Driver;
use rutter_core::plan::document::Format;
use rutter_core::time::Millis;
use rutter_engine::control::Control;
use rutter_engine::submit::PlanText;
use rutter_engine::{Clock, Engine, Options, Signal, Start};
use rutter_store::Store;
use rutter_tools::assemble::{World, assemble};
use rutter_tools::child::Launcher;
use rutter_tools::config::Config;
use rutter_tools::registry::Registry;
use serde_json::json;
use std::fs;
use std::sync::Arc;

fn plan(max_parallel: u32) -> String {
    let step = |number: usize| {
        let after = if number > 1 { format!("[s{}]", number - 1) } else { "[]".to_owned() };
        format!(
            "  - {{ id: s{number}, tool: desk.work, depends_on: {after}, parameters: {{ n: {number}, key: '{{{{ key }}}}' }} }}\n"
        )
    };
    let steps: String = (1..=7).map(step).collect();
    format!("name: seven\ngoal: Do seven things in a row\nmax_parallel: {max_parallel}\nsteps:\n{steps}")
}

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.server("desk", Kind::Stdio, &[]);
    let input = json!({ "type": "object", "properties": { "n": { "type": "integer" }, "key": { "type": "string" } } });
    stage.tool("desk.work", json!({ "kind": "keyed", "key_parameter": "key", "input": input })).open();
    stage
}

/// The first agent: it repeats the second step, skips the fifth, and dies in the middle of the sixth.
async fn first_agent(engine: &Engine, max_parallel: u32) -> Identity {
    let (tenant, first) = (TenantId::new("default"), Actor::agent("first"));
    let source = plan(max_parallel).into();
    let text = PlanText { tenant: tenant.clone(), source, format: Format::Yaml, driver: Driver::Agent };
    let submitted = engine.submit(text, None, None, first.clone()).await.unwrap();
    let start = Start {
        tenant: tenant.clone(),
        plan: submitted.id,
        revision: None,
        inputs: Arc::new(json!({})),
        driver: Driver::Agent,
        actor: first,
        request: None,
    };
    let identity = Identity { tenant, execution: engine.start(start).await.unwrap().execution };
    let agent = Agent { engine, identity: &identity, name: "first" };
    for step in ["s1", "s2", "s3"] {
        agent.does(step).await;
    }
    // Its context was compacted: it does not know any more that it did this, and what comes next.
    agent.begins("s2").await;
    agent.does("s4").await;
    agent.begins("s6").await;
    identity
}

async fn engine(stage: &Stage, worker: &str) -> (Engine, Arc<Registry>) {
    let settings = fs::read_to_string(stage.path("rutter.toml")).unwrap();
    let config: Config = toml_edit::de::from_str(&settings).unwrap();
    let clock = Clock::system();
    let store = rutter_store::Options::new(stage.path("data"), Arc::new(move || clock.now()));
    // The process before may still be letting go of it.
    let mut opened = None;
    until("the database is free", || {
        opened = Store::open(store.clone()).ok();
        opened.is_some()
    });
    let store = Arc::new(opened.expect("it was opened a moment ago"));
    let world = World {
        folder: stage.path("data"),
        launcher: Launcher { program: env!("CARGO_BIN_EXE_rutter").into(), arguments: vec!["launch".into()] },
        environment: std::env::vars().collect(),
        query: store.clone(),
        clock: Arc::new(move || clock.now()),
    };
    let registry = assemble(&config, world).unwrap().registry;
    let options = Options::new(WorkerId::new(worker));
    let engine = Engine::run(store.clone(), store, registry.clone(), clock, options).await.unwrap();
    (engine, registry)
}

/// An agent that does its steps itself and says so.
struct Agent<'a> {
    engine: &'a Engine,
    identity: &'a Identity,
    name: &'static str,
}

impl Agent<'_> {
    async fn says(&self, signal: Signal) {
        self.engine.signal(self.identity, Actor::agent(self.name), signal, None).await.unwrap();
    }

    async fn begins(&self, step: &str) {
        let part = PartId::parse(step).unwrap();
        self.says(Signal::RecordStarted { part, tool: None, parameters: None }).await;
    }

    async fn does(&self, step: &str) {
        self.begins(step).await;
        let part = PartId::parse(step).unwrap();
        self.says(Signal::RecordFinished { part, result: Arc::new(json!({ "id": step })) }).await;
    }
}

fn found(view: &View, kind: Deviation) -> Vec<&str> {
    let fits = view.deviations.iter().filter(|deviation| deviation.kind == kind);
    fits.map(|deviation| deviation.step.as_ref().unwrap().as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_leaves_behind_is_found_and_finished() {
    let stage = stage();
    let (engine, registry) = engine(&stage, "first-process").await;
    let identity = first_agent(&engine, 2).await;
    // It dies here, and its process with it.
    engine.close().await;
    registry.close().await;
    drop((engine, registry));
    assert_eq!(stage.log().len(), 0, "nothing is called while an agent drives");

    let (engine, registry) = self::engine(&stage, "second-process").await;
    let brief = engine.brief(&identity).await.unwrap();
    for line in ["Goal: Do seven things in a row", "Done: s1, s2, s3, s4", "Under way: s6", "Pending: s5, s7"]
    {
        assert!(brief.lines().any(|found| found == line), "{line:?} is missing:\n{brief}");
    }
    assert!(brief.contains("duplicate s2") && brief.contains("skipped s5"), "{brief}");
    let agent = Agent { engine: &engine, identity: &identity, name: "second" };
    let (decision, reason) =
        ("hand back".to_owned(), "s6 was begun and nobody knows how it ended".to_owned());
    agent.says(Signal::RecordDecision { step: None, decision, reason: reason.clone(), details: None }).await;
    engine.control(&identity, Actor::agent("second"), Control::HandBack, reason, None).await.unwrap();
    let status = engine.wait(&identity, Millis::seconds(60)).await.unwrap();
    let view = engine.view(&identity).await.unwrap();
    assert_eq!(status, Some(Status::Completed), "{view:?}");
    assert_eq!(found(&view, Deviation::Duplicate), ["s2"]);
    assert_eq!(found(&view, Deviation::Skipped), ["s5"]);
    assert_eq!(found(&view, Deviation::Dangling), ["s6"]);
    engine.close().await;
    registry.close().await;
    drop((engine, registry));

    let mut done: Vec<i64> = stage
        .lines("effect", "desk.work")
        .iter()
        .map(|line| line["arguments"]["n"].as_i64().unwrap())
        .collect();
    done.sort_unstable();
    assert_eq!(done, [5, 6, 7], "what the agent had not done, once each");
    let execution = identity.execution.as_str();
    until("the database is free", || stage.rutter(&["journal", "verify"]).code == Some(0));
    let shown = stage.rutter(&["exec", "show", execution, "--json"]).json();
    assert_eq!(shown["deviations"].as_array().unwrap().len(), view.deviations.len());
    assert!(steps(&shown).iter().all(|step| step.ends_with("=completed")), "{shown}");
    let journal = stage.rutter(&["journal", "show", execution, "--json"]).stdout;
    for name in ["\"first\"", "\"second\"", "\"rutter\""] {
        assert!(journal.contains(name), "{name} is not in the journal");
    }
    assert_eq!(text(&shown["driver"]), "server");
    stage.verify(execution);
}

/// The sixth step waits for the fifth, and must not hold the only place while it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_begun_out_of_turn_leaves_the_only_place_to_the_one_it_needs() {
    let stage = stage();
    let (engine, registry) = engine(&stage, "the-only-process").await;
    let identity = first_agent(&engine, 1).await;
    let reason = "the agent is gone".to_owned();
    engine.control(&identity, Actor::person("operator"), Control::HandBack, reason, None).await.unwrap();
    let status = engine.wait(&identity, Millis::seconds(60)).await.unwrap();
    let view = engine.view(&identity).await.unwrap();
    assert_eq!(status, Some(Status::Completed), "{view:?}");
    engine.close().await;
    registry.close().await;
}
