//! Effects and doubts: who settles a doubt and when, which effects are known, and how long a key protects.

mod planned;
mod repeats;

use planned::{call_of, can_undo, compensation_of, settle_of, step_of};
use repeats::{AttemptName, RepeatMonitor};
use rutter_core::actor::ActorKind;
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event::{
    AttemptFollowUp, CallSide, Deviation, DoubtSource, Event, EventRecord, LateAnswer, LateEffect, Question,
    QuestionAnswer,
};
use rutter_core::plan::{Driver, Plan};
use rutter_core::time::Timestamp;
use rutter_core::tool::Safety;
use std::collections::{BTreeMap, BTreeSet};

/// What is known about effects, from the records alone.
#[derive(Clone, Debug, Default)]
pub struct EffectMonitor {
    /// By part: the forward calls that are known to have taken effect and were not undone.
    standing: BTreeMap<PartId, Vec<(CallSide, u32)>>,
    /// Attempts that are known to have taken effect.
    done: BTreeSet<AttemptName>,
    /// Attempts that Rutter sent as calls that must not be repeated.
    once: BTreeSet<AttemptName>,
    repeats: RepeatMonitor,
    running: BTreeMap<PartId, (CallSide, u32)>,
    /// The last attempt of each side.
    last: BTreeMap<(PartId, CallSide), u32>,
    /// By part: the last attempt to undo of an undoing that is over, and the attempts of the present one that are known
    /// to be done though they were settled otherwise.
    undone_by: BTreeMap<PartId, u32>,
    undone_late: BTreeMap<PartId, u32>,
    /// The part whose undoing the last record ended, by an attempt that was settled otherwise.
    ended: Option<PartId>,
    /// The tool of the last compensation that was called.
    undo_tools: BTreeMap<PartId, ToolName>,
    doubts: BTreeMap<PartId, OpenDoubt>,
    /// When the last probe of a part was asked.
    asked: BTreeMap<PartId, Timestamp>,
    keys: BTreeMap<PartId, UsedKey>,
    /// The last answer that came late.
    late: Option<AttemptName>,
    /// Steps of which the next record must report a second effect.
    unreported: Option<StepId>,
    /// By part: how many effects came as a surprise, and how many of these stand by decision.
    surprises: BTreeMap<PartId, usize>,
    accepted: BTreeMap<PartId, usize>,
    /// Attempts that took effect beside another one, and that nobody has decided to let stand.
    seconds: BTreeSet<AttemptName>,
    /// Parts of which only second effects are undone, by decision, and how many effects that leaves.
    only_second: BTreeMap<PartId, usize>,
    /// Parts without a known effect that were completed by hand, which is one.
    by_hand: BTreeSet<PartId>,
    fan_outs: BTreeMap<StepId, u32>,
    /// Attempts whose tool said "done" after they were closed.
    told: BTreeSet<AttemptName>,
    /// Parts whose only effect came to light late, and about which nobody has decided.
    late_only: BTreeSet<PartId>,
}

#[derive(Clone, Copy, Debug)]
struct OpenDoubt {
    side: CallSide,
    attempt: u32,
    since: Timestamp,
}

/// A key, when it was sent first, and whether an attempt with it may have taken effect.
#[derive(Clone, Copy, Debug)]
struct UsedKey {
    key: Hash,
    since: Timestamp,
    unsure: bool,
}

impl EffectMonitor {
    /// Checks one more record; `plan` is the one before it.
    pub fn observe(&mut self, record: &EventRecord, plan: &Plan) -> Result<(), String> {
        let now = record.at;
        if let Some(step) = self.unreported.take() {
            let reports = matches!(&record.event, Event::DeviationFound { kind: Deviation::SecondEffect, step: Some(of), .. } if *of == step);
            if !reports {
                return Err(format!("an attempt of {step:?} took effect late, and no deviation says so"));
            }
        }
        match &record.event {
            Event::AttemptStarted { part, side: CallSide::Probe, .. } => {
                self.asked.insert(part.clone(), now);
            }
            Event::AttemptStarted { part, side, attempt, by, key, tool, .. } => {
                self.repeats.started((part.clone(), *side, *attempt), *key, now, *by);
                self.started(now, plan, (part, *side, *attempt), *by, *key, tool)?;
            }
            Event::AttemptSucceeded { part, side, attempt, .. } if *side != CallSide::Probe => {
                self.running.remove(part);
                self.repeats.forget(part);
                self.happened(plan, part, *side, *attempt);
            }
            Event::AttemptFailed { part, side, attempt, maybe, then, .. } if *side != CallSide::Probe => {
                self.check_closed(plan, (part, *side, *attempt), *then)?;
                self.closed(now, (part, *side, *attempt), *maybe, *then);
                self.end_undoing(plan, part, *side, *then);
            }
            Event::AttemptLost { part, side, attempt, then, .. } if *side != CallSide::Probe => {
                self.check_closed(plan, (part, *side, *attempt), *then)?;
                self.closed(now, (part, *side, *attempt), true, *then);
                self.end_undoing(plan, part, *side, *then);
            }
            Event::KeyExpired { part, side } => {
                if !self.keys.get(part).is_some_and(|used| used.unsure) {
                    return Err(format!(
                        "the key of {part} was called forgotten, and nothing with it may have happened"
                    ));
                }
                let attempt = self.last.get(&(part.clone(), *side)).copied().unwrap_or(0);
                self.doubts.insert(part.clone(), OpenDoubt { side: *side, attempt, since: now });
            }
            Event::Killed { .. } => {
                for (part, (side, attempt)) in std::mem::take(&mut self.running) {
                    self.doubts.insert(part, OpenDoubt { side, attempt, since: now });
                }
            }
            Event::DoubtSettled { part, side, happened, source, then, .. } => {
                self.check_settled(record, plan, part, *side, *happened, *source)?;
                let doubt = self.doubts.remove(part);
                self.repeats.forget(part);
                match (happened, doubt) {
                    (true, Some(doubt)) => self.happened(plan, part, *side, doubt.attempt),
                    (true, None) => self.happened(plan, part, *side, 0),
                    (false, _) => {
                        self.keys.remove(part);
                        self.end_undoing(plan, part, *side, *then);
                    }
                }
            }
            Event::LateAnswerArrived { part, side, attempt, answer, effect, .. } => {
                let name = (part.clone(), *side, *attempt);
                let is_own = record.actor.party == ActorKind::Rutter && matches!(answer, LateAnswer::Done(_));
                if is_own && *side != CallSide::Undo {
                    self.told.insert(name.clone());
                }
                if is_own && *side != CallSide::Undo && *effect == Some(LateEffect::Only) {
                    self.late_only.insert(part.clone());
                }
                if is_own && *side == CallSide::Undo {
                    self.undone_late(plan, name.clone(), *effect);
                } else if is_own && self.is_surprise(&name) {
                    self.unreported = Some(part.step.clone());
                    self.done.insert(name.clone());
                    self.standing.entry(part.clone()).or_default().push((*side, *attempt));
                    *self.surprises.entry(part.clone()).or_default() += 1;
                } else if is_own && !self.once.contains(&name) {
                    self.repeat_is_done(plan, &name, *effect)?;
                }
                if *side != CallSide::Undo && *effect == Some(LateEffect::Second) {
                    self.seconds.insert(name.clone());
                }
                self.late = Some(name);
            }
            Event::SettlementCorrected { part, side, attempt, happened, effect, .. } => {
                let name = (part.clone(), *side, *attempt);
                if !happened && self.told.contains(&name) && !self.by_hand.contains(part) {
                    return Err(format!(
                        "the tool answered attempt {attempt} of {part}, and that was taken back by hand"
                    ));
                }
                if *effect == Some(LateEffect::Second) {
                    self.seconds.insert((part.clone(), *side, *attempt));
                }
                self.corrected(part, *side, *attempt, *happened, *effect);
            }
            Event::ExecutionEnded { .. } => {
                let ignored = self
                    .doubts
                    .iter()
                    .find_map(|(part, doubt)| self.repeats.answer_to(plan, &(part.clone(), doubt.side, doubt.attempt)));
                if let Some((part, _, attempt)) = ignored {
                    return Err(format!("ended in doubt about {part}, whose attempt {attempt} was answered"));
                }
            }
            Event::CompensationStarted { whole: true, .. } => self.only_second.clear(),
            Event::FanOutOpened { step, count, .. } => drop(self.fan_outs.insert(step.clone(), *count)),
            Event::CompensationRecorded { part, .. } => self.undone(plan, part),
            Event::QuestionAnswered { about, answer, .. } => match (about, answer) {
                (Question::Compensation(part), QuestionAnswer::Resolve) => self.undone(plan, part),
                (Question::Item(part), QuestionAnswer::Resolve) if let Some(attempt) = self.answered_late(part) => {
                    return Err(format!("attempt {attempt} of {part} is done, and it was resolved by hand"));
                }
                (Question::Failure(step), QuestionAnswer::Resolve)
                    if let Some(attempt) = self.answered_late(&PartId::whole(step.clone())) =>
                {
                    return Err(format!("attempt {attempt} of {step:?} is done, and it was resolved by hand"));
                }
                (Question::SecondEffect(part), QuestionAnswer::Continue) => {
                    self.late_only.remove(part);
                    self.accepted.insert(part.clone(), self.surprises.get(part).copied().unwrap_or(0));
                    self.seconds.retain(|(of, ..)| of != part);
                }
                // The only effect of a step is undone like any other.
                (Question::SecondEffect(part), QuestionAnswer::Compensate)
                    if self.late_only.contains(part) && !self.seconds.iter().any(|(of, ..)| of == part) => {}
                (Question::SecondEffect(part), QuestionAnswer::Compensate) => {
                    let left = self.standing.get(part).into_iter().flatten();
                    let left = left.filter(|(side, attempt)| !self.is_second(part, *side, *attempt)).count();
                    self.only_second.insert(part.clone(), left + usize::from(self.by_hand.contains(part)));
                }
                (Question::Item(part), QuestionAnswer::Resolve) => self.completed_by_hand(part.clone()),
                (Question::Failure(step), QuestionAnswer::Resolve) => match self.fan_outs.get(step) {
                    Some(count) => {
                        let items = (0..*count).map(|item| PartId { step: step.clone(), item: Some(item) });
                        items.collect::<Vec<_>>().into_iter().for_each(|part| self.completed_by_hand(part));
                    }
                    None => self.completed_by_hand(PartId::whole(step.clone())),
                },
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// The effects that are known and were not undone, by part.
    pub fn standing(&self) -> impl Iterator<Item = (&PartId, usize)> {
        self.standing.iter().map(|(part, sides)| (part, sides.len())).filter(|(_, count)| *count > 0)
    }

    pub fn sides(&self, part: &PartId) -> Vec<CallSide> {
        self.standing.get(part).into_iter().flatten().map(|(side, _)| *side).collect()
    }

    /// How many effects of a part are known, with one by hand.
    pub fn known(&self, part: &PartId) -> usize {
        self.sides(part).len() + usize::from(self.by_hand.contains(part))
    }

    /// How often a part is undone: once for each known effect, and for one that may have happened beside them.
    pub fn to_undo(&self, part: &PartId, at_risk: Option<CallSide>) -> usize {
        let known = self.known(part);
        let is_unsure = at_risk.is_some_and(|side| known > 0 && !self.sides(part).contains(&side));
        known.max(1) + usize::from(is_unsure && !self.by_hand.contains(part))
    }

    /// How many known effects of a part the plan can undo.
    pub fn undoable(&self, plan: &Plan, part: &PartId) -> usize {
        let Some(step) = step_of(plan, part) else { return 0 };
        let by_hand = self.by_hand.contains(part) && can_undo(step, CallSide::Do);
        self.sides(part).iter().filter(|side| can_undo(step, **side)).count() + usize::from(by_hand)
    }

    /// The attempt of a part that was never undone which its tool has answered late.
    fn answered_late(&self, part: &PartId) -> Option<u32> {
        let own = self.standing.get(part)?.iter().filter(|_| !self.undone_by.contains_key(part));
        let told = |(side, attempt): &&(CallSide, u32)| self.told.contains(&(part.clone(), *side, *attempt));
        own.filter(told).map(|(_, attempt)| *attempt).next()
    }

    /// Whether the only effect of a part came to light late, and nobody has decided about it.
    pub fn is_late_only(&self, part: &PartId) -> bool {
        self.late_only.contains(part)
    }

    /// How many effects of a part its present undoing leaves, by decision: its own one, and those that stand.
    pub fn left_standing(&self, part: &PartId) -> usize {
        self.only_second.get(part).copied().unwrap_or(0)
    }

    fn is_second(&self, part: &PartId, side: CallSide, attempt: u32) -> bool {
        self.seconds.contains(&(part.clone(), side, attempt))
    }

    /// Whether every effect but one stands by decision.
    pub fn is_accepted(&self, part: &PartId) -> bool {
        let accepted = self.accepted.get(part).copied().unwrap_or(0);
        accepted > 0 && self.sides(part).len() <= accepted + 1
    }

    /// A late answer is the only sign of an effect, also of a call that may be repeated.
    pub fn has_effect(&mut self, part: &PartId, side: CallSide) {
        let attempt = self.last.get(&(part.clone(), side)).copied().unwrap_or(0);
        let standing = self.standing.entry(part.clone()).or_default();
        if standing.is_empty() {
            standing.push((side, attempt));
        }
    }

    fn completed_by_hand(&mut self, part: PartId) {
        if self.sides(&part).is_empty() {
            self.by_hand.insert(part);
        }
    }

    /// Nothing more of the last append is there.
    pub fn is_cut_off(&mut self) {
        self.unreported = None;
    }

    /// Whether the last record demands one more that is not there.
    pub fn settled(&self) -> Result<(), String> {
        match &self.unreported {
            Some(step) => Err(format!("an attempt of {step:?} took effect late, and nothing says so")),
            None => Ok(()),
        }
    }

    /// A "done" for an attempt that must not be repeated, was settled otherwise, and is not the one in doubt.
    fn is_surprise(&self, name: &AttemptName) -> bool {
        let (part, side, attempt) = name;
        let is_doubted = self.doubts.get(part).is_some_and(|doubt| (doubt.side, doubt.attempt) == (*side, *attempt));
        self.once.contains(name) && !self.done.contains(name) && !is_doubted
    }

    fn started(
        &mut self,
        now: Timestamp,
        plan: &Plan,
        (part, side, attempt): (&PartId, CallSide, u32),
        by: Driver,
        key: Hash,
        tool: &ToolName,
    ) -> Result<(), String> {
        self.running.insert(part.clone(), (side, attempt));
        self.last.insert((part.clone(), side), attempt);
        if side == CallSide::Undo {
            self.undo_tools.insert(part.clone(), tool.clone());
        }
        let call = call_of(plan, part, side, Some(tool));
        let is_server = by == Driver::Server;
        if call.is_some_and(|call| !call.is_repeatable()) && is_server {
            self.once.insert((part.clone(), side, attempt));
            if side == CallSide::Undo && self.undone_late.contains_key(part) {
                return Err(format!("{part} was undone again although it is known to be undone"));
            }
            if side != CallSide::Undo && self.sides(part).contains(&side) {
                return Err(format!("{part} was sent again although it is known to have happened"));
            }
        }
        let mut known = self.standing.get(part).into_iter().flatten().filter(|(of, _)| *of == side);
        if is_server && known.any(|(_, of)| self.repeats.is_same_call(plan, part, side, [*of, attempt])) {
            return Err(format!("{part} was sent again although the answer to it is on record"));
        }
        let used = self.keys.get(part).filter(|used| used.key == key && used.unsure);
        let window = call.filter(|call| call.keyed && is_server).map(|call| call.key_window);
        if let Some((used, window)) = used.zip(window)
            && used.since.plus(window) <= now
        {
            return Err(format!("{part} was sent again with a key that its tool may have forgotten"));
        }
        if used.is_none() {
            self.keys.insert(part.clone(), UsedKey { key, since: now, unsure: false });
        }
        Ok(())
    }

    fn closed(
        &mut self,
        now: Timestamp,
        (part, side, attempt): (&PartId, CallSide, u32),
        maybe: bool,
        then: AttemptFollowUp,
    ) {
        self.running.remove(part);
        if let Some(used) = self.keys.get_mut(part).filter(|_| maybe) {
            used.unsure = true;
        }
        if then == AttemptFollowUp::InDoubt {
            self.doubts.insert(part.clone(), OpenDoubt { side, attempt, since: now });
        }
    }

    /// Only a person, a probe that was asked late enough, or the call's own answer settles a doubt.
    fn check_settled(
        &self,
        record: &EventRecord,
        plan: &Plan,
        part: &PartId,
        side: CallSide,
        happened: bool,
        source: DoubtSource,
    ) -> Result<(), String> {
        let by = record.actor.party;
        let doubt = self.doubts.get(part);
        match source {
            DoubtSource::Person if by != ActorKind::Person => {
                Err(format!("{} settled the doubt about {part}", record.actor))
            }
            DoubtSource::LateAnswer => {
                let answered = doubt.map(|doubt| (part.clone(), doubt.side, doubt.attempt));
                let repeats = |name| happened && self.repeats.answer_to(plan, name).is_some();
                let is_answered = answered == self.late || answered.as_ref().is_none_or(repeats);
                match by == ActorKind::Rutter && is_answered {
                    true => Ok(()),
                    false => Err(format!("the doubt about {part} was settled by an answer to something else")),
                }
            }
            DoubtSource::Probe if !happened => {
                let Some((step, doubt)) = step_of(plan, part).zip(doubt) else { return Ok(()) };
                let settle = settle_of(plan, step, side, self.undo_tools.get(part));
                let asked = self.asked.get(part).copied().unwrap_or_default();
                match asked < doubt.since.plus(settle) {
                    true => Err(format!("a probe of {part} was believed that was asked too early")),
                    false => Ok(()),
                }
            }
            DoubtSource::Person | DoubtSource::Probe => Ok(()),
        }
    }

    fn happened(&mut self, plan: &Plan, part: &PartId, side: CallSide, attempt: u32) {
        self.done.insert((part.clone(), side, attempt));
        self.doubts.remove(part);
        match side {
            CallSide::Undo => {
                let is_once = self.once.contains(&(part.clone(), side, attempt));
                if self.undone_late.get(part).is_some_and(|known| *known != attempt) && is_once {
                    self.unreported = Some(part.step.clone());
                }
                self.undone(plan, part);
            }
            _ => {
                let safety = call_of(plan, part, side, None).map(|call| call.safety);
                if safety == Some(Safety::ReadOnly) {
                    return;
                }
                self.stands(plan, part, side, attempt);
            }
        }
    }

    /// An attempt to undo was done after all: it ends the undoing, or stands beside another attempt.
    fn undone_late(&mut self, plan: &Plan, name: AttemptName, effect: Option<LateEffect>) {
        let (part, side, attempt) = name.clone();
        let doubt = self.doubts.get(&part);
        if self.done.contains(&name) || doubt.is_some_and(|doubt| (doubt.side, doubt.attempt) == (side, attempt)) {
            return;
        }
        let is_once = self.once.contains(&name);
        self.done.insert(name);
        if self.undone_by.get(&part).is_some_and(|last| attempt <= *last) {
            self.unreported = is_once.then_some(part.step);
        } else if effect == Some(LateEffect::Only) {
            self.undone(plan, &part);
            self.ended = Some(part);
        } else {
            self.undone_late.insert(part, attempt);
        }
    }

    pub fn take_ended(&mut self) -> Option<PartId> {
        self.ended.take()
    }

    fn end_undoing(&mut self, plan: &Plan, part: &PartId, side: CallSide, then: AttemptFollowUp) {
        let ends = side == CallSide::Undo && then == AttemptFollowUp::GiveUp;
        if ends && self.undone_late.contains_key(part) {
            self.undone(plan, part);
            self.ended = Some(part.clone());
        }
    }

    /// One effect of the part is undone: the one that was tried to be undone, else one that the plan can undo, if there
    /// is one.
    fn undone(&mut self, plan: &Plan, part: &PartId) {
        self.keys.remove(part);
        self.repeats.forget(part);
        self.undone_late.remove(part);
        let last = self.last.get(&(part.clone(), CallSide::Undo)).copied().unwrap_or(0);
        let is_tried = last > self.undone_by.insert(part.clone(), last).unwrap_or(0);
        let tool = self.undo_tools.get(part).filter(|_| is_tried);
        if self.by_hand.remove(part) {
            return;
        }
        let step = step_of(plan, part);
        let Some(standing) = self.standing.get_mut(part) else { return };
        let is_undone_by = |side: CallSide| {
            let undo = step.and_then(|step| compensation_of(step, side));
            undo.is_some_and(|undo| Some(&undo.call.tool) == tool)
        };
        let undoable = || standing.iter().rposition(|(side, _)| step.is_some_and(|step| can_undo(step, *side)));
        let undone = match tool {
            // Of no known effect: of one that may have happened.
            Some(_) => standing.iter().rposition(|(side, _)| is_undone_by(*side)),
            None => undoable().or_else(|| standing.len().checked_sub(1)),
        };
        if let Some(at) = undone {
            standing.remove(at);
        }
    }
}
