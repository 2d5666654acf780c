//! Controlling executions whose tools have real effects, which are counted.

use rutter_app::principal::McpToolset;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::ClientEra;
use rutter_testkit::server::shop::{ShopFixture, execute, order, steer};
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[tokio::test(flavor = "multi_thread")]
async fn pause_starts_nothing_new_and_resume_continues() {
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let shop = ShopFixture::with(json!({})).await;
        let mut client = shop.deck.client(era).await;
        let plan = json!({ "name": "two", "steps": [
            { "id": "first", "tool": "shop.slow", "cancellable": "irreversible" },
            { "id": "second", "tool": "shop.mail", "depends_on": ["first"], "cancellable": "irreversible" } ] });
        let begun = client.call("execute_plan", json!({ "plan": plan, "wait_seconds": 0 })).await;
        shop.called("slow", 1).await;
        let id = &begun["execution_id"];
        let paused = client.call("control", json!({ "execution_id": id, "action": "pause" })).await;
        assert_eq!(paused["status"], "paused", "{paused}");
        let again = client.call("control", json!({ "execution_id": id, "action": "pause" })).await;
        assert_eq!(again["error"]["code"], "execution.paused", "{again}");
        assert!(again["error"]["hint"].as_str().unwrap().contains("resume"), "{again}");
        let seen = client.call("status", json!({ "execution_id": id, "include_step_details": true })).await;
        assert_eq!((shop.effects("slow"), shop.effects("mail")), (1, 0), "{seen}");
        let done = steer(&mut client, &begun, json!({ "action": "resume" })).await;
        assert_eq!(done["status"], "completed", "{done}");
        assert_eq!((shop.effects("slow"), shop.effects("mail")), (1, 1));
        assert_eq!(done["results"]["second"]["id"], "mail-2", "the outcome is in the answer: {done}");
        for action in ["pause", "resume", "cancel"] {
            let late = json!({ "execution_id": id, "action": action, "reason": "too late" });
            let refused = client.call("control", late).await;
            assert_eq!(refused["error"]["code"], "execution.ended", "{action}: {refused}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_ends_the_execution_and_undoes_effects_if_asked_to() {
    let cases = [
        (json!({ "action": "cancel", "undo": true, "reason": "sold out" }), "compensated", 1),
        (json!({ "action": "cancel", "undo": false, "reason": "sold out" }), "cancelled", 0),
        (json!({ "action": "compensate", "reason": "not wanted any more" }), "compensated", 1),
        (json!({ "action": "undo", "reason": "not wanted any more" }), "compensated", 1),
    ];
    for (say, status, released) in cases {
        let shop = ShopFixture::with(json!({ "shop.look": ["hang_until_cancelled"] })).await;
        let mut client = shop.deck.client(ClientEra::Modern).await;
        let plan = order("shop.look");
        let begun = client.call("execute_plan", json!({ "plan": plan, "wait_seconds": 0 })).await;
        shop.called("look", 1).await;
        let ended = steer(&mut client, &begun, say).await;
        assert_eq!(ended["status"], status, "{ended}");
        assert_eq!((shop.effects("release"), shop.effects("mail")), (released, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_can_be_answered_in_every_way() {
    let always = json!({ "shop.charge": ["fail"] });
    let cases = [
        (json!({ "action": "skip", "reason": "not needed" }), "partial", 1, 0),
        (json!({ "action": "resolve", "reason": "paid in cash", "evidence": "receipt 7" }), "completed", 1, 0),
        (json!({ "action": "stop", "reason": "no money" }), "failed", 0, 0),
        (json!({ "action": "continue" }), "partial", 1, 0),
        (json!({ "action": "compensate", "reason": "start over" }), "compensated", 0, 1),
    ];
    for (say, status, mailed, released) in cases {
        let shop = ShopFixture::with(always.clone()).await;
        let mut client = shop.deck.client(ClientEra::Legacy).await;
        let waiting = execute(&mut client, &order("shop.charge")).await;
        assert_eq!((&waiting["status"], &waiting["done"]), (&json!("waiting"), &json!(1)), "{waiting}");
        assert!(waiting["next"].as_str().unwrap().contains("\"retry\""), "{waiting}");
        let ended = steer(&mut client, &waiting, say.clone()).await;
        assert_eq!(ended["status"], status, "{say}: {ended}");
        let counts = (shop.effects("reserve"), shop.effects("mail"), shop.effects("release"));
        assert_eq!(counts, (1, mailed, released), "{say}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_repeats_only_the_failed_call() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail", null] })).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let waiting = execute(&mut client, &order("shop.charge")).await;
    let wrong = json!({ "execution_id": waiting["execution_id"], "action": "retry", "step_id": "reserve",
        "request_id": "wrong-1" });
    for _ in 0..2 {
        let refused = client.call("control", wrong.clone()).await;
        assert_eq!(refused["error"]["code"], "execution.no_question", "refused again, not taken for done: {refused}");
    }
    let retry = json!({ "action": "retry", "step_id": "charge", "request_id": "again-1" });
    let done = steer(&mut client, &waiting, retry.clone()).await;
    assert_eq!(done["status"], "completed", "{done}");
    let again = steer(&mut client, &waiting, retry).await;
    assert_eq!(again["status"], "completed", "the same request is answered, not refused: {again}");
    let other = json!({ "action": "skip", "step_id": "charge", "reason": "no", "request_id": "again-1" });
    let mut asked = json!({ "execution_id": waiting["execution_id"] });
    asked.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
    let reused = client.call("control", asked).await;
    assert_eq!(reused["error"]["code"], "store.key_reused", "{reused}");
    assert_eq!(shop.history(), ["reserve", "charge", "mail"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_change_the_outcome_need_a_reason() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let waiting = execute(&mut client, &order("shop.charge")).await;
    for action in ["cancel", "kill", "skip", "stop", "resolve", "settle", "undo", "compensate"] {
        let without = json!({ "execution_id": waiting["execution_id"], "action": action, "reason": " " });
        let refused = client.call("control", without).await;
        assert_eq!(refused["error"]["code"], "command.reason_missing", "{action}: {refused}");
    }
    let killed = steer(&mut client, &waiting, json!({ "action": "kill", "reason": "wrong order" })).await;
    assert_eq!(killed["status"], "cancelled", "{killed}");
    assert_eq!(shop.history(), ["reserve"], "nothing is compensated");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completed_execution_is_undone_as_previewed() {
    let shop = ShopFixture::with(json!({})).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let plan = json!({ "name": "both", "steps": [
        { "id": "reserve", "tool": "shop.reserve", "cancellable": "reversible",
          "compensation": { "tool": "shop.release", "parameters": {} } },
        { "id": "charge", "tool": "shop.charge", "depends_on": ["reserve"], "cancellable": "reversible",
          "compensation": { "tool": "shop.refund", "parameters": {} } },
        { "id": "mail", "tool": "shop.mail", "depends_on": ["charge"], "cancellable": "irreversible" } ] });
    let done = execute(&mut client, &plan).await;
    let json = client.call("preview", json!({ "execution_id": done["execution_id"] })).await;
    let order: Vec<&Value> =
        json["rollback"]["in_order"].as_array().unwrap().iter().map(|part| &part["tool"]).collect();
    assert_eq!(order, ["shop.refund", "shop.release"], "{json}");
    assert_eq!(json["rollback"]["stays"], json!(["mail"]));
    let some = json!({ "action": "compensate", "steps": ["charge"], "reason": "too dear" });
    let part = steer(&mut client, &done, some).await;
    assert_eq!(part["status"], "partial", "{part}");
    assert_eq!(shop.history()[3..], ["refund"]);
    let rest = steer(&mut client, &done, json!({ "action": "compensate", "reason": "all of it" })).await;
    assert_eq!(shop.history()[3..], ["refund", "release"], "{rest}");
    let nothing = json!({ "execution_id": done["execution_id"], "action": "compensate", "reason": "again" });
    let refused = client.call("control", nothing).await;
    assert_eq!(refused["error"]["code"], "execution.nothing_to_undo", "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn doubt_is_settled_by_a_person_and_never_by_the_agent() {
    let lost = json!({ "shop.charge": ["commit_then_drop", null] });
    let says = json!({ "action": "resolve", "reason": "I am sure", "happened": true, "evidence": "trust me" });

    let shop = ShopFixture::with(lost.clone()).await;
    let mut mute = shop.deck.client(ClientEra::Modern).await;
    let waiting = execute(&mut mute, &order("shop.charge")).await;
    let mut arguments = says.clone();
    arguments["execution_id"] = waiting["execution_id"].clone();
    let refused = mute.call("control", arguments).await;
    assert_eq!(refused["error"]["code"], "execution.not_a_person", "{refused}");
    assert!(refused["error"]["hint"].as_str().unwrap().contains("rutter exec list --asking"), "{refused}");

    let forms = json!({ "elicitation": { "form": {} } });
    let yes = json!({ "action": "accept", "content": { "happened": true, "evidence": "the bank says so" } });
    let no = json!({ "action": "decline" });
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let shop = ShopFixture::with(lost.clone()).await;
        let mut mute = shop.deck.client(era).await;
        let waiting = execute(&mut mute, &order("shop.charge")).await;
        let mut client = shop.deck.client_with(era, &[McpToolset::Default], forms.clone()).await;
        let mut arguments = says.clone();
        arguments["execution_id"] = waiting["execution_id"].clone();
        let call = json!({ "name": "control", "arguments": arguments });
        let mut answers = Vec::new();
        for reply in [&no, &yes] {
            let sent = client.send("tools/call", call.clone()).await;
            answers.push(match era {
                ClientEra::Legacy => {
                    let question = client.asked().await;
                    client.reply(&question["id"], reply.clone()).await;
                    client.answer(sent).await.unwrap()
                }
                ClientEra::Modern => {
                    let asked = client.answer(sent).await.unwrap();
                    assert_eq!(asked["resultType"], "input_required", "{asked}");
                    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
                    let mut again = call.clone();
                    again["requestState"] = asked["requestState"].clone();
                    again["inputResponses"] = json!({ key: reply });
                    client.ask("tools/call", again).await.unwrap()
                }
            });
        }
        assert_eq!(answers[0]["isError"], true, "declining settles nothing: {}", answers[0]);
        assert_eq!(answers[1]["structuredContent"]["status"], "completed", "{}", answers[1]);
        assert_eq!(shop.history(), ["reserve", "charge", "mail"], "one effect each");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_is_taken_over_and_handed_back() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail", null] })).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let waiting = execute(&mut client, &order("shop.charge")).await;
    let mine = steer(&mut client, &waiting, json!({ "action": "take_over" })).await;
    assert_eq!(mine["execution_id"], waiting["execution_id"]);
    let id = &waiting["execution_id"];
    let again = client.call("control", json!({ "execution_id": id, "action": "take_over" })).await;
    assert_eq!(again["error"]["code"], "execution.driver", "{again}");
    let retried = steer(&mut client, &waiting, json!({ "action": "retry" })).await;
    assert_eq!(shop.effects("charge"), 0, "the agent drives, so Rutter calls nothing: {retried}");
    let done = steer(&mut client, &waiting, json!({ "action": "hand_back" })).await;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(shop.history(), ["reserve", "charge", "mail"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_at_once_with_one_request_id_start_one_execution() {
    let shop = ShopFixture::with(json!({})).await;
    let mut clients = Vec::new();
    for number in 0..50 {
        let era = if number % 2 == 0 { ClientEra::Legacy } else { ClientEra::Modern };
        clients.push(shop.deck.client(era).await);
    }
    let arguments = json!({ "plan": order("shop.charge"), "request_id": "order-4711", "wait_seconds": 45 });
    let calls = clients.into_iter().map(|mut client| {
        let arguments = arguments.clone();
        tokio::spawn(async move { client.call("execute_plan", arguments).await })
    });
    let calls: Vec<_> = calls.collect();
    let mut handles = BTreeSet::new();
    for call in calls {
        let answer = call.await.unwrap();
        assert_eq!(answer["status"], "completed", "{answer}");
        handles.insert(answer["execution_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(handles.len(), 1);
    assert_eq!(shop.history(), ["reserve", "charge", "mail"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_one_execution_leave_the_saved_plan_as_it_is() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let saved = client.call("save_plan", json!({ "plan": order("shop.charge") })).await;
    let id = &saved["plan_id"];
    let same = json!({ "concurrency": 1, "pause_on_error": true });
    let waits = json!({ "plan_id": id, "execution_options": same, "wait_seconds": 45 });
    assert_eq!(client.call("execute_plan", waits).await["status"], "waiting");
    let found = client.call("find_plans", json!({ "plan_id": id })).await;
    assert_eq!(found["plan"]["revision"], 1, "nothing differed: {found}");
    let other = json!({ "concurrency": 3, "timeout": 90000, "pause_on_error": false });
    let ends = json!({ "plan_id": id, "execution_options": other, "wait_seconds": 45 });
    let failed = client.call("execute_plan", ends).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    let found = client.call("find_plans", json!({ "plan_id": id })).await;
    assert_eq!(found["plan"]["revision"], 1, "{found}");
    let identity = ExecutionIdentity {
        tenant: TenantId::new("default"),
        execution: ExecutionId::new(failed["execution_id"].as_str().unwrap()),
    };
    let theirs = shop.deck.app.query.plan_of(&identity, 2).await.unwrap().unwrap();
    assert!(theirs.summary.is_for_execution);
    let source: Value = serde_json::from_slice(&theirs.plan.source).unwrap();
    let fields = (&source["max_parallel"], &source["deadline"], &source["on_failure"]);
    assert_eq!(fields, (&json!(3), &json!("90000ms"), &json!("cancel_all")));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_ids_are_refused_with_what_to_do() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let refused = client.call("execute_plan", json!({ "plan_id": "plan_none" })).await;
    assert_eq!(refused["error"]["code"], "store.not_found");
    assert!(refused["error"]["hint"].as_str().unwrap().contains("find_plans"), "{refused}");
    let key = json!({ "plan": order("memory.recent"), "request_id": "with a space" });
    let refused = client.call("execute_plan", key).await;
    assert_eq!(refused["error"]["code"], "server.arguments", "{refused}");
    let none = json!("exec_none");
    for (tool, arguments) in [
        ("control", json!({ "execution_id": none, "action": "pause" })),
        ("status", json!({ "execution_id": none })),
        ("preview", json!({ "execution_id": none })),
        ("replan", json!({ "execution_id": none, "reason": "x" })),
    ] {
        let refused = client.call(tool, arguments).await;
        assert_eq!(refused["error"]["code"], "store.not_found", "{tool}: {refused}");
        assert!(refused["error"]["hint"].as_str().unwrap().contains("query_history"), "{tool}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_call_is_made_and_journaled_for_the_admin_toolset_only() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
    let mut plain = shop.deck.client(ClientEra::Modern).await;
    let refused = plain.ask("tools/call", json!({ "name": "call_tool", "arguments": {} })).await;
    assert!(refused.is_err(), "{refused:?}");
    let mut client =
        shop.deck.client_with(ClientEra::Modern, &[McpToolset::Default, McpToolset::Admin], json!({})).await;
    let arguments = json!({ "tool": "shop.mail", "parameters": { "what": "{{ 1 + 1 }}" }, "reason": "try it out" });
    let done = client.call("call_tool", arguments).await;
    assert_eq!((&done["status"], &done["result"]["id"]), (&json!("completed"), &json!("mail-1")), "{done}");
    assert_eq!(shop.arguments("mail"), [json!({ "what": "{{ 1 + 1 }}" })], "parameters are not evaluated");
    let seen = client.call("status", json!({ "execution_id": done["execution_id"] })).await;
    assert_eq!(seen["status"], "completed");
    let failed = client.call("call_tool", json!({ "tool": "shop.charge", "reason": "try it out" })).await;
    assert_eq!(failed["status"], "failed", "{failed}");
    assert!(failed["summary"].as_str().unwrap().contains("charge said no"), "{failed}");
}
