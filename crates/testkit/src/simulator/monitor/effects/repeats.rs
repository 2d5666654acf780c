//! Calls that may be repeated: which attempts have one effect, and that an answer to one of them is not lost.

use super::{EffectMonitor, call_of};
use rutter_core::hash::Hash;
use rutter_core::id::PartId;
use rutter_core::journal::event::{AttemptFollowUp, CallSide, LateEffect};
use rutter_core::plan::{Driver, Plan};
use rutter_core::time::Timestamp;
use rutter_core::tool::Safety;
use std::collections::BTreeMap;

pub type AttemptName = (PartId, CallSide, u32);

/// What was sent, and which of it was answered "done" while another attempt of the same call was not settled.
#[derive(Clone, Debug, Default)]
pub struct RepeatMonitor {
    sent: BTreeMap<AttemptName, SentAttempt>,
    answered: BTreeMap<PartId, AttemptName>,
}

#[derive(Clone, Copy, Debug)]
struct SentAttempt {
    key: Hash,
    at: Timestamp,
    by: Driver,
}

impl RepeatMonitor {
    pub fn started(&mut self, name: AttemptName, key: Hash, at: Timestamp, by: Driver) {
        self.sent.insert(name, SentAttempt { key, at, by });
    }

    /// Whether two attempts of a part have one effect: those of an idempotent call, and those with a key that the tool
    /// remembers. What is not on record is taken for a repeat.
    pub fn has_one_effect(&self, plan: &Plan, part: &PartId, side: CallSide, pair: [u32; 2]) -> bool {
        let Some(call) = call_of(plan, part, side, None).filter(|call| call.is_repeatable()) else { return false };
        let [Some(one), Some(other)] = pair.map(|attempt| self.sent.get(&(part.clone(), side, attempt))) else {
            return true;
        };
        let apart = one.at.since(other.at).max(other.at.since(one.at));
        call.safety != Safety::Once || (one.key == other.key && apart < call.key_window)
    }

    /// The same for two attempts with the same parameters.
    pub fn is_same_call(&self, plan: &Plan, part: &PartId, side: CallSide, pair: [u32; 2]) -> bool {
        let key = |attempt: u32| self.sent.get(&(part.clone(), side, attempt)).map(|sent| sent.key);
        key(pair[0]) == key(pair[1]) && self.has_one_effect(plan, part, side, pair)
    }

    /// An attempt that Rutter made was answered "done" while another one of the same call was not settled.
    pub fn was_answered(&mut self, name: AttemptName) {
        if self.sent.get(&name).is_some_and(|sent| sent.by == Driver::Server) {
            self.answered.insert(name.0.clone(), name);
        }
    }

    /// The answer that settles this attempt, too.
    pub fn answer_to(&self, plan: &Plan, (part, side, attempt): &AttemptName) -> Option<&AttemptName> {
        let answered = self.answered.get(part).filter(|(_, of, _)| of == side)?;
        self.is_same_call(plan, part, *side, [answered.2, *attempt]).then_some(answered)
    }

    pub fn forget(&mut self, part: &PartId) {
        self.answered.remove(part);
    }
}

impl EffectMonitor {
    /// An attempt took effect: the same one as another attempt that it repeats, or one more.
    pub(super) fn stands(&mut self, plan: &Plan, part: &PartId, side: CallSide, attempt: u32) -> bool {
        let standing = self.standing.get(part).into_iter().flatten();
        let mut own = standing.filter(|(of, _)| *of == side);
        let is_new = !own.any(|(_, of)| self.repeats.has_one_effect(plan, part, side, [*of, attempt]));
        if is_new {
            self.standing.entry(part.clone()).or_default().push((side, attempt));
        }
        is_new
    }

    /// A late "done" of a call that may be repeated. Where nothing with the same effect is known, runs or is in doubt, it
    /// is the effect of its part or one more, and the record says which.
    pub(super) fn repeat_is_done(
        &mut self,
        plan: &Plan,
        name: &AttemptName,
        effect: Option<LateEffect>,
    ) -> Result<(), String> {
        let (part, side, attempt) = name.clone();
        let call = call_of(plan, &part, side, None).filter(|call| call.is_repeatable());
        let open = self.running.get(&part).copied();
        let open = open.or(self.doubts.get(&part).map(|doubt| (doubt.side, doubt.attempt)));
        let is_read = call.is_none_or(|call| call.safety == Safety::ReadOnly);
        if is_read || self.done.contains(name) || open == Some((side, attempt)) {
            return Ok(());
        }
        let has_one = |of: u32| self.repeats.has_one_effect(plan, &part, side, [of, attempt]);
        let mut standing = self.standing.get(&part).into_iter().flatten();
        let is_known = standing.any(|(of, known)| *of == side && has_one(*known));
        let is_open = open.is_some_and(|(of, open)| of == side && has_one(open));
        let is_undone = open.is_some_and(|(of, _)| of == CallSide::Undo);
        match effect {
            Some(_) if is_known => Err(format!("attempt {attempt} of {part} was taken for one more effect")),
            None if is_open && !is_known => {
                self.repeats.was_answered(name.clone());
                Ok(())
            }
            None if is_known || is_undone || self.by_hand.contains(&part) => Ok(()),
            None => Err(format!("attempt {attempt} of {part} took effect, and the answer was ignored")),
            Some(effect) => {
                self.done.insert(name.clone());
                self.standing.entry(part.clone()).or_default().push((side, attempt));
                if effect == LateEffect::Second {
                    self.unreported = Some(part.step.clone());
                    *self.surprises.entry(part).or_default() += 1;
                }
                Ok(())
            }
        }
    }

    /// An attempt whose effect is known by the answer to another one is neither tried again nor given up.
    pub(super) fn check_closed(
        &self,
        plan: &Plan,
        (part, side, attempt): (&PartId, CallSide, u32),
        then: AttemptFollowUp,
    ) -> Result<(), String> {
        let answered = self.repeats.answer_to(plan, &(part.clone(), side, attempt));
        match answered.filter(|_| then != AttemptFollowUp::InDoubt) {
            Some((.., known)) => Err(format!("{part} goes on with {then:?}, and attempt {known} was answered")),
            None => Ok(()),
        }
    }

    /// A person takes back what was said by hand.
    pub(super) fn corrected(
        &mut self,
        part: &PartId,
        side: CallSide,
        attempt: u32,
        happened: bool,
        effect: Option<LateEffect>,
    ) {
        let name = (part.clone(), side, attempt);
        match (happened, effect) {
            (true, Some(_)) => {
                self.unreported = Some(part.step.clone());
                self.done.insert(name);
                self.standing.entry(part.clone()).or_default().push((side, attempt));
                *self.surprises.entry(part.clone()).or_default() += 1;
            }
            (true, None) => {}
            (false, _) => {
                self.done.remove(&name);
                self.keys.remove(part);
                if !self.by_hand.remove(part)
                    && let Some(standing) = self.standing.get_mut(part)
                    && let Some(at) = standing.iter().rposition(|(of, _)| *of == side)
                {
                    standing.remove(at);
                }
            }
        }
    }
}
