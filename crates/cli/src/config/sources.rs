//! The places settings come from, and which of them has the last word about each.

use super::Config;
use super::file::Settings;
use super::leaf::Leaf;
use super::outward::OTLP_ENDPOINT;
use crate::args::StoreArgs;
use crate::args::run::ToolArgs;
use crate::failure::Refusal;
use rutter_core::hash::Hash;
use rutter_tools::config::mcp::Server;
use rutter_tools::config::mcp::import::import;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(crate) const LOCAL: &str = "rutter.toml";
pub(crate) const DIR: &str = "RUTTER_DIR";
pub(crate) const LISTEN: &str = "RUTTER_LISTEN";
/// Variables that mean something to this program.
pub(crate) const VARIABLES: &[&str] = &[DIR, LISTEN, crate::log::VARIABLE];

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    File {
        path: PathBuf,
        line: usize,
    },
    /// Another program's list, named with --mcp-config.
    List(PathBuf),
    Default,
}

/// One setting that holds.
#[derive(Clone, Debug)]
pub(crate) struct Holds {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

#[derive(Debug)]
pub(crate) struct Sources {
    dir: Option<(PathBuf, Origin)>,
    listen: Option<SocketAddr>,
    /// Nearest first; one that is not there says nothing.
    files: Vec<Settings>,
    /// Other programs' lists, in the order they were named.
    lists: Vec<(PathBuf, BTreeMap<String, Server>, Hash)>,
    default: Option<PathBuf>,
    operator: (String, Origin),
}

impl Sources {
    pub(crate) fn read(store: &StoreArgs, tools: &ToolArgs) -> Result<Sources, Refusal> {
        let home = variable("HOME").map(PathBuf::from);
        let beneath_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let settings = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| beneath_home(".config"));
        let data = variable("XDG_DATA_HOME").map(PathBuf::from).or_else(|| beneath_home(".local/share"));
        let mut files = vec![match &store.config {
            Some(path) => Settings::load_named(path)?,
            None => Settings::load(Path::new(LOCAL))?,
        }];
        if let Some(directory) = settings {
            files.push(Settings::load(&directory.join("rutter/config.toml"))?);
        }
        let flag = store.dir.clone().map(|dir| (dir, Origin::Flag("--dir")));
        let dir = flag.or_else(|| Some((variable(DIR)?.into(), Origin::Variable(DIR))));
        let name =
            |name| Some((env::var(name).ok().filter(|value| !value.is_empty())?, Origin::Variable(name)));
        let operator = ["USER", "LOGNAME"].into_iter().find_map(name);
        let lists = tools.mcp_config.iter().map(|path| list(path)).collect::<Result<_, _>>()?;
        Ok(Sources {
            dir,
            listen: listen()?,
            files,
            lists,
            default: data.map(|directory| directory.join("rutter")),
            operator: operator.unwrap_or_else(|| ("operator".to_owned(), Origin::Default)),
        })
    }

    pub(crate) fn config(&self) -> Result<Config, Refusal> {
        let said = self.dir.as_ref().map(|(dir, _)| dir.clone());
        let mut config = Config::choose(said, &self.files, self.default.clone(), self.operator.0.clone())?;
        for (_, servers, _) in &self.lists {
            config.tools.servers.extend(servers.clone());
        }
        config.server.listen = self.listen.unwrap_or(config.server.listen);
        let endpoint = || variable(OTLP_ENDPOINT)?.into_string().ok();
        config.telemetry.otlp_endpoint = config.telemetry.otlp_endpoint.or_else(endpoint);
        config.tools_mark = self.mark();
        Ok(config)
    }

    /// Files that were there.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().filter(|file| file.is_there).map(|file| file.path.as_path())
    }

    /// Every setting that holds, with its value and where that comes from.
    pub(crate) fn holding(&self) -> Result<Vec<Holds>, Refusal> {
        let config = self.config()?;
        let written: Vec<(&Settings, &Leaf)> = self.written();
        let from_file = |key: &str| {
            let (file, leaf) = written.iter().find(|(_, leaf)| leaf.key() == key)?;
            Some(Origin::File { path: file.path.clone(), line: leaf.line })
        };
        let origin =
            |key: &str, said: Option<Origin>| said.or_else(|| from_file(key)).unwrap_or(Origin::Default);
        let kept = |age: Option<rutter_core::time::Millis>| {
            json!(age.map_or_else(|| "never".to_owned(), |age| age.to_string()))
        };
        let limits = &config.tools.limits;
        let listens = self.listen.map(|_| Origin::Variable(LISTEN));
        let mut all: Vec<Holds> = [
            ("dir", json!(config.directory), self.dir.as_ref().map(|(_, origin)| origin.clone())),
            ("retention.payloads", kept(config.retention.payloads), None),
            ("retention.executions", kept(config.retention.executions), None),
            ("limits.calls", json!(limits.calls), None),
            ("limits.calls_per_tenant", json!(limits.calls_per_tenant), None),
            ("limits.calls_per_server", json!(limits.calls_per_server), None),
            ("limits.breaker_failures", json!(limits.breaker_failures), None),
            ("limits.breaker_pause", json!(limits.breaker_pause.to_string()), None),
            ("server.listen", json!(config.server.listen.to_string()), listens),
            ("server.hosts", json!(config.server.hosts), None),
            ("server.ask_at_client", json!(config.server.ask_at_client), None),
        ]
        .into_iter()
        .map(|(key, value, said)| Holds { key: key.to_owned(), value, origin: origin(key, said) })
        .collect();
        let known: BTreeSet<String> = all.iter().map(|holds| holds.key.clone()).collect();
        all.extend(written.iter().filter(|(_, leaf)| !known.contains(&leaf.key())).map(|(file, leaf)| {
            Holds {
                key: leaf.key(),
                value: leaf.shown(),
                origin: Origin::File { path: file.path.clone(), line: leaf.line },
            }
        }));
        for (path, servers, _) in &self.lists {
            all.extend(servers.keys().map(|name| Holds {
                key: format!("servers.{name}"),
                value: json!("(from the list)"),
                origin: Origin::List(path.clone()),
            }));
        }
        let (name, from) = self.operator.clone();
        all.push(Holds { key: "operator".to_owned(), value: json!(name), origin: from });
        let log = env::var(crate::log::VARIABLE).ok().filter(|value| !value.is_empty());
        let from = log.as_ref().map_or(Origin::Default, |_| Origin::Variable(crate::log::VARIABLE));
        all.push(Holds {
            key: "log".to_owned(),
            value: json!(log.unwrap_or_else(|| "warn".into())),
            origin: from,
        });
        Ok(all)
    }

    /// What files say and no nearer file or list says otherwise.
    fn written(&self) -> Vec<(&Settings, &Leaf)> {
        let listed = |leaf: &Leaf| {
            let [table, name] = leaf.group() else { return false };
            table == "servers" && self.lists.iter().any(|(_, servers, _)| servers.contains_key(name))
        };
        let mut taken: BTreeSet<&[String]> = BTreeSet::new();
        let mut all = Vec::new();
        for file in &self.files {
            let holding = file.leaves.iter().filter(|leaf| !taken.contains(leaf.group()) && !listed(leaf));
            let holding: Vec<&Leaf> = holding.collect();
            taken.extend(holding.iter().map(|leaf| leaf.group()));
            all.extend(holding.into_iter().map(|leaf| (file, leaf)));
        }
        all
    }

    fn mark(&self) -> String {
        let written = self.written();
        let mut lines: Vec<String> = written
            .iter()
            .filter(|(_, leaf)| leaf.is_of_tools())
            .map(|(_, leaf)| format!("{}={}", leaf.key(), leaf.value))
            .chain(self.lists.iter().map(|(_, _, hash)| hash.to_string()))
            .collect();
        lines.sort();
        let fields: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        Hash::of_fields("rutter/tools-mark/v1", &fields).to_string()
    }
}

/// Variables that begin like ours and mean nothing.
pub(crate) fn unknown_variables() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    // The last one is given to commands that are called as tools.
    let is_known = |name: &str| VARIABLES.contains(&name) || name == "RUTTER_KEY";
    names.filter(|name| name.starts_with("RUTTER_") && !is_known(name)).collect()
}

/// What a variable holds.
pub(crate) fn held(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// A directory that a variable names.
pub(crate) fn place(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from)
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn listen() -> Result<Option<SocketAddr>, Refusal> {
    let Some(text) = variable(LISTEN) else { return Ok(None) };
    let address = text.to_str().and_then(|text| text.parse().ok());
    address.map(Some).ok_or_else(|| {
        let message = format!("{LISTEN} must be an address such as 127.0.0.1:7411, got {text:?}");
        Refusal::new("config.invalid", message)
    })
}

/// The MCP servers of another program's file.
fn list(path: &Path) -> Result<(PathBuf, BTreeMap<String, Server>, Hash), Refusal> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Refusal::new("file.unreadable", format!("cannot read {}: {error}", path.display()))
    })?;
    let (servers, notes) = import(&text, &|name| env::var(name).ok())
        .map_err(|error| Refusal::new("config.invalid", format!("{}: {error}", path.display())))?;
    notes.iter().for_each(|note| tracing::info!("{}: {note}", path.display()));
    Ok((path.to_owned(), servers, Hash::of_fields("rutter/list/v1", &[text.as_bytes()])))
}
