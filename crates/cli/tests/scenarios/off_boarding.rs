//! S6: twelve removals on six servers, with limits, refusals, a kill at the seventh and a tool that changes meanwhile.

use crate::answer::{questions, text};
use crate::stage::{Kind, Stage, example};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Every step with its tool and what tells its call from others of that tool.
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

fn stage() -> Stage {
    let mut stage = Stage::new();
    let identity =
        ["disable_login", "enable_login", "end_sessions", "remove_groups", "add_groups", "list_groups"];
    stage.server("identity", Kind::Stdio, &identity);
    stage.server("git", Kind::Http, &["remove_member", "add_member", "delete_keys"]);
    stage.server("chat", Kind::Stdio, &["deactivate", "reactivate"]);
    stage.server("crm", Kind::Command, &["reassign"]);
    stage.server("cloud", Kind::Stdio, &["remove_roles", "grant_roles", "list_roles", "delete_keys"]);
    stage.server("licences", Kind::Stdio, &["release", "assign"]);
    for (look, of, field) in
        [("identity.list_groups", "remove_groups", "groups"), ("cloud.list_roles", "remove_roles", "roles")]
    {
        stage.tool(
            look,
            json!({ "kind": "look", "of": of, "before": { field: ["a"] }, "after": { field: [] } }),
        );
    }
    stage.tool("identity.remove_groups", json!({ "kind": "once", "gives": { "groups": ["a"] } }));
    stage.tool("cloud.remove_roles", json!({ "kind": "once", "gives": { "roles": ["a"] } }));
    stage.extra.insert("cloud".to_owned(), "rate = \"1/s\"".to_owned());
    stage.faults("git.remove_member", json!(["retry_after:429:5", null]));
    stage.world["kill_at_effect"] = json!(7);
    stage
}

#[test]
fn twelve_removals_happen_once_each_whatever_comes_between() {
    let mut stage = stage();
    stage.open();
    let plan = example("off-boarding.yaml");
    let run =
        ["run", plan.to_str().unwrap(), "--json", "--input", "user=leaver", "--input", "successor=keeper"];
    let killed = stage.rutter(&run);
    assert_eq!(killed.code, None, "{killed:?}");
    let execution = stage.execution();
    assert!((7..12).contains(&stage.effects().len()), "{:?}", stage.effects());

    let mut input = stage.world["tools"]["licences.release"]["input"].clone();
    input["properties"]["note"] = json!({ "type": "string" });
    stage.tool("licences.release", json!({ "input": input })).rewrite_world();
    let drifted = stage.rutter(&["exec", "watch", &execution, "--json"]).ended(3, "waiting");
    let question = questions(&drifted, "drift")[0];
    assert_eq!(question["tool"], "licences.release");
    assert_ne!(question["pinned"], question["found"]);
    let before = stage.lines("call", "licences.release").len();
    let shown = stage.rutter(&["tools", "show", "licences.release"]);
    assert!(shown.stdout.contains("note"), "{shown:?}");
    let accept = [
        "exec",
        "accept-tool",
        &execution,
        "--tool",
        "licences.release",
        "--reason",
        "a new field",
        "--json",
    ];
    stage.rutter(&accept).ended(0, "completed");
    assert!(
        stage.lines("call", "licences.release").len() > before,
        "it was not called while it was in question"
    );

    check_once(&stage);
    check_order(&stage);
    check_pace(&stage, &execution);
    stage.verify(&execution);
}

fn check_once(stage: &Stage) {
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    for line in stage.log().iter().filter(|line| line.get("effect").is_some()) {
        let tool = format!("{}.{}", text(&line["server"]), text(&line["effect"]));
        let product = line["arguments"]["product"].as_str().unwrap_or_default().to_owned();
        *counts.entry((tool, product)).or_default() += 1;
    }
    let expected = REMOVALS.map(|(tool, product)| ((tool.to_owned(), product.to_owned()), 1));
    assert_eq!(counts, BTreeMap::from(expected));
}

fn check_order(stage: &Stage) {
    let log = stage.log();
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
    for (first, product) in [
        ("git.remove_member", "git"),
        ("git.delete_keys", "git"),
        ("chat.deactivate", "chat"),
        ("crm.reassign", "crm"),
    ] {
        assert!(place(first, "") < place("licences.release", product), "the licence for {product} too early");
    }
}

/// By when calls were sent, as the journal has it: when they arrive depends on how busy the machine is.
fn check_pace(stage: &Stage, execution: &str) {
    let journal = stage.rutter(&["journal", "show", execution, "--json"]).stdout;
    let entries: Vec<Value> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut last_cloud = None;
    for entry in &entries {
        match text(&entry["kind"]) {
            "attempt_started" if text(&entry["event"]["attempt_started"]["tool"]).starts_with("cloud.") => {
                let at = entry["at"].as_i64().unwrap();
                if let Some(last) = last_cloud.replace(at) {
                    assert!(at - last > 900, "two calls within {} ms", at - last);
                }
            }
            // Another process goes on, which does not know when the last one called.
            "attempt_lost" | "tool_accepted" => last_cloud = None,
            _ => {}
        }
    }

    let of_git = |kind: &str| -> Vec<i64> {
        let is_it =
            |entry: &&Value| text(&entry["kind"]) == kind && entry["event"][kind]["part"] == "git_member";
        entries.iter().filter(is_it).map(|entry| entry["at"].as_i64().unwrap()).collect()
    };
    let (started, failed) = (of_git("attempt_started"), of_git("attempt_failed"));
    assert_eq!((started.len(), failed.len()), (2, 1));
    assert!(started[1] - failed[0] >= 5_000, "it came back after {} ms", started[1] - failed[0]);
}
