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
use rutter_core::policy::OperatorPolicy;
use rutter_core::policy::expect::{PlanCaller, StepRules};
use rutter_core::port;
use rutter_core::port::journal::{NewRevision, PlanStateChange, PlanStateOutcome, RevisionScope, SaveOutcome};
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
    /// The rules of the operator's policy that will or may apply to its steps.
    pub policy: Vec<StepRules>,
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
        let catalog = self.shared.tools.catalog(ServerSelection::Named(servers_named(&document.value))).await;
        let now = Some(self.shared.clock.now());
        let checked = check_document(&document, &catalog.tools, text.driver, now);
        match checked.plan {
            Some(plan) => {
                let policy = self.expected_rules(&plan, &text.tenant);
                Ok(AcceptedPlan { plan, found: checked.diagnostics, absent: catalog.absent, policy })
            }
            None => Err(Error::Plan { found: checked.diagnostics, absent: catalog.absent }),
        }
    }

    /// The rules that will or may apply to the steps of a plan, whoever executes it.
    pub fn expected_rules(&self, plan: &Plan, tenant: &TenantId) -> Vec<StepRules> {
        self.policy().expect(plan, PlanCaller { tenant: Some(tenant), principals: None })
    }

    /// The operator's policy, which stands above every plan.
    pub fn policy(&self) -> &Arc<OperatorPolicy> {
        &self.shared.options.policy
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

    /// Archives, restores or deletes a plan.
    pub async fn change_plan(&self, mut change: PlanStateChange) -> Result<PlanStateOutcome, Error> {
        change.reason = self.shared.tools.redactor().text(&change.reason).into_owned();
        Ok(self.shared.journal.change_plan(change).await?)
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
        let scope = RevisionScope::Plan;
        let saved = self.store(NewRevision { tenant, id: id.clone(), plan, expected, scope, actor, at }).await?;
        Ok(SubmittedPlan { id, saved, accepted })
    }

    /// Saves a checked plan as a revision of `id` for one execution. It never becomes the newest.
    pub async fn save_for_execution(
        &self,
        tenant: TenantId,
        plan: Arc<Plan>,
        id: PlanId,
        actor: Actor,
    ) -> Result<u32, Error> {
        let (at, scope) = (self.shared.clock.now(), RevisionScope::Execution);
        let saved = self.store(NewRevision { tenant, id, plan, expected: None, scope, actor, at }).await?;
        Ok(saved.revision())
    }

    async fn store(&self, new: NewRevision) -> Result<SaveOutcome, Error> {
        self.shared.journal.save(new).await.map_err(|error| match error {
            port::Error::Overloaded => Error::Busy { retry_after: RETRY_AFTER },
            error => Error::Store(error),
        })
    }

    /// The plan under the settings of its tools as they are now, where these are stricter; `None` if none is.
    pub async fn tightened(&self, plan: &Plan) -> Result<Option<Arc<Plan>>, Error> {
        let document = PlanDocument::read(&plan.source, plan.format);
        let document = document.map_err(|found| Error::Plan { found, absent: Vec::new() })?;
        let catalog = self.shared.tools.catalog(ServerSelection::Named(servers_named(&document.value))).await;
        plan.tightened(&catalog.tools.tools).map_err(|found| Error::Plan { found, absent: catalog.absent })
    }
}

/// The servers whose tools a document names, at any depth.
pub fn servers_named(document: &Value) -> BTreeSet<String> {
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
