//! S8: a patch makes it worse, so everything goes back to where it was.

use crate::answer::steps;
use crate::stage::{Kind, Stage, example};
use serde_json::json;
use std::fs;

#[test]
fn a_patch_that_makes_it_worse_is_taken_back_step_by_step() {
    let mut stage = Stage::new();
    stage.server("k8s", Kind::Stdio, &["scale"]);
    stage.server("health", Kind::Http, &["check"]);
    stage.server("config", Kind::Stdio, &["patch", "revert", "current"]);
    stage.server("svc", Kind::Command, &["restart"]);
    stage.tool("k8s.scale", json!({ "gives": { "previous": 4, "replicas": 12 } }));
    stage.tool("health.check", json!({ "gives": { "error_rate": 0.03, "healthy": true } }));
    stage.tool("config.patch", json!({ "gives": { "previous": 41, "revision": 42 } }));
    // Every restart is one, also the second with the same arguments.
    stage.tool("svc.restart", json!({ "kind": "once" }));
    stage.faults("health.check", json!([null, 422])).open();
    let plan = fs::read_to_string(example("incident.yaml")).unwrap();
    let quick =
        plan.replace("on: [unavailable, timeout, tool_error]", "on: [unavailable, timeout, invalid_input]");
    stage.write("plan.yaml", &quick.replace("initial: 30s", "initial: 200ms"));

    let run = stage.rutter(&["run", "plan.yaml", "--input", "service=checkout", "--json"]);
    let ended = run.ended(1, "compensated");
    let there = ["k8s.scale", "config.patch", "svc.restart"];
    let back = ["svc.restart", "config.revert", "k8s.scale"];
    assert_eq!(stage.effects(), [there, back].concat());
    assert_eq!(stage.lines("call", "health.check").len(), 1 + 3, "it looked three times before it gave up");
    assert_eq!(stage.lines("effect", "config.revert")[0]["arguments"]["revision"], 41);
    let scaled: Vec<_> =
        stage.lines("effect", "k8s.scale").iter().map(|line| line["arguments"]["replicas"].clone()).collect();
    assert_eq!(scaled, [12, 4], "there are as many copies as in the beginning");
    let expected = [
        "scale=compensated",
        "look_after_scale=completed",
        "patch=compensated",
        "restart=compensated",
        "look=failed",
    ];
    assert_eq!(steps(&ended), expected);
    assert_eq!(ended["remains"], json!([]));
    stage.verify(&run.execution());
}

#[test]
fn a_service_that_recovers_by_itself_is_not_patched() {
    let mut stage = Stage::new();
    stage.server("k8s", Kind::Stdio, &["scale"]);
    stage.server("health", Kind::Http, &["check"]);
    stage.server("config", Kind::Stdio, &["patch", "revert", "current"]);
    stage.server("svc", Kind::Command, &["restart"]);
    stage.tool("health.check", json!({ "gives": { "error_rate": 0.001, "healthy": true } })).open();
    let plan = example("incident.yaml");
    let run = stage.rutter(&["run", plan.to_str().unwrap(), "--input", "service=checkout", "--json"]);
    run.ended(0, "completed");
    assert_eq!(stage.lines("call", "config.patch").len(), 0);
    assert_eq!(stage.lines("effect", "k8s.scale").len(), 1);
    stage.verify(&run.execution());
}
