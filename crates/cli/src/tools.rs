//! `rutter tools`: what can be called here, tried out by hand.

mod call;
mod doctor;
mod import;
mod list;
mod show;

use crate::Exit;
use crate::args::tools::{ToolsArgs, ToolsCommand};
use crate::config::Config;
use crate::failure::Refusal;
use crate::terminal::Terminal;
use anyhow::Context;
use rutter_engine::Clock;
use rutter_tools::assemble::{World, assemble};
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

/// The tools the settings name. Must be called within a runtime.
pub(crate) fn registry(config: &Config, clock: Clock) -> anyhow::Result<Arc<Registry>> {
    let program = std::env::current_exe().context("this program does not know where it is")?;
    let world = World {
        folder: config.directory.clone(),
        launcher: Launcher { program, arguments: vec![LAUNCH.into()] },
        environment: std::env::vars().collect(),
        clock: Arc::new(move || clock.now()),
    };
    let registry = assemble(&config.tools, world);
    Ok(Arc::new(registry.map_err(|error| Refusal::new("config.invalid", error.to_string()))?))
}

/// Does something with the tools alone: no database is opened.
fn with_registry<T>(
    args: &ToolsArgs,
    work: impl AsyncFnOnce(Arc<Registry>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut config = Config::load_with(args.store.dir.as_deref(), &args.tools)?;
    // Children of somebody who has the database are none of ours.
    let scratch = tempfile::Builder::new().prefix("rutter-tools-").tempdir()?;
    config.directory = scratch.path().to_owned();
    crate::helm::on_runtime(async {
        let registry = registry(&config, Clock::system())?;
        let ended = work(Arc::clone(&registry)).await;
        registry.close().await;
        ended
    })
}
