//! What every request to the API shares: the application, limits, caches and streams.

use crate::idempotent_replies::IdempotentReplies;
use crate::rate_limit::{RequestRate, RequestRateLimiter};
use crate::response_cache::ResponseCache;
use crate::streams::StreamLimiter;
use rutter_app::app::App;
use rutter_app::auth::AccessScopes;
use rutter_app::limits::STREAMS_PER_PRINCIPAL;
use rutter_app::principal::{Credential, Principal};
use rutter_core::id::TenantId;
use rutter_observe::live::LiveLedger;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Clone, Debug)]
pub struct ApiSettings {
    pub reads: RequestRate,
    pub changes: RequestRate,
    /// Event streams one principal may have open.
    pub streams_per_principal: usize,
}

impl Default for ApiSettings {
    fn default() -> ApiSettings {
        ApiSettings {
            reads: RequestRate { per_second: 100, burst: 200 },
            changes: RequestRate { per_second: 20, burst: 40 },
            streams_per_principal: STREAMS_PER_PRINCIPAL,
        }
    }
}

pub struct ApiState {
    /// The document that describes every route.
    pub(crate) openapi: &'static Map<String, Value>,
    pub(crate) app: Arc<App>,
    pub(crate) live: Arc<LiveLedger>,
    pub(crate) rate_limiter: RequestRateLimiter,
    pub(crate) idempotent_replies: IdempotentReplies,
    pub(crate) response_cache: ResponseCache,
    pub(crate) streams: StreamLimiter,
    /// Ends the event streams at shutdown.
    pub(crate) closing: CancellationToken,
    /// The principal of unauthenticated requests to public routes.
    pub(crate) anonymous: Principal,
}

impl ApiState {
    pub fn new(
        app: Arc<App>,
        live: Arc<LiveLedger>,
        settings: ApiSettings,
        openapi: &'static Map<String, Value>,
        closing: CancellationToken,
    ) -> Arc<ApiState> {
        let stranger =
            Principal::new(TenantId::new("default"), "anybody", AccessScopes::new(), Credential::Anonymous {});
        Arc::new(ApiState {
            openapi,
            live,
            rate_limiter: RequestRateLimiter::new(settings.reads, settings.changes),
            idempotent_replies: IdempotentReplies::default(),
            response_cache: ResponseCache::default(),
            streams: StreamLimiter::new(settings.streams_per_principal, Arc::clone(&app.metrics)),
            closing,
            anonymous: stranger,
            app,
        })
    }

    /// The number of open event streams.
    pub fn streams(&self) -> usize {
        self.streams.open()
    }
}

impl std::fmt::Debug for ApiState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiState").field("rate_limiter", &self.rate_limiter).finish_non_exhaustive()
    }
}
