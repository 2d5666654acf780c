//! S3: the flight is sold out while the car is still being held. The holds are released, for a fee if there is one, and
//! a new plan with new dates needs a new approval.

use crate::scenarios::answer::{questions, steps, text};
use crate::scenarios::fixture::{Kind, ScenarioFixture, example, until};
use serde_json::json;
use std::fs;

fn fixture() -> ScenarioFixture {
    let mut fixture = ScenarioFixture::new();
    fixture.server("flight", Kind::Http, &["book", "cancel"]);
    fixture.server("hotel", Kind::Stdio, &["hold", "release", "confirm"]);
    fixture.server("car", Kind::Stdio, &["hold", "cancel", "confirm"]);
    fixture.tool("car.cancel", json!({ "gives": { "fee": 25.5 } }));
    fixture.tool("car.hold", json!({ "takes_ms": 4000 }));
    fixture.faults("flight.book", json!([409, null]));
    fixture
}

const DATES: [&str; 4] = ["--input", "from=2027-03-01", "--input", "to=2027-03-05"];

#[test]
fn holds_in_flight_are_awaited_and_then_released() {
    let mut fixture = fixture();
    fixture.open();
    let plan = example("trip.yaml");
    let run = fixture.start(&[&["run", plan.to_str().unwrap(), "--wait", "--json"], &DATES[..]].concat());
    let execution = run.execution();
    until("the car is being held", || !fixture.lines("effect", "car.hold").is_empty());
    until("the flight waits for approval", || {
        !questions(&fixture.rutter(&["exec", "show", &execution, "--json"]).json(), "approval").is_empty()
    });
    let approve = ["exec", "approve", &execution, "--step", "flight", "--reason", "cheap", "--no-wait", "--json"];
    assert_eq!(fixture.rutter(&approve).code, Some(0));
    let ended = run.wait().ended(1, "compensated");

    assert_eq!(fixture.lines("call", "flight.book").len(), 1, "sold out is not retried");
    let effects = fixture.effects();
    assert_eq!(effects.len(), 4, "{effects:?}");
    assert!(effects[..2].contains(&"car.hold".to_owned()) && effects[..2].contains(&"hotel.hold".to_owned()));
    assert!(effects[2..].contains(&"car.cancel".to_owned()) && effects[2..].contains(&"hotel.release".to_owned()));
    for (hold, given_back) in [("hotel.hold", "hotel.release"), ("car.hold", "car.cancel")] {
        let held = &fixture.lines("effect", hold)[0]["result"]["hold_id"];
        assert_eq!(&fixture.lines("effect", given_back)[0]["arguments"]["hold_id"], held);
    }
    assert_eq!(steps(&ended)[..3], ["flight=failed", "hotel=compensated", "car=compensated"]);
    let late = fixture.rutter(&[
        "exec",
        "replan",
        &execution,
        "--plan",
        plan.to_str().unwrap(),
        "--reason",
        "a better plan",
        "--json",
    ]);
    assert_eq!(late.refused(), "execution.compensated", "an undone execution cannot be replanned");
    fixture.verify(&execution);
    let exported = fs::read_to_string(fixture.path("export.jsonl")).unwrap();
    assert!(exported.contains("25.5"), "the fee is recorded");
}

#[test]
fn new_dates_reuse_no_released_hold_and_need_a_new_approval() {
    let mut fixture = fixture();
    fixture.tool("car.hold", json!({ "takes_ms": 0 })).open();
    let text_of = fs::read_to_string(example("trip.yaml")).unwrap();
    let first = text_of.replace("on_failure: compensate", "on_failure: manual_decision");
    fixture.write("first.yaml", &first);
    let run = fixture.rutter(&[&["run", "first.yaml", "--json"], &DATES[..]].concat());
    let asked = run.ended(3, "waiting");
    let (execution, old_call) = (run.execution(), text(&questions(&asked, "approval")[0]["call"]).to_owned());
    let failed = fixture
        .rutter(&["exec", "approve", &execution, "--call", &old_call, "--reason", "cheap", "--json"])
        .ended(3, "waiting");
    assert_eq!(text(&questions(&failed, "failure")[0]["step"]), "flight");

    fixture.write("second.yaml", &revision(&first));
    let replanned =
        fixture.rutter(&["exec", "replan", &execution, "--plan", "second.yaml", "--reason", "a better plan", "--json"]);
    let asked = replanned.ended(3, "waiting");
    assert_eq!(asked["plan"]["revision"], 2);
    let question = questions(&asked, "approval")[0].clone();
    assert_ne!(text(&question["call"]), old_call);
    assert_eq!(fixture.lines("effect", "flight.book").len(), 0, "the old approval does not count");
    let stale = fixture.rutter(&["exec", "approve", &execution, "--call", &old_call, "--reason", "cheap", "--json"]);
    assert_eq!(stale.refused(), "execution.other_call");

    fixture
        .rutter(&["exec", "approve", &execution, "--call", text(&question["call"]), "--reason", "cheap", "--json"])
        .ended(0, "completed");
    let calls = fixture.lines("effect", "flight.book");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["arguments"]["date"], "2027-04-01");
    for (hold, given_back, confirmed) in
        [("hotel.hold", "hotel.release", "hotel.confirm"), ("car.hold", "car.cancel", "car.confirm")]
    {
        let holds = fixture.lines("effect", hold);
        assert_eq!(holds.len(), 2);
        let returned = fixture.lines("effect", given_back);
        assert_eq!(returned.len(), 1);
        assert_eq!(returned[0]["arguments"]["hold_id"], holds[0]["result"]["hold_id"]);
        let confirmed = fixture.lines("effect", confirmed);
        assert_eq!(confirmed.len(), 1);
        assert_eq!(confirmed[0]["arguments"]["hold_id"], holds[1]["result"]["hold_id"]);
    }
    fixture.verify(&execution);
}

/// The same trip a month later: the holds are released first.
fn revision(first: &str) -> String {
    let (head, steps) = first.split_once("steps:\n").unwrap();
    let stored = steps.split("  - id: ").filter(|step| step.starts_with("hotel") || step.starts_with("car"));
    let retained: String = stored.map(|step| format!("  - id: {step}")).collect();
    let back = "
  - id: hotel_back
    tool: hotel.release
    parameters: { hold_id: '{{ steps.hotel.result.hold_id }}' }
  - id: car_back
    tool: car.cancel
    parameters: { hold_id: '{{ steps.car.result.hold_id }}' }
";
    let mut later = format!("\n{steps}").replace("\n  - id: ", "\n  - id: later_").replace("steps.", "steps.later_");
    later = later.replace("\"{{ inputs.from }}\"", "'2027-04-01'").replace("\"{{ inputs.to }}\"", "'2027-04-05'");
    later = later.replace("depends_on: [flight, ", "depends_on: [later_flight, ");
    later = later.replace("car]", "later_car]").replace("hotel]", "later_hotel]");
    later = later.replace("    tool: flight.book\n", "    tool: flight.book\n    depends_on: [hotel_back, car_back]\n");
    format!("{head}steps:\n{retained}{}{}", back.trim_start_matches('\n'), later.trim_start_matches('\n'))
}
