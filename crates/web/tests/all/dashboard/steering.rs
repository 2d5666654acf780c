//! The pages of plans and executions: views, start, control, undo.

use crate::dashboard::harbour::Harbour;
use reqwest::StatusCode;
use rutter_app::auth::AccessScope;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::ClientEra;
use rutter_testkit::server::shop::{ShopFixture, execute, order};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Timeout for anything a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reloads a page until it contains a text.
async fn until(harbour: &Harbour, path: &str, words: &str) -> String {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let page = harbour.page(path).await;
        if page.contains(words) {
            return page;
        }
        assert!(Instant::now() < deadline, "{path} never contains {words:?}: {page}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn text<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer[name].as_str().unwrap_or_else(|| panic!("no {name} in {answer}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn forecasts_are_shown_for_plans_and_running_executions() {
    let shop = ShopFixture::with(json!({ "shop.charge": [null, "fail"] })).await;
    let harbour = Harbour::open(&shop.deck).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let saved = client.call("save_plan", json!({ "plan": order("shop.charge") })).await;
    let plan = format!("/plans/{}", text(&saved, "plan_id"));
    assert!(harbour.page(&plan).await.contains("No history of reserve, charge, mail."));
    execute(&mut client, &order("shop.charge")).await;
    let failed = execute(&mut client, &order("shop.charge")).await;
    let page = until(&harbour, &plan, "the riskiest step is charge").await;
    assert!(page.contains(" and its tools\">Completes in "), "{page}");
    let page = harbour.page(&format!("/executions/{}", text(&failed, "execution_id"))).await;
    assert!(page.contains(" and its tools\" data-patch></p>"), "it waits for a decision: {page}");

    let mut asked = order("shop.charge");
    asked["steps"][1]["approval"] = json!({ "required": true });
    let waiting = execute(&mut client, &asked).await;
    let page = harbour.page(&format!("/executions/{}", text(&waiting, "execution_id"))).await;
    assert!(page.contains("Completes from here in "), "{page}");
    assert!(page.contains("not counting how long the approval of charge takes"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_started_with_the_inputs_of_its_form() {
    let shop = ShopFixture::with(json!({})).await;
    let harbour = Harbour::open(&shop.deck).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let plan = json!({ "name": "letters", "goal": "Write one", "steps": [
        { "id": "mail", "tool": "shop.mail", "parameters": { "what": "{{ inputs.what }}" },
          "cancellable": "irreversible" } ],
      "inputs": { "type": "object", "required": ["what"], "properties": { "what": { "type": "string" } } } });
    let saved = client.call("save_plan", json!({ "plan": plan })).await;
    let id = text(&saved, "plan_id");
    let list = harbour.page("/plans").await;
    assert!(list.contains("letters") && list.contains("Write one") && list.contains(id), "{list}");
    for tab in ["graph", "preview", "checks", "versions", "executions", "source"] {
        let page = harbour.page(&format!("/plans/{id}?tab={tab}")).await;
        assert!(page.contains("name=\"field.what\""), "{tab}: {page}");
    }
    assert!(harbour.page(&format!("/plans/{id}@1")).await.contains("<svg class=\"graph"));
    let preview = harbour.page(&format!("/plans/{id}?tab=preview&step=mail")).await;
    assert!(preview.contains("If mail fails: waits for a decision") && preview.contains("Point of no return:"));
    let (status, to) = harbour.post(&format!("/plans/{id}@1/start"), &[("field.what", "hello")]).await;
    assert_eq!(status, StatusCode::SEE_OTHER, "{to}");
    let page = until(&harbour, &to, "<span class=\"status ok\">").await;
    assert!(page.contains("Started.") && page.contains("Completed"), "{page}");
    assert_eq!(shop.arguments("mail"), [json!({ "what": "hello" })]);
    let went = harbour.page(&format!("/plans/{id}?tab=executions")).await;
    assert!(went.contains("1/1 steps"), "{went}");
    for missing in ["/plans/plan_none", &format!("/plans/{id}@7"), &format!("/plans/{id}@x")] {
        assert_eq!(harbour.get(missing).await.0, StatusCode::NOT_FOUND, "{missing}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_renamed_archived_restored_and_deleted_on_its_page() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    let plan = json!({ "name": "old", "steps": [{ "id": "look", "tool": "memory.recent", "parameters": {} }] });
    let saved = deck.client(ClientEra::Modern).await.call("save_plan", json!({ "plan": plan })).await;
    let id = text(&saved, "plan_id");
    let change = format!("/plans/{id}/change");
    let (status, to) = harbour.post(&change, &[("action", "rename"), ("name", "new")]).await;
    assert_eq!(status, StatusCode::SEE_OTHER, "{to}");
    assert!(harbour.page(&to).await.contains("<h1>new</h1>"));
    let (_, to) = harbour.post(&change, &[("action", "archive")]).await;
    let page = harbour.page(&to).await;
    assert!(page.contains("It is archived") && page.contains("Restore"), "{page}");
    harbour.post(&change, &[("action", "restore")]).await;
    assert!(harbour.page("/plans").await.contains("new"));
    assert_ne!(harbour.post(&change, &[("action", "delete")]).await.0, StatusCode::SEE_OTHER, "it needs a reason");
    let (_, to) = harbour.post(&change, &[("action", "delete"), ("reason", "a test")]).await;
    assert!(harbour.page(&to).await.contains("The plan is deleted."));
    assert_eq!(harbour.get(&format!("/plans/{id}")).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_of_an_execution_is_rendered() {
    let shop = ShopFixture::with(json!({})).await;
    let harbour = Harbour::open(&shop.deck).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let answer = execute(&mut client, &order("shop.charge")).await;
    let id = text(&answer, "execution_id");
    for (query, expected) in [
        ("", "<svg class=\"graph"),
        ("?tab=timeline", "<svg class=\"timeline"),
        ("?tab=events", "attempt 1 of charge succeeded"),
        ("?tab=events&zoom=groups", "the execution"),
        ("?tab=events&zoom=json", "<details class=\"grow\" open>"),
        ("?tab=events&text=kind:nothing", "No matching entries"),
        ("?tab=context", "result of charge"),
        ("?tab=compensation", "<code>shop.release</code>"),
        ("?step=reserve", "attempt 1"),
        ("?step=reserve&tab=timeline", "Undone by"),
        ("?step=nobody", "Steps"),
    ] {
        let page = harbour.page(&format!("/executions/{id}{query}")).await;
        assert!(page.contains(expected), "{query}: {page}");
        assert!(!page.contains(" style=") && !page.contains("<style") && !page.contains("onclick"), "{query}");
    }
    assert_eq!(harbour.get("/executions/exec_none").await.0, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn undo_shows_what_it_would_do_and_then_does_exactly_that() {
    let shop = ShopFixture::with(json!({})).await;
    let harbour = Harbour::open(&shop.deck).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let answer = execute(&mut client, &order("shop.charge")).await;
    let id = text(&answer, "execution_id");
    let page = harbour.page(&format!("/executions/{id}/confirm?act=undo")).await;
    assert!(page.contains("<code>reserve</code> with <code>shop.release</code>"), "{page}");
    assert!(page.contains("Cannot be undone (no compensation): <code>charge</code> <code>mail</code>"), "{page}");
    let act = format!("/executions/{id}/act");
    assert_eq!(harbour.post(&act, &[("act", "undo")]).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(shop.effects("release"), 0);
    let (status, to) = harbour.post(&act, &[("act", "undo"), ("reason", "sold twice")]).await;
    assert_eq!((status, to), (StatusCode::SEE_OTHER, format!("/executions/{id}?said=undoing")));
    until(&harbour, &format!("/executions/{id}"), "↩</span>compensated").await;
    assert_eq!(shop.effects("release"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_execution_can_be_paused_resumed_and_cancelled() {
    let shop = ShopFixture::with(json!({})).await;
    let harbour = Harbour::open(&shop.deck).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let answer = client.call("execute_plan", json!({ "plan": order("shop.slow"), "wait_seconds": 0 })).await;
    let id = text(&answer, "execution_id");
    let (page, act) = (format!("/executions/{id}"), format!("/executions/{id}/act"));
    shop.called("slow", 1).await;
    assert!(harbour.page(&page).await.contains("Running charge"));
    assert_eq!(harbour.post(&act, &[("act", "pause")]).await.1, format!("{page}?said=paused"));
    until(&harbour, &page, "value=\"resume\"").await;
    assert_eq!(harbour.post(&act, &[("act", "resume")]).await.1, format!("{page}?said=resumed"));
    let fields = [("act", "cancel"), ("undo", "yes"), ("reason", "changed our minds")];
    harbour.post(&act, &fields).await;
    until(&harbour, &page, "Compensated").await;
    assert_eq!((shop.effects("release"), shop.effects("mail")), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_users_are_refused_with_the_missing_scope() {
    let shop = ShopFixture::with(json!({})).await;
    let harbour = Harbour::open_for(&shop.deck, &[AccessScope::Read]).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let answer = execute(&mut client, &order("shop.charge")).await;
    let id = text(&answer, "execution_id");
    let page = harbour.page(&format!("/executions/{id}")).await;
    assert!(page.contains("Controlling executions needs the scope operate") && !page.contains("/act\""), "{page}");
    for path in [format!("/executions/{id}/act"), format!("/plans/{}/start", "plan_x")] {
        let (status, _) = harbour.post(&path, &[("act", "kill"), ("reason", "x")]).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(harbour.get(&format!("/executions/{id}/confirm?act=kill")).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_of_a_thousand_steps_is_folded_and_opened_by_links() {
    let shop = ShopFixture::with(json!({})).await;
    let harbour = Harbour::open(&shop.deck).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let step = |at: usize| {
        let needs: Vec<String> = (at >= 20).then(|| format!("s{}", at - 20)).into_iter().collect();
        json!({ "id": format!("s{at}"), "tool": "shop.look", "depends_on": needs })
    };
    let plan = json!({ "name": "large", "steps": (0..1_000).map(step).collect::<Vec<_>>() });
    let saved = client.call("save_plan", json!({ "plan": plan })).await;
    let id = text(&saved, "plan_id");
    let page = harbour.page(&format!("/plans/{id}")).await;
    assert!(page.contains("1000 steps in") && page.contains("class=\"node group"), "{}", page.len());
    let group = harbour.page(&format!("/plans/{id}@1?tab=graph&group=1")).await;
    assert!(group.contains("of 1000 steps") && group.contains("All groups"));
    assert!(page.len() < 400_000, "{}", page.len());
}
