//! The size of tool definitions and results, and whether results match their schemas.

use rutter_app::principal::McpToolset;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use rutter_testkit::server::shop::{ShopFixture, execute, order};
use serde_json::{Value, json};

/// Size limit of the default toolset's list on the wire.
const LIST_BYTES_MAX: usize = 20_000;
const DESCRIPTION_CHARS_MAX: usize = 260;
const ANSWER_BYTES_MAX: usize = 8 << 10;
const BRIEF_BYTES_MAX: usize = 3_200;

#[tokio::test(flavor = "multi_thread")]
async fn the_default_tools_cost_a_prompt_little() {
    let deck = ServerFixture::new().await;
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let list = deck.client(era).await.ask("tools/list", json!({})).await.unwrap();
        for tool in list["tools"].as_array().unwrap() {
            println!("{:6} {}", tool.to_string().len(), tool["name"]);
        }
        println!("{:6} in all, {era:?}", list.to_string().len());
        assert!(list.to_string().len() <= LIST_BYTES_MAX);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_has_title_hints_and_portable_schemas() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client_with(ClientEra::Modern, &McpToolset::ALL, json!({})).await;
    let list = client.ask("tools/list", json!({})).await.unwrap();
    for tool in list["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["title"].is_string(), "{name} has a title");
        let description = tool["description"].as_str().unwrap().chars().count();
        assert!(description <= DESCRIPTION_CHARS_MAX, "{name}: {description} characters");
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{name} says {hint}");
        }
        for field in ["summary", "next"] {
            assert_eq!(tool["outputSchema"]["properties"][field]["type"], "string", "{name} answers {field}");
            assert!(tool["outputSchema"]["required"].as_array().unwrap().contains(&json!(field)), "{name}");
        }
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name}");
            portable(&tool[schema], &format!("{name}/{schema}"));
        }
    }
}

/// Checks that every client can read the schema.
fn portable(schema: &Value, place: &str) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                let is_odd = match key.as_str() {
                    // The name of an argument, not a keyword.
                    _ if place.ends_with("/properties") => false,
                    "$ref" | "$defs" | "format" => true,
                    "type" => value.is_array() || value == "null",
                    "default" => value.is_null(),
                    _ => false,
                };
                assert!(!is_odd, "{place}: {key} is {value}");
                portable(value, &format!("{place}/{key}"));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| portable(item, place)),
        Value::Bool(_) if place.ends_with("additionalProperties") => {}
        Value::Null => panic!("{place} is null"),
        _ => {}
    }
}

/// Calls tools and validates arguments and results against their schemas.
struct Judge {
    client: McpClient,
    tools: Value,
}

impl Judge {
    async fn new(mut client: McpClient) -> Judge {
        let tools = client.ask("tools/list", json!({})).await.unwrap()["tools"].clone();
        Judge { client, tools }
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let offers = self.tools.as_array().unwrap();
        let schema = |name: &str| offers.iter().find(|offer| offer["name"] == tool).unwrap()[name].clone();
        let (input, output) = (schema("inputSchema"), schema("outputSchema"));
        let input = jsonschema::validator_for(&input).unwrap();
        assert!(input.is_valid(&arguments), "{tool} takes {arguments}");
        let answer = self.client.call(tool, arguments).await;
        assert!(answer.get("error").is_none(), "{tool}: {answer}");
        let output = jsonschema::validator_for(&output).unwrap();
        let wrong: Vec<String> = output.iter_errors(&answer).map(|error| error.to_string()).collect();
        assert!(wrong.is_empty(), "{tool} answers {answer}: {wrong:?}");
        let bytes = answer.to_string().len();
        assert!(bytes <= ANSWER_BYTES_MAX, "{tool} answers {bytes} bytes");
        answer
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_match_the_output_schemas() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
    let client = shop.deck.client_with(ClientEra::Modern, &[McpToolset::Default, McpToolset::Admin], json!({})).await;
    let mut evaluate = Judge::new(client).await;
    let plan = order("shop.charge");
    evaluate.call("find_tools", json!({})).await;
    evaluate.call("find_tools", json!({ "name": "shop.reserve" })).await;
    evaluate.call("save_plan", json!({ "plan": plan, "dry_run": true })).await;
    let saved = evaluate.call("save_plan", json!({ "plan": plan })).await;
    evaluate.call("find_plans", json!({})).await;
    evaluate.call("find_plans", json!({ "text": "nothing has these words" })).await;
    evaluate.call("find_plans", json!({ "plan_id": saved["plan_id"] })).await;
    evaluate.call("preview", json!({ "plan_id": saved["plan_id"], "step": "charge" })).await;
    let waiting = evaluate.call("execute_plan", json!({ "plan_id": saved["plan_id"], "wait_seconds": 45 })).await;
    let id = &waiting["execution_id"];
    evaluate.call("preview", json!({ "execution_id": id })).await;
    evaluate.call("status", json!({ "execution_id": id, "include_step_details": true })).await;
    evaluate.call("status", json!({ "execution_id": id, "brief": true })).await;
    evaluate.call("replan", json!({ "execution_id": id, "reason": "card refused" })).await;
    let mut other = plan.clone();
    other["steps"].as_array_mut().unwrap().truncate(1);
    evaluate
        .call("replan", json!({ "execution_id": id, "plan": other, "reason": "stop there", "dry_run": true }))
        .await;
    let compensate = json!({ "execution_id": id, "action": "undo", "reason": "no money" });
    evaluate.call("control", compensate).await;
    evaluate.call("call_tool", json!({ "tool": "shop.reserve", "reason": "try", "parameters": {} })).await;
}

/// A plan of `steps` steps in sequence; the first fails.
fn long(steps: usize) -> Value {
    let step = |number: usize| {
        let tool = if number == 0 { "shop.charge" } else { "shop.reserve" };
        let mut step = json!({ "id": format!("step_number_{number}"), "tool": tool, "cancellable": "irreversible" });
        if number > 0 {
            step["depends_on"] = json!([format!("step_number_{}", number - 1)]);
        }
        step
    };
    json!({ "name": "a long way", "goal": "Go a long way without stopping, and be brief about it",
        "steps": (0..steps).map(step).collect::<Vec<_>>() })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_brief_of_a_hundred_steps_is_short() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let waiting = execute(&mut client, &long(100)).await;
    let brief = client.call("status", json!({ "execution_id": waiting["execution_id"], "brief": true })).await;
    println!("{} bytes: {brief}", brief.to_string().len());
    assert!(brief.to_string().len() <= BRIEF_BYTES_MAX);
    let story = brief["brief"].as_str().unwrap();
    assert!(story.contains("Failed: step_number_0\n") && story.contains("and 76 more"), "{story}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_steps_are_listed_page_by_page() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
    let mut client = shop.deck.client(ClientEra::Legacy).await;
    let plan = long(1_000);
    let json = client.call("preview", json!({ "plan": plan })).await;
    println!("preview of 1,000 steps: {} bytes", json.to_string().len());
    assert!(json.to_string().len() <= ANSWER_BYTES_MAX, "{}", json.to_string().len());
    let waiting = execute(&mut client, &plan).await;
    let id = &waiting["execution_id"];
    let mut seen = Vec::new();
    let mut pages = 0;
    loop {
        let mut asked = json!({ "execution_id": id, "include_step_details": true });
        if let Some(last) = seen.last() {
            asked["after_step"] = json!(last);
        }
        let page = client.call("status", asked).await;
        pages += 1;
        assert!(page.to_string().len() <= ANSWER_BYTES_MAX, "{}", page.to_string().len());
        let steps = page["steps"].as_array().unwrap();
        seen.extend(steps.iter().map(|step| step["id"].as_str().unwrap().to_owned()));
        if page.get("more").is_none() {
            break;
        }
    }
    println!("1,000 steps on {pages} pages");
    assert_eq!(seen, (0..1_000).map(|number| format!("step_number_{number}")).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_failures_and_long_plans_still_fit_into_an_answer() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let all = json!({ "name": "many",
        "inputs": { "type": "object", "required": ["list"], "properties": { "list": { "type": "array" } } },
        "steps": [ { "id": "each", "tool": "shop.charge", "for_each": "inputs.list", "cancellable": "irreversible" } ] });
    let inputs = json!({ "list": (0..60).collect::<Vec<_>>() });
    let waiting = client.call("execute_plan", json!({ "plan": all, "inputs": inputs, "wait_seconds": 45 })).await;
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    assert!(waiting.to_string().len() <= ANSWER_BYTES_MAX / 2, "{waiting}");
    let id = &waiting["execution_id"];
    let brief = client.call("replan", json!({ "execution_id": id, "reason": "refused" })).await;
    assert!(brief.to_string().len() <= ANSWER_BYTES_MAX, "{brief}");
    for number in 0..20 {
        let tags: Vec<String> = (0..20).map(|tag| format!("{tag}{}", "t".repeat(60))).collect();
        let plan = json!({ "name": format!("{number} {}", "n".repeat(100)), "goal": "g".repeat(2_000), "tags": tags,
            "steps": [ { "id": "a", "tool": "shop.look" } ] });
        let saved = client.call("save_plan", json!({ "plan": plan })).await;
        assert!(saved.get("error").is_none(), "{saved}");
    }
    let mut found = 0;
    let mut asked = json!({ "limit": 20 });
    loop {
        let page = client.call("find_plans", asked.clone()).await;
        assert!(page.to_string().len() <= ANSWER_BYTES_MAX, "{}", page.to_string().len());
        found += page["plans"].as_array().unwrap().len();
        match page.get("cursor") {
            Some(cursor) => asked["cursor"] = cursor.clone(),
            None => break,
        }
    }
    assert_eq!(found, 21, "none is lost between the pages");
}
