//! A call by hand: outside any plan, with the tool as it is now.

use super::ToolRegistry;
use super::server_of;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, StepId, TenantId, ToolName};
use rutter_core::journal::event::CallSide;
use rutter_core::limits;
use rutter_core::port::tools::{
    Admission, CallPermit, CallReporter, CallReturn, PermitWaiter, PortFuture, ToolCallId, ToolCallRequest,
    ToolGateway, ToolProgress,
};
use rutter_core::time::Millis;
use rutter_core::tool::Elicitation;
use rutter_core::tool::{CallOutcome, ToolFailure};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Notify;

impl ToolRegistry {
    /// Calls a tool once, as it is now; with `judged` only if that is still its definition. Waits for a permit like any
    /// other call.
    pub async fn call_once(&self, tool: &ToolName, judged: Option<Hash>, parameters: Value) -> CallReturn {
        let (current, timeout) = match self.current(tool).await {
            Ok(current) => current,
            Err(failure) => return CallReturn::Outcome(CallOutcome::NotDone(failure)),
        };
        let permit = self.acquire_permit(tool).await;
        let now = (self.clock)();
        let number = self.scratch.fetch_add(1, Ordering::Relaxed);
        let execution = ExecutionId::new(&format!("by_hand_{}_{number}", now.0));
        let fields = [execution.as_str().as_bytes(), tool.as_str().as_bytes()];
        let key = Hash::of_fields("call by hand", &fields);
        let identity = ExecutionIdentity { tenant: tenant(), execution };
        let part = PartId::whole(StepId::new("call"));
        let call = ToolCallRequest {
            id: ToolCallId { identity, part, side: CallSide::Do, attempt: 1 },
            tool: tool.clone(),
            definition: judged.unwrap_or(current),
            parameters: Arc::new(parameters),
            key,
            timeout,
            now,
            ticket: None,
            continuation: None,
            reporter: Arc::new(SilentReporter),
        };
        self.call(call, permit).await
    }

    /// The definition a tool has now, and the timeout of its calls. For a missing tool they do not matter: the call
    /// reports that.
    async fn current(&self, tool: &ToolName) -> Result<(Hash, Millis), ToolFailure> {
        let usual = limits::ATTEMPT_TIMEOUT_DEFAULT;
        let Some(server) = self.servers.get(server_of(tool)) else { return Ok((Hash::ZERO, usual)) };
        let offers = self.offers(server).await;
        let offers = offers.map_err(|failure| self.secrets.redactor().failure(failure))?;
        Ok(offers.by_name.get(tool).map_or((Hash::ZERO, usual), |offer| {
            let settings = &offer.tool.attempts;
            let timeout = settings.timeout.unwrap_or(usual).min(settings.timeout_max.unwrap_or(limits::TIMEOUT_MAX));
            (offer.tool.definition, timeout)
        }))
    }

    async fn acquire_permit(&self, tool: &ToolName) -> CallPermit {
        let bystander = Arc::new(OneShotWaiter { tenant: tenant(), turn: Notify::new() });
        let applicant: Arc<dyn PermitWaiter> = Arc::<OneShotWaiter>::clone(&bystander);
        loop {
            // A call by hand is not put off: whoever makes it is told that its server is paused.
            match self.admit_paused(tool, &applicant) {
                Admission::Granted(permit) => return permit,
                Admission::Later => bystander.turn.notified().await,
                Admission::After(pause) => tokio::time::sleep(Duration::from_millis(pause.0)).await,
                Admission::Paused(_) => return CallPermit::unlimited(),
            }
        }
    }
}

/// Calls by hand belong to no execution; together they have the capacity of one tenant.
fn tenant() -> TenantId {
    TenantId::new("by_hand")
}

struct OneShotWaiter {
    tenant: TenantId,
    turn: Notify,
}

impl PermitWaiter for OneShotWaiter {
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

/// Discards reports and declines questions.
struct SilentReporter;

impl CallReporter for SilentReporter {
    fn accepted(&self, _ticket: String) -> PortFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn ask(&self, _question: Elicitation) -> PortFuture<'_, Option<Value>> {
        Box::pin(std::future::ready(None))
    }

    fn progress(&self, _progress: ToolProgress) {}

    fn late(&self, _outcome: CallOutcome) {}
}
