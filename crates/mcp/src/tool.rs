//! A tool definition: name, description, schemas, behaviour and handler.

use crate::schema::{portable, portable_answer, terse};
use crate::tool_request::ToolRequest;
use futures::future::BoxFuture;
use rmcp::model::{CreateTaskResult, InputRequiredResult, JsonObject, Tool as Offer, ToolAnnotations};
use rutter_app::error::AppError;
use rutter_app::principal::McpToolset;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

pub(crate) struct McpToolDefinition {
    pub(crate) name: &'static str,
    title: &'static str,
    description: &'static str,
    pub(crate) behavior: ToolBehavior,
    pub(crate) toolsets: &'static [McpToolset],
    input: Arc<JsonObject>,
    /// With descriptions, which clients do not get.
    pub(crate) output: Arc<JsonObject>,
    pub(crate) run: ToolHandler,
}

type ToolHandler = Box<dyn Fn(ToolRequest, Value) -> BoxFuture<'static, Result<ToolAnswer, AppError>> + Send + Sync>;

/// What a call can do; sent to clients as hints, so it must be accurate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ToolBehavior {
    /// Only reads.
    Reads,
    /// Stores something; repeating the same call changes nothing.
    Keeps,
    /// Adds to the journal with every call.
    Records,
    /// Controls an execution; effects may be undone or left.
    Steers,
    /// Calls other tools, with whatever effects those have.
    Acts,
    /// Removes stored data.
    Removes,
}

/// The metadata of a tool.
pub(crate) struct ToolSpec {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Tells a model when to use it, as briefly as possible.
    pub(crate) description: &'static str,
    pub(crate) behavior: ToolBehavior,
    pub(crate) toolsets: &'static [McpToolset],
}

pub(crate) enum ToolAnswer {
    Done(Value),
    /// The user of the client must answer first; the same call is then repeated with the answers.
    Ask(InputRequiredResult),
    /// The call continues; the client polls this task.
    Ticket(Box<CreateTaskResult>),
}

impl ToolAnswer {
    pub(crate) fn done(output: &impl Serialize) -> Result<ToolAnswer, AppError> {
        let value = serde_json::to_value(output);
        value.map(ToolAnswer::Done).map_err(|error| AppError::new("server.internal", error.to_string()))
    }
}

impl McpToolDefinition {
    pub(crate) fn new<I, O, F>(
        about: ToolSpec,
        run: impl Fn(ToolRequest, I) -> F + Send + Sync + 'static,
    ) -> McpToolDefinition
    where
        I: DeserializeOwned + JsonSchema,
        O: JsonSchema,
        F: Future<Output = Result<ToolAnswer, AppError>> + Send + 'static,
    {
        let ToolSpec { name, title, description, behavior: nature, toolsets } = about;
        let run = move |request: ToolRequest, arguments: Value| -> BoxFuture<'static, Result<ToolAnswer, AppError>> {
            match read(name, arguments) {
                Ok(input) => Box::pin(run(request, input)),
                Err(error) => Box::pin(std::future::ready(Err(error))),
            }
        };
        let (input, output) = (portable::<I>(), portable_answer::<O>());
        McpToolDefinition { name, title, description, behavior: nature, toolsets, input, output, run: Box::new(run) }
    }

    /// The definition that clients get.
    pub(crate) fn offer(&self) -> Offer {
        // Read-only, destructive, idempotent, open world.
        let (reads, destroys, repeats, reaches) = match self.behavior {
            ToolBehavior::Reads => (true, false, true, false),
            ToolBehavior::Keeps => (false, false, true, false),
            ToolBehavior::Records => (false, false, false, false),
            ToolBehavior::Steers => (false, true, false, true),
            ToolBehavior::Acts => (false, true, false, true),
            ToolBehavior::Removes => (false, true, true, false),
        };
        let annotations =
            ToolAnnotations::new().read_only(reads).destructive(destroys).idempotent(repeats).open_world(reaches);
        Offer::new(self.name, self.description, Arc::clone(&self.input))
            .with_title(self.title)
            .with_raw_output_schema(terse(&self.output))
            .with_annotations(annotations)
    }
}

impl std::fmt::Debug for McpToolDefinition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpToolDefinition").field("name", &self.name).finish_non_exhaustive()
    }
}

fn read<I: DeserializeOwned>(tool: &str, arguments: Value) -> Result<I, AppError> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let place = error.path().to_string();
        let place = if place == "." { String::new() } else { format!(" at {place}") };
        AppError::new("server.arguments", format!("invalid arguments of {tool}{place}: {}", error.inner()))
            .hint("tools/list has the schema of the arguments; nothing was done")
    })
}
