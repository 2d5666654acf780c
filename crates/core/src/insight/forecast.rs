//! Forecasts for a plan from its history: the probability that it completes, its duration, its riskiest step.
//!
//! The risk of a step comes from its own history in executions of this plan and, with less weight, from the history of
//! its tool in any plan. Steps are assumed to fail independently. Without data there is no forecast: a plan with a step
//! whose tool was never called gets no probability at all, rather than one half.

mod schedule;

use super::day::DailyTally;
use super::histogram::MergeableHistogram;
use super::steps::StepTally;
use super::tally::OutcomeCounts;
use crate::execution::view::{ExecutionSnapshot, ExecutionStatus, StepSnapshot};
use crate::id::{StepId, ToolName};
use crate::plan::{Plan, Step};
use crate::time::{Millis, Timestamp};
use schedule::{DurationForecast, RemainingStep, spans};
use std::collections::{BTreeMap, HashMap};

/// The history of a tool in other plans counts as at most this many runs of the step itself.
const TOOL_WEIGHT_MAX: f64 = 5.0;
/// The average of the plan's steps counts as this many runs of each step.
const OTHERS_WEIGHT: f64 = 2.0;
/// With this many completions, a step's duration comes from itself, not from its tool.
const COMPLETIONS_ENOUGH: u64 = 3;

/// A forecast. Probabilities are between 0 and 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The probability that no step fails for good. `None` when there are `unknown` steps.
    pub chance: Option<f64>,
    /// The time until the end, if it completes. `None` when there are `unknown` steps.
    pub time: Option<DurationForecast>,
    /// The step that is most likely to fail, if any has ever failed.
    pub riskiest: Option<StepRisk>,
    /// How executions of this plan ended.
    pub ended: OutcomeCounts,
    /// Steps without a history, neither their own nor their tool's.
    pub unknown: Vec<StepId>,
    /// Steps that already run longer than ever before.
    pub overdue: Vec<StepId>,
    /// Steps whose approval has no history; its duration is not in `time`.
    pub asking: Vec<StepId>,
}

/// A step and the probability that it fails for good.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRisk {
    pub step: StepId,
    pub chance: f64,
    /// How often it ran before, in this plan.
    pub tries: u64,
}

/// The history of a plan, from the tallies of some days.
#[derive(Clone, Debug, Default)]
pub struct PlanHistory {
    ended: OutcomeCounts,
    steps: HashMap<StepId, StepTally>,
    tools: BTreeMap<ToolName, ToolTally>,
}

/// The steps of any plan that called a tool.
#[derive(Clone, Debug, Default)]
struct ToolTally {
    failed: u64,
    took_ms: MergeableHistogram,
}

impl PlanHistory {
    pub fn of<'a>(plan: &Plan, days: impl Iterator<Item = &'a DailyTally>) -> PlanHistory {
        let mut history = PlanHistory::default();
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

/// The forecast for an execution that starts now.
pub fn of_plan(plan: &Plan, history: &PlanHistory) -> Forecast {
    look_ahead(plan, history, |_| StepProgress::NotBegun)
}

/// The forecast for the rest of an execution. `None` when it no longer goes forward or a step has failed.
pub fn of_execution(plan: &Plan, history: &PlanHistory, view: &ExecutionSnapshot, now: Timestamp) -> Option<Forecast> {
    let goes_forward = match view.status {
        ExecutionStatus::Pending | ExecutionStatus::Running | ExecutionStatus::Paused | ExecutionStatus::Waiting => {
            true
        }
        ExecutionStatus::Replanning
        | ExecutionStatus::Compensating
        | ExecutionStatus::Completed
        | ExecutionStatus::Partial
        | ExecutionStatus::Failed
        | ExecutionStatus::Cancelled
        | ExecutionStatus::Compensated => false,
    };
    let is_sound = view.steps.iter().all(|step| step.failure.is_none() && !is_off_course(step));
    (goes_forward && is_sound && view.steps.len() == plan.steps.len())
        .then(|| look_ahead(plan, history, |at| StepProgress::of(&view.steps[at], now)))
}

/// Whether a step will not complete, or is being undone or was.
fn is_off_course(step: &StepSnapshot) -> bool {
    matches!(step.status, "failed" | "cancelled" | "compensating" | "compensated" | "compensation_failed")
}

/// The progress of a step.
#[derive(Clone, Copy, Debug)]
enum StepProgress {
    NotBegun,
    /// The time since its start, and the number of items left if it fans out.
    Begun(Millis, Option<u64>),
    Settled,
}

impl StepProgress {
    fn of(step: &StepSnapshot, now: Timestamp) -> StepProgress {
        match (step.status, step.began_at) {
            ("completed" | "skipped", _) => StepProgress::Settled,
            (_, None) => StepProgress::NotBegun,
            (_, Some(began)) => {
                let left = step.items.map(|(at_rest, all)| all.saturating_sub(at_rest) as u64);
                StepProgress::Begun(now.since(began), left)
            }
        }
    }
}

fn look_ahead(plan: &Plan, history: &PlanHistory, stand: impl Fn(usize) -> StepProgress) -> Forecast {
    let mut forecast = Forecast {
        chance: None,
        time: None,
        riskiest: None,
        ended: history.ended,
        unknown: Vec::new(),
        overdue: Vec::new(),
        asking: Vec::new(),
    };
    let all: Vec<StepEvidence<'_>> = plan.steps.iter().map(|step| StepEvidence::of(step, history)).collect();
    let average = average(&all);
    let (mut chance, mut legs) = (1.0, Vec::with_capacity(plan.steps.len()));
    for (at, (step, known)) in plan.steps.iter().zip(&all).enumerate() {
        let stand = stand(at);
        if matches!(stand, StepProgress::Settled) {
            legs.push(RemainingStep::default());
            continue;
        }
        let Some(risk) = known.risk(stand, average) else {
            forecast.unknown.push(step.id.clone());
            continue;
        };
        chance *= 1.0 - risk;
        let is_worse = forecast.riskiest.as_ref().is_none_or(|worst| worst.chance < risk);
        if known.has_failed() && is_worse {
            forecast.riskiest = Some(StepRisk { step: step.id.clone(), chance: risk, tries: known.tries() });
        }
        match known.leg(step, stand) {
            Some(leg) => {
                if leg.is_overdue {
                    forecast.overdue.push(step.id.clone());
                }
                if step.approval.is_some() && leg.asked.is_none() && matches!(stand, StepProgress::NotBegun) {
                    forecast.asking.push(step.id.clone());
                }
                legs.push(leg);
            }
            // It failed every time it ran.
            None => legs.push(RemainingStep::default()),
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

/// The history of one step and of its tool.
struct StepEvidence<'a> {
    own: Option<&'a StepTally>,
    tool: Option<&'a ToolTally>,
}

/// The average probability that a step of this plan fails. Half a failure is added: a step that never failed is not
/// certain to succeed, and the fewer its runs, the less certain.
fn average(steps: &[StepEvidence<'_>]) -> f64 {
    let (tries, failed) = steps
        .iter()
        .map(StepEvidence::evidence)
        .fold((0.0, 0.0), |(tries, failed), next| (tries + next.0, failed + next.1));
    (failed + 0.5) / (tries + 1.0)
}

impl StepEvidence<'_> {
    fn of<'a>(step: &Step, history: &'a PlanHistory) -> StepEvidence<'a> {
        StepEvidence { own: history.steps.get(&step.id), tool: history.tools.get(&step.call.tool) }
    }

    /// How often the step, or an item of it, completed or failed in executions of this plan.
    fn tries(&self) -> u64 {
        self.own.map_or(0, |own| own.took_ms.count() + own.failed)
    }

    fn has_failed(&self) -> bool {
        self.own.is_some_and(|own| own.failed > 0) || self.tool.is_some_and(|tool| tool.failed > 0)
    }

    /// Its runs and failures, with some runs of its tool in other steps.
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

    /// The probability that it fails from here. The shorter its history, the closer it is to the average.
    fn risk(&self, stand: StepProgress, average: f64) -> Option<f64> {
        let ((tries, failed), passed_over) = (self.evidence(), self.passed_over(stand));
        if tries + passed_over == 0.0 {
            return None;
        }
        let each = (failed + OTHERS_WEIGHT * average) / (tries + OTHERS_WEIGHT);
        Some((1.0 - passed_over) * (1.0 - (1.0 - each).powf(self.items(stand))))
    }

    /// The probability that its condition is false.
    fn passed_over(&self, stand: StepProgress) -> f64 {
        match (stand, self.own) {
            (StepProgress::NotBegun, Some(own)) if own.passed_over > 0 => {
                own.passed_over as f64 / (self.times() + own.passed_over as f64)
            }
            _ => 0.0,
        }
    }

    /// How often an execution ran the step instead of skipping it.
    fn times(&self) -> f64 {
        match self.own {
            Some(own) if own.fanned_out > 0 => own.fanned_out as f64,
            _ => self.tries() as f64,
        }
    }

    /// The number of items left; one if it does not fan out.
    fn items(&self, stand: StepProgress) -> f64 {
        match (stand, self.own) {
            (StepProgress::Begun(_, Some(left)), _) => left as f64,
            (_, Some(own)) if own.fanned_out > 0 => own.items as f64 / own.fanned_out as f64,
            _ => 1.0,
        }
    }

    /// The rest of the step. `None` when it never completed.
    fn leg(&self, step: &Step, stand: StepProgress) -> Option<RemainingStep> {
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
            // Items start one after the other; the start of the current ones is not known here.
            StepProgress::Begun(elapsed, None) => elapsed.0,
            StepProgress::Begun(_, Some(_)) | StepProgress::NotBegun | StepProgress::Settled => 0,
        };
        let asked = self.own.map(|own| own.asked_ms.clone()).filter(|asked| !asked.is_empty());
        let asks = matches!(stand, StepProgress::NotBegun) && step.approval.is_some();
        let is_begun = matches!(stand, StepProgress::Begun(..));
        Some(RemainingStep {
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
