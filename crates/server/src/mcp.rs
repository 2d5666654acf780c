//! Rutter as an MCP server: tools, prompts, resources, in both eras of the protocol.
//!
//! The table of tools is [`tools::all`]; each tool has a file of its own. [`visit`] is what a tool knows of the call it
//! answers, [`ask`] puts questions to the person at the client, [`guard`] keeps a panic from leaving anybody without
//! an answer.

pub(crate) mod ask;
pub mod guard;
pub(crate) mod message;
pub mod pipes;
pub mod schema;
mod tool;
pub(crate) mod tools;
mod visit;
mod wait;

use crate::desk::Desk;
use crate::guest::{Guest, Role, Toolset};
use crate::mcp::guard::guarded;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool as Offer,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
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
#[derive(Clone, Debug)]
pub struct Surface {
    desk: Arc<Desk>,
    /// `None` over HTTP, where each request says who it is from.
    guest: Option<Guest>,
}

impl Surface {
    /// For one guest, who stays.
    pub fn of(desk: Arc<Desk>, guest: Guest) -> Surface {
        Surface { desk, guest: Some(guest) }
    }

    /// For guests that the door lets in one request at a time.
    pub fn at_the_door(desk: Arc<Desk>) -> Surface {
        Surface { desk, guest: None }
    }

    fn guest(&self, context: &RequestContext<RoleServer>) -> Result<Guest, ErrorData> {
        if let Some(guest) = &self.guest {
            return Ok(guest.clone());
        }
        let parts = context.extensions.get::<axum::http::request::Parts>();
        let guest = parts.and_then(|parts| parts.extensions.get::<Guest>());
        guest.cloned().ok_or_else(|| ErrorData::invalid_request("nobody let this request in", None))
    }

    async fn answer(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let guest = self.guest(&context)?;
        let Some(tool) = Surface::offered(&guest).find(|tool| tool.name == request.name) else {
            let message =
                format!("there is no tool {:?} here; tools/list says which there are", request.name);
            return Err(ErrorData::invalid_params(message, None));
        };
        let visit = Visit::new(Arc::clone(&self.desk), guest, tool.name, &request, context);
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        Ok(match (tool.run)(visit, arguments).await {
            Ok(Answer::Done(value)) => told(value).into(),
            Ok(Answer::Ask(required)) => required.into(),
            Err(fault) => CallToolResult::error(vec![ContentBlock::text(fault.json().to_string())]).into(),
        })
    }

    fn offered(guest: &Guest) -> impl Iterator<Item = &'static Tool> {
        tools::all().iter().filter(move |tool| {
            let is_admin = tool.toolsets.iter().all(|set| *set == Toolset::Admin);
            tool.toolsets.iter().any(|set| guest.toolsets.contains(set))
                && (!is_admin || guest.role == Role::Operator || guest.name == "local")
        })
    }
}

impl ServerHandler for Surface {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("rutter", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let guest = self.guest(&context)?;
        let tools: Vec<Offer> = Surface::offered(&guest).map(Tool::offer).collect();
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
        tools::all().iter().find(|tool| tool.name == name).map(Tool::offer)
    }
}

/// The same twice, since some clients read only the one and some only the other.
fn told(value: Value) -> CallToolResult {
    CallToolResult::structured(value)
}
