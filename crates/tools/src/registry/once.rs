//! A call by hand: outside any plan, with the tool as it is now.

use super::Registry;
use super::server_of;
use rutter_core::execution::Identity;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, StepId, TenantId, ToolName};
use rutter_core::journal::event::Side;
use rutter_core::limits;
use rutter_core::port::tools::{
    Admission, Applicant, Berth, Call, CallId, Elicitation, Progress, Reply, Reporter, Return, Tools,
};
use rutter_core::tool::{Failure, Outcome};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Notify;

impl Registry {
    /// Calls a tool once, as it is now. Waits for room as everybody does.
    pub async fn call_once(&self, tool: &ToolName, parameters: Value) -> Return {
        let definition = match self.current(tool).await {
            Ok(definition) => definition,
            Err(failure) => return Return::Outcome(Outcome::NotDone(failure)),
        };
        let berth = self.berth(tool).await;
        let now = (self.clock)();
        let number = self.scratch.fetch_add(1, Ordering::Relaxed);
        let execution = ExecutionId::new(&format!("by_hand_{}_{number}", now.0));
        let fields = [execution.as_str().as_bytes(), tool.as_str().as_bytes()];
        let key = Hash::of_fields("call by hand", &fields);
        let identity = Identity { tenant: tenant(), execution };
        let part = PartId::whole(StepId::new("call"));
        let call = Call {
            id: CallId { identity, part, side: Side::Do, attempt: 1 },
            tool: tool.clone(),
            definition,
            parameters: Arc::new(parameters),
            key,
            timeout: limits::ATTEMPT_TIMEOUT_DEFAULT,
            now,
            ticket: None,
            reporter: Arc::new(Silent),
        };
        self.call(call, berth).await
    }

    /// The definition a tool has now. For one that is not there it does not matter: the call will say so.
    async fn current(&self, tool: &ToolName) -> Result<Hash, Failure> {
        let Some(server) = self.servers.get(server_of(tool)) else { return Ok(Hash::ZERO) };
        let offers = self.offers(server).await;
        let offers = offers.map_err(|failure| self.secrets.redactor().failure(failure))?;
        Ok(offers.by_name.get(tool).map_or(Hash::ZERO, |offer| offer.tool.definition))
    }

    async fn berth(&self, tool: &ToolName) -> Berth {
        let bystander = Arc::new(Bystander { tenant: tenant(), turn: Notify::new() });
        let applicant: Arc<dyn Applicant> = Arc::<Bystander>::clone(&bystander);
        loop {
            match self.admit(tool, &applicant) {
                Admission::Granted(berth) => return berth,
                Admission::Later => bystander.turn.notified().await,
                Admission::After(pause) => tokio::time::sleep(Duration::from_millis(pause.0)).await,
            }
        }
    }
}

/// Calls by hand are nobody's execution; together they have one tenant's share of the room.
fn tenant() -> TenantId {
    TenantId::new("by_hand")
}

struct Bystander {
    tenant: TenantId,
    turn: Notify,
}

impl Applicant for Bystander {
    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    fn priority(&self) -> i32 {
        0
    }

    fn wake(&self) {
        self.turn.notify_one();
    }
}

/// Nobody listens, and nobody will answer.
struct Silent;

impl Reporter for Silent {
    fn accepted(&self, _ticket: String) -> Reply<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn ask(&self, _question: Elicitation) -> Reply<'_, Option<Value>> {
        Box::pin(std::future::ready(None))
    }

    fn progress(&self, _progress: Progress) {}
}
