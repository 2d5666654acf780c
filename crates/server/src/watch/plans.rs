//! Which plan an execution belongs to. Entries do not say, so the store is asked once for each execution.

use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::codec::Stored;
use rutter_core::journal::event::Event;
use rutter_core::port;
use rutter_core::port::query::Query;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;

/// Executions whose plan is remembered; after that it is asked anew.
const KNOWN_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanOf {
    pub id: String,
    pub name: String,
}

impl PlanOf {
    pub(super) fn is_among(&self, names: &[String]) -> bool {
        names.iter().any(|name| *name == self.id || *name == self.name)
    }
}

pub(super) struct Plans {
    query: Arc<dyn Query>,
    tenant: TenantId,
    known: HashMap<ExecutionId, Option<PlanOf>>,
}

impl Plans {
    pub fn new(query: Arc<dyn Query>, tenant: TenantId) -> Plans {
        Plans { query, tenant, known: HashMap::new() }
    }

    /// `None` for what belongs to no plan, or is gone.
    pub async fn of(&mut self, stored: &Stored) -> Result<Option<PlanOf>, port::Error> {
        if let Event::PlanSaved { id, name, .. } = &stored.event {
            return Ok(Some(PlanOf { id: id.to_string(), name: name.clone() }));
        }
        // A new revision may have a new name.
        if let Event::Replanned { .. } = &stored.event {
            self.known.remove(&stored.execution);
        }
        if let Some(plan) = self.known.get(&stored.execution) {
            return Ok(plan.clone());
        }
        let identity = Identity { tenant: self.tenant.clone(), execution: stored.execution.clone() };
        let found = self.query.execution(&identity).await?;
        let plan = found.map(|found| PlanOf { id: found.plan.to_string(), name: found.name });
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(stored.execution.clone(), plan.clone());
        Ok(plan)
    }
}
