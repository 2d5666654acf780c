//! What an event names besides itself: a plan, and the basis of an approval.

use crate::actor::RequiredProof;
use crate::glob::NamePattern;
use crate::hash::Hash;
use crate::plan::Plan;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// What an approval is asked for, and because of which rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalBasis {
    /// Tool and parameters, whatever the step: a denial binds these.
    pub digest: Hash,
    /// The places in the parameters (JSON Pointers) that come from an idempotency key. The digest is without them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keyed: Vec<String>,
    /// The rule of the operator's policy; none where only the plan, or an earlier denial, demands it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The people who may approve; any person if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<NamePattern>,
    /// What they must have proved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<RequiredProof>,
}

/// A plan by its hash; in memory also the plan itself.
#[derive(Clone)]
pub struct PlanReference {
    pub hash: Hash,
    pub plan: Option<Arc<Plan>>,
}

impl PlanReference {
    pub fn of(plan: &Arc<Plan>) -> PlanReference {
        PlanReference { hash: plan.hash, plan: Some(plan.clone()) }
    }
}

impl PartialEq for PlanReference {
    fn eq(&self, other: &PlanReference) -> bool {
        self.hash == other.hash
    }
}

impl fmt::Debug for PlanReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan {}", self.hash.short())
    }
}

impl Serialize for PlanReference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.hash.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PlanReference {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PlanReference, D::Error> {
        Ok(PlanReference { hash: Hash::deserialize(deserializer)?, plan: None })
    }
}
