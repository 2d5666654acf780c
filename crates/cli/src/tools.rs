//! `rutter tools`: lists, shows and calls tools by hand.

pub(crate) mod call;
mod doctor;
pub(crate) mod import;
mod list;
mod show;

use crate::args::tools::{ToolsCommand, ToolsCommonArgs};
use crate::config::Config;
use crate::exit::CommandExit;
use crate::runtime;
use crate::terminal::Terminal;
use rutter_app::runtime::{RuntimeOptions, open_tools};
use rutter_core::port::register::RegisterItem;
use rutter_core::port::tools::{CatalogSnapshot, ServerSelection, ToolGateway};
use rutter_tools::registry::ToolRegistry;
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn run(command: &ToolsCommand, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    match command {
        ToolsCommand::List(args) => list::run(args, terminal),
        ToolsCommand::Show(args) => show::run(args, terminal),
        ToolsCommand::Call(args) => call::run(args, terminal),
        ToolsCommand::Import(args) => import::run(args, terminal),
        ToolsCommand::Doctor(args) => doctor::run(args, terminal),
    }
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
    config: Config,
    work: impl AsyncFnOnce(Arc<ToolRegistry>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    with_tools(config, Vec::new(), Duration::MAX, work)
}

/// The same with the definitions that were known last, to read tools only: no server has anything to finish.
pub(crate) fn with_known_tools<T>(
    config: Config,
    definitions: Vec<RegisterItem>,
    work: impl AsyncFnOnce(Arc<ToolRegistry>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    with_tools(config, definitions, READER_CLOSE_MAX, work)
}

/// How long servers may take to list their tools, all together. This process ends with its command: it cannot ask a slow
/// server again.
const LIST_MAX: Duration = Duration::from_secs(5);

/// The tools of these servers as they are now; those of a server that does not answer in time as they were known last, or
/// none.
pub(crate) async fn listed(registry: &ToolRegistry, servers: &ServerSelection) -> CatalogSnapshot {
    let listing = async {
        registry.refresh(servers).await;
        registry.catalog(servers.clone()).await
    };
    match tokio::time::timeout(LIST_MAX, listing).await {
        Ok(catalog) => catalog,
        Err(_) => registry.catalog_within(servers.clone(), Duration::ZERO).await,
    }
}

/// How long servers that were only asked for their tools may take to end, before they are killed.
const READER_CLOSE_MAX: Duration = Duration::from_millis(500);

fn with_tools<T>(
    mut config: Config,
    definitions: Vec<RegisterItem>,
    close_max: Duration,
    work: impl AsyncFnOnce(Arc<ToolRegistry>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    // Children of the process that owns the database are not ours.
    let scratch = tempfile::Builder::new().prefix("rutter-tools-").tempdir()?;
    config.directory = scratch.path().to_owned();
    crate::blocking::block_on(async {
        let options = RuntimeOptions { reserve_bytes: Some(0), ..runtime::options(&config)? };
        let registry = open_tools(&config.tools, &options, definitions).await.map_err(runtime::open_error)?.registry;
        let ended = work(Arc::clone(&registry)).await;
        // A server that does not end in time is killed with the runtime.
        let _ = tokio::time::timeout(close_max, registry.close()).await;
        ended
    })
}
