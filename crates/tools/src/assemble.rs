//! From what the operator wrote to a registry that can be asked.

use crate::bell::Bells;
use crate::builtin::{Builtins, Setting};
use crate::child::{Children, Launcher, Roster};
use crate::command::{CommandServer, Surroundings};
use crate::config::mcp::Reach;
use crate::config::{Common, Config};
use crate::guard::SystemResolver;
use crate::http::HttpServer;
use crate::http::post::GuardedPost;
use crate::mcp::{McpServer, process};
use crate::registry::{Clock, Entrant, Registry};
use crate::secret::Vault;
use rutter_core::port::query::Query;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// What tools need of the world around them.
pub struct World {
    /// Where children are written down and commands have their directories.
    pub folder: PathBuf,
    /// How our own binary starts a program under limits.
    pub launcher: Launcher,
    pub environment: BTreeMap<String, String>,
    /// For the tools that read journals.
    pub query: Arc<dyn Query>,
    pub clock: Clock,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Everything that can be called, and the timers among it, which somebody must run.
#[derive(Clone)]
pub struct Tooling {
    pub registry: Arc<Registry>,
    pub builtins: Arc<Builtins>,
    /// What alerts may start.
    pub bells: Arc<Bells>,
}

impl std::fmt::Debug for Tooling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tooling").field("builtins", &self.builtins).finish_non_exhaustive()
    }
}

/// Everything in the settings that cannot be, each with its place.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Error(pub Vec<String>);

/// Builds the registry. Children that an earlier process left behind are ended first: what they were doing must not go
/// on beside what is done now. Must be called within a runtime.
pub fn assemble(config: &Config, world: World) -> Result<Tooling, Error> {
    let roster = Roster::open(&world.folder.join("children"));
    let (roster, survivors) =
        roster.map_err(|error| Error(vec![format!("the roster of children: {error}")]))?;
    if survivors > 0 {
        tracing::warn!("{survivors} processes of an earlier run were still there and were ended");
    }
    let roster = Arc::new(roster);
    let lookup = world.environment.clone();
    let vault =
        Arc::new(Vault::new(config.secrets.clone(), Arc::new(move |name: &str| lookup.get(name).cloned())));
    let mut problems = Vec::new();
    let mut entrants = Vec::new();

    let environment = world.environment.iter().map(|(name, value)| (name.into(), value.into()));
    let launcher = process::Launcher::new(environment, Arc::clone(&roster) as _, Arc::new(|command| command));
    let launcher = launcher.with_secrets(Arc::clone(&vault));
    for (name, server) in config.servers.iter().filter(|(_, server)| !server.disabled) {
        know_credentials(&vault, name, &server.reach);
        let connector = Arc::new(McpServer::new(name, server, launcher.clone()));
        entrants.push(Entrant { name: name.clone(), connector, common: server.common.clone() });
    }
    for (name, server) in &config.http {
        match HttpServer::new(name, server, Arc::new(SystemResolver), Arc::clone(&vault)) {
            Ok(made) => {
                let connector = Arc::new(made);
                entrants.push(Entrant { name: name.clone(), connector, common: server.common() });
            }
            Err(error) => problems.extend(error.problems),
        }
    }
    let children = Arc::new(Children::new(world.launcher, roster));
    let surroundings = Surroundings {
        children: Arc::clone(&children),
        folder: world.folder.join("commands"),
        environment: world.environment,
    };
    for (name, server) in &config.commands {
        match CommandServer::new(name, server, surroundings.clone()) {
            Ok(made) => {
                let connector = Arc::new(made);
                entrants.push(Entrant { name: name.clone(), connector, common: server.common() });
            }
            Err(error) => problems.push(error.to_string()),
        }
    }
    let bells = match Bells::new(&config.alerts, Arc::clone(&children), &world.folder.join("alerts")) {
        Ok(bells) => Arc::new(bells),
        Err(error) => return Err(Error(vec![error.to_string()])),
    };
    let setting = Setting {
        folder: world.folder.join("builtin"),
        channels: config.notify.clone(),
        post: Arc::new(GuardedPost::new(Arc::new(SystemResolver))),
        children,
        query: world.query,
        clock: Arc::clone(&world.clock),
    };
    let builtins = match Builtins::open(setting) {
        Ok(builtins) => Arc::new(builtins),
        Err(error) => return Err(Error(vec![format!("what the built-in tools keep: {error}")])),
    };
    for (name, connector) in builtins.servers() {
        // A list of servers from elsewhere is taken as it is, and `memory` is a name many have.
        if entrants.iter().any(|entrant| entrant.name == *name) {
            tracing::warn!("the server {name:?} of the settings stands in for the built-in one");
            continue;
        }
        // They are ours, so what they say of themselves is believed.
        let common = Common { trust: true, ..Common::default() };
        entrants.push(Entrant { name: (*name).to_owned(), connector: Arc::clone(connector), common });
    }
    if !problems.is_empty() {
        return Err(Error(problems));
    }
    let registry = Registry::new(entrants, &config.limits, vault, world.clock);
    let registry = Arc::new(registry.map_err(|error| Error(vec![error.to_string()]))?);
    Ok(Tooling { registry, builtins, bells })
}

/// Other programs' lists have credentials in plain text. What is called like one is kept out of records.
fn know_credentials(vault: &Vault, server: &str, reach: &Reach) {
    const TELLING: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSW", "AUTH", "CREDENTIAL"];
    let texts = match reach {
        Reach::Child(child) => &child.env,
        Reach::Http(http) => &http.headers,
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

impl process::Roster for Roster {
    fn born(&self, pid: u32) -> io::Result<()> {
        Roster::born(self, pid)
    }

    fn gone(&self, pid: u32) {
        Roster::gone(self, pid);
    }
}
