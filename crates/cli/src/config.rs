//! The configuration: the data directory, tools, retention and server. Flags take precedence over the environment, and
//! the environment over files.

mod file;
pub(crate) mod outward;
pub(crate) mod server;
pub(crate) mod setting;
pub(crate) mod sources;

use crate::args::DatabaseArgs;
use crate::args::run::ToolSourceArgs;
use crate::failure::CommandRefusal;
use file::FileSettings;
use outward::{TelemetryConfig, WebhooksConfig};
use rutter_core::policy::OperatorPolicy;
use rutter_core::time::Millis;
use server::ServerConfig;
use sources::ConfigSources;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The directory of the database.
    pub(crate) directory: PathBuf,
    pub(crate) retention: RetentionConfig,
    /// The system's user name; the actor in the ledger's own journal.
    pub(crate) operator: String,
    pub(crate) tools: rutter_tools::config::Config,
    pub(crate) server: ServerConfig,
    pub(crate) webhooks: WebhooksConfig,
    pub(crate) telemetry: TelemetryConfig,
    pub(crate) policy: Arc<OperatorPolicy>,
    /// The directory of own templates, beside the nearest file of settings.
    pub(crate) templates: Option<PathBuf>,
    /// Processes with the same mark have the same tools configured.
    pub(crate) tools_mark: String,
}

/// How long data is kept after an execution ended; `None` is for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RetentionConfig {
    pub(crate) payloads: Option<Millis>,
    pub(crate) executions: Option<Millis>,
}

impl Config {
    pub(crate) fn load(store: &DatabaseArgs) -> Result<Config, CommandRefusal> {
        Config::load_with(store, &ToolSourceArgs::default())
    }

    /// The same with the tools given on the command line.
    pub(crate) fn load_with(store: &DatabaseArgs, tools: &ToolSourceArgs) -> Result<Config, CommandRefusal> {
        ConfigSources::read(store, tools)?.config()
    }

    /// The operator's policy alone; it needs no database.
    pub(crate) fn policy(config: Option<PathBuf>) -> Result<OperatorPolicy, CommandRefusal> {
        let store = DatabaseArgs { dir: None, config, json: false };
        ConfigSources::read(&store, &ToolSourceArgs::default())?.policy()
    }

    /// Each setting comes from the first source that has it.
    fn choose(
        path_buf: Option<PathBuf>,
        files: &[FileSettings],
        default: Option<PathBuf>,
        operator: String,
    ) -> Result<Config, CommandRefusal> {
        let directory = path_buf.or_else(|| files.iter().find_map(|file| file.dir.clone())).or(default);
        let nowhere = || {
            CommandRefusal::new("config.invalid", "no data directory is configured")
                .with_hint("set it with --dir, RUTTER_DIR, or `dir` in rutter.toml")
        };
        let retention = RetentionConfig {
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
            policy: Arc::new(policy(files)?),
            templates: None,
            tools_mark: String::new(),
        })
    }
}

/// The rules of all files hold, those of the farther file first, and the smallest of each limit: a nearer file can be
/// stricter, never looser.
fn policy(files: &[FileSettings]) -> Result<OperatorPolicy, CommandRefusal> {
    let drafts: Vec<_> = files.iter().rev().flat_map(|file| file.tools.policy.clone()).collect();
    let policy = OperatorPolicy::read(&drafts).map_err(|error| {
        CommandRefusal::new("config.invalid", format!("policy: {error}"))
            .with_hint("docs/policy.md describes the fields of a rule")
    })?;
    Ok(policy.with_limits(files.iter().map(|file| file.tools.policy_limits)))
}

/// If several files configure a server, the nearest wins.
fn merged(files: &[FileSettings]) -> rutter_tools::config::Config {
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

    fn choose(message: Option<&str>, files: &[FileSettings], default: Option<&str>) -> Result<Config, CommandRefusal> {
        Config::choose(message.map(Into::into), files, default.map(Into::into), "operator".to_owned())
    }

    #[test]
    fn a_nearer_file_does_not_loosen_the_limits_of_the_policy() {
        let file = |ask_again_max| {
            let mut file = FileSettings::default();
            file.tools.policy_limits.ask_again_max = ask_again_max;
            file
        };
        for (near, far, expected) in [(None, None, 3), (Some(5), None, 5), (Some(5), Some(1), 1), (Some(0), Some(1), 0)]
        {
            assert_eq!(policy(&[file(near), file(far)]).unwrap().ask_again_max, expected);
        }
    }

    #[test]
    fn flags_come_before_files_and_nearer_files_before_farther_ones() {
        let near = FileSettings { payloads: Some(None), ..FileSettings::default() };
        let far = FileSettings {
            dir: Some("far".into()),
            payloads: Some(Some(Millis(1))),
            executions: Some(Some(Millis(2))),
            ..FileSettings::default()
        };
        let files = [near, far];
        for (message, files, expected) in [
            (Some("flag"), &files[..], "flag"),
            (None, &files[..], "far"),
            (None, &files[..1], "default"),
            (None, &[], "default"),
        ] {
            let config = choose(message, files, Some("default")).unwrap();
            assert_eq!(config.directory, std::path::Path::new(expected));
        }
        let stored = choose(None, &files, None).unwrap().retention;
        assert_eq!(stored, RetentionConfig { payloads: None, executions: Some(Millis(2)) });
        assert!(choose(None, &[], None).is_err(), "a directory is required");
    }
}
