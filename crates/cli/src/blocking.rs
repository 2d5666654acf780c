//! Runs asynchronous work to its end on a runtime of its own.

use anyhow::Context;
use std::time::Duration;

/// Runs an async command.
pub(crate) fn block_on<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("no runtime")?;
    let ended = runtime.block_on(command);
    runtime.shutdown_timeout(Duration::from_secs(2));
    ended
}
