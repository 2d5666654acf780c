//! Plans: saved, found, compared, checked.

use crate::api::harbour::{Harbour, approved, heard, notes};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_plan_is_saved_found_and_read_back() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let mut plan = notes("ropes", 3);
    plan["tags"] = json!(["deck"]);
    let saved = client.post("/plans", json!({ "plan": plan })).await;
    assert_eq!(saved.status, 201, "{}", saved.text);
    let id = saved.body["plan_id"].as_str().unwrap();
    assert_eq!(saved.header("location"), format!("/api/v1/plans/{id}"));
    assert_eq!((&saved.body["revision"], &saved.body["steps_count"]), (&json!(1), &json!(3)));

    let again = client.post("/plans", json!({ "plan": plan })).await;
    assert_eq!((again.status, &again.body["plan_id"]), (200, &saved.body["plan_id"]), "the same source is saved once");

    let json = client.get(&format!("/plans/{id}")).await.good();
    assert_eq!((&json["name"], &json["tags"], &json["steps"]), (&json!("ropes"), &json!(["deck"]), &json!(3)));
    assert_eq!(serde_json::from_str::<serde_json::Value>(json["source"].as_str().unwrap()).unwrap(), plan);
    assert_eq!(json["tools"], json!(["memory.store"]));
    assert!(json["saved_at"].as_str().unwrap().ends_with('Z'));

    for (query, count) in [("name=ropes", 1), ("tag=deck", 1), ("text=numbers", 1), ("name=sails", 0)] {
        let found = client.get(&format!("/plans?{query}")).await.good();
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{query}");
    }
    client.get("/plans/plan_nowhere").await.refused(404, "store.not_found");
}

#[tokio::test]
async fn revisions_are_listed_and_compared() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let id = client.post("/plans", json!({ "plan": notes("log", 1) })).await.good()["plan_id"].clone();
    for steps in 2..=25 {
        let saved = client.post("/plans", json!({ "plan": notes("log", steps), "plan_id": id })).await;
        assert_eq!((saved.status, &saved.body["revision"]), (201, &json!(steps)));
    }
    let stale = json!({ "plan": notes("log", 9), "plan_id": id, "expected_revision": 3 });
    client.post("/plans", stale).await.refused(409, "store.conflict");
    let path = format!("/plans/{}", id.as_str().unwrap());

    let first = client.get(&format!("{path}/revisions")).await;
    let link = first.header("link").to_owned();
    let first = first.good();
    let next = link.strip_prefix('<').unwrap().split('>').next().unwrap();
    let rest = client.get(next).await.good();
    let revisions = |page: &serde_json::Value| -> Vec<u64> {
        page["items"].as_array().unwrap().iter().map(|item| item["revision"].as_u64().unwrap()).collect()
    };
    let all = [revisions(&first), revisions(&rest)].concat();
    assert_eq!(all, (1..=25).rev().collect::<Vec<u64>>());
    assert!(rest.get("next_cursor").is_none());

    let third = client.get(&format!("{path}/revisions/3")).await.good();
    assert_eq!((&third["revision"], &third["steps"]), (&json!(3), &json!(3)));
    client.get(&format!("{path}/revisions/99")).await.refused(404, "store.not_found");
    client.get(&format!("{path}/revisions/x")).await.refused(404, "store.not_found");

    let diff = client.get(&format!("{path}/diff?from=2&to=4")).await.good();
    assert_eq!(diff["added"], json!(["s2", "s3"]));
    assert_eq!(diff["unchanged"], json!(["s0", "s1"]));
    let newest = client.get(&format!("{path}/diff")).await.good();
    assert_eq!((&newest["from"], &newest["to"], &newest["added"]), (&json!(24), &json!(25), &json!(["s24"])));
    client.get(&format!("{path}/diff?from=0x1")).await.refused(400, "server.arguments");
}

#[tokio::test]
async fn a_renamed_plan_keeps_its_text_and_its_comments() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let text =
        "# why it exists\nname: old # not for long\nsteps:\n  - { id: look, tool: memory.recent, parameters: {} }\n";
    client.post("/plans", json!({ "plan": text })).await.good();
    let renamed = client.post("/plans/old/rename", json!({ "name": "new: one" })).await.good();
    let saved = client.get("/plans/new:%20one").await.good();
    assert_eq!(saved["plan_id"], renamed["plan_id"]);
    assert_eq!((&saved["revision"], &saved["format"]), (&json!(2), &json!("yaml")));
    assert_eq!(saved["source"], text.replace("old", "\"new: one\""));
    // Written otherwise it is the same revision, and the answer is about the one that is stored.
    let steps = json!([{ "tool": "memory.recent", "parameters": {}, "id": "look" }]);
    let same = client.post("/plans", json!({ "plan": { "steps": steps, "name": "new: one" } })).await;
    assert_eq!((same.status, &same.body["hash"]), (200, &saved["hash"]), "{}", same.text);
    client.get("/plans/old/revisions/1").await.refused(404, "store.not_found");
    client.post("/executions", json!({ "plan_id": "new: one", "revision": 9 })).await.refused(404, "store.not_found");
}

#[tokio::test]
async fn mistakes_are_reported_at_once_and_nothing_is_saved() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let wrong = json!({ "name": "wrong", "steps": [
        { "id": "a", "tool": "memory.stor", "parameters": { "text": "x" } },
        { "id": "b", "tool": "memory.store", "depends_on": ["c"], "parameters": { "text": 1 } } ] });
    let refused = client.post("/plans", json!({ "plan": wrong })).await;
    refused.refused(422, "engine.plan");
    let found = refused.body["details"]["diagnostics"].as_array().unwrap();
    assert!(found.len() >= 3, "{}", refused.text);
    let checked = client.post("/plans/check", json!({ "plan": wrong })).await.good();
    assert_eq!(checked["is_accepted"], false);
    assert_eq!(checked["diagnostics"].as_array().unwrap().len(), found.len());
    assert_eq!(client.get("/plans").await.good()["items"], json!([]));

    let good = client.post("/plans/check", json!({ "plan": notes("x", 1) })).await.good();
    assert_eq!(good["is_accepted"], true);
    let dry = client.post("/plans", json!({ "plan": notes("x", 1), "dry_run": true })).await;
    assert_eq!((dry.status, dry.body.get("plan_id")), (200, None));
    assert_eq!(client.get("/plans").await.good()["items"], json!([]));
}

#[tokio::test]
async fn bodies_and_queries_are_validated_strictly() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    client.post("/plans", json!({ "plan": notes("x", 1), "plam_id": "y" })).await.refused(400, "server.arguments");
    client.post("/plans", json!([1])).await.refused(400, "server.arguments");
    client.get("/plans?nmae=x").await.refused(400, "server.arguments");
    client.get("/plans?limit=0").await.refused(400, "server.arguments");
    client.get("/plans?limit=101").await.refused(400, "server.arguments");
    client.get("/plans?limit=many").await.refused(400, "server.arguments");
    client.get("/plans?cursor=nonsense").await.refused(400, "store.invalid");
    let post = || client.request(reqwest::Method::POST, "/plans");
    let heard = crate::api::harbour::heard;
    heard(post().header("content-type", "application/json").body("{")).await.refused(400, "server.arguments");
    heard(post().header("content-type", "text/plain").body("{}")).await.refused(415, "server.media_type");
    heard(post().body("{}")).await.refused(415, "server.media_type");
    let large = "x".repeat(5 << 20);
    let large = heard(post().header("content-type", "application/json").body(large)).await;
    large.refused(413, "server.arguments");
    // Without a Content-Length, the size is counted while the body arrives.
    let pieces = futures::stream::iter((0..5).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1 << 20])));
    let streamed = reqwest::Body::wrap_stream(pieces);
    let streamed = heard(post().header("content-type", "application/json").body(streamed)).await;
    streamed.refused(413, "server.too_large");
    let put = heard(client.request(reqwest::Method::PUT, "/plans")).await;
    put.refused(405, "server.method");
    assert_eq!(put.header("allow"), "POST, GET");
    client.get("/plaans").await.refused(404, "server.no_route");
}

#[tokio::test]
async fn a_preview_shows_what_can_be_undone() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let id = client.post("/plans", json!({ "plan": notes("x", 2) })).await.good()["plan_id"].clone();
    let preview = client.get(&format!("/plans/{}/preview", id.as_str().unwrap())).await.good();
    assert_eq!(preview["point_of_no_return"]["step"], "s0");
    assert_eq!(preview["critical_path"], json!(["s0", "s1"]));
    assert_eq!(preview["steps"][1]["what_if"]["completed"], json!(["s0"]));
}

#[tokio::test]
async fn a_forecast_comes_from_history_and_is_empty_without_one() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let id = client.post("/plans", json!({ "plan": notes("x", 2) })).await.good()["plan_id"].clone();
    let path = format!("/plans/{}/preview", id.as_str().unwrap());
    let ahead = client.get(&path).await.good()["forecast"].clone();
    assert_eq!(
        ahead,
        json!({ "text": "no history of s0, s1", "ended": 0, "completed": 0,
        "unknown_steps": ["s0", "s1"] })
    );

    let execution = client.execute(&notes("x", 2)).await["execution_id"].clone();
    let ahead = loop {
        let ahead = client.get(&path).await.good()["forecast"].clone();
        if ahead["completed"] == 1 {
            break ahead;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let chance = ahead["chance_percent"].as_f64().unwrap();
    assert!((60.0..99.0).contains(&chance), "{ahead}");
    assert!(ahead["expected_ms"].as_u64() <= ahead["p95_ms"].as_u64() && ahead["p95_ms"].is_u64(), "{ahead}");
    assert!(ahead.get("riskiest").is_none(), "nothing has failed: {ahead}");
    let text = ahead["text"].as_str().unwrap();
    assert!(text.starts_with("completes in ") && text.ends_with("1 of 1 executions completed before"), "{text}");
    let ended = client.get(&format!("/executions/{}/preview", execution.as_str().unwrap())).await.good();
    assert!(ended.get("forecast").is_none(), "{ended}");

    // Its tool has a history, its approval does not.
    let waiting = client.execute(&approved("y")).await;
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    let path = format!("/executions/{}/preview", waiting["execution_id"].as_str().unwrap());
    let ahead = client.get(&path).await.good()["forecast"].clone();
    assert_eq!((&ahead["ended"], &ahead["untimed_approvals"]), (&json!(0), &json!(["pay"])), "{ahead}");
    assert!(ahead["text"].as_str().unwrap().starts_with("completes from here in "), "{ahead}");
}

#[tokio::test]
async fn every_door_reads_a_plan_as_strictly_as_plan_check() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let step = r#"{ "id": "a", "tool": "memory.store", "parameters": { "text": "x" }, "cancellable": "irreversible" }"#;
    let twice = format!(r#"{{ "name": "x", "name": "y", "steps": [{step}] }}"#);
    let large = format!(r#"{{ "name": "x", "metadata": {{ "n": 123456789012345678901 }}, "steps": [{step}] }}"#);
    let driven = client.post("/executions", json!({ "plan": notes("driven", 1), "driver": "agent" })).await.good();
    let replan = format!("/executions/{}/replan", driven["execution_id"].as_str().unwrap());
    for (plan, code, pointer) in
        [(twice, "document.duplicate_key", "/name"), (large, "document.integer_range", "/metadata/n")]
    {
        let body = format!(r#"{{ "plan": {plan} }}"#);
        let with_reason = format!(r#"{{ "plan": {plan}, "reason": "x" }}"#);
        let archive = format!(r#"{{ "format": "rutter-plans/1", "plans": [{{ "name": "x", "document": {plan} }}] }}"#);
        for (path, body, found) in [
            ("/plans", &body, "/details/diagnostics/0"),
            ("/executions", &body, "/details/diagnostics/0"),
            ("/plans/check", &body, "/diagnostics/0"),
            ("/plans/optimize", &body, "/details/diagnostics/0"),
            ("/plans/import", &archive, "/plans/0/error/details/diagnostics/0"),
            (&replan, &with_reason, "/details/diagnostics/0"),
        ] {
            let request = client.request(reqwest::Method::POST, path).header("content-type", "application/json");
            let answer = heard(request.body(body.clone())).await;
            let found = answer.body.pointer(found).unwrap_or_else(|| panic!("{path}: {}", answer.text));
            assert_eq!((&found["code"], &found["pointer"]), (&json!(code), &json!(pointer)), "{path}: {}", answer.text);
        }
    }
    assert_eq!(client.get("/executions").await.good()["items"].as_array().unwrap().len(), 1);
    assert_eq!(client.get("/plans").await.good()["items"].as_array().unwrap().len(), 1);
    let after = client.get(&format!("/executions/{}", driven["execution_id"].as_str().unwrap())).await.good();
    assert_eq!(after["plan"]["revision"], 1, "{after}");
}

#[tokio::test]
async fn a_plan_is_archived_restored_and_deleted() {
    let harbour = Harbour::new().await;
    let (agent, operator) = (harbour.agent(), harbour.operator());
    let id = agent.post("/plans", json!({ "plan": notes("ropes", 1) })).await.good()["plan_id"].clone();
    let path = format!("/plans/{}", id.as_str().unwrap());
    let listed = async |query: &str| {
        let found = agent.get(&format!("/plans{query}")).await.good();
        found["items"].as_array().unwrap().len()
    };
    let start = async || agent.post("/executions", json!({ "plan_id": id, "wait_seconds": 45 })).await;
    for is_new in [true, false] {
        let archived = operator.post(&format!("{path}/archive"), json!({ "reason": "old" })).await.good();
        assert_eq!((&archived["plan_id"], &archived["is_new"]), (&id, &json!(is_new)), "{archived}");
        assert_eq!((listed("").await, listed("?archived=true").await), (0, 1));
        start().await.refused(409, "server.plan_archived");
    }
    let restored = operator.post(&format!("{path}/restore"), json!({})).await.good();
    assert_eq!((&restored["is_new"], listed("").await, listed("?archived=true").await), (&json!(true), 1, 0));
    assert_eq!(start().await.good()["status"], "completed");

    operator.post(&format!("{path}/delete"), json!({})).await.refused(400, "command.reason_missing");
    agent.post(&format!("{path}/delete"), json!({ "reason": "x" })).await.refused(403, "server.not_allowed");
    assert_eq!(listed("").await, 1);
    let deleted = operator.post(&format!("{path}/delete"), json!({ "reason": "not needed" })).await.good();
    assert_eq!((&deleted["is_new"], &deleted["executions_kept"]), (&json!(true), &json!(1)), "{deleted}");
    assert_eq!((listed("").await, listed("?archived=true").await), (0, 0));
    agent.get(&path).await.refused(404, "store.not_found");
    start().await.refused(404, "store.not_found");
}

#[tokio::test]
async fn a_timeout_is_learned_from_twenty_calls() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let plan = json!({ "name": "look", "steps": [{ "id": "look", "tool": "memory.recent", "parameters": {} }] });
    let learned = async || {
        let found = client.post("/plans/optimize", json!({ "plan": plan })).await.good();
        let of_timeout = |suggestion: &&serde_json::Value| suggestion["code"] == "optimize.timeout";
        found["suggestions"].as_array().unwrap().iter().find(of_timeout).cloned()
    };
    for _ in 0..20 {
        assert_eq!(learned().await, None, "fewer than twenty calls say too little");
        client.execute(&plan).await;
    }
    let suggestion = loop {
        match learned().await {
            Some(suggestion) => break suggestion,
            None => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    assert!(suggestion["reason"].as_str().unwrap().contains("of the last 20 calls of memory.recent"), "{suggestion}");
    let fix = json!([{ "op": "add", "path": "/steps/0/timeout", "value": "1s" }]);
    assert_eq!((&suggestion["step"], &suggestion["fix"]), (&json!("look"), &fix), "{suggestion}");
}

#[tokio::test]
async fn templates_are_listed_and_become_plans_also_own_ones() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let own = "description: Keep one text\nparameters:\n  type: object\n  required: [what]\n  \
               properties: { what: { type: string } }\nplan:\n  name: keep\n  steps:\n    \
               - { id: keep, tool: memory.store, parameters: { text: \"${what}\" }, cancellable: irreversible }\n";
    let names = async || {
        let listed = client.get("/templates").await.good();
        let names = listed["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    let shipped = names().await;
    assert!(shipped.contains(&"remember".to_owned()) && !shipped.contains(&"keep".to_owned()), "{shipped:?}");
    harbour.add_template("keep.yaml", own);
    assert_eq!(names().await.len(), shipped.len() + 1);

    let made = client.post("/templates/keep/plan", json!({ "parameters": { "what": "a rope" } })).await.good();
    assert_eq!(made["plan"]["steps"][0]["parameters"], json!({ "text": "a rope" }), "{made}");
    assert_eq!(client.execute(&made["plan"]).await["status"], "completed");
    let made = client.post("/templates/remember/plan", json!({ "parameters": { "name": "mine" } })).await.good();
    let saved = client.post("/plans", json!({ "plan": made["plan"] })).await.good();
    assert_eq!(saved["name"], "mine", "{saved}");
    client.post("/templates/keep/plan", json!({ "parameters": { "wath": 1 } })).await.refused(400, "server.arguments");
    client.post("/templates/kep/plan", json!({})).await.refused(404, "store.not_found");
}

#[tokio::test]
async fn one_key_is_one_request_however_it_is_written() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let send = |path: &'static str, body: &str| {
        let request = client.request(reqwest::Method::POST, path).header("idempotency-key", "k-7");
        heard(request.header("content-type", "application/json").body(body.to_owned()))
    };
    let steps = r#""steps": [{ "id": "a", "tool": "memory.store", "parameters": { "text": "x" }, "cancellable": "irreversible" }]"#;
    for path in ["/plans", "/executions"] {
        let first = send(path, &format!(r#"{{ "plan": {{ "name": "keyed", "max_parallel": 2, {steps} }} }}"#)).await;
        let again = send(path, &format!(r#"{{ "plan": {{ {steps}, "max_parallel": 2.0, "name": "keyed" }} }}"#)).await;
        for field in ["plan_id", "execution_id"] {
            assert_eq!(first.body[field], again.body[field], "{}", again.text);
        }
        assert!(first.status == 201 && again.status < 300, "{} {}", first.text, again.text);
        let other = send(path, &format!(r#"{{ "plan": {{ "name": "keyed", "max_parallel": 3, {steps} }} }}"#)).await;
        other.refused(409, "store.key_reused");
    }
}

#[tokio::test]
async fn plans_are_exported_and_imported_each_by_itself() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let plan = notes("ropes", 2);
    let id = client.post("/plans", json!({ "plan": plan })).await.good()["plan_id"].clone();
    let document = client.get(&format!("/plans/{}/export", id.as_str().unwrap())).await.good();
    assert_eq!(document, plan);
    let body = json!({ "format": "rutter-plans/1", "plans": [
        { "document": plan }, { "document": notes("sails", 1) }, { "name": "bad", "document": { "name": "bad" } }] });
    let imported = client.post("/plans/import", body).await.good();
    let results: Vec<&str> =
        imported["plans"].as_array().unwrap().iter().map(|plan| plan["result"].as_str().unwrap()).collect();
    assert_eq!((results, &imported["refused"]), (vec!["unchanged", "new", "refused"], &json!(1)));
    assert_eq!(imported["plans"][2]["error"]["code"], "engine.plan", "{imported}");
    let other = json!({ "format": "rutter-plans/9", "plans": [] });
    client.post("/plans/import", other).await.refused(400, "server.arguments");
}
