//! S2: the charge is made, its response is lost, and the program is killed at the same moment. There is one charge.

use crate::scenarios::answer::{questions, steps, text};
use crate::scenarios::fixture::{Kind, ScenarioFixture};
use serde_json::{Value, json};

/// How the step can find out what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// The tool honours a key: it is simply called again.
    Key,
    /// Another tool can look it up.
    Probe,
    /// Only a person can find out.
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

fn fixture(means: Means, kind: Kind) -> ScenarioFixture {
    let mut fixture = ScenarioFixture::new();
    let input = |properties: Value| json!({ "type": "object", "properties": properties });
    let output = json!({ "type": "object", "required": ["id"], "properties": { "id": { "type": "string" } } });
    let key = json!({ "amount": { "type": "number" }, "key": { "type": "string" } });
    fixture.server("payments", kind, &[]);
    let charge = json!({ "input": input(key), "output": output });
    fixture.tool("payments.charge", charge);
    fixture
        .tool("payments.book", json!({ "input": input(json!({ "charge": { "type": "string" } })), "output": output }));
    let (key, probe) = match means {
        Means::Key => {
            fixture.tool("payments.charge", json!({ "kind": "keyed", "key_parameter": "key" }));
            fixture.faults("payments.charge", json!(["commit_then_kill", "commit_then_kill", null]));
            ("'{{ key }}'", "")
        }
        Means::Probe => {
            let find = json!({ "type": "object", "required": ["found"],
                "properties": { "found": { "type": "boolean" }, "id": { "type": "string" } } });
            let about = json!({ "kind": "find", "of": "charge", "safety": "read_only", "output": find,
                "input": input(json!({ "key": { "type": "string" } })) });
            fixture.tool("payments.find", about);
            fixture.faults("payments.charge", json!(["commit_then_kill", null]));
            fixture.faults("payments.find", json!(["commit_then_kill", null]));
            let probe = "probe: { tool: payments.find, parameters: { key: '{{ inputs.order }}' }, happened: result.found, settle: 1s }";
            ("'{{ inputs.order }}'", probe)
        }
        Means::Nothing => {
            fixture.faults("payments.charge", json!(["commit_then_kill", null]));
            ("'{{ inputs.order }}'", "")
        }
    };
    fixture.open();
    fixture.write("plan.yaml", &PLAN.replace("KEY", key).replace("PROBE", probe));
    fixture
}

/// One order, from start to end, with one kill and two restarts.
fn lose(fixture: &ScenarioFixture, means: Means, order: usize) {
    fixture.forget_faults();
    let before = (charges(fixture), fixture.lines("effect", "payments.book").len());
    let order = format!("order={order:?}", order = format!("o-{order}"));
    let killed = fixture.rutter(&["run", "plan.yaml", "--input", &order, "--json"]);
    assert_eq!(killed.code, None, "it is killed in the middle: {killed:?}");
    assert_eq!(charges(fixture), before.0 + 1, "the charge was made before that");
    // It may have been killed before it could print the id.
    let execution = fixture.execution();

    let first = fixture.rutter(&["exec", "watch", &execution, "--json"]);
    match means {
        Means::Key | Means::Probe => assert_eq!(first.code, None, "it is killed once more: {first:?}"),
        Means::Nothing => {
            let doubt = first.ended(3, "waiting");
            assert_eq!(questions(&doubt, "doubt").len(), 1, "{doubt}");
            assert_eq!(steps(&doubt), ["charge=in_doubt", "book=pending"]);
        }
    }
    let second = fixture.rutter(&["exec", "watch", &execution, "--json"]);
    if means == Means::Nothing {
        second.ended(3, "waiting");
        let answer = fixture.rutter(&["exec", "show", &execution]);
        assert!(answer.stdout.contains("may or may not have happened"), "{answer:?}");
        let bare = fixture.rutter(&["exec", "resolve", &execution, "--step", "charge", "--json"]);
        assert_eq!(bare.refused(), "command.reason_missing");
        let why = ["--reason", "the bank was asked"];
        let bare = fixture.rutter(&[&["exec", "resolve", &execution, "--step", "charge", "--json"], &why[..]].concat());
        assert_eq!(bare.refused(), "execution.evidence_missing");
        let lines = ["--evidence", "seen in the bank's list", "--result", r#"{"id":"charge-by-hand"}"#];
        let resolve = ["exec", "resolve", &execution, "--step", "charge", "--json"];
        check(&fixture.rutter(&[&resolve[..], &lines[..]].concat()).ended(0, "completed"));
    } else {
        check(&second.ended(0, "completed"));
    }
    assert_eq!(charges(fixture), before.0 + 1, "there is one charge whatever happened");
    assert_eq!(fixture.lines("effect", "payments.book").len(), before.1 + 1);
}

fn check(json: &Value) {
    assert_eq!(steps(json), ["charge=completed", "book=completed"]);
}

fn charges(fixture: &ScenarioFixture) -> usize {
    fixture.lines("effect", "payments.charge").len()
}

fn lose_often(means: Means, kind: Kind, times: usize) {
    let fixture = fixture(means, kind);
    for order in 0..times {
        lose(&fixture, means, order);
    }
    let calls = fixture.lines("call", "payments.charge");
    match means {
        Means::Key => {
            assert_eq!(calls.len(), 3 * times, "it is called again after each restart");
            for order in calls.chunks(3) {
                let keys: Vec<&str> = order.iter().map(|call| text(&call["arguments"]["key"])).collect();
                assert!(keys[0] == keys[1] && keys[1] == keys[2], "always with the same key: {keys:?}");
            }
        }
        Means::Probe | Means::Nothing => assert_eq!(calls.len(), times, "it is never sent again"),
    }
    if means == Means::Probe {
        assert_eq!(fixture.lines("call", "payments.find").len(), 2 * times);
    }
    fixture.verify(&fixture.execution());
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
fn a_charge_over_mcp_that_cannot_be_looked_up_waits_for_a_person() {
    lose_often(Means::Nothing, Kind::Stdio, 4);
}

#[test]
fn a_charge_over_http_that_cannot_be_looked_up_waits_for_a_person() {
    lose_often(Means::Nothing, Kind::Http, 3);
}

#[test]
fn a_charge_by_a_command_that_cannot_be_looked_up_waits_for_a_person() {
    lose_often(Means::Nothing, Kind::Command, 3);
}
