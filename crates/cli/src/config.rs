//! Where the data is and how long it is kept. Flags come before the environment, and that before files.

mod file;
pub(crate) mod server;

use crate::args::run::ToolArgs;
use crate::failure::Refusal;
use file::Settings;
use rutter_core::time::Millis;
use rutter_tools::config::mcp::Server;
use rutter_tools::config::mcp::import::import;
use server::ServerConfig;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

const LOCAL: &str = "rutter.toml";

#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The directory of the database.
    pub(crate) directory: PathBuf,
    pub(crate) retention: Retention,
    /// Who works here, by the name the system knows; it stands in the ledger's own journal.
    pub(crate) operator: String,
    pub(crate) tools: rutter_tools::config::Config,
    pub(crate) server: ServerConfig,
}

/// How long things are kept after their execution ended; `None` is for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) payloads: Option<Millis>,
    pub(crate) executions: Option<Millis>,
}

impl Config {
    pub(crate) fn load(flag: Option<&Path>) -> Result<Config, Refusal> {
        Config::load_with(flag, &ToolArgs::default())
    }

    /// The same with the tools that were named on the command line.
    pub(crate) fn load_with(flag: Option<&Path>, tools: &ToolArgs) -> Result<Config, Refusal> {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let home = variable("HOME").map(PathBuf::from);
        let beneath_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let settings = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(|| beneath_home(".config"));
        let data = variable("XDG_DATA_HOME").map(PathBuf::from).or_else(|| beneath_home(".local/share"));
        let mut files = vec![match &tools.config {
            Some(path) => Settings::load_named(path)?,
            None => Settings::load(Path::new(LOCAL))?,
        }];
        if let Some(directory) = settings {
            files.push(Settings::load(&directory.join("rutter/config.toml"))?);
        }
        let operator = ["USER", "LOGNAME"].into_iter().find_map(|name| env::var(name).ok());
        let mut config = Config::choose(
            flag.map(Path::to_owned).or_else(|| variable("RUTTER_DIR").map(PathBuf::from)),
            &files,
            data.map(|directory| directory.join("rutter")),
            operator.filter(|name| !name.is_empty()).unwrap_or_else(|| "operator".to_owned()),
        )?;
        for path in &tools.mcp_config {
            config.tools.servers.extend(imported(path)?);
        }
        Ok(config)
    }

    /// Settings of nobody, for what is tried out in a directory.
    pub(crate) fn scratch(directory: &Path) -> Config {
        let (directory, retention, tools) = (directory.to_owned(), Retention::default(), Default::default());
        let (operator, server) = ("operator".to_owned(), ServerConfig::default());
        Config { directory, retention, operator, tools, server }
    }

    /// Each setting comes from the first place that says something about it.
    fn choose(
        said: Option<PathBuf>,
        files: &[Settings],
        default: Option<PathBuf>,
        operator: String,
    ) -> Result<Config, Refusal> {
        let directory = said.or_else(|| files.iter().find_map(|file| file.dir.clone())).or(default);
        let nowhere = || {
            Refusal::new("config.invalid", "nothing says where the data is")
                .with_hint("name a directory with --dir, RUTTER_DIR, or `dir` in rutter.toml")
        };
        let retention = Retention {
            payloads: files.iter().find_map(|file| file.payloads).flatten(),
            executions: files.iter().find_map(|file| file.executions).flatten(),
        };
        let tools = merged(files);
        let server = files.iter().find_map(|file| file.tools.server.clone()).unwrap_or_default();
        Ok(Config { directory: directory.ok_or_else(nowhere)?, retention, operator, tools, server })
    }
}

/// The MCP servers of another program's file.
fn imported(path: &Path) -> Result<BTreeMap<String, Server>, Refusal> {
    let (servers, notes) = imported_with_notes(path)?;
    notes.iter().for_each(|note| tracing::info!("{}: {note}", path.display()));
    Ok(servers)
}

/// The same, and what of it was left out.
pub(crate) fn imported_with_notes(path: &Path) -> Result<(BTreeMap<String, Server>, Vec<String>), Refusal> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Refusal::new("file.unreadable", format!("cannot read {}: {error}", path.display()))
    })?;
    import(&text, &|name| env::var(name).ok())
        .map_err(|error| Refusal::new("config.invalid", format!("{}: {error}", path.display())))
}

/// A server that several files name is as the nearest says.
fn merged(files: &[Settings]) -> rutter_tools::config::Config {
    let mut all = rutter_tools::config::Config::default();
    for file in files.iter().rev() {
        let tools = file.tools.clone();
        all.servers.extend(tools.servers);
        all.http.extend(tools.http);
        all.commands.extend(tools.commands);
        all.secrets.extend(tools.secrets);
        all.notify.extend(tools.notify);
        all.limits = tools.limits.unwrap_or(all.limits);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(said: Option<&str>, files: &[Settings], default: Option<&str>) -> Result<Config, Refusal> {
        Config::choose(said.map(Into::into), files, default.map(Into::into), "operator".to_owned())
    }

    #[test]
    fn what_is_said_comes_before_files_and_nearer_files_before_farther_ones() {
        let near = Settings { payloads: Some(None), ..Settings::default() };
        let far = Settings {
            dir: Some("far".into()),
            payloads: Some(Some(Millis(1))),
            executions: Some(Some(Millis(2))),
            ..Settings::default()
        };
        let files = [near, far];
        for (said, files, expected) in [
            (Some("said"), &files[..], "said"),
            (None, &files[..], "far"),
            (None, &files[..1], "default"),
            (None, &[], "default"),
        ] {
            let config = choose(said, files, Some("default")).unwrap();
            assert_eq!(config.directory, Path::new(expected));
        }
        let kept = choose(None, &files, None).unwrap().retention;
        assert_eq!(kept, Retention { payloads: None, executions: Some(Millis(2)) });
        assert!(choose(None, &[], None).is_err(), "somebody must say where");
    }
}
