//! Where the data is, which tools there are and how long things are kept. Flags come before the environment, and that
//! before files.

mod file;
pub(crate) mod leaf;
pub(crate) mod outward;
pub(crate) mod server;
pub(crate) mod show;
pub(crate) mod sources;

use crate::args::StoreArgs;
use crate::args::run::ToolArgs;
use crate::failure::Refusal;
use file::Settings;
use outward::{TelemetryConfig, WebhooksConfig};
use rutter_core::time::Millis;
use server::ServerConfig;
use sources::Sources;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The directory of the database.
    pub(crate) directory: PathBuf,
    pub(crate) retention: Retention,
    /// Who works here, by the name the system knows; it stands in the ledger's own journal.
    pub(crate) operator: String,
    pub(crate) tools: rutter_tools::config::Config,
    pub(crate) server: ServerConfig,
    pub(crate) webhooks: WebhooksConfig,
    pub(crate) telemetry: TelemetryConfig,
    /// Two processes with the same mark were told of the same tools.
    pub(crate) tools_mark: String,
}

/// How long things are kept after their execution ended; `None` is for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    pub(crate) payloads: Option<Millis>,
    pub(crate) executions: Option<Millis>,
}

impl Config {
    pub(crate) fn load(store: &StoreArgs) -> Result<Config, Refusal> {
        Config::load_with(store, &ToolArgs::default())
    }

    /// The same with the tools that were named on the command line.
    pub(crate) fn load_with(store: &StoreArgs, tools: &ToolArgs) -> Result<Config, Refusal> {
        Sources::read(store, tools)?.config()
    }

    /// Settings of nobody, for what is tried out in a directory.
    pub(crate) fn scratch(directory: &Path) -> Config {
        Config {
            directory: directory.to_owned(),
            retention: Retention::default(),
            operator: "operator".to_owned(),
            tools: Default::default(),
            server: ServerConfig::default(),
            webhooks: WebhooksConfig::default(),
            telemetry: TelemetryConfig::default(),
            tools_mark: String::new(),
        }
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
        Ok(Config {
            directory: directory.ok_or_else(nowhere)?,
            retention,
            operator,
            tools: merged(files),
            server: files.iter().find_map(|file| file.tools.server.clone()).unwrap_or_default(),
            telemetry: files.iter().find_map(|file| file.tools.telemetry.clone()).unwrap_or_default(),
            webhooks: files.iter().find_map(|file| file.tools.webhooks.clone()).unwrap_or_default(),
            tools_mark: String::new(),
        })
    }
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
        all.alerts.commands.extend(tools.alerts.commands);
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
