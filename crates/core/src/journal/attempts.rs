//! Pairs the start of every attempt with its end.
//!
//! [`OpenAttempts`] is fed entry by entry and holds only attempts in flight, so that a reader of the whole ledger can
//! use it. [`AttemptHistory`] holds every attempt of one execution, with late answers and settled doubts.

use super::event::{AttemptFollowUp, CallSide, Event, LateAnswer};
use crate::id::{PartId, ToolName};
use crate::plan::Driver;
use crate::time::{Millis, Timestamp};
use crate::tool::ToolFailure;
use serde::{Deserialize, Serialize};

/// Open attempts tracked per execution; beyond it the oldest is dropped.
pub const OPEN_ATTEMPTS_MAX: usize = 20_000;

/// Identifies an attempt. A replan may restart the numbers at one; then the newest is meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptKey {
    pub part: PartId,
    pub side: CallSide,
    pub number: u32,
}

/// An attempt in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OpenAttempt {
    pub key: AttemptKey,
    /// The entry that started it.
    pub seq: u64,
    pub started_at: Timestamp,
    pub tool: ToolName,
    pub by: Driver,
    /// The tool works in the background and can be asked with this ticket; a crash does not lose the attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
}

/// An attempt that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosedAttempt {
    pub key: AttemptKey,
    /// `None` when it started before the first entry that was read.
    pub start: Option<OpenAttempt>,
    pub ended_at: Timestamp,
    /// The entry that ended it.
    pub ended_seq: u64,
    pub end: AttemptEnd,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptEnd {
    Succeeded {
        cost_micros: u64,
    },
    /// With `maybe`, it may have taken effect.
    Failed {
        failure: ToolFailure,
        maybe: bool,
        then: AttemptFollowUp,
    },
    /// The process or the agent that made the call is gone.
    Lost {
        then: AttemptFollowUp,
    },
    /// Its answer is no longer awaited: the execution ended, or the doubt of a probe was settled otherwise.
    Abandoned,
}

/// The effect of an entry on attempts.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptChange {
    Started(AttemptKey),
    Closed(ClosedAttempt),
    /// Attempts whose answers are no longer awaited. May be empty.
    Abandoned(Vec<ClosedAttempt>),
    /// An answer to an attempt that was closed before.
    AnsweredLate {
        key: AttemptKey,
        answer: LateAnswerKind,
        cost_micros: u64,
    },
}

/// The content of a late answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LateAnswerKind {
    Done,
    NotDone,
    Maybe,
}

impl AttemptEnd {
    /// The name in metrics and traces.
    pub fn as_str(&self) -> &'static str {
        match self {
            AttemptEnd::Succeeded { .. } => "succeeded",
            AttemptEnd::Failed { .. } => "failed",
            AttemptEnd::Lost { .. } => "lost",
            AttemptEnd::Abandoned => "abandoned",
        }
    }

    pub fn then(&self) -> Option<AttemptFollowUp> {
        match self {
            AttemptEnd::Failed { then, .. } | AttemptEnd::Lost { then } => Some(*then),
            AttemptEnd::Succeeded { .. } | AttemptEnd::Abandoned => None,
        }
    }

    pub fn failure(&self) -> Option<&ToolFailure> {
        match self {
            AttemptEnd::Failed { failure, .. } => Some(failure),
            AttemptEnd::Succeeded { .. } | AttemptEnd::Lost { .. } | AttemptEnd::Abandoned => None,
        }
    }

    pub fn is_in_doubt(&self) -> bool {
        self.then() == Some(AttemptFollowUp::InDoubt)
    }
}

impl ClosedAttempt {
    pub fn tool(&self) -> Option<&ToolName> {
        self.start.as_ref().map(|start| &start.tool)
    }

    pub fn took(&self) -> Option<Millis> {
        self.start.as_ref().map(|start| self.ended_at.since(start.started_at))
    }
}

/// The attempts of one execution that are in flight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpenAttempts(Vec<OpenAttempt>);

impl OpenAttempts {
    /// Applies one entry; `None` when it changes no attempt.
    pub fn apply<P>(&mut self, seq: u64, at: Timestamp, event: &Event<P>) -> Option<AttemptChange> {
        let key = |part: &PartId, side: CallSide, number: u32| AttemptKey { part: part.clone(), side, number };
        Some(match event {
            Event::AttemptStarted { part, side, attempt, tool, by, .. } => {
                let key = key(part, *side, *attempt);
                self.start(OpenAttempt {
                    key: key.clone(),
                    seq,
                    started_at: at,
                    tool: tool.clone(),
                    by: *by,
                    ticket: None,
                });
                AttemptChange::Started(key)
            }
            Event::AttemptAccepted { part, side, attempt, ticket } => {
                let key = key(part, *side, *attempt);
                let open = self.0.iter_mut().rfind(|open| open.key == key)?;
                open.ticket = Some(ticket.clone());
                return None;
            }
            Event::AttemptSucceeded { part, side, attempt, cost_micros, .. } => {
                let end = AttemptEnd::Succeeded { cost_micros: *cost_micros };
                AttemptChange::Closed(self.close(key(part, *side, *attempt), seq, at, end))
            }
            Event::AttemptFailed { part, side, attempt, failure, maybe, then } => {
                let end = AttemptEnd::Failed { failure: failure.clone(), maybe: *maybe, then: *then };
                AttemptChange::Closed(self.close(key(part, *side, *attempt), seq, at, end))
            }
            Event::AttemptLost { part, side, attempt, then } => {
                let end = AttemptEnd::Lost { then: *then };
                AttemptChange::Closed(self.close(key(part, *side, *attempt), seq, at, end))
            }
            Event::LateAnswerArrived { part, side, attempt, answer, cost_micros, .. } => {
                let answer = match answer {
                    LateAnswer::Done(_) => LateAnswerKind::Done,
                    LateAnswer::NotDone(_) => LateAnswerKind::NotDone,
                    LateAnswer::Maybe(_) => LateAnswerKind::Maybe,
                };
                let (key, cost_micros) = (key(part, *side, *attempt), *cost_micros);
                AttemptChange::AnsweredLate { key, answer, cost_micros }
            }
            Event::DoubtSettled { part, .. } => {
                let is_probe = |open: &OpenAttempt| open.key.side == CallSide::Probe && open.key.part == *part;
                AttemptChange::Abandoned(self.abandon(seq, at, is_probe))
            }
            Event::Killed { .. } | Event::ExecutionEnded { .. } => {
                AttemptChange::Abandoned(self.abandon(seq, at, |_| true))
            }
            _ => return None,
        })
    }

    /// Attempts in the order in which they started.
    pub fn iter(&self) -> impl Iterator<Item = &OpenAttempt> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The newest open attempt of this side of a part.
    pub fn find(&self, part: &PartId, side: CallSide) -> Option<&OpenAttempt> {
        self.0.iter().rfind(|open| open.key.side == side && open.key.part == *part)
    }

    /// Removes an attempt whose end was found elsewhere.
    pub fn remove(&mut self, key: &AttemptKey) -> Option<OpenAttempt> {
        let place = self.0.iter().rposition(|open| open.key == *key)?;
        Some(self.0.remove(place))
    }

    fn start(&mut self, attempt: OpenAttempt) {
        if self.0.len() >= OPEN_ATTEMPTS_MAX {
            self.0.remove(0);
        }
        self.0.push(attempt);
    }

    fn close(&mut self, key: AttemptKey, seq: u64, at: Timestamp, end: AttemptEnd) -> ClosedAttempt {
        let start = self.remove(&key);
        ClosedAttempt { key, start, ended_at: at, ended_seq: seq, end }
    }

    fn abandon(&mut self, seq: u64, at: Timestamp, is_meant: impl Fn(&OpenAttempt) -> bool) -> Vec<ClosedAttempt> {
        let gone = self.0.extract_if(.., |open| is_meant(open));
        gone.map(|open| ClosedAttempt {
            key: open.key.clone(),
            start: Some(open),
            ended_at: at,
            ended_seq: seq,
            end: AttemptEnd::Abandoned,
        })
        .collect()
    }
}

/// Every attempt of one execution: the closed ones in the order in which they ended, then the open ones.
#[derive(Clone, Debug, Default)]
pub struct AttemptHistory {
    open: OpenAttempts,
    closed: Vec<KnownAttempt>,
}

/// An attempt that has ended, with later findings.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownAttempt {
    pub attempt: ClosedAttempt,
    /// An answer that arrived after the attempt was closed.
    pub late_answer: Option<LateAnswerKind>,
    /// Whether it took effect, once the doubt is settled.
    pub settled: Option<bool>,
    /// The entries with the later findings.
    pub later_seqs: Vec<u64>,
}

impl AttemptHistory {
    pub fn apply<P>(&mut self, seq: u64, at: Timestamp, event: &Event<P>) {
        let change = self.open.apply(seq, at, event);
        if let Event::DoubtSettled { part, side, happened, .. } = event {
            let is_meant =
                |known: &&mut KnownAttempt| known.attempt.key.part == *part && known.attempt.key.side == *side;
            // The newest one is in doubt: no further attempt starts before it is settled.
            if let Some(known) = self.closed.iter_mut().rev().find(is_meant) {
                known.settled = Some(*happened);
                known.later_seqs.push(seq);
            }
        }
        if let Event::SettlementCorrected { part, side, attempt, happened, .. } = event {
            let is_meant = |known: &&mut KnownAttempt| {
                let key = &known.attempt.key;
                (&key.part, &key.side, &key.number) == (part, side, attempt)
            };
            if let Some(known) = self.closed.iter_mut().rev().find(is_meant) {
                known.settled = Some(*happened);
                known.later_seqs.push(seq);
            }
        }
        match change {
            None | Some(AttemptChange::Started(_)) => {}
            Some(AttemptChange::Closed(attempt)) => self.keep(attempt),
            Some(AttemptChange::Abandoned(attempts)) => attempts.into_iter().for_each(|it| self.keep(it)),
            Some(AttemptChange::AnsweredLate { key, answer, .. }) => {
                if let Some(known) = self.closed.iter_mut().rev().find(|known| known.attempt.key == key) {
                    known.late_answer = Some(answer);
                    known.later_seqs.push(seq);
                }
            }
        }
    }

    pub fn closed(&self) -> &[KnownAttempt] {
        &self.closed
    }

    pub fn open(&self) -> &OpenAttempts {
        &self.open
    }

    fn keep(&mut self, attempt: ClosedAttempt) {
        self.closed.push(KnownAttempt { attempt, late_answer: None, settled: None, later_seqs: Vec::new() });
    }
}

#[cfg(test)]
mod tests;
