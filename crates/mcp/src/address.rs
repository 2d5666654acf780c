//! Addresses of resources: parses and prints `rutter://…`.

use rutter_core::id::{ExecutionId, PlanId};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResourceAddress {
    Guide,
    PlanReference,
    Example(String),
    Template(String),
    Execution(ExecutionId),
    /// Starts after this entry.
    Journal(ExecutionId, u64),
    Step(ExecutionId, String),
    /// The newest revision unless one is given.
    Plan(PlanId, Option<u32>),
}

/// URI templates of the resources.
pub(crate) const TEMPLATE: &str = "rutter://templates/{name}";
pub(crate) const EXAMPLE: &str = "rutter://examples/{name}";
pub(crate) const EXECUTION: &str = "rutter://executions/{id}";
pub(crate) const JOURNAL: &str = "rutter://executions/{id}/journal{?after}";
pub(crate) const STEP: &str = "rutter://executions/{id}/steps/{step}";
pub(crate) const PLAN: &str = "rutter://plans/{id}{?revision}";

impl ResourceAddress {
    /// `None` for an invalid address.
    pub(crate) fn parse(uri: &str) -> Option<ResourceAddress> {
        let rest = uri.strip_prefix("rutter://")?;
        let (path, query) = match rest.split_once('?') {
            Some((path, query)) => (path, Some(query.split_once('=')?)),
            None => (rest, None),
        };
        let parts: Vec<&str> = path.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return None;
        }
        Some(match (parts.as_slice(), query) {
            (["guide"], None) => ResourceAddress::Guide,
            (["plan-reference"], None) => ResourceAddress::PlanReference,
            (["examples", name], None) => ResourceAddress::Example((*name).to_owned()),
            (["templates", name], None) => ResourceAddress::Template((*name).to_owned()),
            (["executions", id], None) => ResourceAddress::Execution(ExecutionId::new(id)),
            (["executions", id, "journal"], None) => ResourceAddress::Journal(ExecutionId::new(id), 0),
            (["executions", id, "journal"], Some(("after", seq))) => {
                ResourceAddress::Journal(ExecutionId::new(id), seq.parse().ok()?)
            }
            (["executions", id, "steps", step], None) => {
                ResourceAddress::Step(ExecutionId::new(id), (*step).to_owned())
            }
            (["plans", id], None) => ResourceAddress::Plan(PlanId::new(id), None),
            (["plans", id], Some(("revision", number))) => {
                ResourceAddress::Plan(PlanId::new(id), Some(number.parse().ok()?))
            }
            _ => return None,
        })
    }
}

impl fmt::Display for ResourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rutter://")?;
        match self {
            ResourceAddress::Guide => f.write_str("guide"),
            ResourceAddress::PlanReference => f.write_str("plan-reference"),
            ResourceAddress::Example(name) => write!(f, "examples/{name}"),
            ResourceAddress::Template(name) => write!(f, "templates/{name}"),
            ResourceAddress::Execution(id) => write!(f, "executions/{id}"),
            ResourceAddress::Journal(id, 0) => write!(f, "executions/{id}/journal"),
            ResourceAddress::Journal(id, after) => write!(f, "executions/{id}/journal?after={after}"),
            ResourceAddress::Step(id, step) => write!(f, "executions/{id}/steps/{step}"),
            ResourceAddress::Plan(id, None) => write!(f, "plans/{id}"),
            ResourceAddress::Plan(id, Some(revision)) => write!(f, "plans/{id}?revision={revision}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for uri in [
            "rutter://guide",
            "rutter://plan-reference",
            "rutter://examples/order",
            "rutter://templates/order-saga",
            "rutter://executions/exec_1",
            "rutter://executions/exec_1/journal",
            "rutter://executions/exec_1/journal?after=100",
            "rutter://executions/exec_1/steps/charge",
            "rutter://plans/plan_1",
            "rutter://plans/plan_1?revision=2",
        ] {
            assert_eq!(ResourceAddress::parse(uri).unwrap().to_string(), uri);
        }
        for uri in [
            "",
            "guide",
            "http://guide",
            "rutter://",
            "rutter://guide/",
            "rutter://guide?x=1",
            "rutter://executions/",
            "rutter://executions/e/journal?after=-1",
            "rutter://executions/e/journal?before=1",
            "rutter://plans/p?revision=two",
            "rutter://plans/p?revision",
            "rutter://secrets/x",
        ] {
            assert_eq!(ResourceAddress::parse(uri), None, "{uri}");
        }
    }
}
