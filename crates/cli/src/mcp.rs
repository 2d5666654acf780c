//! `rutter mcp`: what an agent starts to speak MCP over pipes. Nothing but the protocol is ever written to stdout.

mod front;

use crate::Exit;
use crate::args::StoreArgs;
use crate::args::run::ToolArgs;
use crate::args::serve::McpArgs;
use crate::config::Config;
use crate::daemon::Starter;
use crate::helm::{self, Helm};
use rmcp::ServiceExt;
use rutter_core::id::TenantId;
use rutter_server::guest::{Guest, Toolset};
use rutter_server::mcp::Surface;
use rutter_server::mcp::pipes::Pipes;
use rutter_server::socket::Greeting;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::io::BufReader;

pub(crate) fn run(args: &McpArgs) -> anyhow::Result<Exit> {
    let toolsets: BTreeSet<Toolset> = args.toolsets.iter().copied().collect();
    let tenant = TenantId::new("default");
    if args.embedded {
        return helm::on_runtime(embedded(args, tenant, toolsets));
    }
    let config = Config::load_with(&args.store, &args.tools)?;
    let flags = flags(&args.store, &args.tools);
    let starter = Starter { directory: config.directory, flags };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(front::run(starter, Greeting::Mcp { tenant, toolsets }))?;
    // A reader of stdin may still be blocked; it ends with the process.
    runtime.shutdown_background();
    Ok(Exit::Done)
}

/// What a server is started with, so that it has the same tools.
pub(crate) fn flags(store: &StoreArgs, tools: &ToolArgs) -> Vec<String> {
    let named = store.config.iter().map(|path| ("--config", path));
    let named = named.chain(tools.mcp_config.iter().map(|path| ("--mcp-config", path)));
    named.flat_map(|(flag, path)| [flag.to_owned(), path.display().to_string()]).collect()
}

async fn embedded(args: &McpArgs, tenant: TenantId, toolsets: BTreeSet<Toolset>) -> anyhow::Result<Exit> {
    let helm = Helm::open(&args.store, &args.tools).await?;
    let guest = Guest::local(tenant, &helm.config.operator, toolsets);
    let surface = Surface::of(Arc::clone(&helm.desk), guest);
    let pipes = Pipes::new(BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let served = async {
        let service = surface.serve(pipes).await?;
        service.waiting().await?;
        anyhow::Ok(Exit::Done)
    };
    let served = served.await;
    helm.close().await;
    served
}
