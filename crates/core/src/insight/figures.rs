//! How the calls of a plan's tools went, in any plan.

use super::day::DailyTally;
use super::tally::ActivityTally;
use crate::id::ToolName;
use crate::plan::Plan;
use crate::time::Millis;
use crate::tool::FailureCategory;
use std::collections::BTreeMap;

/// How the calls of a tool went, in any plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFigures {
    /// Attempts that were answered.
    pub answered: u64,
    /// The 99th percentile of the time until the answer.
    pub p99: Option<Millis>,
    /// Attempts that failed for a reason that may pass: rate limits, outages, timeouts.
    pub passing_failures: u64,
    /// Attempts other than the first of their step.
    pub retries: u64,
    /// Steps that failed for good.
    pub steps_failed: u64,
}

pub type ToolHistory = BTreeMap<ToolName, ToolFigures>;

/// The figures of every tool that a step of the plan calls, from the tallies of some days.
pub fn of<'a>(plan: &Plan, days: impl Iterator<Item = &'a DailyTally>) -> ToolHistory {
    let mut tallies: BTreeMap<_, ActivityTally> =
        plan.steps.iter().map(|step| (step.call.tool.clone(), ActivityTally::default())).collect();
    for day in days {
        for (tool, known) in &mut tallies {
            if let Some(tally) = day.tools.get(tool.as_str()) {
                known.add(tally);
            }
        }
    }
    tallies.into_iter().map(|(tool, tally)| (tool, figures(&tally))).collect()
}

fn figures(tally: &ActivityTally) -> ToolFigures {
    let passing = [FailureCategory::RateLimited, FailureCategory::Unavailable, FailureCategory::Timeout];
    ToolFigures {
        answered: tally.attempt_ms.count(),
        p99: tally.attempt_ms.percentile(99).map(Millis),
        passing_failures: passing.iter().filter_map(|category| tally.failures.get(category)).sum(),
        retries: tally.retries,
        steps_failed: tally.steps_failed,
    }
}
