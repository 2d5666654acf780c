//! The list of executions: filters in the URL, pages, and commands to several.

use crate::dashboard::harbour::Harbour;
use crate::dashboard::markup::{check, tags};
use reqwest::StatusCode;
use rutter_app::principal::McpToolset;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use serde_json::{Value, json};

async fn run(client: &mut McpClient, name: &str, tag: &str, approval: bool) -> String {
    let plan = json!({ "name": name, "tags": [tag], "steps": [ { "id": "keep", "tool": "memory.store",
        "parameters": { "text": "x" }, "cancellable": "irreversible", "approval": { "required": approval } } ] });
    let done = client.call("execute_plan", json!({ "plan": plan, "wait_seconds": 45 })).await;
    assert!(done["execution_id"].is_string(), "{done}");
    done["execution_id"].as_str().unwrap().to_owned()
}

/// The executions a page lists, in order.
fn listed(page: &str) -> Vec<String> {
    let rows = tags(page).into_iter().filter(|tag| tag.name == "tr");
    rows.filter_map(|row| Some(row.get("id")?.strip_prefix("row-")?.to_owned())).collect()
}

fn next(page: &str) -> Option<String> {
    let link = tags(page).into_iter().find(|tag| tag.get("rel") == Some("next"))?;
    Some(link.get("href")?.replace("&#38;", "&"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_url_filters_the_executions() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    let mut client = deck.client(ClientEra::Modern).await;
    let red = run(&mut client, "red sails", "red", false).await;
    let blue = run(&mut client, "blue sails", "blue", true).await;
    for (query, expected) in [
        ("", vec![&blue, &red]),
        ("?status=completed", vec![&red]),
        ("?status=completed&status=waiting", vec![&blue, &red]),
        ("?asking=yes", vec![&blue]),
        ("?tag=blue", vec![&blue]),
        ("?text=red", vec![&red]),
        ("?from=1h", vec![&blue, &red]),
        ("?until=1h", vec![]),
        ("?from=2020-01-01&until=2020-01-02T10:00", vec![]),
        ("?plan=plan_unknown", vec![]),
        ("?status=nonsense", vec![&blue, &red]),
    ] {
        let page = harbour.page(&format!("/executions{query}")).await;
        assert_eq!(listed(&page).iter().collect::<Vec<_>>(), expected, "{query}");
        check(query, &page);
    }
    let page = harbour.page("/executions?from=yesterday").await;
    assert!(page.contains("is not a time"), "{page}");
    let page = harbour.page("/executions?text=%20%2D").await;
    assert!(page.contains("Executions"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deviation_is_a_mark_in_the_lists() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    let mut client = deck.client_with(ClientEra::Modern, &[McpToolset::Journal], json!({})).await;
    let steps = json!([{ "id": "a", "tool": "own.call" }, { "id": "b", "tool": "own.call", "depends_on": ["a"] }]);
    let plan = client.call("record_plan", json!({ "name": "hasty", "steps": steps })).await;
    let started = client.call("record_execution_start", json!({ "plan_id": plan["plan_id"] })).await;
    let early = json!({ "execution_id": started["execution_id"], "step_id": "b", "status": "completed", "result": {} });
    client.call("record_step", early).await;
    for path in ["/", "/executions"] {
        let page = harbour.page(path).await;
        assert!(page.contains("title=\"deviation from the plan\">skipped</span>"), "{path}: {page}");
        check(path, &page);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_has_pages_without_duplicates() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    let mut client = deck.client(ClientEra::Modern).await;
    let plan = json!({ "name": "many", "steps": [ { "id": "keep", "tool": "memory.store",
        "parameters": { "text": "x" }, "cancellable": "irreversible" } ] });
    let saved = client.call("save_plan", json!({ "plan": plan })).await;
    let mut all = Vec::new();
    for _ in 0..120 {
        let call = json!({ "plan_id": saved["plan_id"], "wait_seconds": 45 });
        all.push(client.call("execute_plan", call).await["execution_id"].as_str().unwrap().to_owned());
    }
    let (mut seen, mut path) = (Vec::new(), Some("/executions?status=completed".to_owned()));
    while let Some(address) = path {
        let page = harbour.page(&address).await;
        seen.extend(listed(&page));
        path = next(&page);
    }
    all.sort();
    seen.sort();
    assert_eq!(seen, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_executions_are_cancelled_after_a_confirmation() {
    let deck = ServerFixture::new().await;
    let harbour = Harbour::open(&deck).await;
    let mut client = deck.client(ClientEra::Modern).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(run(&mut client, "wait", "x", true).await);
    }
    let stored = run(&mut client, "wait", "x", true).await;
    let status = async |client: &mut McpClient, id: &str| -> Value {
        client.call("status", json!({ "execution_id": id, "wait_seconds": 0 })).await["status"].clone()
    };

    let mut form: Vec<(&str, &str)> = ids.iter().map(|id| ("execution", id.as_str())).collect();
    form.extend([("action", "cancel"), ("back", "/executions?asking=yes")]);
    let (code, page) = harbour.post("/executions/bulk", &form).await;
    assert_eq!(code, StatusCode::OK);
    assert!(page.contains("Cancel 3 executions?"), "{page}");
    check("bulk", &page);
    for id in &ids {
        assert_eq!(status(&mut client, id).await, "waiting", "nothing happens before the confirmation");
    }
    form.extend([("confirm", "yes"), ("reason", "not needed any more")]);
    let (code, there) = harbour.post("/executions/bulk", &form).await;
    assert_eq!((code, there.as_str()), (StatusCode::SEE_OTHER, "/executions?asking=yes&said=cancelled-3"));
    for id in &ids {
        let end = client.call("status", json!({ "execution_id": id, "wait_seconds": 45 })).await;
        assert_eq!(end["status"], "cancelled", "{end}");
    }
    assert_eq!(status(&mut client, &stored).await, "waiting");

    let mut again: Vec<(&str, &str)> = vec![("execution", ids[0].as_str()), ("execution", stored.as_str())];
    again.extend([("action", "cancel"), ("confirm", "yes"), ("reason", "both")]);
    let (code, page) = harbour.post("/executions/bulk", &again).await;
    assert_eq!(code, StatusCode::OK);
    assert!(page.contains("Cancel: 1 done, 1 refused"), "{page}");
    let nothing = harbour.post("/executions/bulk", &[("action", "pause"), ("back", "/executions")]).await;
    assert_eq!(nothing.1, "/executions?said=nothing_chosen");
}
