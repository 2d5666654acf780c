//! The interface of every kind of server: list its tools, and call one.
//!
//! A connector decides nothing about plans. By the time it is called, the tool is the pinned one, the parameters match
//! its schema, secrets are filled in and a permit is held. It reports the outcome honestly: [`CallOutcome::NotDone`]
//! only when nothing can have happened, [`CallOutcome::Maybe`] whenever that is not certain.

use rutter_core::port::tools::{CallReporter, PortFuture, ToolCallId};
use rutter_core::time::Timestamp;
use rutter_core::tool::{CallOutcome, ToolFailure};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub trait Connector: Send + Sync {
    /// The tools as the server defines them now. Starts the server where that is needed.
    fn list(&self) -> PortFuture<'_, Result<Vec<ServedTool>, ToolFailure>>;

    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, CallOutcome>;

    /// Starts or connects the server where that is needed, and returns the number of the process or connection that the
    /// next call will go to. Definitions listed from another one may be out of date. A server whose definitions cannot
    /// change behind our back has one number for ever.
    fn ready(&self) -> PortFuture<'_, Result<u64, ToolFailure>> {
        Box::pin(std::future::ready(Ok(0)))
    }

    /// Why calls are refused now without being tried, and for how long: the pause after a failure.
    fn pause(&self) -> Option<ToolFailure> {
        None
    }

    /// Something stayed without an answer: a server that hangs is to be noticed before the next call.
    fn suspect(&self) {}

    /// Whether the server reports it when its definitions change.
    fn announces_changes(&self) -> bool {
        true
    }

    /// The state of the server, without contacting it.
    fn state(&self) -> ConnectorState;

    /// Counts up whenever the definitions may have changed, so that the registry knows when to list them again.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Ends its processes and connections; calls in flight are cut off.
    fn close(&self) -> PortFuture<'_, ()>;
}

/// A tool as served: its name on the server, and the definition in MCP's spelling.
#[derive(Clone, Debug, PartialEq)]
pub struct ServedTool {
    pub name: String,
    /// `description`, `inputSchema`, `outputSchema`, `annotations`, `title`; anything else is left out.
    pub definition: Map<String, Value>,
    /// JSON Schema of the result of a tool whose definition declares none, where its kind of server knows one. It is not
    /// part of the definition: plans are checked against it, results are not.
    pub result: Option<Value>,
}

pub struct ConnectorRequest {
    pub id: ToolCallId,
    /// Its name on the server.
    pub tool: String,
    /// With secrets filled in: never to be logged, stored or repeated in a message.
    pub parameters: Arc<Value>,
    /// The idempotency key, for servers that take one beside the parameters.
    pub key: String,
    /// For the whole call, from now.
    pub timeout: Duration,
    pub now: Timestamp,
    /// Cancels the call: ask the server to stop, then report what is known.
    pub cancel: CancellationToken,
    /// The process or connection whose definitions were checked for this call. To another one nothing may be sent.
    pub connection: Option<u64>,
    /// The tool declares the schema of its result.
    pub declares_output: bool,
    /// The ticket under which the server already works on this call; then nothing is sent again.
    pub ticket: Option<String>,
    /// What the connector gave with the open question of a call that is resumed: only its answer is to be sent.
    pub continuation: Option<Arc<Value>>,
    pub reporter: Arc<dyn CallReporter>,
}

/// How much of a call's time may pass before it is sent. An end of the preparation is known before the deadline of the
/// attempt: a call that was never sent is not in doubt.
pub(crate) fn preparation(timeout: Duration) -> Duration {
    const LEFT_MAX: Duration = Duration::from_secs(1);
    timeout - (timeout / 5).min(LEFT_MAX)
}

impl std::fmt::Debug for ConnectorRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectorRequest").field("id", &self.id).field("tool", &self.tool).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectorState {
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
