//! The plan of an execution. Entries do not name it, so the store is queried once per execution.

use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::codec::StoredRecord;
use rutter_core::journal::event::Event;
use rutter_core::port;
use rutter_core::port::query::StoreQuery;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Executions whose plan is cached; when there are more, the cache is emptied.
const KNOWN_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedPlan {
    pub id: String,
    pub name: String,
}

impl NamedPlan {
    pub fn is_among(&self, names: &[String]) -> bool {
        names.iter().any(|name| *name == self.id || *name == self.name)
    }
}

pub struct PlanNameCache {
    query: Arc<dyn StoreQuery>,
    tenant: TenantId,
    known: HashMap<ExecutionId, Option<NamedPlan>>,
}

impl PlanNameCache {
    pub fn new(query: Arc<dyn StoreQuery>, tenant: TenantId) -> PlanNameCache {
        PlanNameCache { query, tenant, known: HashMap::new() }
    }

    /// `None` when the entry belongs to no plan, or its execution was removed.
    pub async fn of(&mut self, stored: &StoredRecord) -> Result<Option<NamedPlan>, port::Error> {
        if let Event::PlanSaved { id, name, .. } = &stored.event {
            return Ok(Some(NamedPlan { id: id.to_string(), name: name.clone() }));
        }
        // A new revision may have a new name.
        if let Event::Replanned { .. } = &stored.event {
            self.known.remove(&stored.execution);
        }
        if let Some(plan) = self.known.get(&stored.execution) {
            return Ok(plan.clone());
        }
        let identity = ExecutionIdentity { tenant: self.tenant.clone(), execution: stored.execution.clone() };
        let found = self.query.execution(&identity).await?;
        let plan = found.map(|found| NamedPlan { id: found.plan.to_string(), name: found.name });
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(stored.execution.clone(), plan.clone());
        Ok(plan)
    }
}
