//! From what the operator wrote to a registry that can be asked.

use crate::child::{Children, Launcher, Roster};
use crate::command::{CommandServer, Surroundings};
use crate::config::Config;
use crate::guard::SystemResolver;
use crate::http::HttpServer;
use crate::mcp::{McpServer, process};
use crate::registry::{Clock, Entrant, Registry};
use crate::secret::Vault;
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
    pub clock: Clock,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Everything in the settings that cannot be, each with its place.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Error(pub Vec<String>);

/// Builds the registry. Children that an earlier process left behind are ended first: what they were doing must not go
/// on beside what is done now. Must be called within a runtime.
pub fn assemble(config: &Config, world: World) -> Result<Registry, Error> {
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
    for (name, server) in config.servers.iter().filter(|(_, server)| !server.disabled) {
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
    let surroundings = Surroundings {
        children: Arc::new(Children::new(world.launcher, roster)),
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
    if !problems.is_empty() {
        return Err(Error(problems));
    }
    Registry::new(entrants, &config.limits, vault, world.clock)
        .map_err(|error| Error(vec![error.to_string()]))
}

impl process::Roster for Roster {
    fn born(&self, pid: u32) -> io::Result<()> {
        Roster::born(self, pid)
    }

    fn gone(&self, pid: u32) {
        Roster::gone(self, pid);
    }
}
