//! Totals of runs, so that a simulation in which nothing happens does not pass.

use rutter_core::journal::event::{AttemptFollowUp, CallSide, Event, EventRecord, LateEffect};

/// Totals of one run or of many.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimulationTally {
    pub runs: u64,
    pub entries: u64,
    pub crashes: u64,
    pub fenced: u64,
    pub refusals: u64,
    /// Appends of several decisions, and calls that one of these decided and a later one closed.
    pub batches: u64,
    pub withdrawn: u64,
    pub drifts: u64,
    pub doubts: u64,
    pub replans: u64,
    /// New plans that had to wait for a person.
    pub proposals: u64,
    pub denials: u64,
    /// Calls that a rule or a denial forbade, and calls that waited for a limit.
    pub forbidden: u64,
    pub delays: u64,
    pub compensations: u64,
    pub late_answers: u64,
    /// Attempts that were settled otherwise and took effect, probes that were asked too early, keys that were forgotten.
    pub late_effects: u64,
    pub early_probes: u64,
    pub forgotten_keys: u64,
    pub corrections: u64,
    /// Executions that were taken up again after their end, and effects beside another one of the same call.
    pub reopened: u64,
    pub second_effects: u64,
    pub approvals: u64,
    /// What people did for whom only a program vouches, and what of it was refused for that.
    pub unproven: u64,
    pub unproven_refused: u64,
    pub deviations: u64,
    pub handovers: u64,
    pub holds: u64,
    pub silences: u64,
    pub time_limits: u64,
    pub tickets: u64,
    pub resumed: u64,
    pub tool_asks: u64,
    pub tool_answers: u64,
    pub prefixes: u64,
    pub steps_begun: u64,
    pub steps_completed: u64,
    pub calls: u64,
    pub ended: [u64; 5],
    pub waiting: u64,
}

impl SimulationTally {
    pub fn count(&mut self, record: &EventRecord) {
        self.unproven += u64::from(!record.actor.is_proven());
        match &record.event {
            Event::AttemptFailed { then: AttemptFollowUp::InDoubt, .. }
            | Event::AttemptLost { then: AttemptFollowUp::InDoubt, .. } => self.doubts += 1,
            Event::Replanned { .. } => self.replans += 1,
            Event::ReplanProposed { .. } => self.proposals += 1,
            Event::CallForbidden { .. } => self.forbidden += 1,
            Event::CallDelayed { .. } => self.delays += 1,
            Event::ApprovalDenied { .. } => self.denials += 1,
            Event::ToolDrifted { .. } => self.drifts += 1,
            Event::CompensationStarted { .. } => self.compensations += 1,
            Event::LateAnswerArrived { effect, .. } => {
                self.late_answers += 1;
                self.late_effects += u64::from(effect.is_some());
                self.second_effects += u64::from(*effect == Some(LateEffect::Second));
            }
            Event::ProbePostponed { .. } => self.early_probes += 1,
            Event::KeyExpired { .. } => self.forgotten_keys += 1,
            Event::SettlementCorrected { .. } => self.corrections += 1,
            Event::Reopened { .. } => self.reopened += 1,
            Event::ApprovalGranted { .. } => self.approvals += 1,
            Event::DeviationFound { .. } => self.deviations += 1,
            Event::HandedOver { .. } => self.handovers += 1,
            Event::Held { .. } => self.holds += 1,
            Event::AgentSilent { .. } => self.silences += 1,
            Event::LimitReached { limit, .. } if limit.is_time() => self.time_limits += 1,
            Event::AttemptAccepted { .. } => self.tickets += 1,
            Event::ToolAsked { .. } => self.tool_asks += 1,
            Event::ToolAnswered { answer: Some(_), .. } => self.tool_answers += 1,
            Event::AttemptStarted { side: CallSide::Do, attempt: 1, .. } => self.steps_begun += 1,
            Event::AttemptSucceeded { side: CallSide::Do | CallSide::Fallback, .. } => self.steps_completed += 1,
            Event::ExecutionEnded { outcome, .. } => self.ended[*outcome as usize] += 1,
            _ => {}
        }
    }

    pub fn add(&mut self, other: &SimulationTally) {
        self.runs += other.runs;
        self.entries += other.entries;
        self.crashes += other.crashes;
        self.fenced += other.fenced;
        self.refusals += other.refusals;
        self.batches += other.batches;
        self.withdrawn += other.withdrawn;
        self.drifts += other.drifts;
        self.doubts += other.doubts;
        self.replans += other.replans;
        self.proposals += other.proposals;
        self.denials += other.denials;
        self.forbidden += other.forbidden;
        self.delays += other.delays;
        self.compensations += other.compensations;
        self.late_answers += other.late_answers;
        self.late_effects += other.late_effects;
        self.early_probes += other.early_probes;
        self.forgotten_keys += other.forgotten_keys;
        self.corrections += other.corrections;
        self.reopened += other.reopened;
        self.second_effects += other.second_effects;
        self.unproven += other.unproven;
        self.unproven_refused += other.unproven_refused;
        self.approvals += other.approvals;
        self.deviations += other.deviations;
        self.handovers += other.handovers;
        self.holds += other.holds;
        self.silences += other.silences;
        self.time_limits += other.time_limits;
        self.tickets += other.tickets;
        self.resumed += other.resumed;
        self.tool_asks += other.tool_asks;
        self.tool_answers += other.tool_answers;
        self.prefixes += other.prefixes;
        self.steps_begun += other.steps_begun;
        self.steps_completed += other.steps_completed;
        self.calls += other.calls;
        for (mine, theirs) in self.ended.iter_mut().zip(other.ended) {
            *mine += theirs;
        }
        self.waiting += other.waiting;
    }
}
