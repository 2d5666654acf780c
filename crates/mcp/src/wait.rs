//! Waits for an execution until it ends or waits for a person, for a bounded time, with progress reports.

use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::wording;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionSnapshot;
use rutter_core::time::Millis;
use std::time::Duration;
use tokio::time::Instant;

/// Interval of progress reports.
const REPORT_EVERY: Duration = Duration::from_secs(1);

pub(crate) async fn settled(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    span: Duration,
) -> Result<ExecutionSnapshot, AppError> {
    let deadline = Instant::now() + span;
    let (app, caller) = (&request.app, request.principal());
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let turn = Millis(left.min(REPORT_EVERY).as_millis() as u64);
        let rested = tokio::select! {
            rested = app.wait_for(&caller, identity, turn) => rested?,
            () = request.gone.cancelled() => None,
        };
        let view = app.view(identity).await?;
        let ends = rested.is_some() || left <= REPORT_EVERY || request.gone.is_cancelled();
        if !span.is_zero() {
            request.progress(view.settled, view.total, &wording::summary(&view)).await;
        }
        if ends {
            return Ok(view);
        }
    }
}
