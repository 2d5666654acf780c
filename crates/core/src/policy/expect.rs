//! Which rules will or may apply to the calls of a plan, before anything is called.

use super::{CallMatcher, OperatorPolicy, ParametersScope, PolicyEffect};
use crate::actor::Actor;
use crate::id::{StepId, TenantId, ToolName};
use crate::journal::event::CallSide;
use crate::plan::template::ParameterTemplate;
use crate::plan::{Plan, PlannedCall, Step};
use crate::tool::Safety;
use serde::Serialize;

/// Who would execute a plan; `None` if that is not known yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanCaller<'a> {
    pub tenant: Option<&'a TenantId>,
    /// Who opens the execution, and who else has a say in its calls.
    pub principals: Option<&'a [Actor]>,
}

/// The rules that will or may apply to the calls of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepRules {
    pub step: StepId,
    pub rules: Vec<ExpectedRule>,
}

/// A rule that will or may apply to a call, if the call is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExpectedRule {
    pub rule: String,
    /// `deny`, `approval` or `limit`.
    pub kind: &'static str,
    pub certainty: RuleCertainty,
    /// Which call of the step: `do`, `fallback`, `undo` or `probe`.
    pub call: &'static str,
    pub tool: ToolName,
    /// Who may approve; anyone with the right to if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// What the rule says.
    pub effect: String,
    /// Why it matches, or what that depends on.
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleCertainty {
    /// The rule is about this call.
    Certain,
    /// It depends on values that are known only when the call is made.
    Possible,
}

/// A call as far as it is known before it is made.
struct UnresolvedCall<'a> {
    tool: &'a ToolName,
    safeties: Option<[Safety; 2]>,
    parameters: &'a ParameterTemplate,
    caller: PlanCaller<'a>,
}

impl OperatorPolicy {
    /// The steps of a plan that a rule will or may be about, in the order of the plan.
    pub fn expect(&self, plan: &Plan, caller: PlanCaller<'_>) -> Vec<StepRules> {
        if self.is_empty() {
            return Vec::new();
        }
        let of_step = |step: &Step| {
            let rules = calls(step).flat_map(|(side, call)| self.expect_call(plan, side, call, caller)).collect();
            StepRules { step: step.id.clone(), rules }
        };
        plan.steps.iter().map(|step| of_step(step)).filter(|step| !step.rules.is_empty()).collect()
    }

    fn expect_call(
        &self,
        plan: &Plan,
        side: CallSide,
        call: &PlannedCall,
        caller: PlanCaller<'_>,
    ) -> Vec<ExpectedRule> {
        // How safe a call of an unknown tool is turns out when the tool is known.
        let safeties = plan.tools.get(&call.tool).map(|tool| [tool.safety, call.safety]);
        let unresolved = UnresolvedCall { tool: &call.tool, safeties, parameters: &call.parameters, caller };
        let mut expected: Vec<ExpectedRule> = Vec::new();
        for rule in &self.rules {
            let kind = rule.effect.kind();
            let is_decided =
                |earlier: &ExpectedRule| earlier.kind == kind && earlier.certainty == RuleCertainty::Certain;
            // Nobody is asked about a probe, and of each kind only the first rule applies.
            let is_probe = side == CallSide::Probe && matches!(rule.effect, PolicyEffect::Approval { .. });
            if is_probe || expected.iter().any(is_decided) {
                continue;
            }
            let Some((certainty, mut reason)) = rule.calls.expect(&unresolved) else { continue };
            let earlier = expected.iter().find(|earlier| earlier.kind == kind);
            if let (RuleCertainty::Certain, Some(earlier)) = (certainty, earlier) {
                reason = format!("{reason}, unless {:?} matches", earlier.rule);
            }
            expected.push(ExpectedRule {
                rule: rule.name.clone(),
                kind,
                certainty,
                call: side.as_str(),
                tool: call.tool.clone(),
                by: rule.effect.approvers(),
                effect: rule.effect.to_string(),
                reason,
            });
        }
        expected
    }
}

impl StepRules {
    /// The rule that certainly forbids the step's own call, or one of several.
    pub fn denial(&self) -> Option<&ExpectedRule> {
        self.rules.iter().find(|rule| {
            rule.kind == "deny" && rule.call == CallSide::Do.as_str() && rule.certainty == RuleCertainty::Certain
        })
    }
}

impl std::fmt::Display for ExpectedRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ExpectedRule { rule, effect, reason, .. } = self;
        match self.certainty {
            RuleCertainty::Certain => write!(f, "{rule:?}: {effect}")?,
            RuleCertainty::Possible => write!(f, "{rule:?} may match, {reason}: {effect}")?,
        }
        match self.call == CallSide::Do.as_str() {
            true => Ok(()),
            false => write!(f, " ({} {})", self.call, self.tool),
        }
    }
}

impl PolicyEffect {
    fn approvers(&self) -> Vec<String> {
        match self {
            PolicyEffect::Approval { by, .. } => by.iter().map(|name| name.as_str().to_owned()).collect(),
            PolicyEffect::Deny { .. } | PolicyEffect::Limit { .. } => Vec::new(),
        }
    }
}

impl CallMatcher {
    /// Whether the rule is about a call, and why; `None` if it certainly is not.
    fn expect(&self, call: &UnresolvedCall<'_>) -> Option<(RuleCertainty, String)> {
        let PlanCaller { tenant, principals } = call.caller;
        let unknown = self.compare(call.tool, call.safeties, principals, tenant).ok()?;
        let mut depends: Vec<String> = unknown.into_iter().map(str::to_owned).collect();
        let Some(when) = &self.when else { return Some(expectation(depends, "everything it names fits".to_owned())) };
        let open = when.reads.iter().filter(|path| is_open(&path[1..], call.parameters));
        let mut open: Vec<String> = open.map(|path| path.join(".")).collect();
        let source = when.source.trim();
        if !open.is_empty() {
            depends.append(&mut open);
            return Some(expectation(depends, String::new()));
        }
        // Only the literal parts are read.
        match when.evaluate_bool(&ParametersScope { parameters: call.parameters.source() }) {
            Ok(true) => Some(expectation(depends, format!("`{source}` is true"))),
            Ok(false) => None,
            Err(error) => Some(expectation(depends, format!("`{source}` cannot be evaluated: {error}"))),
        }
    }
}

fn expectation(depends: Vec<String>, why: String) -> (RuleCertainty, String) {
    match depends.is_empty() {
        true => (RuleCertainty::Certain, why),
        false => (RuleCertainty::Possible, format!("depends on {}", depends.join(" and "))),
    }
}

/// Whether an expression in the parameters decides what a condition finds at this path.
fn is_open(path: &[String], parameters: &ParameterTemplate) -> bool {
    parameters.holes().iter().any(|(pointer, _)| {
        let keys = pointer.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~"));
        // A position in a list may count from its end.
        keys.zip(path).all(|(key, name)| key == *name || name.parse::<i64>().is_ok())
    })
}

/// Every call of a step, and what it is for.
fn calls(step: &Step) -> impl Iterator<Item = (CallSide, &PlannedCall)> {
    let fallback = step.fallback.iter();
    let undo = step.compensation.iter().chain(fallback.clone().filter_map(|fallback| fallback.compensation.as_ref()));
    let probes = step.probe.iter().chain(undo.clone().filter_map(|undo| undo.probe.as_ref()));
    std::iter::once((CallSide::Do, &step.call))
        .chain(fallback.map(|fallback| (CallSide::Fallback, &fallback.call)))
        .chain(undo.map(|undo| (CallSide::Undo, &undo.call)))
        .chain(probes.map(|probe| (CallSide::Probe, &probe.call)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Driver;
    use crate::plan::check::check_document;
    use crate::plan::document::{DocumentFormat, PlanDocument};
    use crate::tool::ToolCatalog;
    use serde_json::{Value, json};
    use std::sync::Arc;

    fn policy(rules: Value) -> OperatorPolicy {
        OperatorPolicy::read(&serde_json::from_value::<Vec<_>>(rules).unwrap()).unwrap()
    }

    fn plan(steps: Value) -> Arc<Plan> {
        let catalog = json!({ "tools": [
            { "name": "pay.charge", "safety": "once" },
            { "name": "pay.refund", "safety": "idempotent" },
            { "name": "pay.find", "safety": "read_only" },
        ] });
        let inputs = json!({ "type": "object", "properties": { "amount": { "type": "number" } } });
        let text = json!({ "name": "p", "goal": "g", "inputs": inputs, "steps": steps }).to_string();
        let document = PlanDocument::read(text.as_bytes(), DocumentFormat::Json).unwrap();
        let checked = check_document(&document, &ToolCatalog::from_json(&catalog).unwrap(), Driver::Agent, None);
        checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
    }

    /// The rules of the first step, in words.
    fn expected(rules: Value, step: Value) -> Vec<String> {
        let steps = policy(rules).expect(&plan(json!([step])), PlanCaller::default());
        steps.iter().flat_map(|step| step.rules.iter().map(ToString::to_string)).collect()
    }

    fn charge(parameters: Value) -> Value {
        json!({ "id": "a", "tool": "pay.charge", "parameters": parameters })
    }

    #[test]
    fn literal_parameters_are_certain_and_templates_only_possible() {
        let large = json!([{ "name": "large", "when": "parameters.amount > 100", "approval": { "by": ["ada"] } }]);
        let template = json!("{{ inputs.amount }}");
        for (parameters, expected_rules) in [
            (json!({ "amount": 500 }), vec![r#""large": needs the approval of ada"#]),
            (json!({ "amount": 5 }), vec![]),
            (json!({}), vec![r#""large": needs the approval of ada"#]),
            (
                json!({ "amount": template }),
                vec![r#""large" may match, depends on parameters.amount: needs the approval of ada"#],
            ),
            (json!({ "amount": 5, "note": template }), vec![]),
        ] {
            assert_eq!(expected(large.clone(), charge(parameters.clone())), expected_rules, "{parameters}");
        }
    }

    #[test]
    fn a_template_above_within_or_in_a_list_may_decide_a_condition() {
        let of = |when: &str, parameters: Value| {
            expected(json!([{ "name": "r", "when": when, "deny": "no" }]), charge(parameters)).len()
        };
        let template = json!("{{ inputs.amount }}");
        assert_eq!(of("parameters.a.b == 1", json!({ "a": template })), 1);
        assert_eq!(of("parameters.a == {'b': 1}", json!({ "a": { "b": template } })), 1);
        assert_eq!(of("parameters.list[-1] == 1", json!({ "list": [0, template] })), 1);
        assert_eq!(of("parameters == {'a': 1}", json!({ "a": template })), 1);
        assert_eq!(of("parameters.a.b == 1", json!({ "a": { "b": 2, "c": template } })), 0);
    }

    #[test]
    fn the_first_certain_rule_of_a_kind_ends_the_list() {
        let rules = json!([
            { "name": "maybe", "principals": ["agent:*"], "deny": "agents do not" },
            { "name": "never", "tools": ["pay.*"], "deny": "nobody does" },
            { "name": "later", "deny": "not reached" },
            { "name": "few", "limit": { "calls": 1, "per": "1h" } },
        ]);
        let steps = policy(rules.clone()).expect(&plan(json!([charge(json!({}))])), PlanCaller::default());
        let names: Vec<_> = steps[0].rules.iter().map(|rule| (rule.rule.as_str(), rule.certainty)).collect();
        use RuleCertainty::{Certain, Possible};
        assert_eq!(names, [("maybe", Possible), ("never", Certain), ("few", Certain)]);
        assert_eq!(steps[0].rules[0].reason, "depends on who opens the execution");
        assert_eq!(steps[0].rules[1].reason, r#"everything it names fits, unless "maybe" matches"#);
        assert_eq!(steps[0].denial().map(|rule| rule.rule.as_str()), Some("never"));
        let people = [Actor::person("ada")];
        let caller = PlanCaller { tenant: None, principals: Some(&people) };
        let steps = policy(rules).expect(&plan(json!([charge(json!({}))])), caller);
        assert_eq!(steps[0].rules[0].rule, "never", "it is known who opens it");
    }

    #[test]
    fn every_call_of_a_step_is_judged_and_nobody_is_asked_about_a_probe() {
        let step = json!({
            "id": "a", "tool": "pay.charge", "parameters": {},
            "cancellable": "reversible",
            "compensation": { "tool": "pay.refund", "parameters": {} },
            "probe": { "tool": "pay.find", "parameters": {}, "happened": "result.found" },
        });
        let rules = json!([{ "name": "ask", "approval": {} }, { "name": "few", "limit": { "calls": 9, "per": "1h" } }]);
        let steps = policy(rules).expect(&plan(json!([step])), PlanCaller::default());
        let calls: Vec<_> = steps[0].rules.iter().map(|rule| (rule.call, rule.kind)).collect();
        let all = [("do", "approval"), ("do", "limit"), ("undo", "approval"), ("undo", "limit"), ("probe", "limit")];
        assert_eq!(calls, all);
    }

    #[test]
    fn the_safety_of_an_unknown_tool_is_not_guessed() {
        let reads = json!([{ "name": "reads", "safety": ["read_only"], "deny": "no" }]);
        assert!(expected(reads.clone(), charge(json!({}))).is_empty(), "the tool is known not to be read-only");
        let unknown = json!({ "id": "a", "tool": "other.look", "parameters": {} });
        assert_eq!(expected(reads, unknown), [r#""reads" may match, depends on how safe the tool is: forbidden: no"#]);
    }

    /// What is said before the run must not be contradicted by the run.
    #[test]
    fn a_rule_that_is_not_expected_does_not_match_the_resolved_call() {
        use crate::policy::ResolvedCall;
        let whens = [
            "parameters.a > 1",
            "parameters.a is defined and parameters.b == 2",
            "parameters.a.b == 1 or parameters.list[-1] == 3",
            "parameters.list | length > 1",
            "not parameters.a",
        ];
        let templates = [json!({ "a": "{{ inputs.amount }}", "b": 2 }), json!({ "a": 1 }), json!({ "list": [1, 2] })];
        let (tool, tenant, principals) = (ToolName::new("pay.charge"), TenantId::new("t"), [Actor::agent("pilot")]);
        for (when, template) in whens.iter().flat_map(|when| templates.iter().map(move |template| (when, template))) {
            let policy = policy(json!([{ "name": "r", "when": when, "deny": "no" }]));
            let plan = plan(json!([charge(template.clone())]));
            let caller = PlanCaller { tenant: Some(&tenant), principals: Some(&principals) };
            let steps = policy.expect(&plan, caller);
            let certainty = steps.first().map(|step| step.rules[0].certainty);
            for amount in [json!(0), json!(3), json!({ "b": 1 })] {
                let mut parameters = template.clone();
                if template["a"].is_string() {
                    parameters["a"] = amount;
                }
                let call = ResolvedCall {
                    tool: &tool,
                    safeties: [Safety::Once; 2],
                    parameters: &parameters,
                    tenant: &tenant,
                    principals: &principals,
                };
                match policy.judge(&call).deny {
                    Some(_) => assert!(certainty.is_some(), "{when} {parameters}"),
                    None => assert_ne!(certainty, Some(RuleCertainty::Certain), "{when} {parameters}"),
                }
            }
        }
    }
}
