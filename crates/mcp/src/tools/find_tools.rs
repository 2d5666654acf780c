//! `find_tools`: searches the tools that plans can call, by words or server, or returns one of them.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::limits::ANSWER_BYTES;
use rutter_app::principal::McpToolset;
use rutter_app::terse::{bytes, fitting, object, rows, shortened};
use rutter_core::id::ToolName;
use rutter_core::port::tools::{CatalogSnapshot, ServerSelection};
use rutter_core::text::cut;
use rutter_core::tool;
use rutter_core::wording::guess;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

const TOOLS_DEFAULT: usize = 10;
const TOOLS_MAX: usize = 20;
/// How long to wait for servers that have not listed their tools yet; slower ones appear in a later call.
const SERVERS_WAIT: Duration = Duration::from_secs(10);
const DESCRIPTION_CHARS_MAX: usize = 240;
/// Size limit of each schema when one tool is returned in full.
const SCHEMA_BYTES_MAX: usize = 3 << 10;
const SERVERS_MAX: usize = 10;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "find_tools",
        title: "Find tools for a plan",
        description: "Search the tools that plans can call: name, what it does, safety (once = never repeat blindly), \
                      required parameters. With `name`: that tool with its full schemas.",
        behavior: ToolBehavior::Reads,
        toolsets: &[McpToolset::Default],
    };
    McpToolDefinition::new::<FindToolsArguments, FindToolsResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindToolsArguments {
    /// Words for what it should do.
    query: Option<String>,
    server: Option<String>,
    /// server.tool
    name: Option<String>,
    #[schemars(range(max = 20))]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FindToolsResult {
    summary: String,
    next: String,
    #[schemars(schema_with = "rows")]
    tools: Vec<Value>,
    // How many matching tools are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    more: Option<usize>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "object")]
    servers_not_reached: Map<String, Value>,
}

async fn run(request: ToolRequest, input: FindToolsArguments) -> Result<ToolAnswer, AppError> {
    let (catalog, is_whole) = catalog(&request, &input).await?;
    let mut absent: Map<String, Value> = catalog
        .absent
        .iter()
        .take(SERVERS_MAX)
        .map(|(server, failure)| (server.clone(), json!(cut(&failure.to_string(), DESCRIPTION_CHARS_MAX))))
        .collect();
    if !is_whole {
        let why = format!("did not list its tools within {} s; try again later", SERVERS_WAIT.as_secs());
        absent.insert("others".to_owned(), json!(why));
    }
    match &input.name {
        Some(name) => one(&catalog, absent, name),
        None => search(&request.app, &catalog, absent, &input),
    }
}

/// The catalog; false when some servers did not answer in time and only cached tools are in it.
async fn catalog(request: &ToolRequest, input: &FindToolsArguments) -> Result<(CatalogSnapshot, bool), AppError> {
    let server = input.server.as_deref().or_else(|| Some(input.name.as_deref()?.split_once('.')?.0));
    let servers = match server {
        Some(server) => ServerSelection::Named([server.to_owned()].into()),
        None => ServerSelection::All,
    };
    // A server that is starting continues to start when the wait is over.
    let (app, caller) = (Arc::clone(&request.app), request.principal.clone());
    let asking = tokio::spawn(async move { app.catalog(&caller, servers).await });
    match tokio::time::timeout(SERVERS_WAIT, asking).await {
        Ok(Ok(catalog)) => Ok((catalog?, true)),
        Ok(Err(_)) | Err(_) => {
            let known = request.app.search_tools(input.query.as_deref().unwrap_or_default(), TOOLS_MAX);
            let servers = known.iter().filter_map(|name| name.as_str().split_once('.'));
            let servers = ServerSelection::Named(servers.map(|(server, _)| server.to_owned()).collect());
            Ok((request.app.catalog(&request.principal, servers).await?, false))
        }
    }
}

fn one(catalog: &CatalogSnapshot, absent: Map<String, Value>, name: &str) -> Result<ToolAnswer, AppError> {
    let all = &catalog.tools.tools;
    let Some(tool) = all.get(name) else {
        let error = AppError::missing("tool", name);
        let meant = guess(name, all.keys().map(ToolName::as_str));
        return Err(match (meant, absent.iter().next()) {
            (Some(meant), _) => error.hint(format!("did you mean {}?", meant.word())),
            (None, Some((server, why))) => error.hint(format!("the server {server} is unreachable: {why}")),
            (None, None) => error.hint("find_tools with `query` or `server` lists tools"),
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
    if tool.sends_key {
        row["sends_key"] = json!(true);
    }
    ToolAnswer::done(&FindToolsResult {
        summary: format!("{name} is {}", tool.safety.as_str()),
        next: "use it in a step of save_plan".to_owned(),
        tools: vec![row],
        more: None,
        servers_not_reached: absent,
    })
}

fn search(
    app: &App,
    catalog: &CatalogSnapshot,
    absent: Map<String, Value>,
    input: &FindToolsArguments,
) -> Result<ToolAnswer, AppError> {
    let all = &catalog.tools.tools;
    let fits = |tool: &Arc<tool::Tool>| {
        let server = tool.name.as_str().split_once('.').map(|(server, _)| server);
        input.server.is_none() || input.server.as_deref() == server
    };
    let found: Vec<&Arc<tool::Tool>> = match input.query.as_deref().filter(|query| !query.trim().is_empty()) {
        Some(query) => {
            let names = app.search_tools(query, all.len().max(TOOLS_MAX));
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
    ToolAnswer::done(&FindToolsResult {
        summary: format!("{} of {} matching tools", rows.len(), found.len()),
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
    let required: Map<String, Value> = names.into_iter().take(12).map(|name| (cut(name, 60), kind(name))).collect();
    json!({
        "name": tool.name,
        "description": cut(&tool.description, DESCRIPTION_CHARS_MAX),
        "safety": tool.safety,
        "required": required,
        "optional": optional,
    })
}
