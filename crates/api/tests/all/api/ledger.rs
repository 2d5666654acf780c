//! Journal and ledger: read, exported, signed, verified, cleaned up.

use crate::api::harbour::{Harbour, notes};
use rutter_core::journal::verify::{TrustAnchors, verify_export};
use serde_json::{Value, json};

#[tokio::test]
async fn the_journal_lists_every_entry_in_order() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let execution = client.execute(&notes("a", 4)).await;
    let id = execution["execution_id"].as_str().unwrap();
    let mut seqs = Vec::new();
    let mut path = format!("/executions/{id}/journal?limit=3");
    loop {
        let page = client.get(&path).await;
        let link = page.header("link").to_owned();
        let items = page.good()["items"].as_array().unwrap().clone();
        seqs.extend(items.iter().map(|entry| entry["seq"].as_u64().unwrap()));
        let Some(next) = link.strip_prefix('<').and_then(|link| link.split('>').next()) else { break };
        path = next.to_owned();
    }
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<u64>>());
    let all = client.get("/journal?kinds=attempt_succeeded").await.good();
    assert_eq!(all["items"].as_array().unwrap().len(), 4);
    assert_eq!(all["items"][0]["event"]["part"], "s3", "newest first");
    assert!(all["items"][0]["event"]["result"]["id"].is_string(), "with payloads");
    let mine = client.get("/journal?party=agent&actor=agent&kinds=execution_opened").await.good();
    assert_eq!(mine["items"].as_array().unwrap().len(), 1, "{mine}");
    client.get("/journal?party=agent").await.refused(400, "server.arguments");
    client.get("/journal?kinds=nothing_of_the_kind").await.refused(400, "server.arguments");

    let receipt = client.get(&format!("/executions/{id}/receipt?seq=2")).await.good();
    assert_eq!((&receipt["execution"], &receipt["seq"]), (&json!(id), &json!(2)));
    client.get(&format!("/executions/{id}/receipt?seq=999")).await.refused(404, "store.not_found");
}

#[tokio::test]
async fn the_ledger_is_signed_exported_and_verified() {
    let harbour = Harbour::new().await;
    let operator = harbour.operator();
    let ids: Vec<String> = {
        let mut ids = Vec::new();
        for name in ["a", "b", "c"] {
            let execution = operator.execute(&notes(name, 2)).await;
            ids.push(execution["execution_id"].as_str().unwrap().to_owned());
        }
        ids
    };
    let signed = operator.post("/ledger/checkpoints", json!({})).await;
    assert_eq!((signed.status, &signed.body["is_new"]), (201, &json!(true)), "{}", signed.text);
    let again = operator.post("/ledger/checkpoints", json!({})).await;
    assert_eq!((again.status, &again.body["is_new"]), (200, &json!(false)));
    let ledger = operator.get("/ledger").await.good();
    assert_eq!(ledger["executions"], json!({ "completed": 3 }));
    assert!(ledger["public_key"].is_string());
    let checkpoints = operator.get("/ledger/checkpoints").await.good();
    assert_eq!(checkpoints["items"][0]["size"], ledger["size"]);
    assert_eq!(checkpoints["items"][0]["note"], signed.body["note"]);
    let verdict = operator.post("/ledger/verify", json!({})).await.good();
    assert_eq!((&verdict["is_clean"], &verdict["protected"]), (&json!(true), &ledger["size"]), "{verdict}");

    let whole = operator.get("/ledger/export").await;
    assert_eq!(whole.header("content-type"), "application/x-ndjson");
    let lines: Vec<&str> = whole.text.lines().collect();
    let checked = verify_export(&lines, TrustAnchors::default());
    assert!(checked.is_clean(), "{checked}");
    assert_eq!(json!(checked.entries), ledger["size"]);
    let one = operator.get(&format!("/ledger/export?executions={}", ids[1])).await;
    let named: Vec<Value> = one.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let executions: std::collections::BTreeSet<&str> =
        named.iter().filter_map(|line| line["entry"]["execution"].as_str()).collect();
    assert_eq!(executions.into_iter().collect::<Vec<_>>(), [ids[1].as_str()]);
    operator.get("/ledger/export?executions=exec_nowhere").await.refused(404, "store.not_found");
}

#[tokio::test]
async fn a_dry_run_counts_before_old_executions_are_removed() {
    let harbour = Harbour::new().await;
    let operator = harbour.operator();
    operator.execute(&notes("a", 1)).await;
    let asked = operator.post("/history/cleanup", json!({ "cleanup_type": "all_old" })).await.good();
    assert_eq!(
        (&asked["dry_run"], &asked["items_found"], &asked["items_deleted"]),
        (&json!(true), &json!(0), &json!(0))
    );
    let orphans = operator.post("/history/cleanup", json!({ "cleanup_type": "orphaned_plans" })).await.good();
    assert_eq!(orphans["items_found"], 0);
    let far = json!({ "cleanup_type": "all_old", "older_than_days": 366 });
    operator.post("/history/cleanup", far).await.refused(400, "server.arguments");
}

#[tokio::test]
async fn a_reply_is_stored_under_its_key() {
    let harbour = Harbour::new().await;
    let operator = harbour.operator();
    let save = |key: &'static str, plan: Value| {
        let operator = operator.clone();
        async move { operator.post_with("/plans", "idempotency-key", key, json!({ "plan": plan })).await }
    };
    let asking: Vec<_> = (0..50).map(|_| tokio::spawn(save("p-1", notes("a", 1)))).collect();
    let (mut first, mut repeated, mut ids) = (0, 0, std::collections::BTreeSet::new());
    for answer in asking {
        let answer = answer.await.unwrap();
        assert_eq!(answer.status, 201, "the same answer each time: {}", answer.text);
        match answer.header("idempotency-replayed") {
            "true" => repeated += 1,
            _ => first += 1,
        }
        assert!(answer.header("location").starts_with("/api/v1/plans/plan_"));
        ids.insert(answer.body["plan_id"].as_str().unwrap().to_owned());
    }
    assert_eq!((first, repeated, ids.len()), (1, 49, 1), "it was done once");
    save("p-1", notes("b", 1)).await.refused(409, "store.key_reused");
    let other = harbour.agent().post_with("/plans", "idempotency-key", "p-1", json!({ "plan": notes("c", 1) })).await;
    assert_eq!(other.status, 201, "keys of other principals are independent: {}", other.text);
    let wrong = json!({ "name": "wrong", "steps": [] });
    save("p-2", wrong).await.refused(422, "engine.plan");
    assert_eq!(save("p-2", notes("d", 1)).await.status, 201, "a refused request took no effect");
    let harbour = harbour.restarted().await;
    let again =
        harbour.operator().post_with("/plans", "idempotency-key", "p-1", json!({ "plan": notes("a", 1) })).await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (201, "true"), "{}", again.text);
}
