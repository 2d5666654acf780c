//! Plays the suite's scenarios for clients with the connector that calls MCP servers for plans.

mod oauth;
mod person;

use anyhow::{Context, anyhow, bail};
use oauth::Keys;
use person::Person;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PartId, StepId, TenantId};
use rutter_core::journal::event::Side;
use rutter_core::port::tools::CallId;
use rutter_core::time::Timestamp;
use rutter_core::tool::{Category, Failure, Outcome};
use rutter_tools::config::mcp::{Http, Reach, Server};
use rutter_tools::connector::{Connector, Request, Served};
use rutter_tools::mcp::McpServer;
use rutter_tools::mcp::process::{Launcher, Roster};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use url::Url;

const CALL_MAX: Duration = Duration::from_secs(60);
/// Whoever was given a token so often and is still refused will not get in.
const AUTHORIZATIONS_MAX: usize = 3;

#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub url: Url,
    /// What the suite tells beside the address, an object.
    pub context: Value,
}

/// Lists the tools and calls every one of them, with a token as soon as one is asked for.
pub async fn play(scenario: &Scenario) -> anyhow::Result<()> {
    let mut keys = Keys::new(scenario)?;
    let mut token = None;
    for _ in 0..=AUTHORIZATIONS_MAX {
        let Err(trouble) = visit(scenario, token.as_deref()).await else { return Ok(()) };
        if trouble.failure.category != Category::Unauthorized {
            bail!("{}: {}", trouble.method, trouble.failure.message);
        }
        let challenge = oauth::challenge(&scenario.url, trouble.method, token.as_deref()).await?;
        token = Some(keys.obtain(challenge).await.context("no token was to be had")?);
    }
    Err(anyhow!("refused after {AUTHORIZATIONS_MAX} authorizations"))
}

/// What did not succeed, and why.
struct Trouble {
    method: &'static str,
    failure: Failure,
}

async fn visit(scenario: &Scenario, token: Option<&str>) -> Result<(), Trouble> {
    let mut headers = BTreeMap::new();
    if let Some(token) = token {
        headers.insert("Authorization".to_owned(), format!("Bearer {token}"));
    }
    let reach = Reach::Http(Http { url: scenario.url.clone(), headers });
    let launcher = Launcher::new([], Arc::new(Nobody), Arc::new(|command| command));
    let server = McpServer::new("suite", &Server::new(reach), launcher);
    let visited = use_all(scenario, &server).await;
    server.close().await;
    visited
}

async fn use_all(scenario: &Scenario, server: &McpServer) -> Result<(), Trouble> {
    let tools = server.list().await.map_err(|failure| Trouble { method: "tools/list", failure })?;
    // There the tool is only to be looked at.
    if scenario.name == "json-schema-ref-no-deref" {
        return Ok(());
    }
    for tool in &tools {
        let parameters = scenario.told(&tool.name).unwrap_or_else(|| made_up(tool, &tools));
        match server.call(request(&tool.name, parameters)).await {
            Outcome::Done { .. } => {}
            Outcome::NotDone(failure) | Outcome::Maybe(failure) => {
                return Err(Trouble { method: "tools/call", failure });
            }
        }
    }
    Ok(())
}

impl Scenario {
    /// The arguments the suite wants a tool to be called with.
    fn told(&self, tool: &str) -> Option<Value> {
        let calls = self.context["toolCalls"].as_array()?;
        calls.iter().find(|call| call["name"] == tool).map(|call| call["arguments"].clone())
    }
}

/// Arguments that fit the schema of a tool.
fn made_up(tool: &Served, all: &[Served]) -> Value {
    let none = Map::new();
    let schema = &tool.definition["inputSchema"];
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let arguments = properties.iter().map(|(name, property)| {
        let value = match property["type"].as_str() {
            // The schema of another tool is to come back as it was served.
            Some("object") => all[0].definition["inputSchema"].clone(),
            _ => person::fitting(property),
        };
        (name.clone(), value)
    });
    Value::Object(arguments.collect())
}

fn request(tool: &str, parameters: Value) -> Request {
    let identity = Identity { tenant: TenantId::new("default"), execution: ExecutionId::new("exec_1") };
    Request {
        id: CallId { identity, part: PartId::whole(StepId::new("suite")), side: Side::Do, attempt: 1 },
        tool: tool.to_owned(),
        parameters: Arc::new(parameters),
        key: "suite".to_owned(),
        timeout: CALL_MAX,
        now: Timestamp(0),
        cancel: CancellationToken::new(),
        ticket: None,
        reporter: Arc::new(Person),
    }
}

/// No children are started here.
struct Nobody;

impl Roster for Nobody {
    fn born(&self, _pid: u32) -> std::io::Result<()> {
        Ok(())
    }

    fn gone(&self, _pid: u32) {}
}

/// What the suite says beside the address, if anything.
pub fn context(text: Option<&str>) -> anyhow::Result<Value> {
    text.map_or(Ok(json!({})), |text| serde_json::from_str(text).context("the context is not JSON"))
}
