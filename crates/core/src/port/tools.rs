//! Calling tools: what there is to call, when there is room, and how each call ends.
//!
//! A call goes through three hands. [`Tools::admit`] grants a berth before the attempt is recorded, so that nothing
//! recorded as started waits in a queue. [`Tools::call`] makes it and says how it ended. [`Tools::cancel`] asks for an
//! early end; the call then returns by itself.

use crate::execution::Identity;
use crate::hash::Hash;
use crate::id::{PartId, TenantId, ToolName};
use crate::journal::event::Side;
use crate::redact::Redactor;
use crate::time::{Millis, Timestamp};
use crate::tool::report::ServerReport;
use crate::tool::{Failure, Outcome, ToolCatalog};
use serde_json::Value;
use std::any::Any;
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

/// What tools answer: always something, never an error beside it.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

pub trait Tools: Send + Sync {
    /// The tools of some servers, or of all. Servers that have not been asked yet are started and asked.
    fn catalog(&self, servers: Servers) -> Reply<'_, Catalog>;

    /// The tools that fit some words best, the best first, among those of servers that were asked so far.
    fn search(&self, words: &str, limit: usize) -> Vec<ToolName>;

    /// The definition a tool is known to have now; `None` when its server has not been asked or has no such tool.
    fn definition(&self, tool: &ToolName) -> Option<Hash>;

    /// Room for one call, if there is any. Otherwise `applicant` stands in line, once however often it asks, and
    /// [`Applicant::wake`] is called when it is its turn: then the next request of that applicant is granted.
    fn admit(&self, tool: &ToolName, applicant: &Arc<dyn Applicant>) -> Admission;

    /// Makes a call whose attempt is on record. It ends by itself: at the timeout, when cancelled, or with an answer.
    fn call(&self, call: Call, berth: Berth) -> Reply<'_, Return>;

    /// Asks for an early end of a call that is being made; any other is left alone.
    fn cancel(&self, call: &CallId);

    /// How every server stands, in the order of their names. Nobody is asked anything.
    fn report(&self) -> Vec<ServerReport>;

    /// Gives a server another chance at once although its calls failed one after the other. False when there is none
    /// of that name.
    fn reset(&self, server: &str) -> bool;

    /// Knows every secret that was resolved so far, for texts and values that come from elsewhere.
    fn redactor(&self) -> Redactor;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Servers {
    All,
    Named(BTreeSet<String>),
}

/// The tools that are there, and the servers that could not say.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    pub tools: ToolCatalog,
    /// By server; nothing is known of their tools.
    pub absent: Vec<(String, Failure)>,
}

/// Who waits for room: one execution. Lines are kept per tenant, so that none can take everything.
pub trait Applicant: Send + Sync {
    fn tenant(&self) -> &TenantId;
    /// Higher goes first within its tenant.
    fn priority(&self) -> i32;
    /// There may be room now. Called from anywhere; must not block.
    fn wake(&self);
}

#[derive(Debug)]
pub enum Admission {
    Granted(Berth),
    /// The applicant will be woken.
    Later,
    /// Not before this has passed: a rate, or a limit that renews with time. The applicant must ask again by itself.
    After(Millis),
}

/// The right to make one call now. Dropping it makes room for the next; what it holds is the registry's business.
pub struct Berth(Option<Box<dyn Any + Send + Sync>>);

impl Berth {
    pub fn new(held: impl Any + Send + Sync) -> Berth {
        Berth(Some(Box::new(held)))
    }

    /// Where nothing is limited.
    pub fn free() -> Berth {
        Berth(None)
    }
}

impl std::fmt::Debug for Berth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Berth").field(&self.0.is_some()).finish()
    }
}

/// Which call of which execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallId {
    pub identity: Identity,
    pub part: PartId,
    pub side: Side,
    pub attempt: u32,
}

pub struct Call {
    pub id: CallId,
    pub tool: ToolName,
    /// The definition the plan relies on. A tool that has another one now is not called.
    pub definition: Hash,
    /// Secrets are still references.
    pub parameters: Arc<Value>,
    pub key: Hash,
    /// From now; progress of the tool does not extend it.
    pub timeout: Millis,
    /// For the records of whoever is called.
    pub now: Timestamp,
    /// What the tool said earlier under which the call goes on; nothing is sent anew then.
    pub ticket: Option<String>,
    /// Told what happens while the call is made.
    pub reporter: Arc<dyn Reporter>,
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Call").field("id", &self.id).field("tool", &self.tool).finish_non_exhaustive()
    }
}

/// Hears of a call while it is made.
pub trait Reporter: Send + Sync {
    /// The tool works on it elsewhere and can be asked under this ticket, also after a restart. Answers once that is
    /// on record.
    fn accepted(&self, ticket: String) -> Reply<'_, ()>;

    /// The tool asks something back. Answers what somebody said, or `None` when nobody will.
    fn ask(&self, question: Elicitation) -> Reply<'_, Option<Value>>;

    /// How far the tool says it has come. May be left out when there is too much of it.
    fn progress(&self, progress: Progress);
}

/// What a tool wants to know in the middle of a call. Its text is the tool's and is not to be trusted.
#[derive(Clone, Debug, PartialEq)]
pub struct Elicitation {
    pub message: String,
    /// JSON Schema of a flat object.
    pub schema: Arc<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    pub done: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Return {
    Outcome(Outcome),
    /// Nothing was sent: the tool is not the one the plan was checked with.
    Drifted {
        found: Hash,
    },
}
