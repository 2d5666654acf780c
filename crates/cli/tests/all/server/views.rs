//! One execution, read at every surface: the same status, the same questions, in the same words.

use crate::server::doors::{ASKING, COMPLETING, DOUBTFUL, FAILING, Key, Served};
use serde_json::{Map, Value, json};

/// Names with another meaning or form at another surface.
const DIFFERENT: [&str; 2] = ["questions", "steps"];

#[test]
fn one_execution_reads_the_same_at_every_surface() {
    let served = Served::new();
    let key = served.key("read,operate,approve");
    let mut fields = Map::new();
    for (plan, status) in [(COMPLETING, "completed"), (ASKING, "waiting"), (FAILING, "waiting"), (DOUBTFUL, "waiting")]
    {
        let execution = served.execution(plan, status);
        let read = Read::of(&served, &key, &execution);
        let jsons = [("MCP", &read.mcp), ("HTTP", &read.http), ("command line", &read.command_line)];
        for (door, json) in jsons {
            assert_eq!(json["status"], status, "{door}: {json}");
            for (other, second) in jsons {
                agree(&format!("{plan}: {door} and {other}"), json, second);
                for (one, two) in questions(json).iter().zip(questions(second)) {
                    agree(&format!("{plan}: a question, {door} and {other}"), one, &two);
                }
            }
        }
        assert!(read.page.contains(status), "{plan}: {}", read.page);
        for question in questions(&read.http) {
            let how = question["person"].as_str().unwrap();
            assert!(text_of(&read.page).contains(how), "the page names the command {how}: {}", read.page);
            let ask = question["ask"].as_str().unwrap();
            assert_eq!(read.http["summary"], read.mcp["summary"]);
            assert!(read.http["summary"].as_str().unwrap().contains(ask), "{ask}: {}", read.http["summary"]);
        }
        let names = |json: &Value| -> Vec<String> {
            json.as_object().map(|fields| fields.keys().cloned().collect()).unwrap_or_default()
        };
        let by_door = jsons.map(|(door, json)| {
            let asked = questions(json).first().map(names).unwrap_or_default();
            (door.to_owned(), json!({ "execution": names(json), "question": asked }))
        });
        fields.insert(plan.trim_end_matches(".yaml").to_owned(), Value::Object(by_door.into_iter().collect()));
    }
    // The fields at each surface; accept an intended difference with the snapshot.
    insta::assert_json_snapshot!("fields_of_an_execution", fields);
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

fn questions(json: &Value) -> Vec<Value> {
    json["questions"].as_array().cloned().unwrap_or_default()
}

/// Fields with the same name must have the same value.
#[track_caller]
fn agree(what: &str, one: &Value, other: &Value) {
    let (one, other) = (one.as_object().unwrap(), other.as_object().unwrap());
    for (name, value) in one.iter().filter(|(name, _)| !DIFFERENT.contains(&name.as_str())) {
        if let Some(second) = other.get(name) {
            assert_eq!(value, second, "{what}: {name}");
        }
    }
}

/// The text of a page.
fn text_of(page: &str) -> String {
    page.replace("&#39;", "'").replace("&#38;", "&").replace("&quot;", "\"").replace("&#34;", "\"")
}
