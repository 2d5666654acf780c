//! S4: a red smoke test takes the migration back; an approval holds for the call that was seen and no other.

use crate::answer::{questions, steps, text};
use crate::stage::{Kind, Stage, example};
use serde_json::json;
use std::fs;

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.server(
        "db",
        Kind::Stdio,
        &["snapshot", "delete_snapshot", "migrate", "revert", "drop_column", "describe"],
    );
    stage.server("deploy", Kind::Http, &["canary", "promote"]);
    stage.server("smoke", Kind::Stdio, &["check"]);
    stage.tool("deploy.canary", json!({ "gives": { "previous": "v1", "url": "http://canary.example.com" } }));
    stage.tool("deploy.promote", json!({ "gives": { "previous": "v1" } }));
    stage.tool("smoke.check", json!({ "gives": { "passed": 12, "failed": 0 } }));
    stage
}

#[test]
fn a_red_smoke_test_takes_the_migration_back_and_leaves_the_column() {
    let mut stage = stage();
    stage.faults("smoke.check", json!(["fail"])).open();
    let plan = example("database-migration.yaml");
    let run = stage.rutter(&["run", plan.to_str().unwrap(), "--input", "version=v2", "--json"]);
    let ended = run.ended(1, "compensated");
    let there = ["db.snapshot", "db.migrate", "deploy.canary"];
    let back = ["deploy.promote", "db.revert", "db.delete_snapshot"];
    assert_eq!(stage.effects(), [there, back].concat());
    assert_eq!(stage.lines("call", "db.drop_column").len(), 0, "the column is intact");
    assert_eq!(stage.lines("effect", "deploy.promote")[0]["arguments"]["version"], "v1");
    let undone = ["snapshot=compensated", "migrate=compensated", "canary=compensated", "smoke=failed"];
    assert_eq!(steps(&ended)[..4], undone);
    stage.verify(&run.execution());
}

#[test]
fn a_call_that_changed_after_it_was_approved_is_asked_about_again() {
    let mut stage = stage();
    stage.open();
    let plan = fs::read_to_string(example("database-migration.yaml")).unwrap();
    stage.write("plan.yaml", &plan);
    let run = stage.rutter(&["run", "plan.yaml", "--input", "version=v2", "--json"]);
    let asked = run.ended(3, "waiting");
    let execution = run.execution();
    let seen = text(&questions(&asked, "approval")[0]["call"]).to_owned();
    // Approved while it is paused: the approval is there, the call is not made yet.
    stage.rutter(&["exec", "pause", &execution, "--json"]).ended(3, "paused");
    stage.rutter(&["exec", "approve", &execution, "--call", &seen, "--json"]).ended(3, "paused");

    stage.write("other.yaml", &plan.replace("column: email_legacy", "column: email"));
    stage.rutter(&["exec", "replan", &execution, "--plan", "other.yaml", "--json"]).ended(3, "paused");
    let resumed = stage.rutter(&["exec", "resume", &execution, "--json"]).ended(3, "waiting");
    assert_eq!(stage.lines("call", "db.drop_column").len(), 0, "the approval was for another column");
    let question = questions(&resumed, "approval")[0];
    assert_eq!(question["parameters"]["column"], "email");
    let stale = stage.rutter(&["exec", "approve", &execution, "--step", "drop", "--call", &seen, "--json"]);
    assert_eq!(stale.refused(), "execution.other_call");
    assert_eq!(stage.lines("call", "db.drop_column").len(), 0);

    let call = text(&question["call"]);
    stage
        .rutter(&["exec", "approve", &execution, "--step", "drop", "--call", call, "--json"])
        .ended(0, "completed");
    let dropped = stage.lines("effect", "db.drop_column");
    assert_eq!(dropped.len(), 1);
    assert_eq!(dropped[0]["arguments"]["column"], "email");
    for tool in ["db.snapshot", "db.migrate", "deploy.canary"] {
        assert_eq!(stage.lines("call", tool).len(), 1, "{tool} was done before and stays done");
    }
    stage.verify(&execution);
}
