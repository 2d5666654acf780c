//! S1: the carrier refuses for good, so the money goes back first and the reservation second.

use crate::answer::{questions, steps, text};
use crate::stage::{Kind, Stage, example};
use serde_json::json;

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.server("inventory", Kind::Stdio, &["reserve", "release", "find_reservation"]);
    stage.server("payments", Kind::Http, &["charge", "refund", "find"]);
    stage.server("shipping", Kind::Http, &["book", "cancel"]);
    stage.server("mail", Kind::Command, &["send"]);
    stage.tool("payments.find", json!({ "kind": "find", "of": "charge" }));
    stage
}

const INPUTS: [&str; 8] = [
    "--input",
    "order=\"4711\"",
    "--input",
    "sku=A-1",
    "--input",
    "amount=49.9",
    "--input",
    "email=a@example.com",
];

#[test]
fn an_order_that_cannot_be_shipped_is_taken_back_in_order() {
    let mut stage = stage();
    // The carrier's word: a 503 of theirs comes before anything is booked.
    stage.extra.insert("shipping.book".to_owned(), "outcome = { 503 = \"not_done unavailable\" }".to_owned());
    stage.faults("shipping.book", json!([503])).open();
    let plan = example("order.yaml");

    let run = stage.rutter(&[&["run", plan.to_str().unwrap(), "--json"], &INPUTS[..]].concat());
    let waiting = run.ended(3, "waiting");
    assert_eq!(stage.effects(), ["inventory.reserve"], "nothing is charged before somebody agrees");
    let call = text(&questions(&waiting, "approval")[0]["call"]).to_owned();
    let execution = text(&waiting["execution_id"]);

    let approve =
        stage.rutter(&["exec", "approve", execution, "--step", "charge", "--call", &call, "--json"]);
    let ended = approve.ended(1, "compensated");
    let done = ["inventory.reserve", "payments.charge", "payments.refund", "inventory.release"];
    assert_eq!(stage.effects(), done, "nothing was shipped, and nobody got a mail");
    assert_eq!(stage.lines("call", "shipping.book").len(), 3);
    assert_eq!(stage.lines("call", "shipping.cancel").len(), 0, "what was never booked is not cancelled");
    assert_eq!(stage.lines("call", "mail.send").len(), 0);
    let charge = &stage.lines("effect", "payments.charge")[0]["result"];
    let refund = &stage.lines("effect", "payments.refund")[0]["arguments"];
    assert_eq!(refund["charge"], charge["id"]);
    let reserve = &stage.lines("effect", "inventory.reserve")[0]["result"];
    let release = &stage.lines("effect", "inventory.release")[0]["arguments"];
    assert_eq!(release["id"], reserve["reservation_id"]);
    assert_eq!(steps(&ended), ["reserve=compensated", "charge=compensated", "ship=failed", "mail=cancelled"]);
    assert_eq!(ended["steps"][2]["attempts"], 3);
    stage.verify(execution);
}

#[test]
fn an_order_that_goes_well_is_mailed_once() {
    let mut stage = stage();
    stage.faults("shipping.book", json!([503, null])).open();
    let plan = example("order.yaml");
    let run = stage.rutter(&[&["run", plan.to_str().unwrap(), "--json"], &INPUTS[..]].concat());
    let execution = run.execution();
    stage.rutter(&["exec", "approve", &execution, "--step", "charge", "--json"]).ended(0, "completed");
    assert_eq!(stage.effects(), ["inventory.reserve", "payments.charge", "shipping.book", "mail.send"]);
    let tracking = stage.lines("effect", "shipping.book")[0]["result"]["tracking"].clone();
    let mail = &stage.lines("effect", "mail.send")[0]["arguments"];
    assert!(text(&mail["text"]).contains(text(&tracking)), "{mail}");
    stage.verify(&execution);
}

#[test]
fn a_carrier_whose_refusals_prove_nothing_is_asked_about_before_money_goes_back() {
    let mut stage = stage();
    stage.faults("shipping.book", json!([503])).open();
    let plan = example("order.yaml");
    let run = stage.rutter(&[&["run", plan.to_str().unwrap(), "--json"], &INPUTS[..]].concat());
    let execution = run.execution();
    let stuck = stage.rutter(&["exec", "approve", &execution, "--step", "charge", "--json"]);
    let stuck = stuck.ended(3, "waiting");
    assert_eq!(stage.lines("call", "shipping.book").len(), 3);
    assert_eq!(text(&questions(&stuck, "compensation")[0]["part"]), "ship", "nobody knows what to cancel");
    assert_eq!(stage.effects(), ["inventory.reserve", "payments.charge"], "what depends on it comes first");

    let resolve = [
        "exec",
        "resolve",
        &execution,
        "--step",
        "ship",
        "--evidence",
        "the carrier has no parcel",
        "--json",
    ];
    stage.rutter(&resolve).ended(1, "compensated");
    let done = ["inventory.reserve", "payments.charge", "payments.refund", "inventory.release"];
    assert_eq!(stage.effects(), done);
    stage.verify(&execution);
}
