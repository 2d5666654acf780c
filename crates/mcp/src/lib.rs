//! Rutter as an MCP server: tools, prompts and resources, for legacy and modern versions of the protocol.
//!
//! The table of tools is [`tools::all`]; each tool has its own file. [`tool_request`] is the context of a tool call,
//! [`ask`] asks the user of the client, [`tickets`] are MCP tasks for long calls, [`guard`] turns panics into errors.
//! [`resources`] can be read at an [`address`]; [`feed`] notifies clients that [`subscribe`].
#![allow(deprecated, reason = "legacy clients subscribe and set log levels with methods that are deprecated now")]

mod address;
pub(crate) mod ask;
mod complete;
mod connection;
mod execution_answer;
mod feed;
mod follow;
pub mod guard;
pub mod http;
pub mod lines;
pub(crate) mod message;
pub mod pipes;
mod prompts;
pub mod reference;
mod resources;
pub mod schema;
mod subscribe;
#[cfg(test)]
mod tests;
mod texts;
mod tickets;
mod tool;
mod tool_request;
pub(crate) mod tools;
mod wait;

use crate::guard::{error_of, guarded, unpanicked};
use connection::ClientConnection;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams,
    CompleteResult, ContentBlock, Extensions, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult,
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool as Offer, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use rutter_app::app::App;
use rutter_app::principal::{McpToolset, Principal};
use rutter_app::rights::{Operation, may};
use rutter_core::id::ExecutionId;
use serde_json::Value;
use std::sync::Arc;
use tool::{McpToolDefinition, ToolAnswer, ToolBehavior};
use tool_request::ToolRequest;

/// How long clients may cache lists of tools: they change only with a new version.
const LIST_TTL_MS: u64 = 300_000;

const INSTRUCTIONS: &str = "\
Rutter executes plans of tool calls and journals what happened. Use it when several calls belong together, \
when something must not happen twice, or when it may have to be undone. Typical order: find_tools, save_plan (dry_run \
first shows mistakes), execute_plan, status. When an answer says `next`, do that. Never repeat a call Rutter says is in \
doubt. You cannot approve calls or settle doubt; people do. Read rutter://guide for the rest.";

/// One connection, or one stateless request.
#[derive(Debug)]
pub struct McpSurface {
    app: Arc<App>,
    /// `None` over HTTP, where each request names its principal.
    principal: Option<Principal>,
    tools: &'static [McpToolDefinition],
    connection: ClientConnection,
}

/// A clone serves another connection, with its own subscriptions.
impl Clone for McpSurface {
    fn clone(&self) -> McpSurface {
        let (app, caller, tools) = (Arc::clone(&self.app), self.principal.clone(), self.tools);
        McpSurface { app, principal: caller, tools, connection: ClientConnection::default() }
    }
}

impl McpSurface {
    /// For one principal, over a connection.
    pub fn of(app: Arc<App>, caller: Principal) -> McpSurface {
        McpSurface { principal: Some(caller), ..McpSurface::behind_gate(app) }
    }

    /// For requests over HTTP, which the gate has authenticated.
    pub fn behind_gate(app: Arc<App>) -> McpSurface {
        McpSurface { app, principal: None, tools: tools::all(), connection: ClientConnection::default() }
    }

    fn principal(&self, extensions: &Extensions) -> Result<Principal, ErrorData> {
        if let Some(principal) = &self.principal {
            return Ok(principal.clone());
        }
        let parts = extensions.get::<axum::http::request::Parts>();
        let caller = parts.and_then(|parts| parts.extensions.get::<Principal>());
        caller.cloned().ok_or_else(|| ErrorData::invalid_request("the request is not authenticated", None))
    }

    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let principal = self.principal(&context.extensions)?;
        let Some(tool) = self.offered(&principal).find(|tool| tool.name == request.name) else {
            let message = format!("there is no tool {:?}; see tools/list", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let wants_lines = context.meta.log_level().is_some_and(receives_info);
        let peer = context.peer.clone();
        let tool_request = ToolRequest::new(Arc::clone(&self.app), principal, tool.name, &request, context);
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        // Whatever an agent asks about an execution or of it says that the agent is alive, also what is refused. A look
        // comes after the sign, so that it sees it.
        let about = arguments["execution_id"].as_str().map(|execution| tool_request.identity(execution));
        let (caller, looks) = (tool_request.principal(), matches!(tool.behavior, ToolBehavior::Reads));
        if let Some(identity) = about.as_ref().filter(|_| looks) {
            self.app.notice_agent(&caller, identity).await;
        }
        let answer = (tool.run)(tool_request, arguments).await;
        if let Some(identity) = about.as_ref().filter(|_| !looks) {
            self.app.notice_agent(&caller, identity).await;
        }
        if let Ok(ToolAnswer::Done(value)) = &answer
            && let Some(execution) = value["execution_id"].as_str()
        {
            self.connection.knows(execution);
            if wants_lines && value["status"] == "waiting" {
                let summary = value["summary"].as_str().unwrap_or_default();
                // Ignored if the client disconnected.
                let line = feed::attention_message(&ExecutionId::new(execution), summary);
                let _ = peer.notify_logging_message(line).await;
            }
        }
        Ok(match answer {
            Ok(ToolAnswer::Done(value)) => structured_result(value).into(),
            Ok(ToolAnswer::Ask(required)) => required.into(),
            Ok(ToolAnswer::Ticket(ticket)) => (*ticket).into(),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.json().to_string())]).into(),
        })
    }

    fn offered(&self, principal: &Principal) -> impl Iterator<Item = &'static McpToolDefinition> {
        let (toolsets, may) = (principal.toolsets.clone(), may(principal, Operation::UseAdminTools));
        self.tools.iter().filter(move |tool| {
            let is_admin = tool.toolsets.iter().all(|set| *set == McpToolset::Admin);
            tool.toolsets.iter().any(|set| toolsets.contains(set)) && (!is_admin || may)
        })
    }

    /// A request about a task, which only `execute_plan` creates.
    fn returning(&self, context: RequestContext<RoleServer>) -> Result<ToolRequest, ErrorData> {
        let principal = self.principal(&context.extensions)?;
        let request = CallToolRequestParams::new("execute_plan");
        Ok(ToolRequest::new(Arc::clone(&self.app), principal, "execute_plan", &request, context))
    }
}

impl ServerHandler for McpSurface {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("rutter", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let principal = self.principal(&context.extensions)?;
        let tools: Vec<Offer> = self.offered(&principal).map(McpToolDefinition::offer).collect();
        let list = ListToolsResult { tools, ..Default::default() };
        Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        guarded(&self.app.request_permits, self.answer(request, context)).await
    }

    fn get_tool(&self, name: &str) -> Option<Offer> {
        self.tools.iter().find(|tool| tool.name == name).map(McpToolDefinition::offer)
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(prompts::list())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let principal = self.principal(&context.extensions)?;
        let prompt = guarded(&self.app.request_permits, prompts::get(&self.app, &principal, request)).await?;
        Ok(prompt.into())
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let principal = self.principal(&context.extensions)?;
        let cursor = page.and_then(|page| page.cursor);
        guarded(&self.app.request_permits, resources::list(&self.app, &principal, cursor.as_deref())).await
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        // Read by the program, which is the agent that drives.
        let client = context.client_info().map(|client| client.name.to_string());
        let principal = self.principal(&context.extensions)?.through(client.as_deref());
        let resource = guarded(&self.app.request_permits, resources::read(&self.app, &principal, &request.uri)).await?;
        Ok(resource.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let principal = self.principal(&context.extensions)?;
        let complete = async { complete::complete(&self.app, &principal, &request).await.map_err(error_of) };
        Ok(CompleteResult::new(guarded(&self.app.request_permits, complete).await?))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let principal = self.principal(&context.extensions)?;
        self.connection.wants_lines(receives_info(request.level));
        self.connection.begin(&self.app, &principal.tenant, &context.peer);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Ok(principal) = self.principal(&context.extensions) {
            self.connection.begin(&self.app, &principal.tenant, &context.peer);
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let principal = self.principal(&context.extensions)?;
        self.connection.begin(&self.app, &principal.tenant, &context.peer);
        let subscribe = subscribe::subscribe(&self.app, &principal, &self.connection, &request.uri);
        guarded(&self.app.request_permits, subscribe).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.connection.unwatch(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(subscribe::accepted(&self.connection, requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let principal = self.principal(&context.request_context().extensions)?;
        let Ok(_place) = self.app.listener_permits.try_acquire() else {
            let message = "server.busy: too many subscriptions at once; try again";
            return Err(ErrorData::internal_error(message, None));
        };
        unpanicked(subscribe::listen(&self.app, &principal, &self.connection, &context)).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let tool_request = self.returning(context)?;
        let look = async { tickets::look(&tool_request, &request.task_id).await.map_err(error_of) };
        Ok(GetTaskResult::new(guarded(&self.app.request_permits, look).await?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let tool_request = self.returning(context)?;
        let (id, replies) = (&request.task_id, &request.input_responses);
        let update = async { tickets::update(&tool_request, id, replies).await.map_err(error_of) };
        guarded(&self.app.request_permits, update).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let tool_request = self.returning(context)?;
        let cancel = async { tickets::cancel(&tool_request, &request.task_id).await.map_err(error_of) };
        guarded(&self.app.request_permits, cancel).await
    }
}

/// As text and as structured content, since some clients read only one of them.
fn structured_result(value: Value) -> CallToolResult {
    CallToolResult::structured(value)
}

/// Whether a client that set this level gets messages of level info, the only ones sent.
fn receives_info(level: LoggingLevel) -> bool {
    matches!(level, LoggingLevel::Debug | LoggingLevel::Info)
}
