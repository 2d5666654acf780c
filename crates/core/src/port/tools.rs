//! The tools port: the catalogue, call permits, and the calls themselves.
//!
//! A call has three stages. [`ToolGateway::admit`] grants a permit before the attempt is recorded, so that no recorded
//! attempt waits in a queue. [`ToolGateway::call`] makes the call and returns its outcome. [`ToolGateway::cancel`]
//! asks for an early end; the call then returns by itself.

use crate::execution::ExecutionIdentity;
use crate::hash::Hash;
use crate::id::{PartId, TenantId, ToolName};
use crate::journal::event::CallSide;
use crate::redact::Redactor;
use crate::time::{Millis, Timestamp};
use crate::tool::report::ServerReport;
use crate::tool::{CallOutcome, Elicitation, ToolCatalog, ToolFailure};
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

/// The result of a tool port. It has no error of its own: failures are part of `T`.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait ToolGateway: Send + Sync {
    /// The tools of some servers, or of all. Servers not listed so far are started and listed.
    fn catalog(&self, servers: ServerSelection) -> PortFuture<'_, CatalogSnapshot>;

    /// The tools that match some words best, best first, of the servers listed so far.
    fn search(&self, words: &str, limit: usize) -> Vec<ToolName>;

    /// The current definition of a tool; `None` when its server was not listed yet or has no such tool.
    fn definition(&self, tool: &ToolName) -> Option<Hash>;

    /// Asks for a permit for one call. If there is no capacity, the waiter is queued (once, however often it asks), and
    /// [`PermitWaiter::wake`] is called when it is its turn: then its next request is granted.
    fn admit(&self, tool: &ToolName, applicant: &Arc<dyn PermitWaiter>) -> Admission;

    /// The same for a call that has waited long enough for a paused server: it gets a permit, and is refused when it is
    /// made.
    fn admit_paused(&self, tool: &ToolName, applicant: &Arc<dyn PermitWaiter>) -> Admission {
        self.admit(tool, applicant)
    }

    /// Makes a call whose attempt is recorded. It ends with a response, at the timeout, or when cancelled.
    fn call(&self, call: ToolCallRequest, permit: CallPermit) -> PortFuture<'_, CallReturn>;

    /// Asks for an early end of a call in flight; does nothing for any other call.
    fn cancel(&self, call: &ToolCallId);

    /// The state of every server, ordered by name. No server is contacted.
    fn report(&self) -> Vec<ServerReport>;

    /// Closes a server's circuit breaker, so that it is called again at once. False when there is no server of that
    /// name.
    fn reset(&self, server: &str) -> bool;

    /// A redactor for every secret resolved so far, for texts and values from other sources.
    fn redactor(&self) -> Redactor;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerSelection {
    All,
    Named(BTreeSet<String>),
}

/// The tools found, and the servers that could not be listed.
#[derive(Clone, Debug, Default)]
pub struct CatalogSnapshot {
    pub tools: ToolCatalog,
    /// Failures by server; their tools are unknown.
    pub absent: Vec<(String, ToolFailure)>,
}

/// An execution that waits for a permit. Queues are per tenant, so that no tenant can take all capacity.
pub trait PermitWaiter: Send + Sync {
    fn tenant(&self) -> &TenantId;
    /// Higher goes first within its tenant.
    fn priority(&self) -> i32;
    /// A permit may be available now. Called from any thread; must not block.
    fn wake(&self);
}

#[derive(Debug)]
pub enum Admission {
    Granted(CallPermit),
    /// The waiter will be woken.
    Later,
    /// Not before this has passed: a rate, or a limit that renews over time. The waiter must ask again by itself.
    After(Millis),
    /// A call would be refused now, because its server is paused after failures: why, and for how long. The waiter must
    /// ask again by itself.
    Paused(ToolFailure),
}

/// The right to make one call now. Dropping it frees the capacity. Its content is private to the registry.
pub struct CallPermit(Option<Box<dyn Any + Send + Sync>>);

impl CallPermit {
    pub fn new(held: impl Any + Send + Sync) -> CallPermit {
        CallPermit(Some(Box::new(held)))
    }

    /// What it holds, or the permit itself if it holds something else.
    pub fn held<T: Any + Send + Sync>(self) -> Result<T, CallPermit> {
        let Some(held) = self.0 else { return Err(CallPermit(None)) };
        held.downcast().map(|held| *held).map_err(|held| CallPermit(Some(held)))
    }

    /// For tools without limits.
    pub fn unlimited() -> CallPermit {
        CallPermit(None)
    }
}

impl std::fmt::Debug for CallPermit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallPermit").field(&self.0.is_some()).finish()
    }
}

/// Which call of which execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCallId {
    pub identity: ExecutionIdentity,
    pub part: PartId,
    pub side: CallSide,
    pub attempt: u32,
}

pub struct ToolCallRequest {
    pub id: ToolCallId,
    pub tool: ToolName,
    /// The definition the plan was checked with. A tool whose definition has changed is not called.
    pub definition: Hash,
    /// Secrets are still references, not values.
    pub parameters: Arc<Value>,
    pub key: Hash,
    /// Counted from now; progress of the tool does not extend it.
    pub timeout: Millis,
    /// The current time, for connectors that store timestamps.
    pub now: Timestamp,
    /// The ticket of an accepted call to resume; the parameters are then not sent again.
    pub ticket: Option<String>,
    /// The open question of a call to resume: it is put again, and the parameters are sent with the answer.
    pub continuation: Option<Arc<Value>>,
    /// Receives progress and questions while the call is in flight.
    pub reporter: Arc<dyn CallReporter>,
}

impl std::fmt::Debug for ToolCallRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCallRequest").field("id", &self.id).field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// Receives what a tool reports while its call is in flight.
pub trait CallReporter: Send + Sync {
    /// The tool works in the background and can be asked with this ticket, even after a restart. Returns once the
    /// ticket is recorded.
    fn accepted(&self, ticket: String) -> PortFuture<'_, ()>;

    /// The tool asks a question. Returns the answer, or `None` when there will be none.
    fn ask(&self, question: Elicitation) -> PortFuture<'_, Option<Value>>;

    /// Progress the tool reports. Reports may be dropped when there are too many.
    fn progress(&self, progress: ToolProgress);

    /// The tool answered after the call had ended without its answer, or answered a second time.
    fn late(&self, outcome: CallOutcome);
}

#[derive(Clone, Debug, PartialEq)]
pub struct ToolProgress {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CallReturn {
    Outcome(CallOutcome),
    /// Nothing was sent: the tool's definition has changed since the plan was checked.
    Drifted {
        found: Hash,
    },
}
