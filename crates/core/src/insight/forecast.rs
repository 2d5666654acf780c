//! What will probably come of a plan, from what came of it before: how likely it completes, how long that takes, which
//! step is the riskiest.
//!
//! A step is judged by its own history in executions of this plan, and a little by that of its tool anywhere. Steps are
//! taken to fail independently of each other. Where nothing is known nothing is said: a plan with a step that neither
//! it nor any other plan has called yet has no chance here, not a chance of a half.

mod schedule;

use super::day::Day;
use super::histogram::Histogram;
use super::steps::StepTally;
use super::tally::Endings;
use crate::execution::view::{Status, StepView, View};
use crate::id::{StepId, ToolName};
use crate::plan::{Plan, Step};
use crate::time::{Millis, Timestamp};
use schedule::{Leg, Span, spans};
use std::collections::{BTreeMap, HashMap};

/// What is known of a tool from anywhere counts as at most so many tries of the step itself.
const TOOL_WEIGHT_MAX: f64 = 5.0;
/// What is known of the plan's steps together counts as so many tries of each.
const OTHERS_WEIGHT: f64 = 2.0;
/// A step that was completed so often is timed by itself, not by its tool.
const COMPLETIONS_ENOUGH: u64 = 3;

/// What is to be expected. Chances are between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// That no step fails for good. `None` when there are steps of which nothing is known.
    pub chance: Option<f64>,
    /// Until the end, if it completes. `None` when there are steps of which nothing is known.
    pub time: Option<Span>,
    /// The step that is most likely to fail, where one has ever failed.
    pub riskiest: Option<Risk>,
    /// How executions of this plan ended.
    pub ended: Endings,
    /// Neither they nor their tools have a history.
    pub unknown: Vec<StepId>,
    /// They run for longer than they ever took.
    pub overdue: Vec<StepId>,
    /// Nobody knows how long their approval takes, which is therefore not in the time.
    pub asking: Vec<StepId>,
}

/// One step, and how likely it is to fail for good.
#[derive(Clone, Debug, PartialEq)]
pub struct Risk {
    pub step: StepId,
    pub chance: f64,
    /// How often it was tried before, in this plan.
    pub tries: u64,
}

/// What some days know of a plan.
#[derive(Clone, Debug, Default)]
pub struct History {
    ended: Endings,
    steps: HashMap<StepId, StepTally>,
    tools: BTreeMap<ToolName, ToolTally>,
}

/// Steps of any plan that called a tool.
#[derive(Clone, Debug, Default)]
struct ToolTally {
    failed: u64,
    took_ms: Histogram,
}

impl History {
    pub fn of<'a>(plan: &Plan, days: impl Iterator<Item = &'a Day>) -> History {
        let mut history = History::default();
        let tools = plan.steps.iter().map(|step| (step.call.tool.clone(), ToolTally::default()));
        history.tools = tools.collect();
        for day in days {
            if let Some(tally) = day.plans.get(&plan.name) {
                history.ended.add(&tally.ended);
            }
            for (step, tally) in day.steps.of(&plan.name) {
                history.steps.entry(step.clone()).or_default().add(tally);
            }
            for (tool, known) in &mut history.tools {
                if let Some(tally) = day.tools.get(tool.as_str()) {
                    known.failed += tally.steps_failed;
                    known.took_ms.add(&tally.step_ms);
                }
            }
        }
        history
    }
}

/// Of an execution that begins now.
pub fn of_plan(plan: &Plan, history: &History) -> Forecast {
    look_ahead(plan, history, |_| Stand::NotBegun)
}

/// Of the rest of an execution. `None` when it goes forward no more, or when a step has failed already.
pub fn of_execution(plan: &Plan, history: &History, view: &View, now: Timestamp) -> Option<Forecast> {
    let goes_forward = match view.status {
        Status::Pending | Status::Running | Status::Paused | Status::Waiting => true,
        Status::Replanning
        | Status::Compensating
        | Status::Completed
        | Status::Partial
        | Status::Failed
        | Status::Cancelled
        | Status::Compensated => false,
    };
    let is_sound = view.steps.iter().all(|step| step.failure.is_none() && !is_off_course(step));
    (goes_forward && is_sound && view.steps.len() == plan.steps.len())
        .then(|| look_ahead(plan, history, |at| Stand::of(&view.steps[at], now)))
}

/// It will not complete, or has completed and is being undone.
fn is_off_course(step: &StepView) -> bool {
    matches!(step.status, "failed" | "cancelled" | "compensating" | "compensated" | "compensation_failed")
}

/// How far a step has come.
#[derive(Clone, Copy, Debug)]
enum Stand {
    NotBegun,
    /// Since when, and how many of its items are left if it fans out.
    Begun(Millis, Option<u64>),
    Settled,
}

impl Stand {
    fn of(step: &StepView, now: Timestamp) -> Stand {
        match (step.status, step.began_at) {
            ("completed" | "skipped", _) => Stand::Settled,
            (_, None) => Stand::NotBegun,
            (_, Some(began)) => {
                let left = step.items.map(|(at_rest, all)| all.saturating_sub(at_rest) as u64);
                Stand::Begun(now.since(began), left)
            }
        }
    }
}

fn look_ahead(plan: &Plan, history: &History, stand: impl Fn(usize) -> Stand) -> Forecast {
    let mut forecast = Forecast {
        chance: None,
        time: None,
        riskiest: None,
        ended: history.ended,
        unknown: Vec::new(),
        overdue: Vec::new(),
        asking: Vec::new(),
    };
    let all: Vec<Known<'_>> = plan.steps.iter().map(|step| Known::of(step, history)).collect();
    let average = average(&all);
    let (mut chance, mut legs) = (1.0, Vec::with_capacity(plan.steps.len()));
    for (at, (step, known)) in plan.steps.iter().zip(&all).enumerate() {
        let stand = stand(at);
        if matches!(stand, Stand::Settled) {
            legs.push(Leg::default());
            continue;
        }
        let Some(risk) = known.risk(stand, average) else {
            forecast.unknown.push(step.id.clone());
            continue;
        };
        chance *= 1.0 - risk;
        let is_worse = forecast.riskiest.as_ref().is_none_or(|worst| worst.chance < risk);
        if known.has_failed() && is_worse {
            forecast.riskiest = Some(Risk { step: step.id.clone(), chance: risk, tries: known.tries() });
        }
        match known.leg(step, stand) {
            Some(leg) => {
                if leg.is_overdue {
                    forecast.overdue.push(step.id.clone());
                }
                if step.approval.is_some() && leg.asked.is_none() && matches!(stand, Stand::NotBegun) {
                    forecast.asking.push(step.id.clone());
                }
                legs.push(leg);
            }
            // It has failed whenever it was tried.
            None => legs.push(Leg::default()),
        }
    }
    if forecast.unknown.is_empty() {
        forecast.chance = Some(chance);
        forecast.time = spans(plan, &legs);
    } else {
        forecast.asking.clear();
    }
    forecast
}

/// What is known of one step.
struct Known<'a> {
    own: Option<&'a StepTally>,
    tool: Option<&'a ToolTally>,
}

/// How likely a step of this plan is to fail, one like the other. Half a failure is added that nobody has seen: what
/// has never failed is not certain to succeed, and the less so the less often it was tried.
fn average(steps: &[Known<'_>]) -> f64 {
    let (tries, failed) = steps
        .iter()
        .map(Known::evidence)
        .fold((0.0, 0.0), |(tries, failed), next| (tries + next.0, failed + next.1));
    (failed + 0.5) / (tries + 1.0)
}

impl Known<'_> {
    fn of<'a>(step: &Step, history: &'a History) -> Known<'a> {
        Known { own: history.steps.get(&step.id), tool: history.tools.get(&step.call.tool) }
    }

    /// Times the step, or an item of it, came to an end in executions of this plan.
    fn tries(&self) -> u64 {
        self.own.map_or(0, |own| own.took_ms.count() + own.failed)
    }

    fn has_failed(&self) -> bool {
        self.own.is_some_and(|own| own.failed > 0) || self.tool.is_some_and(|tool| tool.failed > 0)
    }

    /// How often it was tried and failed, with a few tries of its tool elsewhere.
    fn evidence(&self) -> (f64, f64) {
        let (tries, failed) = (self.tries(), self.own.map_or(0, |own| own.failed));
        let (all_tries, all_failed) =
            self.tool.map_or((0, 0), |tool| (tool.took_ms.count() + tool.failed, tool.failed));
        let elsewhere = all_tries.saturating_sub(tries) as f64;
        let failed_elsewhere = (all_failed.saturating_sub(failed) as f64).min(elsewhere);
        let weight = elsewhere.min(TOOL_WEIGHT_MAX);
        let from_tool = if elsewhere > 0.0 { weight * failed_elsewhere / elsewhere } else { 0.0 };
        (tries as f64 + weight, failed as f64 + from_tool)
    }

    /// How likely it is to fail from here. The less is known of it, the more it is like the others.
    fn risk(&self, stand: Stand, average: f64) -> Option<f64> {
        let ((tries, failed), passed_over) = (self.evidence(), self.passed_over(stand));
        if tries + passed_over == 0.0 {
            return None;
        }
        let each = (failed + OTHERS_WEIGHT * average) / (tries + OTHERS_WEIGHT);
        Some((1.0 - passed_over) * (1.0 - (1.0 - each).powf(self.items(stand))))
    }

    /// How likely its condition is false.
    fn passed_over(&self, stand: Stand) -> f64 {
        match (stand, self.own) {
            (Stand::NotBegun, Some(own)) if own.passed_over > 0 => {
                own.passed_over as f64 / (self.times() + own.passed_over as f64)
            }
            _ => 0.0,
        }
    }

    /// How often an execution came to the step and did not pass it over.
    fn times(&self) -> f64 {
        match self.own {
            Some(own) if own.fanned_out > 0 => own.fanned_out as f64,
            _ => self.tries() as f64,
        }
    }

    /// Items that are still to be done; one, if it does not fan out.
    fn items(&self, stand: Stand) -> f64 {
        match (stand, self.own) {
            (Stand::Begun(_, Some(left)), _) => left as f64,
            (_, Some(own)) if own.fanned_out > 0 => own.items as f64 / own.fanned_out as f64,
            _ => 1.0,
        }
    }

    /// How long it may take from here. `None` when it was never completed.
    fn leg(&self, step: &Step, stand: Stand) -> Option<Leg> {
        let mut took = self.own.map(|own| own.took_ms.clone()).unwrap_or_default();
        if took.count() < COMPLETIONS_ENOUGH
            && let Some(tool) = self.tool
        {
            took.add(&tool.took_ms);
        }
        if took.is_empty() {
            return None;
        }
        let at_once = step.for_each.as_ref().map_or(1, |fan_out| fan_out.max_parallel.max(1));
        let rounds = (self.items(stand) / f64::from(at_once)).ceil() as u32;
        let elapsed = match stand {
            // Items began one after the other; since when the present ones run is not known here.
            Stand::Begun(elapsed, None) => elapsed.0,
            Stand::Begun(_, Some(_)) | Stand::NotBegun | Stand::Settled => 0,
        };
        let asked = self.own.map(|own| own.asked_ms.clone()).filter(|asked| !asked.is_empty());
        let asks = matches!(stand, Stand::NotBegun) && step.approval.is_some();
        let is_begun = matches!(stand, Stand::Begun(..));
        Some(Leg {
            is_overdue: is_begun && elapsed > took.max(),
            is_begun,
            rounds,
            elapsed_ms: elapsed,
            passed_over: self.passed_over(stand),
            asked: asked.filter(|_| asks),
            took,
        })
    }
}
