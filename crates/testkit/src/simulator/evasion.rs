//! Runs around the word of people and the policy: reads that need approval and are probes elsewhere, calls written with
//! their key in many ways, parameters that cannot be evaluated, claims of an agent, rules that change over a restart, and
//! answers of people for whom only a program vouches.

use super::operators::{self, OperatorEffect, OperatorMove};
use super::simulated_run::SimulatedRun;
use crate::chance::SeededRandom;
use rutter_core::actor::{Actor, ActorKind, RequiredProof};
use rutter_core::execution::Execution;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::glob::NamePattern;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::policy::{OperatorPolicy, PolicyEffect};
use serde_json::{Value, json};
use std::sync::Arc;

/// Of sixteen runs, these.
const EVASIVE: [u64; 2] = [12, 15];

/// The person whom the rules name after a restart.
const MATE: &str = "mate";

/// How many answers of people come from a form, for which only the agent's program vouches.
const UNPROVEN_PERCENT: u64 = 30;

/// The ways to write a key, and one that writes none.
const KEYS: [&str; 6] =
    ["{{ key }}", "{{ key | upper }}", "of {{ key }}", "{{ 'of ' ~ key }}", "{{ key | reverse }}", "none"];

pub fn is_evasive(seed: u64) -> bool {
    EVASIVE.contains(&(seed % 16))
}

/// Guards some steps of a plan, writes keys into their calls, and makes some calls that cannot be evaluated.
pub fn guard(plan: &mut Value, chance: &mut SeededRandom) {
    let Some(steps) = plan["steps"].as_array_mut() else { return };
    for step in steps.iter_mut().filter(|step| step.get("for_each").is_none()) {
        if step["tool"] == "sim.read" {
            step["approval"] = json!({ "required": true, "expires": "1h" });
        } else if chance.percent(40) {
            step["parameters"]["key"] = json!(*chance.pick(&KEYS));
            step["approval"] = json!({ "required": true, "expires": "1h" });
        }
        if chance.percent(10) {
            step["parameters"]["unknown"] = json!("{{ inputs.items[99].gone }}");
        }
    }
    probe_with_guarded(steps, chance);
}

/// Makes the guarded reads the probes of other steps. They never say whether it happened: reads know nothing of that here.
fn probe_with_guarded(steps: &mut [Value], chance: &mut SeededRandom) {
    let is_read = |step: &&Value| step["tool"] == "sim.read" && is_plain(&step["parameters"]);
    let reads: Vec<Value> = steps.iter().filter(is_read).map(|step| step["parameters"].clone()).collect();
    let acting = steps.iter_mut().filter(|step| step["tool"] == "sim.once");
    for step in acting.filter(|_| !reads.is_empty() && chance.percent(60)).collect::<Vec<_>>() {
        let parameters = reads.first().cloned().unwrap_or_default();
        step["probe"] = json!({ "tool": "sim.read", "parameters": parameters, "happened": "result.unsaid" });
    }
}

fn is_plain(parameters: &Value) -> bool {
    !parameters.to_string().contains("{{")
}

/// The same calls under other names, with their keys written otherwise, or as probes.
pub fn disguise(document: &Value, execution: &Execution, without_approval: bool, chance: &mut SeededRandom) -> Value {
    let mut plan = document.clone();
    let Some(steps) = plan["steps"].as_array_mut() else { return plan };
    let is_keyed = |step: &Value| step.pointer("/parameters/key").is_some_and(|key| !key.is_null());
    let keyed: Vec<usize> = (0..steps.len()).filter(|at| is_keyed(&steps[*at])).collect();
    // Reading a field that is missing may have added it.
    for step in steps.iter_mut() {
        if let Some(parameters) = step.get_mut("parameters").and_then(Value::as_object_mut) {
            parameters.retain(|_, value| !value.is_null());
        }
    }
    if keyed.is_empty() || chance.percent(30) {
        probe_with_guarded(steps, chance);
        return plan;
    }
    let mut copy = steps[*chance.pick(&keyed)].clone();
    let number = |step: &Value| step["id"].as_str().and_then(|id| id[1..].parse::<u64>().ok());
    let next = 1 + steps.iter().filter_map(number).max().unwrap_or(0);
    copy["id"] = json!(format!("s{next}"));
    let used: Vec<String> =
        execution.parts().filter_map(|(_, part)| part.key).map(|key| key.to_string().to_uppercase()).collect();
    if !used.is_empty() && chance.percent(30) {
        copy["parameters"]["key"] = json!(chance.pick(&used));
    }
    if without_approval && let Some(fields) = copy.as_object_mut() {
        fields.shift_remove("approval");
    }
    steps.push(copy);
    plan
}

/// What an agent says that it did: a call of its choice for a step that there is not, or undoing by its own hand.
pub fn claim(execution: &Execution, chance: &mut SeededRandom) -> OperatorMove {
    let agent = |input| OperatorMove { actor: Actor::agent("pilot"), input, effect: OperatorEffect::None };
    let undoable: Vec<PartId> = execution.parts().filter(|(_, part)| part.effect.is_some()).map(|(id, _)| id).collect();
    if !undoable.is_empty() && chance.percent(40) {
        let part = chance.pick(&undoable).clone();
        let (description, evidence) = ("undone by hand".into(), None);
        let effect = OperatorEffect::UndoByHand(part.clone());
        return OperatorMove { effect, ..agent(ExecutionInput::RecordCompensation { part, description, evidence }) };
    }
    let tool = ToolName::new(chance.pick::<&str>(&["sim.once", "sim.idempotent", "sim.keyed", "sim.read"]));
    let parameters = chance.percent(70).then(|| Arc::new(json!({ "of": chance.below(4) })));
    let part = PartId::whole(StepId::new("elsewhere"));
    agent(ExecutionInput::RecordStarted { part, tool: Some(tool), parameters })
}

/// Some rules name who approves, or ask for a credential; and people may be asked again less often.
pub fn restrict(policy: &mut OperatorPolicy, chance: &mut SeededRandom) {
    policy.ask_again_max = *chance.pick(&[0, 1, 3, 3]);
    for rule in &mut policy.rules {
        if let PolicyEffect::Approval { by, proof, .. } = &mut rule.effect {
            match chance.below(4) {
                0 => *by = vec![NamePattern::new(MATE)],
                1 => *proof = Some(RequiredProof::Credential),
                _ => {}
            }
        }
    }
}

/// The same rules, and only the mate may approve, or only a credential.
fn tightened(policy: &OperatorPolicy, is_about_proof: bool) -> OperatorPolicy {
    let mut policy = policy.clone();
    for rule in &mut policy.rules {
        if let PolicyEffect::Approval { by, proof, .. } = &mut rule.effect {
            match is_about_proof {
                true => *proof = Some(RequiredProof::Credential),
                false => *by = vec![NamePattern::new(MATE)],
            }
        }
    }
    policy
}

fn names_the_mate(policy: &OperatorPolicy) -> bool {
    let is_named = |effect: &PolicyEffect| matches!(effect, PolicyEffect::Approval { by, .. } if !by.is_empty());
    policy.rules.iter().any(|rule| is_named(&rule.effect))
}

impl SimulatedRun<'_> {
    /// After a restart other people may approve.
    pub(super) fn change_rules(&mut self) {
        if self.is_evasive && self.later_policy.is_none() && self.chance.percent(60) {
            self.policy = tightened(&self.policy, self.proof_chance.percent(40));
            self.monitor.change_rules(self.policy.clone());
            self.later_policy = Some((self.journal.records.len(), self.policy.clone()));
        }
    }

    /// A new plan that makes known calls look like others: one of an agent, or of a person who does not look closely.
    pub(super) fn disguise(&mut self) -> OperatorMove {
        let by_person = self.chance.percent(50);
        let document = disguise(&self.document, &self.execution, by_person, &mut self.chance);
        let next = operators::replan_to(document, self.catalog);
        if by_person { OperatorMove { actor: Actor::person("operator"), ..next } } else { next }
    }

    /// Who answers now: whom the rules name, or an operator for whom only a program vouches.
    pub(super) fn by_approver(&mut self, next: OperatorMove) -> OperatorMove {
        let approves = matches!(next.input, ExecutionInput::Approve { .. });
        let is_mate = match self.later_policy {
            Some(_) => approves && self.chance.percent(60),
            None => approves && names_the_mate(&self.policy) && self.proof_chance.percent(60),
        };
        let next = if is_mate { OperatorMove { actor: Actor::person(MATE), ..next } } else { next };
        let is_vouched_for =
            self.is_evasive && next.actor.party == ActorKind::Person && self.proof_chance.percent(UNPROVEN_PERCENT);
        match is_vouched_for {
            true => OperatorMove { actor: next.actor.unproven(), ..next },
            false => next,
        }
    }
}
