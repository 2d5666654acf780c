//! From the text of a plan to a saved revision, checked against the tools there are.

use crate::engine::Engine;
use crate::error::Error;
use crate::name;
use crate::options::RETRY_AFTER;
use crate::signal::Signal;
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::diagnostic::Diagnostic;
use rutter_core::plan::document::{Document, Format};
use rutter_core::plan::preview::{Preview, preview};
use rutter_core::plan::{Driver, Plan};
use rutter_core::port;
use rutter_core::port::journal::{NewPlan, Saved};
use rutter_core::port::tools::Servers;
use rutter_core::tool::Failure;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A plan as somebody wrote it.
#[derive(Clone, Debug)]
pub struct PlanText {
    pub tenant: TenantId,
    pub source: Vec<u8>,
    pub format: Format,
    /// Who is to carry it out: Rutter must know every tool, an agent may have its own.
    pub driver: Driver,
}

/// A plan without mistakes, and what is doubtful about it.
#[derive(Clone, Debug)]
pub struct Accepted {
    pub plan: Arc<Plan>,
    pub found: Vec<Diagnostic>,
    /// Servers that could not be asked for their tools.
    pub absent: Vec<(String, Failure)>,
}

#[derive(Clone, Debug)]
pub struct Submitted {
    pub id: PlanId,
    pub saved: Saved,
    pub accepted: Accepted,
}

impl Engine {
    /// Checks a plan against the tools it names, and changes nothing.
    pub async fn check(&self, text: &PlanText) -> Result<Accepted, Error> {
        let servers = Document::read(&text.source, text.format).map(|document| servers(&document.value));
        let catalog = match servers {
            Ok(servers) => self.shared.tools.catalog(Servers::Named(servers)).await,
            // It cannot be read; the check says why.
            Err(_) => Default::default(),
        };
        let now = Some(self.shared.clock.now());
        let checked = read_and_check(&text.source, text.format, &catalog.tools, text.driver, now);
        match checked.plan {
            Some(plan) => Ok(Accepted { plan, found: checked.diagnostics, absent: catalog.absent }),
            None => Err(Error::Plan { found: checked.diagnostics, absent: catalog.absent }),
        }
    }

    pub async fn preview(&self, text: &PlanText) -> Result<Preview, Error> {
        Ok(preview(&self.check(text).await?.plan))
    }

    /// Checks a plan and keeps it: as a new one, or as the next revision of `id`.
    pub async fn submit(
        &self,
        text: PlanText,
        id: Option<PlanId>,
        expected: Option<u32>,
        actor: Actor,
    ) -> Result<Submitted, Error> {
        let accepted = self.check(&text).await?;
        let at = self.shared.clock.now();
        let id = id.unwrap_or_else(|| PlanId::new(&name::fresh("plan", at)));
        let plan = Arc::clone(&accepted.plan);
        let new = NewPlan { tenant: text.tenant, id: id.clone(), plan, expected, actor, at };
        let saved = self.shared.journal.save(new).await.map_err(|error| match error {
            port::Error::Overloaded => Error::Busy { retry_after: RETRY_AFTER },
            error => Error::Store(error),
        })?;
        Ok(Submitted { id, saved, accepted })
    }

    /// Gives an execution another plan: checked, kept as the next revision of its plan, and then asked for.
    pub async fn replan(
        &self,
        identity: &Identity,
        source: Vec<u8>,
        format: Format,
        reason: String,
        actor: Actor,
    ) -> Result<Submitted, Error> {
        let missing = || port::Error::NotFound { what: "execution", id: identity.execution.to_string() };
        let summary = self.shared.query.execution(identity).await?.ok_or_else(missing)?;
        let text = PlanText { tenant: identity.tenant.clone(), source, format, driver: summary.row.driver };
        let submitted = self.submit(text, Some(summary.plan.clone()), None, actor.clone()).await?;
        let revision = submitted.saved.revision();
        let signal = Signal::Replan { plan: summary.plan, revision, reason };
        self.signal(identity, actor, signal, None).await?;
        Ok(submitted)
    }
}

/// The servers whose tools a document names, wherever it does.
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
