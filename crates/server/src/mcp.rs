//! Rutter as an MCP server: tools, prompts, resources, in both eras of the protocol.
//!
//! The table of tools is [`tools::all`]; each tool has a file of its own. [`visit`] is what a tool knows of the call it
//! answers, [`ask`] puts questions to the person at the client, [`tickets`] are for calls that go on, [`guard`] keeps a
//! panic from leaving anybody without an answer. [`resources`] are what can be read at an [`address`]; [`feed`] tells
//! those who [`subscribe`].
#![allow(
    deprecated,
    reason = "clients of the older era subscribe and ask for lines of log as they always did"
)]

mod address;
pub(crate) mod ask;
mod complete;
mod connection;
mod feed;
pub mod guard;
pub(crate) mod message;
pub mod pipes;
mod prompts;
mod resources;
pub mod schema;
mod subscribe;
#[cfg(test)]
mod tests;
mod texts;
mod tickets;
mod tool;
pub(crate) mod tools;
mod visit;
mod wait;

use crate::desk::Desk;
use crate::fault::Fault;
use crate::guest::{Guest, Role, Toolset};
use crate::mcp::guard::{guarded, unpanicked};
use connection::Connection;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CompleteRequestParams, CompleteResult, ContentBlock, ErrorCode, Extensions, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool as Offer, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use rmcp::{ErrorData, ServerHandler};
use rutter_core::id::ExecutionId;
use serde_json::Value;
use std::sync::Arc;
use tool::{Answer, Tool};
use visit::Visit;

/// Clients may keep lists of tools for so long: they change only with a new version.
const LIST_TTL_MS: u64 = 300_000;

const INSTRUCTIONS: &str = "\
Rutter carries out plans of tool calls and keeps a journal of what happened. Use it when several calls belong together, \
when something must not happen twice, or when it may have to be undone. Typical order: find_tools, save_plan (dry_run \
first shows mistakes), execute_plan, status. When an answer says `next`, do that. Never repeat a call Rutter says is in \
doubt. You cannot approve calls or settle doubt; people do. Read rutter://guide for the rest.";

/// One connection, or one request of those that have none.
#[derive(Debug)]
pub struct Surface {
    desk: Arc<Desk>,
    /// `None` over HTTP, where each request says who it is from.
    guest: Option<Guest>,
    tools: &'static [Tool],
    connection: Connection,
}

/// A clone is for another connection: what the first one watches is its own.
impl Clone for Surface {
    fn clone(&self) -> Surface {
        let (desk, guest, tools) = (Arc::clone(&self.desk), self.guest.clone(), self.tools);
        Surface { desk, guest, tools, connection: Connection::default() }
    }
}

impl Surface {
    /// For one guest, who stays.
    pub fn of(desk: Arc<Desk>, guest: Guest) -> Surface {
        Surface { guest: Some(guest), ..Surface::at_the_door(desk) }
    }

    /// For guests that the door lets in one request at a time.
    pub fn at_the_door(desk: Arc<Desk>) -> Surface {
        Surface { desk, guest: None, tools: tools::all(), connection: Connection::default() }
    }

    fn guest(&self, extensions: &Extensions) -> Result<Guest, ErrorData> {
        if let Some(guest) = &self.guest {
            return Ok(guest.clone());
        }
        let parts = extensions.get::<axum::http::request::Parts>();
        let guest = parts.and_then(|parts| parts.extensions.get::<Guest>());
        guest.cloned().ok_or_else(|| ErrorData::invalid_request("nobody let this request in", None))
    }

    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let guest = self.guest(&context.extensions)?;
        let Some(tool) = self.offered(&guest).find(|tool| tool.name == request.name) else {
            let message =
                format!("there is no tool {:?} here; tools/list says which there are", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let wants_lines = context.meta.log_level().is_some_and(is_told_info);
        let peer = context.peer.clone();
        let visit = Visit::new(Arc::clone(&self.desk), guest, tool.name, &request, context);
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let answer = (tool.run)(visit, arguments).await;
        if let Ok(Answer::Done(value)) = &answer
            && let Some(execution) = value["execution_id"].as_str()
        {
            self.connection.knows(execution);
            if wants_lines && value["status"] == "waiting" {
                let summary = value["summary"].as_str().unwrap_or_default();
                // One that went away misses it.
                let line = feed::needs_somebody(&ExecutionId::new(execution), summary);
                let _ = peer.notify_logging_message(line).await;
            }
        }
        Ok(match answer {
            Ok(Answer::Done(value)) => told(value).into(),
            Ok(Answer::Ask(required)) => required.into(),
            Ok(Answer::Ticket(ticket)) => (*ticket).into(),
            Err(fault) => CallToolResult::error(vec![ContentBlock::text(fault.json().to_string())]).into(),
        })
    }

    fn offered(&self, guest: &Guest) -> impl Iterator<Item = &'static Tool> {
        let (toolsets, may) = (guest.toolsets.clone(), guest.role == Role::Operator || guest.name == "local");
        self.tools.iter().filter(move |tool| {
            let is_admin = tool.toolsets.iter().all(|set| *set == Toolset::Admin);
            tool.toolsets.iter().any(|set| toolsets.contains(set)) && (!is_admin || may)
        })
    }

    /// A visit that comes with a ticket, which only `execute_plan` gives.
    fn returning(&self, context: RequestContext<RoleServer>) -> Result<Visit, ErrorData> {
        let guest = self.guest(&context.extensions)?;
        let request = CallToolRequestParams::new("execute_plan");
        Ok(Visit::new(Arc::clone(&self.desk), guest, "execute_plan", &request, context))
    }
}

impl ServerHandler for Surface {
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
        let guest = self.guest(&context.extensions)?;
        let tools: Vec<Offer> = self.offered(&guest).map(Tool::offer).collect();
        let list = ListToolsResult { tools, ..Default::default() };
        Ok(list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        guarded(&self.desk.places, self.answer(request, context)).await
    }

    fn get_tool(&self, name: &str) -> Option<Offer> {
        self.tools.iter().find(|tool| tool.name == name).map(Tool::offer)
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
        let guest = self.guest(&context.extensions)?;
        let prompt = guarded(&self.desk.places, prompts::get(&self.desk, &guest, request)).await?;
        Ok(prompt.into())
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let guest = self.guest(&context.extensions)?;
        let cursor = page.and_then(|page| page.cursor);
        guarded(&self.desk.places, resources::list(&self.desk, &guest, cursor.as_deref())).await
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
        let guest = self.guest(&context.extensions)?;
        let resource = guarded(&self.desk.places, resources::read(&self.desk, &guest, &request.uri)).await?;
        Ok(resource.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let guest = self.guest(&context.extensions)?;
        let complete = async { complete::complete(&self.desk, &guest, &request).await.map_err(error_of) };
        Ok(CompleteResult::new(guarded(&self.desk.places, complete).await?))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let guest = self.guest(&context.extensions)?;
        self.connection.wants_lines(is_told_info(request.level));
        self.connection.begin(&self.desk, &guest.tenant, &context.peer);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        if let Ok(guest) = self.guest(&context.extensions) {
            self.connection.begin(&self.desk, &guest.tenant, &context.peer);
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let guest = self.guest(&context.extensions)?;
        self.connection.begin(&self.desk, &guest.tenant, &context.peer);
        let subscribe = subscribe::subscribe(&self.desk, &guest, &self.connection, &request.uri);
        guarded(&self.desk.places, subscribe).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.connection.leave(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(subscribe::accepted(&self.connection, requested))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let guest = self.guest(&context.request_context().extensions)?;
        let Ok(_place) = self.desk.listeners.try_acquire() else {
            let message = "server.busy: too many subscriptions at once; try again";
            return Err(ErrorData::internal_error(message, None));
        };
        unpanicked(subscribe::listen(&self.desk, &guest, &self.connection, &context)).await
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let visit = self.returning(context)?;
        let look = async { tickets::look(&visit, &request.task_id).await.map_err(error_of) };
        Ok(GetTaskResult::new(guarded(&self.desk.places, look).await?))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let visit = self.returning(context)?;
        let (id, replies) = (&request.task_id, &request.input_responses);
        let update = async { tickets::update(&visit, id, replies).await.map_err(error_of) };
        guarded(&self.desk.places, update).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let visit = self.returning(context)?;
        let cancel = async { tickets::cancel(&visit, &request.task_id).await.map_err(error_of) };
        guarded(&self.desk.places, cancel).await
    }
}

/// The same twice, since some clients read only the one and some only the other.
fn told(value: Value) -> CallToolResult {
    CallToolResult::structured(value)
}

/// A fault where the protocol has errors: what was asked wrongly, or what we could not do.
fn error_of(fault: Fault) -> ErrorData {
    let area = fault.code.split('.').next().unwrap_or_default();
    let is_wrong = matches!(area, "execution" | "replan")
        || matches!(
            fault.code.as_ref(),
            "store.not_found" | "store.invalid" | "store.limit" | "server.arguments"
        );
    let code = if is_wrong { ErrorCode::INVALID_PARAMS } else { ErrorCode::INTERNAL_ERROR };
    ErrorData::new(code, format!("{}: {}", fault.code, fault.message), Some(fault.json()))
}

/// Whether whoever asks for lines from this level on is told those of level info, the only ones there are.
fn is_told_info(level: LoggingLevel) -> bool {
    matches!(level, LoggingLevel::Debug | LoggingLevel::Info)
}
