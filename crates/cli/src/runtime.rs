//! The runtime of one command: the engine with its database and tools, and the socket.

use crate::args::DatabaseArgs;
use crate::args::run::ToolSourceArgs;
use crate::config::Config;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::outcome::ExecutionReport;
use crate::progress::ProgressPrinter;
use crate::socket::ListeningSocket;
use crate::terminal::Terminal;
use anyhow::Context;
use rutter_app::app::{App, AppSettings};
use rutter_app::runtime::{Runtime, RuntimeOptions, ToolSource};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::port;
use rutter_engine::{Error, ExecutionUpdate, UpdateContent};
use rutter_store::SqliteArchive;
use rutter_tools::child::LauncherProgram;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// An [`app::Runtime`](Runtime) with the configuration of this command and the socket other commands reach it by.
pub(crate) struct LocalRuntime {
    pub(crate) runtime: Runtime,
    pub(crate) app: Arc<App>,
    pub(crate) config: Config,
    socket: Option<ListeningSocket>,
    /// Cancelled when another command asks this process to stop.
    pub(crate) stop: CancellationToken,
}

impl LocalRuntime {
    /// Opens the database for this process and listens for other commands.
    pub(crate) async fn open(store: &DatabaseArgs, args: &ToolSourceArgs) -> anyhow::Result<LocalRuntime> {
        let config = Config::load_with(store, args)?;
        let runtime = Runtime::open(options(&config)?).await.map_err(open_error)?;
        let app = Arc::clone(&runtime.app);
        let stop = CancellationToken::new();
        let (person, mark) = (&config.operator, &config.tools_mark);
        let socket = ListeningSocket::listen(&config.directory, app.clone(), person, mark, stop.clone());
        let socket = socket.inspect_err(|error| {
            tracing::warn!("other commands cannot reach this one: no socket beside the database: {error}");
        });
        Ok(LocalRuntime { runtime, app, config, socket: socket.ok(), stop })
    }

    /// Prints progress until the execution ends or waits for a person; with `stays`, until it ends.
    pub(crate) async fn follow(
        &self,
        identity: &ExecutionIdentity,
        mut updates: broadcast::Receiver<ExecutionUpdate>,
        stays: bool,
        progress: &mut ProgressPrinter,
    ) -> anyhow::Result<()> {
        // Entries written before the subscription are only in the journal.
        progress.print_all(1, &SqliteArchive::open(&self.config.directory)?.load(identity)?.records);
        let mut status = self.app.view(identity).await.map_err(CommandRefusal::of)?.status;
        let mut interrupted = false;
        loop {
            // Updates before the status was read are already in it.
            while let Ok(update) = updates.try_recv() {
                status = on_update(identity, update, progress).unwrap_or(status);
            }
            let needs_attention =
                matches!(status, ExecutionStatus::Waiting | ExecutionStatus::Paused | ExecutionStatus::Replanning);
            if status.has_ended() || interrupted || (needs_attention && !stays) {
                return Ok(());
            }
            tokio::select! {
                heard = updates.recv() => match heard {
                    Ok(update) => status = on_update(identity, update, progress).unwrap_or(status),
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        status = self.app.view(identity).await.map_err(CommandRefusal::of)?.status;
                    }
                    Err(broadcast::error::RecvError::Closed) => return Ok(()),
                },
                () = tokio::time::sleep(Duration::from_millis(500)) => progress.count_down(self.app.now()),
                _ = tokio::signal::ctrl_c() => interrupted = true,
            }
        }
    }

    /// The number of connections over the socket.
    pub(crate) fn connections(&self) -> usize {
        self.socket.as_ref().map_or(0, ListeningSocket::connections)
    }

    /// Prints the state of the execution, and returns the exit code for it.
    pub(crate) async fn conclude(
        &self,
        identity: &ExecutionIdentity,
        is_json: bool,
        terminal: &Terminal,
    ) -> anyhow::Result<CommandExit> {
        let outcome = self.app.look(identity, ExecutionReport::of).await.map_err(CommandRefusal::of)?;
        let receipt = self.runtime.receipt(identity).await?;
        match is_json {
            true => {
                let missing = || port::Error::NotFound { what: "execution", id: identity.execution.to_string() };
                let summary = self.app.query.execution(identity).await?.ok_or_else(missing)?;
                let base = self.app.link.get().map(String::as_str);
                terminal.answer(&format!("{}\n", outcome.json(&summary.plan, base, &receipt)))?;
            }
            false => terminal.answer(&outcome.text(terminal))?,
        }
        Ok(outcome.exit())
    }

    /// Lets calls in flight end, and releases everything.
    pub(crate) async fn close(self) {
        // The socket answers status requests until the end.
        self.runtime.close().await;
        if let Some(socket) = self.socket {
            socket.close();
        }
    }
}

/// The argument that makes this program the launcher of another one.
pub(crate) const LAUNCH: &str = "launch";

/// What this program opens for a configuration.
pub(crate) fn options(config: &Config) -> anyhow::Result<RuntimeOptions> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    Ok(RuntimeOptions {
        tools: ToolSource::Config(Box::new(config.tools.clone())),
        launcher: LauncherProgram { program, arguments: vec![LAUNCH.into()] },
        environment: std::env::vars().collect(),
        webhooks_allow: config.webhooks.allow.clone(),
        collector: config.telemetry.collector(config.tools.servers.keys().cloned().collect())?,
        // An unreadable token grants no access; `rutter serve` does not start then.
        tokens: config.server.tokens().unwrap_or_default(),
        operator: config.operator.clone(),
        policy: Arc::clone(&config.policy),
        settings: AppSettings { ask_at_client: config.server.ask_at_client, templates: config.templates.clone() },
        ..RuntimeOptions::new(&config.directory)
    })
}

pub(crate) fn open_error(error: rutter_app::runtime::Error) -> anyhow::Error {
    use rutter_app::runtime::Error;
    match error {
        Error::Store(error) => error.into(),
        Error::Engine(error) => command_error(error),
        Error::Tools(error) => CommandRefusal::new("config.invalid", error.to_string()).into(),
        Error::Webhooks(_) => CommandRefusal::new("config.invalid", error.to_string())
            .with_hint("list hosts, addresses or networks such as 10.0.0.0/8")
            .into(),
        Error::Keys(_) => error.into(),
    }
}

fn on_update(
    identity: &ExecutionIdentity,
    update: ExecutionUpdate,
    progress: &mut ProgressPrinter,
) -> Option<ExecutionStatus> {
    if update.identity != *identity {
        return None;
    }
    match update.content {
        UpdateContent::Recorded { first, records, status } => {
            progress.print_all(first, &records);
            Some(status)
        }
        UpdateContent::Progress { part, progress: how } => {
            progress.hint(&part, &how);
            None
        }
    }
}

/// An error of the engine as an error of a command.
fn command_error(error: Error) -> anyhow::Error {
    match error {
        Error::Store(error) => error.into(),
        Error::Refused(refusal) => {
            let command_refusal = CommandRefusal::new(refusal.code, refusal.message);
            match refusal.hint {
                Some(hint) => command_refusal.with_hint(hint).into(),
                None => command_refusal.into(),
            }
        }
        Error::Secret => CommandRefusal::new(error.code(), error.to_string())
            .with_hint("define it under [secrets] in rutter.toml, and write {\"secret\": \"name\"} in the plan")
            .into(),
        error => CommandRefusal::new(error.code(), error.to_string()).into(),
    }
}
