//! S6: twelve removals on six servers, with limits, refusals, a kill at the seventh and a tool that changes meanwhile.

use crate::scenarios::answer::{questions, text};
use crate::scenarios::fixture::{Kind, ScenarioFixture, example};
use rutter_core::time::calendar::read;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Every step with its tool and what distinguishes its call from others of that tool.
const REMOVALS: [(&str, &str); 12] = [
    ("identity.disable_login", ""),
    ("identity.end_sessions", ""),
    ("identity.remove_groups", ""),
    ("git.remove_member", ""),
    ("git.delete_keys", ""),
    ("chat.deactivate", ""),
    ("crm.reassign", ""),
    ("cloud.remove_roles", ""),
    ("cloud.delete_keys", ""),
    ("licences.release", "git"),
    ("licences.release", "chat"),
    ("licences.release", "crm"),
];

fn fixture() -> ScenarioFixture {
    let mut fixture = ScenarioFixture::new();
    let identity = ["disable_login", "enable_login", "end_sessions", "remove_groups", "add_groups", "list_groups"];
    fixture.server("identity", Kind::Stdio, &identity);
    fixture.server("git", Kind::Http, &["remove_member", "add_member", "delete_keys"]);
    fixture.server("chat", Kind::Stdio, &["deactivate", "reactivate"]);
    fixture.server("crm", Kind::Command, &["reassign"]);
    fixture.server("cloud", Kind::Stdio, &["remove_roles", "grant_roles", "list_roles", "delete_keys"]);
    fixture.server("licences", Kind::Stdio, &["release", "assign"]);
    for (look, of, field) in
        [("identity.list_groups", "remove_groups", "groups"), ("cloud.list_roles", "remove_roles", "roles")]
    {
        fixture.tool(look, json!({ "kind": "look", "of": of, "before": { field: ["a"] }, "after": { field: [] } }));
    }
    fixture.tool("identity.remove_groups", json!({ "kind": "once", "gives": { "groups": ["a"] } }));
    fixture.tool("cloud.remove_roles", json!({ "kind": "once", "gives": { "roles": ["a"] } }));
    fixture.extra.insert("cloud".to_owned(), "rate = \"1/s\"".to_owned());
    fixture.faults("git.remove_member", json!(["retry_after:429:5", null]));
    fixture.world["kill_at_effect"] = json!(7);
    fixture
}

#[test]
fn twelve_removals_happen_once_each_despite_interruptions() {
    let mut fixture = fixture();
    fixture.open();
    let plan = example("off-boarding.yaml");
    let run = ["run", plan.to_str().unwrap(), "--json", "--input", "user=leaver", "--input", "successor=keeper"];
    let killed = fixture.rutter(&run);
    assert_eq!(killed.code, None, "{killed:?}");
    let execution = fixture.execution();
    assert!((7..12).contains(&fixture.effects().len()), "{:?}", fixture.effects());

    let mut input = fixture.world["tools"]["licences.release"]["input"].clone();
    input["properties"]["note"] = json!({ "type": "string" });
    fixture.tool("licences.release", json!({ "input": input })).rewrite_world();
    let drifted = fixture.rutter(&["exec", "watch", &execution, "--json"]).ended(3, "waiting");
    let question = questions(&drifted, "drift")[0];
    assert_eq!(question["tool"], "licences.release");
    assert_ne!(question["pinned"], question["found"]);
    let before = fixture.lines("call", "licences.release").len();
    let answer = fixture.rutter(&["tools", "show", "licences.release"]);
    assert!(answer.stdout.contains("note"), "{answer:?}");
    let accept = ["exec", "accept-tool", &execution, "--tool", "licences.release", "--reason", "a new field", "--json"];
    fixture.rutter(&accept).ended(0, "completed");
    assert!(fixture.lines("call", "licences.release").len() > before, "it was not called while the question was open");

    check_once(&fixture);
    check_order(&fixture);
    check_pace(&fixture, &execution);
    fixture.verify(&execution);
}

fn check_once(fixture: &ScenarioFixture) {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for line in fixture.log().iter().filter(|line| line.get("effect").is_some()) {
        let tool = format!("{}.{}", text(&line["server"]), text(&line["effect"]));
        let product = line["arguments"]["product"].as_str().unwrap_or_default().to_owned();
        *counts.entry((tool, product)).or_default() += 1;
    }
    let expected = REMOVALS.map(|(tool, product)| ((tool.to_owned(), product.to_owned()), 1));
    assert_eq!(counts, BTreeMap::from(expected));
}

fn check_order(fixture: &ScenarioFixture) {
    let log = fixture.log();
    let place = |tool: &str, product: &str| {
        let (server, tool) = tool.split_once('.').unwrap();
        let is_it = |line: &&Value| {
            let found = line["arguments"]["product"].as_str().unwrap_or_default();
            line["server"] == server && line["effect"] == tool && found == product
        };
        log.iter().position(|line| is_it(&line)).unwrap()
    };
    for (tool, product) in REMOVALS.iter().skip(1) {
        assert!(place("identity.disable_login", "") < place(tool, product), "{tool} before the login");
    }
    for (first, product) in
        [("git.remove_member", "git"), ("git.delete_keys", "git"), ("chat.deactivate", "chat"), ("crm.reassign", "crm")]
    {
        assert!(place(first, "") < place("licences.release", product), "the licence for {product} too early");
    }
}

/// By the time calls were sent, from the journal: their arrival depends on the load of the machine.
fn check_pace(fixture: &ScenarioFixture, execution: &str) {
    let journal = fixture.rutter(&["journal", "show", execution, "--json"]).stdout;
    let entries: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut last_cloud = None;
    for entry in &entries {
        match text(&entry["kind"]) {
            "attempt_started" if text(&entry["event"]["tool"]).starts_with("cloud.") => {
                let at = read(text(&entry["at"])).unwrap().0;
                if let Some(last) = last_cloud.replace(at) {
                    assert!(at - last > 900, "two calls within {} ms", at - last);
                }
            }
            // Another process continues, which does not know when the last one called.
            "attempt_lost" | "tool_accepted" => last_cloud = None,
            _ => {}
        }
    }

    let of_git = |kind: &str| -> Vec<i64> {
        let is_it = |entry: &&Value| text(&entry["kind"]) == kind && entry["event"]["part"] == "git_member";
        entries.iter().filter(is_it).map(|entry| read(text(&entry["at"])).unwrap().0).collect()
    };
    let (started, failed) = (of_git("attempt_started"), of_git("attempt_failed"));
    assert_eq!((started.len(), failed.len()), (2, 1));
    assert!(started[1] - failed[0] >= 5_000, "it was retried after {} ms", started[1] - failed[0]);
}
