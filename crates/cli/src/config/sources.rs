//! The sources of settings, and which of them wins for each.

use super::Config;
use super::file::FileSettings;
use super::outward::OTLP_ENDPOINT;
use super::setting::FileSetting;
use crate::args::DatabaseArgs;
use crate::args::run::ToolSourceArgs;
use crate::failure::CommandRefusal;
use rutter_core::hash::Hash;
use rutter_core::policy::OperatorPolicy;
use rutter_tools::config::mcp::McpServerConfig;
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
/// Variables that this program reads.
pub(crate) const VARIABLES: &[&str] = &[DIR, LISTEN, crate::log::VARIABLE];

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettingOrigin {
    Flag(&'static str),
    Variable(&'static str),
    File {
        path: PathBuf,
        line: usize,
    },
    /// Another program's server list, given with --mcp-config.
    List(PathBuf),
    Default,
}

/// A setting in effect.
#[derive(Clone, Debug)]
pub(crate) struct EffectiveSetting {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origin: SettingOrigin,
}

#[derive(Debug)]
pub(crate) struct ConfigSources {
    dir: Option<(PathBuf, SettingOrigin)>,
    listen: Option<SocketAddr>,
    /// Nearest first; missing files have no settings.
    files: Vec<FileSettings>,
    /// Other programs' server lists, in the order given.
    lists: Vec<(PathBuf, BTreeMap<String, McpServerConfig>, Hash)>,
    default: Option<PathBuf>,
    operator: (String, SettingOrigin),
}

impl ConfigSources {
    pub(crate) fn read(store: &DatabaseArgs, tools: &ToolSourceArgs) -> Result<ConfigSources, CommandRefusal> {
        let home = variable("HOME").map(PathBuf::from);
        let beneath_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let settings = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| beneath_home(".config"));
        let data = variable("XDG_DATA_HOME").map(PathBuf::from).or_else(|| beneath_home(".local/share"));
        let mut files = vec![match &store.config {
            Some(path) => FileSettings::load_named(path)?,
            None => FileSettings::load(Path::new(LOCAL))?,
        }];
        if let Some(directory) = settings {
            files.push(FileSettings::load(&directory.join("rutter/config.toml"))?);
        }
        let flag = store.dir.clone().map(|dir| (dir, SettingOrigin::Flag("--dir")));
        let dir = flag.or_else(|| Some((variable(DIR)?.into(), SettingOrigin::Variable(DIR))));
        let name = |name| Some((env::var(name).ok().filter(|value| !value.is_empty())?, SettingOrigin::Variable(name)));
        let operator = ["USER", "LOGNAME"].into_iter().find_map(name);
        let lists = tools.mcp_config.iter().map(|path| list(path)).collect::<Result<_, _>>()?;
        Ok(ConfigSources {
            dir,
            listen: listen()?,
            files,
            lists,
            default: data.map(|directory| directory.join("rutter")),
            operator: operator.unwrap_or_else(|| ("operator".to_owned(), SettingOrigin::Default)),
        })
    }

    pub(crate) fn config(&self) -> Result<Config, CommandRefusal> {
        self.config_in(self.dir.as_ref().map(|(dir, _)| dir.clone()))
    }

    /// The settings for what touches no data: a directory need not be configured.
    pub(crate) fn config_without_data(&self) -> Result<Config, CommandRefusal> {
        self.config_in(Some(PathBuf::new()))
    }

    fn config_in(&self, directory: Option<PathBuf>) -> Result<Config, CommandRefusal> {
        let mut config = Config::choose(directory, &self.files, self.default.clone(), self.operator.0.clone())?;
        for (_, servers, _) in &self.lists {
            config.tools.servers.extend(servers.clone());
        }
        config.server.listen = self.listen.unwrap_or(config.server.listen);
        let endpoint = || variable(OTLP_ENDPOINT)?.into_string().ok();
        config.telemetry.otlp_endpoint = config.telemetry.otlp_endpoint.or_else(endpoint);
        config.tools_mark = self.mark();
        config.templates = self.templates();
        Ok(config)
    }

    /// The rules of all files.
    pub(crate) fn policy(&self) -> Result<OperatorPolicy, CommandRefusal> {
        super::policy(&self.files)
    }

    /// The system's user name.
    pub(crate) fn operator(&self) -> &str {
        &self.operator.0
    }

    /// The directory of own templates, beside the nearest file of settings. Absolute: a server may change its directory.
    pub(crate) fn templates(&self) -> Option<PathBuf> {
        std::path::absolute(self.files().next()?.with_file_name("templates")).ok()
    }

    /// Files that exist.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().filter(|file| file.is_there).map(|file| file.path.as_path())
    }

    /// Every setting in effect, with its value and origin.
    pub(crate) fn effective_settings(&self) -> Result<Vec<EffectiveSetting>, CommandRefusal> {
        let config = self.config()?;
        let written: Vec<(&FileSettings, &FileSetting)> = self.written();
        let from_file = |key: &str| {
            let (file, leaf) = written.iter().find(|(_, leaf)| leaf.key() == key)?;
            Some(SettingOrigin::File { path: file.path.clone(), line: leaf.line })
        };
        let origin = |key: &str, setting_origin: Option<SettingOrigin>| {
            setting_origin.or_else(|| from_file(key)).unwrap_or(SettingOrigin::Default)
        };
        let stored = |age: Option<rutter_core::time::Millis>| {
            json!(age.map_or_else(|| "never".to_owned(), |age| age.to_string()))
        };
        let limits = &config.tools.limits;
        let listens = self.listen.map(|_| SettingOrigin::Variable(LISTEN));
        let mut all: Vec<EffectiveSetting> = [
            ("dir", json!(config.directory), self.dir.as_ref().map(|(_, origin)| origin.clone())),
            ("retention.payloads", stored(config.retention.payloads), None),
            ("retention.executions", stored(config.retention.executions), None),
            ("limits.calls", json!(limits.calls), None),
            ("limits.calls_per_tenant", json!(limits.calls_per_tenant), None),
            ("limits.calls_per_server", json!(limits.calls_per_server), None),
            ("limits.breaker_failures", json!(limits.breaker_failures), None),
            ("limits.breaker_pause", json!(limits.breaker_pause.to_string()), None),
            ("policy_limits.ask_again_max", json!(config.policy.ask_again_max), self.strictest_ask_again()),
            ("server.listen", json!(config.server.listen.to_string()), listens),
            ("server.hosts", json!(config.server.hosts), None),
            ("server.ask_at_client", json!(config.server.ask_at_client), None),
        ]
        .into_iter()
        .map(|(key, value, message)| EffectiveSetting { key: key.to_owned(), value, origin: origin(key, message) })
        .collect();
        let known: BTreeSet<String> = all.iter().map(|holds| holds.key.clone()).collect();
        all.extend(written.iter().filter(|(_, leaf)| !known.contains(&leaf.key())).map(|(file, leaf)| {
            EffectiveSetting {
                key: leaf.key(),
                value: leaf.redacted_value(),
                origin: SettingOrigin::File { path: file.path.clone(), line: leaf.line },
            }
        }));
        for (path, servers, _) in &self.lists {
            all.extend(servers.keys().map(|name| EffectiveSetting {
                key: format!("servers.{name}"),
                value: json!("(from the list)"),
                origin: SettingOrigin::List(path.clone()),
            }));
        }
        let (name, from) = self.operator.clone();
        all.push(EffectiveSetting { key: "operator".to_owned(), value: json!(name), origin: from });
        let log = env::var(crate::log::VARIABLE).ok().filter(|value| !value.is_empty());
        let from = log.as_ref().map_or(SettingOrigin::Default, |_| SettingOrigin::Variable(crate::log::VARIABLE));
        all.push(EffectiveSetting {
            key: "log".to_owned(),
            value: json!(log.unwrap_or_else(|| "warn".into())),
            origin: from,
        });
        Ok(all)
    }

    /// Of several files the one with the smallest value.
    fn strictest_ask_again(&self) -> Option<SettingOrigin> {
        let said = self.files.iter().filter_map(|file| Some((file.tools.policy_limits.ask_again_max?, file)));
        let (_, file) = said.min_by_key(|(max, _)| *max)?;
        let leaf = file.leaves.iter().find(|leaf| leaf.key() == "policy_limits.ask_again_max")?;
        Some(SettingOrigin::File { path: file.path.clone(), line: leaf.line })
    }

    /// Settings of files that no nearer file or list overrides.
    fn written(&self) -> Vec<(&FileSettings, &FileSetting)> {
        let listed = |leaf: &FileSetting| {
            let [table, name] = leaf.group() else { return false };
            table == "servers" && self.lists.iter().any(|(_, servers, _)| servers.contains_key(name))
        };
        let mut taken: BTreeSet<&[String]> = BTreeSet::new();
        let mut all = Vec::new();
        for file in &self.files {
            let holding = file.leaves.iter().filter(|leaf| !taken.contains(leaf.group()) && !listed(leaf));
            let holding: Vec<&FileSetting> = holding.collect();
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

/// Variables with our prefix that are unknown.
pub(crate) fn unknown_variables() -> Vec<String> {
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    // RUTTER_KEY is set for commands that are called as tools.
    let is_known = |name: &str| VARIABLES.contains(&name) || name == "RUTTER_KEY";
    names.filter(|name| name.starts_with("RUTTER_") && !is_known(name)).collect()
}

/// The text of a variable.
pub(crate) fn variable_text(name: &str) -> Option<String> {
    env::var(name).ok()
}

/// The directory that a variable names.
pub(crate) fn variable_path(name: &str) -> Option<PathBuf> {
    variable(name).map(PathBuf::from)
}

fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn listen() -> Result<Option<SocketAddr>, CommandRefusal> {
    let Some(text) = variable(LISTEN) else { return Ok(None) };
    let address = text.to_str().and_then(|text| text.parse().ok());
    address.map(Some).ok_or_else(|| {
        let message = format!("{LISTEN} must be an address such as 127.0.0.1:7411, got {text:?}");
        CommandRefusal::new("config.invalid", message)
    })
}

/// The MCP servers of another program's file.
fn list(path: &Path) -> Result<(PathBuf, BTreeMap<String, McpServerConfig>, Hash), CommandRefusal> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CommandRefusal::new("file.unreadable", format!("cannot read {}: {error}", path.display())))?;
    let (servers, notes) = import(&text, &|name| env::var(name).ok())
        .map_err(|error| CommandRefusal::new("config.invalid", format!("{}: {error}", path.display())))?;
    notes.iter().for_each(|note| tracing::info!("{}: {note}", path.display()));
    Ok((path.to_owned(), servers, Hash::of_fields("rutter/list/v1", &[text.as_bytes()])))
}
