//! Keeps one request from hurting the others: a panic becomes an answer, and too many at once are refused.

use futures::FutureExt;
use rmcp::ErrorData;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Answers for a request whatever happens in it.
pub async fn guarded<T>(
    places: &Arc<Semaphore>,
    request: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    let Ok(_place) = Arc::clone(places).try_acquire_owned() else {
        return Err(ErrorData::internal_error("server.busy: too many requests at once; try again", None));
    };
    unpanicked(request).await
}

/// The same for requests that stay, such as subscriptions, and must not take the place of those that end.
pub async fn unpanicked<T>(request: impl Future<Output = Result<T, ErrorData>>) -> Result<T, ErrorData> {
    match AssertUnwindSafe(request).catch_unwind().await {
        Ok(answer) => answer,
        Err(_) => {
            tracing::error!("a request panicked; whoever asked was told so");
            let message = "server.internal: this request failed inside Rutter; whether it changed anything is not \
                           known: look with `status`";
            Err(ErrorData::internal_error(message, None))
        }
    }
}
