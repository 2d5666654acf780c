//! Plans of ten steps that do nothing, one and many at a time, compared with the bare store.
//!
//! The tool is in this process and responds at once, so that only Rutter is measured: decide, record, call.

pub(crate) mod echo;
mod idle;
mod recovery;

use crate::args::EngineArgs;
use crate::baseline;
use crate::measurement::{BenchTarget, Measurement};
use crate::store::write;
use anyhow::Context;
pub(crate) use idle::IdleTools;
use rutter_app::runtime::{Runtime, RuntimeOptions, ToolSource};
use rutter_core::actor::Actor;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use rutter_engine::submit::PlanText;
use rutter_engine::{Engine, StartRequest};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const STEPS: u64 = 10;
/// What an execution of ten steps appends: opening, start, two entries for each step, and the end.
const ENTRIES: f64 = (2 * STEPS + 3) as f64;
const ROUNDS: usize = 3;

/// The memory of `concurrency` concurrent executions, in bytes.
pub(crate) fn memory_of(directory: &Path, concurrency: u64, seconds: u64) -> anyhow::Result<u64> {
    let carried =
        runtime()?.block_on(carry_out(&directory.join("memory"), concurrency, Duration::from_secs(seconds)))?;
    Ok(carried.resident)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("no runtime")
}

pub(crate) fn run(args: &EngineArgs, directory: &Path) -> anyhow::Result<Vec<Measurement>> {
    let runtime = runtime()?;
    let say = |text: &str| eprintln!("{text}");
    let during = Duration::from_secs(args.common.seconds);
    let mut measured = Vec::new();
    for concurrency in [1, 100, 1_000] {
        // Rounds alternate with what they are compared with, because the speed of the machine may change.
        let (mut ours, mut bare, mut syncs, mut latency) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            say(&format!("{concurrency} at once, round {} of {ROUNDS}", round + 1));
            syncs.push(baseline::syncs_per_second(directory, during / 2)?);
            let store = directory.join(format!("store-{concurrency}-{round}"));
            bare.push(runtime.block_on(write::entries_per_second(&store, concurrency, during))?);
            let engine = directory.join(format!("engine-{concurrency}-{round}"));
            let carried = runtime.block_on(carry_out(&engine, concurrency, during))?;
            ours.push(carried.executions * STEPS as f64);
            latency.push(carried.step);
        }
        let (steps, bare, syncs) = (median(ours), median(bare), median(syncs));
        let step = median(latency);
        let entries = steps / STEPS as f64 * ENTRIES;
        let ratio = match concurrency {
            1 => (step * syncs, "fdatasync per step", BenchTarget::AtMost(1.5)),
            _ => (entries / bare, "x bare store's entries", BenchTarget::AtLeast(0.6)),
        };
        let what = |what: &str| format!("{what}, {concurrency} at once");
        measured.push(Measurement { what: what("steps"), value: steps, unit: "/s", ratio: Some(ratio) });
        measured.push(Measurement { what: what("one step"), value: step * 1_000.0, unit: "ms", ratio: None });
        let ratio = (entries / syncs, "x fdatasync", BenchTarget::None);
        measured.push(Measurement { what: what("entries"), value: entries, unit: "/s", ratio: Some(ratio) });
        let memory = memory_of_process(concurrency, args)? as f64 / 1_048_576.0;
        let ratio = Some((memory, "MiB in all", BenchTarget::AtMost(60.0)));
        measured.push(Measurement { what: what("memory"), value: memory, unit: "MiB", ratio });
    }
    measured.push(recovery::measure(&directory.join("recovery"), &say)?);
    measured.extend(echo::measure(&directory.join("echo"), &say)?);
    Ok(measured)
}

struct EngineThroughput {
    /// Per second.
    executions: f64,
    /// Seconds for one step, if one execution runs at a time; the time of an execution divided by its steps.
    step: f64,
    resident: u64,
}

/// Runs executions, `concurrency` at a time, each followed by another.
async fn carry_out(directory: &Path, concurrency: u64, during: Duration) -> anyhow::Result<EngineThroughput> {
    let runtime = open(directory, IdleTools::new()).await?;
    let engine = runtime.engine().clone();
    let plan = save(&engine).await?;
    let began = Instant::now();
    let mut lines = Vec::new();
    for _ in 0..concurrency {
        let (engine, plan) = (engine.clone(), plan.clone());
        lines.push(tokio::spawn(async move {
            let mut took = Vec::new();
            while began.elapsed() < during {
                let start = Instant::now();
                one(&engine, &plan).await?;
                took.push(start.elapsed().as_secs_f64());
            }
            Ok::<_, anyhow::Error>(took)
        }));
    }
    let mut took = Vec::new();
    for line in lines {
        took.extend(line.await??);
    }
    let executions = took.len() as f64 / began.elapsed().as_secs_f64();
    let resident = resident()?;
    drop(engine);
    runtime.close().await;
    std::fs::remove_dir_all(directory)?;
    Ok(EngineThroughput { executions, step: median(took) / STEPS as f64, resident })
}

/// An installation with this tool alone, without its background work.
async fn open(directory: &Path, tool: IdleTools) -> anyhow::Result<Runtime> {
    let tools = ToolSource::Gateway(Arc::new(tool));
    Ok(Runtime::prepare(RuntimeOptions { tools, ..RuntimeOptions::new(directory) }).await?)
}

async fn save(engine: &Engine) -> anyhow::Result<PlanId> {
    Ok(engine.submit(plan_text(), None, None, Actor::agent("bench")).await?.id)
}

pub(super) fn plan_text() -> PlanText {
    let steps = (0..STEPS).map(|at| match at {
        0 => json!({ "id": "s0", "tool": "bench.idle" }),
        _ => json!({ "id": format!("s{at}"), "tool": "bench.idle", "depends_on": [format!("s{}", at - 1)] }),
    });
    let plan = json!({ "name": "bench", "steps": steps.collect::<Vec<_>>() });
    PlanText {
        tenant: tenant(),
        source: plan.to_string().into_bytes(),
        format: DocumentFormat::Json,
        driver: Driver::Server,
    }
}

fn start_of(plan: &PlanId) -> StartRequest {
    StartRequest {
        tenant: tenant(),
        plan: plan.clone(),
        revision: None,
        inputs: Arc::new(json!({})),
        driver: Driver::Server,
        actor: Actor::agent("bench"),
        request: None,
    }
}

/// From the request to the recorded end.
async fn one(engine: &Engine, plan: &PlanId) -> anyhow::Result<ExecutionId> {
    let started = engine.start(start_of(plan)).await?;
    let identity = rutter_core::execution::ExecutionIdentity { tenant: tenant(), execution: started.execution.clone() };
    engine.wait(&identity, rutter_core::time::Millis::seconds(60)).await?.context("an execution did not end")?;
    Ok(started.execution)
}

pub(super) fn tenant() -> TenantId {
    TenantId::new("default")
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Measured in its own process: this one contains more than the engine.
fn memory_of_process(concurrency: u64, args: &EngineArgs) -> anyhow::Result<u64> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(["engine", "--memory-of"]).arg(concurrency.to_string());
    command.arg("--seconds").arg(args.common.seconds.to_string()).arg("--dir").arg(&args.common.dir);
    let output = command.output().context("cannot start a process to measure its memory")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
}

/// The resident memory of this process, in bytes.
fn resident() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status").context("memory is measured on Linux only")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib * 1_024)
}
