//! Checks that what people and the operator's policy said holds, independently of the core.

use super::{JournalMonitor, is_same_call};
use rutter_core::actor::{Actor, ActorKind, RequiredProof};
use rutter_core::glob::NamePattern;
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId, TenantId, ToolName};
use rutter_core::journal::event::{CallSide, Deviation, Event, EventRecord, Question, QuestionAnswer};
use rutter_core::plan::{Driver, Plan, Step};
use rutter_core::policy::{OperatorPolicy, PolicyEffect, ResolvedCall};
use rutter_core::time::Timestamp;
use rutter_core::tool::Safety;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Debug)]
pub(super) struct WordMonitor {
    policy: OperatorPolicy,
    /// The call that each part asked for last.
    asked: BTreeMap<PartId, String>,
    open: BTreeSet<PartId>,
    /// Who may approve the call that each part asked for last, by the rules of that time.
    approvers: BTreeMap<PartId, (Vec<NamePattern>, Option<RequiredProof>)>,
    grants: BTreeMap<PartId, (Hash, Actor)>,
    denied: BTreeMap<String, DeniedWord>,
    /// Calls that nobody approved in time, and how often they may be asked for again.
    unanswered: BTreeMap<String, u32>,
    /// Steps with a call of an agent that was reported as forbidden, and one whose call must be reported so next.
    reported: BTreeSet<StepId>,
    due: Option<StepId>,
    /// Parts whose call was denied, forbidden or not approved in time.
    refused: BTreeSet<PartId>,
    /// Steps that were skipped by decision, with their calls as the plan had them; and steps that have an effect.
    skipped: BTreeMap<StepId, Vec<String>>,
    touched: BTreeSet<StepId>,
    /// Steps that an agent began without approval.
    defied: bool,
    /// The calls under each limit.
    made: BTreeMap<String, Vec<Timestamp>>,
}

/// A call that a person denied.
#[derive(Clone, Copy, Debug)]
struct DeniedWord {
    /// How often it may be asked for again.
    left: u32,
    /// Whether more than a program says that the person denied it.
    is_proven: bool,
}

impl JournalMonitor {
    /// The operator changed the rules, and the process was started again.
    pub fn change_rules(&mut self, policy: OperatorPolicy) {
        self.word.policy = policy;
    }

    /// The journal ends within an append: what was to be reported next is not.
    pub fn is_cut_off(&mut self) {
        self.word.due = None;
    }
}

impl WordMonitor {
    pub fn new(policy: OperatorPolicy) -> WordMonitor {
        WordMonitor {
            policy,
            asked: BTreeMap::new(),
            open: BTreeSet::new(),
            approvers: BTreeMap::new(),
            grants: BTreeMap::new(),
            denied: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            reported: BTreeSet::new(),
            due: None,
            refused: BTreeSet::new(),
            skipped: BTreeMap::new(),
            touched: BTreeSet::new(),
            defied: false,
            made: BTreeMap::new(),
        }
    }

    /// Checks one more record; `plan` is the one before it.
    pub fn observe(&mut self, record: &EventRecord, plan: &Plan) -> Result<(), String> {
        let is_person = record.actor.party == ActorKind::Person;
        self.check_claims(record, plan)?;
        match &record.event {
            Event::ApprovalRequested { part, tool, parameters, .. } => {
                let call = described(tool, parameters.value().map_or(&Value::Null, |value| value));
                let too_often = |why: &str| format!("{part} was put to a person too often after {why}");
                if let Some(denied) = self.denied.get_mut(&call) {
                    denied.left = denied.left.checked_sub(1).ok_or_else(|| too_often("a no"))?;
                }
                if let Some(left) = self.unanswered.get_mut(&call) {
                    *left = left.checked_sub(1).ok_or_else(|| too_often("nobody had answered"))?;
                }
                let known = parameters.value().map_or(&Value::Null, |value| value);
                let demand = self.judged(tool, known, |resolved| demanded(&self.policy, resolved));
                self.approvers.insert(part.clone(), demand);
                self.asked.insert(part.clone(), call);
                self.open.insert(part.clone());
            }
            Event::ApprovalGranted { part, call, .. } => {
                if !is_person {
                    return Err(format!("{part} was approved by {}", record.actor));
                }
                self.check_approver(part, &record.actor)?;
                self.open.remove(part);
                self.refused.remove(part);
                self.grants.insert(part.clone(), (*call, record.actor.clone()));
                self.asked.get(part).map(|call| (self.denied.remove(call), self.unanswered.remove(call)));
            }
            Event::ApprovalDenied { part, .. } => {
                self.open.remove(part);
                self.grants.remove(part);
                self.refused.insert(part.clone());
                self.asked.get(part).map(|call| self.unanswered.remove(call));
                if let Some(call) = self.asked.get(part) {
                    let new = DeniedWord { left: self.policy.ask_again_max, is_proven: false };
                    // A call that was denied before keeps its count.
                    self.denied.entry(call.clone()).or_insert(new).is_proven |= record.actor.is_proven();
                }
            }
            Event::ApprovalExpired { part, .. } | Event::CallForbidden { part, .. } => {
                let is_expired = matches!(record.event, Event::ApprovalExpired { .. });
                if let Some(call) = self.asked.get(part).filter(|call| is_expired && !self.denied.contains_key(*call)) {
                    self.unanswered.entry(call.clone()).or_insert(self.policy.ask_again_max);
                }
                self.open.remove(part);
                self.grants.remove(part);
                if !matches!(record.event, Event::CallForbidden { side: CallSide::Probe, .. }) {
                    self.refused.insert(part.clone());
                }
            }
            // An agent gives up what it has not started.
            Event::RetryAbandoned { part, .. } => drop(self.open.remove(part)),
            Event::ApprovalVoided { part, .. } => {
                self.open.remove(part);
                self.grants.remove(part);
            }
            Event::AttemptStarted { part, side, by: Driver::Server, tool, call, parameters, .. } => {
                let parameters = parameters.value().map_or(&Value::Null, |value| value);
                self.check_call(record.at, part, *side, tool, *call, parameters)?;
                if *side != CallSide::Probe {
                    self.refused.remove(part);
                }
            }
            Event::AttemptStarted { part, by: Driver::Agent, .. } => {
                self.open.remove(part);
                self.refused.remove(part);
            }
            Event::QuestionAnswered { about, answer, .. } => {
                let is_about = |part: &&PartId| match about {
                    Question::Failure(step) => part.step == *step,
                    Question::Compensation(about) | Question::Item(about) => *part == about,
                    _ => false,
                };
                let refused = self.refused.iter().find(is_about);
                if let Some(part) = refused.filter(|_| *answer == QuestionAnswer::Resolve && !is_person) {
                    return Err(format!("{} resolved {part}, which a person or the policy refused", record.actor));
                }
                if let Some(part) = refused.filter(|_| *answer == QuestionAnswer::Resolve && !record.actor.is_proven())
                    && self.is_denied_by_credential(part)
                {
                    return Err(format!("{} resolved {part}, which a credential denied", record.actor));
                }
                if *answer == QuestionAnswer::Retry && is_person {
                    // Who wants to be asked is asked once, whatever the limit.
                    let left = self.policy.ask_again_max.max(1);
                    let denied = self.denied.values_mut().map(|denied| &mut denied.left);
                    denied.chain(self.unanswered.values_mut()).for_each(|it| *it = left);
                }
                if let (Question::Failure(step), QuestionAnswer::Skip) = (about, answer)
                    && let Some(at) = plan.find(step.as_str())
                {
                    self.skipped.insert(step.clone(), written_calls(&plan.steps[at]));
                }
            }
            Event::AttemptSucceeded { part, side: CallSide::Do | CallSide::Fallback, .. } => {
                self.skipped.remove(&part.step);
                self.touched.insert(part.step.clone());
            }
            Event::AttemptFailed { part, maybe: true, .. } | Event::AttemptLost { part, .. } => {
                self.touched.insert(part.step.clone());
            }
            Event::Reopened { steps, .. } => self.skipped.retain(|step, _| !steps.contains(step)),
            Event::DeviationFound { kind: Deviation::Unapproved | Deviation::Forbidden, .. } => self.defied = true,
            // Nothing waits for approval any more, also if it is reopened.
            Event::ExecutionEnded { .. } => self.open.clear(),
            Event::HandedOver { to, .. } => {
                if *to == Driver::Server && self.defied && !is_person {
                    return Err("an agent handed over what it did without approval".to_owned());
                }
                self.defied &= !is_person;
            }
            Event::Replanned { plan: new, .. } => {
                let new = new.plan.as_ref().ok_or("a replan without a plan")?;
                match is_person {
                    true => self.skipped.retain(|step, _| {
                        new.find(step.as_str()).is_none()
                            || (plan.find(step.as_str()).is_some() && is_same_call(plan, new, step))
                    }),
                    false => {
                        self.check_replan(plan, new)?;
                        self.check_return(plan, new)?;
                    }
                }
                self.open.retain(|part| new.find(part.step.as_str()).is_some());
            }
            _ => {}
        }
        Ok(())
    }

    fn check_call(
        &mut self,
        at: Timestamp,
        part: &PartId,
        side: CallSide,
        tool: &ToolName,
        call: Hash,
        parameters: &Value,
    ) -> Result<(), String> {
        // The simulated rules say nothing about safety, tenants and principals.
        let (tenant, principals) = (TenantId::new("sim"), [Actor::agent("pilot")]);
        let safeties = [Safety::Once; 2];
        let resolved = ResolvedCall { tool, safeties, parameters, tenant: &tenant, principals: &principals };
        let verdict = self.policy.judge(&resolved);
        if let Some(found) = verdict.deny {
            return Err(format!("{part} called {tool}, which {} forbids", found.rule.name));
        }
        if let Some((name, PolicyEffect::Limit { calls, per })) =
            verdict.limit.map(|found| (found.rule.name.clone(), &found.rule.effect))
        {
            let made = self.made.entry(name.clone()).or_default();
            made.push(at);
            let within = made.iter().filter(|made| made.plus(*per) > at).count();
            if within > *calls as usize {
                return Err(format!("{part} was the call number {within} in the window of {name}"));
            }
        }
        let approver = self.grants.get(part).filter(|(granted, _)| *granted == call).map(|(_, approver)| approver);
        if verdict.approval.is_some() && side != CallSide::Probe {
            let (by, proof) = demanded(&self.policy, &resolved);
            if !approver.is_some_and(|approver| may_approve(&by, proof, approver)) {
                return Err(format!("{part} called {tool} without the approval that the policy asks for"));
            }
        }
        match self.denied.contains_key(&described(tool, parameters)) {
            true => Err(format!("{part} called {tool} with parameters that a person denied")),
            false => Ok(()),
        }
    }

    /// A yes counts only from those whom the rules named when it was asked for, and a no with a credential is lifted only
    /// by a yes with one.
    fn check_approver(&self, part: &PartId, actor: &Actor) -> Result<(), String> {
        if let Some((by, proof)) = self.approvers.get(part)
            && !may_approve(by, *proof, actor)
        {
            return Err(format!("{actor} approved {part}, and the policy asks for {by:?} with {proof:?}"));
        }
        match self.is_denied_by_credential(part) && !actor.is_proven() {
            true => Err(format!("{actor} approved {part}, which a credential denied")),
            false => Ok(()),
        }
    }

    fn is_denied_by_credential(&self, part: &PartId) -> bool {
        self.asked.get(part).and_then(|call| self.denied.get(call)).is_some_and(|denied| denied.is_proven)
    }

    /// What an agent says that it did against the policy is reported, also where its parameters are not known.
    fn check_claims(&mut self, record: &EventRecord, plan: &Plan) -> Result<(), String> {
        if let Event::DeviationFound { kind: Deviation::Forbidden, step: Some(step), .. } = &record.event {
            self.reported.insert(step.clone());
        }
        let is_next = matches!(record.event, Event::DeviationFound { kind: Deviation::Undeclared, .. });
        if let Some(step) = self.due.take_if(|_| !is_next)
            && !self.reported.contains(&step)
        {
            return Err(format!("a call that the policy forbids was recorded for {step:?}, and not reported"));
        }
        match &record.event {
            Event::ActionRecorded { kind, description, details, .. } if kind == "undeclared" => {
                if let Some((step, tool)) = description.split_once(": called ") {
                    let details = details.as_ref().and_then(|details| details.value());
                    let is_forbidden = self.is_forbidden(&ToolName::new(tool), details.map(|value| &**value));
                    self.reported.remove(step);
                    self.due = is_forbidden.then(|| StepId::new(step));
                }
            }
            Event::AttemptStarted { part, by: Driver::Agent, tool, parameters, .. } => {
                let known = parameters.value().map(|value| &**value).filter(|value| !value.is_null());
                if !self.reported.remove(&part.step) && self.is_forbidden(tool, known) {
                    return Err(format!("an agent began {part}, which the policy forbids, and it was not reported"));
                }
            }
            Event::CompensationRecorded { part, .. } if record.actor.party == ActorKind::Agent => {
                let undo = plan.find(part.step.as_str()).and_then(|at| plan.steps[at].compensation.as_ref());
                let certain = undo.filter(|_| plan.steps.iter().all(|step| step.fallback.is_none()));
                let is_forbidden = certain.is_some_and(|undo| self.is_certainly_forbidden(&undo.call.tool));
                if !self.reported.remove(&part.step) && is_forbidden {
                    return Err(format!("an agent undid {part} against the policy, and it was not reported"));
                }
            }
            // A call that was not evaluated is not known to be allowed.
            Event::PreparationFailed { part, side: CallSide::Do, .. } => {
                let at = plan.find(part.step.as_str());
                if at.is_some_and(|at| self.may_be_ruled(&plan.steps[at].call.tool)) {
                    self.refused.insert(part.clone());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn judged<T>(&self, tool: &ToolName, parameters: &Value, look: impl FnOnce(&ResolvedCall<'_>) -> T) -> T {
        let (tenant, principals) = (TenantId::new("sim"), [Actor::agent("pilot")]);
        look(&ResolvedCall { tool, safeties: [Safety::Once; 2], parameters, tenant: &tenant, principals: &principals })
    }

    fn is_forbidden(&self, tool: &ToolName, parameters: Option<&Value>) -> bool {
        match parameters {
            Some(parameters) => self.judged(tool, parameters, |call| self.policy.judge(call).deny.is_some()),
            None => self.judged(tool, &Value::Null, |call| self.policy.judge_unknown(call).deny.is_some()),
        }
    }

    fn is_certainly_forbidden(&self, tool: &ToolName) -> bool {
        self.judged(tool, &Value::Null, |call| {
            self.policy.judge_unknown(call).deny.is_some_and(|found| found.rule.calls.when.is_none())
        })
    }

    fn may_be_ruled(&self, tool: &ToolName) -> bool {
        self.judged(tool, &Value::Null, |call| {
            let verdict = self.policy.judge_unknown(call);
            verdict.deny.is_some() || verdict.approval.is_some()
        })
    }

    /// An agent's new plan that is followed at once takes nothing away.
    fn check_replan(&self, old: &Plan, new: &Plan) -> Result<(), String> {
        for step in old.steps.iter().filter(|step| step.approval.is_some()) {
            let kept = new.find(step.id.as_str()).map(|at| &new.steps[at]);
            if kept.is_some_and(|kept| kept.approval.is_none()) {
                return Err(format!("an agent's new plan took the approval from {:?}", step.id));
            }
        }
        let is_guarded = |tool: &ToolName| {
            old.steps.iter().any(|step| step.approval.is_some() && tools(step).any(|guarded| guarded == tool))
        };
        for step in new.steps.iter().filter(|step| step.approval.is_none() && old.find(step.id.as_str()).is_none()) {
            if let Some(tool) = tools(step).find(|tool| is_guarded(tool)) {
                return Err(format!("an agent's new plan calls {tool} in {:?} without approval", step.id));
            }
        }
        match self.open.iter().find(|part| new.find(part.step.as_str()).is_none()) {
            Some(part) => Err(format!("an agent's new plan dropped {part}, which waits for approval")),
            None => Ok(()),
        }
    }

    /// An agent's new plan that is followed at once does not run what was skipped by decision: neither with another
    /// call, nor under another name, nor after a plan without it.
    fn check_return(&self, old: &Plan, new: &Plan) -> Result<(), String> {
        for step in &new.steps {
            let id = &step.id;
            let is_planned = old.find(id.as_str()).is_some();
            match self.skipped.get(id) {
                Some(_) if is_planned && is_same_call(old, new, id) => {}
                Some(_) if !is_planned && self.touched.contains(id) => {}
                Some(_) => return Err(format!("an agent's new plan runs {id:?}, which was skipped by decision")),
                None if is_planned => {}
                None => {
                    let calls = written_calls(step);
                    let known =
                        self.skipped.iter().find(|(_, skipped)| skipped.iter().any(|call| calls.contains(call)));
                    if let Some((skipped, _)) = known {
                        return Err(format!("{id:?} of an agent's new plan makes the call of the skipped {skipped:?}"));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whom the rules ask for the approval of a call, and with which proof.
fn demanded(policy: &OperatorPolicy, call: &ResolvedCall<'_>) -> (Vec<NamePattern>, Option<RequiredProof>) {
    match policy.judge(call).approval.map(|found| &found.rule.effect) {
        Some(PolicyEffect::Approval { by, proof, .. }) => (by.clone(), *proof),
        _ => (Vec::new(), None),
    }
}

/// Whoever only a program vouches for has neither a name nor a credential.
fn may_approve(by: &[NamePattern], proof: Option<RequiredProof>, actor: &Actor) -> bool {
    let is_vouched_for = actor.proof.is_some();
    let is_named = by.is_empty() || (!is_vouched_for && by.iter().any(|name| name.matches(&actor.name)));
    is_named && (proof.is_none() || !is_vouched_for)
}

fn written_calls(step: &Step) -> Vec<String> {
    let calls = std::iter::once(&step.call).chain(step.fallback.iter().map(|fallback| &fallback.call));
    calls.map(|call| format!("{} {}", call.tool, call.parameters.source())).collect()
}

fn tools(step: &Step) -> impl Iterator<Item = &ToolName> {
    std::iter::once(&step.call.tool).chain(step.fallback.iter().map(|fallback| &fallback.call.tool))
}

/// Tool and parameters, without keys.
fn described(tool: &ToolName, parameters: &Value) -> String {
    let mut fields: Vec<String> = match parameters.as_object() {
        Some(fields) => fields.iter().map(|(name, value)| format!("{name}={}", keyless(value))).collect(),
        None => vec![parameters.to_string()],
    };
    fields.sort();
    format!("{tool} {}", fields.join(" "))
}

/// A value without the keys in it: 64 hexadecimal digits, in either case and either direction.
fn keyless(value: &Value) -> String {
    let Some(text) = value.as_str() else { return value.to_string() };
    let is_key = |run: &str| run.len() == 64 && run.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.split(' ').map(|word| if is_key(word) { "" } else { word }).collect::<Vec<_>>().join(" ")
}
