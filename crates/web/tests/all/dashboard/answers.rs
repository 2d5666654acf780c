//! Answering questions on the page.

use crate::dashboard::harbour::Harbour;
use crate::dashboard::markup::{check, tags};
use reqwest::StatusCode;
use rutter_app::auth::AccessScope;
use rutter_app::runtime::RuntimeOptions;
use rutter_core::time::Millis;
use rutter_engine::SystemClock;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::installation::options;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use rutter_testkit::server::shop::{ShopFixture, execute, order};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

fn keeping(text: &str) -> Value {
    json!({ "name": "keep a note", "steps": [ { "id": "keep", "tool": "memory.store",
        "parameters": { "text": text }, "cancellable": "irreversible", "approval": { "required": true } } ] })
}

async fn waiting(client: &mut McpClient, plan: &Value) -> String {
    let waiting = execute(client, plan).await;
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    waiting["execution_id"].as_str().unwrap().to_owned()
}

async fn ends(client: &mut McpClient, execution: &str, status: &str) {
    let end = client.call("status", json!({ "execution_id": execution, "wait_seconds": 45 })).await;
    assert_eq!(end["status"], status, "{end}");
}

/// The value of a hidden field of the first form that has it.
fn hidden(page: &str, name: &str) -> String {
    let field = tags(page).into_iter().find(|tag| tag.name == "input" && tag.get("name") == Some(name));
    field.unwrap().get("value").unwrap().to_owned()
}

/// Waits until a page asks this, and returns its card alone.
async fn card(harbour: &Harbour, title: &str) -> String {
    for _ in 0..3_000 {
        let page = harbour.page("/approvals").await;
        let mut cards = page.split("<section class=\"panel question\"").skip(1);
        if let Some(card) = cards.find(|card| card.contains(title)) {
            check("/approvals", &page);
            return card.split("</section>").next().unwrap().to_owned();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nobody asks: {title}");
}

/// Waits until the page of an execution shows this status. Nobody looks for the agent, which would be a sign of life.
async fn until(harbour: &Harbour, execution: &str, status: &str) {
    for _ in 0..3_000 {
        let page = harbour.page(&format!("/executions/{execution}")).await;
        let badge =
            page.split("<span id=\"status\" data-patch>").nth(1).and_then(|rest| rest.split("</span></span>").next());
        if badge.is_some_and(|badge| badge.ends_with(&format!(">{status}"))) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{execution} is not {status}: {}", harbour.page(&format!("/executions/{execution}")).await);
}

/// The labels of the buttons of a card, without those that copy its command.
fn buttons(card: &str) -> Vec<&str> {
    let labels = card.split("<button ").skip(1).filter(|button| !button.starts_with("class=\"copy\""));
    labels.map(|button| button.split(['>', '<']).nth(1).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_needs_a_reason_and_is_valid_once_for_the_exact_call() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    let mut client = deck.client(ClientEra::Modern).await;
    let execution = waiting(&mut client, &keeping("sails pull")).await;
    let page = harbour.page("/approvals").await;
    for expected in ["Approve keep?", "memory.store", "sails pull", "expires", "<span class=\"count\">1"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    check("/approvals", &page);
    assert!(harbour.page("/").await.contains("a person must approve keep (memory.store)"));

    let form = format!("/executions/{execution}/answer");
    let call = hidden(&page, "call");
    let items = [("part", "keep"), ("call", call.as_str()), ("say", "approve"), ("back", "/approvals")];
    assert_eq!(harbour.post(&form, &items).await.0, StatusCode::BAD_REQUEST, "a reason is needed");
    let mut reasoned = items.to_vec();
    reasoned.push(("reason", "looks right"));
    let other = "0".repeat(call.len());
    let changed = [("part", "keep"), ("call", other.as_str()), ("say", "approve"), ("reason", "x")];
    assert_eq!(harbour.post(&form, &changed).await.0, StatusCode::CONFLICT, "only the shown call can be approved");
    let there = harbour.post(&form, &reasoned).await;
    assert_eq!(there, (StatusCode::SEE_OTHER, "/approvals?said=approved".to_owned()));
    ends(&mut client, &execution, "completed").await;
    assert_eq!(harbour.post(&form, &reasoned).await.0, StatusCode::CONFLICT, "an approval is valid once");
    let journal = harbour.page("/journal?kind=approval_granted").await;
    assert!(journal.contains("operator approved keep (call "), "{journal}");
    assert!(journal.contains("): &#34;looks right&#34;"), "{journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_call_is_compared_with_the_previous_execution() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    let mut client = deck.client(ClientEra::Modern).await;
    let mut plan = keeping("{{ inputs.text }}");
    plan["inputs"] = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let saved = client.call("save_plan", json!({ "plan": plan })).await;
    let mut execution = String::new();
    for text in ["two sails", "three sails"] {
        let call = json!({ "plan_id": saved["plan_id"], "inputs": { "text": text }, "wait_seconds": 45 });
        execution = client.call("execute_plan", call).await["execution_id"].as_str().unwrap().to_owned();
        if text == "two sails" {
            let page = harbour.page("/approvals").await;
            assert!(!page.contains("class=\"difference\""), "there is no previous execution: {page}");
            let call = hidden(&page, "call");
            let items = [("part", "keep"), ("call", call.as_str()), ("say", "approve"), ("reason", "yes")];
            harbour.post(&format!("/executions/{execution}/answer"), &items).await;
            ends(&mut client, &execution, "completed").await;
        }
    }
    let page = harbour.page("/approvals").await;
    for line in ["<span class=\"taken\">−   &#34;text&#34;: &#34;two sails&#34;</span>", "<span class=\"added\">+   "]
    {
        assert!(page.contains(line), "{line}: {page}");
    }
    let call = hidden(&page, "call");
    let entries = [("part", "keep"), ("call", call.as_str()), ("say", "reject"), ("reason", "too many")];
    harbour.post(&format!("/executions/{execution}/answer"), &entries).await;
    let end = client.call("status", json!({ "execution_id": execution, "wait_seconds": 45 })).await;
    assert_ne!(end["status"], "completed", "{end}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_is_retried_from_the_page() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail", null] })).await;
    let harbour = Harbour::open(&shop.deck).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let mut plan = order("shop.charge");
    plan["steps"][1]["failure_policy"] = json!({ "action": "manual_decision" });
    let execution = waiting(&mut client, &plan).await;
    let page = harbour.page("/approvals").await;
    for expected in ["charge failed. What now?", "charge said no", "Retry", "It was done by hand"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    check("/approvals", &page);
    let items = [("part", "charge"), ("say", "retry"), ("reason", "once more")];
    let there = harbour.post(&format!("/executions/{execution}/answer"), &items).await;
    assert_eq!(there, (StatusCode::SEE_OTHER, "/?said=answered".to_owned()));
    ends(&mut client, &execution, "completed").await;
    assert_eq!(shop.effects("charge"), 1);
    assert!(harbour.page("/approvals").await.contains("No open questions"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doubt_is_settled_with_evidence_and_the_call_is_not_repeated() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["commit_then_drop", null] })).await;
    let harbour = Harbour::open(&shop.deck).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let execution = waiting(&mut client, &order("shop.charge")).await;
    let page = harbour.page("/approvals").await;
    assert!(page.contains("Did charge take effect?"), "{page}");
    let form = format!("/executions/{execution}/answer");
    let (status, page) = harbour.post(&form, &[("part", "charge"), ("say", "resolve"), ("happened", "true")]).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{page}");
    assert!(page.contains("resolve needs a reason"), "{page}");
    let items = [("part", "charge"), ("say", "resolve"), ("happened", "true"), ("evidence", "it is on the statement")];
    assert_eq!(harbour.post(&form, &items).await.1, "/?said=settled");
    ends(&mut client, &execution, "completed").await;
    assert_eq!(shop.effects("charge"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_compensation_is_retried_from_the_page() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"], "shop.release": ["fail", null] })).await;
    let harbour = Harbour::open(&shop.deck).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let mut plan = order("shop.charge");
    plan["steps"][1]["failure_policy"] = json!("compensate");
    let execution = waiting(&mut client, &plan).await;
    let page = harbour.page("/approvals").await;
    for expected in ["Undoing reserve failed. What now?", "release said no", "It was done by hand"] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    check("/approvals", &page);
    let items = [("part", "reserve"), ("say", "retry"), ("reason", "once more")];
    let there = harbour.post(&format!("/executions/{execution}/answer"), &items).await;
    assert_eq!(there, (StatusCode::SEE_OTHER, "/?said=answered".to_owned()));
    ends(&mut client, &execution, "compensated").await;
    assert_eq!(shop.effects("release"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_is_lifted_from_the_page() {
    let shop = ShopFixture::with(json!({})).await;
    let harbour = Harbour::open(&shop.deck).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let mut plan = order("shop.charge");
    plan["budget"] = json!({ "calls": 2 });
    let execution = waiting(&mut client, &plan).await;
    let page = harbour.page("/approvals").await;
    assert!(page.contains("The limit of calls is reached. What now?") && page.contains("Continue"), "{page}");
    check("/approvals", &page);
    let items = [("say", "continue"), ("reason", "it is worth it")];
    harbour.post(&format!("/executions/{execution}/answer"), &items).await;
    ends(&mut client, &execution, "completed").await;
    assert_eq!(shop.history(), ["reserve", "charge", "mail"]);
}

/// A tool of an API without a server.
fn api(description: &str) -> String {
    format!(
        "[http.shop]\nbase = \"http://127.0.0.1:9\"\nallow = [\"127.0.0.1\"]\n\
         [http.shop.tools.look]\ndescription = \"{description}\"\nmethod = \"GET\"\npath = \"/\"\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_tool_is_accepted_by_its_definition() {
    let deck = ServerFixture::with(&api("looks")).await;
    let plan = json!({ "name": "look", "steps": [{ "id": "look", "tool": "shop.look" }] });
    let saved = deck.client(ClientEra::Modern).await.call("save_plan", json!({ "plan": plan })).await;
    let deck = deck.restarted_with(&api("looks, and tells everybody")).await;
    let harbour = Harbour::open(&deck).await;
    let mut client = deck.client(ClientEra::Modern).await;
    let call = json!({ "plan_id": saved["plan_id"], "wait_seconds": 45 });
    let execution = client.call("execute_plan", call).await["execution_id"].as_str().unwrap().to_owned();
    let page = harbour.page("/approvals").await;
    assert!(page.contains("shop.look changed since the plan was checked"), "{page}");
    check("/approvals", &page);
    let form = format!("/executions/{execution}/answer");
    let accept = async |definition: &str| {
        let items = [("tool", "shop.look"), ("say", "accept_tool"), ("reason", "read it")];
        harbour.post(&form, &[&items[..], &[("definition", definition)]].concat()).await
    };
    let seen = hidden(&page, "definition");
    assert_eq!(
        accept(&"0".repeat(seen.len())).await.0,
        StatusCode::CONFLICT,
        "only the shown definition can be accepted"
    );
    assert_eq!(accept(&seen).await, (StatusCode::SEE_OTHER, "/?said=answered".to_owned()));
    let journal = harbour.page("/journal?kind=tool_accepted").await;
    assert!(journal.contains("read it"), "{journal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_tool_is_answered_from_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/tests/servers/server.py");
    let arguments = json!([script.canonicalize().unwrap(), "asks", folder.path()]);
    let config = format!("[servers.pilot]\ncommand = \"python3\"\nargs = {arguments}\ntrust = true\n");
    let deck = ServerFixture::with(&config).await;
    let harbour = Harbour::open(&deck).await;
    let mut client = deck.client(ClientEra::Modern).await;
    let plan = json!({ "name": "asks", "steps": [{ "id": "ask", "tool": "pilot.ask" }] });
    let execution = waiting(&mut client, &plan).await;
    let page = harbour.page("/approvals").await;
    assert!(page.contains("The tool of ask asks") && page.contains("sure?"), "{page}");
    check("/approvals", &page);
    let form = format!("/executions/{execution}/answer");
    let items = [("part", "ask"), ("say", "reply"), ("field.yes", "on")];
    assert_eq!(harbour.post(&form, &items).await, (StatusCode::SEE_OTHER, "/?said=answered".to_owned()));
    ends(&mut client, &execution, "completed").await;
    let context = harbour.page(&format!("/executions/{execution}?tab=context")).await;
    assert!(context.contains("&#34;yes&#34;: true"), "{context}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_that_weakens_the_old_one_is_approved_or_rejected_as_shown() {
    for (say, said, revision) in [("approve", "approved", 2), ("reject", "rejected", 1)] {
        let deck = ServerFixture::new().await;
        let harbour = Harbour::open(&deck).await;
        let mut client = deck.client(ClientEra::Modern).await;
        let execution = waiting(&mut client, &keeping("x")).await;
        let mut weaker = keeping("x");
        weaker["steps"][0].as_object_mut().unwrap().remove("approval");
        let replan = json!({ "execution_id": execution, "plan": weaker, "reason": "nobody is there" });
        client.call("replan", replan).await;
        let shown = card(&harbour, "Approve revision 2 of the plan?").await;
        for expected in ["<dt>weakens</dt>", "keep: ", "nobody is there", "What the new plan changes"] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
        assert_eq!(buttons(&shown), ["Approve this plan", "Reject"]);
        let form = format!("/executions/{execution}/answer");
        let answer =
            async |plan: &str| harbour.post(&form, &[("call", plan), ("say", say), ("reason", "looked at it")]).await;
        let plan = hidden(&shown, "call");
        assert_eq!(answer(&"0".repeat(plan.len())).await.0, StatusCode::CONFLICT, "only the shown plan");
        assert_eq!(answer(&plan).await, (StatusCode::SEE_OTHER, format!("/?said={said}")));
        let page = harbour.page("/approvals").await;
        assert!(!page.contains("Approve revision"), "{page}");
        assert!(page.contains("Approve keep?"), "the call that was asked about still needs its own approval: {page}");
        let page = harbour.page(&format!("/executions/{execution}")).await;
        assert!(page.contains(&format!(">@{revision}</a>")), "{say}: {page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_effect_stands_or_is_undone_by_itself() {
    for (say, refunds) in [("continue", 0), ("undo", 1)] {
        let shop = ShopFixture::with(json!({ "shop.charge": ["late:2.5", null] })).await;
        let harbour = Harbour::open(&shop.deck).await;
        let mut client = shop.deck.client(ClientEra::Modern).await;
        let mut plan = order("shop.charge");
        plan["steps"][1]["timeout"] = json!("1s");
        plan["steps"][1]["compensation"] = json!({ "tool": "shop.refund", "parameters": { "of": "{{ result.id }}" } });
        plan["steps"][1]["cancellable"] = json!("reversible");
        let execution = waiting(&mut client, &plan).await;
        let form = format!("/executions/{execution}/answer");
        let wrong =
            [("part", "charge"), ("say", "resolve"), ("happened", "false"), ("evidence", "it is not on the statement")];
        assert_eq!(harbour.post(&form, &wrong).await.1, "/?said=settled");
        ends(&mut client, &execution, "completed").await;
        // The first call is done by now, too.
        let shown = card(&harbour, "charge took effect more than once. Let that stand?").await;
        assert_eq!(buttons(&shown), ["Continue", "Skip", "Undo"], "{shown}");
        assert_eq!(shop.effects("charge"), 2);
        let items = [("part", "charge"), ("say", say), ("reason", "asked the bank")];
        assert_eq!(harbour.post(&form, &items).await, (StatusCode::SEE_OTHER, "/?said=answered".to_owned()));
        ends(&mut client, &execution, "completed").await;
        assert!(harbour.page("/approvals").await.contains("No open questions"));
        assert_eq!((shop.effects("refund"), shop.effects("release")), (refunds, 0), "{say}");
    }
}

/// No process runs for three days, in which an approval expires.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_execution_is_resumed_with_or_without_the_time_that_passed() {
    for (expire, open) in [("false", "Approve keep?"), ("true", "keep failed. What now?")] {
        let deck = ServerFixture::new().await;
        let mut plan = keeping("x");
        plan["steps"][0]["approval"]["expires"] = json!("2h");
        plan["on_failure"] = json!("manual_decision");
        let execution = waiting(&mut deck.client(ClientEra::Modern).await, &plan).await;
        let folder = deck.close().await;
        let clock = SystemClock::starting_at(SystemClock::system().now().plus(Millis::hours(72)));
        let options = RuntimeOptions { clock, ..options(folder.path(), "") };
        let deck = ServerFixture::open_with(folder, options).await;
        let harbour = Harbour::open(&deck).await;
        let shown = card(&harbour, "Held: look at what came due, then resume").await;
        for expected in ["no worker ran for 3d", "<dt>came due</dt>", "of keep, "] {
            assert!(shown.contains(expected), "{expected}: {shown}");
        }
        assert_eq!(
            buttons(&shown),
            [
                "Resume; this time does not count",
                "Resume; what came due happens now",
                "Resume; only what is checked happens now"
            ],
            "{shown}"
        );
        let form = format!("/executions/{execution}/answer");
        let resumed = harbour.post(&form, &[("say", "resume"), ("expire", expire)]).await;
        assert_eq!(resumed, (StatusCode::SEE_OTHER, "/?said=resumed".to_owned()));
        let shown = card(&harbour, open).await;
        assert_eq!(shown.contains(">in 1 h</time>"), expire == "false", "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_execution_of_a_silent_agent_is_waited_for_handed_over_or_stopped() {
    for (say, said, status) in [
        ("continue", "answered", "running"),
        ("hand_back", "handed_over", "completed"),
        ("take_over", "handed_over", "running"),
        ("stop", "answered", "failed"),
        // Nothing was done, so nothing is undone.
        ("undo", "answered", "failed"),
    ] {
        let deck = ServerFixture::new().await;
        let harbour = Harbour::open(&deck).await;
        let mut client = deck.client(ClientEra::Modern).await;
        let plan = json!({ "name": "look", "agent_timeout": "1s", "steps": [
            { "id": "look", "tool": "memory.recent", "parameters": {} } ] });
        let started = json!({ "plan": plan, "driver": "agent", "wait_seconds": 0 });
        let execution = client.call("execute_plan", started).await["execution_id"].as_str().unwrap().to_owned();
        let shown = card(&harbour, "The agent is silent. What now?").await;
        assert!(shown.contains("<dt>last sign of life</dt>"), "{shown}");
        assert_eq!(buttons(&shown), ["Continue", "Hand back to Rutter", "Hand to an agent", "Stop", "Undo"], "{shown}");
        let items = [("say", say), ("reason", "it was switched off")];
        let there = harbour.post(&format!("/executions/{execution}/answer"), &items).await;
        assert_eq!(there, (StatusCode::SEE_OTHER, format!("/?said={said}")), "{say}");
        until(&harbour, &execution, status).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn users_without_the_scope_see_why_and_no_form() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let execution = waiting(&mut client, &keeping("x")).await;
    let harbour = Harbour::open_for(&deck, &[AccessScope::Read, AccessScope::Operate]).await;
    let page = harbour.page("/approvals").await;
    assert!(page.contains("needs the scope approve") && !page.contains("name=\"say\""), "{page}");
    let call = hidden(&Harbour::open(&deck).await.page("/approvals").await, "call");
    let items = [("part", "keep"), ("call", call.as_str()), ("say", "approve"), ("reason", "me")];
    let (status, page) = harbour.post(&format!("/executions/{execution}/answer"), &items).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{page}");
    let still = client.call("status", json!({ "execution_id": execution })).await;
    assert_eq!(still["status"], "waiting", "{still}");
}
