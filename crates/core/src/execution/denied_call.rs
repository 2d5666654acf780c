//! Calls that a person denied, or that nobody approved in time: a no holds for the call, whatever the step.

use super::Execution;
use super::part::AskedCall;
use crate::actor::Actor;
use crate::hash::Hash;
use crate::id::ToolName;
use crate::text::quoted;
use crate::time::Timestamp;
use crate::time::calendar::utc;
use serde::Serialize;
use std::sync::Arc;

/// How much of the reason of an earlier no a question shows.
const REASON_CHARS_MAX: usize = 300;

/// A call that a person denied, or that nobody approved in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedCall {
    pub tool: ToolName,
    /// The places in its parameters that came from a key. Whatever stands there, it is the same call.
    pub(super) keyed: Vec<String>,
    /// The entry of the execution by which a person said no, and what they said; none where nobody answered.
    pub(super) denied_by: Option<u64>,
    pub(super) word: Option<Arc<PersonsNo>>,
    /// How often it was put to a person again since, or since a person wanted to be asked again.
    pub asked_again: u32,
    /// A person wants to be asked again, whatever the limit.
    pub is_wanted: bool,
    /// A credential proved who said no; only such a yes lifts it.
    pub is_proven: bool,
}

/// What a person said when they denied a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PersonsNo {
    pub by: Actor,
    pub at: Timestamp,
    pub reason: String,
}

/// An earlier no to a call that a person is asked about again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EarlierDenial {
    pub by: Actor,
    pub at: Timestamp,
    pub reason: String,
    /// How often it was put to a person since, this time included.
    pub asked_again: u32,
}

impl EarlierDenial {
    /// The no in words, the reason as data.
    pub fn words(&self) -> String {
        let (reason, at) = (quoted(&self.reason, REASON_CHARS_MAX), utc(self.at));
        let times = match self.asked_again {
            0 | 1 => String::new(),
            more => format!(", and it was asked for {more} times since"),
        };
        format!("{} denied this call at {at}, {reason}{times}", self.by)
    }
}

impl DeniedCall {
    pub(super) fn of(asked: &AskedCall) -> DeniedCall {
        let (tool, keyed) = (asked.tool.clone(), asked.basis.keyed.clone());
        DeniedCall { tool, keyed, denied_by: None, word: None, asked_again: 0, is_wanted: false, is_proven: false }
    }

    /// Whether a person said no to it.
    pub fn is_no(&self) -> bool {
        self.denied_by.is_some()
    }

    /// Whether it was put to a person again as often as the operator allows.
    pub(super) fn is_used_up(&self, ask_again_max: u32) -> bool {
        self.asked_again >= ask_again_max && !self.is_wanted
    }

    pub(super) fn why_used_up(&self) -> String {
        let why = if self.is_no() { "it was denied" } else { "nobody approved it in time" };
        match self.asked_again {
            0 => format!("{why}, and nobody may be asked again"),
            1 => format!("{why}, and it was asked for once again"),
            times => format!("{why}, and it was asked for {times} times again"),
        }
    }
}

impl Execution {
    /// What a person said who denied the call that is asked for under this digest.
    pub(super) fn earlier_denial(&self, digest: &Hash) -> Option<EarlierDenial> {
        let denied = self.denied.get(digest)?;
        let PersonsNo { by, at, reason } = &**denied.word.as_ref()?;
        let (by, reason, asked_again) = (by.clone(), reason.clone(), denied.asked_again);
        Some(EarlierDenial { by, at: *at, reason, asked_again })
    }
}
