//! Totals of runs, so that a simulation in which nothing happens does not pass.

use rutter_core::journal::event::{AttemptFollowUp, CallSide, Event};

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
    pub compensations: u64,
    pub late_answers: u64,
    pub approvals: u64,
    pub deviations: u64,
    pub handovers: u64,
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
    pub fn count(&mut self, event: &Event) {
        match event {
            Event::AttemptFailed { then: AttemptFollowUp::InDoubt, .. }
            | Event::AttemptLost { then: AttemptFollowUp::InDoubt, .. } => self.doubts += 1,
            Event::Replanned { .. } => self.replans += 1,
            Event::ToolDrifted { .. } => self.drifts += 1,
            Event::CompensationStarted { .. } => self.compensations += 1,
            Event::LateAnswerArrived { .. } => self.late_answers += 1,
            Event::ApprovalGranted { .. } => self.approvals += 1,
            Event::DeviationFound { .. } => self.deviations += 1,
            Event::HandedOver { .. } => self.handovers += 1,
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
        self.compensations += other.compensations;
        self.late_answers += other.late_answers;
        self.approvals += other.approvals;
        self.deviations += other.deviations;
        self.handovers += other.handovers;
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
