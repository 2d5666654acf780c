//! The tools, prompts and resources the suite asks servers for, answered through the product's guard.

#![allow(
    deprecated,
    reason = "logging, sampling and roots belong to the older era, which the suite tests as well"
)]

mod asking;
mod pages;
mod plain;
mod table;
mod tickets;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CancelTaskParams, GetPromptRequestParams,
    GetPromptResponse, GetTaskParams, GetTaskResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, RequestStateCodec, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::TaskManager;
use rmcp::{ErrorData, ServerHandler};
use rutter_server::limits::REQUESTS_MAX;
use rutter_server::mcp::guard::{guarded, unpanicked};
use std::sync::{Arc, Mutex, PoisonError};
use table::{Call, Fixture};
use tokio::sync::{Semaphore, broadcast};

#[derive(Clone)]
pub struct Fixtures(Arc<Stage>);

/// What all connections share.
struct Stage {
    tools: Vec<Fixture>,
    tickets: TaskManager,
    /// Seals what travels to a client and back.
    seal: RequestStateCodec,
    changes: broadcast::Sender<Change>,
    /// The least that is logged to clients of the older era.
    level: Mutex<LoggingLevel>,
    places: Arc<Semaphore>,
}

/// A list that is said to be another one now.
#[derive(Clone, Copy, Debug)]
enum Change {
    Tools,
    Prompts,
}

impl Fixtures {
    pub fn new() -> Fixtures {
        let mut tools = [plain::all(), asking::all(), tickets::all()].concat();
        tools.sort_by_key(|fixture| fixture.name);
        Fixtures(Arc::new(Stage {
            tools,
            tickets: TaskManager::new(),
            seal: RequestStateCodec::try_new([7; 32]).expect("a key of 32 bytes is long enough"),
            changes: broadcast::channel(64).0,
            level: Mutex::new(LoggingLevel::Debug),
            places: Arc::new(Semaphore::new(REQUESTS_MAX)),
        }))
    }

    fn fixture(&self, name: &str) -> Option<&Fixture> {
        self.0.tools.iter().find(|fixture| fixture.name == name)
    }
}

impl Default for Fixtures {
    fn default() -> Fixtures {
        Fixtures::new()
    }
}

impl std::fmt::Debug for Fixtures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fixtures").field("tools", &self.0.tools.len()).finish_non_exhaustive()
    }
}

type Context = RequestContext<RoleServer>;

impl ServerHandler for Fixtures {
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
        _context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.0.tools.iter().map(Fixture::offer).collect();
        let list = ListToolsResult { tools, ..Default::default() };
        Ok(list.with_ttl_ms(pages::TTL_MS).with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(fixture) = self.fixture(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None));
        };
        guarded(&self.0.places, (fixture.run)(Call { stage: Arc::clone(&self.0), request, context })).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.fixture(name).map(Fixture::offer)
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(pages::prompts())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        guarded(&self.0.places, async { pages::prompt(&request) }).await
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(pages::resources())
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(pages::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        guarded(&self.0.places, async { pages::read(&request.uri) }).await
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _context: Context) -> Result<(), ErrorData> {
        pages::read(&request.uri).map(drop)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: Context,
    ) -> Result<(), ErrorData> {
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
                // What the client did not ask for is refused by the sink, and rightly so.
                _ = match change {
                    Ok(Change::Tools) => context.sink().notify_tool_list_changed().await,
                    Ok(Change::Prompts) => context.sink().notify_prompt_list_changed().await,
                    Err(_) => return Ok(()),
                };
            }
        })
        .await
    }

    async fn set_level(&self, request: SetLevelRequestParams, _context: Context) -> Result<(), ErrorData> {
        *self.0.level.lock().unwrap_or_else(PoisonError::into_inner) = request.level;
        Ok(())
    }

    async fn get_task(&self, request: GetTaskParams, _context: Context) -> Result<GetTaskResult, ErrorData> {
        self.0.tickets.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _context: Context) -> Result<(), ErrorData> {
        self.0.tickets.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _context: Context) -> Result<(), ErrorData> {
        self.0.tickets.cancel_task(&request.task_id)
    }
}
