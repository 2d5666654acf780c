//! The operator's policy: which calls need a person, which are forbidden, and which limits hold.
//!
//! It stands above every plan: a plan or a new revision can be stricter, never looser. [`OperatorPolicy::judge`] is
//! asked about the resolved call right before it is sent. The answer is recorded, so that a replay never judges again.
//! [`rule`] reads rules and refuses bad ones, [`explain`] says why a rule matches or does not,
//! [`expect`] which rules will or may apply to the calls of a plan, [`window`] counts the calls under limits.

pub mod expect;
pub mod explain;
pub mod rule;
pub mod window;

use crate::actor::{Actor, ActorKind, RequiredProof};
use crate::glob::NamePattern;
use crate::id::{TenantId, ToolName};
use crate::limits;
use crate::plan::expression::{EvaluationError, Expression, ExpressionScope};
use crate::time::Millis;
use crate::tool::Safety;
use serde_json::Value;

/// All rules, in the order in which the operator wrote them, and how often people may be asked again.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorPolicy {
    pub rules: Vec<PolicyRule>,
    /// How often a call, or a new plan, that a person has denied may be put to a person again.
    pub ask_again_max: u32,
}

impl Default for OperatorPolicy {
    fn default() -> OperatorPolicy {
        OperatorPolicy { rules: Vec::new(), ask_again_max: limits::ASK_AGAIN_DEFAULT }
    }
}

/// One rule: the calls it is about, and what it says about them.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyRule {
    /// The operator's name for it, or `policy[3]`.
    pub name: String,
    pub calls: CallMatcher,
    pub effect: PolicyEffect,
}

/// The calls of a rule. An empty list does not restrict.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallMatcher {
    pub tools: Vec<NamePattern>,
    pub servers: Vec<NamePattern>,
    pub safety: Vec<Safety>,
    /// Who has a say in the calls of the execution, or makes the direct call: `agent:*`, `person:ada`, `ada`.
    pub principals: Vec<NamePattern>,
    pub tenants: Vec<NamePattern>,
    /// Reads `parameters`. If it cannot be evaluated, the rule matches.
    pub when: Option<Expression>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PolicyEffect {
    Deny {
        reason: String,
    },
    /// A person must approve the call; one of `by`, if there are any, with this proof of who they are.
    Approval {
        by: Vec<NamePattern>,
        expires: Option<Millis>,
        proof: Option<RequiredProof>,
    },
    /// At most so many calls in a sliding window, over all executions of the tenant.
    Limit {
        calls: u32,
        per: Millis,
    },
}

/// A call as it would be sent.
#[derive(Clone, Copy, Debug)]
pub struct ResolvedCall<'a> {
    pub tool: &'a ToolName,
    /// The tool's own safety, and the one that the plan has it under. A rule is about either.
    pub safeties: [Safety; 2],
    pub parameters: &'a Value,
    pub tenant: &'a TenantId,
    /// Everybody who has a say in the call. A rule that names one of them is about it.
    pub principals: &'a [Actor],
}

/// What the policy says about one call: the first rule of each kind that matches.
#[derive(Clone, Copy, Debug, Default)]
pub struct PolicyVerdict<'a> {
    pub deny: Option<RuleMatch<'a>>,
    pub approval: Option<RuleMatch<'a>>,
    pub limit: Option<RuleMatch<'a>>,
}

/// A rule that matches a call.
#[derive(Clone, Copy, Debug)]
pub struct RuleMatch<'a> {
    pub rule: &'a PolicyRule,
    /// Its condition could not be evaluated, so it counts as matching.
    pub is_unsure: bool,
}

impl OperatorPolicy {
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Judges a call that is about to be sent.
    pub fn judge(&self, call: &ResolvedCall<'_>) -> PolicyVerdict<'_> {
        self.judge_by(|calls| calls.matches(call))
    }

    /// The limits under which a call counts: of one whose parameters are not known, every limit that may have applied.
    pub fn limits_of(&self, call: &ResolvedCall<'_>, is_known: bool) -> Vec<&PolicyRule> {
        if is_known {
            return self.judge(call).limit.into_iter().map(|found| found.rule).collect();
        }
        let is_limit = |rule: &&PolicyRule| matches!(rule.effect, PolicyEffect::Limit { .. });
        let about = self.rules.iter().filter(is_limit).filter(|rule| rule.calls.mismatch(call).is_none());
        let mut is_certain = false;
        about.take_while(|rule| !std::mem::replace(&mut is_certain, rule.calls.when.is_none())).collect()
    }

    /// Judges a call whose parameters are not known: every condition counts as true.
    pub fn judge_unknown(&self, call: &ResolvedCall<'_>) -> PolicyVerdict<'_> {
        self.judge_by(|calls| calls.mismatch(call).is_none().then_some(calls.when.is_some()))
    }

    fn judge_by(&self, matches: impl Fn(&CallMatcher) -> Option<bool>) -> PolicyVerdict<'_> {
        let mut verdict = PolicyVerdict::default();
        for rule in &self.rules {
            let first = match &rule.effect {
                PolicyEffect::Deny { .. } => &mut verdict.deny,
                PolicyEffect::Approval { .. } => &mut verdict.approval,
                PolicyEffect::Limit { .. } => &mut verdict.limit,
            };
            if first.is_none() {
                *first = matches(&rule.calls).map(|is_unsure| RuleMatch { rule, is_unsure });
            }
        }
        verdict
    }
}

impl RuleMatch<'_> {
    /// The reason of a denial, for the journal and for people.
    pub fn reason(&self) -> String {
        let reason = match &self.rule.effect {
            PolicyEffect::Deny { reason } => reason.as_str(),
            PolicyEffect::Approval { .. } | PolicyEffect::Limit { .. } => "",
        };
        match self.is_unsure {
            true => format!("{reason} (its condition could not be evaluated for this call)"),
            false => reason.to_owned(),
        }
    }
}

impl CallMatcher {
    /// Whether the rule is about this call, and if so, whether only because its condition has no value.
    fn matches(&self, call: &ResolvedCall<'_>) -> Option<bool> {
        if self.mismatch(call).is_some() {
            return None;
        }
        match self.evaluate(call) {
            None | Some(Ok(true)) => Some(false),
            Some(Ok(false)) => None,
            Some(Err(_)) => Some(true),
        }
    }

    fn names_tool(&self, tool: &ToolName) -> bool {
        is_any_or(&self.tools, tool.as_str()) && is_any_or(&self.servers, server_of(tool))
    }

    /// The first field that keeps the rule from matching.
    fn mismatch(&self, call: &ResolvedCall<'_>) -> Option<&'static str> {
        self.compare(call.tool, Some(call.safeties), Some(call.principals), Some(call.tenant)).err()
    }

    /// Compares everything but the parameters: the first field that does not fit, or what it depends on that is not
    /// known.
    fn compare(
        &self,
        tool: &ToolName,
        safeties: Option<[Safety; 2]>,
        principals: Option<&[Actor]>,
        tenant: Option<&TenantId>,
    ) -> Result<Vec<&'static str>, &'static str> {
        if !self.names_tool(tool) {
            return Err(if is_any_or(&self.tools, tool.as_str()) { "servers" } else { "tools" });
        }
        let fits = [
            (
                "safety",
                "how safe the tool is",
                self.safety.is_empty(),
                safeties.map(|safeties| safeties.iter().any(|safety| self.safety.contains(safety))),
            ),
            (
                "principals",
                "who opens the execution",
                self.principals.is_empty(),
                principals.map(|principals| principals.iter().any(|actor| is_named(&self.principals, actor))),
            ),
            (
                "tenants",
                "the tenant",
                self.tenants.is_empty(),
                tenant.map(|tenant| any(&self.tenants, tenant.as_str())),
            ),
        ];
        let mut unknown = Vec::new();
        for (field, meaning, is_free, fits) in fits {
            match fits {
                _ if is_free => {}
                Some(true) => {}
                Some(false) => return Err(field),
                None => unknown.push(meaning),
            }
        }
        Ok(unknown)
    }

    fn evaluate(&self, call: &ResolvedCall<'_>) -> Option<Result<bool, EvaluationError>> {
        let scope = ParametersScope { parameters: call.parameters };
        self.when.as_ref().map(|when| when.evaluate_bool(&scope))
    }
}

/// Whether one of the patterns names this actor, with or without its kind. Of `ada at claude`, the credential `ada` at
/// the program `claude`, both the whole and `ada` are names.
pub fn is_named(patterns: &[NamePattern], actor: &Actor) -> bool {
    let kind = match actor.party {
        ActorKind::Rutter => "rutter",
        ActorKind::Agent => "agent",
        ActorKind::Person => "person",
    };
    let is_name = |name: &str| any(patterns, name) || any(patterns, &format!("{kind}:{name}"));
    is_name(&actor.name) || actor.proven_name().is_some_and(is_name)
}

/// Whether this person may approve what a rule reserves for the people it names. Whoever only a program calls a person
/// may not: the program could use any name.
pub fn may_approve(by: &[NamePattern], actor: &Actor) -> bool {
    by.is_empty() || (actor.is_proven() && is_named(by, actor))
}

/// The actor that a text such as `agent:pilot` or `person:ada` names; without a kind it is a person.
pub fn actor_named(text: &str) -> Actor {
    match text.split_once(':') {
        Some(("agent", name)) => Actor::agent(name),
        Some(("person", name)) => Actor::person(name),
        _ => Actor::person(text),
    }
}

/// The server of a tool: what stands before the first full stop of its name.
pub fn server_of(tool: &ToolName) -> &str {
    tool.as_str().split('.').next().unwrap_or_default()
}

/// An empty list does not restrict.
fn is_any_or(patterns: &[NamePattern], name: &str) -> bool {
    patterns.is_empty() || any(patterns, name)
}

fn any(patterns: &[NamePattern], name: &str) -> bool {
    patterns.iter().any(|pattern| pattern.matches(name))
}

/// The values that the condition of a rule can read.
struct ParametersScope<'a> {
    parameters: &'a Value,
}

impl ExpressionScope for ParametersScope<'_> {
    fn inputs(&self) -> Option<&Value> {
        None
    }

    fn step_result(&self, _step: &str) -> Option<&Value> {
        None
    }

    fn step_status(&self, _step: &str) -> Option<&'static str> {
        None
    }

    fn parameters(&self) -> Option<&Value> {
        Some(self.parameters)
    }
}
