//! `rutter mcp`: speaks MCP over stdin and stdout, started by an agent. Only the protocol is written to stdout.

mod proxy;

use crate::args::DatabaseArgs;
use crate::args::run::ToolSourceArgs;
use crate::args::serve::McpCommandArgs;
use crate::config::Config;
use crate::daemon::ServerStarter;
use crate::exit::CommandExit;
use crate::runtime::LocalRuntime;
use crate::socket::SocketRequest;
use rmcp::ServiceExt;
use rutter_app::principal::{McpToolset, Principal};
use rutter_core::id::TenantId;
use rutter_mcp::McpSurface;
use rutter_mcp::pipes::ServerPipeTransport;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::io::BufReader;

pub(crate) fn run(args: &McpCommandArgs) -> anyhow::Result<CommandExit> {
    let toolsets: BTreeSet<McpToolset> = args.toolsets.iter().copied().collect();
    let tenant = TenantId::new("default");
    if args.embedded {
        return crate::blocking::block_on(embedded(args, tenant, toolsets));
    }
    let config = Config::load_with(&args.store, &args.tools)?;
    let flags = flags(&args.store, &args.tools);
    let starter = ServerStarter { directory: config.directory, flags };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(proxy::run(starter, SocketRequest::Mcp { tenant, toolsets }))?;
    // A reader of stdin may still be blocked; it ends with the process.
    runtime.shutdown_background();
    Ok(CommandExit::Done)
}

/// The flags to start a server with, so that it has the same tools.
pub(crate) fn flags(store: &DatabaseArgs, tools: &ToolSourceArgs) -> Vec<String> {
    let named = store.config.iter().map(|path| ("--config", path));
    let named = named.chain(tools.mcp_config.iter().map(|path| ("--mcp-config", path)));
    named.flat_map(|(flag, path)| [flag.to_owned(), path.display().to_string()]).collect()
}

async fn embedded(
    args: &McpCommandArgs,
    tenant: TenantId,
    toolsets: BTreeSet<McpToolset>,
) -> anyhow::Result<CommandExit> {
    let runtime = LocalRuntime::open(&args.store, &args.tools).await?;
    let principal = Principal::local(tenant, &runtime.config.operator, toolsets);
    let surface = McpSurface::of(Arc::clone(&runtime.app), principal);
    let pipes = ServerPipeTransport::new(BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let served = async {
        let service = surface.serve(pipes).await?;
        service.waiting().await?;
        anyhow::Ok(CommandExit::Done)
    };
    let served = served.await;
    runtime.close().await;
    served
}
