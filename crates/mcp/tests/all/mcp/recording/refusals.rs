//! What agents may not record, and requests that are recorded only once.

use super::{chain, code, recorder, start, step, written};
use rutter_app::plans::{PlanInput, save_plan};
use rutter_app::principal::Principal;
use rutter_app::start::NewExecution;
use rutter_core::id::TenantId;
use rutter_core::plan::Driver;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::ClientEra;
use serde_json::json;
use std::sync::Arc;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

#[tokio::test(flavor = "multi_thread")]
async fn a_step_in_doubt_stays_in_doubt_whatever_the_agent_records() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    for error in [json!("the line went dead"), json!({ "category": "timeout", "message": "no answer" })] {
        let execution = start(&mut client, chain()).await;
        let status = if error.is_string() { "in_doubt" } else { "failed" };
        let doubted = json!({ "execution_id": execution, "step_id": "a", "status": status, "error": error });
        let doubted = client.call("record_step", doubted).await;
        assert_eq!(doubted["status"], "waiting", "{doubted}");
        assert!(doubted["next"].as_str().unwrap().contains("only a person"), "{doubted}");
        for status in ["completed", "failed", "started"] {
            assert_eq!(step(&mut client, &execution, "a", status).await["status"], "waiting");
        }
        let undone = json!({ "execution_id": execution, "step_id": "a", "reason": "r", "action_taken": "t" });
        assert_eq!(code(&client.call("record_compensation", undone).await), "execution.nothing_to_undo");
        let ledger = json!({ "execution_id": execution, "include_step_details": true });
        assert_eq!(client.call("query_ledger", ledger).await["steps"][0]["status"], "in_doubt");
    }
}

/// A server that reads a request and closes the connection: the effect is unknown.
async fn hangs_up() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
        }
    });
    base
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_settle_the_doubt_of_an_execution_rutter_drives() {
    let base = hangs_up().await;
    let config =
        format!("[http.shop]\nbase = '{base}'\nallow = ['127.0.0.1']\ntools.order = {{method = 'POST', path = '/'}}");
    let deck = ServerFixture::with(&config).await;
    let mut client = deck.client(ClientEra::Modern).await;
    let plan = json!({ "name": "order", "steps": [
        { "id": "order", "tool": "shop.order", "parameters": {}, "cancellable": "irreversible" } ] });
    let doubted = client.call("execute_plan", json!({ "plan": plan })).await;
    assert_eq!(doubted["questions"][0]["kind"], "doubt", "{doubted}");
    let execution = doubted["execution_id"].as_str().unwrap().to_owned();
    for status in ["started", "completed", "failed", "in_doubt"] {
        assert_eq!(code(&step(&mut client, &execution, "order", status).await), "execution.driver");
    }
    let unknown = step(&mut client, &execution, "another", "completed").await;
    assert_eq!(code(&unknown), "execution.driver", "nor with an unknown step");
    let undone = json!({ "execution_id": execution, "step_id": "order", "reason": "r", "action_taken": "t" });
    assert_eq!(code(&client.call("record_compensation", undone).await), "execution.nothing_to_undo");
    let action = json!({ "execution_id": execution, "step_id": "order", "action_type": "rolled_back",
        "description": "settled it myself" });
    let action = client.call("record_action", action).await;
    assert_eq!(action["status"], "waiting", "recorded without other effects: {action}");
    let decision = json!({ "execution_id": execution, "action": "continue", "reason": "it surely happened" });
    assert_eq!(client.call("record_decision", decision).await["status"], "waiting");
    let end = json!({ "execution_id": execution, "action": "end", "reason": "done" });
    assert_eq!(code(&client.call("record_decision", end).await), "execution.driver");
    let seen = client.call("status", json!({ "execution_id": execution })).await;
    assert_eq!(seen["questions"][0]["kind"], "doubt", "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_is_recorded_once() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let plan = client.call("record_plan", chain()).await;
    let begin = json!({ "plan_id": plan["plan_id"], "notes": "n", "request_id": "begin" });
    let started = client.call("record_execution_start", begin.clone()).await;
    assert_eq!(client.call("record_execution_start", begin.clone()).await, started);
    let mut other = begin;
    other["notes"] = json!("other");
    assert_eq!(code(&client.call("record_execution_start", other).await), "store.key_reused");
    let execution = started["execution_id"].as_str().unwrap();
    for (number, (tool, call, other)) in [
        ("record_step", json!({ "step_id": "a", "status": "started" }), json!({ "status": "completed" })),
        ("record_step", json!({ "step_id": "a", "status": "completed", "result": 1 }), json!({ "result": 2 })),
        (
            "record_step",
            json!({ "step_id": "b", "status": "completed", "tool": "own.call", "parameters": { "p": 1 } }),
            json!({ "result": 2 }),
        ),
        ("record_action", json!({ "action_type": "other", "description": "d" }), json!({ "description": "e" })),
        ("record_decision", json!({ "action": "continue", "reason": "r" }), json!({ "reason": "s" })),
        // The last step: the execution has ended when the request is repeated.
        ("record_step", json!({ "step_id": "c", "status": "completed", "result": 1 }), json!({ "result": 2 })),
    ]
    .into_iter()
    .enumerate()
    {
        let mut call = call;
        call["execution_id"] = json!(execution);
        call["request_id"] = json!(format!("request-{number}"));
        let first = client.call(tool, call.clone()).await;
        assert!(first.get("error").is_none(), "{first}");
        let before = written(&deck).await;
        assert_eq!(client.call(tool, call.clone()).await, first, "the same result");
        for (key, value) in other.as_object().unwrap() {
            call[key] = value.clone();
        }
        assert_eq!(code(&client.call(tool, call).await), "store.key_reused");
        assert_eq!(written(&deck).await, before, "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_recordings_are_refused_with_a_code_and_change_nothing() {
    let deck = ServerFixture::new().await;
    let mut client = recorder(&deck).await;
    let execution = start(&mut client, chain()).await;
    let long = "x".repeat(5_000);
    let before = written(&deck).await;
    for (tool, call, expected) in [
        ("record_step", json!({ "step_id": "a", "status": "done" }), "server.arguments"),
        ("record_step", json!({ "step_id": "a", "status": "failed" }), "server.arguments"),
        ("record_step", json!({ "step_id": "a", "status": "started", "result": 1 }), "server.arguments"),
        ("record_step", json!({ "step_id": "a", "status": "completed", "error": "x" }), "server.arguments"),
        ("record_step", json!({ "step_id": "", "status": "started" }), "server.arguments"),
        ("record_step", json!({ "step_id": "a", "status": "failed", "error": { "message": 1 } }), "server.arguments"),
        (
            "record_step",
            json!({ "step_id": "a", "status": "failed", "error": { "message": "m", "category": "odd" } }),
            "server.arguments",
        ),
        ("record_step", json!({ "step_id": "a", "status": "failed", "error": long }), "execution.text_too_long"),
        ("record_step", json!({ "step_id": "a", "status": "completed", "result": "x".repeat(2 << 20) }), "store.limit"),
        ("record_decision", json!({ "action": "pause", "reason": "r" }), "server.arguments"),
        ("record_decision", json!({ "action": "stop" }), "command.reason_missing"),
        ("record_decision", json!({ "action": "end", "reason": " " }), "command.reason_missing"),
        ("record_decision", json!({ "action": "stop", "reason": long }), "execution.text_too_long"),
        ("record_decision", json!({ "action": "stop", "reason": "r", "step_id": "z" }), "execution.unknown_part"),
        ("record_decision", json!({ "action": "stop", "reason": "r", "details": 3 }), "server.arguments"),
        ("record_action", json!({ "action_type": "danced", "description": "d" }), "server.arguments"),
        (
            "record_action",
            json!({ "action_type": "other", "description": "d", "step_id": "z" }),
            "execution.unknown_part",
        ),
        ("record_action", json!({ "action_type": "other", "description": "d", "extra": 1 }), "server.arguments"),
        ("record_compensation", json!({ "step_id": "a", "reason": "r" }), "server.arguments"),
        (
            "record_compensation",
            json!({ "step_id": "a", "reason": "r", "action_taken": "t" }),
            "execution.nothing_to_undo",
        ),
        (
            "record_compensation",
            json!({ "step_id": "z", "reason": "r", "action_taken": "t" }),
            "execution.unknown_part",
        ),
    ] {
        let mut call = call;
        call["execution_id"] = json!(execution);
        let refused = client.call(tool, call.clone()).await;
        assert_eq!(code(&refused), expected, "{tool} {call} {refused}");
    }
    let notes = json!({ "plan_id": "plan_x", "notes": long });
    assert_eq!(code(&client.call("record_execution_start", notes).await), "execution.text_too_long");
    assert_eq!(written(&deck).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_of_another_tenant_cannot_be_recorded_into() {
    let deck = ServerFixture::new().await;
    let other = TenantId::new("other");
    let they = Principal::owner(other.clone(), "theirs");
    let text = PlanInput::Text(chain().to_string()).text(&other, Driver::Agent).unwrap();
    let plan = save_plan(&deck.app, &they, text, None, None, None).await.unwrap().id;
    let (inputs, driver) = (Arc::new(json!({})), Driver::Agent);
    let new = NewExecution { plan: plan.clone(), revision: None, inputs, driver, request_key: None };
    let theirs = deck.app.start(&they, new).await.unwrap().execution;
    let before = deck.app.query.totals(&other).await.unwrap();
    let mut client = recorder(&deck).await;
    for execution in [theirs.as_str(), "exec_nowhere"] {
        for (tool, call) in [
            ("record_step", json!({ "step_id": "a", "status": "completed" })),
            ("record_decision", json!({ "action": "stop", "reason": "r" })),
            ("record_decision", json!({ "action": "continue", "reason": "r" })),
            ("record_action", json!({ "action_type": "other", "description": "d" })),
            ("record_action", json!({ "action_type": "other", "description": "d", "step_id": "a" })),
            ("record_compensation", json!({ "step_id": "a", "reason": "r", "action_taken": "t" })),
            ("query_ledger", json!({ "include_events": true })),
        ] {
            let mut call = call;
            call["execution_id"] = json!(execution);
            let refused = client.call(tool, call).await;
            assert_eq!(code(&refused), "store.not_found", "{tool} {refused}");
        }
    }
    assert_eq!(code(&client.call("record_execution_start", json!({ "plan_id": plan })).await), "store.not_found");
    assert_eq!(client.call("query_history", json!({})).await["total"], 0);
    assert_eq!(deck.app.query.totals(&other).await.unwrap(), before);
}
