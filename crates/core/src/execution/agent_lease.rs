//! The lease of an agent that drives: every sign of life renews it. Silence beyond it becomes a question.

use super::decide::{DecisionDraft, RecordResult};
use super::input::Refusal;
use super::view::PendingQuestion;
use super::{Execution, ExecutionPhase};
use crate::actor::{Actor, ActorKind};
use crate::journal::event::{DueKind, Event, EventRecord, Question};
use crate::plan::{Driver, SilenceAction};
use crate::time::{Millis, Timestamp};

/// Whether this actor is the agent that drives an execution: the one that opened it or took it over, or, where a person
/// did, the first that began a step or undid one. Any agent is, until there is one.
pub fn is_driving_agent(driving: Option<&Actor>, actor: &Actor) -> bool {
    actor.party == ActorKind::Agent && driving.is_none_or(|driving| driving.is_same(actor))
}

/// Whether an agent that does this drives from then on. Who looks, or decides about the execution, does not yet.
fn takes_the_drive(event: &Event) -> bool {
    matches!(
        event,
        Event::HandedOver { to: Driver::Agent, .. }
            | Event::AttemptStarted { by: Driver::Agent, .. }
            | Event::CompensationRecorded { .. }
    )
}

impl Execution {
    /// When the agent that drives counts as silent. `None` while it is not the agent's turn: the execution is paused or
    /// held, or all that is left to do waits for a person.
    pub fn agent_lease_end(&self) -> Option<Timestamp> {
        let is_suspended = self.paused || self.silent_since.is_some();
        if self.driver != Driver::Agent || is_suspended || !self.is_the_agents_turn() {
            return None;
        }
        Some(self.agent_seen_at?.plus(self.plan.agent_timeout))
    }

    fn is_the_agents_turn(&self) -> bool {
        match self.phase {
            ExecutionPhase::Forward => {
                let has_work = !self.agenda.running.is_empty() || self.has_work_for_the_agent();
                has_work || !self.has_questions()
            }
            // Its open attempts are awaited. Those of Rutter, from before it took over, are none of its work.
            ExecutionPhase::Draining { .. } => self.agenda.running.iter().any(|at| !self.runs_here(*at)),
            ExecutionPhase::Undoing => self.undo_due_to_agent().is_some(),
            ExecutionPhase::Pending | ExecutionPhase::Killed | ExecutionPhase::Ended { .. } => false,
        }
    }

    /// Whether a step could begin although a person is asked about another one.
    fn has_work_for_the_agent(&self) -> bool {
        let stands_still = !self.agenda.held.is_empty() || self.over.is_some() || self.proposal.is_some();
        let has_next = !self.agenda.ready.is_empty() || !self.agenda.approved.is_empty();
        !stands_still && !self.replanning && has_next && self.has_place()
    }

    /// Whether a sign of life at this time is worth an entry: half of the lease is over, or the agent was silent.
    pub fn is_sign_of_life_due(&self, actor: &Actor, now: Timestamp) -> bool {
        let half = Millis(self.plan.agent_timeout.0 / 2);
        let is_due = self.silent_since.is_some() || self.agent_seen_at.is_none_or(|seen| now.since(seen) > half);
        self.is_sign_of_life(actor) && is_due
    }

    /// Whether what this actor does now is a sign of life of the agent that drives.
    pub fn is_sign_of_life(&self, actor: &Actor) -> bool {
        self.driver == Driver::Agent && self.outcome().is_none() && self.is_the_agent(actor)
    }

    fn is_the_agent(&self, actor: &Actor) -> bool {
        is_driving_agent(self.agent.as_ref(), actor)
    }

    /// What an entry says about the agent. `was_its_turn`: whether its lease ran before.
    pub(super) fn notice_actor(&mut self, record: &EventRecord, was_its_turn: bool) {
        if self.driver != Driver::Agent {
            return;
        }
        if self.is_the_agent(&record.actor) {
            if takes_the_drive(&record.event) {
                self.agent = Some(record.actor.clone());
            }
            self.silent_since = None;
            self.agent_seen_at = Some(record.at);
            return;
        }
        // What others do, other agents too, is no sign of life of the agent. When they hand it the turn, its lease begins
        // anew, unless what came due during a hold is to happen.
        let expires = match &record.event {
            Event::HoldEnded { frozen: None, .. } => true,
            Event::HoldEnded { expired, .. } => expired.iter().any(|timer| timer.what == DueKind::Agent),
            _ => false,
        };
        if !was_its_turn && !expires && self.agent_lease_end().is_some() {
            self.agent_seen_at = self.agent_seen_at.max(Some(record.at));
        }
    }

    /// The driver changed, or the same one begins anew.
    pub(super) fn begin_lease(&mut self, at: Timestamp) {
        self.agent = None;
        self.silent_since = None;
        self.agent_seen_at = Some(at);
    }

    pub(super) fn admit_sign_of_life(&self, actor: &Actor) -> Result<(), Refusal> {
        if self.driver != Driver::Agent {
            return Err(Refusal::new("execution.driver", "Rutter drives this execution"));
        }
        if !self.is_the_agent(actor) {
            return Err(Refusal::new("execution.driver", "another agent drives this execution"));
        }
        Ok(())
    }

    pub(super) fn ask_silence(&self) -> Option<PendingQuestion> {
        let answers = match self.phase {
            ExecutionPhase::Forward => Question::SILENCE_ANSWERS,
            ExecutionPhase::Undoing => Question::SILENCE_ANSWERS_UNDOING,
            // What the agent left open while it drains is closed at once: there is nothing to decide.
            ExecutionPhase::Draining { .. }
            | ExecutionPhase::Pending
            | ExecutionPhase::Killed
            | ExecutionPhase::Ended { .. } => return None,
        };
        Some(PendingQuestion::Silence { since: self.silent_since?, answers })
    }
}

impl DecisionDraft<'_> {
    /// Records a sign of life, but not each one: polling must not fill the journal.
    pub fn agent_seen(&mut self, remembered: bool) -> RecordResult {
        let actor = self.actor().clone();
        let is_new = remembered && self.execution.agent_seen_at.is_none_or(|seen| seen < self.now);
        let is_due = is_new || self.execution.is_sign_of_life_due(&actor, self.now);
        if is_due { self.note(Event::AgentSeen {}) } else { Ok(()) }
    }

    /// Records that the agent is silent, and hands the execution to Rutter if the plan says so and Rutter can go on.
    pub fn notice_silence(&mut self) -> RecordResult {
        let Some(end) = self.execution.agent_lease_end().filter(|end| *end <= self.now) else { return Ok(()) };
        let timeout = self.execution.plan.agent_timeout;
        let since = self.execution.agent_seen_at.unwrap_or(end);
        let agent = self.execution.agent.clone();
        self.follow(Event::AgentSilent { since, agent })?;
        // What it did without approval is for a person to take over.
        let can_go_on = self.execution.plan.tools_missing().next().is_none() && self.execution.defied.is_empty();
        if self.execution.plan.on_agent_silence == SilenceAction::HandOver && can_go_on {
            self.lose_agents_attempts()?;
            let reason = format!("the agent was silent for more than {timeout}");
            self.follow(Event::HandedOver { to: Driver::Server, reason })?;
        }
        Ok(())
    }

    /// An execution that stops does not wait for a silent agent: what it left open goes by its safety, as when it is
    /// handed over. Else nobody would be asked before the deadline of the execution.
    pub fn stop_waiting_for_silent_agent(&mut self) -> RecordResult {
        let waits = self.execution.driver == Driver::Agent && self.execution.silent_since.is_some();
        if waits { self.lose_agents_attempts() } else { Ok(()) }
    }
}
