//! What an agent says that it did, compared with what people and the operator's policy say about it.
//!
//! What an agent reports is a claim: the call of the plan, for which its result stands, is judged too. What cannot be
//! evaluated counts as what is forbidden, denied or needs approval.

use super::agenda::PartPosition;
use super::call_digest::{digest, without_key};
use super::decide::{DecisionDraft, RecordResult};
use super::denial::is_enough;
use super::part::{PartRefusal, PartState, RefusalKind, StepPart};
use super::prepare::PreparedCall;
use crate::actor::ActorKind;
use crate::hash::Hash;
use crate::id::{PartId, StepId, ToolName};
use crate::journal::event::{CallSide, Deviation, Event};
use crate::journal::payload::EventPayload;
use crate::plan::template::ParameterTemplate;
use crate::policy::{PolicyVerdict, ResolvedCall};
use crate::tool::Safety;
use serde_json::Value;
use std::sync::Arc;

/// A call that an agent made, or for whose call of the plan it has a result.
#[derive(Clone, Copy)]
struct ClaimedCall<'a> {
    tool: &'a ToolName,
    /// As the plan has it.
    safety: Safety,
    /// None if they are not known.
    parameters: Option<&'a Value>,
    /// The call of the plan that is made with `key`, and the key.
    template: Option<&'a ParameterTemplate>,
    key: Hash,
}

/// What an agent says about one step, and the call of the plan, if it can be evaluated.
struct StepClaim<'a> {
    at: PartPosition,
    side: CallSide,
    reported: ClaimedCall<'a>,
    planned: ClaimedCall<'a>,
    prepared: Option<&'a PreparedCall>,
}

impl StepClaim<'_> {
    fn calls(&self) -> [&ClaimedCall<'_>; 2] {
        [&self.reported, &self.planned]
    }
}

impl DecisionDraft<'_> {
    /// Records what an agent did against the word of people or the policy.
    pub(super) fn compare_word(
        &mut self,
        at: PartPosition,
        side: CallSide,
        tool: Option<&ToolName>,
        parameters: Option<&Value>,
    ) -> RecordResult {
        let Some(call) = self.execution.call_of(at, side) else { return Ok(()) };
        // Without a key an agent began it before, and nobody knows with what.
        let prepared = self.execution.prepare(at, side).ok().filter(|call| call.key != Hash::ZERO);
        let key = prepared.as_ref().map_or(Hash::ZERO, |call| call.key);
        let (known, template) = (prepared.as_ref().map(|call| &*call.parameters), Some(&call.parameters));
        let planned = ClaimedCall { tool: &call.tool, safety: call.safety, parameters: known, template, key };
        let is_planned = tool.is_none_or(|tool| *tool == call.tool);
        let reported = ClaimedCall {
            tool: tool.unwrap_or(&call.tool),
            parameters: parameters.or(known.filter(|_| is_planned)),
            template: template.filter(|_| is_planned),
            ..planned
        };
        let claim = StepClaim { at, side, reported, planned, prepared: prepared.as_ref() };
        let (rule, lack) = (self.forbidding(&claim), self.lacking(&claim));
        let step = self.execution.plan.steps[at.step()].id.clone();
        self.defy(&step, rule, lack)
    }

    /// The same for a call that is none of the plan's.
    pub(super) fn compare_undeclared(
        &mut self,
        step: &StepId,
        tool: &ToolName,
        parameters: Option<&Value>,
    ) -> RecordResult {
        let call = ClaimedCall { tool, safety: Safety::Once, parameters, template: None, key: Hash::ZERO };
        let rule = self.judge_claim(&call).deny.map(|found| found.rule.name.clone());
        let rule = rule.map(|rule| format!("called {tool}, which rule {rule} forbids"));
        let lack = self.lacking_of(&call);
        self.defy(step, rule, lack)
    }

    /// Judges a call that an agent says it made: the part takes no attempt of it over, so that nothing else is recorded.
    pub(super) fn record_claim(
        &mut self,
        part: &PartId,
        tool: Option<ToolName>,
        parameters: Option<Arc<Value>>,
    ) -> RecordResult {
        let at = self.execution.locate(part).filter(|at| self.execution.part_at(*at).is_some());
        match (at, tool) {
            (Some(at), tool) => {
                let side = self.execution.last_side(at);
                self.compare_word(at, side, tool.as_ref(), parameters.as_deref())
            }
            (None, Some(tool)) => self.compare_undeclared(&part.step, &tool, parameters.as_deref()),
            (None, None) => Ok(()),
        }
    }

    /// An agent undid a step by hand, which stands for the call that undoes it.
    pub(super) fn record_compensation(
        &mut self,
        part: PartId,
        description: String,
        evidence: Option<EventPayload>,
    ) -> RecordResult {
        if let Some(at) = self.execution.locate(&part).filter(|_| self.actor.party == ActorKind::Agent) {
            self.compare_word(at, CallSide::Undo, None, None)?;
        }
        self.note(Event::CompensationRecorded { part, description, evidence })
    }

    fn defy(&mut self, step: &StepId, rule: Option<String>, lack: Option<String>) -> RecordResult {
        if let Some(rule) = rule {
            self.deviate(Deviation::Forbidden, step, &rule)?;
        }
        match lack {
            Some(lack) => self.deviate(Deviation::Unapproved, step, &lack),
            None => Ok(()),
        }
    }

    /// Judges a call that this actor made: it may be the first that is heard of them.
    fn judge_claim(&self, call: &ClaimedCall<'_>) -> PolicyVerdict<'_> {
        let principals = [self.execution.principals(), std::slice::from_ref(&self.actor)].concat();
        let parameters = call.parameters.unwrap_or(&Value::Null);
        let resolved = self.execution.resolved_as(call.safety, call.tool, parameters);
        let resolved = ResolvedCall { principals: &principals, ..resolved };
        match call.parameters {
            Some(_) => self.policy.judge(&resolved),
            None => self.policy.judge_unknown(&resolved),
        }
    }

    /// The rule that forbids the reported call or the planned one.
    fn forbidding(&self, claim: &StepClaim<'_>) -> Option<String> {
        let deny = |call: &ClaimedCall<'_>| self.judge_claim(call).deny.map(|found| found.rule.name.clone());
        let (reported, planned) = (claim.reported.tool, claim.planned.tool);
        if let Some(rule) = deny(&claim.reported) {
            return Some(format!("called {reported}, which rule {rule} forbids"));
        }
        if let Some(rule) = deny(&claim.planned) {
            return Some(format!("stands for a call of {planned}, which rule {rule} forbids"));
        }
        let is_forbidden = self.refusal(claim).is_some_and(|refusal| refusal.kind == RefusalKind::Forbidden);
        is_forbidden.then(|| "begun although the policy forbade its call".to_owned())
    }

    /// Why the last call of this side was not made.
    fn refusal(&self, claim: &StepClaim<'_>) -> Option<PartRefusal> {
        let part = self.execution.part_at(claim.at)?;
        let is_of_undoing = matches!(part.state, PartState::CompensationFailed { .. });
        part.refused.filter(|_| is_of_undoing == (claim.side == CallSide::Undo))
    }

    /// The approval that the reported call or the planned one lacks.
    fn lacking(&self, claim: &StepClaim<'_>) -> Option<String> {
        let execution = &*self.execution;
        let part = execution.part_at(claim.at);
        if let Some((part, approved)) = part.and_then(|part| Some((part, part.approved?))) {
            return self.exceeding(claim, part, approved);
        }
        match self.refusal(claim).map(|refusal| refusal.kind) {
            Some(RefusalKind::Denied) => return Some("begun although a person denied its call".to_owned()),
            Some(RefusalKind::Expired) => return Some("begun although its call was not approved in time".to_owned()),
            Some(RefusalKind::Forbidden | RefusalKind::Unjudged) | None => {}
        }
        if claim.side != CallSide::Undo && execution.plan.steps[claim.at.step()].approval.is_some() {
            return Some("begun without the approval the plan asks for".to_owned());
        }
        claim.calls().into_iter().find_map(|call| self.lacking_of(call))
    }

    /// What the approval of a part is not enough for.
    fn exceeding(&self, claim: &StepClaim<'_>, part: &StepPart, approved: Hash) -> Option<String> {
        let same = |call: &ClaimedCall<'_>| Some(digest(call.tool, &without_key(call.parameters?, call.key)));
        let is_approved =
            claim.prepared.is_some_and(|call| call.hash == approved) && same(&claim.reported) == same(&claim.planned);
        if !is_approved {
            return Some("called otherwise than it was approved".to_owned());
        }
        let verdict = self.judge_claim(&claim.reported);
        let rule = verdict.approval.filter(|_| !is_enough(&verdict, part.approver.as_deref()));
        rule.map(|found| format!("begun without the approval that rule {} asks for now", found.rule.name))
    }

    /// The approval that a call needs whichever step makes it.
    fn lacking_of(&self, call: &ClaimedCall<'_>) -> Option<String> {
        if let Some(found) = self.judge_claim(call).approval {
            return Some(format!("begun without the approval that rule {} asks for", found.rule.name));
        }
        let is_denied = match call.parameters {
            None => self.execution.has_denied(call.tool),
            Some(parameters) => {
                let compared = || self.execution.compared(call.tool, parameters, call.template, call.key);
                self.execution.denials_of(compared).into_iter().any(|(_, denied)| denied.is_no())
            }
        };
        is_denied.then(|| "begun although a person denied the call".to_owned())
    }
}
