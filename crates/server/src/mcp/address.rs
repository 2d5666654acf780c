//! Where resources are: `rutter://…`, and back.

use rutter_core::id::{ExecutionId, PlanId};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Guide,
    PlanReference,
    Example(String),
    Execution(ExecutionId),
    /// From behind this entry on.
    Journal(ExecutionId, u64),
    Step(ExecutionId, String),
    /// The newest revision, if none is named.
    Plan(PlanId, Option<u32>),
}

/// Templates and what each of their parameters stands for.
pub(crate) const EXAMPLE: &str = "rutter://examples/{name}";
pub(crate) const EXECUTION: &str = "rutter://executions/{id}";
pub(crate) const JOURNAL: &str = "rutter://executions/{id}/journal{?after}";
pub(crate) const STEP: &str = "rutter://executions/{id}/steps/{step}";
pub(crate) const PLAN: &str = "rutter://plans/{id}{?revision}";

impl Address {
    /// `None` for what cannot be an address here.
    pub(crate) fn parse(uri: &str) -> Option<Address> {
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
            (["guide"], None) => Address::Guide,
            (["plan-reference"], None) => Address::PlanReference,
            (["examples", name], None) => Address::Example((*name).to_owned()),
            (["executions", id], None) => Address::Execution(ExecutionId::new(id)),
            (["executions", id, "journal"], None) => Address::Journal(ExecutionId::new(id), 0),
            (["executions", id, "journal"], Some(("after", seq))) => {
                Address::Journal(ExecutionId::new(id), seq.parse().ok()?)
            }
            (["executions", id, "steps", step], None) => {
                Address::Step(ExecutionId::new(id), (*step).to_owned())
            }
            (["plans", id], None) => Address::Plan(PlanId::new(id), None),
            (["plans", id], Some(("revision", number))) => {
                Address::Plan(PlanId::new(id), Some(number.parse().ok()?))
            }
            _ => return None,
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rutter://")?;
        match self {
            Address::Guide => f.write_str("guide"),
            Address::PlanReference => f.write_str("plan-reference"),
            Address::Example(name) => write!(f, "examples/{name}"),
            Address::Execution(id) => write!(f, "executions/{id}"),
            Address::Journal(id, 0) => write!(f, "executions/{id}/journal"),
            Address::Journal(id, after) => write!(f, "executions/{id}/journal?after={after}"),
            Address::Step(id, step) => write!(f, "executions/{id}/steps/{step}"),
            Address::Plan(id, None) => write!(f, "plans/{id}"),
            Address::Plan(id, Some(revision)) => write!(f, "plans/{id}?revision={revision}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_they_are_read() {
        for uri in [
            "rutter://guide",
            "rutter://plan-reference",
            "rutter://examples/order",
            "rutter://executions/exec_1",
            "rutter://executions/exec_1/journal",
            "rutter://executions/exec_1/journal?after=100",
            "rutter://executions/exec_1/steps/charge",
            "rutter://plans/plan_1",
            "rutter://plans/plan_1?revision=2",
        ] {
            assert_eq!(Address::parse(uri).unwrap().to_string(), uri);
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
            assert_eq!(Address::parse(uri), None, "{uri}");
        }
    }
}
