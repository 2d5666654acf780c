//! S3: the flight is sold out while the car is still being held. What was held is given back, for a fee where there is
//! one, and a new plan with new dates asks anew.

use crate::answer::{questions, steps, text};
use crate::stage::{Kind, Stage, example, until};
use serde_json::json;
use std::fs;

fn stage() -> Stage {
    let mut stage = Stage::new();
    stage.server("flight", Kind::Http, &["book", "cancel"]);
    stage.server("hotel", Kind::Stdio, &["hold", "release", "confirm"]);
    stage.server("car", Kind::Stdio, &["hold", "cancel", "confirm"]);
    stage.tool("car.cancel", json!({ "gives": { "fee": 25.5 } }));
    stage.tool("car.hold", json!({ "takes_ms": 4000 }));
    stage.faults("flight.book", json!([409, null]));
    stage
}

const DATES: [&str; 4] = ["--input", "from=2027-03-01", "--input", "to=2027-03-05"];

#[test]
fn holds_that_are_under_way_are_awaited_and_then_given_back() {
    let mut stage = stage();
    stage.open();
    let plan = example("trip.yaml");
    let run = stage.start(&[&["run", plan.to_str().unwrap(), "--wait", "--json"], &DATES[..]].concat());
    let execution = run.execution();
    until("the car is being held", || !stage.lines("effect", "car.hold").is_empty());
    until("somebody is asked about the flight", || {
        !questions(&stage.rutter(&["exec", "show", &execution, "--json"]).json(), "approval").is_empty()
    });
    let approve = ["exec", "approve", &execution, "--step", "flight", "--no-wait", "--json"];
    assert_eq!(stage.rutter(&approve).code, Some(0));
    let ended = run.wait().ended(1, "compensated");

    assert_eq!(stage.lines("call", "flight.book").len(), 1, "sold out is not tried again");
    let effects = stage.effects();
    assert_eq!(effects.len(), 4, "{effects:?}");
    assert!(effects[..2].contains(&"car.hold".to_owned()) && effects[..2].contains(&"hotel.hold".to_owned()));
    assert!(
        effects[2..].contains(&"car.cancel".to_owned()) && effects[2..].contains(&"hotel.release".to_owned())
    );
    for (hold, given_back) in [("hotel.hold", "hotel.release"), ("car.hold", "car.cancel")] {
        let held = &stage.lines("effect", hold)[0]["result"]["hold_id"];
        assert_eq!(&stage.lines("effect", given_back)[0]["arguments"]["hold_id"], held);
    }
    assert_eq!(steps(&ended)[..3], ["flight=failed", "hotel=compensated", "car=compensated"]);
    let late = stage.rutter(&["exec", "replan", &execution, "--plan", plan.to_str().unwrap(), "--json"]);
    assert_eq!(late.refused(), "execution.ended", "what has been undone is planned as something new");
    stage.verify(&execution);
    let exported = fs::read_to_string(stage.path("export.jsonl")).unwrap();
    assert!(exported.contains("25.5"), "the fee is on record");
}

#[test]
fn new_dates_reuse_nothing_that_was_given_back_and_are_approved_anew() {
    let mut stage = stage();
    stage.tool("car.hold", json!({ "takes_ms": 0 })).open();
    let text_of = fs::read_to_string(example("trip.yaml")).unwrap();
    let first = text_of.replace("on_failure: compensate", "on_failure: manual_decision");
    stage.write("first.yaml", &first);
    let run = stage.rutter(&[&["run", "first.yaml", "--json"], &DATES[..]].concat());
    let asked = run.ended(3, "waiting");
    let (execution, old_call) = (run.execution(), text(&questions(&asked, "approval")[0]["call"]).to_owned());
    let failed =
        stage.rutter(&["exec", "approve", &execution, "--call", &old_call, "--json"]).ended(3, "waiting");
    assert_eq!(text(&questions(&failed, "failure")[0]["step"]), "flight");

    stage.write("second.yaml", &revision(&first));
    let replanned = stage.rutter(&["exec", "replan", &execution, "--plan", "second.yaml", "--json"]);
    let asked = replanned.ended(3, "waiting");
    assert_eq!(asked["revision"], 2);
    let question = questions(&asked, "approval")[0].clone();
    assert_ne!(text(&question["call"]), old_call);
    assert_eq!(stage.lines("effect", "flight.book").len(), 0, "the old approval does not count");
    let stale = stage.rutter(&["exec", "approve", &execution, "--call", &old_call, "--json"]);
    assert_eq!(stale.refused(), "execution.other_call");

    stage
        .rutter(&["exec", "approve", &execution, "--call", text(&question["call"]), "--json"])
        .ended(0, "completed");
    let flights = stage.lines("effect", "flight.book");
    assert_eq!(flights.len(), 1);
    assert_eq!(flights[0]["arguments"]["date"], "2027-04-01");
    for (hold, given_back, confirmed) in
        [("hotel.hold", "hotel.release", "hotel.confirm"), ("car.hold", "car.cancel", "car.confirm")]
    {
        let holds = stage.lines("effect", hold);
        assert_eq!(holds.len(), 2);
        let returned = stage.lines("effect", given_back);
        assert_eq!(returned.len(), 1);
        assert_eq!(returned[0]["arguments"]["hold_id"], holds[0]["result"]["hold_id"]);
        let confirmed = stage.lines("effect", confirmed);
        assert_eq!(confirmed.len(), 1);
        assert_eq!(confirmed[0]["arguments"]["hold_id"], holds[1]["result"]["hold_id"]);
    }
    stage.verify(&execution);
}

/// The same trip a month later: what is held is given back first.
fn revision(first: &str) -> String {
    let (head, steps) = first.split_once("steps:\n").unwrap();
    let kept = steps.split("  - id: ").filter(|step| step.starts_with("hotel") || step.starts_with("car"));
    let kept: String = kept.map(|step| format!("  - id: {step}")).collect();
    let back = "
  - id: hotel_back
    tool: hotel.release
    parameters: { hold_id: '{{ steps.hotel.result.hold_id }}' }
  - id: car_back
    tool: car.cancel
    parameters: { hold_id: '{{ steps.car.result.hold_id }}' }
";
    let mut later =
        format!("\n{steps}").replace("\n  - id: ", "\n  - id: later_").replace("steps.", "steps.later_");
    later =
        later.replace("\"{{ inputs.from }}\"", "'2027-04-01'").replace("\"{{ inputs.to }}\"", "'2027-04-05'");
    later = later.replace("depends_on: [flight, ", "depends_on: [later_flight, ");
    later = later.replace("car]", "later_car]").replace("hotel]", "later_hotel]");
    later = later.replace(
        "    tool: flight.book\n",
        "    tool: flight.book\n    depends_on: [hotel_back, car_back]\n",
    );
    format!("{head}steps:\n{kept}{}{}", back.trim_start_matches('\n'), later.trim_start_matches('\n'))
}
