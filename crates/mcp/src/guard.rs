//! Isolates requests: a panic becomes an error response, and too many concurrent requests are refused.

use futures::FutureExt;
use rmcp::ErrorData;
use rmcp::model::ErrorCode;
use rutter_app::error::{AppError, ErrorKind};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Responds to a request even if it panics.
pub async fn guarded<T>(
    places: &Arc<Semaphore>,
    request: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    let Ok(_place) = Arc::clone(places).try_acquire_owned() else {
        return Err(ErrorData::internal_error("server.busy: too many requests at once; try again", None));
    };
    unpanicked(request).await
}

/// The same for long-lived requests such as subscriptions, which must not take a permit of short ones.
pub async fn unpanicked<T>(request: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
    match AssertUnwindSafe(request).catch_unwind().await {
        Ok(answer) => answer,
        Err(_) => {
            tracing::error!("a request panicked; the client got an error");
            let message = "server.internal: this request failed inside Rutter; whether it changed anything is \
                           unknown: check with `status`";
            Err(ErrorData::internal_error(message, None))
        }
    }
}

/// An error as JSON-RPC: an invalid request, or an internal error.
pub(crate) fn error_of(error: AppError) -> ErrorData {
    let code = match error.kind() {
        ErrorKind::Internal | ErrorKind::Unavailable | ErrorKind::RateLimited => ErrorCode::INTERNAL_ERROR,
        _ => ErrorCode::INVALID_PARAMS,
    };
    ErrorData::new(code, format!("{}: {}", error.code, error.message), Some(error.json()))
}
