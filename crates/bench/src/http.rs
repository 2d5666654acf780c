//! The API over real connections, for reads and writes, compared with the same without HTTP.
//!
//! Server and clients share this process and its cores, so that requests per second are a lower bound.

mod connection;
mod draw;

use crate::args::HttpArgs;
use crate::engine::{IdleTools, median, plan_text, tenant};
use crate::measurement::{BenchTarget, Measurement};
use anyhow::{Context, ensure};
use connection::BenchConnection;
use rutter_api::admit::COOKIE;
use rutter_api::http::gate::RequestGate;
use rutter_api::http::{self, Beside};
use rutter_api::rate_limit::RequestRate;
use rutter_app::app::App;
use rutter_app::auth::AccessToken;
use rutter_app::plans::save_plan;
use rutter_app::principal::{Principal, PrincipalRole};
use rutter_app::runtime::{Runtime, RuntimeOptions, ToolSource};
use rutter_app::scope;
use rutter_app::start::NewExecution;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::plan::Driver;
use rutter_core::time::Millis;
use rutter_mcp::McpSurface;
use serde_json::json;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const SECRET: &str = "rutter_bench_secret_of_nobody_at_all";
/// Concurrent executions while the database is filled.
const FILLERS: usize = 64;
/// The target: reads per second on two cores, with sixteen connections.
const LOOKS: f64 = 2_000.0;
/// The target for rendering a page.
const PAGE_MS: f64 = 50.0;

pub(crate) fn run(args: &HttpArgs, directory: &Path) -> anyhow::Result<Vec<Measurement>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(measure(directory, args, &|text| eprintln!("{text}")))
}

async fn measure(directory: &Path, args: &HttpArgs, say: &dyn Fn(&str)) -> anyhow::Result<Vec<Measurement>> {
    let during = Duration::from_secs(args.common.seconds);
    let options = RuntimeOptions {
        tools: ToolSource::Gateway(Arc::new(IdleTools::new())),
        tokens: vec![AccessToken::new("bench", PrincipalRole::Operator, SECRET)],
        ..RuntimeOptions::new(directory)
    };
    let mut runtime = Runtime::prepare(options).await?;
    let app = Arc::clone(&runtime.app);
    let operator = runtime.operator();
    let plan = save_plan(&app, &operator, plan_text(), None, None, None).await?.id;
    say(&format!("{} executions for the database", args.executions));
    let execution = fill(&app, &operator, &plan, args.executions).await?;
    runtime.start();
    let closing = CancellationToken::new();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let unpaced = RequestRate { per_second: 0, burst: 0 };
    let settings = rutter_api::ApiSettings { reads: unpaced, changes: unpaced, ..rutter_api::ApiSettings::default() };
    let door = Arc::new(RequestGate::new(Vec::new(), Arc::clone(&app.auth)));
    let router = http::full_router(&app, door, settings, beside(&app, &closing), &closing);
    let served = tokio::spawn(http::serve(listener, router, closing.clone()));

    let look = request(address, "GET", &format!("/api/v1/executions/{execution}"), "");
    let body = json!({ "plan_id": plan }).to_string();
    let change = request(address, "POST", "/api/v1/executions", &body);
    let identity = ExecutionIdentity { tenant: tenant(), execution: execution.clone() };
    say("analytics");
    let mut measured = vec![counted(&app).await?];
    for connections in [1, 16, 128] {
        say(&format!("{connections} connections"));
        let (store, identity) = (Arc::clone(&app.query), identity.clone());
        let read = repeat(connections, during, move || {
            let (store, identity) = (store.clone(), identity.clone());
            async move { store.execution(&identity).await.map(drop).map_err(anyhow::Error::from) }
        });
        let read = read.await?;
        let asked = measure_requests(address, connections, during, &look, 200).await?;
        measured.extend(compared("look", connections, &asked, (&read, "x its row read from the store")));
        let (starter, caller, plan) = (Arc::clone(&app), operator.clone(), plan.clone());
        let started = repeat(connections, during, move || {
            let (app, caller, plan) = (Arc::clone(&starter), caller.clone(), plan.clone());
            async move { app.start(&caller, start_of(&plan)).await.map(drop).map_err(anyhow::Error::from) }
        });
        let started = started.await?;
        let asked = measure_requests(address, connections, during, &change, 201).await?;
        measured.extend(compared("start an execution", connections, &asked, (&started, "x without HTTP")));
    }
    say("pages");
    measured.extend(pages(&app, address, during).await?);
    measured.extend(draw::measure());
    closing.cancel();
    served.await??;
    runtime.close().await;
    Ok(measured)
}

/// How fast analytics process a new ledger, while alerts read it too.
async fn counted(app: &App) -> anyhow::Result<Measurement> {
    let (entries, began) = (app.feed.size(&tenant()).await?, Instant::now());
    while app.insight.position() < entries {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let value = entries as f64 / began.elapsed().as_secs_f64();
    let what = format!("analytics: {entries} entries counted from the beginning");
    Ok(Measurement { what, value, unit: "/s", ratio: None })
}

/// Fills the database and returns one of the executions.
async fn fill(app: &App, caller: &Principal, plan: &PlanId, count: u64) -> anyhow::Result<ExecutionId> {
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let together = left.min(FILLERS as u64);
        let ended = futures::future::join_all((0..together).map(|_| one(app, caller, plan))).await;
        ended.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        left -= together;
    }
    one(app, caller, plan).await
}

/// From the request to the recorded end.
async fn one(app: &App, caller: &Principal, plan: &PlanId) -> anyhow::Result<ExecutionId> {
    let started = app.start(caller, start_of(plan)).await?;
    let identity = ExecutionIdentity { tenant: tenant(), execution: started.execution.clone() };
    app.wait(&identity, Millis::seconds(60)).await?.context("an execution did not end")?;
    Ok(started.execution)
}

fn start_of(plan: &PlanId) -> NewExecution {
    let (plan, inputs) = (plan.clone(), Arc::new(json!({})));
    NewExecution { plan, revision: None, inputs, driver: Driver::Server, request_key: None }
}

fn request(address: SocketAddr, method: &str, path: &str, body: &str) -> Vec<u8> {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {SECRET}");
    let content = match body {
        "" => String::new(),
        body => format!("\r\nContent-Type: application/json\r\nContent-Length: {}", body.len()),
    };
    format!("{head}{content}\r\n\r\n{body}").into_bytes()
}

/// The result of a number of clients.
struct LoadResult {
    per_second: f64,
    /// Milliseconds, sorted.
    took: Vec<f64>,
}

impl LoadResult {
    fn at(&self, share: f64) -> f64 {
        self.took.get(((self.took.len().saturating_sub(1)) as f64 * share) as usize).copied().unwrap_or(0.0)
    }
}

/// Sends the same request over many connections; an unexpected status ends it.
async fn measure_requests(
    address: SocketAddr,
    connections: u64,
    during: Duration,
    request: &[u8],
    expected: u16,
) -> anyhow::Result<LoadResult> {
    let mut lines = Vec::new();
    for _ in 0..connections {
        lines.push(BenchConnection::open(address).await?);
    }
    let began = Instant::now();
    let asking = lines.into_iter().map(|mut line| {
        let request = request.to_vec();
        tokio::spawn(async move {
            let mut took = Vec::new();
            while began.elapsed() < during {
                let asked = Instant::now();
                let status = line.request(&request).await?;
                ensure!(status == expected, "{status}: {}", String::from_utf8_lossy(line.body()));
                took.push(asked.elapsed().as_secs_f64() * 1_000.0);
            }
            Ok(took)
        })
    });
    gathered(asking.collect(), began).await
}

/// The same without HTTP: this many tasks repeat it.
async fn repeat<F>(
    askers: u64,
    during: Duration,
    ask: impl Fn() -> F + Clone + Send + 'static,
) -> anyhow::Result<LoadResult>
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
) -> anyhow::Result<LoadResult> {
    let mut took = Vec::new();
    for asking in asking {
        took.extend(asking.await??);
    }
    let per_second = took.len() as f64 / began.elapsed().as_secs_f64();
    took.sort_by(f64::total_cmp);
    Ok(LoadResult { per_second, took })
}

fn compared(
    what: &str,
    connections: u64,
    asked: &LoadResult,
    (bare, beside): (&LoadResult, &'static str),
) -> Vec<Measurement> {
    let name = |part: &str| format!("{what}, {connections} at once{part}");
    let mut measured = vec![Measurement {
        what: name(""),
        value: asked.per_second,
        unit: "/s",
        ratio: Some((asked.per_second / bare.per_second, beside, BenchTarget::None)),
    }];
    if what == "look" && connections == 16 {
        let ratio = (asked.per_second / LOOKS, "x 2,000 a second", BenchTarget::AtLeast(1.0));
        measured.push(Measurement {
            what: name(", as asked for"),
            value: asked.per_second,
            unit: "/s",
            ratio: Some(ratio),
        });
    }
    for (part, share) in [(", median", 0.5), (", 99 of 100", 0.99)] {
        measured.push(Measurement { what: name(part), value: asked.at(share), unit: "ms", ratio: None });
    }
    measured
}

/// The main pages, as a signed-in browser gets them.
async fn pages(app: &App, address: SocketAddr, during: Duration) -> anyhow::Result<Vec<Measurement>> {
    let operator = Principal { scopes: scope::of_operator(), ..Principal::local(tenant(), "bench", BTreeSet::new()) };
    let answer = |error: rutter_app::error::AppError| anyhow::anyhow!("{}", error.message);
    let code = app.auth.create_sign_in_link(&operator).await.map_err(answer)?;
    let entered = app.auth.sign_in_by_link(&code, Ipv4Addr::LOCALHOST.into()).await.map_err(answer)?;
    let cookie = entered.map_err(|unknown| anyhow::anyhow!("{unknown:?}"))?;
    let mut measured = Vec::new();
    for (what, path) in
        [("overview", "/"), ("executions", "/executions"), ("journal", "/journal"), ("analytics", "/analytics")]
    {
        let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nCookie: {COOKIE}={cookie}");
        let request = format!("{head}\r\nAccept: text/html\r\n\r\n").into_bytes();
        let asked = measure_requests(address, 1, during, &request, 200).await?;
        let value = median(asked.took);
        let ratio = Some((value / PAGE_MS, "of 50 ms", BenchTarget::AtMost(1.0)));
        measured.push(Measurement { what: format!("page: {what}"), value, unit: "ms", ratio });
    }
    Ok(measured)
}

/// The surfaces served besides the API.
fn beside(app: &Arc<App>, closing: &CancellationToken) -> Beside {
    let mcp = rutter_mcp::http::routes(McpSurface::behind_gate(Arc::clone(app)), closing);
    Beside { mcp, pages: rutter_web::router(app, Arc::clone(&app.auth)) }
}
