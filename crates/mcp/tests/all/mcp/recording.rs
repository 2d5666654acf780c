//! Agents that call their own tools and record what they did.

mod refusals;

use rutter_app::principal::McpToolset;
use rutter_core::id::{PlanId, TenantId};
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use serde_json::{Value, json};
use std::time::Duration;

/// Two calls in order, with tools that only the agent has.
fn trip() -> Value {
    json!({ "name": "trip", "description": "To Lisbon and back", "steps": [
        { "id": "fly", "name": "Book the flight", "tool": "book_flight", "parameters": { "to": "LIS" },
          "cancellable": "reversible",
          "failure_policy": { "propagate_to": ["stay"], "action": "cancel_dependent", "reason": "no bed without a flight" } },
        { "id": "stay", "name": "Book the hotel", "tool": "book_hotel", "parameters": { "nights": 2 },
          "cancellable": "partially-reversible" } ] })
}

/// Steps one after the other; each failure asks for a decision.
fn chain() -> Value {
    let step = |id: &str| json!({ "id": id, "tool": "own.call", "parameters": {}, "cancellable": "irreversible" });
    let mut steps = ["a", "b", "c"].map(step);
    steps[1]["depends_on"] = json!(["a"]);
    steps[2]["depends_on"] = json!(["b"]);
    json!({ "name": "chain", "description": "three", "steps": steps })
}

async fn recorder(deck: &ServerFixture) -> McpClient {
    deck.client_with(ClientEra::Modern, &[McpToolset::Journal], json!({})).await
}

async fn start(client: &mut McpClient, plan: Value) -> String {
    let plan = client.call("record_plan", plan).await;
    let started = client.call("record_execution_start", json!({ "plan_id": plan["plan_id"] })).await;
    assert_eq!(started["status"], "running", "{started}");
    started["execution_id"].as_str().unwrap().to_owned()
}

async fn step(client: &mut McpClient, execution: &str, step: &str, status: &str) -> Value {
    let mut call = json!({ "execution_id": execution, "step_id": step, "status": status });
    match status {
        "completed" => call["result"] = json!({ "of": step }),
        "failed" | "in_doubt" => call["error"] = json!("it broke"),
        _ => {}
    }
    client.call("record_step", call).await
}

async fn kinds(client: &mut McpClient, execution: &str) -> Vec<String> {
    let ledger = client.call("query_ledger", json!({ "execution_id": execution, "include_events": true })).await;
    ledger["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

/// The totals of entries and plans.
async fn written(deck: &ServerFixture) -> (u64, u64) {
    let totals = deck.app.query.totals(&TenantId::new("default")).await.unwrap();
    (totals.entries, totals.plans)
}

/// Validates a result against the output schema, as strict clients do.
pub async fn assert_fits(client: &mut McpClient, tool: &str, answer: &Value) {
    let list = client.ask("tools/list", json!({})).await.unwrap();
    let offer = list["tools"].as_array().unwrap().iter().find(|offer| offer["name"] == tool).unwrap();
    let schema = &offer["outputSchema"];
    let validator = jsonschema::validator_for(schema).unwrap();
    let wrong: Vec<String> = validator.iter_errors(answer).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{tool} answers {answer}: {wrong:?}");
}

pub fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().unwrap_or_else(|| panic!("no refusal: {answer}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_records_an_execution_from_plan_to_end_in_both_eras() {
    let deck = ServerFixture::new().await;
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let mut client = deck.client_with(era, &[McpToolset::Journal], json!({})).await;
        let plan = client.call("record_plan", trip()).await;
        assert_eq!((&plan["steps_count"], &plan["failure_policies_defined"]), (&json!(2), &json!(1)), "{plan}");
        assert!(plan["created_at"].as_str().unwrap().ends_with('Z') && plan["name"] == "trip");
        let stored = PlanId::new(plan["plan_id"].as_str().unwrap());
        let retained = deck.app.query.plan(&TenantId::new("default"), &stored, None).await.unwrap().unwrap();
        assert_eq!(retained.plan.about.description, "To Lisbon and back");

        let started = json!({ "plan_id": plan["plan_id"], "notes": "the user asked for it" });
        let started = client.call("record_execution_start", started).await;
        let next = started["next"].as_str().unwrap();
        assert!(next.starts_with(r#"call book_flight for step fly with {"to":"LIS"}"#), "{next}");
        let execution = started["execution_id"].as_str().unwrap().to_owned();
        let begun = step(&mut client, &execution, "fly", "started").await;
        assert_eq!(begun["status"], "running", "{begun}");
        let done = step(&mut client, &execution, "fly", "completed").await;
        assert!(done["next"].as_str().unwrap().contains("book_hotel"), "{done}");
        let done = step(&mut client, &execution, "stay", "completed").await;
        for (tool, answer) in [("record_plan", &plan), ("record_execution_start", &started), ("record_step", &done)] {
            assert_fits(&mut client, tool, answer).await;
        }
        assert_eq!((&done["status"], done.get("deviations")), (&json!("completed"), None), "{done}");
        assert_eq!(
            kinds(&mut client, &execution).await,
            [
                "execution_opened",
                "execution_started",
                "decision_recorded",
                "attempt_started",
                "attempt_succeeded",
                "attempt_started",
                "attempt_succeeded",
                "execution_ended",
            ]
        );
        let asked = json!({ "query_type": "completed", "text": "user asked" });
        let found = client.call("query_history", asked).await;
        assert_eq!(found["executions"][0]["execution_id"], json!(execution), "notes are found again: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_may_come_as_one_object_and_once_per_request() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let call = json!({ "plan": trip(), "request_id": "one" });
    let first = client.call("record_plan", call.clone()).await;
    assert_eq!(first["name"], "trip", "{first}");
    assert_eq!(client.call("record_plan", call).await["plan_id"], first["plan_id"]);
    assert_eq!(written(&deck).await.1, 1);
    let other = client.call("record_plan", json!({ "plan": chain(), "request_id": "one" })).await;
    assert_eq!(code(&other), "store.key_reused");
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_with_mistakes_are_not_saved() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut plan = chain();
        change(&mut plan);
        plan
    };
    for plan in [
        wrong(&|plan| plan["steps"][1]["id"] = json!("a")),
        wrong(&|plan| plan["name"] = json!("")),
        wrong(&|plan| plan["steps"] = json!([])),
        wrong(&|plan| plan["steps"][0]["depends_on"] = json!(["c"])),
        wrong(&|plan| plan["steps"][0]["failure_policy"] = json!({ "propagate_to": ["nowhere"] })),
        wrong(&|plan| plan["steps"][0]["parameters"] = json!("text")),
    ] {
        let refused = client.call("record_plan", plan.clone()).await;
        assert_eq!(code(&refused), "engine.plan", "{plan}");
        assert!(refused["error"]["details"]["diagnostics"][0]["pointer"].is_string(), "{refused}");
    }
    for plan in [json!({ "name": "no steps" }), json!({ "plan": chain(), "name": "both" }), json!({ "stpes": [] })] {
        assert_eq!(code(&client.call("record_plan", plan).await), "server.arguments");
    }
    let unknown = client.call("record_execution_start", json!({ "plan_id": "plan_nowhere" })).await;
    assert_eq!(code(&unknown), "store.not_found");
    assert_eq!(written(&deck).await, (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn deviations_from_the_plan_are_reported() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let execution = start(&mut client, chain()).await;
    let early = step(&mut client, &execution, "b", "completed").await;
    assert_eq!(early["deviations"], json!([r#"skipped a: passed over by "b""#]), "{early}");
    let late = step(&mut client, &execution, "a", "completed").await;
    assert!(late["deviations"][1].as_str().unwrap().starts_with("out_of_order a: "), "{late}");
    let again = step(&mut client, &execution, "a", "completed").await;
    assert_eq!(again["deviations"][2], "duplicate a: finished again", "{again}");
    let unplanned = json!({ "execution_id": execution, "step_id": "extra", "status": "completed", "tool": "own.extra",
        "parameters": { "x": 1 }, "result": { "y": 2 } });
    let unplanned = client.call("record_step", unplanned).await;
    assert_eq!(unplanned["deviations"], json!(["undeclared extra: the plan has no such step"]), "{unplanned}");
    let other = json!({ "execution_id": execution, "step_id": "c", "status": "completed", "tool": "own.other",
        "parameters": { "z": 3 }, "result": null });
    let other = client.call("record_step", other).await;
    assert_eq!(other["deviations"], json!(["other_tool c: called own.other, the plan says own.call"]), "{other}");
    assert_eq!(other["status"], "completed");
    let history = client.call("query_history", json!({})).await;
    let counted = ["skipped", "duplicate", "out_of_order", "undeclared", "other_tool"];
    let counted: Vec<Value> = counted.iter().map(|kind| json!({ "kind": kind, "count": 1 })).collect();
    assert_eq!(history["executions"][0]["deviations"], json!(counted), "the list has them too: {history}");
    let events = client.call("query_ledger", json!({ "execution_id": execution, "include_events": true })).await;
    let all = events["events"].as_array().unwrap();
    let called = all.iter().find(|event| event["event"]["tool"] == "own.other").unwrap();
    assert_eq!(called["event"]["parameters"], json!({ "z": 3 }), "the actual parameters are recorded");
    let actions = all.iter().filter(|event| event["kind"] == "action_recorded");
    let results: Vec<&Value> = actions.map(|event| &event["event"]["details"]["result"]).collect();
    assert_eq!(
        results,
        [&json!({ "of": "a" }), &json!({ "y": 2 })],
        "neither a repeated nor an undeclared call is lost"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_although_nothing_waited_for_it_is_on_record() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let steps = json!([
        { "id": "a", "tool": "own.call", "failure_policy": { "action": "cancel_dependent" }, "depends_on": [] },
        { "id": "b", "tool": "own.call", "depends_on": ["a"] },
        { "id": "each", "tool": "own.call", "for_each": "[1, 2]", "depends_on": [] },
    ]);
    let execution = start(&mut client, json!({ "name": "loose", "steps": steps })).await;
    let failure = json!({ "execution_id": execution, "step_id": "a", "status": "failed",
        "error": { "category": "conflict", "message": "nobody there" } });
    client.call("record_step", failure).await;
    let cancelled = step(&mut client, &execution, "b", "completed").await;
    assert_eq!(
        cancelled["deviations"],
        json!(["undeclared b: done although it was skipped or cancelled"]),
        "{cancelled}"
    );
    let whole = step(&mut client, &execution, "each", "in_doubt").await;
    let why = "undeclared each: the step has items, and none was named";
    assert_eq!(whole["deviations"], json!([why]), "{whole}");
    let ledger = json!({ "execution_id": execution, "include_events": true });
    let events = client.call("query_ledger", ledger).await["events"].to_string();
    for said in [r#""of":"b""#, "it broke"] {
        assert!(events.contains(said), "{said} is lost: {events}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_waits_and_the_agent_decides() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let execution = start(&mut client, chain()).await;
    let away = json!({ "execution_id": execution, "step_id": "a", "status": "failed",
        "error": { "category": "unavailable", "message": "not now" } });
    let away = client.call("record_step", away).await;
    assert!(away["next"].as_str().unwrap().starts_with("call own.call for step a again"), "{away}");
    let failure = json!({ "execution_id": execution, "step_id": "a", "status": "failed",
        "error": { "category": "conflict", "message": "nobody there" } });
    let failed = client.call("record_step", failure).await;
    assert_eq!(failed["status"], "waiting", "{failed}");
    assert!(failed["next"].as_str().unwrap().contains("record_decision"), "the tools it has: {failed}");
    let ledger = client.call("query_ledger", json!({ "execution_id": execution })).await;
    assert_eq!(ledger["error"], "a failed (conflict: \"nobody there\")");
    let continued = json!({ "execution_id": execution, "action": "continue", "reason": "the rest stands without it",
        "details": "{\"asked\": \"nobody\"}", "request_id": "go" });
    let answered = client.call("record_decision", continued.clone()).await;
    assert_eq!(answered["status"], "running", "{answered}");
    let before = written(&deck).await;
    assert_eq!(client.call("record_decision", continued).await, answered, "the same request, the same answer");
    assert_eq!(written(&deck).await, before);
    let events = client.call("query_ledger", json!({ "execution_id": execution, "include_events": true })).await;
    let decided = events["events"].as_array().unwrap().iter().find(|event| event["kind"] == "decision_recorded");
    assert_eq!(decided.unwrap()["event"]["details"], json!({ "asked": "nobody" }), "never an encoded text");
    for id in ["b", "c"] {
        step(&mut client, &execution, id, "completed").await;
    }
    let ledger = client.call("query_ledger", json!({ "execution_id": execution })).await;
    assert_eq!(ledger["status"], "partial", "{ledger}");
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_ends_a_running_execution_and_never_an_ended_one() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let execution = start(&mut client, chain()).await;
    step(&mut client, &execution, "a", "completed").await;
    let stop = json!({ "execution_id": execution, "action": "stop", "reason": "not needed any more",
        "details": { "by": "user" }, "request_id": "halt" });
    let stopped = client.call("record_decision", stop.clone()).await;
    assert_eq!(stopped["status"], "cancelled", "{stopped}");
    assert_eq!(client.call("record_decision", stop).await, stopped);

    let done = start(&mut client, trip()).await;
    for id in ["fly", "stay"] {
        step(&mut client, &done, id, "completed").await;
    }
    let before = written(&deck).await;
    for call in [
        json!({ "execution_id": done, "action": "stop", "reason": "too late" }),
        json!({ "execution_id": done, "action": "stop", "reason": "too late", "details": "x", "request_id": "late" }),
        json!({ "execution_id": done, "action": "end", "reason": "too late" }),
    ] {
        assert_eq!(code(&client.call("record_decision", call).await), "execution.ended");
    }
    assert_eq!(code(&step(&mut client, &done, "fly", "failed").await), "execution.ended");
    assert_eq!(written(&deck).await, before, "nothing was added");
    assert_eq!(client.call("query_ledger", json!({ "execution_id": done })).await["status"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_skips_steps_records_the_end() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let execution = start(&mut client, chain()).await;
    step(&mut client, &execution, "a", "completed").await;
    let end = json!({ "execution_id": execution, "action": "end", "reason": "the rest is not needed" });
    let ended = client.call("record_decision", end).await;
    assert_eq!(ended["status"], "partial", "{ended}");
    let ledger = json!({ "execution_id": execution, "include_step_details": true });
    let ledger = client.call("query_ledger", ledger).await;
    assert_eq!((&ledger["steps"][1]["status"], &ledger["steps"][2]["status"]), (&json!("skipped"), &json!("skipped")));
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_and_compensations_accept_details_in_every_form() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let execution = start(&mut client, trip()).await;
    step(&mut client, &execution, "fly", "completed").await;
    for (kind, details) in [
        ("stopped", json!("as text")),
        ("cleaned_up", json!({ "as": "object" })),
        ("notified", json!("{\"as\": \"encoded object\"}")),
        ("rolled_back", Value::Null),
        ("other", Value::Null),
    ] {
        let action = json!({ "execution_id": execution, "step_id": "fly", "action_type": kind,
            "description": format!("did {kind}"), "details": details });
        assert_eq!(client.call("record_action", action).await["status"], "running");
    }
    let before = written(&deck).await;
    let undone = json!({ "execution_id": execution, "step_id": "fly", "reason": "the user changed their mind",
        "action_taken": "cancelled the booking", "details": { "refund": 120 }, "request_id": "undo" });
    let recorded = client.call("record_compensation", undone.clone()).await;
    assert!(recorded["summary"].as_str().unwrap().starts_with("recorded that fly was undone"), "{recorded}");
    assert_eq!(client.call("record_compensation", undone.clone()).await, recorded);
    assert_eq!(written(&deck).await.0, before.0 + 1, "once");
    let twice = json!({ "execution_id": execution, "step_id": "fly", "reason": "r", "action_taken": "t" });
    assert_eq!(code(&client.call("record_compensation", twice).await), "execution.nothing_to_undo");
    let mut other = undone;
    other["reason"] = json!("another");
    assert_eq!(code(&client.call("record_compensation", other).await), "store.key_reused");
    let ledger = json!({ "execution_id": execution, "include_events": true, "include_step_details": true });
    let ledger = client.call("query_ledger", ledger).await;
    assert_eq!(ledger["steps"][0]["status"], "compensated");
    let undone = ledger["events"].as_array().unwrap().last().unwrap();
    assert_eq!(undone["event"]["evidence"]["details"], json!({ "refund": 120 }));
    let text = undone["text"].as_str().unwrap();
    assert!(text.contains("cancelled the booking: the user changed their mind"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn descriptions_of_the_recording_tools_are_short() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let list = client.ask("tools/list", json!({})).await.unwrap();
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "record_plan",
            "record_execution_start",
            "record_step",
            "record_decision",
            "record_action",
            "record_compensation",
            "query_ledger",
            "query_history",
            "cleanup_history",
        ]
    );
    for tool in tools {
        let schemas = tool["inputSchema"].to_string().len() + tool["outputSchema"].to_string().len();
        let description = tool["description"].as_str().unwrap();
        assert!(description.len() <= 260, "{} says {} bytes", tool["name"], description.len());
        assert!(!tool.to_string().contains("null"), "{tool}");
        assert!(schemas + description.len() <= 1_500, "{} costs {}", tool["name"], schemas + description.len());
    }
}

/// Half of the lease has passed, so that a sign is worth an entry.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_an_agent_asks_about_its_execution_is_a_sign_of_life() {
    let deck = ServerFixture::new().await;
    let sets = [McpToolset::Default, McpToolset::Journal];
    let mut client = deck.client_with(ClientEra::Modern, &sets, json!({})).await;
    let plan = json!({ "name": "slow", "agent_timeout": "1s", "steps": [{ "id": "a", "tool": "own.call" }] });
    let started = client.call("execute_plan", json!({ "plan": plan, "driver": "agent" })).await;
    let execution = started["execution_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    assert_eq!(code_or_none(&step(&mut client, &execution, "a", "started").await), None);
    for tool in ["status", "preview", "query_ledger", "summarize"] {
        let before = written(&deck).await.0;
        tokio::time::sleep(Duration::from_millis(600)).await;
        let answer = client.call(tool, json!({ "execution_id": execution })).await;
        assert_eq!(code_or_none(&answer), None, "{tool}: {answer}");
        assert_eq!(written(&deck).await.0, before + 1, "{tool}");
    }
    let before = written(&deck).await.0;
    tokio::time::sleep(Duration::from_millis(600)).await;
    client.ask("resources/read", json!({ "uri": format!("rutter://executions/{execution}") })).await.unwrap();
    assert_eq!(written(&deck).await.0, before + 1, "a resource");
    // What is refused counts as well.
    tokio::time::sleep(Duration::from_millis(600)).await;
    let undone = json!({ "execution_id": execution, "step_id": "a", "reason": "r", "action_taken": "t" });
    assert_eq!(code(&client.call("record_compensation", undone).await), "execution.nothing_to_undo");
    assert_eq!(written(&deck).await.0, before + 2, "a refusal");
}

/// The wait is longer than the lease, and nothing else is heard of the agent.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_waits_for_its_execution_is_alive() {
    let deck = ServerFixture::new().await;
    let sets = [McpToolset::Default, McpToolset::Journal];
    let mut client = deck.client_with(ClientEra::Modern, &sets, json!({})).await;
    let plan = json!({ "name": "slow", "agent_timeout": "2s", "steps": [{ "id": "a", "tool": "own.call" }] });
    let started = client.call("execute_plan", json!({ "plan": plan, "driver": "agent" })).await;
    let execution = started["execution_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    assert_eq!(code_or_none(&step(&mut client, &execution, "a", "started").await), None);
    let waited = client.call("status", json!({ "execution_id": execution, "wait_seconds": 5 })).await;
    assert_eq!(waited["status"], "running", "{waited}");
    let kinds = kinds(&mut client, &execution).await;
    assert!(!kinds.iter().any(|kind| kind == "agent_silent"), "{kinds:?}");
}

/// Only the execution knows the tool and the parameters, and nothing else says what to do.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_undoes_its_execution_is_told_what_to_call() {
    let deck = ServerFixture::new().await;
    let sets = [McpToolset::Default, McpToolset::Journal];
    let mut client = deck.client_with(ClientEra::Modern, &sets, json!({})).await;
    let undo = json!({ "tool": "own.undo", "parameters": { "id": "{{ result.of }}" } });
    let plan = json!({ "name": "undo", "steps": [{ "id": "a", "tool": "own.call", "compensation": undo }] });
    let started = client.call("execute_plan", json!({ "plan": plan, "driver": "agent" })).await;
    let execution = started["execution_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned();
    assert_eq!(step(&mut client, &execution, "a", "completed").await["status"], "completed");
    let undo = json!({ "execution_id": execution, "action": "undo", "reason": "not wanted" });
    let undoing = client.call("control", undo).await;
    assert_eq!(undoing["status"], "compensating", "{undoing}");
    let call = r#"own.undo with {"id":"a"} to undo step a, then record_compensation {"#;
    for answer in [undoing, client.call("status", json!({ "execution_id": execution })).await] {
        assert!(answer["next"].as_str().unwrap().contains(call), "{answer}");
    }
    let briefly = client.call("status", json!({ "execution_id": execution, "brief": true })).await;
    assert!(!briefly["brief"].as_str().unwrap().contains("Next:"), "{briefly}");
    let undone =
        json!({ "execution_id": execution, "step_id": "a", "reason": "not wanted", "action_taken": "called own.undo" });
    let undone = client.call("record_compensation", undone).await;
    assert_eq!(undone["status"], "compensated", "{undone}");
}

fn code_or_none(answer: &Value) -> Option<&str> {
    answer["error"]["code"].as_str()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_ends_an_execution_says_why_and_what_is_unmet() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let execution = start(&mut client, chain()).await;
    assert_eq!(step(&mut client, &execution, "a", "completed").await.get("unmet"), None);
    step(&mut client, &execution, "b", "failed").await;
    let stop = json!({ "execution_id": execution, "action": "stop", "reason": "no more" });
    let ended = client.call("record_decision", stop).await;
    assert_eq!(ended["cause"], "\"no more\"", "{ended}");
    assert_eq!((&ended["failed_steps"][0]["step"], &ended["remains"]), (&json!("b"), &json!(["a"])), "{ended}");
    let unmet: Vec<&str> = ended["unmet"].as_array().unwrap().iter().map(|it| it["step"].as_str().unwrap()).collect();
    assert_eq!(unmet, ["b", "c"], "{ended}");
    let ledger = client.call("query_ledger", json!({ "execution_id": execution })).await;
    for field in ["cause", "failed_steps", "skipped", "undone", "remains", "unmet"] {
        assert_eq!(ledger.get(field), ended.get(field), "{field}");
    }
    assert_eq!(ledger["error"], "b failed (tool_error: \"it broke\")");

    let mut reader = deck.client(ClientEra::Modern).await;
    let status = reader.call("status", json!({ "execution_id": execution, "brief": true })).await;
    assert!(status["next"].as_str().unwrap().contains("tell the user"), "{status}");
    assert!(!status["brief"].as_str().unwrap().contains("Next:"), "{status}");
    let plan = json!({ "name": "chain", "steps": [{ "id": "a", "tool": "own.call", "cancellable": "irreversible" }] });
    let plan = json!({ "execution_id": execution, "plan": plan, "reason": "less" });
    let replanned = reader.call("replan", plan).await;
    assert_eq!(replanned["unmet"][0]["step"], "b", "{replanned}");
}
