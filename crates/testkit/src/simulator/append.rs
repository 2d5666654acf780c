//! One append of a simulated process: a decision, or several that were ready together, recorded at once, then acted upon.

use super::operators::{self, OperatorEffect, OperatorMove};
use super::simulated_run::{SimulatedCapacity, SimulatedRun};
use rutter_core::actor::Actor;
use rutter_core::execution::hold::WorkerGap;
use rutter_core::execution::input::{Decision, DecisionTerms, ExecutionInput, ToolCall};
use rutter_core::execution::part::PartState;
use rutter_core::execution::{Execution, ExecutionPhase, decide};
use rutter_core::id::PartId;
use rutter_core::journal::event::{AttemptFollowUp, CallSide, DoubtSource, Event, EventRecord};
use rutter_core::plan::Driver;
use rutter_core::tool::Safety;

/// Decisions that are not recorded yet.
#[derive(Debug, Default)]
struct PendingDecisions {
    records: Vec<EventRecord>,
    calls: Vec<ToolCall>,
    effects: Vec<OperatorEffect>,
    count: u64,
    recovers: bool,
}

impl SimulatedRun<'_> {
    pub(super) fn turn(&mut self, next: OperatorMove) -> Result<(), String> {
        let before = self.execution.clone();
        let mut pending = PendingDecisions::default();
        let recovers = matches!(next.input, ExecutionInput::Recovered);
        if self.is_wild {
            self.world.change_a_tool(&mut self.chance);
        }
        self.decide(next, &mut pending)?;
        let more = if self.is_wild { self.chance.below(3) } else { 0 };
        for _ in 0..more {
            let Some(next) = self.next_ready(recovers) else { break };
            self.decide(next, &mut pending)?;
        }
        if pending.count == 0 { Ok(()) } else { self.append(before, pending) }
    }

    /// An input that is there already, without waiting: a response, or a command.
    fn next_ready(&mut self, recovers: bool) -> Option<OperatorMove> {
        if !self.inbox.is_empty() {
            let at = self.chance.index(self.inbox.len());
            return Some(OperatorMove::by_rutter(self.inbox.swap_remove(at)));
        }
        if recovers && self.chance.percent(10) {
            return Some(operators::kill());
        }
        self.chance.percent(self.unrest_percent).then(|| self.interfere())
    }

    fn decide(&mut self, next: OperatorMove, pending: &mut PendingDecisions) -> Result<(), String> {
        let recovers = matches!(next.input, ExecutionInput::Recovered);
        if recovers {
            self.hold(pending)?;
        }
        if self.is_wild {
            self.notice_drift(recovers, pending)?;
        }
        let room = self.room();
        let OperatorMove { actor, input, effect } = next;
        let recorded = pending.records.len();
        let withdrawn = match &input {
            ExecutionInput::Withdraw { part, side, attempt, .. } => Some((part.clone(), *side, *attempt)),
            _ => None,
        };
        let before = withdrawn.is_some().then(|| self.execution.clone());
        if !self.decide_one(&actor, input, room, pending)? {
            return Ok(());
        }
        pending.recovers |= recovers;
        if let OperatorEffect::Answer(part) = &effect {
            recorded_and_not_settled(part, &pending.records[recorded..])?;
        }
        if let (Some(before), Some(call)) = (before, withdrawn) {
            withdrawn_and_not_failed(&before, &self.execution, &call, &pending.records[recorded..])?;
        }
        pending.effects.push(effect);
        Ok(())
    }

    /// Holds the execution if the gap caught it, before anything else is decided.
    fn hold(&mut self, pending: &mut PendingDecisions) -> Result<(), String> {
        let Some(WorkerGap { reason, since, .. }) = self.gap.clone().filter(|gap| self.execution.is_caught_by(gap))
        else {
            return Ok(());
        };
        self.decide_one(&Actor::rutter(), ExecutionInput::Hold { reason, since }, 0, pending)?;
        Ok(())
    }

    /// Reports tools that have changed. Before `Recovered` no call may start: it would count as lost.
    fn notice_drift(&mut self, recovers: bool, pending: &mut PendingDecisions) -> Result<(), String> {
        if self.execution.outcome().is_some() {
            return Ok(());
        }
        for (tool, found) in self.world.definitions.clone() {
            if self.execution.plan().tools.contains_key(&tool) && self.execution.is_news(&tool, found) {
                let room = if recovers { 0 } else { self.room() };
                self.decide_one(&Actor::rutter(), ExecutionInput::ReportDefinition { tool, found }, room, pending)?;
            }
        }
        Ok(())
    }

    fn room(&mut self) -> u32 {
        let room = u32::try_from(self.chance.below(4)).expect("small");
        if self.pending_calls.is_empty() { room.max(1) } else { room }
    }

    /// Whether the input was accepted.
    fn decide_one(
        &mut self,
        actor: &Actor,
        input: ExecutionInput,
        room: u32,
        pending: &mut PendingDecisions,
    ) -> Result<bool, String> {
        let before = self.execution.clone();
        let mut room = SimulatedCapacity { room, windows: &mut self.windows, identity: &self.identity };
        let terms = DecisionTerms { now: self.now, room: &mut room, policy: &self.policy };
        let decision = match self.execution.decide_within(actor, input, terms) {
            Ok(decision) => decision,
            Err(decide::Error::Refused(refusal)) => {
                self.tally.refusals += 1;
                self.tally.unproven_refused += u64::from(refusal.code == "execution.not_proven");
                return if self.execution == before { Ok(false) } else { Err("a refusal changed something".into()) };
            }
            Err(decide::Error::Broken(broken)) => return Err(format!("decided an illegal event: {broken}")),
        };
        called_for(&decision)?;
        let proposes = decision.records.iter().any(|record| matches!(record.event, Event::ReplanProposed { .. }));
        if proposes && before.outcome() != self.execution.outcome() {
            return Err("a plan that waits for a person reopened the execution".into());
        }
        pending.count += 1;
        pending.records.extend(decision.records);
        pending.calls.extend(decision.calls);
        Ok(true)
    }

    /// Records the decisions, then acts upon them.
    fn append(&mut self, before: Execution, pending: PendingDecisions) -> Result<(), String> {
        let PendingDecisions { records, calls, effects, count, recovers } = pending;
        self.tally.batches += u64::from(count > 1);
        not_lost_at_once(&records)?;
        if self.crashes() {
            return self.crash();
        }
        for effect in &effects {
            if let OperatorEffect::Revise(document, plan) = effect {
                self.journal.save(plan)?;
                self.documents.insert(plan.hash, document.clone());
            }
        }
        let appended = self.journal.append(&records, self.execution.row(), &mut self.chance);
        appended.map_err(|error| format!("the owner could not append: {error}"))?;
        self.watch(before, &records)?;
        let resumes = records.iter().any(|record| matches!(record.event, Event::HoldEnded { .. }));
        if (recovers || resumes) && self.execution.hold().is_none() {
            self.monitor.talk.gone_on_with(&calls)?;
        }
        if recovers {
            self.gap = None;
        }
        effects.into_iter().for_each(|effect| self.apply_effect(effect));
        self.pass_on(&records);
        if self.crashes() {
            return self.crash();
        }
        if !self.call(&calls)? {
            return Ok(());
        }
        self.woken_for_something()?;
        self.waits_for_no_silent_agent()?;
        self.kept_waiting_by_no_doubt()
    }

    /// Passes appended records to the monitor, each with the plan it was decided under.
    fn watch(&mut self, mut before: Execution, records: &[EventRecord]) -> Result<(), String> {
        for record in records {
            before.apply(record).map_err(|error| error.to_string())?;
            self.monitor.observe(record, before.plan())?;
            self.tally.count(record);
            if let Event::Replanned { plan, .. } = &record.event
                && let Some(document) = self.documents.get(&plan.hash)
            {
                self.document = document.clone();
            }
        }
        if before != self.execution {
            return Err("applying the records does not lead where deciding led".into());
        }
        Ok(())
    }

    fn apply_effect(&mut self, effect: OperatorEffect) {
        match effect {
            OperatorEffect::None | OperatorEffect::Answer(_) | OperatorEffect::Revise(..) => {}
            OperatorEffect::CarryOut(part) => {
                let plan = self.execution.plan();
                let step = plan.find(part.step.as_str()).map(|step| plan.steps[step].clone());
                let really = self.chance.percent(75);
                let acts = |side: CallSide| {
                    step.as_ref().is_some_and(|step| match (side, &step.fallback) {
                        (CallSide::Fallback, Some(fallback)) => fallback.call.safety != Safety::ReadOnly,
                        _ => step.call.safety != Safety::ReadOnly,
                    })
                };
                let running = self.execution.part(&part).filter(|part| match &part.state {
                    PartState::Running(attempt) => attempt.by == Driver::Agent && acts(attempt.side),
                    _ => false,
                });
                if let Some(key) = running.and_then(|part| part.key).filter(|_| really) {
                    self.world.happen_by_agent(&part, key);
                    if let Some(late) = &mut self.world.late {
                        late.receive(key, self.now);
                    }
                }
            }
            OperatorEffect::UndoByHand(part) => {
                self.world.standing.remove(&part);
            }
        }
    }
}

/// Every attempt that Rutter starts is called, and not closed by the decision that starts it.
pub(super) fn called_for(decision: &Decision) -> Result<(), String> {
    for (part, side, attempt) in decision.records.iter().filter_map(started_here) {
        let calls = |call: &ToolCall| (&call.part, call.side, call.attempt) == (part, side, attempt);
        if !decision.calls.iter().any(calls) {
            return Err(format!("attempt {attempt} of {part} was started, and nothing calls it"));
        }
    }
    Ok(())
}

/// An attempt that is lost was open before: nothing is known to be lost that was not recorded first.
fn not_lost_at_once(records: &[EventRecord]) -> Result<(), String> {
    for (at, record) in records.iter().enumerate() {
        let Event::AttemptLost { part, side, attempt, .. } = &record.event else { continue };
        if records[..at].iter().filter_map(started_here).any(|started| started == (part, *side, *attempt)) {
            return Err(format!("attempt {attempt} of {part} was lost in the append that starts it"));
        }
    }
    Ok(())
}

/// The attempt that a record starts, if Rutter makes it.
fn started_here(record: &EventRecord) -> Option<(&PartId, CallSide, u32)> {
    match &record.event {
        Event::AttemptStarted { part, side, attempt, by: Driver::Server, .. } => Some((part, *side, *attempt)),
        _ => None,
    }
}

/// What an agent says about its own attempt that is in doubt is on record; only a person or a probe settles the doubt.
fn recorded_and_not_settled(said_of: &PartId, records: &[EventRecord]) -> Result<(), String> {
    let is_recorded = records.iter().any(|record| match &record.event {
        Event::LateAnswerArrived { part, .. } => part == said_of,
        _ => false,
    });
    if !is_recorded {
        return Err(format!("what the agent said about its attempt of {said_of} is not on record"));
    }
    let is_settled = records.iter().any(|record| match &record.event {
        Event::DoubtSettled { part, source, .. } => part == said_of && *source == DoubtSource::LateAnswer,
        _ => false,
    });
    if is_settled { Err(format!("an agent settled the doubt about {said_of}")) } else { Ok(()) }
}

/// A call that was not sent because its tool has changed is no failure of its step, and does not count as an attempt.
fn withdrawn_and_not_failed(
    before: &Execution,
    after: &Execution,
    (part, side, attempt): &(PartId, CallSide, u32),
    records: &[EventRecord],
) -> Result<(), String> {
    let goes_forward = *before.phase() == ExecutionPhase::Forward && before.hold().is_none();
    let Some(old) = before.part(part).filter(|old| goes_forward && old.effect.is_none()) else { return Ok(()) };
    if *side == CallSide::Undo || !before.is_under_way(part, *side, *attempt) {
        return Ok(());
    }
    let is_withdrawn = records.iter().any(|record| match &record.event {
        Event::AttemptFailed { part: failed, then, .. } => failed == part && *then == AttemptFollowUp::Withdrawn,
        _ => false,
    });
    if !is_withdrawn {
        return Err(format!("{part} failed, and its tool had only changed"));
    }
    let again = records.iter().filter_map(started_here).filter(|(started, by, _)| (*started, *by) == (part, *side));
    let tries = old.tries_of(*side) + u32::try_from(again.count()).unwrap_or(u32::MAX);
    match after.part(part).is_some_and(|new| new.tries_of(*side) >= tries) {
        true => Err(format!("an attempt of {part} counts, and nothing was sent")),
        false => Ok(()),
    }
}
