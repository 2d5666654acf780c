//! `rutter serve`: the process that has the database, for agents and people to come to. `rutter stop` ends it.

use crate::Exit;
use crate::args::serve::{ServeArgs, StopArgs};
use crate::daemon;
use crate::failure::Refusal;
use crate::helm::{self, Helm};
use crate::store;
use crate::terminal::Terminal;
use rutter_core::id::TenantId;
use rutter_core::port::query::{History, Page};
use rutter_server::auth::{Token, enter};
use rutter_server::guest::Guest;
use rutter_server::http::door::Door;
use rutter_server::http::listen::{Places, serve_in};
use rutter_server::socket::Greeting;
use rutter_server::{http, keys};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// How often it is looked whether anybody still needs a server that was started for a client.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &ServeArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    if args.background {
        // Whoever started this may end; signals to its terminal are none of ours.
        let _ = rustix::process::setsid();
    }
    helm::on_runtime(async {
        let helm = Helm::open(&args.store, &args.tools).await?;
        let served = serve(args, &helm, terminal).await;
        helm.close().await;
        served
    })
}

async fn serve(args: &ServeArgs, helm: &Helm, terminal: &Terminal) -> anyhow::Result<Exit> {
    let closing = CancellationToken::new();
    let config = &helm.config.server;
    let address = args.listen.unwrap_or(config.listen);
    check_address(address, &config.tokens()?)?;
    let places = Places::default();
    let mut pages = None;
    let bound = match args.no_http {
        true => None,
        false => Some(TcpListener::bind(address).await),
    };
    let link = match bound {
        None => None,
        Some(Ok(listener)) => {
            let link = format!("http://{}", listener.local_addr()?);
            let door = Arc::new(Door::new(config.hosts.clone(), Arc::clone(&helm.auth)));
            let router = http::everything(&helm.desk, door, config.api(), &closing);
            pages = Some(tokio::spawn(serve_in(places.clone(), listener, router, closing.clone())));
            let _ = helm.desk.link.set(link.clone());
            helm.desk.watch.set_link(&link);
            Some(link)
        }
        // It was started for one client, which does not need the port; another directory's server may have it.
        Some(Err(error)) if args.background => {
            tracing::warn!("no HTTP: {address}: {error}");
            None
        }
        Some(Err(error)) => {
            let refusal = Refusal::new("server.address", format!("cannot listen on {address}: {error}"));
            return Err(refusal.with_hint("name another with --listen, or use --no-http").into());
        }
    };
    tell(args, helm, link.as_deref(), terminal).await?;
    until_ended(args, helm, &places).await?;
    terminal.remark("ending; what is under way comes to its end\n");
    closing.cancel();
    if let Some(pages) = pages {
        // Streams that stay open do not keep the server from ending.
        let _ = tokio::time::timeout(Duration::from_secs(2), pages).await;
    }
    Ok(Exit::Done)
}

/// Only this machine may come in without credentials that somebody chose.
fn check_address(address: SocketAddr, tokens: &[Token]) -> Result<(), Refusal> {
    if address.ip().is_loopback() || !tokens.is_empty() {
        return Ok(());
    }
    let message = format!("{address} can be reached from elsewhere, and no tokens are configured");
    Err(Refusal::new("server.address", message)
        .with_hint("listen on 127.0.0.1, or configure [server.tokens] and [server] hosts in rutter.toml"))
}

async fn tell(args: &ServeArgs, helm: &Helm, link: Option<&str>, terminal: &Terminal) -> anyhow::Result<()> {
    let directory = &helm.config.directory;
    let token = directory.join(keys::AGENT);
    if args.store.json {
        let told = json!({ "ok": true, "pid": std::process::id(), "directory": directory, "http": link,
            "mcp": link.map(|link| format!("{link}/mcp")), "token_file": token });
        return Ok(terminal.answer(&format!("{told}\n"))?);
    }
    if args.background {
        return Ok(());
    }
    let mut text = format!("serving {}\n", directory.display());
    if let Some(link) = link {
        text += &format!("MCP over HTTP: {link}/mcp with the token in {}\n", token.display());
        text += &format!("in a browser: {}\n", entrance(helm, link, terminal).await?);
    }
    text += "MCP over pipes: rutter mcp   (claude mcp add rutter -- rutter mcp)\nCtrl-C ends it; executions go on at the next start.\n";
    terminal.remark(&text);
    Ok(())
}

/// A link that lets one browser in, where a person reads it; what is written to a log may be read by others.
async fn entrance(helm: &Helm, address: &str, terminal: &Terminal) -> anyhow::Result<String> {
    if !terminal.is_watched {
        return Ok(format!("{address}; `rutter open` prints a link that lets you in"));
    }
    let owner = Guest::owner(TenantId::new("default"), &helm.config.operator);
    let code = helm.auth.link(&owner).await.map_err(Refusal::from)?;
    Ok(format!("{}  (good once, for ten minutes; `rutter open` prints another)", enter::link(address, &code)))
}

/// Until a signal, `rutter stop`, or nobody needs it any more.
async fn until_ended(args: &ServeArgs, helm: &Helm, places: &Places) -> anyhow::Result<()> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut needed = Instant::now();
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
            () = helm.stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(LOOK), if args.idle.is_some() => {}
        }
        if helm.connections() > 0 || places.taken() > 0 || is_busy(helm).await {
            needed = Instant::now();
        }
        if args.idle.is_some_and(|seconds| needed.elapsed() >= Duration::from_secs(seconds)) {
            return Ok(());
        }
    }
}

/// Something goes on, or will: a timer, a person's answer.
async fn is_busy(helm: &Helm) -> bool {
    if helm.engine.live() > 0 || helm.builtins.has_timers() {
        return true;
    }
    let tenant = TenantId::new("default");
    let listed = helm.desk.query.executions(&tenant, History::Incomplete.filter(), Page::first(1)).await;
    // A database that cannot be read any more, or is gone, needs nobody.
    listed.is_ok_and(|listing| !listing.items.is_empty())
}

pub(crate) fn stop(args: &StopArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let config = store::config(&args.store)?;
    let answer = daemon::ask(&config.directory, &Greeting::Stop)?;
    let Some(answer) = answer else {
        return Err(Refusal::new("server.none", "nothing listens beside this database").into());
    };
    match args.store.json {
        true => terminal.answer(&format!("{answer}\n"))?,
        false => {
            terminal.remark(&format!("process {} ends when what is under way has ended\n", answer["pid"]))
        }
    }
    Ok(Exit::Done)
}
