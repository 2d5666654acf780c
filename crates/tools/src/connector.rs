//! What every kind of server can do: list its tools, and make a call of one.
//!
//! A connector decides nothing about plans. By the time it is asked, the tool is the pinned one, the parameters fit its
//! schema, secrets are filled in and there is room. It says how the call ended, honestly: [`Outcome::NotDone`] only when
//! nothing can have happened, [`Outcome::Maybe`] whenever that is not certain.

use rutter_core::port::tools::{CallId, Reply, Reporter};
use rutter_core::time::Timestamp;
use rutter_core::tool::{Failure, Outcome};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub trait Connector: Send + Sync {
    /// The tools as the server defines them now. Starts the server where that is needed.
    fn list(&self) -> Reply<'_, Result<Vec<Served>, Failure>>;

    fn call(&self, request: Request) -> Reply<'_, Outcome>;

    /// How the server is, without asking it anything.
    fn state(&self) -> State;

    /// Counts up whenever the definitions may have changed, so that whoever keeps them knows when to ask again.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Ends what it has running; calls under way end as they must.
    fn close(&self) -> Reply<'_, ()>;
}

/// A tool as served: its name on the server, and the definition in MCP's spelling.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    pub name: String,
    /// `description`, `inputSchema`, `outputSchema`, `annotations`, `title`; anything else is left out.
    pub definition: Map<String, Value>,
}

pub struct Request {
    pub id: CallId,
    /// Its name on the server.
    pub tool: String,
    /// With secrets filled in: never to be logged, stored or repeated in a message.
    pub parameters: Arc<Value>,
    /// The idempotency key, for servers that take one beside the parameters.
    pub key: String,
    /// For the whole call, from now.
    pub timeout: Duration,
    pub now: Timestamp,
    /// Ends the call early: ask downstream to stop, then say what is known.
    pub cancel: CancellationToken,
    /// Under which the server works on this call already; nothing is sent anew then.
    pub ticket: Option<String>,
    pub reporter: Arc<dyn Reporter>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("id", &self.id).field("tool", &self.tool).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Not needed so far.
    Idle,
    Starting,
    Ready,
    /// Cannot be reached; why, and what it last wrote to stderr if it is a process.
    Down {
        reason: String,
        stderr: Vec<String>,
    },
}
