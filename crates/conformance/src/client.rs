//! Runs the suite's client scenarios with the connector that calls MCP servers for plans.

mod oauth;
mod person;

use anyhow::{Context, anyhow, bail};
use oauth::OAuthTokens;
use person::ScriptedPerson;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PartId, StepId, TenantId};
use rutter_core::journal::event::CallSide;
use rutter_core::port::tools::ToolCallId;
use rutter_core::time::Timestamp;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use rutter_tools::config::mcp::{McpHttpConfig, McpServerConfig, McpTransport};
use rutter_tools::connector::{Connector, ConnectorRequest, ServedTool};
use rutter_tools::mcp::McpServer;
use rutter_tools::mcp::process::{ChildTracker, McpChildLauncher};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::Url;

const CALL_MAX: Duration = Duration::from_secs(60);
/// A client that was given this many tokens and is still refused gives up.
const AUTHORIZATIONS_MAX: usize = 3;

#[derive(Clone, Debug)]
pub struct ClientScenario {
    pub name: String,
    pub url: Url,
    /// What the suite passes besides the URL, as an object.
    pub context: Value,
}

/// Lists the tools and calls every one of them, with a token if the server asks for one.
pub async fn play(scenario: &ClientScenario) -> anyhow::Result<()> {
    let mut keys = OAuthTokens::new(scenario)?;
    let mut token = None;
    for _ in 0..=AUTHORIZATIONS_MAX {
        let Err(trouble) = run_with_token(scenario, token.as_deref()).await else { return Ok(()) };
        if trouble.failure.category != FailureCategory::Unauthorized {
            bail!("{}: {}", trouble.method, trouble.failure.message);
        }
        let challenge = oauth::challenge(&scenario.url, trouble.method, token.as_deref()).await?;
        token = Some(keys.obtain(challenge).await.context("could not obtain a token")?);
    }
    Err(anyhow!("refused after {AUTHORIZATIONS_MAX} authorizations"))
}

/// Why a scenario failed.
struct ScenarioFailure {
    method: &'static str,
    failure: ToolFailure,
}

async fn run_with_token(scenario: &ClientScenario, token: Option<&str>) -> Result<(), ScenarioFailure> {
    let mut headers = BTreeMap::new();
    if let Some(token) = token {
        headers.insert("Authorization".to_owned(), format!("Bearer {token}"));
    }
    let reach = McpTransport::Http(McpHttpConfig { url: scenario.url.clone(), headers });
    let launcher = McpChildLauncher::new([], Arc::new(NoChildRegistry), Arc::new(|command| command));
    let server = McpServer::new("suite", &McpServerConfig::new(reach), launcher);
    let visited = use_all(scenario, &server).await;
    server.close().await;
    visited
}

async fn use_all(scenario: &ClientScenario, server: &McpServer) -> Result<(), ScenarioFailure> {
    let tools = server.list().await.map_err(|failure| ScenarioFailure { method: "tools/list", failure })?;
    // In this scenario the tool is only listed.
    if scenario.name == "json-schema-ref-no-deref" {
        return Ok(());
    }
    for tool in &tools {
        let parameters = scenario.arguments_for(&tool.name).unwrap_or_else(|| made_up(tool, &tools));
        match server.call(request(&tool.name, parameters)).await {
            CallOutcome::Done { .. } => {}
            CallOutcome::NotDone(failure) | CallOutcome::Maybe(failure) => {
                return Err(ScenarioFailure { method: "tools/call", failure });
            }
        }
    }
    Ok(())
}

impl ClientScenario {
    /// The arguments with which the suite wants a tool to be called.
    fn arguments_for(&self, tool: &str) -> Option<Value> {
        let calls = self.context["toolCalls"].as_array()?;
        calls.iter().find(|call| call["name"] == tool).map(|call| call["arguments"].clone())
    }
}

/// Arguments that fit the schema of a tool.
fn made_up(tool: &ServedTool, all: &[ServedTool]) -> Value {
    let none = Map::new();
    let schema = &tool.definition["inputSchema"];
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let arguments = properties.iter().map(|(name, property)| {
        let value = match property["type"].as_str() {
            // The schema of another tool must be returned as it was served.
            Some("object") => all[0].definition["inputSchema"].clone(),
            _ => person::fitting(property),
        };
        (name.clone(), value)
    });
    Value::Object(arguments.collect())
}

fn request(tool: &str, parameters: Value) -> ConnectorRequest {
    let identity = ExecutionIdentity { tenant: TenantId::new("default"), execution: ExecutionId::new("exec_1") };
    ConnectorRequest {
        id: ToolCallId { identity, part: PartId::whole(StepId::new("suite")), side: CallSide::Do, attempt: 1 },
        tool: tool.to_owned(),
        parameters: Arc::new(parameters),
        key: "suite".to_owned(),
        timeout: CALL_MAX,
        now: Timestamp(0),
        cancel: CancellationToken::new(),
        connection: None,
        declares_output: false,
        ticket: None,
        continuation: None,
        reporter: Arc::new(ScriptedPerson),
    }
}

/// No children are started here.
struct NoChildRegistry;

impl ChildTracker for NoChildRegistry {
    fn started(&self, _pid: u32) -> std::io::Result<()> {
        Ok(())
    }

    fn ended(&self, _pid: u32) {}
}

/// Parses what the suite passes besides the URL, if anything.
pub fn context(text: Option<&str>) -> anyhow::Result<Value> {
    text.map_or(Ok(json!({})), |text| serde_json::from_str(text).context("the context is not JSON"))
}
