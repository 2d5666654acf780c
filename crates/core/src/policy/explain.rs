//! Explanations: why each rule matches a call, or does not.

use super::{OperatorPolicy, PolicyEffect, PolicyRule, PolicyVerdict, ResolvedCall};
use crate::glob::NamePattern;
use crate::text::spelled;
use serde::Serialize;

/// One rule and one call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleExplanation {
    pub rule: String,
    /// `deny`, `approval` or `limit`.
    pub kind: &'static str,
    pub matches: bool,
    /// It is the first of its kind that matches, so it is the one that applies.
    pub applies: bool,
    pub why: String,
    /// What the rule says about the calls it matches.
    pub effect: String,
}

impl OperatorPolicy {
    /// Explains every rule for a call.
    pub fn explain(&self, call: &ResolvedCall<'_>) -> Vec<RuleExplanation> {
        let verdict = self.judge(call);
        let applied = [verdict.deny, verdict.approval, verdict.limit];
        let applies = |rule: &PolicyRule| applied.iter().flatten().any(|found| found.rule.name == rule.name);
        let explain = |rule: &PolicyRule| {
            let (matches, why) = rule.calls.explain(call);
            RuleExplanation {
                rule: rule.name.clone(),
                kind: rule.effect.kind(),
                matches,
                applies: applies(rule),
                why,
                effect: rule.effect.to_string(),
            }
        };
        self.rules.iter().map(explain).collect()
    }
}

/// A rule as it is understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleSummary {
    pub rule: String,
    pub kind: &'static str,
    /// The calls it is about.
    pub calls: String,
    pub effect: String,
}

impl OperatorPolicy {
    /// Every rule as it is understood, in order.
    pub fn summaries(&self) -> Vec<RuleSummary> {
        let summary = |rule: &PolicyRule| RuleSummary {
            rule: rule.name.clone(),
            kind: rule.effect.kind(),
            calls: rule.calls.to_string(),
            effect: rule.effect.to_string(),
        };
        self.rules.iter().map(summary).collect()
    }
}

impl std::fmt::Display for PolicyVerdict<'_> {
    /// The verdict in one line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(deny) = self.deny {
            return write!(f, "forbidden by {:?}: {}", deny.rule.name, deny.reason());
        }
        let demands: Vec<String> = [self.approval, self.limit]
            .into_iter()
            .flatten()
            .map(|found| format!("{} ({:?})", found.rule.effect, found.rule.name))
            .collect();
        match demands.is_empty() {
            true => f.write_str("allowed: no rule applies"),
            false => write!(f, "allowed, but {}", demands.join(" and ")),
        }
    }
}

impl std::fmt::Display for super::CallMatcher {
    /// The calls of a rule in words.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = |patterns: &[NamePattern]| patterns.iter().map(NamePattern::as_str).collect::<Vec<_>>().join(", ");
        let safety: Vec<String> = self.safety.iter().map(spelled).collect();
        let when = self.when.as_ref().map(|when| when.source.trim().to_owned()).unwrap_or_default();
        let parts = [
            ("tools", names(&self.tools)),
            ("servers", names(&self.servers)),
            ("safety", safety.join(", ")),
            ("principals", names(&self.principals)),
            ("tenants", names(&self.tenants)),
            ("when", when),
        ];
        let given: Vec<String> = parts
            .into_iter()
            .filter(|(_, words)| !words.is_empty())
            .map(|(field, words)| format!("{field} {words}"))
            .collect();
        f.write_str(if given.is_empty() { "every call" } else { "" })?;
        f.write_str(&given.join("; "))
    }
}

impl super::CallMatcher {
    fn explain(&self, call: &ResolvedCall<'_>) -> (bool, String) {
        if let Some(field) = self.mismatch(call) {
            return (false, format!("`{field}` does not name this call"));
        }
        let when = self.when.as_ref().map(|when| when.source.trim()).unwrap_or_default();
        match self.evaluate(call) {
            None => (true, "everything it names fits".to_owned()),
            Some(Ok(true)) => (true, format!("`{when}` is true")),
            Some(Ok(false)) => (false, format!("`{when}` is false")),
            Some(Err(error)) => (true, format!("`{when}` cannot be evaluated, so the rule matches: {error}")),
        }
    }
}

impl PolicyEffect {
    pub fn kind(&self) -> &'static str {
        match self {
            PolicyEffect::Deny { .. } => "deny",
            PolicyEffect::Approval { .. } => "approval",
            PolicyEffect::Limit { .. } => "limit",
        }
    }
}

impl std::fmt::Display for PolicyEffect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PolicyEffect::Deny { reason } => write!(f, "forbidden: {reason}"),
            PolicyEffect::Approval { by, expires, proof } => {
                let names: Vec<&str> = by.iter().map(|name| name.as_str()).collect();
                let by = if names.is_empty() { "a person".to_owned() } else { names.join(" or ") };
                write!(f, "needs the approval of {by}")?;
                if proof.is_some() {
                    f.write_str(", not given at a client")?;
                }
                expires.map_or(Ok(()), |span| write!(f, ", within {span}"))
            }
            PolicyEffect::Limit { calls, per } => write!(f, "at most {calls} calls per {per}"),
        }
    }
}
