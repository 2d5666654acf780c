//! From the text of a plan to a saved revision, checked against the available tools.

use crate::engine::Engine;
use crate::error::Error;
use crate::name;
use crate::options::RETRY_AFTER;
use rutter_core::actor::Actor;
use rutter_core::diagnostic::Diagnostic;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::plan::check::check_document;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::{Driver, Plan};
use rutter_core::port;
use rutter_core::port::journal::{NewRevision, SaveOutcome};
use rutter_core::port::tools::ServerSelection;
use rutter_core::tool::ToolFailure;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A plan as its author wrote it.
#[derive(Clone, Debug)]
pub struct PlanText {
    pub tenant: TenantId,
    pub source: Vec<u8>,
    pub format: DocumentFormat,
    /// Who is to carry it out: Rutter must know every tool, an agent may have its own.
    pub driver: Driver,
}

/// A plan without mistakes, and the warnings about it.
#[derive(Clone, Debug)]
pub struct AcceptedPlan {
    pub plan: Arc<Plan>,
    pub found: Vec<Diagnostic>,
    /// Servers whose tools could not be listed.
    pub absent: Vec<(String, ToolFailure)>,
}

#[derive(Clone, Debug)]
pub struct SubmittedPlan {
    pub id: PlanId,
    pub saved: SaveOutcome,
    pub accepted: AcceptedPlan,
}

impl Engine {
    /// Checks a plan against the tools it names, and changes nothing.
    pub async fn check(&self, text: &PlanText) -> Result<AcceptedPlan, Error> {
        let document = PlanDocument::read(&text.source, text.format);
        let document = document.map_err(|found| Error::Plan { found, absent: Vec::new() })?;
        let catalog = self.shared.tools.catalog(ServerSelection::Named(servers(&document.value))).await;
        let now = Some(self.shared.clock.now());
        let checked = check_document(&document, &catalog.tools, text.driver, now);
        match checked.plan {
            Some(plan) => Ok(AcceptedPlan { plan, found: checked.diagnostics, absent: catalog.absent }),
            None => Err(Error::Plan { found: checked.diagnostics, absent: catalog.absent }),
        }
    }

    /// Checks a plan and saves it: as a new one, or as the next revision of `id`.
    pub async fn submit(
        &self,
        text: PlanText,
        id: Option<PlanId>,
        expected: Option<u32>,
        actor: Actor,
    ) -> Result<SubmittedPlan, Error> {
        let accepted = self.check(&text).await?;
        self.save(text.tenant, accepted, id, expected, actor).await
    }

    /// Saves a checked plan: as a new one, or as the next revision of `id`.
    pub async fn save(
        &self,
        tenant: TenantId,
        accepted: AcceptedPlan,
        id: Option<PlanId>,
        expected: Option<u32>,
        actor: Actor,
    ) -> Result<SubmittedPlan, Error> {
        let at = self.shared.clock.now();
        let id = id.unwrap_or_else(|| PlanId::new(&name::fresh("plan", at)));
        let plan = Arc::clone(&accepted.plan);
        let new = NewRevision { tenant, id: id.clone(), plan, expected, actor, at };
        let saved = self.shared.journal.save(new).await.map_err(|error| match error {
            port::Error::Overloaded => Error::Busy { retry_after: RETRY_AFTER },
            error => Error::Store(error),
        })?;
        Ok(SubmittedPlan { id, saved, accepted })
    }
}

/// The servers whose tools a document names, at any depth.
fn servers(document: &Value) -> BTreeSet<String> {
    let mut servers = BTreeSet::new();
    let mut open = vec![document];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(fields) => {
                for key in ["tool", "tool_name"] {
                    let name = fields.get(key).and_then(Value::as_str).and_then(|name| name.split_once('.'));
                    servers.extend(name.map(|(server, _)| server.to_owned()));
                }
                open.extend(fields.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    servers
}
