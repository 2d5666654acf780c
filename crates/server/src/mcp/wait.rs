//! Waiting for an execution: until it ends or needs somebody, a bounded while, with progress for whoever waits.

use crate::fault::Fault;
use crate::limits::WAIT_MAX;
use crate::mcp::visit::Visit;
use crate::words;
use rutter_core::execution::Identity;
use rutter_core::execution::view::View;
use rutter_core::time::Millis;
use std::time::Duration;
use tokio::time::Instant;

/// How often whoever waits hears something.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// How long to wait, as asked for or by default.
pub(crate) fn span(seconds: Option<u64>, default: Duration) -> Result<Duration, Fault> {
    match seconds.map(Duration::from_secs) {
        Some(span) if span > WAIT_MAX => {
            let message =
                format!("wait_seconds is at most {}, this is {}", WAIT_MAX.as_secs(), span.as_secs());
            Err(Fault::new("server.arguments", message).hint("call `status` again to wait on"))
        }
        span => Ok(span.unwrap_or(default)),
    }
}

pub(crate) async fn settled(visit: &Visit, identity: &Identity, span: Duration) -> Result<View, Fault> {
    let deadline = Instant::now() + span;
    let engine = &visit.desk.engine;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let turn = Millis(left.min(REPORT_EVERY).as_millis() as u64);
        let rested = tokio::select! {
            rested = engine.wait(identity, turn) => rested?,
            () = visit.gone.cancelled() => None,
        };
        let view = engine.view(identity).await?;
        let ends = rested.is_some() || left <= REPORT_EVERY || visit.gone.is_cancelled();
        if !span.is_zero() {
            visit.progress(view.settled, view.total, &words::summary(&view)).await;
        }
        if ends {
            return Ok(view);
        }
    }
}
