//! Saving and executing plans, for legacy and modern clients.

use rutter_app::plans::state::{PlanAction, change_plan};
use rutter_app::principal::{McpToolset, Principal};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::tool::Safety;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::ClientEra;
use rutter_testkit::server::shop::{ShopFixture, order};
use serde_json::{Value, json};

fn owner() -> Principal {
    Principal::owner(TenantId::new("default"), "operator")
}

fn note(text: &str) -> Value {
    json!({ "name": "note", "steps": [
        { "id": "keep", "tool": "memory.store", "parameters": { "text": text }, "cancellable": "irreversible" } ] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_saved_executed_and_inspected_in_both_eras() {
    let deck = ServerFixture::new().await;
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let mut client = deck.client(era).await;
        let saved = client.call("save_plan", json!({ "plan": note("one") })).await;
        assert_eq!(saved["revision"], 1, "{saved}");
        let done = client.call("execute_plan", json!({ "plan_id": saved["plan_id"] })).await;
        assert_eq!(done["status"], "completed", "{done}");
        let seen = client.call("status", json!({ "execution_id": done["execution_id"] })).await;
        assert_eq!((&seen["done"], &seen["total"]), (&json!(1), &json!(1)));
        assert!(!client.notices.is_empty(), "progress was reported");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_at_the_client_approves_in_both_eras() {
    let deck = ServerFixture::new().await;
    let mut plan = note("two");
    plan["steps"][0]["approval"] = json!({ "required": true });
    let forms = json!({ "elicitation": { "form": {} } });
    let yes = json!({ "action": "accept", "content": { "approve": true, "reason": "looks right" } });

    let mut legacy = deck.client_with(ClientEra::Legacy, &[McpToolset::Default], forms.clone()).await;
    let call = legacy.send("tools/call", json!({ "name": "execute_plan", "arguments": { "plan": plan } })).await;
    let question = legacy.asked().await;
    assert_eq!(question["method"], "elicitation/create");
    legacy.reply(&question["id"], yes.clone()).await;
    let done = legacy.answer(call).await.unwrap();
    assert_eq!(done["structuredContent"]["status"], "completed", "{done}");

    let mut modern = deck.client_with(ClientEra::Modern, &[McpToolset::Default], forms).await;
    let call = json!({ "name": "execute_plan", "arguments": { "plan": plan } });
    let asked = modern.ask("tools/call", call.clone()).await.unwrap();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let keys: Vec<String> = asked["inputRequests"].as_object().unwrap().keys().cloned().collect();
    let mut again = call;
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({ &keys[0]: yes });
    let done = modern.ask("tools/call", again).await.unwrap();
    assert_eq!(done["structuredContent"]["status"], "completed", "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_forms_the_execution_waits_and_says_who_must_act() {
    let deck = ServerFixture::new().await;
    let mut plan = note("three");
    plan["steps"][0]["approval"] = json!({ "required": true });
    let mut client = deck.client(ClientEra::Modern).await;
    let waiting = client.call("execute_plan", json!({ "plan": plan })).await;
    assert_eq!(waiting["status"], "waiting");
    let how = waiting["questions"][0]["person"].as_str().unwrap();
    assert!(how.starts_with("a person decides") && how.contains("rutter exec list --asking"), "{how}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_a_plan_are_reported_at_once_and_change_nothing() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let plan = json!({ "name": "wrong", "steps": [
        { "id": "a", "tool": "memory.stor", "parameters": {} }, { "id": "a", "tool": "memory.recent", "parameters": {} } ] });
    let refused = client.call("save_plan", json!({ "plan": plan })).await;
    assert_eq!(refused["error"]["code"], "engine.plan");
    assert!(refused["error"]["details"]["diagnostics"].as_array().unwrap().len() >= 2, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_one_plan_and_the_same_content_one_revision() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let first = client.call("save_plan", json!({ "plan": note("one") })).await;
    let id = first["plan_id"].clone();
    let mut revisions = Vec::new();
    let text =
        "steps: [{ tool: memory.store, parameters: { text: two }, id: keep, cancellable: irreversible }]\nname: note";
    for plan in [note("one"), note("two"), json!(text), note("one")] {
        let saved = client.call("save_plan", json!({ "plan": plan })).await;
        assert_eq!(saved["plan_id"], id, "{saved}");
        revisions.push(saved["revision"].as_u64().unwrap());
    }
    assert_eq!(revisions, [1, 2, 2, 3], "the same content is the same revision, however it is written");
    let done = client.call("execute_plan", json!({ "plan": note("one") })).await;
    let by_name = client.call("execute_plan", json!({ "plan_id": "note", "revision": 2 })).await;
    for (executed, revision) in [(done, 3), (by_name, 2)] {
        let identity = ExecutionIdentity {
            tenant: TenantId::new("default"),
            execution: ExecutionId::new(executed["execution_id"].as_str().unwrap()),
        };
        let row = deck.app.query.execution(&identity).await.unwrap().unwrap();
        let saved = deck.app.query.plan(&identity.tenant, &row.plan, Some(revision)).await.unwrap().unwrap();
        assert_eq!((json!(row.plan), row.row.plan), (id.clone(), saved.summary.hash), "{executed}");
    }
    let lost = client.call("execute_plan", json!({ "plan_id": "noet" })).await;
    assert_eq!(
        (&lost["error"]["code"], &lost["error"]["hint"]),
        (&json!("store.not_found"), &json!("did you mean \"note\"?"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_chooses_an_id_and_no_plan_takes_the_name_of_another() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let id = client.call("save_plan", json!({ "plan": note("one") })).await["plan_id"].clone();
    let other = |name: &str| {
        json!({ "name": name, "steps": [
        { "id": "look", "tool": "memory.recent", "parameters": {} } ] })
    };
    let unknown = client.call("save_plan", json!({ "plan": other("evil"), "plan_id": "nightly" })).await;
    assert_eq!(unknown["error"]["code"], "store.not_found", "{unknown}");
    client.call("save_plan", json!({ "plan": other("evil") })).await;
    let taken = client.call("save_plan", json!({ "plan": note("two"), "plan_id": "evil" })).await;
    assert_eq!(taken["error"]["code"], "server.plan_name_taken", "{taken}");
    let revised = client.call("save_plan", json!({ "plan": note("two"), "plan_id": "note" })).await;
    assert_eq!((&revised["plan_id"], &revised["revision"]), (&id, &json!(2)), "by name: {revised}");
    let old = client.call("save_plan", json!({ "plan": note("two"), "plan_id": "note@1" })).await;
    assert_eq!(old["error"]["code"], "server.arguments", "{old}");

    for (asked, code, said) in [
        (json!({ "plan_id": "note@9" }), "store.not_found", "no revision 9; the newest is 2"),
        (json!({ "plan_id": "note", "revision": 9 }), "store.not_found", "no revision 9; the newest is 2"),
        (json!({ "plan_id": "note@2", "revision": 1 }), "server.arguments", "revision 2, and the request revision 1"),
    ] {
        for tool in ["execute_plan", "preview"] {
            let refused = client.call(tool, asked.clone()).await;
            assert_eq!(refused["error"]["code"], code, "{tool} {asked}: {refused}");
            assert!(refused["error"]["message"].as_str().unwrap().contains(said), "{tool} {asked}: {refused}");
        }
    }
    let found = client.call("find_plans", json!({ "plan_id": "note" })).await;
    assert_eq!(found["plan"]["plan_id"], id, "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_is_not_a_plan_that_has_its_name() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let victim = client.call("save_plan", json!({ "plan": note("one") })).await["plan_id"].clone();
    client.call("save_plan", json!({ "plan": note("two") })).await;
    let named = |name: &str| {
        let mut plan = note("evil");
        plan["name"] = json!(name);
        plan
    };
    for asked in [json!({ "plan": named("note@1") }), json!({ "plan": named("note@1"), "plan_id": "note" })] {
        let refused = client.call("save_plan", asked).await;
        assert_eq!(refused["error"]["details"]["diagnostics"][0]["code"], "plan.bad_name", "{refused}");
    }

    // Nobody chose this name: it is the beginning of a request.
    let request = json!({ "request": "note@1", "reasoning": "asked for", "steps": [{ "step_number": 1,
        "description": "looks", "tool_name": "memory.recent", "parameters": {}, "depends_on": [] }] });
    let other = client.call("save_plan", json!({ "plan": request })).await["plan_id"].clone();
    let found = client.call("find_plans", json!({ "plan_id": "note@1" })).await;
    assert_eq!((&found["plan"]["plan_id"], &found["plan"]["revision"]), (&victim, &json!(1)), "{found}");
    let found = client.call("find_plans", json!({ "plan_id": other })).await;
    assert_eq!(found["plan"]["name"], "note@1", "{found}");
    // What is done to a plan as a whole is not done to another than the one that is named.
    let operator = owner();
    for action in [PlanAction::Archive, PlanAction::Rename { name: "moved".to_owned() }] {
        let refused = change_plan(&deck.app, &operator, "note@1", action, None).await.unwrap_err();
        assert!(refused.message.contains("names a revision"), "{refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_of_an_archived_plan_stays_its_own() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let operator = owner();
    let change = async |plan: &str, action| change_plan(&deck.app, &operator, plan, action, None).await;
    let rename = |name: &str| PlanAction::Rename { name: name.to_owned() };
    let named = |name: &str| {
        let mut plan = note("x");
        plan["name"] = json!(name);
        json!({ "plan": plan })
    };
    client.call("save_plan", named("first")).await;
    change("first", rename("taken")).await.unwrap();
    change("taken", PlanAction::Archive).await.unwrap();
    client.call("save_plan", named("mover")).await;
    assert_eq!(change("mover", rename("taken")).await.unwrap_err().code, "server.plan_archived");
    let saved = client.call("save_plan", named("taken")).await;
    assert_eq!(saved["error"]["code"], "server.plan_archived", "{saved}");
    assert!(change("taken", PlanAction::Restore).await.unwrap().is_new);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_without_a_name_are_told_apart_by_their_ids() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    // Numbered plans need a request, and no name.
    let nameless = |text: &str| {
        json!({ "request": "keep a note", "reasoning": "asked for", "steps": [{ "step_number": 1,
            "description": "keeps it", "tool_name": "memory.store", "parameters": { "text": text }, "depends_on": [] }] })
    };
    let first = client.call("save_plan", json!({ "plan": nameless("one") })).await;
    let title = client.call("find_plans", json!({ "plan_id": first["plan_id"] })).await["plan"]["name"].clone();
    let by_title = client.call("execute_plan", json!({ "plan_id": title })).await;
    assert_eq!(by_title["status"], "completed", "{by_title}");
    let second = client.call("save_plan", json!({ "plan": nameless("two") })).await;
    assert_ne!(first["plan_id"], second["plan_id"]);
    let unclear = client.call("execute_plan", json!({ "plan_id": title })).await;
    assert_eq!(unclear["error"]["code"], "server.plan_ambiguous", "{unclear}");
    let message = unclear["error"]["message"].as_str().unwrap();
    assert!(message.contains(first["plan_id"].as_str().unwrap()), "{message}");
    // A name that somebody gave comes before a title.
    let mut named = note("three");
    named["name"] = title.clone();
    let named = client.call("save_plan", json!({ "plan": named })).await;
    let found = client.call("find_plans", json!({ "plan_id": title })).await;
    assert_eq!(found["plan"]["plan_id"], named["plan_id"], "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_plan_of_one_execution_is_not_the_plan_of_others() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let saved = client.call("save_plan", json!({ "plan": order("shop.charge") })).await;
    let waiting = client.call("execute_plan", json!({ "plan_id": saved["plan_id"], "wait_seconds": 45 })).await;
    let mut plan = order("shop.charge");
    plan["name"] = json!("taken over");
    plan["steps"][1]["tool"] = json!("shop.invoice");
    let asked = json!({ "execution_id": waiting["execution_id"], "plan": plan, "reason": "card refused" });
    let applied = client.call("replan", asked).await;
    assert_eq!(applied["revision"], 2, "{applied}");
    let found = client.call("find_plans", json!({ "plan_id": saved["plan_id"] })).await;
    assert_eq!((&found["plan"]["revision"], &found["plan"]["name"]), (&json!(1), &order("shop.charge")["name"]));
    assert_eq!(client.call("find_plans", json!({ "name": "taken over" })).await["plans"].get(0), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_saved_plan_follows_settings_that_became_stricter() {
    let tools = |safety: &str| {
        format!("[commands.box.tools.open]\ndescription = \"opens\"\nargv = [\"/bin/true\"]\nsafety = \"{safety}\"\n")
    };
    let plan = json!({ "name": "open", "steps": [{ "id": "open", "tool": "box.open", "parameters": {} }] });
    for (settings, safety, revision) in [("read_only", Safety::Idempotent, 1), ("once", Safety::Once, 2)] {
        let deck = ServerFixture::with(&tools("idempotent")).await;
        let mut client = deck.client(ClientEra::Modern).await;
        client.call("save_plan", json!({ "plan": plan })).await;
        drop(client);
        let deck = deck.restarted_with(&tools(settings)).await;
        let mut client = deck.client(ClientEra::Modern).await;
        let started = client.call("execute_plan", json!({ "plan_id": "open" })).await;
        let identity = ExecutionIdentity {
            tenant: TenantId::new("default"),
            execution: ExecutionId::new(started["execution_id"].as_str().unwrap_or_else(|| panic!("{started}"))),
        };
        let followed = deck.app.query.plan_of(&identity, revision).await.unwrap().unwrap();
        assert_eq!(followed.plan.steps[0].call.safety, safety, "{settings}");
        let row = deck.app.query.execution(&identity).await.unwrap().unwrap();
        assert_eq!(row.row.plan, followed.summary.hash, "{settings}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_saved_a_plan_gets_that_revision_again() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let asked = json!({ "plan": note("one"), "request_id": "r-1" });
    let stored = client.call("save_plan", asked.clone()).await;
    client.call("save_plan", json!({ "plan": note("two") })).await;
    let again = client.call("save_plan", asked).await;
    assert_eq!((&again["plan_id"], &again["revision"]), (&stored["plan_id"], &json!(1)), "{again}");
    let reused = client.call("save_plan", json!({ "plan": note("two"), "request_id": "r-1" })).await;
    assert_eq!(reused["error"]["code"], "store.key_reused", "{reused}");
    let executed = client.call("execute_plan", json!({ "plan_id": "note", "request_id": "r-1" })).await;
    assert_eq!(executed["status"], "completed", "saving and executing may share a key: {executed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_gets_its_first_answer_without_its_tools() {
    let shop = ShopFixture::with(json!({})).await;
    let plan = |amount: Value| {
        json!({ "name": "charge", "metadata": { "amount": amount, "b": 1 }, "steps": [
            { "id": "charge", "tool": "shop.charge", "parameters": {}, "cancellable": "irreversible" } ] })
    };
    let request = |plan: Value| json!({ "plan": plan, "request_id": "order-1", "inputs": {} });
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let first = client.call("execute_plan", request(plan(json!(1)))).await;
    assert_eq!(first["status"], "completed", "{first}");
    let saved = client.call("save_plan", request(plan(json!(1)))).await;
    assert_eq!(saved["error"]["code"], "server.arguments", "inputs are not for saving");
    let save = json!({ "plan": plan(json!(1)), "request_id": "save-1" });
    let saved = client.call("save_plan", save.clone()).await;
    drop(client);

    // The server with the tool is gone.
    let deck = shop.deck.restarted_with("").await;
    let mut client = deck.client(ClientEra::Modern).await;
    let written_otherwise = json!({ "steps": [
        { "tool": "shop.charge", "id": "charge", "cancellable": "irreversible", "parameters": {} } ],
        "metadata": { "b": 1.0, "amount": 1.0 }, "name": "charge" });
    for same in [plan(json!(1)), written_otherwise.clone(), json!(written_otherwise.to_string())] {
        let again = client.call("execute_plan", request(same)).await;
        assert_eq!(again["execution_id"], first["execution_id"], "{again}");
    }
    assert_eq!(client.call("save_plan", save).await["plan_id"], saved["plan_id"]);
    let other = client.call("execute_plan", request(plan(json!(2)))).await;
    assert_eq!(other["error"]["code"], "store.key_reused", "{other}");
    let (hint, id) = (other["error"]["hint"].as_str().unwrap(), first["execution_id"].as_str().unwrap());
    assert!(hint.contains(id) && hint.contains("look at it first"), "{hint}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_with_duplicate_keys_is_refused_at_every_door_as_by_plan_check() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client_with(ClientEra::Legacy, &[McpToolset::Default, McpToolset::Journal], json!({})).await;
    let driven = json!({ "plan": note("driven"), "driver": "agent", "wait_seconds": 0 });
    let id = client.call("execute_plan", driven).await["execution_id"].clone();
    let step = r#"{ "id": "keep", "tool": "memory.store", "tool": "memory.recent", "parameters": {} }"#;
    let plan = format!(r#""plan": {{ "name": "twice", "steps": [{step}] }}"#);
    let mut number = 90;
    let mut call = async |tool: &str, arguments: String| {
        number += 1;
        let params = format!(r#"{{ "name": "{tool}", "arguments": {arguments} }}"#);
        let line = format!(r#"{{ "jsonrpc": "2.0", "id": {number}, "method": "tools/call", "params": {params} }}"#);
        client.write_line(&line).await;
        client.answer(number).await
    };
    for (tool, rest) in [
        ("execute_plan", String::new()),
        ("save_plan", String::new()),
        ("preview", String::new()),
        ("record_plan", String::new()),
        ("replan", format!(r#", "execution_id": {id}, "reason": "x""#)),
    ] {
        let answer = call(tool, format!("{{ {plan}{rest} }}")).await.unwrap();
        let error: Value = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
        let found = &error["error"]["details"]["diagnostics"][0];
        assert_eq!(
            (&found["code"], &found["pointer"]),
            (&json!("document.duplicate_key"), &json!("/steps/0/tool")),
            "{tool}: {answer}"
        );
    }
    // Without the field `plan` it is refused as arguments of any other tool are.
    let refused = call("record_plan", format!(r#"{{ "name": "twice", "steps": [{step}] }}"#)).await.unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("/params/arguments/steps/0/tool"), "{refused}");
    let seen = client.call("find_plans", json!({ "name": "twice" })).await;
    assert_eq!(seen.get("plans"), None, "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_of_more_than_45_seconds_is_refused_before_anything_starts() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let wait = |seconds: u64| json!({ "plan": note("patience"), "wait_seconds": seconds });
    let refused = client.call("execute_plan", wait(46)).await;
    assert_eq!(refused["error"]["code"], "server.arguments", "{refused}");
    assert_eq!(client.call("query_history", json!({})).await["total"], 0);
    for seconds in [44, 45] {
        let done = client.call("execute_plan", wait(seconds)).await;
        assert_eq!(done["status"], "completed", "{done}");
        let id = done["execution_id"].clone();
        for tool in ["status", "control"] {
            let asked = json!({ "execution_id": id, "action": "pause", "wait_seconds": 46 });
            let asked = if tool == "status" { json!({ "execution_id": id, "wait_seconds": 46 }) } else { asked };
            assert_eq!(client.call(tool, asked).await["error"]["code"], "server.arguments");
        }
    }
}
