//! The tools, prompts and resources that the suite expects of servers, served through the product's guard.

#![allow(deprecated, reason = "logging, sampling and roots belong to the older era, which the suite tests as well")]

mod asking;
mod pages;
mod plain;
mod table;
mod tickets;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, GetPromptRequestParams, GetPromptResponse,
    GetTaskParams, GetTaskResult, Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, LoggingLevel, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
    RequestStateCodec, ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, ServerHandler};
use rutter_app::limits::REQUESTS_MAX;
use rutter_mcp::guard::{guarded, unpanicked};
use std::sync::{Arc, Mutex, PoisonError};
use table::{FixtureCall, FixtureTool};
use tokio::sync::{Semaphore, broadcast};

#[derive(Clone)]
pub struct ConformanceFixtures(Arc<FixtureState>);

/// State shared by all connections.
struct FixtureState {
    tools: Vec<FixtureTool>,
    tickets: TaskManager,
    /// Seals request state that a client returns.
    seal: RequestStateCodec,
    changes: broadcast::Sender<ListChange>,
    /// The minimum log level for clients of the older era.
    level: Mutex<LoggingLevel>,
    request_permits: Arc<Semaphore>,
}

/// A list that is announced as changed.
#[derive(Clone, Copy, Debug)]
enum ListChange {
    Tools,
    Prompts,
}

impl ConformanceFixtures {
    pub fn new() -> ConformanceFixtures {
        let mut tools = [plain::all(), asking::all(), tickets::all()].concat();
        tools.sort_by_key(|fixture| fixture.name);
        ConformanceFixtures(Arc::new(FixtureState {
            tools,
            tickets: TaskManager::new(),
            seal: RequestStateCodec::try_new([7; 32]).expect("a key of 32 bytes is long enough"),
            changes: broadcast::channel(64).0,
            level: Mutex::new(LoggingLevel::Debug),
            request_permits: Arc::new(Semaphore::new(REQUESTS_MAX)),
        }))
    }

    fn fixture(&self, name: &str) -> Option<&FixtureTool> {
        self.0.tools.iter().find(|fixture| fixture.name == name)
    }
}

impl Default for ConformanceFixtures {
    fn default() -> ConformanceFixtures {
        ConformanceFixtures::new()
    }
}

impl std::fmt::Debug for ConformanceFixtures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConformanceFixtures").field("tools", &self.0.tools.len()).finish_non_exhaustive()
    }
}

type ServerContext = RequestContext<RoleServer>;

impl ServerHandler for ConformanceFixtures {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("rutter-conformance", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: ServerContext,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.0.tools.iter().map(FixtureTool::offer).collect();
        let list = ListToolsResult { tools, ..Default::default() };
        Ok(list.with_ttl_ms(pages::TTL_MS).with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: ServerContext,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(fixture) = self.fixture(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
        };
        guarded(&self.0.request_permits, (fixture.run)(FixtureCall { state: Arc::clone(&self.0), request, context }))
            .await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.fixture(name).map(FixtureTool::offer)
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: ServerContext,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(pages::prompts())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: ServerContext,
    ) -> Result<GetPromptResponse, ErrorData> {
        guarded(&self.0.request_permits, async { pages::prompt(&request) }).await
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: ServerContext,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(pages::resources())
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: ServerContext,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(pages::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: ServerContext,
    ) -> Result<ReadResourceResponse, ErrorData> {
        guarded(&self.0.request_permits, async { pages::read(&request.uri) }).await
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _context: ServerContext) -> Result<(), ErrorData> {
        pages::read(&request.uri).map(drop)
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _context: ServerContext) -> Result<(), ErrorData> {
        pages::read(&request.uri).map(drop)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.0.changes.subscribe();
        unpanicked(async {
            loop {
                let change = tokio::select! {
                    change = changes.recv() => change,
                    () = context.cancelled() => return Ok(()),
                };
                // The sink refuses what the client did not subscribe to.
                _ = match change {
                    Ok(ListChange::Tools) => context.sink().notify_tool_list_changed().await,
                    Ok(ListChange::Prompts) => context.sink().notify_prompt_list_changed().await,
                    Err(_) => return Ok(()),
                };
            }
        })
        .await
    }

    async fn set_level(&self, request: SetLevelRequestParams, _context: ServerContext) -> Result<(), ErrorData> {
        *self.0.level.lock().unwrap_or_else(PoisonError::into_inner) = request.level;
        Ok(())
    }

    async fn get_task(&self, request: GetTaskParams, _context: ServerContext) -> Result<GetTaskResult, ErrorData> {
        self.0.tickets.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _context: ServerContext) -> Result<(), ErrorData> {
        self.0.tickets.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _context: ServerContext) -> Result<(), ErrorData> {
        self.0.tickets.cancel_task(&request.task_id)
    }
}
