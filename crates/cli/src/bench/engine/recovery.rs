//! How long it takes until every execution that a dead process left is accounted for.

use super::idle::Idle;
use super::{Measured, Target, save, start_of, tenant};
use crate::bench::open;
use anyhow::Context;
use rutter_core::id::WorkerId;
use rutter_core::port::query::Query;
use rutter_engine::{Clock, Engine, Options};
use rutter_store::Store;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const OPEN: u64 = 10_000;
const AT_ONCE: u64 = 100;
const SECONDS_MAX: f64 = 5.0;

pub(super) fn measure(directory: &Path, say: &dyn Fn(&str)) -> anyhow::Result<Measured> {
    say(&format!("{OPEN} executions are left in the middle of a call"));
    leave(directory)?;
    say("and taken up");
    let runtime = runtime()?;
    let began = Instant::now();
    runtime.block_on(async {
        let store = Arc::new(open(directory)?);
        let engine = run(&store, "second", Idle::new()).await?;
        // Nobody knows whether the calls were made, and the tool is one that must not be called twice.
        while store.totals(&tenant()).await?.executions.get("waiting") != Some(&OPEN) {
            anyhow::ensure!(began.elapsed() < Duration::from_secs(120), "not all executions were taken up");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        engine.close().await;
        Ok(())
    })?;
    let took = began.elapsed().as_secs_f64();
    drop(runtime);
    std::fs::remove_dir_all(directory)?;
    let ratio = Some((took, "s until each is driven or waits", Target::AtMost(SECONDS_MAX)));
    Ok(Measured { what: format!("recovery of {OPEN}"), value: OPEN as f64 / took, unit: "/s", ratio })
}

/// Starts executions whose first call never ends, and lets go of everything.
fn leave(directory: &Path) -> anyhow::Result<()> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let store = Arc::new(open(directory)?);
        let engine = run(&store, "first", Idle::that_hangs()).await?;
        let plan = save(&engine).await?;
        let mut lines = Vec::new();
        for _ in 0..AT_ONCE {
            let (engine, plan) = (engine.clone(), plan.clone());
            lines.push(tokio::spawn(async move {
                for _ in 0..OPEN / AT_ONCE {
                    engine.start(start_of(&plan)).await?;
                }
                Ok::<_, rutter_engine::Error>(())
            }));
        }
        for line in lines {
            line.await??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    // Nothing is closed: whatever was under way is simply gone.
    runtime.shutdown_timeout(Duration::from_secs(10));
    Ok(())
}

async fn run(store: &Arc<Store>, worker: &str, tool: Idle) -> anyhow::Result<Engine> {
    let options = Options::new(WorkerId::new(worker));
    let clock = Clock::system();
    Ok(Engine::run(store.clone(), store.clone(), Arc::new(tool), clock, options).await?)
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().context("no runtime")
}
