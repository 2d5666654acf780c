//! A group of built-in tools as a server.

use crate::connector::{Connector, ConnectorRequest, ConnectorState, ServedTool};
use rutter_core::port::error::{Error, ErrorReaction};
use rutter_core::port::tools::PortFuture;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

pub(super) trait BuiltinTools: Send + Sync + 'static {
    fn tools(&self) -> Vec<ServedTool>;

    /// `Err` is the outcome of a call without a result.
    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, Result<Value, CallOutcome>>;
}

pub(super) struct BuiltinConnector<O> {
    offer: Arc<O>,
    /// Definitions are built in, so this never changes.
    changes: watch::Sender<u64>,
}

impl<O: BuiltinTools> BuiltinConnector<O> {
    pub fn new(offer: Arc<O>) -> BuiltinConnector<O> {
        BuiltinConnector { offer, changes: watch::Sender::new(0) }
    }
}

impl<O> fmt::Debug for BuiltinConnector<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltinConnector").finish_non_exhaustive()
    }
}

impl<O: BuiltinTools> Connector for BuiltinConnector<O> {
    fn list(&self) -> PortFuture<'_, Result<Vec<ServedTool>, ToolFailure>> {
        Box::pin(std::future::ready(Ok(self.offer.tools())))
    }

    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, CallOutcome> {
        Box::pin(async {
            if request.cancel.is_cancelled() {
                return not_done(FailureCategory::Cancelled, "the call was cancelled before it began");
            }
            match self.offer.call(request).await {
                Ok(result) => CallOutcome::Done { result: Arc::new(result), cost_micros: 0 },
                Err(outcome) => outcome,
            }
        })
    }

    fn state(&self) -> ConnectorState {
        ConnectorState::Ready
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn close(&self) -> PortFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[derive(Clone, Copy)]
pub(super) enum BuiltinEffect {
    None,
    Idempotent,
}

/// A tool in MCP's spelling. `properties` and `output` are those of objects; required is what `required` names.
pub(super) fn served(
    name: &str,
    description: &str,
    effect: BuiltinEffect,
    properties: Value,
    required: &[&str],
    output: Value,
) -> ServedTool {
    let annotations = match effect {
        BuiltinEffect::None => json!({ "readOnlyHint": true, "openWorldHint": false }),
        BuiltinEffect::Idempotent => {
            json!({ "readOnlyHint": false, "destructiveHint": false, "idempotentHint": true })
        }
    };
    let mut definition = Map::new();
    definition.insert("description".to_owned(), description.into());
    let input = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    definition.insert("inputSchema".to_owned(), input);
    definition.insert("outputSchema".to_owned(), json!({ "type": "object", "properties": output }));
    definition.insert("annotations".to_owned(), annotations);
    ServedTool { name: name.to_owned(), definition, result: None }
}

pub(super) fn not_done(category: FailureCategory, message: impl Into<String>) -> CallOutcome {
    CallOutcome::NotDone(ToolFailure::new(category, message))
}

pub(super) fn invalid(message: impl Into<String>) -> CallOutcome {
    not_done(FailureCategory::InvalidInput, message)
}

pub(super) fn unknown(tool: &str) -> CallOutcome {
    not_done(FailureCategory::NotFound, format!("there is no tool {tool:?} here"))
}

/// Parses the parameters.
pub(super) fn read<T: DeserializeOwned>(parameters: &Value) -> Result<T, CallOutcome> {
    T::deserialize(parameters).map_err(|error| invalid(error.to_string()))
}

/// Runs slow work on a thread where it does not block other calls.
pub(super) async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CallOutcome> + Send + 'static,
) -> Result<T, CallOutcome> {
    let internal = |error: tokio::task::JoinError| Err(not_done(FailureCategory::Internal, error.to_string()));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(internal)
}

/// The outcome of a call whose access to the store failed.
pub(super) fn store_failed(error: Error) -> CallOutcome {
    let category = match (&error, error.reaction()) {
        (Error::Unknown(_), _) => {
            return CallOutcome::Maybe(ToolFailure::new(FailureCategory::Unavailable, error.to_string()));
        }
        // Another call changed the same note at the same time; a retry finds its result.
        (Error::Conflict { .. }, _) | (_, ErrorReaction::Retry | ErrorReaction::Reload) => FailureCategory::Unavailable,
        (_, ErrorReaction::Refuse) => FailureCategory::InvalidInput,
        (_, ErrorReaction::Stop) => FailureCategory::Internal,
    };
    not_done(category, error.to_string())
}

/// Refuses a text that is empty or too long.
pub(super) fn text(name: &str, text: &str, characters_max: usize) -> Result<(), CallOutcome> {
    match text.chars().count() {
        0 => Err(invalid(format!("{name} is empty"))),
        length if length > characters_max => {
            Err(invalid(format!("{name} has {length} characters, {characters_max} are allowed")))
        }
        _ => Ok(()),
    }
}

/// The requested number of items: 10 by default, at most 100.
pub(super) fn limit(limit: Option<u32>) -> Result<u32, CallOutcome> {
    const LIMIT_MAX: u32 = 100;
    match limit.unwrap_or(10) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        limit => Err(invalid(format!("limit is {limit}, 1 to {LIMIT_MAX} is possible"))),
    }
}
