//! What people and the operator's policy say about calls before they are sent: a demand for approval, a denial that holds.

use super::agenda::PartPosition;
use super::call_digest::{digest, places_of_keys, without, without_key};
use super::decide::{DecisionDraft, RecordResult};
use super::denied_call::{DeniedCall, PersonsNo};
use super::part::{Approver, PartState, RefusalKind, StepPart};
use super::prepare::PreparedCall;
use super::{Execution, ExecutionIdentity, IllegalEvent};
use crate::actor::{Actor, ActorKind, RequiredProof};
use crate::hash::Hash;
use crate::id::ToolName;
use crate::journal::event::{ApprovalBasis, CallSide, Deviation, Event, EventRecord, PlanReference, QuestionAnswer};
use crate::journal::payload::EventPayload;
use crate::limits;
use crate::plan::template::ParameterTemplate;
use crate::plan::{Driver, PlannedCall};
use crate::policy::window::{LimitWindows, LimitedCall};
use crate::policy::{OperatorPolicy, PolicyEffect, PolicyVerdict, ResolvedCall, may_approve};
use crate::time::{Millis, Timestamp};
use crate::tool::{FailureCategory, Safety, ToolFailure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A call to be compared with those that were denied.
pub(super) struct ComparedCall<'a> {
    pub tool: &'a ToolName,
    pub parameters: &'a Value,
    /// The places in the parameters that come from a key, and the key of the call.
    pub keyed: Vec<String>,
    pub key: Hash,
}

impl ComparedCall<'_> {
    /// What a denial of it binds: tool and parameters without what comes from a key, whatever the step.
    fn digest(&self) -> Hash {
        digest(self.tool, &without(self.parameters, &self.keyed))
    }
}

/// What must happen before a call is sent.
pub(super) enum CallDemand {
    None,
    Approval(ApprovalDemand),
    Forbidden { rule: Option<String>, reason: String },
}

/// An approval that a call needs.
pub(super) struct ApprovalDemand {
    pub expires: Millis,
    pub basis: ApprovalBasis,
}

impl Execution {
    /// Everybody who has a say in the calls of this execution: who opened it, whose new plan it follows, and the agents
    /// that drove it.
    pub fn principals(&self) -> &[Actor] {
        &self.principals
    }

    /// Whether nobody could have anything to say about the calls of this step.
    pub(super) fn is_unguarded(&self, at: PartPosition, policy: &OperatorPolicy) -> bool {
        self.plan.steps[at.step()].approval.is_none() && policy.is_empty() && self.denied.is_empty()
    }

    /// What the plan, the policy and earlier denials demand of a call that is to be sent now. Each can only add to the
    /// others, and an approval that was given before counts only if it is enough for all of them.
    pub(super) fn demand(
        &self,
        at: PartPosition,
        side: CallSide,
        call: &PreparedCall,
        policy: &OperatorPolicy,
    ) -> CallDemand {
        let verdict = policy.judge(&self.resolved(at, side, &call.tool, &call.parameters));
        if let Some(deny) = verdict.deny {
            return CallDemand::Forbidden { rule: Some(deny.rule.name.clone()), reason: deny.reason() };
        }
        let denials = self.denials_of(|| self.compared_at(at, side, call));
        let is_denied = denials.iter().any(|(_, denied)| denied.is_no());
        if side == CallSide::Probe {
            let reason = "a person denied this call".to_owned();
            return if is_denied { CallDemand::Forbidden { rule: None, reason } } else { CallDemand::None };
        }
        let forward = matches!(side, CallSide::Do | CallSide::Fallback);
        let planned = self.plan.steps[at.step()].approval.filter(|_| forward).map(|rule| rule.expires);
        let is_demanded = planned.is_some() || verdict.approval.is_some() || is_denied;
        if !is_demanded || self.is_approved(at, call, &verdict, &denials) {
            return CallDemand::None;
        }
        let strictest = strictest(&denials);
        if let Some((_, denied)) = strictest.filter(|(_, denied)| denied.is_used_up(policy.ask_again_max)) {
            return CallDemand::Forbidden { rule: None, reason: denied.why_used_up() };
        }
        let (digest, keyed) = self.bound(at, side, call);
        let mut basis = ApprovalBasis { digest, keyed, rule: None, by: Vec::new(), proof: None };
        let mut expires = planned;
        if let Some(found) = verdict.approval
            && let PolicyEffect::Approval { by, expires: within, proof } = &found.rule.effect
        {
            (basis.rule, basis.by, basis.proof) = (Some(found.rule.name.clone()), by.clone(), *proof);
            expires = expires.into_iter().chain(*within).min();
        }
        if denials.iter().any(|(_, denied)| denied.is_proven) {
            basis.proof = Some(RequiredProof::Credential);
        }
        CallDemand::Approval(ApprovalDemand { expires: expires.unwrap_or(limits::APPROVAL_EXPIRES_DEFAULT), basis })
    }

    /// Whether this part has an unused approval of exactly this call, from somebody who may give it under the rules that
    /// are in force now, and no person has denied the call since.
    fn is_approved(
        &self,
        at: PartPosition,
        call: &PreparedCall,
        verdict: &PolicyVerdict<'_>,
        denials: &[(Hash, &DeniedCall)],
    ) -> bool {
        let Some(part) = self.part_at(at).filter(|part| part.approved == Some(call.hash)) else { return false };
        let approved_by = part.approver.as_ref().map(|approver| approver.entry);
        let is_outdated = denials.iter().any(|(_, denied)| denied.denied_by > approved_by);
        is_enough(verdict, part.approver.as_deref()) && !is_outdated
    }

    /// A call as denials compare it. What comes from a key is what the plan writes with `key`, and every text that holds a
    /// key of any part.
    pub(super) fn compared<'a>(
        &self,
        tool: &'a ToolName,
        parameters: &'a Value,
        template: Option<&ParameterTemplate>,
        key: Hash,
    ) -> ComparedCall<'a> {
        let mut keyed = self.places_of_keys(parameters, key);
        keyed.extend(template.into_iter().flat_map(ParameterTemplate::key_places).map(str::to_owned));
        keyed.sort_unstable();
        keyed.dedup();
        ComparedCall { tool, parameters, keyed, key }
    }

    /// The same of a call of the plan.
    fn compared_at<'a>(&self, at: PartPosition, side: CallSide, call: &'a PreparedCall) -> ComparedCall<'a> {
        let template = self.call_of(at, side).map(|planned| &planned.parameters);
        self.compared(&call.tool, &call.parameters, template, call.key)
    }

    /// The places of texts that hold this key, or one that a part has used.
    fn places_of_keys(&self, parameters: &Value, key: Hash) -> Vec<String> {
        let own = key.to_string();
        let mut used: Option<BTreeSet<String>> = None;
        let parts = || self.steps.iter().flat_map(|step| &step.parts);
        let all = || parts().flat_map(|part| part.key.into_iter().chain(part.calls.iter().map(|call| call.key)));
        places_of_keys(parameters, &mut |text| {
            text == own || used.get_or_insert_with(|| all().map(|key| key.to_string()).collect()).contains(text)
        })
    }

    /// The denials that bind a call, by whatever step and however it is written.
    pub(super) fn denials_of<'a>(&self, call: impl FnOnce() -> ComparedCall<'a>) -> Vec<(Hash, &DeniedCall)> {
        if self.denied.is_empty() {
            return Vec::new();
        }
        let call = call();
        let digest_without = |places: &[&[String]]| {
            let parameters = without(call.parameters, places.iter().copied().flatten());
            digest(call.tool, &parameters)
        };
        let mut digests = BTreeSet::from([
            digest_without(&[]),
            call.digest(),
            digest(call.tool, &without_key(call.parameters, call.key)),
        ]);
        let of_tool = self.denied.values().filter(|denied| denied.tool == *call.tool);
        let places: BTreeSet<&[String]> = of_tool.map(|denied| denied.keyed.as_slice()).collect();
        for places in places {
            digests.extend([digest_without(&[places]), digest_without(&[places, &call.keyed])]);
        }
        digests
            .iter()
            .filter_map(|digest| self.denied.get_key_value(digest))
            .map(|(digest, it)| (*digest, it))
            .collect()
    }

    /// What an answer about this call binds: the denial that it is about, or else the call itself.
    pub(super) fn bound(&self, at: PartPosition, side: CallSide, call: &PreparedCall) -> (Hash, Vec<String>) {
        let compared = || self.compared_at(at, side, call);
        match strictest(&self.denials_of(compared)) {
            Some((digest, denied)) => (digest, denied.keyed.clone()),
            None => {
                let call = compared();
                (call.digest(), call.keyed)
            }
        }
    }

    /// The failure of a step whose call cannot be evaluated. Where a rule may be about the call, it counts as not allowed.
    pub(super) fn unjudged(&self, call: &PlannedCall, failure: ToolFailure, policy: &OperatorPolicy) -> ToolFailure {
        let verdict = policy.judge_unknown(&self.resolved_as(call.safety, &call.tool, &Value::Null));
        let why = match verdict.deny.or(verdict.approval) {
            Some(found) => format!("rule {} may be about its call", found.rule.name),
            None if self.has_denied(&call.tool) => format!("a person denied a call of {}", call.tool),
            None => return failure,
        };
        let message = format!("{}; {why}, so a person decides", failure.message);
        ToolFailure { category: FailureCategory::Unauthorized, message, ..failure }
    }

    /// Whether a person denied any call of this tool.
    pub(super) fn has_denied(&self, tool: &ToolName) -> bool {
        self.denied.values().any(|denied| denied.is_no() && denied.tool == *tool)
    }

    pub(super) fn resolved<'a>(
        &'a self,
        at: PartPosition,
        side: CallSide,
        tool: &'a ToolName,
        parameters: &'a Value,
    ) -> ResolvedCall<'a> {
        let planned = self.call_of(at, side).map_or(Safety::Once, |call| call.safety);
        self.resolved_as(planned, tool, parameters)
    }

    pub(super) fn resolved_as<'a>(
        &'a self,
        planned: Safety,
        tool: &'a ToolName,
        parameters: &'a Value,
    ) -> ResolvedCall<'a> {
        let own = self.plan.tools.get(tool).map_or(Safety::Once, |tool| tool.safety);
        let (tenant, principals) = (&self.identity.tenant, &*self.principals);
        ResolvedCall { tool, safeties: [own, planned], parameters, tenant, principals }
    }

    /// Counts a call under the limits of a policy, if this record, which is about to be applied, starts one.
    /// A call whose parameters were erased counts wherever a condition reads them.
    pub fn count_call(&self, policy: &OperatorPolicy, record: &EventRecord, windows: &mut LimitWindows) {
        let Event::AttemptStarted { part, side, by: Driver::Server, tool, parameters, .. } = &record.event else {
            return;
        };
        let planned = self.locate(part).and_then(|at| self.call_of(at, *side));
        let planned = planned.map_or(Safety::Once, |call| call.safety);
        let known = parameters.value();
        let call = self.resolved_as(planned, tool, known.map_or(&Value::Null, |parameters| &**parameters));
        for rule in policy.limits_of(&call, known.is_some()) {
            windows.note(rule, call.tenant, record.at);
        }
    }

    /// Counts the calls of a journal from a time on.
    pub fn count_calls(
        identity: ExecutionIdentity,
        records: &[EventRecord],
        policy: &OperatorPolicy,
        since: Timestamp,
        windows: &mut LimitWindows,
    ) -> Result<(), IllegalEvent> {
        let Some((opened, rest)) = records.split_first() else { return Ok(()) };
        let mut execution = Execution::open(identity, opened)?;
        for record in rest {
            if record.at >= since {
                execution.count_call(policy, record, windows);
            }
            execution.apply(record)?;
        }
        Ok(())
    }

    /// Remembers denials, and what lifts them. The only place where `denied`, `defied` and `guarded` change.
    pub(super) fn remember_word(&mut self, record: &EventRecord) {
        let is_person = record.actor.party == ActorKind::Person;
        match &record.event {
            Event::ApprovalRequested { basis: Some(basis), .. } => {
                if let Some(denied) = self.denied.get_mut(&basis.digest) {
                    denied.asked_again += 1;
                    denied.is_wanted = false;
                }
            }
            Event::ApprovalDenied { part, reason, .. } => {
                if let Some(asked) = self.part(part).and_then(|part| part.asked.clone()) {
                    let (digest, entry) = (asked.basis.digest, self.entries);
                    let denied = self.denied.entry(digest).or_insert_with(|| DeniedCall::of(&asked));
                    // What nobody answered is answered now.
                    denied.asked_again = if denied.is_no() { denied.asked_again } else { 0 };
                    denied.denied_by = Some(entry);
                    let (by, at, reason) = (record.actor.clone(), record.at, reason.clone());
                    denied.word = Some(Arc::new(PersonsNo { by, at, reason }));
                    denied.is_proven |= record.actor.is_proven();
                    self.withdraw_approvals(digest);
                }
            }
            Event::ApprovalExpired { part, .. } => {
                if let Some(asked) = self.part(part).and_then(|part| part.asked.clone()) {
                    self.denied.entry(asked.basis.digest).or_insert_with(|| DeniedCall::of(&asked));
                }
            }
            Event::ApprovalGranted { part, .. } => {
                if let Some(digest) = self.part(part).and_then(StepPart::asked_for) {
                    self.denied.remove(&digest);
                }
                if let Some(at) = self.locate(part) {
                    let approver = Approver { actor: record.actor.clone(), entry: self.entries };
                    self.steps[at.step()].parts[at.item()].approver = Some(Arc::new(approver));
                }
            }
            Event::QuestionAnswered { about, answer: QuestionAnswer::Retry, .. } if is_person => {
                for digest in self.refusals_of(about).filter_map(|refusal| refusal.digest).collect::<Vec<_>>() {
                    let denied = self.denied.get_mut(&digest);
                    if let Some(denied) = denied.filter(|denied| record.actor.is_proven() || !denied.is_proven) {
                        (denied.asked_again, denied.is_wanted) = (0, true);
                    }
                }
            }
            Event::DeviationFound { kind: Deviation::Unapproved | Deviation::Forbidden, step: Some(step), .. } => {
                self.defied.insert(step.clone(), self.entries);
            }
            Event::AttemptStarted { part, by, .. } => {
                // The deviation is recorded right before the attempt that it is about.
                let is_defied = *by == Driver::Agent && self.defied.get(&part.step) == Some(&(self.entries - 1));
                if let Some(at) = self.locate(part) {
                    self.steps[at.step()].parts[at.item()].is_defied = is_defied;
                }
            }
            Event::HandedOver { .. } if is_person => self.defied.clear(),
            Event::ReplanProposed { .. } => {
                if let Some(proposal) = &mut self.proposal {
                    proposal.by = Some(record.actor.clone());
                }
            }
            Event::Replanned { plan: PlanReference { plan: Some(plan), .. }, .. } => {
                self.guard(&record.actor, plan);
                if is_person {
                    self.rejections = 0;
                }
            }
            _ => {}
        }
    }

    /// Remembers who has a say in the calls. Before the record is applied: a new plan that a person approved is still
    /// the plan of the one who proposed it.
    pub(super) fn remember_principal(&mut self, record: &EventRecord) {
        let drives =
            self.driver == Driver::Agent || matches!(record.event, Event::HandedOver { to: Driver::Agent, .. });
        let author = match &record.event {
            Event::Replanned { plan, .. } => {
                let proposed = self.proposal.as_ref().filter(|proposal| proposal.plan.hash == plan.hash);
                proposed.map_or(Some(&record.actor), |proposal| proposal.by.as_ref())
            }
            _ => Some(&record.actor).filter(|actor| drives && actor.party == ActorKind::Agent),
        };
        let author = author.filter(|author| !self.principals.iter().any(|known| known.is_same(author))).cloned();
        self.principals.extend(author);
    }

    /// A no is about the call, not about the step: an earlier, unused yes to the same call is void.
    fn withdraw_approvals(&mut self, digest: Hash) {
        for part in self.steps.iter_mut().flat_map(|step| &mut step.parts) {
            if part.asked_for() == Some(digest) {
                part.approved = None;
            }
        }
    }
}

impl DecisionDraft<'_> {
    /// Records that a call is not made.
    pub(super) fn forbid(
        &mut self,
        at: PartPosition,
        side: CallSide,
        call: &PreparedCall,
        rule: Option<String>,
        reason: String,
    ) -> RecordResult {
        let (part, tool) = (self.execution.name(at), call.tool.clone());
        let (digest, _) = self.execution.bound(at, side, call);
        self.follow(Event::CallForbidden { part, side, call: call.hash, tool, rule, reason, digest })
    }

    /// Asks for approval of a call, or voids the approval of another one first.
    pub(super) fn ask(
        &mut self,
        at: PartPosition,
        side: CallSide,
        prepared: &PreparedCall,
        demand: ApprovalDemand,
    ) -> RecordResult {
        let part = self.execution.name(at);
        if let Some(PartState::Approved { call, .. } | PartState::Asking { call, .. }) =
            self.execution.part_at(at).map(|part| &part.state)
        {
            let reason = match *call == prepared.hash {
                true => "the approval is not enough for the rules and denials that hold now",
                false => "the call is no longer the one that was approved",
            };
            return self.follow(Event::ApprovalVoided { part, call: *call, reason: reason.to_owned() });
        }
        self.follow(Event::ApprovalRequested {
            part,
            side,
            call: prepared.hash,
            tool: prepared.tool.clone(),
            parameters: EventPayload::Present(prepared.parameters.clone()),
            expires_at: self.now.plus(demand.expires),
            basis: Some(Box::new(demand.basis)),
        })
    }

    /// Whether a limit of the policy lets the call start now; if not, it waits.
    pub(super) fn is_within_limit(
        &mut self,
        at: PartPosition,
        side: CallSide,
        call: &PreparedCall,
    ) -> Result<bool, IllegalEvent> {
        let policy = self.policy;
        let found = policy.judge(&self.execution.resolved(at, side, &call.tool, &call.parameters)).limit;
        let Some((rule, PolicyEffect::Limit { calls, per })) = found.map(|found| (found.rule, &found.rule.effect))
        else {
            return Ok(true);
        };
        let part = self.execution.name(at);
        let call = format!("{part} {}", side.as_str());
        let limited = LimitedCall { rule: &rule.name, calls: *calls, per: *per, call: &call };
        match self.room.reserve(&limited, self.now) {
            None => Ok(true),
            Some(until) => {
                let until = until.max(self.now.plus(Millis(1)));
                self.follow(Event::CallDelayed { part, side, rule: rule.name.clone(), until, failure: None })?;
                Ok(false)
            }
        }
    }
}

/// Whether a call of this part is asked for, was denied, not approved in time or forbidden, and was not made since.
pub(super) fn is_contested(part: &StepPart) -> bool {
    let is_open = !matches!(part.state, PartState::Completed { .. } | PartState::Compensated { .. });
    let is_refused = part.refused.is_some_and(|refusal| refusal.kind != RefusalKind::Unjudged);
    matches!(part.state, PartState::Asking { .. }) || (is_refused && is_open)
}

/// Whether an approval by this person is enough for what the policy says now.
pub(super) fn is_enough(verdict: &PolicyVerdict<'_>, approver: Option<&Approver>) -> bool {
    match verdict.approval.map(|found| &found.rule.effect) {
        Some(PolicyEffect::Approval { by, proof, .. }) => match approver {
            Some(Approver { actor, .. }) => actor.satisfies(*proof) && may_approve(by, actor),
            None => by.is_empty() && proof.is_none(),
        },
        _ => true,
    }
}

/// The denial that demands most.
fn strictest<'a>(denials: &[(Hash, &'a DeniedCall)]) -> Option<(Hash, &'a DeniedCall)> {
    denials.iter().copied().max_by_key(|(_, denied)| (denied.is_no(), denied.is_proven, denied.asked_again))
}
