//! Prompts for legacy and modern clients, and errors about invalid arguments.

use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use serde_json::{Value, json};

async fn text(client: &mut McpClient, name: &str, arguments: Value) -> String {
    let prompt = client.ask("prompts/get", json!({ "name": name, "arguments": arguments })).await.unwrap();
    let messages = prompt["messages"].as_array().unwrap();
    assert!(messages.iter().all(|message| message["role"] == "user"), "{prompt}");
    messages.iter().map(|message| message["content"]["text"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_goal_alone_is_enough_for_a_plan_prompt_in_both_eras() {
    let deck = ServerFixture::new().await;
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let mut client = deck.client(era).await;
        let list = client.ask("prompts/list", json!({})).await.unwrap();
        let names: Vec<&str> =
            list["prompts"].as_array().unwrap().iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["handle_failure", "plan_goal", "take_over"]);

        let goal = "keep a text for later across restarts";
        let short = text(&mut client, "plan_goal", json!({ "goal": goal })).await;
        for fact in
            [goal, "Complexity: medium", "`memory.store`", "compensation", "probe", "approval", "failure policy"]
        {
            assert!(short.contains(fact), "{fact} is missing in {short}");
        }
        assert!(short.contains("on_failure: manual_decision"), "the format is shown");
        assert!(!short.contains("Domain:"));
        // Clients send an empty string for omitted arguments.
        let empty = json!({ "goal": goal, "complexity": "", "domain": "" });
        assert_eq!(text(&mut client, "plan_goal", empty).await, short);
        let full = json!({ "goal": goal, "complexity": "complex", "domain": "data" });
        let full = text(&mut client, "plan_goal", full).await;
        assert!(full.contains("Domain: data") && full.contains("`for_each`"), "{full}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_arguments_are_named_with_what_was_expected() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    for (name, arguments, expected) in [
        ("plan_goal", json!({}), "goal of plan_goal must be the goal, in words"),
        ("plan_goal", json!({ "goal": " " }), "the goal, in words"),
        ("plan_goal", json!({ "goal": 7 }), "text of at most 8192 bytes"),
        ("plan_goal", json!({ "goal": "x".repeat(9_000) }), "text of at most 8192 bytes"),
        ("plan_goal", json!({ "goal": "x", "complexity": "huge" }), "simple, medium or complex"),
        ("plan_goal", json!({ "goal": "x", "gaol": "y" }), "it has goal, complexity, domain"),
        ("handle_failure", json!({}), "the id of an execution"),
        ("take_over", json!({ "execution_id": "exec_none" }), "exec_none"),
        ("no_such", json!({}), "handle_failure, plan_goal and take_over"),
    ] {
        let error = client.ask("prompts/get", json!({ "name": name, "arguments": arguments })).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_failure_prompt_has_the_history_and_the_exact_calls() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Legacy).await;
    let plan = json!({ "name": "two notes", "steps": [
        { "id": "first", "tool": "memory.store", "parameters": { "text": "kept" }, "cancellable": "irreversible" },
        { "id": "second", "tool": "memory.store", "depends_on": ["first"],
          "parameters": { "text": "lost", "expires_after": "soon" }, "cancellable": "irreversible" } ] });
    let waiting = client.call("execute_plan", json!({ "plan": plan })).await;
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    let id = &waiting["execution_id"];

    let failure = text(&mut client, "handle_failure", json!({ "execution_id": id })).await;
    let retry = json!({ "execution_id": id, "action": "retry", "step_id": "second", "reason": "…" });
    for fact in [&*format!("`control` {retry}"), "`replan`", "expected a span such as 12h", "Done: first"] {
        assert!(failure.contains(fact), "{fact} is missing in {failure}");
    }

    let over = text(&mut client, "take_over", json!({ "execution_id": id })).await;
    let take = json!({ "execution_id": id, "action": "take_over", "reason": "…" });
    for fact in ["- first (memory.store): completed", &*format!("`control` {take}")] {
        assert!(over.contains(fact), "{fact} is missing in {over}");
    }
    assert!(!over.contains("- second (memory.store)"), "a step without effect may be retried: {over}");
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_for_people_are_left_to_people() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let plan = json!({ "name": "asked", "steps": [ { "id": "keep", "tool": "memory.store", "parameters": { "text": "x" },
        "cancellable": "irreversible", "approval": { "required": true } } ] });
    let waiting = client.call("execute_plan", json!({ "plan": plan })).await;
    let id = waiting["execution_id"].as_str().unwrap();
    let failure = text(&mut client, "handle_failure", json!({ "execution_id": id })).await;
    assert!(failure.contains("only a person can answer; tell the user to answer"), "{failure}");
}
