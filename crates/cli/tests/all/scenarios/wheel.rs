//! S9: an agent drives, repeats a step, skips one and dies in the middle of another. The next one knows nothing but the
//! brief, and hands back to Rutter, which finishes.

use crate::fixture::RUTTER;
use crate::scenarios::answer::{steps, text};
use crate::scenarios::fixture::{Kind, ScenarioFixture, until};
use rutter_app::runtime::{self, Runtime, RuntimeOptions, ToolSource};
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus};
use rutter_core::id::{PartId, TenantId};
use rutter_core::journal::event::Deviation;
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::time::Millis;
use rutter_engine::control::ControlAction;
use rutter_engine::submit::PlanText;
use rutter_engine::{Engine, StartRequest};
use rutter_tools::child::LauncherProgram;
use serde_json::json;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

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

fn fixture() -> ScenarioFixture {
    let mut fixture = ScenarioFixture::new();
    fixture.server("desk", Kind::Stdio, &[]);
    let input = json!({ "type": "object", "properties": { "n": { "type": "integer" }, "key": { "type": "string" } } });
    fixture.tool("desk.work", json!({ "kind": "keyed", "key_parameter": "key", "input": input })).open();
    fixture
}

/// The first agent: it repeats the second step, skips the fifth, and dies in the middle of the sixth.
async fn first_agent(engine: &Engine, max_parallel: u32) -> ExecutionIdentity {
    let (tenant, first) = (TenantId::new("default"), Actor::agent("first"));
    let source = plan(max_parallel).into();
    let text = PlanText { tenant: tenant.clone(), source, format: DocumentFormat::Yaml, driver: Driver::Agent };
    let submitted = engine.submit(text, None, None, first.clone()).await.unwrap();
    let start = StartRequest {
        tenant: tenant.clone(),
        plan: submitted.id,
        revision: None,
        inputs: Arc::new(json!({})),
        driver: Driver::Agent,
        actor: first,
        request: None,
    };
    let identity = ExecutionIdentity { tenant, execution: engine.start(start).await.unwrap().execution };
    let agent = Agent { engine, identity: &identity, name: "first" };
    for step in ["s1", "s2", "s3"] {
        agent.does(step).await;
    }
    // Its context was compacted: it no longer knows that it did this, and what comes next.
    agent.begins("s2").await;
    agent.does("s4").await;
    agent.begins("s6").await;
    identity
}

async fn open(fixture: &ScenarioFixture) -> Runtime {
    let settings = fs::read_to_string(fixture.path("rutter.toml")).unwrap();
    // The process before may still be releasing the database.
    for _ in 0..500 {
        let options = RuntimeOptions {
            tools: ToolSource::Config(toml_edit::de::from_str(&settings).unwrap()),
            launcher: LauncherProgram { program: RUTTER.into(), arguments: vec!["launch".into()] },
            environment: std::env::vars().collect(),
            ..RuntimeOptions::new(fixture.path("data"))
        };
        match Runtime::open(options).await {
            Err(runtime::Error::Store(_)) => tokio::time::sleep(Duration::from_millis(20)).await,
            opened => return opened.unwrap(),
        }
    }
    panic!("the database is not free");
}

/// An agent that executes its steps itself and records them.
struct Agent<'a> {
    engine: &'a Engine,
    identity: &'a ExecutionIdentity,
    name: &'static str,
}

impl Agent<'_> {
    async fn says(&self, input: ExecutionInput) {
        self.engine.command(self.identity, Actor::agent(self.name), input, None).await.unwrap();
    }

    async fn begins(&self, step: &str) {
        let part = PartId::parse(step).unwrap();
        self.says(ExecutionInput::RecordStarted { part, tool: None, parameters: None }).await;
    }

    async fn does(&self, step: &str) {
        self.begins(step).await;
        let part = PartId::parse(step).unwrap();
        self.says(ExecutionInput::RecordFinished { part, result: Arc::new(json!({ "id": step })) }).await;
    }
}

fn found(view: &ExecutionSnapshot, kind: Deviation) -> Vec<&str> {
    let fits = view.deviations.iter().filter(|deviation| deviation.kind == kind);
    fits.map(|deviation| deviation.step.as_ref().unwrap().as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_leaves_behind_is_found_and_finished() {
    let fixture = fixture();
    let runtime = open(&fixture).await;
    let identity = first_agent(runtime.engine(), 2).await;
    // It dies here, and its process with it.
    runtime.close().await;
    assert_eq!(fixture.log().len(), 0, "nothing is called while an agent drives");

    let runtime = open(&fixture).await;
    let engine = runtime.engine().clone();
    let brief = engine.brief(&identity).await.unwrap();
    for line in ["Goal: Do seven things in a row", "Done: s1, s2, s3, s4", "Under way: s6", "Pending: s5, s7"] {
        assert!(brief.lines().any(|found| found == line), "{line:?} is missing:\n{brief}");
    }
    assert!(brief.contains("duplicate s2") && brief.contains("skipped s5"), "{brief}");
    let agent = Agent { engine: &engine, identity: &identity, name: "second" };
    let (decision, reason) = ("hand back".to_owned(), "s6 was begun and nobody knows how it ended".to_owned());
    agent.says(ExecutionInput::RecordDecision { step: None, decision, reason: reason.clone(), details: None }).await;
    engine.control(&identity, Actor::agent("second"), ControlAction::HandBack, reason, None, None).await.unwrap();
    let status = engine.wait(&identity, Millis::seconds(60)).await.unwrap();
    let view = engine.view(&identity).await.unwrap();
    assert_eq!(status, Some(ExecutionStatus::Completed), "{view:?}");
    assert_eq!(found(&view, Deviation::Duplicate), ["s2"]);
    assert_eq!(found(&view, Deviation::Skipped), ["s5"]);
    assert_eq!(found(&view, Deviation::Dangling), ["s6"]);
    drop(engine);
    runtime.close().await;

    let mut done: Vec<i64> =
        fixture.lines("effect", "desk.work").iter().map(|line| line["arguments"]["n"].as_i64().unwrap()).collect();
    done.sort_unstable();
    assert_eq!(done, [5, 6, 7], "the remaining steps, once each");
    let execution = identity.execution.as_str();
    until("the database is free", || fixture.rutter(&["journal", "verify"]).code == Some(0));
    let answer = fixture.rutter(&["exec", "show", execution, "--json"]).json();
    assert_eq!(answer["deviations"].as_array().unwrap().len(), view.deviations.len());
    let listed = fixture.rutter(&["exec", "list"]).stdout;
    for mark in ["skipped", "duplicate", "dangling"] {
        assert!(listed.contains(mark), "{mark}: {listed}");
    }
    let row = fixture.rutter(&["exec", "list", "--json"]).json();
    let counts = row["deviations"].as_array().unwrap();
    assert!(counts.contains(&json!({ "kind": "duplicate", "count": 1 })), "{row}");
    assert!(steps(&answer).iter().all(|step| step.ends_with("=completed")), "{answer}");
    let journal = fixture.rutter(&["journal", "show", execution, "--json"]).stdout;
    for name in ["\"first\"", "\"second\"", "\"rutter\""] {
        assert!(journal.contains(name), "{name} is not in the journal");
    }
    assert_eq!(text(&answer["driver"]), "server");
    fixture.verify(execution);
}

/// The sixth step waits for the fifth, and must not hold the only slot while it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_started_out_of_order_leaves_the_only_slot_to_its_dependency() {
    let fixture = fixture();
    let runtime = open(&fixture).await;
    let engine = runtime.engine();
    let identity = first_agent(engine, 1).await;
    let reason = "the agent is gone".to_owned();
    engine.control(&identity, Actor::person("operator"), ControlAction::HandBack, reason, None, None).await.unwrap();
    let status = engine.wait(&identity, Millis::seconds(60)).await.unwrap();
    let view = engine.view(&identity).await.unwrap();
    assert_eq!(status, Some(ExecutionStatus::Completed), "{view:?}");
    runtime.close().await;
}
