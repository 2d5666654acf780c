//! What reaches an execution, turned into what it decides: answers of tools, what they say meanwhile, letters.

use super::{Drive, Stop};
use crate::fleet::{Report, Said};
use crate::flight::Landed;
use crate::signal::{self as letter, Sheet, Signal};
use rutter_core::actor::Actor;
use rutter_core::execution::input::{Input, Refusal};
use rutter_core::id::PartId;
use rutter_core::journal::event::Side;
use rutter_core::plan::schema::Schema;
use rutter_core::port::journal::Letter;
use rutter_core::port::tools::{Elicitation, Return};
use rutter_core::tool::{Category, Failure, Outcome};

impl Drive {
    pub(super) fn land(&mut self, landed: Landed) -> Result<(), Stop> {
        let Landed { part, side, attempt, tool, returned } = landed;
        self.aloft.retain(|call| (&call.part, call.side, call.attempt) != (&part, side, attempt));
        self.asked.remove(&(part.clone(), attempt));
        let outcome = match returned {
            Return::Outcome(outcome) => self.fitting(&part, side, outcome),
            Return::Drifted { found } => {
                self.decide(&Actor::rutter(), Input::ReportDrift { tool: tool.clone(), found })?.ok();
                let message =
                    format!("{tool} is no longer the tool the plan was checked with; nothing was sent");
                Outcome::NotDone(Failure::new(Category::Unavailable, message))
            }
        };
        let input = Input::Returned { part, side, attempt, outcome };
        if let Err(refusal) = self.decide(&Actor::rutter(), input)? {
            tracing::warn!(execution = %self.execution.identity().execution, "an answer was refused: {refusal}");
        }
        Ok(())
    }

    /// A tool says something in the middle of its call.
    pub(super) fn hear(&mut self, report: Report) -> Result<(), Stop> {
        let Report { part, side, attempt, said } = report;
        let refused = match said {
            Said::Accepted { ticket, recorded } => {
                let input = Input::Accepted { part, side, attempt, ticket };
                let refused = self.decide(&Actor::rutter(), input)?.err();
                self.pending.recorded.push(recorded);
                refused
            }
            Said::Asked { question: Elicitation { message, schema }, answer } => {
                let asked = (part.clone(), attempt);
                let input = Input::ToolAsks { part, side, attempt, message, schema };
                let refused = self.decide(&Actor::rutter(), input)?.err();
                if refused.is_none() {
                    self.asked.insert(asked, answer);
                }
                refused
            }
        };
        if let Some(refusal) = refused {
            tracing::warn!(execution = %self.execution.identity().execution, "a tool was not heard: {refusal}");
        }
        Ok(())
    }

    /// A result that is not what the plan says it must be is no result; that something was done stays possible.
    fn fitting(&mut self, part: &PartId, side: Side, outcome: Outcome) -> Outcome {
        let (Outcome::Done { result, .. }, Side::Do | Side::Fallback) = (&outcome, side) else {
            return outcome;
        };
        let plan = self.execution.plan();
        let Some(step) = plan.find(part.step.as_str()).map(|at| &plan.steps[at]) else { return outcome };
        let Some(wanted) = &step.output else { return outcome };
        let schema = self.schemas.entry(step.id.clone()).or_insert_with(|| Schema::compile(wanted).ok());
        // One that no longer compiles was checked when the plan was; it cannot refuse anything.
        let violation = schema.as_ref().and_then(|schema| schema.validate(result).into_iter().next());
        match violation {
            None => outcome,
            Some(violation) => {
                let message =
                    format!("the tool answered, but result{}: {}", violation.pointer, violation.message);
                Outcome::Maybe(Failure::new(Category::Protocol, message))
            }
        }
    }

    pub(super) async fn read(&mut self, letter: Letter) -> Result<(), Stop> {
        if !self.seen.insert(letter.number) {
            return Ok(());
        }
        let sheet: Result<Sheet, Refusal> = serde_json::from_slice(&letter.bytes)
            .map_err(|error| Refusal::new("engine.unreadable", error.to_string()));
        let (key, input) = match sheet {
            Ok(Sheet { key, seen, said }) => match self.has_changed_since(seen) {
                Some(refusal) => (key, Err(refusal)),
                None => (key, self.input_of(said).await),
            },
            Err(refusal) => (None, Err(refusal)),
        };
        let decided = match input {
            Ok(input) => {
                let answered = match &input {
                    Input::AnswerTool { part, attempt, answer, .. } => {
                        Some((part.clone(), *attempt, answer.as_deref().cloned()))
                    }
                    _ => None,
                };
                let decided = self.decide(&letter.actor, input)?;
                self.pending.answered.extend(answered.filter(|_| decided.is_ok()));
                decided
            }
            Err(refusal) => Err(refusal),
        };
        self.pending.consumed.push(letter.number);
        self.pending.forgotten.extend(key.filter(|_| decided.is_err()));
        self.pending.replies.push((letter.number, decided));
        Ok(())
    }

    /// Whoever has seen less than there is now may want something else by now.
    fn has_changed_since(&self, seen: Option<u64>) -> Option<Refusal> {
        let (seen, entries) = (seen?, self.execution.entries());
        let message = || format!("it has changed since: it had {seen} entries and has {entries} now");
        let refusal = || Refusal::new("engine.changed", message()).hint("look at it again, then decide");
        (seen != entries).then(refusal)
    }

    async fn input_of(&self, said: letter::Said) -> Result<Input, Refusal> {
        let unreadable = |why: String| Refusal::new("engine.unreadable", why);
        let signal = match said {
            letter::Said::Signal(signal) => signal,
            letter::Said::Control { control, reason } => control.signal(&self.execution, reason)?,
        };
        let plan = match &signal {
            Signal::Replan { plan, revision, .. } => {
                let tenant = &self.execution.identity().tenant;
                let saved = self.shared.query.plan(tenant, plan, Some(*revision)).await;
                let saved = saved.map_err(|error| unreadable(error.to_string()))?;
                Some(
                    saved
                        .ok_or_else(|| unreadable(format!("there is no plan {plan} revision {revision}")))?
                        .plan,
                )
            }
            _ => None,
        };
        signal.into_input(plan).ok_or_else(|| unreadable("the new plan is missing".to_owned()))
    }
}
