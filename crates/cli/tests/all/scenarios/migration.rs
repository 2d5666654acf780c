//! S4: a failed smoke test undoes the migration; an approval is valid for the reviewed call only.

use crate::scenarios::answer::{questions, steps, text};
use crate::scenarios::fixture::{Kind, ScenarioFixture, example};
use serde_json::json;
use std::fs;

fn fixture() -> ScenarioFixture {
    let mut fixture = ScenarioFixture::new();
    fixture.server("db", Kind::Stdio, &["snapshot", "delete_snapshot", "migrate", "revert", "drop_column", "describe"]);
    fixture.server("deploy", Kind::Http, &["canary", "promote"]);
    fixture.server("smoke", Kind::Stdio, &["check"]);
    fixture.tool("deploy.canary", json!({ "gives": { "previous": "v1", "url": "http://canary.example.com" } }));
    fixture.tool("deploy.promote", json!({ "gives": { "previous": "v1" } }));
    fixture.tool("smoke.check", json!({ "gives": { "passed": 12, "failed": 0 } }));
    fixture
}

#[test]
fn a_failed_smoke_test_undoes_the_migration_and_leaves_the_column() {
    let mut fixture = fixture();
    fixture.faults("smoke.check", json!(["fail"])).open();
    let plan = example("database-migration.yaml");
    let run = fixture.rutter(&["run", plan.to_str().unwrap(), "--input", "version=v2", "--json"]);
    let ended = run.ended(1, "compensated");
    let there = ["db.snapshot", "db.migrate", "deploy.canary"];
    let back = ["deploy.promote", "db.revert", "db.delete_snapshot"];
    assert_eq!(fixture.effects(), [there, back].concat());
    assert_eq!(fixture.lines("call", "db.drop_column").len(), 0, "the column is intact");
    assert_eq!(fixture.lines("effect", "deploy.promote")[0]["arguments"]["version"], "v1");
    let undone = ["snapshot=compensated", "migrate=compensated", "canary=compensated", "smoke=failed"];
    assert_eq!(steps(&ended)[..4], undone);
    fixture.verify(&run.execution());
}

#[test]
fn a_call_that_changed_after_its_approval_needs_another_one() {
    let mut fixture = fixture();
    fixture.open();
    let plan = fs::read_to_string(example("database-migration.yaml")).unwrap();
    fixture.write("plan.yaml", &plan);
    let run = fixture.rutter(&["run", "plan.yaml", "--input", "version=v2", "--json"]);
    let asked = run.ended(3, "waiting");
    let execution = run.execution();
    let seen = text(&questions(&asked, "approval")[0]["call"]).to_owned();
    // Approved while it is paused: the approval exists, the call is not made yet.
    fixture.rutter(&["exec", "pause", &execution, "--json"]).ended(3, "paused");
    fixture
        .rutter(&["exec", "approve", &execution, "--call", &seen, "--reason", "copied", "--json"])
        .ended(3, "paused");

    fixture.write("other.yaml", &plan.replace("column: email_legacy", "column: email"));
    fixture
        .rutter(&["exec", "replan", &execution, "--plan", "other.yaml", "--reason", "a better plan", "--json"])
        .ended(3, "paused");
    let resumed = fixture.rutter(&["exec", "resume", &execution, "--json"]).ended(3, "waiting");
    assert_eq!(fixture.lines("call", "db.drop_column").len(), 0, "the approval was for another column");
    let question = questions(&resumed, "approval")[0];
    assert_eq!(question["parameters"]["column"], "email");
    let stale = fixture
        .rutter(&["exec", "approve", &execution, "--step", "drop", "--call", &seen, "--reason", "copied", "--json"]);
    assert_eq!(stale.refused(), "execution.other_call");
    assert_eq!(fixture.lines("call", "db.drop_column").len(), 0);

    let call = text(&question["call"]);
    fixture
        .rutter(&["exec", "approve", &execution, "--step", "drop", "--call", call, "--reason", "copied", "--json"])
        .ended(0, "completed");
    let dropped = fixture.lines("effect", "db.drop_column");
    assert_eq!(dropped.len(), 1);
    assert_eq!(dropped[0]["arguments"]["column"], "email");
    for tool in ["db.snapshot", "db.migrate", "deploy.canary"] {
        assert_eq!(fixture.lines("call", tool).len(), 1, "{tool} was done before and is not repeated");
    }
    fixture.verify(&execution);
}
