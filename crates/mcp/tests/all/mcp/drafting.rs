//! Plans drafted from selected tools: where parameters come from, and that the plan is valid whatever is missing.

use proptest::prelude::*;
use rutter_app::draft::{DraftRequest, draft, refuse};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, TenantId, ToolName};
use rutter_core::plan::Driver;
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::port::query::{EntryFilter, Pagination};
use rutter_core::tool::{Safety, SafetySource, Tool, ToolCatalog};
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A shop that these tests do not call.
const SHOP: &str = r##"
[http.shop]
base = "http://127.0.0.1:9"
allow = ["127.0.0.1"]

[http.shop.tools.reserve]
method = "POST"
path = "/reserve"
input = '{"type":"object","required":["sku","count","mode"],"properties":{"sku":{"type":"string","description":"what is sold"},"count":{"type":"integer","minimum":1},"mode":{"const":"hard"},"note":{"type":"string"}}}'
output = '{"type":"object","properties":{"reservation_id":{"type":"string"},"price":{"type":"number"},"maybe":{"type":["string","null"]}}}'

[http.shop.tools.charge]
method = "POST"
path = "/charge"
key_parameter = "idempotency_key"
input = '{"type":"object","required":["reservationId","amount","idempotency_key","maybe"],"properties":{"reservationId":{"type":"string"},"amount":{"type":"number"},"idempotency_key":{"type":"string"},"maybe":{"type":"string"}}}'
"##;

fn from<'a>(answer: &'a Value, step: &str, parameter: &str) -> &'a str {
    let filled = answer["filled"].as_array().unwrap();
    let found = filled.iter().find(|filled| filled["step"] == step && filled["parameter"] == parameter);
    found.map_or("", |filled| filled["from"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_come_from_context_results_key_and_schema() {
    let deck = ServerFixture::with(SHOP).await;
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let mut client = deck.client(era).await;
        let context = json!({ "SKU": "tea", "count": "two", "shop.count": 2, "order": { "amount": 9.5 }, "unused": 1 });
        let arguments = json!({ "request": "sell some tea", "selected_tools": ["shop.reserve", "shop.charge"],
            "context": context });
        let answer = client.call("create_execution_plan", arguments).await;
        assert_eq!(answer["revision"], 1, "{answer}");
        let steps = &answer["plan"]["steps"];
        assert_eq!(steps[0]["parameters"], json!({ "sku": "tea", "count": 2, "mode": "hard" }));
        assert_eq!(
            steps[1]["parameters"],
            json!({ "reservationId": "{{ steps.reserve.result.reservation_id }}", "amount": 9.5,
                "idempotency_key": "{{ key }}", "maybe": "{{ inputs.maybe }}" })
        );
        assert_eq!(steps[1]["depends_on"], json!(["reserve"]));
        assert_eq!(from(&answer, "reserve", "sku"), "context.SKU");
        assert_eq!(from(&answer, "reserve", "count"), "context.shop.count");
        assert_eq!(from(&answer, "reserve", "mode"), "schema");
        assert_eq!(from(&answer, "charge", "reservationId"), "steps.reserve.result.reservation_id");
        assert_eq!(from(&answer, "charge", "amount"), "context.order.amount");
        assert_eq!(from(&answer, "charge", "idempotency_key"), "key");
        // A result that may be null does not always match, so it becomes an input.
        let missing = json!([{ "step": "charge", "parameter": "maybe", "input": "maybe", "type": "string" }]);
        assert_eq!(answer["missing"], missing);
        let metadata = &answer["plan"]["metadata"];
        assert_eq!((&metadata["plan_type"], &metadata["num_steps"]), (&json!("sequential"), &json!(2)));
        assert_eq!(metadata["context_keys"], json!(["SKU", "count", "shop.count", "order", "unused"]));
        let next = answer["next"].as_str().unwrap();
        assert!(next.contains("execute_plan") && next.contains("\"maybe\":\"<string>\""), "{next}");
        assert!(next.contains("no step declares a compensation"), "{next}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_parameters_become_inputs_and_the_plan_is_executed_with_them() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let tools = ["memory.store", "memory.store", "memory.search"];
    let arguments = json!({ "request": "remember two things", "selected_tools": tools,
        "context": { "store.text": "anchors hold", "query": "anchors" } });
    let answer = client.call("create_execution_plan", arguments).await;
    let ids: Vec<&Value> = answer["plan"]["steps"].as_array().unwrap().iter().map(|step| &step["id"]).collect();
    assert_eq!(ids, ["store", "store_2", "search"]);
    // The key names the tool, so it applies to both of its steps.
    assert_eq!(answer["missing"], json!([]), "{answer}");
    let arguments = json!({ "request": "remember two things", "selected_tools": tools,
        "context": { "store_2.text": "anchors hold", "query": "anchors" } });
    let answer = client.call("create_execution_plan", arguments).await;
    assert_eq!(answer["missing"][0]["step"], "store", "{answer}");
    assert_eq!(answer["missing"].as_array().unwrap().len(), 1, "{answer}");
    let refused = client.call("execute_plan", json!({ "plan_id": answer["plan_id"] })).await;
    assert!(refused.get("error").is_some(), "inputs are needed: {refused}");
    let inputs = json!({ "text": "sails pull" });
    let done = client.call("execute_plan", json!({ "plan_id": answer["plan_id"], "inputs": inputs })).await;
    assert_eq!(done["status"], "completed", "{done}");
    let stored = memories(&deck, &mut client).await;
    assert!(stored.contains("anchors hold") && stored.contains("sails pull"), "{stored}");
}

/// The texts in memory, as a step that lists them sees them.
async fn memories(deck: &ServerFixture, client: &mut McpClient) -> String {
    let steps = json!([{ "id": "look", "tool": "memory.recent", "parameters": {} }]);
    let plan = json!({ "name": "look", "goal": "look", "steps": steps });
    let done = client.call("execute_plan", json!({ "plan": plan })).await;
    let identity = ExecutionIdentity {
        tenant: TenantId::new("default"),
        execution: ExecutionId::new(done["execution_id"].as_str().unwrap()),
    };
    let filter = EntryFilter {
        execution: Some(identity.execution),
        kinds: vec!["attempt_succeeded".to_owned()],
        ..EntryFilter::default()
    };
    let entries = deck.app.query.entries(&identity.tenant, filter, Pagination::first(10)).await.unwrap();
    format!("{:?}", entries.items[0].record.event)
}

#[tokio::test(flavor = "multi_thread")]
async fn text_from_the_context_is_never_read_as_an_expression_or_a_secret() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let trap = "{{ inputs.other }} and {% more %}";
    let arguments = json!({ "request": "keep it", "selected_tools": ["memory.store"],
        "context": { "text": trap, "tags": [{ "secret": "token" }] } });
    let answer = client.call("create_execution_plan", arguments).await;
    let parameters = &answer["plan"]["steps"][0]["parameters"];
    assert_eq!(*parameters, json!({ "text": "{{ inputs.text }}" }), "{answer}");
    let done = client.call("execute_plan", json!({ "plan_id": answer["plan_id"], "inputs": { "text": trap } })).await;
    assert_eq!(done["status"], "completed", "{done}");
    let stored = memories(&deck, &mut client).await;
    assert!(stored.contains("{{ inputs.other }} and {% more %}"), "{stored}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_tools_are_reported_all_at_once_and_nothing_is_saved() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let tools = json!(["memory.stor", "memory.search", "recent", "nowhere.nothing"]);
    let refused = client.call("create_execution_plan", json!({ "request": "x", "selected_tools": tools })).await;
    assert_eq!(refused["error"]["code"], "server.arguments", "{refused}");
    let unknown = refused["error"]["details"]["unknown"].as_array().unwrap();
    let names: Vec<&Value> = unknown.iter().map(|unknown| &unknown["tool"]).collect();
    assert_eq!(names, ["memory.stor", "recent", "nowhere.nothing"]);
    assert_eq!(unknown[0]["suggestions"][0], "memory.store", "{refused}");
    assert_eq!(unknown[1]["suggestions"][0], "memory.recent", "{refused}");
    for arguments in [
        json!({ "request": "x", "selected_tools": [] }),
        json!({ "request": " ", "selected_tools": ["memory.recent"] }),
        json!({ "request": "x", "selected_tools": "memory.recent" }),
        json!({ "request": "x", "selected_tools": ["memory.recent"], "mode": "fast" }),
    ] {
        let refused = client.call("create_execution_plan", arguments).await;
        assert_eq!(refused["error"]["code"], "server.arguments", "{refused}");
    }
    let totals = deck.app.query.totals(&TenantId::new("default")).await.unwrap();
    assert_eq!(totals.plans, 0, "nothing was saved");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_makes_one_plan_and_save_false_makes_none() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let mut arguments =
        json!({ "request": "look", "selected_tools": ["memory.recent"], "name": "mine", "save": false });
    let json = client.call("create_execution_plan", arguments.clone()).await;
    assert_eq!(json["plan"]["name"], "mine", "{json}");
    assert!(json.get("plan_id").is_none(), "{json}");
    arguments["save"] = json!(true);
    arguments["request_id"] = json!("once");
    let first = client.call("create_execution_plan", arguments.clone()).await;
    let again = client.call("create_execution_plan", arguments).await;
    assert_eq!((&first["plan_id"], &first["revision"]), (&again["plan_id"], &again["revision"]));
    assert_eq!(deck.app.query.totals(&TenantId::new("default")).await.unwrap().plans, 1);
}

fn tool(name: &str, input: Value, output: Option<Value>, key: bool) -> Tool {
    Tool {
        name: ToolName::new(name),
        description: String::new(),
        input: Arc::new(input),
        output: output.map(Arc::new),
        safety: Safety::Once,
        safety_source: SafetySource::Unknown,
        key_parameter: key.then(|| "key".to_owned()),
        sends_key: false,
        grace: None,
        key_window: None,
        attempts: Default::default(),
        definition: Hash::of_fields("test", &[name.as_bytes()]),
    }
}

/// Schemas as tools have them, some of them unusual.
fn property() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!({ "type": "string" }),
        json!({ "type": "string", "minLength": 3, "pattern": "^[a-z]+$" }),
        json!({ "type": "integer", "minimum": 1, "default": 0 }),
        json!({ "type": "number", "default": 2.5, "description": "how\nmuch {{ x }}" }),
        json!({ "type": ["string", "null"] }),
        json!({ "enum": ["only"] }),
        json!({ "enum": ["one", "two"] }),
        json!({ "const": "{{ steps }}" }),
        json!({ "type": "array", "items": { "type": "integer" } }),
        json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } }),
        json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }),
        json!({ "$ref": "#/$defs/shared" }),
        json!(true),
        json!({}),
    ])
}

fn object() -> impl Strategy<Value = Value> {
    let names = ["id", "name", "key", "Order-Id", "order_id", "9", "ünder", "text"];
    let field = (prop::sample::select(names.to_vec()), property(), any::<bool>());
    prop::collection::vec(field, 0..6).prop_map(|fields| {
        let required: Vec<&str> = fields.iter().filter(|(_, _, required)| *required).map(|(name, ..)| *name).collect();
        let properties: serde_json::Map<String, Value> =
            fields.iter().map(|(name, schema, _)| ((*name).to_owned(), schema.clone())).collect();
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            "$defs": { "shared": { "type": "string", "maxLength": 5 } } })
    })
}

fn value() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!("abc"),
        json!("only"),
        json!(4),
        json!(1.5),
        json!(null),
        json!([1]),
        json!("{{ steps.x }}"),
        json!({ "a": "x", "id": "deep" }),
        json!({ "secret": "token" }),
        json!({ "id": 7, "text": "inner" }),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_draft_is_a_plan_without_mistakes(
        tools in prop::collection::vec((object(), prop::option::of(object()), any::<bool>()), 1..5),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..7),
        context in prop::collection::btree_map("(id|name|text|order_id|a\\.t0\\.id|t1\\.text|a|t0)", value(), 0..5),
    ) {
        let tools = tools.into_iter().enumerate();
        let tools: Vec<Tool> =
            tools.map(|(number, (input, output, key))| tool(&format!("a.t{number}"), input, output, key)).collect();
        let catalog = ToolCatalog { tools: tools.iter().map(|tool| (tool.name.clone(), Arc::new(tool.clone()))).collect(), ..ToolCatalog::default() };
        let names: Vec<String> = order.iter().map(|at| tools[at.index(tools.len())].name.to_string()).collect();
        let context = context.into_iter().collect();
        let wanted = DraftRequest { request: "do it", name: None, tools: &names, context: &context };
        let drafted = draft(&wanted, &catalog);
        let source = drafted.plan.to_string();
        let checked = read_and_check(source.as_bytes(), DocumentFormat::Json, &catalog, Driver::Server, None);
        prop_assert!(checked.plan.is_some(), "{:#?}\n{:#}", checked.diagnostics, drafted.plan);
        prop_assert_eq!(drafted.plan["steps"].as_array().unwrap().len(), names.len());
    }
}

/// One wait for the server that was asked for; others would be asked in vain.
#[tokio::test(flavor = "multi_thread")]
async fn a_draft_waits_once_for_a_server_that_was_never_reached() {
    let hanging = "[servers.never]\ncommand = 'sleep'\nargs = ['600']\n";
    let deck = ServerFixture::with(hanging).await;
    let mut client = deck.client(ClientEra::Modern).await;
    let began = std::time::Instant::now();
    let arguments = json!({ "request": "do it", "selected_tools": ["never.effect"] });
    let answer = client.call("create_execution_plan", arguments).await;
    assert_eq!(answer["error"]["code"], "tool.unreachable", "{answer}");
    assert!(began.elapsed() < std::time::Duration::from_secs(8), "{:?}", began.elapsed());
}

#[test]
fn a_tool_that_a_server_did_not_have_when_it_was_last_reached_is_called_so() {
    let known = ["down.effect", "other.efect"].map(|name| tool(name, json!({ "type": "object" }), None, false));
    let tools = known.into_iter().map(|tool| (tool.name.clone(), Arc::new(tool))).collect();
    let mut catalog = ToolCatalog { tools, ..ToolCatalog::default() };
    catalog.unreachable =
        [("down".to_owned(), "it died".to_owned()), ("never".to_owned(), "it hangs".to_owned())].into();
    let (tools, context) = (["down.efect".to_owned(), "never.efect".to_owned()], Map::new());
    let wanted = DraftRequest { request: "do it", name: None, tools: &tools, context: &context };
    let refused = refuse(&wanted, &catalog, &|_| vec![ToolName::new("other.efect")]).unwrap_err();
    assert_eq!((&*refused.code, refused.retryable), ("tool.unreachable", true));
    let message = "the servers of down.efect, never.efect cannot be reached, and had no down.efect when they last listed \
                   their tools; nothing was saved";
    assert_eq!(refused.message, message);
    let unknown = &refused.details.unwrap()["unknown"];
    assert_eq!(unknown[0], json!({ "tool": "down.efect", "suggestions": ["down.effect"] }));
    assert!(unknown[1]["suggestions"].as_array().unwrap().contains(&json!("other.efect")), "{unknown}");
}
