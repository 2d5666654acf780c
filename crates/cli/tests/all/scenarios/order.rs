//! S1: the carrier refuses for good, so the charge is refunded first and the reservation released second.

use crate::scenarios::answer::{questions, steps, text};
use crate::scenarios::fixture::{Kind, ScenarioFixture, example};
use serde_json::json;

fn fixture() -> ScenarioFixture {
    let mut fixture = ScenarioFixture::new();
    fixture.server("inventory", Kind::Stdio, &["reserve", "release", "find_reservation"]);
    fixture.server("payments", Kind::Http, &["charge", "refund", "find"]);
    fixture.server("shipping", Kind::Http, &["book", "cancel"]);
    fixture.server("mail", Kind::Command, &["send"]);
    fixture.tool("payments.find", json!({ "kind": "find", "of": "charge" }));
    fixture
}

const INPUTS: [&str; 8] =
    ["--input", "order=\"4711\"", "--input", "sku=A-1", "--input", "amount=49.9", "--input", "email=a@example.com"];

#[test]
fn an_order_that_cannot_be_shipped_is_undone_in_order() {
    let mut fixture = fixture();
    // As the carrier documents: its 503 comes before anything is booked.
    fixture.extra.insert("shipping.book".to_owned(), "outcome = { 503 = \"not_done unavailable\" }".to_owned());
    fixture.faults("shipping.book", json!([503])).open();
    let plan = example("order.yaml");

    let run = fixture.rutter(&[&["run", plan.to_str().unwrap(), "--json"], &INPUTS[..]].concat());
    let waiting = run.ended(3, "waiting");
    assert_eq!(fixture.effects(), ["inventory.reserve"], "nothing is charged before the approval");
    let call = text(&questions(&waiting, "approval")[0]["call"]).to_owned();
    let execution = text(&waiting["execution_id"]);

    let approve = fixture
        .rutter(&["exec", "approve", execution, "--step", "charge", "--call", &call, "--reason", "in stock", "--json"]);
    let ended = approve.ended(1, "compensated");
    let done = ["inventory.reserve", "payments.charge", "payments.refund", "inventory.release"];
    assert_eq!(fixture.effects(), done, "nothing was shipped, and no mail was sent");
    assert_eq!(fixture.lines("call", "shipping.book").len(), 3);
    assert_eq!(fixture.lines("call", "shipping.cancel").len(), 0, "a booking that was never made is not cancelled");
    assert_eq!(fixture.lines("call", "mail.send").len(), 0);
    let charge = &fixture.lines("effect", "payments.charge")[0]["result"];
    let refund = &fixture.lines("effect", "payments.refund")[0]["arguments"];
    assert_eq!(refund["charge"], charge["id"]);
    let reserve = &fixture.lines("effect", "inventory.reserve")[0]["result"];
    let release = &fixture.lines("effect", "inventory.release")[0]["arguments"];
    assert_eq!(release["id"], reserve["reservation_id"]);
    assert_eq!(steps(&ended), ["reserve=compensated", "charge=compensated", "ship=failed", "mail=cancelled"]);
    assert_eq!(ended["steps"][2]["attempts"], 3);
    fixture.verify(execution);
}

#[test]
fn an_order_that_goes_well_is_mailed_once() {
    let mut fixture = fixture();
    fixture.faults("shipping.book", json!([503, null])).open();
    let plan = example("order.yaml");
    let run = fixture.rutter(&[&["run", plan.to_str().unwrap(), "--json"], &INPUTS[..]].concat());
    let execution = run.execution();
    fixture
        .rutter(&["exec", "approve", &execution, "--step", "charge", "--reason", "in stock", "--json"])
        .ended(0, "completed");
    assert_eq!(fixture.effects(), ["inventory.reserve", "payments.charge", "shipping.book", "mail.send"]);
    let tracking = fixture.lines("effect", "shipping.book")[0]["result"]["tracking"].clone();
    let message = &fixture.lines("effect", "mail.send")[0]["arguments"];
    assert!(text(&message["text"]).contains(text(&tracking)), "{message}");
    fixture.verify(&execution);
}

#[test]
fn a_refusal_that_proves_nothing_is_settled_before_the_refund() {
    let mut fixture = fixture();
    fixture.faults("shipping.book", json!([503])).open();
    let plan = example("order.yaml");
    let run = fixture.rutter(&[&["run", plan.to_str().unwrap(), "--json"], &INPUTS[..]].concat());
    let execution = run.execution();
    let stuck = fixture.rutter(&["exec", "approve", &execution, "--step", "charge", "--reason", "in stock", "--json"]);
    let stuck = stuck.ended(3, "waiting");
    assert_eq!(fixture.lines("call", "shipping.book").len(), 3);
    assert_eq!(text(&questions(&stuck, "compensation")[0]["part"]), "ship", "it is unknown what to cancel");
    assert_eq!(fixture.effects(), ["inventory.reserve", "payments.charge"], "what depends on it comes first");

    let resolve =
        ["exec", "resolve", &execution, "--step", "ship", "--evidence", "the carrier has no parcel", "--json"];
    fixture.rutter(&resolve).ended(1, "compensated");
    let done = ["inventory.reserve", "payments.charge", "payments.refund", "inventory.release"];
    assert_eq!(fixture.effects(), done);
    fixture.verify(&execution);
}
