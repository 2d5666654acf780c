//! `rutter serve`: the process that owns the database and serves agents and people. `rutter stop` stops it.

use crate::args::serve::{ServeArgs, StopServerArgs};
use crate::daemon::{self, UNREACHABLE_MAX, UNREACHABLE_POLL};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::runtime::LocalRuntime;
use crate::socket::SocketRequest;
use crate::store;
use crate::terminal::Terminal;
use rutter_api::http::gate::RequestGate;
use rutter_api::http::listen::{ConnectionSlots, serve_with_slots};
use rutter_api::http::{self, Beside};
use rutter_app::app::App;
use rutter_app::auth::{AccessToken, session};
use rutter_app::keys;
use rutter_app::principal::Principal;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::query::{HistoryFilter, Pagination};
use rutter_mcp::McpSurface;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How often a server that was started for a client checks whether it is still needed.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &ServeArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    if args.background {
        // The client that started this may exit; signals to its terminal must not reach this process.
        let _ = rustix::process::setsid();
    }
    crate::blocking::block_on(async {
        let runtime = open(args).await?;
        let served = serve(args, &runtime, terminal).await;
        runtime.close().await;
        served
    })
}

/// A server started for a client waits for a database whose owner does not listen: that process is a short command, or
/// was killed and still holds the lock for a moment.
async fn open(args: &ServeArgs) -> anyhow::Result<LocalRuntime> {
    let until = Instant::now() + UNREACHABLE_MAX;
    loop {
        let opened = LocalRuntime::open(&args.store, &args.tools).await;
        let Err(error) = &opened else { return opened };
        let is_locked = matches!(error.downcast_ref(), Some(port::Error::Locked { .. }));
        if !is_locked || !args.background || Instant::now() > until {
            return opened;
        }
        if daemon::connect(&store::config(&args.store)?.directory).is_some() {
            return opened;
        }
        tokio::time::sleep(UNREACHABLE_POLL).await;
    }
}

async fn serve(args: &ServeArgs, runtime: &LocalRuntime, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let closing = CancellationToken::new();
    let config = &runtime.config.server;
    let address = args.listen.unwrap_or(config.listen);
    check_address(address, &config.tokens()?)?;
    let places = ConnectionSlots::default();
    let mut pages = None;
    let bound = match args.no_http {
        true => None,
        false => Some(TcpListener::bind(address).await),
    };
    let link = match bound {
        None => None,
        Some(Ok(listener)) => {
            let link = format!("http://{}", listener.local_addr()?);
            let door = Arc::new(RequestGate::new(config.hosts.clone(), Arc::clone(&runtime.app.auth)));
            let router = http::full_router(&runtime.app, door, config.api(), beside(&runtime.app, &closing), &closing);
            pages = Some(tokio::spawn(serve_with_slots(places.clone(), listener, router, closing.clone())));
            runtime.app.set_link(&link);
            Some(link)
        }
        // It was started for one client, which does not need the port; another directory's server may use it.
        Some(Err(error)) if args.background => {
            tracing::warn!("no HTTP: {address}: {error}");
            None
        }
        Some(Err(error)) => {
            let refusal = CommandRefusal::new("server.address", format!("cannot listen on {address}: {error}"));
            return Err(refusal.with_hint("choose another with --listen, or use --no-http").into());
        }
    };
    tell(args, runtime, link.as_deref(), terminal).await?;
    until_ended(args, runtime, &places).await?;
    terminal.remark("stopping; calls in flight end first\n");
    closing.cancel();
    if let Some(pages) = pages {
        // Open streams do not keep the server from stopping.
        let _ = tokio::time::timeout(Duration::from_secs(2), pages).await;
    }
    Ok(CommandExit::Done)
}

/// The surfaces served besides the API.
pub(crate) fn beside(app: &Arc<App>, closing: &CancellationToken) -> Beside {
    let mcp = rutter_mcp::http::routes(McpSurface::behind_gate(Arc::clone(app)), closing);
    Beside { mcp, pages: rutter_web::router(app, Arc::clone(&app.auth)) }
}

/// Without configured tokens, only this machine may connect.
fn check_address(address: SocketAddr, tokens: &[AccessToken]) -> Result<(), CommandRefusal> {
    if address.ip().is_loopback() || !tokens.is_empty() {
        return Ok(());
    }
    let message = format!("{address} is reachable from other machines, and no tokens are configured");
    Err(CommandRefusal::new("server.address", message)
        .with_hint("listen on 127.0.0.1, or configure [server.tokens] and [server] hosts in rutter.toml"))
}

async fn tell(args: &ServeArgs, runtime: &LocalRuntime, link: Option<&str>, terminal: &Terminal) -> anyhow::Result<()> {
    let directory = &runtime.config.directory;
    let token = directory.join(keys::AGENT);
    if args.store.json {
        let json = json!({ "ok": true, "pid": std::process::id(), "directory": directory, "http": link,
            "mcp": link.map(|link| format!("{link}/mcp")), "token_file": token });
        return Ok(terminal.answer(&format!("{json}\n"))?);
    }
    if args.background {
        return Ok(());
    }
    let mut text = format!("serving {}\n", directory.display());
    if let Some(link) = link {
        text += &format!("MCP over HTTP: {link}/mcp with the token in {}\n", token.display());
        text += &format!("in a browser: {}\n", entrance(runtime, link, terminal).await?);
    }
    text += "MCP over stdio: rutter mcp   (claude mcp add rutter -- rutter mcp)\nCtrl-C stops it; executions continue at the next start.\n";
    terminal.remark(&text);
    Ok(())
}

/// A sign-in link, if a person reads the output; others may read a log.
async fn entrance(runtime: &LocalRuntime, address: &str, terminal: &Terminal) -> anyhow::Result<String> {
    if !terminal.is_watched {
        return Ok(format!("{address}; `rutter open` prints a sign-in link"));
    }
    let owner = Principal::owner(TenantId::new("default"), &runtime.config.operator);
    let code = runtime.app.auth.create_sign_in_link(&owner).await.map_err(CommandRefusal::from)?;
    Ok(format!("{}  (valid once, for ten minutes; `rutter open` prints another)", session::link(address, &code)))
}

/// Waits for a signal, for `rutter stop`, or until the server is no longer needed.
async fn until_ended(args: &ServeArgs, runtime: &LocalRuntime, places: &ConnectionSlots) -> anyhow::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut needed = Instant::now();
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            () = runtime.stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(LOOK), if args.idle.is_some() => {}
        }
        if runtime.connections() > 0 || places.taken() > 0 || is_busy(runtime).await {
            needed = Instant::now();
        }
        if args.idle.is_some_and(|seconds| needed.elapsed() >= Duration::from_secs(seconds)) {
            return Ok(());
        }
    }
}

/// Whether executions are active or open, or timers are pending.
async fn is_busy(runtime: &LocalRuntime) -> bool {
    if runtime.app.active_count() > 0 || has_timers(runtime).await {
        return true;
    }
    let tenant = TenantId::new("default");
    let listed = runtime.app.query.executions(&tenant, HistoryFilter::Incomplete.filter(), Pagination::first(1)).await;
    // If the database cannot be read, or is gone, the server is not needed.
    listed.is_ok_and(|listing| !listing.items.is_empty())
}

async fn has_timers(runtime: &LocalRuntime) -> bool {
    match &runtime.runtime.tools {
        Some(tools) => tools.builtins.has_timers().await.unwrap_or(false),
        None => false,
    }
}

pub(crate) fn stop(args: &StopServerArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let config = store::config(&args.store)?;
    let answer = daemon::ask(&config.directory, &SocketRequest::Stop)?;
    let Some(answer) = answer else {
        return Err(CommandRefusal::new("server.none", "no server runs for this database").into());
    };
    match args.store.json {
        true => terminal.answer(&format!("{answer}\n"))?,
        false => terminal.remark(&format!("process {} stops when the calls in flight have ended\n", answer["pid"])),
    }
    Ok(CommandExit::Done)
}
