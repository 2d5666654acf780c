//! Reading rules: what the operator writes, and what of it is refused.

use super::{CallMatcher, OperatorPolicy, PolicyEffect, PolicyRule};
use crate::actor::RequiredProof;
use crate::glob::NamePattern;
use crate::limits;
use crate::plan::expression::Expression;
use crate::plan::schema::JsonTypeSet;
use crate::time::Millis;
use crate::tool::Safety;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A rule as the operator writes it: a `[[policy]]` of `rutter.toml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyRuleDraft {
    /// For people and for the journal; by default `policy[3]`, counted from 1.
    #[serde(default)]
    pub name: Option<String>,
    /// Names of tools, such as `payments.*`; any tool if empty.
    #[serde(default)]
    pub tools: Vec<NamePattern>,
    /// Names of servers; any server if empty.
    #[serde(default)]
    pub servers: Vec<NamePattern>,
    /// `read_only`, `idempotent`, `once`; any if empty.
    #[serde(default)]
    pub safety: Vec<Safety>,
    /// Who opened the execution or makes the call: `agent:*`, `person:ada`, `ada`; anyone if empty.
    #[serde(default)]
    pub principals: Vec<NamePattern>,
    /// Any tenant if empty.
    #[serde(default)]
    pub tenants: Vec<NamePattern>,
    /// A condition on `parameters`. If it cannot be evaluated, the rule matches.
    #[serde(default)]
    pub when: Option<String>,
    /// Forbids the calls, for this reason.
    #[serde(default)]
    pub deny: Option<String>,
    /// A person must approve the calls.
    #[serde(default)]
    pub approval: Option<ApprovalEffectDraft>,
    /// Limits the calls of the tenant.
    #[serde(default)]
    pub limit: Option<LimitEffectDraft>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalEffectDraft {
    /// The people who may approve, by name; any person with the right if empty.
    #[serde(default)]
    pub by: Vec<NamePattern>,
    /// After this time without an answer the step fails, such as `24h`.
    #[serde(default)]
    pub expires: Option<String>,
    /// `credential`: an answer at a client, for which only the client vouches, does not count.
    #[serde(default)]
    pub proof: Option<RequiredProof>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitEffectDraft {
    pub calls: u32,
    /// The length of the sliding window, such as `1h`.
    pub per: String,
}

/// The `[policy_limits]` of `rutter.toml`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyLimitsDraft {
    /// How often a denied call or new plan may be put to a person again; 3 by default.
    #[serde(default)]
    pub ask_again_max: Option<u32>,
}

/// Why a rule is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {message}")]
pub struct PolicyError {
    /// The name of the rule, and its position.
    pub rule: String,
    pub at: usize,
    pub message: String,
}

impl OperatorPolicy {
    /// Reads all rules, or refuses the first bad one.
    pub fn read(drafts: &[PolicyRuleDraft]) -> Result<OperatorPolicy, PolicyError> {
        let wrong = |rule: &str, at: usize, message: String| PolicyError { rule: rule.to_owned(), at, message };
        if drafts.len() > limits::POLICY_RULES_MAX {
            let most = limits::POLICY_RULES_MAX;
            return Err(wrong("policy", most, format!("there are more than {most} rules")));
        }
        let mut names = BTreeSet::new();
        let mut rules = Vec::new();
        for (at, draft) in drafts.iter().enumerate() {
            let name = draft.name.clone().unwrap_or_else(|| format!("policy[{}]", at + 1));
            let rule = draft.read(&name).map_err(|message| wrong(&name, at, message))?;
            if !names.insert(name.clone()) {
                return Err(wrong(&name, at, "another rule has this name".to_owned()));
            }
            rules.push(rule);
        }
        Ok(OperatorPolicy { rules, ..OperatorPolicy::default() })
    }
}

impl OperatorPolicy {
    /// The same with these limits. Where several files set one, the smallest holds: none can loosen what another says.
    #[must_use]
    pub fn with_limits(self, drafts: impl IntoIterator<Item = PolicyLimitsDraft>) -> OperatorPolicy {
        let ask_again_max = drafts.into_iter().filter_map(|draft| draft.ask_again_max).min();
        OperatorPolicy { ask_again_max: ask_again_max.unwrap_or(self.ask_again_max), ..self }
    }
}

impl PolicyRuleDraft {
    fn read(&self, name: &str) -> Result<PolicyRule, String> {
        if name.trim().is_empty() || name.chars().count() > limits::NAME_CHARS_MAX {
            return Err(format!("a name has 1 to {} characters", limits::NAME_CHARS_MAX));
        }
        let when = self.when.as_deref().map(condition).transpose()?;
        let calls = CallMatcher {
            tools: self.tools.clone(),
            servers: self.servers.clone(),
            safety: self.safety.clone(),
            principals: self.principals.clone(),
            tenants: self.tenants.clone(),
            when,
        };
        Ok(PolicyRule { name: name.to_owned(), calls, effect: self.effect()? })
    }

    fn effect(&self) -> Result<PolicyEffect, String> {
        match (&self.deny, &self.approval, &self.limit) {
            (Some(reason), None, None) if reason.trim().is_empty() => Err("deny: give the reason".to_owned()),
            (Some(reason), None, None) if reason.len() > limits::REASON_BYTES_MAX => {
                Err(format!("deny: a reason has at most {} bytes", limits::REASON_BYTES_MAX))
            }
            (Some(reason), None, None) => Ok(PolicyEffect::Deny { reason: reason.clone() }),
            (None, Some(approval), None) => {
                let expires = approval.expires.as_deref();
                let expires = expires.map(|text| span("approval.expires", text, limits::APPROVAL_EXPIRES_MAX));
                let (by, proof) = (approval.by.clone(), approval.proof);
                Ok(PolicyEffect::Approval { by, expires: expires.transpose()?, proof })
            }
            (None, None, Some(limit)) => {
                let per = span("limit.per", &limit.per, limits::POLICY_WINDOW_MAX)?;
                match limit.calls {
                    0 => Err("limit.calls: at least 1; to forbid the calls, use deny".to_owned()),
                    calls if calls > limits::POLICY_CALLS_MAX => {
                        Err(format!("limit.calls: at most {}", limits::POLICY_CALLS_MAX))
                    }
                    calls => Ok(PolicyEffect::Limit { calls, per }),
                }
            }
            (None, None, None) => Err("a rule needs one of deny, approval and limit".to_owned()),
            _ => Err("a rule has only one of deny, approval and limit; write two rules".to_owned()),
        }
    }
}

/// A condition that reads nothing but the parameters.
fn condition(source: &str) -> Result<Expression, String> {
    let when = Expression::compile(source).map_err(|error| format!("when: {error}"))?;
    let other = when.reads.iter().filter_map(|path| path.first()).find(|root| *root != "parameters");
    if let Some(root) = other {
        return Err(format!("when: a rule reads `parameters` only, not `{root}`"));
    }
    match when.types().filter(|types| types.and(JsonTypeSet::BOOLEAN).is_empty()) {
        Some(types) => Err(format!("when: a condition must be true or false, and this is {types}")),
        None => Ok(when),
    }
}

fn span(field: &str, text: &str, max: Millis) -> Result<Millis, String> {
    match Millis::parse(text) {
        Some(span) if span.0 > 0 && span <= max => Ok(span),
        Some(_) => Err(format!("{field}: more than 0 and at most {max}")),
        None => Err(format!("{field}: expected a span of time such as 24h, found {text:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deny(reason: &str) -> PolicyRuleDraft {
        PolicyRuleDraft { deny: Some(reason.into()), ..PolicyRuleDraft::default() }
    }

    fn limit(calls: u32, per: &str) -> PolicyRuleDraft {
        let limit = Some(LimitEffectDraft { calls, per: per.into() });
        PolicyRuleDraft { limit, ..PolicyRuleDraft::default() }
    }

    fn refused(drafts: &[PolicyRuleDraft]) -> String {
        OperatorPolicy::read(drafts).expect_err("it is a bad rule").to_string()
    }

    #[test]
    fn a_bad_rule_is_refused_by_its_name() {
        let named = PolicyRuleDraft { name: Some("no refunds".into()), ..deny("not here") };
        assert_eq!(refused(&[named.clone(), named]), "no refunds: another rule has this name");
        let two = PolicyRuleDraft { approval: Some(ApprovalEffectDraft::default()), ..deny("no") };
        assert_eq!(
            refused(&[deny("no"), two]),
            "policy[2]: a rule has only one of deny, approval and limit; write two rules"
        );
        assert!(refused(&[PolicyRuleDraft::default()]).contains("needs one of"));
        assert!(refused(&[deny(" ")]).contains("give the reason"));
        let broken = PolicyRuleDraft { when: Some("parameters.amount >".into()), ..deny("no") };
        assert!(refused(&[broken]).starts_with("policy[1]: when: "));
        let other = PolicyRuleDraft { when: Some("inputs.amount > 1".into()), ..deny("no") };
        assert!(refused(&[other]).contains("`parameters` only, not `inputs`"));
        let number = PolicyRuleDraft { when: Some("parameters.items | length".into()), ..deny("no") };
        assert!(refused(&[number]).contains("when: a condition must be true or false, and this is integer"));
    }

    #[test]
    fn of_several_limits_the_smallest_holds() {
        let limits = |all: &[Option<u32>]| {
            let drafts = all.iter().map(|ask_again_max| PolicyLimitsDraft { ask_again_max: *ask_again_max });
            OperatorPolicy::default().with_limits(drafts).ask_again_max
        };
        assert_eq!((limits(&[]), limits(&[None])), (3, 3));
        assert_eq!((limits(&[Some(9)]), limits(&[Some(9), Some(0)]), limits(&[Some(1), None, Some(5)])), (9, 0, 1));
    }

    #[test]
    fn limits_of_rules_hold_below_at_and_above() {
        assert!(refused(&[limit(0, "1h")]).contains("at least 1"));
        assert!(OperatorPolicy::read(&[limit(1, "1h")]).is_ok());
        assert!(OperatorPolicy::read(&[limit(limits::POLICY_CALLS_MAX, "1h")]).is_ok());
        assert!(refused(&[limit(limits::POLICY_CALLS_MAX + 1, "1h")]).contains("at most"));
        assert!(refused(&[limit(1, "soon")]).contains("span of time"));
        assert!(refused(&[limit(1, "0s")]).contains("more than 0"));
        let most = limits::POLICY_WINDOW_MAX.to_string();
        assert!(OperatorPolicy::read(&[limit(1, &most)]).is_ok());
        assert!(refused(&[limit(1, &format!("{most}1ms"))]).contains("at most"));
        let many = vec![limit(1, "1h"); limits::POLICY_RULES_MAX];
        assert!(OperatorPolicy::read(&many).is_ok());
        assert!(refused(&[many, vec![limit(1, "1h")]].concat()).contains("more than"));
    }
}
