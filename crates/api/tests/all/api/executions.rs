//! Executions: started once, listed, read, waited for.

use crate::api::harbour::{Harbour, approved, notes};
use serde_json::{Value, json};

#[tokio::test]
async fn an_execution_is_started_and_read_until_its_end() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let started = client.post("/executions", json!({ "plan": notes("a", 3), "wait_seconds": 45 })).await;
    assert_eq!(started.status, 201, "{}", started.text);
    let id = started.body["execution_id"].as_str().unwrap();
    assert_eq!(started.header("location"), format!("/api/v1/executions/{id}"));
    assert_eq!((&started.body["status"], &started.body["done"]), (&json!("completed"), &json!(3)));
    assert_eq!(started.body["results"].as_object().unwrap().len(), 3);

    let path = format!("/executions/{id}");
    let steps = client.get(&format!("{path}/steps")).await.good();
    assert_eq!(steps["items"][2]["depends_on"], json!(["s1"]));
    assert_eq!(steps["items"][2]["status"], "completed");
    assert!(client.get(&format!("{path}/brief")).await.good()["brief"].as_str().unwrap().contains("completed"));
    let preview = client.get(&format!("{path}/preview")).await.good();
    assert_eq!(preview["rollback"]["count"], 0);
    assert_eq!(preview["rollback"]["stays"], json!(["s0", "s1", "s2"]));

    let by_id = json!({ "plan_id": started.body["plan"]["id"], "revision": 1, "wait_seconds": 45 });
    assert_eq!(client.post("/executions", by_id).await.good()["status"], "completed");
    client.post("/executions", json!({ "plan_id": "plan_nowhere" })).await.refused(404, "store.not_found");
    client.post("/executions", json!({})).await.refused(400, "server.arguments");
    client
        .post("/executions", json!({ "plan": notes("a", 1), "wait_seconds": 46 }))
        .await
        .refused(400, "server.arguments");
    for path in ["", "/steps", "/brief", "/preview", "/journal", "/receipt", "/events"] {
        client.get(&format!("/executions/exec_nowhere{path}")).await.refused(404, "store.not_found");
    }
}

#[tokio::test]
async fn an_execution_has_the_number_of_its_saved_revision() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    for plan in [notes("rev", 1), notes("rev", 2), approved("rev")] {
        client.post("/plans", json!({ "plan": plan })).await.good();
    }
    let second = json!({ "plan_id": "rev", "revision": 2, "wait_seconds": 45 });
    assert_eq!(client.post("/executions", second).await.good()["plan"]["revision"], 2);
    let started = client.post("/executions", json!({ "plan_id": "rev", "wait_seconds": 45 })).await.good();
    assert_eq!((&started["plan"]["revision"], &started["status"]), (&json!(3), &json!("waiting")));
    assert_eq!(client.get("/executions").await.good()["items"][0]["plan"]["revision"], 3);

    let path = format!("/executions/{}", started["execution_id"].as_str().unwrap());
    let mut weaker = approved("rev");
    weaker["steps"][0]["approval"] = json!({ "required": false });
    let replan = |plan: &Value| json!({ "plan": plan, "reason": "better" });
    let proposed = client.post(&format!("{path}/replan"), replan(&weaker)).await.good();
    assert_eq!((&proposed["is_applied"], &proposed["revision"]), (&json!(false), &json!(4)), "{proposed}");
    let waiting = client.get(&path).await.good();
    assert_eq!(waiting["plan"]["revision"], 3);
    assert!(waiting["questions"].to_string().contains("revision 4"), "{waiting}");
    let applied = harbour.operator().post(&format!("{path}/replan"), replan(&notes("rev", 5))).await.good();
    assert_eq!((&applied["is_applied"], &applied["revision"]), (&json!(true), &json!(5)), "{applied}");
    assert_eq!(client.get(&path).await.good()["plan"]["revision"], 5);
    assert_eq!(client.get("/plans/rev/revisions/5").await.good()["steps"], 5);
}

#[tokio::test]
async fn inputs_are_checked_against_the_plan() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let mut plan = notes("a", 1);
    plan["inputs"] = json!({ "type": "object", "required": ["word"], "properties": { "word": { "type": "string" } } });
    plan["steps"][0]["parameters"]["text"] = json!("{{ inputs.word }}");
    client.post("/executions", json!({ "plan": plan })).await.refused(422, "execution.inputs");
    let given = json!({ "plan": plan, "inputs": { "word": "ahoy" }, "wait_seconds": 45 });
    assert_eq!(client.post("/executions", given).await.good()["status"], "completed");
}

#[tokio::test]
async fn lists_have_filters_and_pages() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    for number in 0..7 {
        client.execute(&notes(&format!("n{number}"), 1)).await;
    }
    let asking = client.execute(&approved("ask")).await;
    assert_eq!(asking["status"], "waiting");
    let names = |page: &Value| -> Vec<String> {
        let items = page["items"].as_array().unwrap().iter();
        items.map(|item| item["plan"]["name"].as_str().unwrap().to_owned()).collect()
    };
    let mut seen = Vec::new();
    let mut path = "/executions?limit=3&status=completed".to_owned();
    loop {
        let page = client.get(&path).await;
        let link = page.header("link").to_owned();
        seen.extend(names(&page.good()));
        let Some(next) = link.strip_prefix('<').and_then(|link| link.split('>').next()) else { break };
        assert!(next.contains("status=completed"), "the link keeps the filter: {next}");
        path = next.to_owned();
    }
    assert_eq!(seen, ["n6", "n5", "n4", "n3", "n2", "n1", "n0"]);
    assert_eq!(names(&client.get("/executions?asking=true").await.good()), ["ask"]);
    assert_eq!(names(&client.get("/executions?text=n3").await.good()), ["n3"]);
    let plan = asking["plan"]["id"].as_str().unwrap();
    assert_eq!(names(&client.get(&format!("/executions?plan={plan}")).await.good()), ["ask"]);
    assert_eq!(names(&client.get("/executions?until=2020-01-01T00:00:00Z").await.good()).len(), 0);
    assert_eq!(names(&client.get("/executions?from=2020-01-01T00:00:00Z").await.good()).len(), 8);
    client.get("/executions?from=yesterday").await.refused(400, "server.arguments");
    client.get("/executions?status=done").await.refused(400, "server.arguments");

    let questions = client.get("/questions").await.good();
    assert_eq!(questions["items"].as_array().unwrap().len(), 1);
    let question = &questions["items"][0];
    assert_eq!(
        (&question["kind"], &question["plan"]["name"], &question["part"]),
        (&json!("approval"), &json!("ask"), &json!("pay"))
    );
    assert_eq!(question["parameters"], json!({ "text": "ask" }));
    assert!(question["expires_at"].as_str().unwrap().ends_with('Z'));
}

#[tokio::test]
async fn a_current_etag_is_answered_with_304() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let execution = client.execute(&approved("ask")).await;
    let path = format!("/executions/{}", execution["execution_id"].as_str().unwrap());
    let answer = client.get(&path).await;
    let tag = answer.header("etag").to_owned();
    assert!(tag.starts_with('"') && answer.status == 200);
    let same = client.get_with(&path, "if-none-match", &tag).await;
    assert_eq!((same.status, same.text.as_str(), same.header("etag")), (304, "", tag.as_str()));
    let several = client.get_with(&path, "if-none-match", &format!("\"x\", W/{tag}")).await;
    assert_eq!(several.status, 304);
    harbour
        .operator()
        .signal(&execution, json!({ "action": "approve", "reason": "fine", "wait_seconds": 45 }))
        .await
        .good();
    let moved = client.get_with(&path, "if-none-match", &tag).await;
    assert_eq!((moved.status, &moved.body["status"]), (200, &json!("completed")));
}

#[tokio::test]
async fn an_agent_does_not_get_what_a_person_was_shown() {
    let harbour = Harbour::new().await;
    let (agent, operator) = (harbour.agent(), harbour.operator());
    let execution = agent.execute(&approved("ask")).await;
    let path = format!("/executions/{}", execution["execution_id"].as_str().unwrap());
    let shown = operator.get(&path).await;
    assert!(shown.text.contains("rutter exec approve"), "{}", shown.text);
    for tag in ["\"x\"", shown.header("etag")] {
        let answer = agent.get_with(&path, "if-none-match", tag).await;
        assert_eq!(answer.status, 200, "{tag}");
        assert!(!answer.text.contains("rutter exec approve"), "{}", answer.text);
        let again = operator.get_with(&path, "if-none-match", answer.header("etag")).await;
        assert!(again.text.contains("rutter exec approve"), "{}", again.text);
    }
}

#[tokio::test]
async fn waiting_ends_when_a_person_is_needed() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let started = client.post("/executions", json!({ "plan": approved("ask") })).await.good();
    let path = format!("/executions/{}?wait=45", started["execution_id"].as_str().unwrap());
    assert_eq!(client.get(&path).await.good()["status"], "waiting");
}

#[tokio::test]
async fn one_idempotency_key_starts_one_execution() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let body = json!({ "plan": notes("once", 1), "wait_seconds": 45 });
    let asking = (0..50).map(|_| {
        let (client, body) = (client.clone(), body.clone());
        tokio::spawn(async move { client.post_with("/executions", "idempotency-key", "k-1", body).await })
    });
    let asking: Vec<_> = asking.collect();
    let (mut ids, mut new) = (std::collections::BTreeSet::new(), 0);
    for answer in asking {
        let answer = answer.await.unwrap();
        new += usize::from(answer.status == 201);
        ids.insert(answer.good()["execution_id"].as_str().unwrap().to_owned());
    }
    assert_eq!((ids.len(), new), (1, 1));
    assert_eq!(client.get("/executions").await.good()["items"].as_array().unwrap().len(), 1);
    let found = client
        .execute(&json!({ "name": "count", "steps": [{ "id": "look", "tool": "memory.recent",
        "parameters": {} }] }))
        .await;
    assert_eq!(found["results"]["look"]["memories"].as_array().unwrap().len(), 1, "{found}");
    let other = json!({ "plan": notes("other", 1) });
    client.post_with("/executions", "idempotency-key", "k-1", other).await.refused(409, "store.key_reused");
    let spaces = json!({ "plan": notes("other", 1) });
    client.post_with("/executions", "idempotency-key", "a b", spaces).await.refused(400, "server.arguments");
}
