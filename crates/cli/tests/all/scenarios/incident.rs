//! S8: a patch makes it worse, so everything is rolled back.

use crate::scenarios::answer::steps;
use crate::scenarios::fixture::{Kind, ScenarioFixture, example};
use serde_json::json;
use std::fs;

#[test]
fn a_patch_that_makes_it_worse_is_undone_step_by_step() {
    let mut fixture = ScenarioFixture::new();
    fixture.server("k8s", Kind::Stdio, &["scale"]);
    fixture.server("health", Kind::Http, &["check"]);
    fixture.server("config", Kind::Stdio, &["patch", "revert", "current"]);
    fixture.server("svc", Kind::Command, &["restart"]);
    fixture.tool("k8s.scale", json!({ "gives": { "previous": 4, "replicas": 12 } }));
    fixture.tool("health.check", json!({ "gives": { "error_rate": 0.03, "healthy": true } }));
    fixture.tool("config.patch", json!({ "gives": { "previous": 41, "revision": 42 } }));
    // Every restart counts, also the second with the same arguments.
    fixture.tool("svc.restart", json!({ "kind": "once" }));
    fixture.faults("health.check", json!([null, 422])).open();
    let plan = fs::read_to_string(example("incident.yaml")).unwrap();
    let quick = plan.replace("on: [unavailable, timeout, tool_error]", "on: [unavailable, timeout, invalid_input]");
    fixture.write("plan.yaml", &quick.replace("initial: 30s", "initial: 200ms"));

    let run = fixture.rutter(&["run", "plan.yaml", "--input", "service=checkout", "--json"]);
    let ended = run.ended(1, "compensated");
    let there = ["k8s.scale", "config.patch", "svc.restart"];
    let back = ["svc.restart", "config.revert", "k8s.scale"];
    assert_eq!(fixture.effects(), [there, back].concat());
    assert_eq!(fixture.lines("call", "health.check").len(), 1 + 3, "it checked three times before it gave up");
    assert_eq!(fixture.lines("effect", "config.revert")[0]["arguments"]["revision"], 41);
    let scaled: Vec<_> =
        fixture.lines("effect", "k8s.scale").iter().map(|line| line["arguments"]["replicas"].clone()).collect();
    assert_eq!(scaled, [12, 4], "there are as many replicas as in the beginning");
    let expected =
        ["scale=compensated", "look_after_scale=completed", "patch=compensated", "restart=compensated", "look=failed"];
    assert_eq!(steps(&ended), expected);
    assert_eq!(ended["remains"], json!([]));
    fixture.verify(&run.execution());
}

#[test]
fn a_service_that_recovers_by_itself_is_not_patched() {
    let mut fixture = ScenarioFixture::new();
    fixture.server("k8s", Kind::Stdio, &["scale"]);
    fixture.server("health", Kind::Http, &["check"]);
    fixture.server("config", Kind::Stdio, &["patch", "revert", "current"]);
    fixture.server("svc", Kind::Command, &["restart"]);
    fixture.tool("health.check", json!({ "gives": { "error_rate": 0.001, "healthy": true } })).open();
    let plan = example("incident.yaml");
    let run = fixture.rutter(&["run", plan.to_str().unwrap(), "--input", "service=checkout", "--json"]);
    run.ended(0, "completed");
    assert_eq!(fixture.lines("call", "config.patch").len(), 0);
    assert_eq!(fixture.lines("effect", "k8s.scale").len(), 1);
    fixture.verify(&run.execution());
}
