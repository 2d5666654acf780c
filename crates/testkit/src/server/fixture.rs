//! A server with a database in a temporary directory, and its MCP clients.

use super::installation::options;
use super::mcp_client::{ClientEra, McpClient};
use rmcp::ServiceExt;
use rutter_app::app::App;
use rutter_app::command::{Command, CommandArguments};
use rutter_app::principal::{McpToolset, Principal};
use rutter_app::runtime::{Runtime, RuntimeOptions};
use rutter_app::verb::Verb;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_mcp::McpSurface;
use rutter_mcp::pipes::ServerPipeTransport;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::BufReader;

#[derive(Debug)]
pub struct ServerFixture {
    pub app: Arc<App>,
    runtime: Runtime,
    pub folder: TempDir,
}

impl ServerFixture {
    /// With the built-in tools only.
    pub async fn new() -> ServerFixture {
        ServerFixture::with("").await
    }

    /// With the tools of some lines of rutter.toml.
    pub async fn with(config: &str) -> ServerFixture {
        ServerFixture::open(tempfile::tempdir().unwrap(), config).await
    }

    /// Stops this server and starts again with the data on disk.
    pub async fn restarted(self) -> ServerFixture {
        self.restarted_with("").await
    }

    /// The same, with other tools.
    pub async fn restarted_with(self, config: &str) -> ServerFixture {
        ServerFixture::open(self.close().await, config).await
    }

    /// Closes everything; the database stays in its folder.
    pub async fn close(self) -> TempDir {
        let ServerFixture { app, runtime, folder } = self;
        runtime.close().await;
        // Connections release the database shortly after their clients are gone.
        for _ in 0..2_000 {
            if Arc::strong_count(&app) == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        folder
    }

    /// With the database of a folder.
    pub async fn open(folder: TempDir, config: &str) -> ServerFixture {
        let options = options(folder.path(), config);
        ServerFixture::open_with(folder, options).await
    }

    pub async fn open_with(folder: TempDir, options: RuntimeOptions) -> ServerFixture {
        let runtime = Runtime::prepare(options).await.unwrap();
        ServerFixture { app: Arc::clone(&runtime.app), runtime, folder }
    }

    /// Sends a command to an execution as the operator.
    pub async fn command(&self, execution: &str, verb: Verb, reason: &str) {
        self.command_with(execution, verb, CommandArguments::default(), reason).await;
    }

    /// The same with arguments.
    pub async fn command_with(&self, execution: &str, verb: Verb, arguments: CommandArguments, reason: &str) {
        let command = Command {
            principal: Principal::owner(TenantId::new("default"), "operator"),
            execution: ExecutionId::new(execution),
            verb,
            arguments,
            reason: Some(reason.to_owned()),
            request_key: None,
            if_match: None,
        };
        self.app.perform(command).await.unwrap();
    }

    /// An initialized client with the default toolset, which cannot ask its user anything.
    pub async fn client(&self, era: ClientEra) -> McpClient {
        self.client_with(era, &[McpToolset::Default], json!({})).await
    }

    pub async fn client_with(&self, era: ClientEra, toolsets: &[McpToolset], capabilities: Value) -> McpClient {
        let tenant = TenantId::new("default");
        let principal = Principal::local(tenant, "operator", toolsets.iter().copied().collect());
        self.client_of(era, principal, capabilities).await
    }

    pub async fn client_of(&self, era: ClientEra, principal: Principal, capabilities: Value) -> McpClient {
        let (near, far) = tokio::io::duplex(1 << 20);
        let surface = McpSurface::of(Arc::clone(&self.app), principal);
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(far);
            if let Ok(service) = surface.serve(ServerPipeTransport::new(BufReader::new(reader), writer)).await {
                let _ = service.waiting().await;
            }
        });
        let (reader, writer) = tokio::io::split(near);
        let reader = BufReader::new(reader);
        let mut client =
            McpClient { reader, writer, era, capabilities, number: 0, notices: Vec::new(), early: VecDeque::new() };
        if era == ClientEra::Legacy {
            let introduction = json!({ "protocolVersion": "2025-11-25", "capabilities": client.capabilities,
                "clientInfo": { "name": "tester", "version": "1" } });
            client.ask("initialize", introduction).await.unwrap();
            client.notify("notifications/initialized", json!({})).await;
        }
        client
    }
}
