//! What a tool of ours is: what it says of itself, what goes in and comes out, and what it does.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::schema::{portable, portable_answer, terse};
use crate::mcp::visit::Visit;
use futures::future::BoxFuture;
use rmcp::model::{CreateTaskResult, InputRequiredResult, JsonObject, Tool as Offer, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;

pub(crate) struct Tool {
    pub(crate) name: &'static str,
    title: &'static str,
    description: &'static str,
    nature: Nature,
    pub(crate) toolsets: &'static [Toolset],
    input: Arc<JsonObject>,
    /// With remarks, which prompts go without.
    pub(crate) output: Arc<JsonObject>,
    pub(crate) run: Run,
}

type Run = Box<dyn Fn(Visit, Value) -> BoxFuture<'static, Result<Answer, Fault>> + Send + Sync>;

/// What calling it can do; told to clients as hints, so it must be true.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Nature {
    /// Only looks.
    Reads,
    /// Adds to what is kept; the same once more changes nothing.
    Keeps,
    /// Adds to the journal; each call adds.
    Records,
    /// Steers an execution; what has taken effect may be undone or left.
    Steers,
    /// Calls other tools, whatever those do.
    Acts,
    /// Takes away what is kept.
    Removes,
}

/// What a tool says of itself.
pub(crate) struct About {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Tells a model when to use it, in as few words as do.
    pub(crate) description: &'static str,
    pub(crate) nature: Nature,
    pub(crate) toolsets: &'static [Toolset],
}

pub(crate) enum Answer {
    Done(Value),
    /// The person at the client is asked first; the same call comes again with what they said.
    Ask(InputRequiredResult),
    /// It goes on; the client asks for it by this ticket.
    Ticket(Box<CreateTaskResult>),
}

impl Answer {
    pub(crate) fn done(output: &impl Serialize) -> Result<Answer, Fault> {
        let value = serde_json::to_value(output);
        value.map(Answer::Done).map_err(|error| Fault::new("server.internal", error.to_string()))
    }
}

impl Tool {
    pub(crate) fn new<I, O, F>(about: About, run: impl Fn(Visit, I) -> F + Send + Sync + 'static) -> Tool
    where
        I: DeserializeOwned + JsonSchema,
        O: JsonSchema,
        F: Future<Output = Result<Answer, Fault>> + Send + 'static,
    {
        let About { name, title, description, nature, toolsets } = about;
        let run = move |visit: Visit, arguments: Value| -> BoxFuture<'static, Result<Answer, Fault>> {
            match read(name, arguments) {
                Ok(input) => Box::pin(run(visit, input)),
                Err(fault) => Box::pin(std::future::ready(Err(fault))),
            }
        };
        let (input, output) = (portable::<I>(), portable_answer::<O>());
        Tool { name, title, description, nature, toolsets, input, output, run: Box::new(run) }
    }

    /// As clients see it.
    pub(crate) fn offer(&self) -> Offer {
        // Reads, destroys, harmless when repeated, reaches beyond what Rutter keeps.
        let (reads, destroys, repeats, reaches) = match self.nature {
            Nature::Reads => (true, false, true, false),
            Nature::Keeps => (false, false, true, false),
            Nature::Records => (false, false, false, false),
            Nature::Steers => (false, true, false, true),
            Nature::Acts => (false, true, false, true),
            Nature::Removes => (false, true, true, false),
        };
        let annotations = ToolAnnotations::new()
            .read_only(reads)
            .destructive(destroys)
            .idempotent(repeats)
            .open_world(reaches);
        Offer::new(self.name, self.description, Arc::clone(&self.input))
            .with_title(self.title)
            .with_raw_output_schema(terse(&self.output))
            .with_annotations(annotations)
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

fn read<I: DeserializeOwned>(tool: &str, arguments: Value) -> Result<I, Fault> {
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let place = error.path().to_string();
        let place = if place == "." { String::new() } else { format!(" at {place}") };
        Fault::new("server.arguments", format!("the arguments of {tool} are wrong{place}: {}", error.inner()))
            .hint("tools/list has the schema of the arguments; nothing was done")
    })
}
