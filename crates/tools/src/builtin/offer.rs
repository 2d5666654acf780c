//! What a group of built-ins is, seen as a server.

use super::log::Unwritten;
use crate::connector::{Connector, Request, Served, State};
use rutter_core::port::tools::Reply;
use rutter_core::tool::{Category, Failure, Outcome};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

pub(super) trait Offer: Send + Sync + 'static {
    fn tools(&self) -> Vec<Served>;

    /// An error is how the call ended when there is no result.
    fn call(&self, request: Request) -> Reply<'_, Result<Value, Outcome>>;
}

pub(super) struct Group<O> {
    offer: Arc<O>,
    /// Definitions are built in, so this never counts.
    changes: watch::Sender<u64>,
}

impl<O: Offer> Group<O> {
    pub fn new(offer: Arc<O>) -> Group<O> {
        Group { offer, changes: watch::Sender::new(0) }
    }
}

impl<O> fmt::Debug for Group<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").finish_non_exhaustive()
    }
}

impl<O: Offer> Connector for Group<O> {
    fn list(&self) -> Reply<'_, Result<Vec<Served>, Failure>> {
        Box::pin(std::future::ready(Ok(self.offer.tools())))
    }

    fn call(&self, request: Request) -> Reply<'_, Outcome> {
        Box::pin(async {
            if request.cancel.is_cancelled() {
                return not_done(Category::Cancelled, "the call was cancelled before it began");
            }
            match self.offer.call(request).await {
                Ok(result) => Outcome::Done { result: Arc::new(result), cost_micros: 0 },
                Err(outcome) => outcome,
            }
        })
    }

    fn state(&self) -> State {
        State::Ready
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn close(&self) -> Reply<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

#[derive(Clone, Copy)]
pub(super) enum Effect {
    None,
    Idempotent,
}

/// A tool in MCP's spelling. `properties` and `output` are those of objects; required is what `required` names.
pub(super) fn served(
    name: &str,
    description: &str,
    effect: Effect,
    properties: Value,
    required: &[&str],
    output: Value,
) -> Served {
    let annotations = match effect {
        Effect::None => json!({ "readOnlyHint": true, "openWorldHint": false }),
        Effect::Idempotent => {
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
    Served { name: name.to_owned(), definition }
}

pub(super) fn not_done(category: Category, message: impl Into<String>) -> Outcome {
    Outcome::NotDone(Failure::new(category, message))
}

pub(super) fn invalid(message: impl Into<String>) -> Outcome {
    not_done(Category::InvalidInput, message)
}

pub(super) fn unknown(tool: &str) -> Outcome {
    not_done(Category::NotFound, format!("there is no tool {tool:?} here"))
}

/// The parameters as the type that says what they may be.
pub(super) fn read<T: DeserializeOwned>(parameters: &Value) -> Result<T, Outcome> {
    T::deserialize(parameters).map_err(|error| invalid(error.to_string()))
}

/// Does something that waits for the disk where that holds up nobody else.
pub(super) async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Outcome> + Send + 'static,
) -> Result<T, Outcome> {
    let internal = |error: tokio::task::JoinError| {
        Err(Outcome::Maybe(Failure::new(Category::Internal, error.to_string())))
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(internal)
}

impl From<Unwritten> for Outcome {
    fn from(unwritten: Unwritten) -> Outcome {
        match unwritten {
            Unwritten::Nothing(error) => {
                not_done(Category::Unavailable, format!("it could not be kept: {error}"))
            }
            Unwritten::Unknown(error) => {
                let message = format!("it is not known whether it was kept: {error}");
                Outcome::Maybe(Failure::new(Category::Unavailable, message))
            }
        }
    }
}

/// A text that is there and not too long.
pub(super) fn text(name: &str, text: &str, characters_max: usize) -> Result<(), Outcome> {
    match text.chars().count() {
        0 => Err(invalid(format!("{name} is empty"))),
        length if length > characters_max => {
            Err(invalid(format!("{name} has {length} characters, {characters_max} are allowed")))
        }
        _ => Ok(()),
    }
}

/// How many are asked for: a few unless said otherwise, and never all there could be.
pub(super) fn limit(limit: Option<u32>) -> Result<u32, Outcome> {
    const LIMIT_MAX: u32 = 100;
    match limit.unwrap_or(10) {
        limit @ 1..=LIMIT_MAX => Ok(limit),
        limit => Err(invalid(format!("limit is {limit}, 1 to {LIMIT_MAX} is possible"))),
    }
}
