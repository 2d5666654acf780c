//! `rutter tools`: what can be called here, tried out by hand.

mod call;
mod doctor;
pub(crate) mod import;
mod list;
mod show;

use crate::Exit;
use crate::args::tools::{ToolsArgs, ToolsCommand};
use crate::config::Config;
use crate::failure::Refusal;
use crate::terminal::Terminal;
use anyhow::Context;
use rutter_core::port::query::Query;
use rutter_engine::Clock;
use rutter_store::Store;
use rutter_tools::assemble::{Tooling, World, assemble};
use rutter_tools::child::Launcher;
use rutter_tools::registry::Registry;
use std::sync::Arc;

pub(crate) fn run(command: &ToolsCommand, terminal: &Terminal) -> anyhow::Result<Exit> {
    match command {
        ToolsCommand::List(args) => list::run(args, terminal),
        ToolsCommand::Show(args) => show::run(args, terminal),
        ToolsCommand::Call(args) => call::run(args, terminal),
        ToolsCommand::Import(args) => import::run(args, terminal),
        ToolsCommand::Doctor(args) => doctor::run(args, terminal),
    }
}

/// The word after which this program becomes another one.
pub(crate) const LAUNCH: &str = "launch";

/// The tools there are: those that come with Rutter and those the settings name. Must be called within a runtime.
pub(crate) fn tooling(config: &Config, query: Arc<dyn Query>, clock: Clock) -> anyhow::Result<Tooling> {
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let world = World {
        folder: config.directory.clone(),
        launcher: Launcher { program, arguments: vec![LAUNCH.into()] },
        environment: std::env::vars().collect(),
        query,
        clock: Arc::new(move || clock.now()),
    };
    let tooling = assemble(&config.tools, world);
    Ok(tooling.map_err(|error| Refusal::new("config.invalid", error.to_string()))?)
}

/// Whether the tools of the settings can be had as they are described; nothing is started.
pub(crate) fn check(config: &Config) -> anyhow::Result<()> {
    with_registry_of(config.clone(), async |_| Ok(()))
}

/// Does something with the tools alone. The database stays as it is; what built-in tools keep is a passing one here.
fn with_registry<T>(
    args: &ToolsArgs,
    work: impl AsyncFnOnce(Arc<Registry>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    with_registry_of(Config::load_with(&args.store, &args.tools)?, work)
}

pub(crate) fn with_registry_of<T>(
    mut config: Config,
    work: impl AsyncFnOnce(Arc<Registry>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    // Children of somebody who has the database are none of ours.
    let scratch = tempfile::Builder::new().prefix("rutter-tools-").tempdir()?;
    config.directory = scratch.path().to_owned();
    crate::helm::on_runtime(async {
        let clock = Clock::system();
        let options = rutter_store::Options {
            reserve_bytes: 0,
            ..rutter_store::Options::new(scratch.path(), Arc::new(move || clock.now()))
        };
        let Tooling { registry, .. } = tooling(&config, Arc::new(Store::open(options)?), clock)?;
        let ended = work(Arc::clone(&registry)).await;
        registry.close().await;
        ended
    })
}
