//! `rutter bench http`: the API over real connections, to look and to change, beside the same without HTTP.
//!
//! Server and clients share this process and its cores, so that requests per second are a lower bound.

mod draw;
mod line;

use super::engine::{Idle, median, one, save, start_of, tenant};
use super::{Measured, Target, as_json, as_table, open};
use crate::Exit;
use crate::args::BenchHttpArgs;
use crate::terminal::Terminal;
use anyhow::{Context, ensure};
use line::Line;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PlanId, WorkerId};
use rutter_core::port::bell::Silence;
use rutter_core::port::query::Query;
use rutter_engine::{Clock, Engine, Options};
use rutter_server::api;
use rutter_server::api::pace::Rate;
use rutter_server::auth::Token;
use rutter_server::auth::admit::COOKIE;
use rutter_server::auth::scope;
use rutter_server::desk::{Desk, Parts, Settings};
use rutter_server::guest::{Guest, Role};
use rutter_server::http;
use rutter_server::http::door::Door;
use rutter_tools::guard::SystemResolver;
use rutter_tools::post::Carrier;
use serde_json::json;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const SECRET: &str = "rutter_bench_secret_of_nobody_at_all";
/// Executions that are carried out at once to fill the database.
const FILLERS: usize = 64;
/// What was asked for: so many looks a second on two cores, with sixteen connections.
const LOOKS: f64 = 2_000.0;
/// How long a page may take to be made.
const PAGE_MS: f64 = 50.0;

pub(crate) fn run(args: &BenchHttpArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let scratch = tempfile::Builder::new().prefix("rutter-bench-").tempdir_in(&args.dir);
    let scratch = scratch.with_context(|| format!("no scratch directory in {}", args.dir.display()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let measured = runtime.block_on(measure(scratch.path(), args, &|text| terminal.remark(text)))?;
    match args.json {
        true => terminal.answer(&format!("{:#}\n", as_json(&measured)))?,
        false => terminal.answer(&as_table(&measured))?,
    }
    Ok(Exit::Done)
}

async fn measure(
    directory: &Path,
    args: &BenchHttpArgs,
    say: &dyn Fn(&str),
) -> anyhow::Result<Vec<Measured>> {
    let during = Duration::from_secs(args.seconds);
    let clock = Clock::system();
    let store = Arc::new(open(directory)?);
    let options = Options::new(WorkerId::new("bench"));
    let engine = Engine::run(store.clone(), store.clone(), Arc::new(Idle::new()), clock, options).await?;
    let plan = save(&engine).await?;
    say(&format!("{} executions for the database\n", args.executions));
    let execution = fill(&engine, &plan, args.executions).await?;
    let desk = Desk::open(Parts {
        engine: engine.clone(),
        store: store.clone(),
        tools: Arc::new(Idle::new()),
        post: Arc::new(Carrier::new(&[], Arc::new(SystemResolver))?),
        bell: Arc::new(Silence),
        collector: None,
        clock,
        tokens: vec![Token::new("bench", Role::Operator, SECRET)],
        settings: Settings { ask_at_client: false },
        seal: [7; 32],
    })
    .await?;
    let closing = CancellationToken::new();
    let beside = tokio::spawn(Arc::clone(&desk).run(closing.clone()));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let unpaced = Rate { per_second: 0, burst: 0 };
    let settings = api::Settings { look: unpaced, change: unpaced, ..api::Settings::default() };
    let door = Arc::new(Door::new(Vec::new(), Arc::clone(&desk.auth)));
    let router = http::everything(&desk, door, settings, &closing);
    let served = tokio::spawn(http::serve(listener, router, closing.clone()));

    let look = request(address, "GET", &format!("/api/v1/executions/{execution}"), "");
    let body = json!({ "plan_id": plan }).to_string();
    let change = request(address, "POST", "/api/v1/executions", &body);
    let identity = Identity { tenant: tenant(), execution: execution.clone() };
    say("analytics\n");
    let mut measured = vec![counted(&desk).await?];
    for connections in [1, 16, 128] {
        say(&format!("{connections} connections\n"));
        let (store, identity) = (store.clone(), identity.clone());
        let read = repeat(connections, during, move || {
            let (store, identity) = (store.clone(), identity.clone());
            async move { store.execution(&identity).await.map(drop).map_err(anyhow::Error::from) }
        });
        let read = read.await?;
        let asked = ask(address, connections, during, &look, 200).await?;
        measured.extend(compared("look", connections, &asked, (&read, "x its row read from the store")));
        let (engine, plan) = (engine.clone(), plan.clone());
        let started = repeat(connections, during, move || {
            let (engine, plan) = (engine.clone(), plan.clone());
            async move { engine.start(start_of(&plan)).await.map(drop).map_err(anyhow::Error::from) }
        });
        let started = started.await?;
        let asked = ask(address, connections, during, &change, 201).await?;
        measured.extend(compared("start an execution", connections, &asked, (&started, "x without HTTP")));
    }
    say("pages\n");
    measured.extend(pages(&desk, address, during).await?);
    measured.extend(draw::measure());
    closing.cancel();
    served.await??;
    beside.await?;
    engine.close().await;
    Ok(measured)
}

/// How fast analytics count a ledger they have not seen, while alerts read it too.
async fn counted(desk: &Desk) -> anyhow::Result<Measured> {
    let (entries, began) = (desk.feed.size(&tenant()).await?, Instant::now());
    while desk.insight.place() < entries {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let value = entries as f64 / began.elapsed().as_secs_f64();
    let what = format!("analytics: {entries} entries counted from the beginning");
    Ok(Measured { what, value, unit: "/s", ratio: None })
}

/// Fills the database and returns one of the executions.
async fn fill(engine: &Engine, plan: &PlanId, count: u64) -> anyhow::Result<ExecutionId> {
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let together = left.min(FILLERS as u64);
        let ended = futures::future::join_all((0..together).map(|_| one(engine, plan))).await;
        ended.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        left -= together;
    }
    one(engine, plan).await
}

fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> Vec<u8> {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {SECRET}");
    let content = match body {
        "" => String::new(),
        body => format!("\r\nContent-Type: application/json\r\nContent-Length: {}", body.len()),
    };
    format!("{head}{content}\r\n\r\n{body}").into_bytes()
}

/// What a number of askers got done.
struct Asked {
    per_second: f64,
    /// Milliseconds, sorted.
    took: Vec<f64>,
}

impl Asked {
    fn at(&self, share: f64) -> f64 {
        self.took.get(((self.took.len().saturating_sub(1)) as f64 * share) as usize).copied().unwrap_or(0.0)
    }
}

/// Asks the same over so many connections; another status than the expected one ends it.
async fn ask(
    address: SocketAddr,
    connections: u64,
    during: Duration,
    request: &[u8],
    expected: u16,
) -> anyhow::Result<Asked> {
    let mut lines = Vec::new();
    for _ in 0..connections {
        lines.push(Line::open(address).await?);
    }
    let began = Instant::now();
    let asking = lines.into_iter().map(|mut line| {
        let request = request.to_vec();
        tokio::spawn(async move {
            let mut took = Vec::new();
            while began.elapsed() < during {
                let asked = Instant::now();
                let status = line.ask(&request).await?;
                ensure!(status == expected, "{status}: {}", String::from_utf8_lossy(line.body()));
                took.push(asked.elapsed().as_secs_f64() * 1_000.0);
            }
            Ok(took)
        })
    });
    gathered(asking.collect(), began).await
}

/// The same without HTTP: so many at once do it again and again.
async fn repeat<F>(
    askers: u64,
    during: Duration,
    ask: impl Fn() -> F + Clone + Send + 'static,
) -> anyhow::Result<Asked>
where
    F: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let began = Instant::now();
    let asking = (0..askers).map(|_| {
        let ask = ask.clone();
        tokio::spawn(async move {
            let mut took = Vec::new();
            while began.elapsed() < during {
                let asked = Instant::now();
                ask().await?;
                took.push(asked.elapsed().as_secs_f64() * 1_000.0);
            }
            Ok(took)
        })
    });
    gathered(asking.collect(), began).await
}

async fn gathered(
    asking: Vec<tokio::task::JoinHandle<anyhow::Result<Vec<f64>>>>,
    began: Instant,
) -> anyhow::Result<Asked> {
    let mut took = Vec::new();
    for asking in asking {
        took.extend(asking.await??);
    }
    let per_second = took.len() as f64 / began.elapsed().as_secs_f64();
    took.sort_by(f64::total_cmp);
    Ok(Asked { per_second, took })
}

fn compared(
    what: &str,
    connections: u64,
    asked: &Asked,
    (bare, beside): (&Asked, &'static str),
) -> Vec<Measured> {
    let name = |part: &str| format!("{what}, {connections} at once{part}");
    let mut measured = vec![Measured {
        what: name(""),
        value: asked.per_second,
        unit: "/s",
        ratio: Some((asked.per_second / bare.per_second, beside, Target::None)),
    }];
    if what == "look" && connections == 16 {
        let ratio = (asked.per_second / LOOKS, "x 2,000 a second", Target::AtLeast(1.0));
        measured.push(Measured {
            what: name(", as asked for"),
            value: asked.per_second,
            unit: "/s",
            ratio: Some(ratio),
        });
    }
    for (part, share) in [(", median", 0.5), (", 99 of 100", 0.99)] {
        measured.push(Measured { what: name(part), value: asked.at(share), unit: "ms", ratio: None });
    }
    measured
}

/// The pages people open first, as a browser that was let in gets them.
async fn pages(desk: &Desk, address: SocketAddr, during: Duration) -> anyhow::Result<Vec<Measured>> {
    let operator = Guest { scopes: scope::of_operator(), ..Guest::local(tenant(), "bench", BTreeSet::new()) };
    let told = |fault: rutter_server::fault::Fault| anyhow::anyhow!("{}", fault.message);
    let code = desk.auth.link(&operator).await.map_err(told)?;
    let entered = desk.auth.enter_by_link(&code, Ipv4Addr::LOCALHOST.into()).await.map_err(told)?;
    let cookie = entered.map_err(|unknown| anyhow::anyhow!("{unknown:?}"))?;
    let mut measured = Vec::new();
    for (what, path) in [
        ("overview", "/"),
        ("executions", "/executions"),
        ("journal", "/journal"),
        ("analytics", "/analytics"),
    ] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {COOKIE}={cookie}");
        let request = format!("{head}\r\nAccept: text/html\r\n\r\n").into_bytes();
        let asked = ask(address, 1, during, &request, 200).await?;
        let value = median(asked.took);
        let ratio = Some((value / PAGE_MS, "of 50 ms", Target::AtMost(1.0)));
        measured.push(Measured { what: format!("page: {what}"), value, unit: "ms", ratio });
    }
    Ok(measured)
}
