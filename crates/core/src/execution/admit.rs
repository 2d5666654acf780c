//! Checks whether an input is possible in the present state. Nothing here changes the state.

mod texts;

use super::input::{ExecutionInput, Refusal};
use super::opening::{inputs_fit, tools_are_there};
use super::part::{PartState, ProbeProgress};
use super::step::StepStage;
use super::view::PendingQuestion;
use super::{Execution, ExecutionPhase};
use crate::actor::{Actor, ActorKind};
use crate::hash::Hash;
use crate::id::{PartId, ToolName};
use crate::journal::event::{CallSide, ExecutionEnding, Question, QuestionAnswer};
use crate::plan::{Driver, Plan};
use crate::policy::OperatorPolicy;
use serde_json::Value;

pub(super) type AdmissionResult = Result<(), Refusal>;

impl Execution {
    /// Refuses an input that is not possible in this state. [`Execution::decide`] calls this first.
    pub fn admit(&self, actor: &Actor, input: &ExecutionInput, policy: &OperatorPolicy) -> AdmissionResult {
        self.admit_texts(input)?;
        self.admit_while_held(actor, input)?;
        match input {
            ExecutionInput::Start => match self.phase {
                ExecutionPhase::Pending => Ok(()),
                ExecutionPhase::Ended { .. } => self.not_ended(),
                _ => Err(Refusal::new("execution.started", "this execution has started already")),
            },
            ExecutionInput::Wake | ExecutionInput::Recovered => Ok(()),
            ExecutionInput::Returned { part, side, attempt, .. }
            | ExecutionInput::Withdraw { part, side, attempt, .. } => match self.part(part) {
                Some(part) if *attempt >= 1 && *attempt <= part.attempts_of(*side) => Ok(()),
                // Its effect is put on record.
                None if self.dropped.contains_key(&part.step) => Ok(()),
                _ => Err(Refusal::new(
                    "execution.unknown_attempt",
                    format!("attempt {attempt} of {part} was never made"),
                )),
            },
            ExecutionInput::Accepted { part, side, attempt, ticket } => {
                self.admit_ticket(part, *side, *attempt, ticket)
            }
            ExecutionInput::ToolAsks { part, side, attempt, question } => {
                self.admit_inquiry(part, *side, *attempt, question)
            }
            ExecutionInput::AnswerTool { part, attempt, answer, .. } => {
                self.admit_tool_answer(actor, part, *attempt, answer.as_deref())
            }
            ExecutionInput::Approve { part, call, .. } => {
                self.admit_approval(actor, part, call)?;
                self.part(part).map_or(Ok(()), |part| self.admit_approver(actor, part))
            }
            ExecutionInput::Deny { part, call, .. } => self.admit_approval(actor, part, call),
            ExecutionInput::Answer { about, answer, result, evidence, .. } => {
                let is_visible = evidence.is_some() || result.is_some();
                if let Question::SecondEffect(part) = about {
                    return self.admit_second(actor, part, *answer);
                }
                self.admit_answer(actor, about, *answer, is_visible)?;
                if let (Question::Limit(_), QuestionAnswer::Continue) = (about, answer) {
                    person(actor, "go on past a limit")?;
                }
                if matches!(answer, QuestionAnswer::Skip | QuestionAnswer::Continue) {
                    return self.admit_going_past(actor, about);
                }
                if *answer != QuestionAnswer::Resolve {
                    return Ok(());
                }
                self.admit_resolving(actor, about)?;
                self.admit_resolving_unanswered(about)?;
                self.admit_resolved_result(about, result.as_deref())
            }
            ExecutionInput::Settle { part, happened, result, .. } => {
                self.admit_settling(actor, part)?;
                if *happened { self.admit_settled_result(part, result.as_deref()) } else { Ok(()) }
            }
            ExecutionInput::Correct { part, happened, result, .. } => {
                self.admit_correction(actor, part, *happened, result.as_deref())
            }
            ExecutionInput::Pause { .. } => {
                self.under_way()?;
                if self.paused {
                    Err(Refusal::new("execution.paused", "this execution is paused already"))
                } else {
                    Ok(())
                }
            }
            ExecutionInput::Hold { .. } => {
                self.under_way()?;
                self.admit_hold()
            }
            ExecutionInput::Resume { .. } | ExecutionInput::ResumeExpired { .. } => {
                self.not_ended()?;
                self.admit_end_of_hold(actor)?;
                if let ExecutionInput::ResumeExpired { only, .. } = input {
                    self.admit_expiring(only)?;
                }
                if self.paused {
                    Ok(())
                } else {
                    Err(Refusal::new("execution.not_paused", "this execution is not paused"))
                }
            }
            ExecutionInput::Cancel { .. } => match self.phase {
                ExecutionPhase::Pending | ExecutionPhase::Forward => Ok(()),
                ExecutionPhase::Draining { .. } | ExecutionPhase::Undoing | ExecutionPhase::Killed => {
                    Err(Refusal::new("execution.stopping", "this execution is stopping or undoing already")
                        .hint("pause it to hold it, or kill it to stop without clean-up"))
                }
                ExecutionPhase::Ended { .. } => self.not_ended(),
            },
            ExecutionInput::Kill { .. } => self.not_ended(),
            ExecutionInput::Compensate { steps, .. } => {
                if !matches!(self.phase, ExecutionPhase::Ended { .. }) {
                    return Err(Refusal::new("execution.not_ended", "this execution is still under way")
                        .hint("cancel it with undo, or answer its question with compensate"));
                }
                if let Some(part) = self.agenda.doubts.first() {
                    return Err(Refusal::new("execution.in_doubt", format!("{} is in doubt", self.name(*part)))
                        .hint("settle the doubt first: an effect cannot be undone before it is known"));
                }
                for step in steps.iter().flatten() {
                    self.known_step(step.as_str())?;
                }
                if self.undo_scope(steps.as_deref()).is_empty() {
                    return Err(Refusal::new("execution.nothing_to_undo", "nothing here can be undone"));
                }
                Ok(())
            }
            ExecutionInput::Reopen { steps, .. } => {
                let steps = steps.as_deref().unwrap_or_default();
                self.admit_reopening(actor, steps)?;
                self.admit_left_out_items(actor, steps)
            }
            ExecutionInput::BeginReplan { .. } => {
                self.forward()?;
                if self.replanning {
                    return Err(Refusal::new("execution.replanning", "this execution is being replanned already"));
                }
                Ok(())
            }
            ExecutionInput::AbandonReplan { .. } => {
                if self.proposal.is_none() {
                    self.not_ended()?;
                }
                if self.replanning || self.proposal.is_some() {
                    Ok(())
                } else {
                    Err(Refusal::new("execution.not_replanning", "this execution is not being replanned"))
                }
            }
            ExecutionInput::Replan { plan, .. } => {
                match self.outcome() {
                    Some(ExecutionEnding::Completed) => {}
                    Some(_) => self.admit_going_on()?,
                    None => self.forward()?,
                }
                if self.driver == Driver::Server {
                    tools_are_there(plan)?;
                }
                inputs_fit(plan, self.inputs.value().map_or(&Value::Null, |value| value))?;
                self.admit_replan(plan)?;
                self.admit_proposal(actor, plan, policy.ask_again_max)
            }
            ExecutionInput::ApproveReplan { plan, .. } => {
                person(actor, "approve a new plan")?;
                let proposed = self.proposed(plan)?;
                self.admit_proof_for_plan(actor)?;
                if self.driver == Driver::Server {
                    tools_are_there(proposed)?;
                }
                self.admit_replan(proposed)
            }
            ExecutionInput::RejectReplan { plan, .. } => {
                person(actor, "reject a new plan")?;
                self.proposed(plan).map(|_| ())
            }
            ExecutionInput::HandOver { to, .. } => {
                self.not_ended()?;
                if *to == self.driver && self.silent_since.is_none() {
                    return Err(Refusal::new("execution.driver", "this execution already has this driver"));
                }
                match to {
                    Driver::Server => {
                        tools_are_there(self.plan())?;
                        self.admit_handing_back(actor)
                    }
                    Driver::Agent => Ok(()),
                }
            }
            ExecutionInput::ReportDefinition { tool, .. } | ExecutionInput::AcceptTool { tool, .. } => {
                self.not_ended()?;
                if !self.plan.tools.contains_key(tool) {
                    return Err(Refusal::new("execution.unknown_tool", format!("the plan does not use {tool}")));
                }
                match input {
                    ExecutionInput::AcceptTool { definition, .. } => {
                        person(actor, "accept a changed tool")?;
                        self.admit_definition(tool, *definition)
                    }
                    _ => Ok(()),
                }
            }
            ExecutionInput::AgentSeen { .. } => {
                self.not_ended()?;
                self.admit_sign_of_life(actor)
            }
            ExecutionInput::RecordFinished { part, result } => {
                if self.late_record(part).is_none() {
                    self.admit_agent_record()?;
                }
                self.admit_recorded_result(part, result)
            }
            ExecutionInput::RecordStarted { .. } | ExecutionInput::RecordFailed { .. } => self.admit_agent_record(),
            ExecutionInput::RecordClaim { .. } => self.admit_agent_record(),
            ExecutionInput::RecordEnd { .. } => {
                self.admit_agent_record()?;
                self.started()
            }
            ExecutionInput::RecordCompensation { part, .. } => match self.part(part) {
                Some(found) => match &found.state {
                    _ if found.effect.is_none() => Err(Refusal::new(
                        "execution.nothing_to_undo",
                        format!("{part} has no effect that could be undone"),
                    )),
                    PartState::Completed { .. }
                    | PartState::Failed { .. }
                    | PartState::CompensationFailed { .. }
                    | PartState::Asking { side: CallSide::Undo, .. }
                    | PartState::Approved { side: CallSide::Undo, .. }
                    | PartState::BackingOff { side: CallSide::Undo, .. } => {
                        self.admit_resolving(actor, &Question::Compensation(part.clone()))
                    }
                    _ => Err(Refusal::new(
                        "execution.nothing_to_undo",
                        format!("{part} is still being done, or its effect is in doubt"),
                    )),
                },
                None => Err(unknown(part)),
            },
            ExecutionInput::RecordDecision { step, .. } => match step {
                Some(step) => self.known_step(step.as_str()),
                None => Ok(()),
            },
            ExecutionInput::RecordAction { .. } | ExecutionInput::SaveContext { .. } => Ok(()),
        }
    }

    fn admit_approval(&self, actor: &Actor, part: &PartId, call: &Hash) -> AdmissionResult {
        person(actor, "approve a call")?;
        match self.part(part).map(|part| &part.state) {
            None => Err(unknown(part)),
            Some(PartState::Asking { side: CallSide::Undo, call: asked, .. }) if asked == call => self.under_way(),
            Some(PartState::Asking { call: asked, .. }) if asked == call => self.forward(),
            Some(PartState::Asking { .. }) => {
                Err(Refusal::new("execution.other_call", format!("the call of {part} is not the one you saw"))
                    .hint("look at the question again: the approval is for one exact call"))
            }
            Some(_) => Err(Refusal::new("execution.not_asked", format!("{part} does not wait for approval"))),
        }
    }

    fn admit_answer(
        &self,
        actor: &Actor,
        about: &Question,
        answer: QuestionAnswer,
        is_visible: bool,
    ) -> AdmissionResult {
        if self.outcome().is_some() {
            let (Question::Failure(step) | Question::Item(PartId { step, .. })) = about else {
                return self.not_ended();
            };
            self.admit_reopening(actor, std::slice::from_ref(step))?;
        }
        let (asked, answers): (bool, &[QuestionAnswer]) = match about {
            Question::Failure(step) => {
                // Once the execution has ended, the question about a failed step is put again.
                let (asked, answers) = match self.outcome() {
                    Some(_) => (StepStage::Failed, Question::ITEM_ANSWERS),
                    None => (StepStage::Held, Question::FAILURE_ANSWERS),
                };
                let held = self.plan.find(step.as_str()).is_some_and(|step| self.steps[step].stage == asked);
                (held, answers)
            }
            Question::Compensation(part) => {
                let stuck = self.locate(part).is_some_and(|at| self.agenda.stuck.contains(&at));
                (stuck, Question::COMPENSATION_ANSWERS)
            }
            Question::Item(part) => {
                let live = self.phase == ExecutionPhase::Forward || self.outcome().is_some();
                let runs_after_all = answer == QuestionAnswer::Retry && self.is_left_out_item(part);
                if live && runs_after_all {
                    person(actor, "run an item after all that was skipped by decision")?;
                }
                (live && (runs_after_all || self.is_failed_item(part)), Question::ITEM_ANSWERS)
            }
            Question::Limit(limit) => (self.over == Some(*limit), Question::LIMIT_ANSWERS),
            Question::SecondEffect(_) => (false, Question::SECOND_EFFECT_ANSWERS),
            Question::Silence => match self.ask_silence() {
                Some(PendingQuestion::Silence { answers, .. }) => (true, answers),
                _ => (false, Question::SILENCE_ANSWERS),
            },
        };
        if !asked {
            return Err(self.not_asked_about(about));
        }
        if let (Question::Failure(step), QuestionAnswer::Skip | QuestionAnswer::Resolve | QuestionAnswer::Continue) =
            (about, answer)
            && let Some((item, _)) = self.parts().find(|(id, part)| id.step == *step && part.is_active())
        {
            return Err(Refusal::new("execution.item_under_way", format!("{item} is under way"))
                .hint("wait until it has ended, or decide about one item"));
        }
        if !answers.contains(&answer) {
            return Err(Refusal::new("execution.no_such_answer", "this question does not accept this answer"));
        }
        if answer == QuestionAnswer::Resolve && !is_visible {
            return Err(Refusal::new("execution.evidence_missing", "a step done by hand needs evidence or a result"));
        }
        if answer == QuestionAnswer::Replan && self.replanning {
            return Err(Refusal::new("execution.replanning", "this execution is being replanned already"));
        }
        Ok(())
    }

    /// Why a question is not open.
    fn not_asked_about(&self, about: &Question) -> Refusal {
        let closed = |message: String| Refusal::new("execution.no_question", message);
        let Question::Item(id) = about else { return closed("this question is not open".to_owned()) };
        let Some(step) = self.plan.find(id.step.as_str()) else { return unknown(id) };
        match (self.part(id), self.steps[step].parts.len()) {
            (Some(part), _) if part.accepted => closed(format!("{id} was skipped by decision")),
            (Some(part), _) => closed(format!("{id} is {}", part.status().replace('_', " "))),
            (None, 1) => closed(format!("{} has 1 item", id.step)),
            (None, count) => closed(format!("{} has {count} items", id.step)),
        }
    }

    /// The plan that waits for a person's approval, if it is this one.
    fn proposed(&self, plan: &Hash) -> Result<&Plan, Refusal> {
        if self.outcome().is_none() {
            self.forward()?;
        }
        match &self.proposal {
            Some(proposal) if proposal.plan.hash == *plan => Ok(&proposal.plan),
            Some(_) => Err(Refusal::new("execution.other_call", "the proposed plan is not the one you saw")
                .hint("look at the question again: the approval is for one exact plan")),
            None => Err(Refusal::new("replan.not_proposed", "no new plan waits for approval")),
        }
    }

    fn admit_settling(&self, actor: &Actor, part: &PartId) -> AdmissionResult {
        person(actor, "settle a doubt")?;
        match self.part(part).map(|part| &part.state) {
            None => Err(unknown(part)),
            Some(PartState::InDoubt { probing: ProbeProgress::Running(_), .. }) => {
                Err(Refusal::new("execution.not_in_doubt", format!("{part} is being probed"))
                    .hint("wait for the probe's answer"))
            }
            Some(PartState::InDoubt { .. }) => Ok(()),
            Some(_) => Err(Refusal::new("execution.not_in_doubt", format!("{part} is not in doubt"))),
        }
    }

    pub(super) fn admit_agent_record(&self) -> AdmissionResult {
        if self.driver != Driver::Agent {
            return Err(Refusal::new("execution.driver", "Rutter drives this execution")
                .hint("take it over first; then record what you do"));
        }
        match self.phase {
            ExecutionPhase::Pending | ExecutionPhase::Forward => Ok(()),
            ExecutionPhase::Draining { .. } => Ok(()),
            ExecutionPhase::Undoing | ExecutionPhase::Killed => {
                Err(Refusal::new("execution.stopping", "this execution is being undone"))
            }
            ExecutionPhase::Ended { .. } => self.not_ended(),
        }
    }

    /// A person accepts the definition that was found last: an older one is not what the tool is now.
    fn admit_definition(&self, tool: &ToolName, definition: Hash) -> AdmissionResult {
        let refused = |why: &str| Err(Refusal::new("execution.no_question", format!("{tool} {why}")));
        match self.drifted.get(tool) {
            Some(found) if *found == definition => Ok(()),
            Some(_) => refused("is not the one that was accepted: it has changed again"),
            None => refused("has not changed"),
        }
    }

    fn not_ended(&self) -> AdmissionResult {
        match self.phase {
            ExecutionPhase::Ended { outcome: ExecutionEnding::Completed | ExecutionEnding::Compensated } => {
                Err(Refusal::new("execution.ended", "this execution has ended"))
            }
            ExecutionPhase::Ended { .. } => {
                Err(Refusal::new("execution.ended", "this execution has ended").hint("reopen it to go on"))
            }
            _ => Ok(()),
        }
    }

    fn started(&self) -> AdmissionResult {
        match self.phase {
            ExecutionPhase::Pending => Err(Refusal::new("execution.not_started", "this execution has not started")),
            _ => Ok(()),
        }
    }

    fn under_way(&self) -> AdmissionResult {
        self.not_ended()?;
        self.started()
    }

    fn forward(&self) -> AdmissionResult {
        self.under_way()?;
        match self.phase {
            ExecutionPhase::Forward => Ok(()),
            _ => Err(Refusal::new("execution.stopping", "this execution is stopping or undoing already")),
        }
    }

    fn known_step(&self, step: &str) -> AdmissionResult {
        match self.plan.find(step) {
            Some(_) => Ok(()),
            None => Err(Refusal::new("execution.unknown_part", format!("the plan has no step {step:?}"))),
        }
    }
}

pub(super) fn person(actor: &Actor, what: &str) -> AdmissionResult {
    match actor.party {
        ActorKind::Person => Ok(()),
        ActorKind::Agent | ActorKind::Rutter => {
            Err(Refusal::new("execution.not_a_person", format!("only a person may {what}")))
        }
    }
}

pub(super) fn unknown(part: &PartId) -> Refusal {
    Refusal::new("execution.unknown_part", format!("the execution has no part {part}"))
}
