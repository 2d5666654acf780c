//! Forecasts of plans, compared with simulated worlds whose probabilities are known.

use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus, StepSnapshot};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, StepId, ToolName};
use rutter_core::insight::day::DailyTally;
use rutter_core::insight::forecast::{Forecast, PlanHistory, of_execution, of_plan};
use rutter_core::journal::event::ExecutionEnding;
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{FailureCategory, ToolCatalog, ToolFailure};
use serde_json::{Value, json};
use std::sync::Arc;

const NOW: i64 = 1_794_801_300_000;

/// Sequential steps, unless they declare dependencies. Every tool is named `t.` and a letter.
fn plan(steps: Value) -> Arc<Plan> {
    plan_with(json!({ "name": "order", "steps": steps }))
}

fn plan_with(plan: Value) -> Arc<Plan> {
    let tool = |command| json!({ "name": format!("t.{command}"), "inputSchema": { "type": "object" } });
    let tools: Vec<Value> = ('a'..='h').map(tool).collect();
    let catalog = ToolCatalog::from_json(&json!({ "tools": tools })).unwrap();
    let checked = read_and_check(plan.to_string().as_bytes(), DocumentFormat::Json, &catalog, Driver::Server, None);
    checked.plan.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics))
}

fn chain(count: usize) -> Arc<Plan> {
    let commands = ["a", "b", "c", "d", "e", "f", "g", "h"];
    plan(commands[..count].iter().map(|id| json!({ "id": id, "tool": format!("t.{id}") })).collect())
}

/// A day with made-up events.
#[derive(Default)]
struct World {
    day: DailyTally,
}

impl World {
    /// A completion that took this many milliseconds.
    fn took(&mut self, step: &str, ms: u64) {
        self.day.steps.count(&"order".into(), &StepId::new(step), |tally| tally.took_ms.record(ms));
        self.day.tools.of(&format!("t.{step}")).step_ms.record(ms);
    }

    fn failed(&mut self, step: &str) {
        self.day.steps.count(&"order".into(), &StepId::new(step), |tally| tally.failed += 1);
        self.day.tools.of(&format!("t.{step}")).steps_failed += 1;
    }

    /// Runs the steps until one fails; returns whether none did.
    fn carry_out(&mut self, plan: &Plan, risks: &[f64], dice: &mut Dice) -> bool {
        let mut outcome = ExecutionEnding::Completed;
        for (step, risk) in plan.steps.iter().zip(risks) {
            if dice.throw() < *risk {
                self.failed(step.id.as_str());
                outcome = ExecutionEnding::Failed;
                break;
            }
            self.took(step.id.as_str(), 100);
        }
        *self.day.plans.of("order").ended.of(outcome) += 1;
        outcome == ExecutionEnding::Completed
    }

    fn ahead_of(&self, plan: &Plan) -> Forecast {
        of_plan(plan, &self.history(plan))
    }

    fn history(&self, plan: &Plan) -> PlanHistory {
        PlanHistory::of(plan, [&self.day].into_iter())
    }
}

struct Dice(u64);

impl Dice {
    fn throw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn near(found: f64, expected: f64, by: f64) -> bool {
    (found - expected).abs() <= by
}

fn median(forecast: &Forecast) -> u64 {
    forecast.time.unwrap().median.0
}

#[test]
fn without_a_history_there_is_no_forecast() {
    let plan = chain(2);
    let forecast = World::default().ahead_of(&plan);
    assert_eq!((forecast.chance, forecast.time, &forecast.riskiest), (None, None, &None));
    assert_eq!(forecast.unknown, [StepId::new("a"), StepId::new("b")]);

    let mut world = World::default();
    world.took("a", 10);
    assert_eq!(world.ahead_of(&plan).unknown, [StepId::new("b")]);
    // Another plan has called the tool, so there is a history.
    world.day.tools.of("t.b").step_ms.record(30);
    let forecast = world.ahead_of(&plan);
    assert!(forecast.unknown.is_empty() && forecast.riskiest.is_none());
    assert!((0.5..0.95).contains(&forecast.chance.unwrap()), "{forecast:?}");
    assert!(near(median(&forecast) as f64, 40.0, 4.0), "{forecast:?}");
}

#[test]
fn the_more_often_it_went_well_the_surer_it_is() {
    let plan = chain(4);
    let mut last = 0.0;
    for times in [1, 5, 50, 500] {
        let mut world = World::default();
        for _ in 0..times {
            assert!(world.carry_out(&plan, &[0.0; 4], &mut Dice(1)));
        }
        let chance = world.ahead_of(&plan).chance.unwrap();
        assert!(chance > last && chance < 1.0, "{times}: {chance}");
        last = chance;
    }
    assert!(last > 0.99);
}

#[test]
fn chance_and_riskiest_step_are_those_of_the_world() {
    let plan = chain(4);
    let risks = [0.0, 0.02, 0.15, 0.05];
    let (mut world, mut dice) = (World::default(), Dice(7));
    for _ in 0..1_000 {
        world.carry_out(&plan, &risks, &mut dice);
    }
    let forecast = world.ahead_of(&plan);
    let truth: f64 = risks.iter().map(|risk| 1.0 - risk).product();
    assert!(near(forecast.chance.unwrap(), truth, 0.03), "{forecast:?} for {truth}");
    let worst = forecast.riskiest.unwrap();
    assert_eq!(worst.step.as_str(), "c");
    assert!(near(worst.chance, 0.15, 0.03) && worst.tries > 900, "{worst:?}");
    assert_eq!(forecast.ended.all(), 1_000);
}

/// Over many worlds and short histories, events occur as often as their forecast probability.
#[test]
fn forecasts_are_calibrated() {
    let mut dice = Dice(11);
    let (mut message, mut happened, mut count, mut error, mut least, mut blind) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    let mut bands = [(0.0, 0.0, 0.0); 5];
    for world in 0..3_000 {
        let plan = chain(1 + world % 6);
        let risks: Vec<f64> = plan.steps.iter().map(|_| dice.throw() * dice.throw() * 0.4).collect();
        let mut world = World::default();
        let times = 2 + (dice.throw() * 40.0) as u64;
        for _ in 0..times {
            world.carry_out(&plan, &risks, &mut dice);
        }
        let Some(chance) = world.ahead_of(&plan).chance else { continue };
        let came = f64::from(u8::from(World::default().carry_out(&plan, &risks, &mut dice)));
        (message, happened, count) = (message + chance, happened + came, count + 1.0);
        error += (chance - came).powi(2);
        let truth: f64 = risks.iter().map(|risk| 1.0 - risk).product();
        least += (truth - came).powi(2);
        blind += (0.75f64 - came).powi(2);
        let band = &mut bands[((chance * 5.0) as usize).min(4)];
        *band = (band.0 + chance, band.1 + came, band.2 + 1.0);
    }
    assert!(
        near(message / count, happened / count, 0.03),
        "{} forecast, {} observed",
        message / count,
        happened / count
    );
    // The forecast is closer to the true probabilities than to a constant guess.
    assert!(error - least < (blind - least) / 2.0, "{error} between {least} and {blind}");
    for (statement, came, count) in bands.into_iter().filter(|(_, _, count)| *count >= 100.0) {
        assert!(
            near(statement / count, came / count, 0.12),
            "{} forecast, {} observed",
            statement / count,
            came / count
        );
    }
}

#[test]
fn parallel_steps_take_as_long_as_the_longest_if_slots_are_free() {
    let steps = json!([
        { "id": "a", "tool": "t.a", "depends_on": [] }, { "id": "b", "tool": "t.b", "depends_on": [] },
        { "id": "c", "tool": "t.c", "depends_on": ["a", "b"] },
    ]);
    let mut world = World::default();
    for _ in 0..5 {
        world.took("a", 1_024);
        world.took("b", 2_048);
        world.took("c", 4_096);
    }
    for (max_parallel, expected) in [(2, 6_144.0), (1, 7_168.0)] {
        let plan = plan_with(json!({ "name": "order", "max_parallel": max_parallel, "steps": steps }));
        let forecast = world.ahead_of(&plan);
        assert!(near(median(&forecast) as f64, expected, expected / 10.0), "{forecast:?}");
    }
}

#[test]
fn a_spread_of_times_is_summarised_by_median_and_p95() {
    let plan = chain(1);
    let mut world = World::default();
    (1..=1_000).for_each(|ms| world.took("a", ms));
    let span = world.ahead_of(&plan).time.unwrap();
    assert!(near(span.median.0 as f64, 500.0, 75.0) && near(span.p95.0 as f64, 950.0, 75.0), "{span:?}");
    assert_eq!(world.ahead_of(&plan), world.ahead_of(&plan), "a forecast is deterministic");
}

#[test]
fn a_condition_that_is_mostly_false_costs_and_risks_little() {
    let steps = json!([{ "id": "a", "tool": "t.a", "when": "inputs.large" }]);
    let inputs = json!({ "type": "object", "properties": { "large": { "type": "boolean" } }, "required": ["large"] });
    let plan = plan_with(json!({ "name": "order", "inputs": inputs, "steps": steps }));
    let mut world = World::default();
    (0..5).for_each(|_| world.took("a", 1_000));
    (0..5).for_each(|_| world.failed("a"));
    assert!(near(world.ahead_of(&plan).chance.unwrap(), 0.5, 0.01));
    world.day.steps.count(&"order".into(), &StepId::new("a"), |tally| tally.passed_over += 90);
    let forecast = world.ahead_of(&plan);
    assert!(near(forecast.chance.unwrap(), 0.95, 0.01), "{forecast:?}");
    assert_eq!(median(&forecast), 0);
    assert!(forecast.time.unwrap().p95.0 > 0);
}

#[test]
fn every_item_of_a_fan_out_takes_its_time_and_its_risk() {
    let steps = json!([{ "id": "a", "tool": "t.a",
        "for_each": { "items": "inputs.list", "max_parallel": 2, "max_items": 100 } }]);
    let inputs = json!({ "type": "object", "properties": { "list": { "type": "array" } }, "required": ["list"] });
    let plan = plan_with(json!({ "name": "order", "inputs": inputs, "steps": steps }));
    let mut world = World::default();
    (0..1_000).for_each(|_| world.took("a", 1_000));
    (0..10).for_each(|_| world.failed("a"));
    world.day.steps.count(&"order".into(), &StepId::new("a"), |tally| {
        (tally.fanned_out, tally.items) = (101, 1_010);
    });
    let forecast = world.ahead_of(&plan);
    assert!(near(forecast.chance.unwrap(), 0.99f64.powi(10), 0.01), "{forecast:?}");
    assert!(near(median(&forecast) as f64, 5_000.0, 500.0), "{forecast:?}");
}

#[test]
fn an_approval_takes_as_long_as_before_and_is_left_out_without_a_history() {
    let steps = json!([{ "id": "a", "tool": "t.a", "approval": true }]);
    let plan = plan(steps);
    let mut world = World::default();
    (0..3).for_each(|_| world.took("a", 1_000));
    let forecast = world.ahead_of(&plan);
    assert_eq!(forecast.asking, [StepId::new("a")]);
    assert!(near(median(&forecast) as f64, 1_000.0, 100.0), "{forecast:?}");
    world.day.steps.count(&"order".into(), &StepId::new("a"), |tally| tally.asked_ms.record(60_000));
    let forecast = world.ahead_of(&plan);
    assert!(forecast.asking.is_empty());
    assert!(near(median(&forecast) as f64, 61_000.0, 6_100.0), "{forecast:?}");
}

/// `statuses` of steps, each with the milliseconds since its start.
fn view(plan: &Plan, status: ExecutionStatus, statuses: &[(&'static str, u64)]) -> ExecutionSnapshot {
    let step = |(at, (status, ago)): (usize, &(&'static str, u64))| StepSnapshot {
        id: plan.steps[at].id.clone(),
        tool: ToolName::new("t.a"),
        status,
        by_hand: false,
        attempts: 1,
        items: None,
        failure: None,
        skip_reason: None,
        wait: None,
        touched: true,
        began_at: (*status != "pending").then_some(Timestamp(NOW - *ago as i64)),
        ended_at: None,
    };
    ExecutionSnapshot {
        execution: ExecutionId::new("exec_1"),
        plan: plan.name.clone(),
        goal: String::new(),
        plan_hash: Hash::ZERO,
        revision: 1,
        driver: Driver::Server,
        status,
        settled: 0,
        completed: 0,
        total: statuses.len(),
        calls: 0,
        cost_micros: 0,
        opened_at: Timestamp(NOW - 100_000),
        started_at: None,
        last_at: Timestamp(NOW),
        ended_at: None,
        wake_at: None,
        steps: statuses.iter().enumerate().map(step).collect(),
        questions: Vec::new(),
        failures: Vec::new(),
        due: None,
        compensation_due: None,
        can_reopen: false,
        ended_by_person: false,
        deviations: Vec::new(),
        undone: Vec::new(),
        remains: Vec::new(),
        unmet: Vec::new(),
        cause: None,
    }
}

#[test]
fn finished_steps_are_certain_and_running_steps_have_less_left() {
    let plan = chain(3);
    let mut world = World::default();
    for step in ["a", "b", "c"] {
        (0..9).for_each(|_| world.took(step, 10_000));
        world.failed(step);
    }
    let history = world.history(&plan);
    let ahead = |statuses: &[(&'static str, u64)]| {
        of_execution(&plan, &history, &view(&plan, ExecutionStatus::Running, statuses), Timestamp(NOW)).unwrap()
    };
    let fresh = ahead(&[("pending", 0), ("pending", 0), ("pending", 0)]);
    assert_eq!(fresh, of_plan(&plan, &history));
    let later = ahead(&[("completed", 25_000), ("running", 4_000), ("pending", 0)]);
    assert!(later.chance.unwrap() > fresh.chance.unwrap());
    assert!(near(median(&later) as f64, 16_000.0, 2_000.0), "{later:?}");
    assert!(later.overdue.is_empty());

    let late = ahead(&[("completed", 70_000), ("running", 60_000), ("pending", 0)]);
    assert_eq!(late.overdue, [StepId::new("b")]);
    assert!(near(median(&late) as f64, 10_000.0, 1_000.0), "{late:?}");
    let done = ahead(&[("completed", 70_000), ("completed", 60_000), ("skipped", 0)]);
    assert_eq!((done.chance, done.time, done.riskiest), (Some(1.0), None, None));
}

#[test]
fn failed_or_compensating_executions_have_no_forecast() {
    let plan = chain(2);
    let mut world = World::default();
    ["a", "b"].into_iter().for_each(|step| world.took(step, 10));
    let history = world.history(&plan);
    let ahead = |view: &ExecutionSnapshot| of_execution(&plan, &history, view, Timestamp(NOW));
    let pending = [("pending", 0), ("pending", 0)];
    for status in ExecutionStatus::ALL {
        let goes_on = matches!(
            status,
            ExecutionStatus::Pending | ExecutionStatus::Running | ExecutionStatus::Paused | ExecutionStatus::Waiting
        );
        assert_eq!(ahead(&view(&plan, status, &pending)).is_some(), goes_on, "{status:?}");
    }
    for status in ["failed", "cancelled", "compensating", "compensated", "compensation_failed"] {
        let view = view(&plan, ExecutionStatus::Running, &[(status, 10), ("pending", 0)]);
        assert_eq!(ahead(&view), None, "{status}");
    }
    let mut held = view(&plan, ExecutionStatus::Waiting, &[("waiting", 10), ("pending", 0)]);
    held.steps[0].failure = Some(ToolFailure::new(FailureCategory::Unavailable, "closed"));
    assert_eq!(ahead(&held), None);
}

#[test]
fn a_plan_of_a_thousand_steps_and_countless_items_has_a_forecast() {
    let steps: Vec<Value> =
        (0..1_000).map(|at| json!({ "id": format!("s{at}"), "tool": "t.a", "depends_on": [] })).collect();
    let plan = plan_with(json!({ "name": "order", "max_parallel": 10, "steps": steps }));
    let mut world = World::default();
    world.took("a", 100);
    for at in 0..1_000 {
        world.took(&format!("s{at}"), 100);
        world.day.steps.count(&"order".into(), &StepId::new(&format!("s{at}")), |tally| {
            (tally.fanned_out, tally.items) = (1, u64::from(u32::MAX));
        });
    }
    assert!(world.ahead_of(&plan).time.unwrap().median > Millis(10_000));
    (0..1_000).for_each(|at| world.took(&format!("s{at}"), u64::MAX));
    assert!(world.ahead_of(&plan).time.unwrap().p95 > Millis(u64::MAX / 2), "no number is too large");
}
