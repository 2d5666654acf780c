//! Limits of the policy: how many calls were made in the sliding window, and who is next.

use super::{OperatorPolicy, PolicyEffect, PolicyRule};
use crate::id::{ExecutionId, TenantId, ToolName};
use crate::time::{Millis, Timestamp};
use std::collections::{BTreeMap, VecDeque};

/// The calls under every limit, for all tenants. Rebuilt from the ledger when the process starts.
#[derive(Clone, Debug, Default)]
pub struct LimitWindows {
    windows: BTreeMap<(TenantId, String), LimitWindow>,
}

#[derive(Clone, Debug, Default)]
struct LimitWindow {
    /// When calls were made, oldest first; older ones than the window are dropped.
    made: VecDeque<Timestamp>,
    /// Calls that wait, and when each may be made.
    waiting: BTreeMap<WaitingCall, Timestamp>,
}

/// The execution, and the call within it.
type WaitingCall = (ExecutionId, String);

/// A call under a limit of the operator's policy: so many calls in a sliding window, over all executions of a tenant.
#[derive(Clone, Copy, Debug)]
pub struct LimitedCall<'a> {
    pub rule: &'a str,
    pub calls: u32,
    pub per: Millis,
    /// Which call of the execution it is, the same each time it is tried.
    pub call: &'a str,
}

impl LimitWindows {
    /// Counts a call that starts now, or says when it may start.
    pub fn reserve(
        &mut self,
        tenant: &TenantId,
        execution: &ExecutionId,
        call: &LimitedCall<'_>,
        now: Timestamp,
    ) -> Option<Timestamp> {
        let window = self.windows.entry((tenant.clone(), call.rule.to_owned())).or_default();
        window.forget(call.per, now);
        let own = (execution.clone(), call.call.to_owned());
        window.waiting.remove(&own);
        // Calls whose turn has come go first.
        let before = window.waiting.values().filter(|slot| **slot <= now).count();
        let most = call.calls as usize;
        if window.made.len() + before < most {
            window.made.push_back(now);
            return None;
        }
        let mut taken: Vec<Timestamp> = window.made.iter().chain(window.waiting.values()).copied().collect();
        taken.sort_unstable();
        let slot = taken.len().checked_sub(most).map_or(now, |at| taken[at].plus(call.per));
        let slot = slot.max(now.plus(Millis(1)));
        window.waiting.insert(own, slot);
        Some(slot)
    }

    /// Counts a call under a limit that was made before the process started.
    pub fn note(&mut self, rule: &PolicyRule, tenant: &TenantId, at: Timestamp) {
        let PolicyEffect::Limit { calls, .. } = &rule.effect else { return };
        let made = &mut self.windows.entry((tenant.clone(), rule.name.clone())).or_default().made;
        let place = made.partition_point(|earlier| *earlier <= at);
        made.insert(place, at);
        // Only as many calls as the limit allows decide when the next one may start.
        if made.len() > *calls as usize {
            made.pop_front();
        }
    }

    /// Whether calls before this time can no longer change when the next call may start.
    pub fn is_settled(&self, policy: &OperatorPolicy, tenant: &TenantId, before: Timestamp) -> bool {
        policy.rules.iter().all(|rule| match rule.effect {
            PolicyEffect::Deny { .. } | PolicyEffect::Approval { .. } => true,
            PolicyEffect::Limit { calls, .. } => {
                let window = self.windows.get(&(tenant.clone(), rule.name.clone()));
                window.is_some_and(|window| {
                    window.made.len() >= calls as usize && window.made.front().is_some_and(|at| *at >= before)
                })
            }
        })
    }
}

impl LimitWindow {
    fn forget(&mut self, per: Millis, now: Timestamp) {
        while self.made.front().is_some_and(|at| at.plus(per) <= now) {
            self.made.pop_front();
        }
        // Whoever has not come for so long does not come any more.
        self.waiting.retain(|_, slot| slot.plus(per) > now);
    }
}

impl OperatorPolicy {
    /// The longest window of its limits: older calls do not count any more.
    pub fn longest_window(&self) -> Option<Millis> {
        let windows = self.rules.iter().filter_map(|rule| match rule.effect {
            PolicyEffect::Limit { per, .. } => Some(per),
            PolicyEffect::Deny { .. } | PolicyEffect::Approval { .. } => None,
        });
        windows.max()
    }

    /// Whether a limit may be about calls of this tool.
    pub fn may_limit(&self, tool: &ToolName) -> bool {
        self.rules.iter().any(|rule| matches!(rule.effect, PolicyEffect::Limit { .. }) && rule.calls.names_tool(tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::ResolvedCall;
    use crate::policy::rule::PolicyRuleDraft;
    use crate::tool::Safety;
    use serde_json::{Value, json};

    #[test]
    fn a_call_whose_parameters_are_not_known_counts_under_every_limit_that_it_may_have_come_under() {
        let limit = json!({ "calls": 1, "per": "1h" });
        let rules = json!([
            { "name": "elsewhere", "tools": ["mail.*"], "limit": limit },
            { "name": "none", "tools": ["a.*"], "deny": "no" },
            { "name": "large", "tools": ["a.*"], "when": "parameters.amount > 5", "limit": limit },
            { "name": "others", "tools": ["a.*"], "limit": limit },
            { "name": "behind", "tools": ["a.*"], "limit": limit },
        ]);
        let drafts: Vec<PolicyRuleDraft> = serde_json::from_value(rules).unwrap();
        let policy = OperatorPolicy::read(&drafts).unwrap();
        let (tool, tenant) = (ToolName::new("a.pay"), TenantId::new("default"));
        let counted = |parameters: &Value, is_known: bool| {
            let call =
                ResolvedCall { tool: &tool, safeties: [Safety::Once; 2], parameters, tenant: &tenant, principals: &[] };
            policy.limits_of(&call, is_known).iter().map(|rule| rule.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(counted(&json!({ "amount": 9 }), true), ["large"]);
        assert_eq!(counted(&json!({ "amount": 1 }), true), ["others"]);
        assert_eq!(counted(&Value::Null, false), ["large", "others"]);
    }

    #[test]
    fn no_window_ever_holds_more_calls_than_the_limit() {
        let (tenant, execution) = (TenantId::new("t"), ExecutionId::new("exec_1"));
        let names = ["a", "b", "c", "d", "e", "f"];
        let mut windows = LimitWindows::default();
        let (mut made, mut due) = (Vec::new(), [Timestamp(0); 6]);
        for now in (0..200).step_by(7).map(Timestamp) {
            for (call, due) in names.iter().zip(&mut due).filter(|(_, due)| **due <= now) {
                let call = LimitedCall { rule: "r", calls: 2, per: Millis(50), call };
                match windows.reserve(&tenant, &execution, &call, now) {
                    None => made.push(now),
                    Some(until) => {
                        assert!(until > now);
                        *due = until;
                    }
                }
            }
        }
        assert!(made.len() >= 6, "the calls go on: {made:?}");
        for at in &made {
            let within = made.iter().filter(|other| other.0 > at.0 - 50 && **other <= *at).count();
            assert!(within <= 2, "{made:?}");
        }
    }

    #[test]
    fn another_tenant_and_another_rule_have_windows_of_their_own() {
        let execution = ExecutionId::new("exec_1");
        let mut windows = LimitWindows::default();
        let mut reserve = |tenant: &str, rule: &str| {
            let call = LimitedCall { rule, calls: 1, per: Millis(50), call: "a" };
            windows.reserve(&TenantId::new(tenant), &execution, &call, Timestamp(0))
        };
        assert_eq!([reserve("t", "r"), reserve("u", "r"), reserve("t", "s")], [None; 3]);
        assert_eq!(reserve("t", "r"), Some(Timestamp(50)));
    }
}
