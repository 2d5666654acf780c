//! `rutter tools`: lists, shows and calls tools by hand.

mod call;
mod doctor;
pub(crate) mod import;
mod list;
mod show;

use crate::CommandExit;
use crate::args::tools::{ToolsCommand, ToolsCommonArgs};
use crate::config::Config;
use crate::failure::CommandRefusal;
use crate::terminal::Terminal;
use anyhow::Context;
use rutter_engine::SystemClock;
use rutter_store::SqliteStore;
use rutter_tools::assemble::{AssembledTools, ToolEnvironment, assemble};
use rutter_tools::child::LauncherProgram;
use rutter_tools::registry::ToolRegistry;
use std::sync::Arc;

pub(crate) fn run(command: &ToolsCommand, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    match command {
        ToolsCommand::List(args) => list::run(args, terminal),
        ToolsCommand::Show(args) => show::run(args, terminal),
        ToolsCommand::Call(args) => call::run(args, terminal),
        ToolsCommand::Import(args) => import::run(args, terminal),
        ToolsCommand::Doctor(args) => doctor::run(args, terminal),
    }
}

/// The argument that makes this program the launcher of another one.
pub(crate) const LAUNCH: &str = "launch";

/// The built-in tools and the configured ones. Must be called within a runtime.
pub(crate) async fn tooling(
    config: &Config,
    store: Arc<SqliteStore>,
    clock: SystemClock,
) -> anyhow::Result<AssembledTools> {
    let world = ToolEnvironment {
        folder: config.directory.clone(),
        launcher: launcher()?,
        environment: std::env::vars().collect(),
        query: store.clone(),
        register: store,
        clock: Arc::new(move || clock.now()),
    };
    let tooling = assemble(&config.tools, world).await;
    Ok(tooling.map_err(|error| CommandRefusal::new("config.invalid", error.to_string()))?)
}

/// This program, as the launcher that starts others under limits.
pub(crate) fn launcher() -> anyhow::Result<LauncherProgram> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    Ok(LauncherProgram { program, arguments: vec![LAUNCH.into()] })
}

/// Checks the tools of the settings; starts nothing.
pub(crate) fn check(config: &Config) -> anyhow::Result<()> {
    with_registry_of(config.clone(), async |_| Ok(()))
}

/// Runs with the tools alone, without the database; built-in tools store into a temporary one.
fn with_registry<T>(
    args: &ToolsCommonArgs,
    work: impl AsyncFnOnce(Arc<ToolRegistry>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    with_registry_of(Config::load_with(&args.store, &args.tools)?, work)
}

pub(crate) fn with_registry_of<T>(
    mut config: Config,
    work: impl AsyncFnOnce(Arc<ToolRegistry>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    // Children of the process that owns the database are not ours.
    let scratch = tempfile::Builder::new().prefix("rutter-tools-").tempdir()?;
    config.directory = scratch.path().to_owned();
    crate::blocking::block_on(async {
        let clock = SystemClock::system();
        let options = rutter_store::SqliteOptions {
            reserve_bytes: 0,
            ..rutter_store::SqliteOptions::new(scratch.path(), Arc::new(move || clock.now()))
        };
        let AssembledTools { registry, .. } = tooling(&config, Arc::new(SqliteStore::open(options)?), clock).await?;
        let ended = work(Arc::clone(&registry)).await;
        registry.close().await;
        ended
    })
}
