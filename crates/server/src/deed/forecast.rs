//! What the journal's own history says ahead of a plan, or of the rest of an execution, as people and programs get it.

use crate::desk::Desk;
use crate::words::span;
use rutter_core::execution::view::{Status, View};
use rutter_core::id::StepId;
use rutter_core::insight::forecast::{self, Forecast, Risk};
use rutter_core::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;

/// Of each list of steps.
const STEPS_MAX: usize = 20;
/// In a sentence.
const NAMED_MAX: usize = 3;

/// What to expect, judged by the last forty days.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Forecast")]
pub(crate) struct Told {
    /// All of it in words.
    pub(crate) text: String,
    /// That no step fails for good; left out when there is a step of which nothing is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    chance_percent: Option<f64>,
    /// Until the end if it completes: half of the time it is not longer than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_ms: Option<u64>,
    /// Nineteen times of twenty it is not longer than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    p95_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    riskiest: Option<ToldRisk>,
    /// Executions of this plan that ended, and those of them that completed.
    ended: u64,
    completed: u64,
    /// Neither they nor their tools have a history.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown_steps: Vec<String>,
    /// They run for longer than they ever took.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    overdue_steps: Vec<String>,
    /// Nobody knows how long their approval takes; it is not in the time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    untimed_approvals: Vec<String>,
}

/// The step that is most likely to fail for good, where one has ever failed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Risk")]
struct ToldRisk {
    step: String,
    chance_percent: f64,
    /// How often it was tried before, in this plan.
    tries: u64,
}

pub(crate) fn of_plan(desk: &Desk, plan: &Plan) -> Told {
    Told::new(&forecast::of_plan(plan, &desk.insight.history(plan)), false)
}

/// `None` when it goes forward no more, or when a step has failed already.
pub(crate) fn of_execution(desk: &Desk, plan: &Plan, view: &View) -> Option<Told> {
    let now = desk.engine.now();
    let ahead = forecast::of_execution(plan, &desk.insight.history(plan), view, now)?;
    Some(Told::new(&ahead, view.status != Status::Pending))
}

impl Told {
    fn new(ahead: &Forecast, is_under_way: bool) -> Told {
        let names = |steps: &[StepId]| steps.iter().take(STEPS_MAX).map(ToString::to_string).collect();
        let risk = |risk: &Risk| ToldRisk {
            step: risk.step.to_string(),
            chance_percent: percent(risk.chance),
            tries: risk.tries,
        };
        Told {
            text: text(ahead, is_under_way),
            chance_percent: ahead.chance.map(percent),
            expected_ms: ahead.time.map(|time| time.median.0),
            p95_ms: ahead.time.map(|time| time.p95.0),
            riskiest: ahead.riskiest.as_ref().map(risk),
            ended: ahead.ended.all(),
            completed: ahead.ended.completed,
            unknown_steps: names(&ahead.unknown),
            overdue_steps: names(&ahead.overdue),
            untimed_approvals: names(&ahead.asking),
        }
    }
}

fn text(ahead: &Forecast, is_under_way: bool) -> String {
    let mut said = Vec::new();
    if let Some(chance) = ahead.chance {
        let from = if is_under_way { " from here" } else { "" };
        said.push(format!("completes{from} in {} of 100 cases", roughly(chance)));
    }
    if let Some(time) = ahead.time {
        let left = if is_under_way { " left" } else { "" };
        said.push(match time.median == time.p95 {
            true => format!("about {}{left}", span(time.median)),
            false => format!("about {}{left}, nearly always within {}", span(time.median), span(time.p95)),
        });
    }
    if let Some(Risk { step, chance, .. }) = &ahead.riskiest {
        said.push(format!("the riskiest step is {step}, which fails in {} of 100", roughly(*chance)));
    }
    if !ahead.overdue.is_empty() {
        said.push(format!("{} longer than ever before", verb(&ahead.overdue, "runs", "run")));
    }
    if !ahead.asking.is_empty() {
        said.push(format!("not counting how long the approval of {} takes", named(&ahead.asking)));
    }
    if !ahead.unknown.is_empty() {
        said.push(format!("no history of {}", named(&ahead.unknown)));
    }
    if ahead.ended.all() > 0 {
        said.push(format!("{} of {} executions completed before", ahead.ended.completed, ahead.ended.all()));
    }
    said.join("; ")
}

fn verb(steps: &[StepId], one: &str, several: &str) -> String {
    format!("{} {}", named(steps), if steps.len() == 1 { one } else { several })
}

fn named(steps: &[StepId]) -> String {
    let first: Vec<&str> = steps.iter().take(NAMED_MAX).map(StepId::as_str).collect();
    match steps.len() {
        count if count > NAMED_MAX => format!("{} and {} more", first.join(", "), count - NAMED_MAX),
        _ => first.join(", "),
    }
}

/// With one digit after the point; what is not certain is never said to be.
fn percent(chance: f64) -> f64 {
    let rounded = (chance * 1_000.0).round() / 10.0;
    if chance < 1.0 { rounded.min(99.9) } else { rounded }
}

/// Where digits after the point would only look exact, there are none.
fn roughly(chance: f64) -> String {
    match percent(chance) {
        percent @ 1.0..=99.0 => format!("{percent:.0}"),
        percent => percent.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_certain_is_never_said_to_be() {
        for (chance, said) in [(1.0, 100.0), (0.999_99, 99.9), (0.876_54, 87.7), (0.000_1, 0.0)] {
            assert_eq!(percent(chance), said);
        }
        for (chance, said) in [(1.0, "100"), (0.998, "99.8"), (0.725, "72"), (0.004, "0.4")] {
            assert_eq!(roughly(chance), said);
        }
    }
}
