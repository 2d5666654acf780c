//! Tools and their servers: list them, read their health, call one.

use crate::executions::wait_and_read;
use crate::idempotent_replies::Idempotency;
use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::limits::{PAGE_DEFAULT, WAIT_MAX, page_limit};
use rutter_app::rights::Operation;
use rutter_app::tool_calls::{NewToolCall, begin};
use rutter_app::view::{ExecutionView, ServerView};
use rutter_core::id::ToolName;
use rutter_core::port::query::{ListCursor, ListPage};
use rutter_core::port::tools::{CatalogSnapshot, ServerSelection};
use rutter_core::text::spelled;
use rutter_core::time::Millis;
use rutter_core::tool::Tool;
use rutter_core::wording::guess;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for servers that have not listed their tools yet; slower ones appear in a later call.
const SERVERS_WAIT: Duration = Duration::from_secs(10);

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::new(
            RouteSpec::get("/tools", "listTools", "Tools that plans can call, by name").right(Operation::ListTools),
            list,
        ),
        ApiRoute::new(
            RouteSpec::get("/tools/{name}", "getTool", "A tool with its schemas").right(Operation::ListTools),
            show,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/tools/{name}/call", "callTool", "Call one tool, journaled as a plan of one step")
                .right(Operation::CallTool)
                .success(&[201])
                .refuses(&[409, 422])
                .idempotency(Idempotency::Journal),
            try_out,
        ),
        ApiRoute::new(RouteSpec::get("/servers", "listServers", "The health of every server").tag("tools"), servers),
        ApiRoute::with_body(
            RouteSpec::post("/servers/{name}/reset", "resetServer", "Close the circuit breaker of a server")
                .right(Operation::ResetBreaker)
                .tag("tools"),
            reset,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolsQuery {
    /// Words for what it should do; best matches first.
    text: Option<String>,
    server: Option<String>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ToolListItem {
    name: String,
    description: String,
    safety: String,
    safety_source: String,
    definition: String,
}

impl ToolListItem {
    fn of(tool: &Tool) -> ToolListItem {
        ToolListItem {
            name: tool.name.to_string(),
            description: tool.description.clone(),
            safety: tool.safety.as_str().to_owned(),
            safety_source: spelled(&tool.safety_source),
            definition: tool.definition.to_string(),
        }
    }
}

async fn list(call: ApiRequest, query: ToolsQuery) -> Result<ApiReply<ListReply<ToolListItem>>, AppError> {
    let wrong = |message: String| AppError::new("server.arguments", message);
    let limit = page_limit(query.limit, PAGE_DEFAULT)? as usize;
    let first = match query.cursor.as_deref().map(str::parse::<usize>) {
        None => 0,
        Some(Ok(first)) => first,
        Some(Err(_)) => {
            return Err(wrong("unknown cursor; expected one from an earlier response".to_owned()));
        }
    };
    let wanted = query.server.clone().map_or(ServerSelection::All, |server| ServerSelection::Named([server].into()));
    let all = catalog(&call, wanted).await?.tools.tools;
    let fits = |tool: &Arc<Tool>| {
        let server = tool.name.as_str().split_once('.').map(|(server, _)| server);
        query.server.is_none() || query.server.as_deref() == server
    };
    let found: Vec<Arc<Tool>> = match query.text.as_deref().filter(|text| !text.trim().is_empty()) {
        Some(text) => {
            let names = call.app().search_tools(text, all.len());
            names.iter().filter_map(|name| all.get(name)).filter(|tool| fits(tool)).cloned().collect()
        }
        None => all.values().filter(|tool| fits(tool)).cloned().collect(),
    };
    let items: Vec<ToolListItem> = found.iter().skip(first).take(limit).map(|tool| ToolListItem::of(tool)).collect();
    let end = first.saturating_add(items.len());
    let next = (end < found.len()).then(|| ListCursor(end.to_string()));
    Ok(call.list(ListPage { items, next }))
}

/// The catalog; of slow servers only cached tools.
async fn catalog(call: &ApiRequest, servers: ServerSelection) -> Result<CatalogSnapshot, AppError> {
    // A server that is starting continues to start when the wait is over.
    let (app, caller) = (Arc::clone(call.app()), call.principal.clone());
    let asking = tokio::spawn(async move { app.catalog(&caller, servers).await });
    match tokio::time::timeout(SERVERS_WAIT, asking).await {
        Ok(Ok(catalog)) => catalog,
        Ok(Err(_)) | Err(_) => {
            let known = call.app().servers().into_iter().filter(|server| !server.tools.is_empty());
            let known = ServerSelection::Named(known.map(|server| server.server).collect());
            call.app().catalog(&call.principal, known).await
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Tool")]
struct ToolJson {
    #[serde(flatten)]
    row: ToolListItem,
    /// JSON Schema of the parameters.
    input: Value,
    /// JSON Schema of the result, where the tool declares one.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// The parameter that takes an idempotency key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_parameter: Option<String>,
    /// Every call is sent with its idempotency key, beside the parameters.
    sends_key: bool,
}

async fn show(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ToolJson>, AppError> {
    let tool = find(&call).await?;
    Ok(ApiReply::ok(ToolJson {
        row: ToolListItem::of(&tool),
        input: (*tool.input).clone(),
        output: tool.output.as_ref().map(|output| (**output).clone()),
        key_parameter: tool.key_parameter.clone(),
        sends_key: tool.sends_key,
    }))
}

/// The tool in the path.
async fn find(call: &ApiRequest) -> Result<Arc<Tool>, AppError> {
    let name = call.part("name");
    let missing = || AppError::missing("tool", name).hint("GET /api/v1/tools lists tools");
    let (server, _) = name.split_once('.').ok_or_else(missing)?;
    let catalog = catalog(call, ServerSelection::Named([server.to_owned()].into())).await?;
    let all = &catalog.tools.tools;
    all.get(name).cloned().ok_or_else(|| match guess(name, all.keys().map(ToolName::as_str)) {
        Some(meant) => missing().hint(format!("did you mean {}?", meant.word())),
        None => match catalog.absent.first() {
            Some((server, why)) => missing().hint(format!("the server {server} is unreachable: {why}")),
            None => missing(),
        },
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallToolBody {
    #[serde(default)]
    parameters: Map<String, Value>,
    /// Recorded in the journal.
    #[schemars(required)]
    reason: Option<String>,
}

async fn try_out(call: ApiRequest, new: CallToolBody) -> Result<ApiReply<ExecutionView>, AppError> {
    let tool = find(&call).await?.name.to_string();
    let new = NewToolCall { tool, parameters: new.parameters, reason: new.reason };
    let identity = begin(call.app(), &call.principal, new, call.key.clone()).await?;
    let span = Millis(WAIT_MAX.as_millis().try_into().unwrap_or(u64::MAX));
    let execution_json = wait_and_read(&call, &identity, span).await?;
    let location = format!("{}/executions/{}", crate::route::BASE, identity.execution);
    Ok(ApiReply::created(execution_json, &location))
}

#[derive(Debug, Serialize, JsonSchema)]
struct ServersAnswer {
    /// State of each: connector, breaker, tools with their figures, doubts. Calls no server.
    items: Vec<ServerView>,
}

async fn servers(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ServersAnswer>, AppError> {
    let items = call.app().servers().iter().map(ServerView::of).collect();
    Ok(ApiReply::ok(ServersAnswer { items }))
}

#[derive(Debug, Serialize, JsonSchema)]
struct ResetAnswer {
    server: String,
    is_reset: bool,
}

async fn reset(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ResetAnswer>, AppError> {
    let server = call.part("name").to_owned();
    match call.app().reset_breaker(&call.principal, &server) {
        Ok(()) => Ok(ApiReply::ok(ResetAnswer { server, is_reset: true })),
        Err(error) if error.code == "store.not_found" => Err(error.hint("GET /api/v1/servers lists servers")),
        Err(error) => Err(error),
    }
}
