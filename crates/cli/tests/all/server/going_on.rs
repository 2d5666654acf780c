//! Decisions that are carried out to the end at every surface: about one item of a fan-out, and after an execution has
//! failed.

use crate::server::agent::Agent;
use crate::server::doors::{ITEMS, ITEMS_ENDING, Key, Served};
use crate::server::sent::{Door, Sent};
use rutter_app::verb::Verb;
use serde_json::{Value, json};
use std::fs;

const RIGHTS: &str = "read,operate,approve,admin";
const REASON: &str = "a good reason";
const ALL_DONE: &str = "completed: a completed [completed, completed], b completed";
const ITEM_SKIPPED: &str = "partial: a completed [completed, skipped], b completed";
const BY_HAND: &str = "completed: a completed by hand [completed, completed], b completed";

/// An execution whose item `a[1]` has failed. What made it fail is mended by now.
fn failed(served: &Served, key: &Key, plan: &str) -> String {
    let mended = served.fixture.data.join("commands/gate/mended");
    let _ = fs::remove_file(&mended);
    let status = if plan == ITEMS_ENDING { "failed" } else { "waiting" };
    let execution = served.execution_over_http(key, plan, status);
    fs::write(mended, "").unwrap();
    execution
}

/// The status of an execution that has ended, of its steps and of their items.
fn ending(served: &Served, key: &Key, execution: &str) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let listed = |values: &Value, of: &dyn Fn(&Value) -> String| {
        values.as_array().into_iter().flatten().map(of).collect::<Vec<String>>().join(", ")
    };
    let ended = served.ended(key, execution);
    let steps = served.get(key, &format!("/api/v1/executions/{execution}/steps"));
    let step = |step: &Value| {
        let items = listed(&step["item_states"], &|item| text(&item["status"]));
        let items = if items.is_empty() { items } else { format!(" [{items}]") };
        let by_hand = if step["by_hand"] == true { " by hand" } else { "" };
        format!("{} {}{by_hand}{items}", text(&step["id"]), text(&step["status"]))
    };
    format!("{}: {}", text(&ended["status"]), listed(&steps["items"], &step))
}

#[test]
fn a_decision_is_carried_out_alike_at_every_surface() {
    let served = Served::new();
    let mut agent = Agent::start(&served.fixture, &[]);
    agent.introduce();
    let key = served.key(RIGHTS);
    for (plan, verb, step, end) in [
        (ITEMS, Verb::Retry, Some("a[1]"), ALL_DONE),
        (ITEMS, Verb::Skip, Some("a[1]"), ITEM_SKIPPED),
        (ITEMS, Verb::Resolve, Some("a[1]"), BY_HAND),
        (ITEMS_ENDING, Verb::Retry, Some("a[1]"), ALL_DONE),
        (ITEMS_ENDING, Verb::Skip, Some("a[1]"), ITEM_SKIPPED),
        (ITEMS_ENDING, Verb::Resolve, Some("a[1]"), BY_HAND),
        (ITEMS_ENDING, Verb::Reopen, Some("a[1]"), ALL_DONE),
        (ITEMS_ENDING, Verb::Reopen, None, ALL_DONE),
        (ITEMS_ENDING, Verb::Retry, None, ALL_DONE),
        (ITEMS_ENDING, Verb::Retry, Some("a"), ALL_DONE),
        (ITEMS_ENDING, Verb::Skip, Some("a"), "partial: a skipped [completed, failed], b completed"),
        (ITEMS_ENDING, Verb::Resolve, Some("a"), BY_HAND),
    ] {
        for door in Door::ALL {
            let execution = failed(&served, &key, plan);
            let (word, reason, with) = (verb.name(), Some(REASON), "");
            let sent = Sent { verb, word, execution: &execution, reason, step, with, key: &key };
            let case = format!("{verb} {step:?} ({plan}) by {door:?}");
            assert_eq!(sent.by(door, &served, &mut agent), None, "{case}");
            assert_eq!(ending(&served, &key, &execution), end, "{case}");
        }
    }
    agent.leave();
}

/// The dashboard has no form for a plan.
#[test]
fn a_failed_execution_goes_on_with_a_new_plan_from_every_surface_that_takes_one() {
    let served = Served::new();
    let mut agent = Agent::start(&served.fixture, &[]);
    agent.introduce();
    let key = served.key(RIGHTS);
    let old = fs::read_to_string(served.fixture.path(ITEMS_ENDING)).unwrap();
    let new = old.replace("'broken'", "'sound'");
    fs::write(served.fixture.path("new.yaml"), &new).unwrap();
    for door in [Door::Http, Door::McpOverHttp, Door::McpOverPipes, Door::CommandLine] {
        let execution = failed(&served, &key, ITEMS_ENDING);
        let mut arguments = json!({ "plan": new, "reason": REASON });
        let applied = match door {
            Door::Http => {
                let path = format!("/api/v1/executions/{execution}/replan");
                let response = served.post(&path, &key.bearer(), "application/json", &arguments.to_string());
                serde_json::from_str::<Value>(&response.body).unwrap()
            }
            Door::McpOverHttp | Door::McpOverPipes => {
                arguments["execution_id"] = json!(execution);
                match door {
                    Door::McpOverHttp => served.tool(&key, "replan", arguments),
                    _ => agent.call("replan", arguments),
                }
            }
            Door::CommandLine | Door::Form => {
                let words = ["exec", "replan", &execution, "--plan", "new.yaml", "--reason", REASON, "--json"];
                let mut ended = served.fixture.json(&words);
                ended["is_applied"] = json!(ended["plan"]["revision"] == 2);
                ended
            }
        };
        assert_eq!(applied["is_applied"], true, "{door:?}: {applied}");
        assert_eq!(ending(&served, &key, &execution), ALL_DONE, "{door:?}");
    }
    agent.leave();
}
