//! The Journal page: filters, exports, checkpoints, verification.

use crate::dashboard::harbour::Harbour;
use crate::dashboard::markup::{check, tags};
use reqwest::StatusCode;
use rutter_app::principal::McpToolset;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::ClientEra;
use rutter_testkit::server::tamper::change_the_past;
use serde_json::{Value, json};
use std::time::Duration;

async fn told() -> (ServerFixture, String) {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let plan = json!({ "name": "note", "steps": [ { "id": "keep", "tool": "memory.store",
        "parameters": { "text": "sails" }, "cancellable": "irreversible" } ] });
    let done = client.call("execute_plan", json!({ "plan": plan, "wait_seconds": 45 })).await;
    let execution = done["execution_id"].as_str().unwrap().to_owned();
    let own = json!({ "name": "by hand", "description": "a decision", "steps": [
        { "id": "a", "tool": "own.call", "parameters": {}, "cancellable": "irreversible" } ] });
    let mut recorder = deck.client_with(ClientEra::Modern, &[McpToolset::Journal], json!({})).await;
    let plan = recorder.call("record_plan", own).await;
    let started = recorder.call("record_execution_start", json!({ "plan_id": plan["plan_id"] })).await;
    let reason = "the long way: less \"wind\", more sun";
    let decision = json!({ "execution_id": started["execution_id"], "action": "continue", "reason": reason });
    let recorded = recorder.call("record_decision", decision).await;
    assert!(recorded.get("error").is_none(), "{recorded}");
    (deck, execution)
}

fn rows(page: &str) -> usize {
    tags(page).iter().filter(|tag| tag.name == "tr" && tag.get("id").is_some()).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_found_by_kind_actor_words_time_and_execution() {
    let (deck, execution) = told().await;
    let harbour = Harbour::open(&deck).await;
    let all = rows(&harbour.page("/journal").await);
    let of_execution = rows(&harbour.page(&format!("/journal?execution={execution}")).await);
    assert!(all > of_execution && of_execution >= 5, "{all} {of_execution}");
    for (query, expected) in [
        ("kind=decision_recorded".to_owned(), 1),
        ("kind=decision_recorded&actor=operator".to_owned(), 0),
        ("text=long".to_owned(), 1),
        ("text=nonsense".to_owned(), 0),
        ("from=1h".to_owned(), all),
        ("until=1h".to_owned(), 0),
        (format!("execution={execution}&kind=attempt_started"), 1),
        ("execution=ledger&kind=plan_saved".to_owned(), 2),
    ] {
        let page = harbour.page(&format!("/journal?{query}")).await;
        assert_eq!(rows(&page), expected, "{query}: {page}");
        check(&query, &page);
    }
    assert!(harbour.page("/journal?kind=nonsense").await.contains("role=\"alert\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_exported_as_ndjson_and_csv() {
    let (deck, _) = told().await;
    let harbour = Harbour::open(&deck).await;
    let count = rows(&harbour.page("/journal").await);
    let lines = harbour.page("/journal/export?format=ndjson").await;
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), count);
    assert!(lines.iter().any(|line| line["event"]["parameters"]["text"] == "sails"), "{lines:?}");
    let table = harbour.page("/journal/export?format=csv&text=long").await;
    let mut table = table.split("\r\n");
    assert_eq!(table.next(), Some("at,execution_id,seq,kind,actor,text,hash"));
    let row = table.next().unwrap();
    assert!(row.contains(",decision_recorded,") && row.contains("the long way: less"), "{row}");
    let decided = lines.iter().find(|line| line["kind"] == "decision_recorded").unwrap();
    let text = decided["text"].as_str().unwrap().replace('"', "\"\"");
    assert!(row.contains(&format!(",\"{text}\",")), "the sentence of the entry: {row}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_is_signed_and_verified_from_the_page() {
    let (deck, _) = told().await;
    let harbour = Harbour::open(&deck).await;
    let before = harbour.page("/journal").await;
    assert!(before.contains("checkpoint"), "{before}");
    let (status, there) = harbour.post("/journal/sign", &[]).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert!(["/journal?said=signed", "/journal?said=nothing_new"].contains(&there.as_str()), "{there}");
    assert!(harbour.page("/journal").await.contains("the newest checkpoint covers"));
    let (status, page) = harbour.post("/journal/verify", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("intact") && page.contains("V1, signed"), "{page}");
    assert!(!page.contains("not intact"), "{page}");
    check("/journal/verify", &page);
    change_the_past(deck.folder.path());
    let (status, page) = harbour.post("/journal/verify", &[]).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    assert!(page.contains("not intact") && page.contains("The first bad entry: entry 1 of"), "{page}");
    assert!(page.contains("href=\"/journal?execution=ledger\"") && page.contains("is another one"), "{page}");
    check("/journal/verify", &page);
    for _ in 0..1_000 {
        if harbour.page("/alerts").await.contains("ledger verification failed") {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("no alert fired: {}", harbour.page("/alerts").await);
}
