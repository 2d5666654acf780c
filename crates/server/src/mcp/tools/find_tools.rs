//! `find_tools`: which tools plans can call, by words, by server, or one of them whole.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::limits::ANSWER_BYTES;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::terse::{bytes, fitting, object, rows, shortened};
use crate::mcp::visit::Visit;
use crate::words::cut;
use rutter_core::id::ToolName;
use rutter_core::plan::wording::guess;
use rutter_core::port::tools::{Catalog, Servers, Tools};
use rutter_core::tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

const TOOLS_DEFAULT: usize = 10;
const TOOLS_MAX: usize = 20;
/// How long servers that were never asked may take; those that take longer are there the next time.
const SERVERS_WAIT: Duration = Duration::from_secs(10);
const DESCRIPTION_CHARS_MAX: usize = 240;
/// Each schema of the one tool that is shown whole.
const SCHEMA_BYTES_MAX: usize = 3 << 10;
const SERVERS_MAX: usize = 10;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "find_tools",
        title: "Find tools for a plan",
        description: "Search the tools that plans can call: name, what it does, safety (once = never repeat blindly), \
                      required parameters. With `name`: that tool with its full schemas.",
        nature: Nature::Reads,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Words for what it should do.
    query: Option<String>,
    server: Option<String>,
    /// server.tool
    name: Option<String>,
    #[schemars(range(max = 20))]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    summary: String,
    next: String,
    #[schemars(schema_with = "rows")]
    tools: Vec<Value>,
    // Tools that fit and are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    more: Option<usize>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "object")]
    servers_not_reached: Map<String, Value>,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let tools = Arc::clone(&visit.desk.tools);
    let (catalog, is_whole) = catalog(&tools, &input).await;
    let mut absent: Map<String, Value> = catalog
        .absent
        .iter()
        .take(SERVERS_MAX)
        .map(|(server, failure)| (server.clone(), json!(cut(&failure.to_string(), DESCRIPTION_CHARS_MAX))))
        .collect();
    if !is_whole {
        let why = format!("did not say within {} s; ask again in a while", SERVERS_WAIT.as_secs());
        absent.insert("others".to_owned(), json!(why));
    }
    match &input.name {
        Some(name) => one(&catalog, absent, name),
        None => search(&*tools, &catalog, absent, &input),
    }
}

/// What servers offer; false when some did not answer in time, and only those that were known before are in it.
async fn catalog(tools: &Arc<dyn Tools>, input: &Input) -> (Catalog, bool) {
    let server = input.server.as_deref().or_else(|| Some(input.name.as_deref()?.split_once('.')?.0));
    let servers = match server {
        Some(server) => Servers::Named([server.to_owned()].into()),
        None => Servers::All,
    };
    // A server that is being started goes on with it when nobody waits any more.
    let asking = Arc::clone(tools);
    let asking = tokio::spawn(async move { asking.catalog(servers).await });
    match tokio::time::timeout(SERVERS_WAIT, asking).await {
        Ok(Ok(catalog)) => (catalog, true),
        Ok(Err(_)) | Err(_) => {
            let known = tools.search(input.query.as_deref().unwrap_or_default(), TOOLS_MAX);
            let servers = known.iter().filter_map(|name| name.as_str().split_once('.'));
            let servers = Servers::Named(servers.map(|(server, _)| server.to_owned()).collect());
            (tools.catalog(servers).await, false)
        }
    }
}

fn one(catalog: &Catalog, absent: Map<String, Value>, name: &str) -> Result<Answer, Fault> {
    let all = &catalog.tools.tools;
    let Some(tool) = all.get(name) else {
        let fault = Fault::missing("tool", name);
        let meant = guess(name, all.keys().map(ToolName::as_str));
        return Err(match (meant, absent.iter().next()) {
            (Some(meant), _) => fault.hint(format!("did you mean {}?", meant.word())),
            (None, Some((server, why))) => fault.hint(format!("the server {server} was not reached: {why}")),
            (None, None) => fault.hint("find_tools with `query` or `server` lists what there is"),
        });
    };
    let mut row = json!({
        "name": tool.name,
        "description": cut(&tool.description, DESCRIPTION_CHARS_MAX * 4),
        "safety": tool.safety,
        "safety_source": tool.safety_source,
        "input": shortened(&tool.input, SCHEMA_BYTES_MAX),
    });
    if let Some(output) = &tool.output {
        row["output"] = shortened(output, SCHEMA_BYTES_MAX);
    }
    if let Some(key) = &tool.key_parameter {
        row["key_parameter"] = json!(key);
    }
    Answer::done(&Output {
        summary: format!("{name} is {}", tool.safety.as_str()),
        next: "use it in a step of save_plan".to_owned(),
        tools: vec![row],
        more: None,
        servers_not_reached: absent,
    })
}

fn search(
    tools: &dyn Tools,
    catalog: &Catalog,
    absent: Map<String, Value>,
    input: &Input,
) -> Result<Answer, Fault> {
    let all = &catalog.tools.tools;
    let fits = |tool: &Arc<tool::Tool>| {
        let server = tool.name.as_str().split_once('.').map(|(server, _)| server);
        input.server.is_none() || input.server.as_deref() == server
    };
    let found: Vec<&Arc<tool::Tool>> = match input.query.as_deref().filter(|query| !query.trim().is_empty()) {
        Some(query) => {
            let names = tools.search(query, all.len().max(TOOLS_MAX));
            names.iter().filter_map(|name| all.get(name)).filter(|tool| fits(tool)).collect()
        }
        None => all.values().filter(|tool| fits(tool)).collect(),
    };
    let limit = input.limit.unwrap_or(TOOLS_DEFAULT).clamp(1, TOOLS_MAX);
    let room = ANSWER_BYTES.saturating_sub(bytes(&absent) + 400);
    let rows = fitting(found.iter().take(limit).map(|tool| row(tool)), room);
    let next = match rows.is_empty() {
        true => "find_tools with other words, or without `query` to see all",
        false => "find_tools with `name` for full schemas, then save_plan",
    };
    Answer::done(&Output {
        summary: format!("{} of {} tools that fit", rows.len(), found.len()),
        next: next.to_owned(),
        more: Some(found.len() - rows.len()).filter(|more| *more > 0),
        tools: rows,
        servers_not_reached: absent,
    })
}

fn row(tool: &Arc<tool::Tool>) -> Value {
    let properties = tool.input.get("properties").and_then(Value::as_object);
    let required = tool.input.get("required").and_then(Value::as_array);
    let names: Vec<&str> = required.into_iter().flatten().filter_map(Value::as_str).collect();
    let kind = |name: &str| {
        let schema = properties.and_then(|properties| properties.get(name));
        match schema.and_then(|schema| schema.get("type")) {
            Some(kind) => kind.clone(),
            None => json!("any"),
        }
    };
    let optional = properties.map_or(0, |properties| properties.len()).saturating_sub(names.len());
    let required: Map<String, Value> =
        names.into_iter().take(12).map(|name| (cut(name, 60), kind(name))).collect();
    json!({
        "name": tool.name,
        "description": cut(&tool.description, DESCRIPTION_CHARS_MAX),
        "safety": tool.safety,
        "required": required,
        "optional": optional,
    })
}
