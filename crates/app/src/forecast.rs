//! A forecast for a plan, or for the rest of an execution, from the history in the journals.

use crate::app::App;
use crate::wording::span;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus};
use rutter_core::id::StepId;
use rutter_core::insight::forecast::{self, Forecast, StepRisk};
use rutter_core::plan::Plan;
use schemars::JsonSchema;
use serde::Serialize;

/// The most steps in each list.
const STEPS_MAX: usize = 20;
/// The most steps named in a sentence.
const NAMED_MAX: usize = 3;

/// A forecast from the last forty days.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Forecast")]
pub struct ForecastJson {
    /// The forecast in words.
    pub text: String,
    /// The chance that no step fails for good; omitted if a step has no history.
    #[serde(skip_serializing_if = "Option::is_none")]
    chance_percent: Option<f64>,
    /// The median time until completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_ms: Option<u64>,
    /// The 95th percentile of the time until completion.
    #[serde(skip_serializing_if = "Option::is_none")]
    p95_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    riskiest: Option<RiskJson>,
    /// Executions of this plan that ended, and how many of them completed.
    ended: u64,
    completed: u64,
    /// Steps without history, neither their own nor their tool's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unknown_steps: Vec<String>,
    /// Steps that already run longer than they ever took.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    overdue_steps: Vec<String>,
    /// Steps whose approval time is unknown and not included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    untimed_approvals: Vec<String>,
}

/// The step that is most likely to fail for good, if any ever failed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Risk")]
struct RiskJson {
    step: String,
    chance_percent: f64,
    /// How often it was tried in this plan.
    tries: u64,
}

pub fn of_plan(app: &App, plan: &Plan) -> ForecastJson {
    ForecastJson::new(&forecast::of_plan(plan, &app.insight.history(plan)), false)
}

/// `None` if the execution no longer moves forward, or if a step has already failed.
pub fn of_execution(app: &App, plan: &Plan, view: &ExecutionSnapshot) -> Option<ForecastJson> {
    let now = app.engine.now();
    let ahead = forecast::of_execution(plan, &app.insight.history(plan), view, now)?;
    Some(ForecastJson::new(&ahead, view.status != ExecutionStatus::Pending))
}

impl ForecastJson {
    fn new(ahead: &Forecast, is_under_way: bool) -> ForecastJson {
        let names = |steps: &[StepId]| steps.iter().take(STEPS_MAX).map(ToString::to_string).collect();
        let risk = |risk: &StepRisk| RiskJson {
            step: risk.step.to_string(),
            chance_percent: percent(risk.chance),
            tries: risk.tries,
        };
        ForecastJson {
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
    let mut lines = Vec::new();
    if let Some(chance) = ahead.chance {
        let from = if is_under_way { " from here" } else { "" };
        lines.push(format!("completes{from} in {} of 100 cases", roughly(chance)));
    }
    if let Some(time) = ahead.time {
        let left = if is_under_way { " left" } else { "" };
        lines.push(match time.median == time.p95 {
            true => format!("about {}{left}", span(time.median)),
            false => format!("about {}{left}, nearly always within {}", span(time.median), span(time.p95)),
        });
    }
    if let Some(StepRisk { step, chance, .. }) = &ahead.riskiest {
        lines.push(format!("the riskiest step is {step}, which fails in {} of 100", roughly(*chance)));
    }
    if !ahead.overdue.is_empty() {
        lines.push(format!("{} longer than ever before", verb(&ahead.overdue, "runs", "run")));
    }
    if !ahead.asking.is_empty() {
        lines.push(format!("not counting how long the approval of {} takes", named(&ahead.asking)));
    }
    if !ahead.unknown.is_empty() {
        lines.push(format!("no history of {}", named(&ahead.unknown)));
    }
    if ahead.ended.all() > 0 {
        lines.push(format!("{} of {} executions completed before", ahead.ended.completed, ahead.ended.all()));
    }
    lines.join("; ")
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

/// Rounded to one decimal; 100 only if it is certain.
fn percent(chance: f64) -> f64 {
    let rounded = (chance * 1_000.0).round() / 10.0;
    if chance < 1.0 { rounded.min(99.9) } else { rounded }
}

/// Without decimals where these would only look precise.
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
    fn a_chance_is_never_rounded_to_certainty() {
        for (chance, message) in [(1.0, 100.0), (0.999_99, 99.9), (0.876_54, 87.7), (0.000_1, 0.0)] {
            assert_eq!(percent(chance), message);
        }
        for (chance, statement) in [(1.0, "100"), (0.998, "99.8"), (0.725, "72"), (0.004, "0.4")] {
            assert_eq!(roughly(chance), statement);
        }
    }
}
