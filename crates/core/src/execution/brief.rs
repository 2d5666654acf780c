//! A summary of the execution in a few hundred words, for an agent that knows nothing else of it.

use super::step::StepStage;
use super::view::PendingQuestion;
use super::{Execution, ExecutionPhase};
use crate::plan::Driver;
use crate::text::cut;
use crate::tool::Safety;
use std::fmt::{self, Write};

/// About 800 tokens.
const BRIEF_CHARS_MAX: usize = 3_000;
/// Limits of a list in characters, tried in turn until the brief is short enough; the rest of a list is counted.
const LIST_CHARS: [usize; 4] = [360, 180, 90, 40];
const TEXT_CHARS_MAX: usize = 240;

impl Execution {
    /// Goal, done, pending, next allowed action, blocked by, do not repeat: at most about 800 tokens.
    pub fn brief(&self) -> String {
        let mut brief = String::new();
        for list_chars in LIST_CHARS {
            brief = self.brief_with(list_chars);
            if brief.chars().count() <= BRIEF_CHARS_MAX {
                break;
            }
        }
        brief
    }

    fn brief_with(&self, list_chars: usize) -> String {
        let mut text = String::new();
        let line = |text: &mut String, label: &str, rest: &str| {
            if !rest.is_empty() {
                writeln!(text, "{label}: {rest}").expect("writing to a string cannot fail");
            }
        };
        let steps = |stages: &[StepStage]| {
            let chosen = (0..self.steps.len()).filter(|step| stages.contains(&self.steps[*step].stage));
            list(chosen.map(|step| self.plan.steps[step].id.to_string()), list_chars)
        };
        let settled = self.steps.len() - self.unsettled;
        line(
            &mut text,
            "Execution",
            &format!(
                "{} of plan {:?}, revision {}",
                self.identity.execution,
                cut(&self.plan.name, TEXT_CHARS_MAX),
                self.revision
            ),
        );
        line(
            &mut text,
            "Goal",
            &cut(
                if self.plan.goal.is_empty() { &self.plan.about.description } else { &self.plan.goal },
                TEXT_CHARS_MAX,
            ),
        );
        line(
            &mut text,
            "Status",
            &format!(
                "{}, {settled} of {} steps finished, driven by {}",
                self.status().as_str(),
                self.steps.len(),
                driver(self.driver)
            ),
        );
        line(&mut text, "Done", &steps(&[StepStage::Completed]));
        line(&mut text, "Failed", &steps(&[StepStage::Failed, StepStage::Failing, StepStage::Held]));
        line(&mut text, "Skipped or cancelled", &steps(&[StepStage::Skipped, StepStage::Cancelled]));
        line(&mut text, "Under way", &steps(&[StepStage::Begun]));
        line(&mut text, "Pending", &steps(&[StepStage::Waiting]));
        let once = (0..self.steps.len()).filter(|step| {
            let touched = self.steps[*step].parts.iter().any(|part| part.effect.is_some());
            touched && self.plan.steps[*step].call.safety == Safety::Once
        });
        line(
            &mut text,
            "Do not repeat (each call has its own effect)",
            &list(once.map(|step| self.plan.steps[step].id.to_string()), list_chars),
        );
        let questions = self.questions();
        line(&mut text, "Blocked by", &list(questions.iter().map(ToString::to_string), list_chars));
        let deviations = self.deviations.iter().map(|(kind, step, _)| {
            let step = step.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("{} {step}", format!("{kind:?}").to_lowercase())
        });
        line(&mut text, "Differs from the plan", &list(deviations, list_chars));
        let context = list(self.context.iter().map(|(key, value)| format!("{key}={value}")), list_chars);
        line(&mut text, "Context", &context);
        line(&mut text, "Next", &self.next_action(&questions));
        text
    }

    fn next_action(&self, questions: &[PendingQuestion]) -> String {
        if let ExecutionPhase::Ended { .. } = self.phase {
            return "nothing; the execution has ended (it can still be compensated)".into();
        }
        if self.paused {
            return "nothing until it is resumed".into();
        }
        if self.replanning {
            return "send the new plan, or abandon replanning".into();
        }
        if let Some(ask) = questions.iter().find(|ask| !matches!(ask, PendingQuestion::Approval { .. })) {
            return format!("answer: {ask}");
        }
        match (self.driver, self.agenda.ready.first()) {
            (Driver::Server, _) => "wait; Rutter makes the calls".into(),
            (Driver::Agent, Some(turn)) => {
                let step = &self.plan.steps[turn.part.step()];
                let parameters = self.prepare(turn.part, crate::journal::event::CallSide::Do);
                let parameters = parameters.map_or_else(|failure| format!("({failure})"), |p| p.parameters.to_string());
                format!(
                    "call {} for step {} with {}, and record start and end",
                    step.call.tool,
                    step.id,
                    cut(&parameters, TEXT_CHARS_MAX)
                )
            }
            (Driver::Agent, None) => "finish what is under way and record it".into(),
        }
    }
}

fn driver(driver: Driver) -> &'static str {
    match driver {
        Driver::Server => "Rutter",
        Driver::Agent => "an agent",
    }
}

impl fmt::Display for PendingQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PendingQuestion::Approval { part, tool, .. } => {
                write!(f, "a person must approve {part} ({tool})")
            }
            PendingQuestion::Doubt { part, .. } => write!(f, "a person must say whether {part} happened"),
            PendingQuestion::Failure { step, failures, .. } => {
                let why =
                    failures.first().map(|(_, failure)| cut(&failure.to_string(), TEXT_CHARS_MAX)).unwrap_or_default();
                write!(f, "{step} failed ({why}): retry, skip, resolve, stop, continue, compensate or replan")
            }
            PendingQuestion::Compensation { part, .. } => {
                write!(f, "undoing {part} failed: retry, resolve or skip")
            }
            PendingQuestion::Limit { limit, .. } => {
                write!(f, "limit reached ({limit:?}): continue, stop, compensate or replan")
            }
            PendingQuestion::Tool { part, message, person_only, .. } => {
                let who = if *person_only { "a person" } else { "a person or an agent" };
                write!(f, "{who} must answer the tool of {part}, which asks {:?}", cut(message, TEXT_CHARS_MAX))
            }
            PendingQuestion::Drift { tool, .. } => {
                write!(f, "{tool} is no longer the tool the plan was checked with")
            }
        }
    }
}

/// As many items as fit, and the number of the others.
fn list(items: impl Iterator<Item = String>, chars_max: usize) -> String {
    let mut text = String::new();
    let mut left_out = 0;
    for item in items {
        if left_out > 0 || text.chars().count() + item.chars().count() + 2 > chars_max {
            left_out += 1;
            if text.is_empty() {
                text = cut(&item, TEXT_CHARS_MAX);
                left_out = 0;
            }
            continue;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&item);
    }
    if left_out > 0 {
        write!(text, " and {left_out} more").expect("writing to a string cannot fail");
    }
    text
}
