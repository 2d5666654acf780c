//! `rutter plan optimize`: fixes that are applied to files and saved plans, and suggestions learned from history.

use crate::server::fixture::{ServerFixture, output_text};
use crate::server::plans::without_and_with_a_server;
use serde_json::{Value, json};
use std::fs;

/// Two reads that could run at the same time.
fn plan() -> Value {
    let step = |id: &str, needs: &[&str]| json!({ "id": id, "tool": "memory.recent", "depends_on": needs });
    json!({ "name": "reads", "goal": "read twice", "steps": [step("a", &[]), step("b", &[]), step("c", &["a", "b"])] })
}

/// Whether a plan passes the check, and has nothing left that can be fixed.
#[track_caller]
fn is_improved(fixture: &ServerFixture, plan: &str) {
    let checked = fixture.rutter(&["plan", "check", plan]);
    assert_eq!(checked.status.code(), Some(0), "{}", output_text(&checked));
    let again = fixture.json(&["plan", "optimize", plan, "--json"]);
    assert_eq!((&again["applied"], &again["document"]), (&0.into(), &Value::Null), "{again}");
}

#[test]
fn fixes_are_applied_to_files_and_saved_plans() {
    without_and_with_a_server(|fixture| {
        let optimize = |plan: &str| {
            let output = fixture.rutter(&["plan", "optimize", plan, "--apply"]);
            assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
            output
        };
        fs::write(fixture.path("reads.json"), plan().to_string()).unwrap();
        assert_eq!(fixture.rutter(&["plan", "save", "reads.json"]).status.code(), Some(0));
        let told = output_text(&fixture.rutter(&["plan", "optimize", "reads.json"]));
        assert!(told.contains("optimize.parallel") && told.contains("--apply carries out up to 1"), "{told}");
        assert_eq!(fs::read_to_string(fixture.path("reads.json")).unwrap(), plan().to_string(), "only with --apply");

        // A JSON file is rewritten.
        optimize("reads.json");
        let written: Value = serde_json::from_slice(&fs::read(fixture.path("reads.json")).unwrap()).unwrap();
        assert_eq!(written["max_parallel"], 2, "{written}");
        is_improved(fixture, "reads.json");

        // YAML, whose comments would be lost, is printed as JSON.
        let yaml = format!("# mine\n{:#}\n", plan());
        fs::write(fixture.path("reads.yaml"), &yaml).unwrap();
        let printed = optimize("reads.yaml");
        assert_eq!(serde_json::from_slice::<Value>(&printed.stdout).unwrap(), written, "{}", output_text(&printed));
        assert_eq!(fs::read_to_string(fixture.path("reads.yaml")).unwrap(), yaml);

        // A saved plan gets its next revision.
        let saved = output_text(&optimize("reads"));
        assert!(saved.contains("saved as revision 2"), "{saved}");
        assert_eq!(fixture.json(&["plan", "export", "reads"]), written);
        is_improved(fixture, "reads");
    });
}

#[test]
fn a_timeout_is_learned_from_twenty_executions() {
    without_and_with_a_server(|fixture| {
        let plan = json!({ "name": "one", "steps": [{ "id": "a", "tool": "memory.recent", "depends_on": [] }] });
        fs::write(fixture.path("one.json"), plan.to_string()).unwrap();
        assert_eq!(fixture.rutter(&["plan", "save", "one.json"]).status.code(), Some(0));
        let before = fixture.json(&["plan", "optimize", "one", "--json"]);
        assert_eq!(before["suggestions"], json!([]), "{before}");
        assert!(before["notes"].to_string().contains("fewer than 20 answered calls"), "{before}");
        for _ in 0..20 {
            assert_eq!(fixture.rutter(&["run", "one"]).status.code(), Some(0));
        }
        let learned = fixture.json(&["plan", "optimize", "one", "--apply", "--json"]);
        let suggestion = &learned["suggestions"][0];
        assert_eq!((&suggestion["code"], &suggestion["step"]), (&"optimize.timeout".into(), &"a".into()), "{learned}");
        assert!(suggestion["reason"].as_str().unwrap().contains("the last 20 calls of memory.recent"), "{learned}");
        assert_eq!(learned["saved_revision"], 2, "{learned}");
        assert_eq!(fixture.json(&["plan", "export", "one"])["steps"][0]["timeout"], "1s");
        is_improved(fixture, "one");
    });
}
