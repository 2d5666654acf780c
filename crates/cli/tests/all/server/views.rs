//! One execution, read at every surface: the same status, the same questions, in the same words.

use crate::server::doors::{ASKING, COMPLETING, DOUBTFUL, ENDING, FAILING, ITEMS_ENDING, Key, Served};
use crate::server::fixture::output_text;
use serde_json::{Map, Value, json};

/// The description of the HTTP API, generated from the views.
const OPENAPI: &str = include_str!("../../../../../docs/openapi.json");
/// Fields of the MCP protocol: where to read more, and how much more there is.
const PROTOCOL: [&str; 2] = ["resource_uri", "more"];

#[test]
fn one_execution_reads_the_same_at_every_surface() {
    let served = Served::new();
    let key = served.key("read,operate,approve");
    let known = fields_of("Execution");
    let mut fields = Map::new();
    for (plan, status) in [
        (COMPLETING, "completed"),
        (ASKING, "waiting"),
        (FAILING, "waiting"),
        (DOUBTFUL, "waiting"),
        (ENDING, "failed"),
    ] {
        let execution = served.execution(plan, status);
        let read = Read::of(&served, &key, &execution);
        let jsons = [("MCP", &read.mcp), ("HTTP", &read.http), ("command line", &read.command_line)];
        for (door, json) in jsons {
            assert_eq!(json["status"], status, "{door}: {json}");
            assert!(json["url"].is_string(), "{door} has the page: {json}");
            for name in names(json) {
                let is_known = known.contains(&name) || (door == "MCP" && PROTOCOL.contains(&name.as_str()));
                assert!(is_known, "{door} has {name:?}, which is not a field of ExecutionView");
            }
            for (other, second) in jsons {
                agree(&format!("{plan}: {door} and {other}"), json, second);
            }
        }
        assert!(!rows(&read.mcp, "steps").is_empty() && !rows(&read.command_line, "steps").is_empty());
        let page = text_of(&read.page);
        let shown = [&read.http["status"], &read.http["plan"]["name"], &read.http["execution_id"]];
        let steps = rows(&read.command_line, "steps");
        for value in shown.into_iter().chain(steps.iter().map(|step| &step["id"])) {
            assert!(page.contains(value.as_str().unwrap()), "{plan}: the page shows {value}: {page}");
        }
        for question in rows(&read.http, "questions") {
            let how = question["person"].as_str().unwrap();
            assert!(page.contains(how), "the page names the command {how}: {page}");
            let ask = question["ask"].as_str().unwrap();
            assert!(read.http["summary"].as_str().unwrap().contains(ask), "{ask}: {}", read.http["summary"]);
        }
        let by_door = jsons.map(|(door, json)| {
            let asked = rows(json, "questions").first().map(names).unwrap_or_default();
            (door.to_owned(), json!({ "execution": names(json), "question": asked }))
        });
        fields.insert(plan.trim_end_matches(".yaml").to_owned(), Value::Object(by_door.into_iter().collect()));
    }
    // The fields at each surface; accept an intended difference with the snapshot.
    insta::assert_json_snapshot!("fields_of_an_execution", fields);
}

#[test]
fn a_failed_execution_says_why_at_every_surface() {
    let served = Served::new();
    let key = served.key("read");
    let execution = served.execution(ITEMS_ENDING, "failed");
    let read = Read::of(&served, &key, &execution);
    let cause = read.http["cause"].as_str().unwrap();
    for field in ["cause", "failed_steps", "unmet"] {
        assert_eq!(read.mcp[field], read.http[field], "{field}");
        assert_eq!(read.command_line[field], read.http[field], "{field}");
    }
    assert_eq!(read.http["failed_steps"][0]["step"], "a[1]", "{}", read.http);
    let unmet: Vec<(&Value, &Value)> =
        read.http["unmet"].as_array().unwrap().iter().map(|unmet| (&unmet["step"], &unmet["kind"])).collect();
    assert_eq!(unmet, [(&json!("a[1]"), &json!("failed")), (&json!("b"), &json!("cancelled"))]);

    let text = output_text(&served.fixture.rutter(&["exec", "show", &execution]));
    // The cause is the failure, which is in the row of its step.
    let why = "tool_error: the program ended with exit code 3";
    let unmet = format!("unmet: a[1] (failed: {}", cause.split('(').nth(1).unwrap());
    for part in [why, unmet.as_str(), "b  cancelled"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let summary = read.http["summary"].as_str().unwrap();
    assert!(summary.contains(cause), "{cause}: {summary}");
    let row = served.fixture.json(&["exec", "list", "--json"]);
    assert_eq!((&row["cause"], &row["summary"]), (&json!(cause), &json!(summary)), "{row}");
    let rows = output_text(&served.fixture.rutter(&["exec", "list"]));
    assert!(rows.contains(cause), "{rows}");
}

#[test]
fn an_entry_reads_the_same_at_every_surface() {
    let served = Served::new();
    let key = served.key("read,operate,approve");
    let execution = served.execution(ASKING, "waiting");
    let known = fields_of("Entry");
    let wanted = json!({ "execution_id": execution, "include_events": true });
    let mcp = rows(&served.tool(&key, "query_ledger", wanted), "events");
    let http = rows(&served.get(&key, &format!("/api/v1/executions/{execution}/journal")), "items");
    let export = served.page(&key, &format!("/journal/export?format=ndjson&execution={execution}"));
    // The other lines are the sizes of chunks.
    let export = export.lines().filter(|line| line.starts_with('{'));
    let export: Vec<Value> = export.map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut asked = 0;
    for (door, entries) in [("MCP", &mcp), ("HTTP", &http), ("the dashboard's export", &export)] {
        assert_eq!(entries.len(), http.len(), "{door}: {entries:?}");
        for entry in entries {
            for name in names(entry) {
                assert!(known.contains(&name), "{door} has {name:?}, which is not a field of EntryView");
            }
            let same = http.iter().find(|other| other["seq"] == entry["seq"]).unwrap();
            agree(&format!("{door} and HTTP"), entry, same);
            if entry["kind"] == "approval_requested" {
                assert!(entry["event"]["expires_at"].as_str().is_some_and(|at| at.ends_with('Z')), "{door}: {entry}");
                asked += 1;
            }
        }
    }
    assert_eq!(asked, 3);
}

struct Read {
    mcp: Value,
    http: Value,
    command_line: Value,
    page: String,
}

impl Read {
    fn of(served: &Served, key: &Key, execution: &str) -> Read {
        let wanted = json!({ "execution_id": execution, "wait_seconds": 0, "include_step_details": true });
        Read {
            mcp: served.tool(key, "status", wanted),
            http: served.get(key, &format!("/api/v1/executions/{execution}")),
            command_line: served.fixture.json(&["exec", "show", execution, "--json"]),
            page: served.page(key, &format!("/executions/{execution}")),
        }
    }
}

/// The names of a view's fields, as the description of the HTTP API lists them.
fn fields_of(schema: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let fields = names(&document["components"]["schemas"][schema]["properties"]);
    assert!(!fields.is_empty(), "{schema} is in docs/openapi.json");
    fields
}

fn names(json: &Value) -> Vec<String> {
    json.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
}

fn rows(json: &Value, name: &str) -> Vec<Value> {
    json[name].as_array().cloned().unwrap_or_default()
}

/// Fields with the same name must have the same value; of objects and lists of objects, those that both have.
#[track_caller]
fn agree(what: &str, one: &Value, other: &Value) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            // A person reads the command that answers, an agent where people look.
            for (name, value) in one.iter().filter(|(name, _)| *name != "person") {
                if let Some(second) = other.get(name) {
                    agree(&format!("{what}: {name}"), value, second);
                }
            }
        }
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len(), "{what}");
            one.iter().zip(other).for_each(|(one, other)| agree(what, one, other));
        }
        _ => assert_eq!(one, other, "{what}"),
    }
}

/// The text of a page.
fn text_of(page: &str) -> String {
    page.replace("&#39;", "'").replace("&#38;", "&").replace("&quot;", "\"").replace("&#34;", "\"")
}
