//! S2: the charge is made, its answer is lost, and the program is killed in the same moment. There is one charge.

use crate::answer::{questions, steps, text};
use crate::stage::{Kind, Stage};
use serde_json::{Value, json};

/// How the step can find out what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// The tool honours a key: it is simply asked again.
    Key,
    /// Another tool knows.
    Probe,
    /// Nobody but a person.
    Nothing,
}

const PLAN: &str = "
name: lost-answer
inputs: { type: object, required: [order], properties: { order: { type: string } } }
steps:
  - id: charge
    tool: payments.charge
    parameters: { amount: 10, key: KEY }
    PROBE
  - id: book
    tool: payments.book
    parameters: { charge: '{{ steps.charge.result.id }}' }
";

fn stage(means: Means, kind: Kind) -> Stage {
    let mut stage = Stage::new();
    let input = |properties: Value| json!({ "type": "object", "properties": properties });
    let output =
        json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } });
    let key = json!({ "amount": { "type": "number" }, "key": { "type": "string" } });
    stage.server("payments", kind, &[]);
    let charge = json!({ "input": input(key), "output": output });
    stage.tool("payments.charge", charge);
    stage.tool(
        "payments.book",
        json!({ "input": input(json!({ "charge": { "type": "string" } })), "output": output }),
    );
    let (key, probe) = match means {
        Means::Key => {
            stage.tool("payments.charge", json!({ "kind": "keyed", "key_parameter": "key" }));
            stage.faults("payments.charge", json!(["commit_then_kill", "commit_then_kill", null]));
            ("'{{ key }}'", "")
        }
        Means::Probe => {
            let find = json!({ "type": "object", "required": ["found"],
                "properties": { "found": { "type": "boolean" }, "id": { "type": "string" } } });
            let about = json!({ "kind": "find", "of": "charge", "safety": "read_only", "output": find,
                "input": input(json!({ "key": { "type": "string" } })) });
            stage.tool("payments.find", about);
            stage.faults("payments.charge", json!(["commit_then_kill", null]));
            stage.faults("payments.find", json!(["commit_then_kill", null]));
            let probe = "probe: { tool: payments.find, parameters: { key: '{{ inputs.order }}' }, happened: result.found }";
            ("'{{ inputs.order }}'", probe)
        }
        Means::Nothing => {
            stage.faults("payments.charge", json!(["commit_then_kill", null]));
            ("'{{ inputs.order }}'", "")
        }
    };
    stage.open();
    stage.write("plan.yaml", &PLAN.replace("KEY", key).replace("PROBE", probe));
    stage
}

/// One order, from the start to its end, with one kill and two restarts.
fn lose(stage: &Stage, means: Means, order: usize) {
    stage.forget_faults();
    let before = (charges(stage), stage.lines("effect", "payments.book").len());
    let order = format!("order={order:?}", order = format!("o-{order}"));
    let killed = stage.rutter(&["run", "plan.yaml", "--input", &order, "--json"]);
    assert_eq!(killed.code, None, "it is killed in the middle: {killed:?}");
    assert_eq!(charges(stage), before.0 + 1, "the charge was made before that");
    // It may have been killed before it could say which one.
    let execution = stage.execution();

    let first = stage.rutter(&["exec", "watch", &execution, "--json"]);
    match means {
        Means::Key | Means::Probe => assert_eq!(first.code, None, "it is killed once more: {first:?}"),
        Means::Nothing => {
            let doubt = first.ended(3, "waiting");
            assert_eq!(questions(&doubt, "doubt").len(), 1, "{doubt}");
            assert_eq!(steps(&doubt), ["charge=in_doubt", "book=pending"]);
        }
    }
    let second = stage.rutter(&["exec", "watch", &execution, "--json"]);
    if means == Means::Nothing {
        second.ended(3, "waiting");
        let shown = stage.rutter(&["exec", "show", &execution]);
        assert!(shown.stdout.contains("may or may not have happened"), "{shown:?}");
        let bare = stage.rutter(&["exec", "resolve", &execution, "--step", "charge", "--json"]);
        assert_eq!(bare.refused(), "execution.evidence_missing");
        let said = ["--evidence", "seen in the bank's list", "--result", r#"{"id":"charge-by-hand"}"#];
        let resolve = ["exec", "resolve", &execution, "--step", "charge", "--json"];
        check(&stage.rutter(&[&resolve[..], &said[..]].concat()).ended(0, "completed"));
    } else {
        check(&second.ended(0, "completed"));
    }
    assert_eq!(charges(stage), before.0 + 1, "there is one charge whatever happened");
    assert_eq!(stage.lines("effect", "payments.book").len(), before.1 + 1);
}

fn check(json: &Value) {
    assert_eq!(steps(json), ["charge=completed", "book=completed"]);
}

fn charges(stage: &Stage) -> usize {
    stage.lines("effect", "payments.charge").len()
}

fn lose_often(means: Means, kind: Kind, times: usize) {
    let stage = stage(means, kind);
    for order in 0..times {
        lose(&stage, means, order);
    }
    let calls = stage.lines("call", "payments.charge");
    match means {
        Means::Key => {
            assert_eq!(calls.len(), 3 * times, "it is asked again after each restart");
            for order in calls.chunks(3) {
                let keys: Vec<&str> = order.iter().map(|call| text(&call["arguments"]["key"])).collect();
                assert!(keys[0] == keys[1] && keys[1] == keys[2], "always with the same key: {keys:?}");
            }
        }
        Means::Probe | Means::Nothing => assert_eq!(calls.len(), times, "it is never sent again"),
    }
    if means == Means::Probe {
        assert_eq!(stage.lines("call", "payments.find").len(), 2 * times);
    }
    stage.verify(&stage.execution());
}

#[test]
fn a_keyed_charge_over_mcp_is_repeated_under_its_key_and_made_once() {
    lose_often(Means::Key, Kind::Stdio, 17);
}

#[test]
fn a_keyed_charge_over_http_is_repeated_under_its_key_and_made_once() {
    lose_often(Means::Key, Kind::Http, 17);
}

#[test]
fn a_keyed_charge_by_a_command_is_repeated_under_its_key_and_made_once() {
    lose_often(Means::Key, Kind::Command, 16);
}

#[test]
fn a_charge_over_mcp_that_can_be_looked_up_is_never_sent_again() {
    lose_often(Means::Probe, Kind::Stdio, 17);
}

#[test]
fn a_charge_over_http_that_can_be_looked_up_is_never_sent_again() {
    lose_often(Means::Probe, Kind::Http, 17);
}

#[test]
fn a_charge_by_a_command_that_can_be_looked_up_is_never_sent_again() {
    lose_often(Means::Probe, Kind::Command, 16);
}

#[test]
fn a_charge_over_mcp_nobody_can_look_up_waits_for_a_person() {
    lose_often(Means::Nothing, Kind::Stdio, 4);
}

#[test]
fn a_charge_over_http_nobody_can_look_up_waits_for_a_person() {
    lose_often(Means::Nothing, Kind::Http, 3);
}

#[test]
fn a_charge_by_a_command_nobody_can_look_up_waits_for_a_person() {
    lose_often(Means::Nothing, Kind::Command, 3);
}
