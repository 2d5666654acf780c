//! Builds the tool registry from the operator's configuration.

use crate::alert_commands::AlertCommandRunner;
use crate::builtin::{BuiltinContext, BuiltinServers};
use crate::child::{ChildRegistry, ChildSpawner, LauncherProgram};
use crate::command::{CommandEnvironment, CommandServer};
use crate::config::mcp::McpTransport;
use crate::config::{Config, ServerSettings};
use crate::guard::SystemResolver;
use crate::http::HttpServer;
use crate::http::webhook_poster::GuardedWebhookPoster;
use crate::mcp::{McpServer, process};
use crate::registry::{RegistryClock, ServerRegistration, ToolRegistry};
use crate::secret::SecretVault;
use rutter_core::port::query::StoreQuery;
use rutter_core::port::register::Register;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What tools need from the process around them.
pub struct ToolEnvironment {
    /// For the registry of children and the directories of commands.
    pub folder: PathBuf,
    /// How our own binary starts a program under limits.
    pub launcher: LauncherProgram,
    pub environment: BTreeMap<String, String>,
    /// For the tools that read journals.
    pub query: Arc<dyn StoreQuery>,
    /// Where the built-in tools store timers, memories and notifications.
    pub register: Arc<dyn Register>,
    pub clock: RegistryClock,
}

impl std::fmt::Debug for ToolEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolEnvironment").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Everything that can be called. The caller must run the timers of the built-in servers.
#[derive(Clone)]
pub struct AssembledTools {
    pub registry: Arc<ToolRegistry>,
    pub builtins: Arc<BuiltinServers>,
    /// The programs that alerts may start.
    pub alert_commands: Arc<AlertCommandRunner>,
}

impl std::fmt::Debug for AssembledTools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AssembledTools").field("builtins", &self.builtins).finish_non_exhaustive()
    }
}

/// Every invalid setting, each with its location.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Error(pub Vec<String>);

/// Builds the registry. Children that an earlier process left behind are killed first: they must not keep working
/// beside new ones. Must be called within a runtime.
pub async fn assemble(config: &Config, world: ToolEnvironment) -> Result<AssembledTools, Error> {
    let roster = ChildRegistry::open(&world.folder.join("children"));
    let (roster, survivors) = roster.map_err(|error| Error(vec![format!("the registry of children: {error}")]))?;
    if survivors > 0 {
        tracing::warn!("{survivors} processes of an earlier run were still running and were killed");
    }
    let roster = Arc::new(roster);
    let lookup = world.environment.clone();
    let vault =
        Arc::new(SecretVault::new(config.secrets.clone(), Arc::new(move |name: &str| lookup.get(name).cloned())));
    let register = Arc::clone(&world.register);
    let mut problems = setting_problems(config);
    let mut entrants = Vec::new();

    let environment = world.environment.iter().map(|(name, value)| (name.into(), value.into()));
    let launcher = process::McpChildLauncher::new(environment, Arc::clone(&roster) as _, Arc::new(|command| command));
    let launcher = launcher.with_secrets(Arc::clone(&vault));
    for (name, server) in config.servers.iter().filter(|(_, server)| !server.disabled) {
        know_credentials(&vault, name, &server.reach);
        let connector = Arc::new(McpServer::new(name, server, launcher.clone()));
        entrants.push(ServerRegistration { name: name.clone(), connector, common: server.common.clone() });
    }
    for (name, server) in &config.http {
        match HttpServer::new(name, server, Arc::new(SystemResolver), Arc::clone(&vault)) {
            Ok(made) => {
                let connector = Arc::new(made);
                entrants.push(ServerRegistration { name: name.clone(), connector, common: server.common() });
            }
            Err(error) => problems.extend(error.problems),
        }
    }
    let children = Arc::new(ChildSpawner::new(world.launcher, roster));
    let surroundings = CommandEnvironment {
        children: Arc::clone(&children),
        folder: world.folder.join("commands"),
        environment: world.environment,
    };
    for (name, server) in &config.commands {
        match CommandServer::new(name, server, surroundings.clone()) {
            Ok(made) => {
                let connector = Arc::new(made);
                entrants.push(ServerRegistration { name: name.clone(), connector, common: server.common() });
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    let alert_commands =
        match AlertCommandRunner::new(&config.alerts, Arc::clone(&children), &world.folder.join("alerts")) {
            Ok(bells) => Arc::new(bells),
            Err(error) => return Err(Error(vec![error.to_string()])),
        };
    let setting = BuiltinContext {
        folder: world.folder.join("builtin"),
        channels: config.notify.clone(),
        post: Arc::new(GuardedWebhookPoster::new(Arc::new(SystemResolver))),
        children,
        query: world.query,
        register: Arc::clone(&register),
        clock: Arc::clone(&world.clock),
    };
    let builtins = match BuiltinServers::open(setting).await {
        Ok(builtins) => Arc::new(builtins),
        Err(error) => return Err(Error(vec![format!("the data of the built-in tools: {error}")])),
    };
    for (name, connector) in builtins.servers() {
        // An imported list of servers is used as it is, and `memory` is a common name.
        if entrants.iter().any(|entrant| entrant.name == *name) {
            tracing::warn!("the configured server {name:?} replaces the built-in one");
            continue;
        }
        // They are part of this program, so their annotations are trusted.
        let common = ServerSettings { trust: true, ..ServerSettings::default() };
        entrants.push(ServerRegistration { name: (*name).to_owned(), connector: Arc::clone(connector), common });
    }
    if !problems.is_empty() {
        return Err(Error(problems));
    }
    let registry = ToolRegistry::new(entrants, &config.limits, vault, world.clock);
    let registry = Arc::new(registry.map_err(|error| Error(vec![error.to_string()]))?);
    let kept = registry.keep_definitions(register).await;
    kept.map_err(|error| Error(vec![format!("the definitions of tools: {error}")]))?;
    Ok(AssembledTools { registry, builtins, alert_commands })
}

fn setting_problems(config: &Config) -> Vec<String> {
    let mcp = config.servers.iter().map(|(name, server)| (format!("servers.{name}"), server.common.clone()));
    let http = config.http.iter().map(|(name, server)| (format!("http.{name}"), server.common()));
    let commands = config.commands.iter().map(|(name, server)| (format!("commands.{name}"), server.common()));
    let all = mcp.chain(http).chain(commands);
    let found =
        all.map(|(place, common)| common.problems().into_iter().map(move |problem| format!("{place}{problem}")));
    found.flatten().collect()
}

/// Imported lists may contain credentials in plain text. Values whose name suggests a credential are redacted from
/// records.
fn know_credentials(vault: &SecretVault, server: &str, reach: &McpTransport) {
    const TELLING: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSW", "AUTH", "CREDENTIAL"];
    let texts = match reach {
        McpTransport::Child(child) => &child.env,
        McpTransport::Http(http) => &http.headers,
    };
    for (name, text) in texts {
        let upper = name.to_ascii_uppercase();
        if !text.contains("${secret:") && TELLING.iter().any(|word| upper.contains(word)) {
            // `Bearer abc`: the scheme is no secret.
            let value = text.rsplit(' ').next().unwrap_or(text);
            vault.know(&format!("{server}_{name}"), value);
        }
    }
}

impl process::ChildTracker for ChildRegistry {
    fn started(&self, pid: u32) -> io::Result<()> {
        ChildRegistry::add(self, pid)
    }

    fn ended(&self, pid: u32) {
        ChildRegistry::remove(self, pid);
    }
}
