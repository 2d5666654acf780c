//! The states of a part, its open attempt, and the progress of probing a doubt.

use crate::hash::Hash;
use crate::id::ToolName;
use crate::journal::event::CallSide;
use crate::journal::payload::EventPayload;
use crate::plan::Driver;
use crate::time::Timestamp;
use crate::tool::ToolFailure;
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub enum PartState {
    /// Not started.
    Pending,
    /// Waits for a person's approval of exactly this call.
    Asking {
        side: CallSide,
        call: Hash,
        expires_at: Timestamp,
    },
    /// Approved, waits to be started.
    Approved {
        side: CallSide,
        call: Hash,
        expires_at: Timestamp,
    },
    Running(Attempt),
    /// Will be called at this time: a retry, its fallback or its compensation.
    BackingOff {
        side: CallSide,
        until: Timestamp,
        /// It waits for its server.
        pause: Option<ServerWait>,
    },
    /// May or may not have taken effect, and must not be repeated before that is known.
    InDoubt {
        side: CallSide,
        attempt: u32,
        /// When the attempt was closed without an answer.
        since: Timestamp,
        /// Why it closed, where an answer or its absence says so.
        failure: Option<ToolFailure>,
        probing: ProbeProgress,
    },
    Completed {
        by_hand: bool,
    },
    Failed {
        failure: ToolFailure,
    },
    /// Certainly had no effect and will not run.
    Cancelled,
    Compensated {
        by_hand: bool,
    },
    /// `accepted`: the remaining effect was accepted by decision.
    CompensationFailed {
        failure: ToolFailure,
        accepted: bool,
    },
}

/// A call waits because its server takes none.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerWait {
    /// When the call was to be made.
    pub since: Timestamp,
    pub failure: Arc<ToolFailure>,
}

impl PartState {
    /// The pause of its server that its next call waits for, and until when.
    pub fn awaited_pause(&self) -> Option<(&ServerWait, Timestamp)> {
        match self {
            PartState::BackingOff { pause: Some(pause), until, .. }
            | PartState::InDoubt { probing: ProbeProgress::BackingOff { pause: Some(pause), until }, .. } => {
                Some((pause, *until))
            }
            _ => None,
        }
    }

    pub(in crate::execution) fn awaited_pause_mut(&mut self) -> Option<&mut ServerWait> {
        match self {
            PartState::BackingOff { pause, .. }
            | PartState::InDoubt { probing: ProbeProgress::BackingOff { pause, .. }, .. } => pause.as_mut(),
            _ => None,
        }
    }
}

/// An open attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    pub side: CallSide,
    pub number: u32,
    pub by: Driver,
    pub started_at: Timestamp,
    pub deadline: Option<Timestamp>,
    pub sent: Arc<SentCall>,
    /// The ticket with which the tool can be asked about it, even after a crash.
    pub ticket: Option<Arc<str>>,
    /// The tool's open question.
    pub inquiry: Option<Arc<ToolInquiry>>,
}

/// What an attempt sent, so that it can be repeated or resumed exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct SentCall {
    pub tool: ToolName,
    pub definition: Hash,
    pub key: Hash,
    pub parameters: EventPayload,
}

/// A question of a tool; the message is the tool's.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolInquiry {
    pub message: String,
    pub schema: EventPayload,
    /// With it the call continues from the answer, also after a crash.
    pub continuation: Option<EventPayload>,
}

impl Attempt {
    /// Whether the call can be taken up again after a crash: by asking about its ticket, or from its open question. A
    /// question that was answered is spent: nobody knows whether the answer reached the tool.
    pub fn is_resumable(&self) -> bool {
        self.ticket.is_some() || self.continuation().is_some()
    }

    /// What continues the call from its open question; its parameters are sent again with the answer.
    pub fn continuation(&self) -> Option<&Arc<Value>> {
        let inquiry = self.inquiry.as_ref().filter(|_| self.sent.parameters.value().is_some())?;
        inquiry.continuation.as_ref()?.value()
    }
}

/// The progress of probing a doubt.
#[derive(Clone, Debug, PartialEq)]
pub enum ProbeProgress {
    NotYet,
    Running(Attempt),
    BackingOff {
        until: Timestamp,
        pause: Option<ServerWait>,
    },
    /// The probe has answered; the answer has to be evaluated. It tells of the time when it was asked.
    Answered {
        answer: EventPayload,
        asked_at: Timestamp,
    },
    /// There is no probe, or it settled nothing: a person must decide.
    Exhausted {
        reason: String,
    },
}
