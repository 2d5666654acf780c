//! Tools and the servers they come from: what there is, how each stands, trying one out.

use crate::api::call::Call;
use crate::api::execution::{ToldExecution, word};
use crate::api::executions::settled;
use crate::api::reply::{List, Reply};
use crate::api::route::{About, Keyed, Nothing, Route};
use crate::auth::Scope;
use crate::deed::call::{NewCall, begin};
use crate::fault::Fault;
use crate::limits::{PAGE_DEFAULT, PAGE_MAX, WAIT_MAX};
use rutter_core::id::ToolName;
use rutter_core::plan::wording::guess;
use rutter_core::port::query::{Cursor, Listing};
use rutter_core::port::tools::{Catalog, Servers, Tools};
use rutter_core::time::Millis;
use rutter_core::tool::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long servers that were never asked may take; those that take longer are there the next time.
const SERVERS_WAIT: Duration = Duration::from_secs(10);

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(About::get("/tools", "listTools", "Tools that plans can call, by name"), list),
        Route::new(About::get("/tools/{name}", "getTool", "A tool with its schemas"), show),
        Route::with_body(
            About::post("/tools/{name}/call", "callTool", "Call one tool, journaled as a plan of one step")
                .scope(Scope::Admin)
                .success(&[201])
                .refuses(&[409, 422])
                .keyed(Keyed::Journal),
            try_out,
        ),
        Route::new(About::get("/servers", "listServers", "How every server stands").tag("tools"), servers),
        Route::with_body(
            About::post("/servers/{name}/reset", "resetServer", "Give a server another chance at once")
                .scope(Scope::Admin)
                .tag("tools"),
            reset,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolsQuery {
    /// Words for what it should do, the best first.
    text: Option<String>,
    server: Option<String>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ToolRow {
    name: String,
    description: String,
    safety: String,
    safety_source: String,
    definition: String,
}

impl ToolRow {
    fn of(tool: &Tool) -> ToolRow {
        ToolRow {
            name: tool.name.to_string(),
            description: tool.description.clone(),
            safety: tool.safety.as_str().to_owned(),
            safety_source: word(&tool.safety_source),
            definition: tool.definition.to_string(),
        }
    }
}

async fn list(call: Call, query: ToolsQuery) -> Result<Reply<List<ToolRow>>, Fault> {
    let wrong = |message: String| Fault::new("server.arguments", message);
    let limit = match query.limit.unwrap_or(PAGE_DEFAULT) {
        limit @ 1..=PAGE_MAX => limit as usize,
        limit => return Err(wrong(format!("limit is 1 to {PAGE_MAX}, this is {limit}"))),
    };
    let first = match query.cursor.as_deref().map(str::parse::<usize>) {
        None => 0,
        Some(Ok(first)) => first,
        Some(Err(_)) => return Err(wrong("cursor is the one an earlier answer had".to_owned())),
    };
    let wanted = query.server.clone().map_or(Servers::All, |server| Servers::Named([server].into()));
    let tools = &call.desk().tools;
    let all = catalog(tools, wanted).await.tools.tools;
    let fits = |tool: &Arc<Tool>| {
        let server = tool.name.as_str().split_once('.').map(|(server, _)| server);
        query.server.is_none() || query.server.as_deref() == server
    };
    let found: Vec<Arc<Tool>> = match query.text.as_deref().filter(|text| !text.trim().is_empty()) {
        Some(text) => {
            let names = tools.search(text, all.len());
            names.iter().filter_map(|name| all.get(name)).filter(|tool| fits(tool)).cloned().collect()
        }
        None => all.values().filter(|tool| fits(tool)).cloned().collect(),
    };
    let items: Vec<ToolRow> = found.iter().skip(first).take(limit).map(|tool| ToolRow::of(tool)).collect();
    let end = first.saturating_add(items.len());
    let next = (end < found.len()).then(|| Cursor(end.to_string()));
    Ok(call.list(Listing { items, next }))
}

/// What servers offer; of those that take too long only what was known before.
async fn catalog(tools: &Arc<dyn Tools>, servers: Servers) -> Catalog {
    // A server that is being started goes on with it when nobody waits any more.
    let asking = Arc::clone(tools);
    let asking = tokio::spawn(async move { asking.catalog(servers).await });
    match tokio::time::timeout(SERVERS_WAIT, asking).await {
        Ok(Ok(catalog)) => catalog,
        Ok(Err(_)) | Err(_) => {
            let known = tools.report().into_iter().filter(|server| !server.tools.is_empty());
            tools.catalog(Servers::Named(known.map(|server| server.server).collect())).await
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tool")]
struct ToldTool {
    #[serde(flatten)]
    row: ToolRow,
    /// JSON Schema of the parameters.
    input: Value,
    /// JSON Schema of the result, where the tool declares one.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// The parameter in which it honours an idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_parameter: Option<String>,
}

async fn show(call: Call, _: Nothing) -> Result<Reply<ToldTool>, Fault> {
    let tool = find(&call).await?;
    Ok(Reply::ok(ToldTool {
        row: ToolRow::of(&tool),
        input: (*tool.input).clone(),
        output: tool.output.as_ref().map(|output| (**output).clone()),
        key_parameter: tool.key_parameter.clone(),
    }))
}

/// The tool the path names.
async fn find(call: &Call) -> Result<Arc<Tool>, Fault> {
    let name = call.part("name");
    let missing = || Fault::missing("tool", name).hint("GET /api/v1/tools lists what there is");
    let (server, _) = name.split_once('.').ok_or_else(missing)?;
    let catalog = catalog(&call.desk().tools, Servers::Named([server.to_owned()].into())).await;
    let all = &catalog.tools.tools;
    all.get(name).cloned().ok_or_else(|| match guess(name, all.keys().map(ToolName::as_str)) {
        Some(meant) => missing().hint(format!("did you mean {}?", meant.word())),
        None => match catalog.absent.first() {
            Some((server, why)) => missing().hint(format!("the server {server} was not reached: {why}")),
            None => missing(),
        },
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolCall {
    #[serde(default)]
    parameters: Map<String, Value>,
    /// Stands in the journal.
    reason: String,
}

async fn try_out(call: Call, new: ToolCall) -> Result<Reply<ToldExecution>, Fault> {
    let tool = find(&call).await?.name.to_string();
    let new = NewCall { tool, parameters: new.parameters, reason: new.reason };
    let identity = begin(&call.caller(), new, call.key.clone()).await?;
    let span = Millis(WAIT_MAX.as_millis().try_into().unwrap_or(u64::MAX));
    let told = settled(&call, &identity, span).await?;
    let location = format!("{}/executions/{}", crate::api::BASE, identity.execution);
    Ok(Reply::created(told, &location))
}

#[derive(Debug, Serialize, JsonSchema)]
struct ServersAnswer {
    /// How each stands: connector, breaker, tools with their figures, doubts. Nobody is asked anything.
    items: Vec<Map<String, Value>>,
}

async fn servers(call: Call, _: Nothing) -> Result<Reply<ServersAnswer>, Fault> {
    let reports = call.desk().tools.report();
    let items = reports.iter().filter_map(|report| json!(report).as_object().cloned()).collect();
    Ok(Reply::ok(ServersAnswer { items }))
}

#[derive(Debug, Serialize, JsonSchema)]
struct ResetAnswer {
    server: String,
    is_reset: bool,
}

async fn reset(call: Call, _: Nothing) -> Result<Reply<ResetAnswer>, Fault> {
    let server = call.part("name").to_owned();
    match call.desk().tools.reset(&server) {
        true => Ok(Reply::ok(ResetAnswer { server, is_reset: true })),
        false => Err(Fault::missing("server", &server).hint("GET /api/v1/servers lists what there is")),
    }
}
