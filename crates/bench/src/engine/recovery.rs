//! How long it takes until every execution that a dead process left is driven or waits.

use super::idle::IdleTools;
use super::{open, runtime, save, start_of, tenant};
use crate::measurement::{BenchTarget, Measurement};
use std::path::Path;
use std::time::{Duration, Instant};

const OPEN: u64 = 10_000;
const AT_ONCE: u64 = 100;
const SECONDS_MAX: f64 = 5.0;

pub(super) fn measure(directory: &Path, say: &dyn Fn(&str)) -> anyhow::Result<Measurement> {
    say(&format!("{OPEN} executions are abandoned in the middle of a call"));
    leave(directory)?;
    say("and recovered");
    let runtime = runtime()?;
    let began = Instant::now();
    runtime.block_on(async {
        let runtime = open(directory, IdleTools::new()).await?;
        // Whether the calls were made is unknown, and the tool must not be called twice.
        while runtime.app.query.totals(&tenant()).await?.executions.get("waiting") != Some(&OPEN) {
            anyhow::ensure!(began.elapsed() < Duration::from_secs(120), "not all executions were recovered");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        runtime.close().await;
        Ok(())
    })?;
    let took = began.elapsed().as_secs_f64();
    drop(runtime);
    std::fs::remove_dir_all(directory)?;
    let ratio = Some((took, "s until each is driven or waits", BenchTarget::AtMost(SECONDS_MAX)));
    Ok(Measurement { what: format!("recovery of {OPEN}"), value: OPEN as f64 / took, unit: "/s", ratio })
}

/// Starts executions whose first call never ends, and abandons them.
fn leave(directory: &Path) -> anyhow::Result<()> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let engine = open(directory, IdleTools::that_hangs()).await?.engine().clone();
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
    // Nothing is closed: calls in flight are simply lost.
    runtime.shutdown_timeout(Duration::from_secs(10));
    Ok(())
}
