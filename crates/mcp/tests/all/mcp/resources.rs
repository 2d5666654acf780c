//! Resources: everything listed can be read, live ones are accurate, and pages have no gaps.

use rutter_app::app::AppSettings;
use rutter_app::principal::{McpToolset, Principal};
use rutter_app::runtime::RuntimeOptions;
use rutter_core::id::TenantId;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::installation::options;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use serde_json::{Value, json};

/// A plan of `count` notes, one after the other.
fn notes(count: usize) -> Value {
    let steps = (0..count).map(|number| {
        let text = format!("note {number}");
        json!({ "id": format!("n{number}"), "tool": "memory.store", "parameters": { "text": text }, "cancellable": "irreversible" })
    });
    json!({ "name": "notes", "goal": "keep notes", "steps": steps.collect::<Vec<Value>>() })
}

async fn read(client: &mut McpClient, uri: &str) -> Value {
    client.ask("resources/read", json!({ "uri": uri })).await.unwrap()
}

/// The JSON at a live address.
async fn data(client: &mut McpClient, uri: &str) -> Value {
    let result = read(client, uri).await;
    assert_eq!(result["contents"][0]["mimeType"], "application/json", "{result}");
    serde_json::from_str(result["contents"][0]["text"].as_str().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_listed_can_be_read_in_both_eras() {
    let deck = ServerFixture::new().await;
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let mut client = deck.client(era).await;
        let done = client.call("execute_plan", json!({ "plan": notes(1) })).await;
        let (mut uris, mut page) = (Vec::new(), json!({}));
        loop {
            let list = client.ask("resources/list", page).await.unwrap();
            for resource in list["resources"].as_array().unwrap() {
                uris.push(resource["uri"].as_str().unwrap().to_owned());
            }
            match list.get("nextCursor") {
                Some(cursor) => page = json!({ "cursor": cursor }),
                None => break,
            }
        }
        let execution = done["resource_uri"].as_str().unwrap();
        for uri in ["rutter://guide", "rutter://plan-reference", "rutter://examples/order", execution] {
            assert!(uris.iter().any(|listed| listed == uri), "{uri} is not in {uris:?}");
        }
        assert!(uris.iter().any(|uri| uri.starts_with("rutter://plans/plan_")), "{uris:?}");
        for uri in &uris {
            let result = read(&mut client, uri).await;
            assert!(!result["contents"][0]["text"].as_str().unwrap().is_empty(), "{uri}");
            if era == ClientEra::Modern {
                // A template may be a file of the operator's.
                let is_live = uri.contains('_') || uri.contains("/templates/");
                let hints = (result["ttlMs"].as_u64().unwrap() == 0, &result["cacheScope"]);
                assert_eq!(hints, (is_live, &json!(if is_live { "private" } else { "public" })), "{uri}");
            }
        }
        let reference = read(&mut client, "rutter://plan-reference").await;
        let reference = reference["contents"][0]["text"].as_str().unwrap();
        assert!(reference.contains("total_timeout"), "every field is in it");
        let templates = client.ask("resources/templates/list", json!({})).await.unwrap();
        assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 6);
        let error = client.ask("resources/list", json!({ "cursor": "elsewhere" })).await.unwrap_err();
        assert_eq!(error["code"], -32602);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn own_templates_are_listed_beside_the_shipped_ones_and_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let own = tempfile::tempdir().unwrap();
    std::fs::write(own.path().join("keep.yaml"), "description: Keep one text\nplan: { name: keep }\n").unwrap();
    let settings = AppSettings { ask_at_client: true, templates: Some(own.path().to_owned()) };
    let options = RuntimeOptions { settings, ..options(folder.path(), "") };
    let deck = ServerFixture::open_with(folder, options).await;
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let mut client = deck.client(era).await;
        let list = client.ask("resources/list", json!({})).await.unwrap();
        let about = |uri: &str| {
            let listed = list["resources"].as_array().unwrap().iter().find(|resource| resource["uri"] == uri);
            listed.map(|resource| resource["description"].clone())
        };
        assert_eq!(about("rutter://templates/keep"), Some(json!("Keep one text")), "{list}");
        assert!(about("rutter://templates/remember").is_some(), "{list}");
        let template = data(&mut client, "rutter://templates/keep").await;
        assert_eq!((&template["name"], &template["plan"]), (&json!("keep"), &json!({ "name": "keep" })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_resources_get_the_error_code_of_the_era() {
    let deck = ServerFixture::new().await;
    let mut owner = deck.client(ClientEra::Modern).await;
    let done = owner.call("execute_plan", json!({ "plan": notes(1) })).await;
    let theirs = done["resource_uri"].as_str().unwrap();
    for (era, code) in [(ClientEra::Legacy, -32002), (ClientEra::Modern, -32602)] {
        let stranger = Principal::local(TenantId::new("other"), "operator", [McpToolset::Default].into());
        let mut stranger = deck.client_of(era, stranger, json!({})).await;
        let journal = format!("{theirs}/journal");
        let step = format!("{theirs}/steps/n0");
        for uri in [theirs, &journal, &step, "rutter://plans/plan_none", "rutter://examples/none", "file:///etc/passwd"]
        {
            let error = stranger.ask("resources/read", json!({ "uri": uri })).await.unwrap_err();
            assert_eq!(error["code"], code, "{uri}: {error}");
        }
        let list = stranger.ask("resources/list", json!({ "cursor": "executions" })).await.unwrap();
        assert_eq!(list["resources"], json!([]), "tenants do not see each other");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_is_read_whole_and_its_journal_page_by_page() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let done = client.call("execute_plan", json!({ "plan": notes(120), "wait_seconds": 45 })).await;
    assert_eq!(done["status"], "completed", "{done}");
    let uri = done["resource_uri"].as_str().unwrap();
    let execution = data(&mut client, uri).await;
    assert_eq!((&execution["status"], &execution["done"]), (&json!("completed"), &json!(120)));
    assert_eq!(execution["steps"].as_array().unwrap().len(), 120);
    assert!(execution["results"]["n0"]["id"].as_str().unwrap().starts_with("memory_"), "{execution}");

    let (mut seqs, mut next) = (Vec::new(), format!("{uri}/journal"));
    let entries = loop {
        let page = data(&mut client, &next).await;
        let entries = page["entries"].as_array().unwrap();
        assert!(entries.len() <= 100);
        seqs.extend(entries.iter().map(|entry| entry["seq"].as_u64().unwrap()));
        match page["next"].as_str() {
            Some(uri) => next = uri.to_owned(),
            None => break page["entries_in_all"].as_u64().unwrap(),
        }
    };
    assert!(entries > 200, "{entries}");
    assert_eq!(seqs, (1..=entries).collect::<Vec<u64>>(), "no gaps, nothing twice");
    let tail = data(&mut client, &format!("{uri}/journal?after={}", entries - 1)).await;
    assert_eq!(tail["entries"][0]["seq"], entries);
    let beyond = data(&mut client, &format!("{uri}/journal?after={}", entries + 5)).await;
    assert_eq!((&beyond["entries"], &beyond["next"]), (&json!([]), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn long_results_are_cut_in_the_execution_and_complete_in_their_step() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Legacy).await;
    let mut plan = notes(3);
    for number in 0..3 {
        plan["steps"][number]["parameters"]["text"] = json!(format!("{number}{}", "x".repeat(3_000)));
    }
    let recall = json!({ "id": "recall", "tool": "memory.recent", "parameters": {}, "depends_on": ["n0", "n1", "n2"] });
    plan["steps"].as_array_mut().unwrap().push(recall);
    let done = client.call("execute_plan", json!({ "plan": plan })).await;
    assert_eq!(done["status"], "completed", "{done}");
    let uri = done["resource_uri"].as_str().unwrap();
    let execution = data(&mut client, uri).await;
    let cut = &execution["results"]["recall"];
    assert!(cut.as_str().unwrap().ends_with('…'), "{cut}");
    let step = data(&mut client, &format!("{uri}/steps/recall")).await;
    assert_eq!(step["result"]["memories"].as_array().unwrap().len(), 3, "{step}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_revision_of_a_plan_has_its_source() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let saved = client.call("save_plan", json!({ "plan": notes(1) })).await;
    let id = saved["plan_id"].as_str().unwrap();
    client.call("save_plan", json!({ "plan_id": id, "plan": notes(2) })).await;
    for (query, revision, steps) in [("", 2, 2), ("?revision=1", 1, 1), ("?revision=2", 2, 2)] {
        let result = read(&mut client, &format!("rutter://plans/{id}{query}")).await;
        let contents = &result["contents"][0];
        assert_eq!(contents["uri"], format!("rutter://plans/{id}?revision={revision}"));
        let plan: Value = serde_json::from_str(contents["text"].as_str().unwrap()).unwrap();
        assert_eq!(plan["steps"].as_array().unwrap().len(), steps);
    }
    let error = client.ask("resources/read", json!({ "uri": format!("rutter://plans/{id}?revision=3") })).await;
    assert_eq!(error.unwrap_err()["code"], -32602);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_and_names_are_completed_by_prefix() {
    let deck = ServerFixture::new().await;
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let mut client = deck.client(era).await;
        let done = client.call("execute_plan", json!({ "plan": notes(12) })).await;
        let id = done["execution_id"].as_str().unwrap();
        let prompt = |name: &str| json!({ "type": "ref/prompt", "name": name });
        let template = |uri: &str| json!({ "type": "ref/resource", "uri": uri });
        let plan = "rutter://plans/{id}{?revision}";
        let step = "rutter://executions/{id}/steps/{step}";
        let of = |id: &str| json!({ "arguments": { "id": id } });
        for (reference, argument, begins, context, expected) in [
            (prompt("plan_goal"), "complexity", "", Value::Null, Some(vec!["simple", "medium", "complex"])),
            (prompt("plan_goal"), "domain", "d", Value::Null, Some(vec!["data", "deployment", "documents"])),
            (prompt("take_over"), "execution_id", id, Value::Null, Some(vec![id])),
            (template("rutter://executions/{id}"), "id", id, Value::Null, Some(vec![id])),
            (template(step), "step", "n1", of(id), Some(vec!["n1", "n10", "n11"])),
            (template(step), "step", "n1", of("exec_none"), Some(vec![])),
            (template("rutter://examples/{name}"), "name", "o", Value::Null, Some(vec!["off-boarding", "order"])),
            (template(plan), "id", "plan_", Value::Null, None),
            (template("rutter://nowhere"), "id", "", Value::Null, Some(vec![])),
            (prompt("no_such"), "x", "", Value::Null, Some(vec![])),
        ] {
            let mut params = json!({ "ref": reference, "argument": { "name": argument, "value": begins } });
            if !context.is_null() {
                params["context"] = context;
            }
            let found = client.ask("completion/complete", params).await.unwrap();
            let values = &found["completion"]["values"];
            match expected {
                Some(expected) => assert_eq!(values, &json!(expected), "{argument} {begins}"),
                None => assert!(!values.as_array().unwrap().is_empty(), "{argument} {begins}"),
            }
        }
    }
}
