//! The service itself: version, readiness, OpenAPI document, current principal.

use crate::reply::ApiReply;
use crate::request::ApiRequest;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use rutter_app::error::AppError;
use rutter_core::text::spelled;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::new(
            RouteSpec::get("/version", "getVersion", "The version of the server").public().tag("service"),
            version,
        ),
        ApiRoute::new(
            RouteSpec::get("/readyz", "getReadiness", "Whether the server is ready")
                .public()
                .success(&[200])
                .tag("service"),
            readiness,
        ),
        ApiRoute::new(RouteSpec::get("/openapi.json", "getOpenapi", "This document").public().tag("service"), document),
        ApiRoute::new(RouteSpec::get("/me", "getMe", "The current principal and its scopes").tag("service"), me),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct VersionJson {
    name: &'static str,
    version: &'static str,
    api: &'static str,
}

async fn version(_: ApiRequest, _: NoParameters) -> Result<ApiReply<VersionJson>, AppError> {
    Ok(ApiReply::ok(VersionJson { name: "rutter", version: env!("CARGO_PKG_VERSION"), api: "v1" }))
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Readiness {
    is_ready: bool,
    /// Executions in memory.
    executions: usize,
    /// Executions this process cannot run.
    broken: usize,
    /// Waiting write requests.
    queue: u64,
    schema: u64,
}

/// Ready when the store is writable and this worker may drive executions. The error says why not.
pub(crate) async fn readiness(call: ApiRequest, _: NoParameters) -> Result<ApiReply<Readiness>, AppError> {
    let app = call.app();
    let health = app.health().await?;
    if let Some(why) = health.trouble {
        let error = AppError::new("store.read_only", format!("the store is read-only: {why}"));
        return Err(AppError { retryable: true, ..error });
    }
    if call.api.closing.is_cancelled() {
        return Err(AppError { retryable: true, ..AppError::new("engine.closing", "the server is shutting down") });
    }
    if !app.may_drive() {
        let message = "this worker may not drive executions: it could not renew its leases in time";
        return Err(AppError { retryable: true, ..AppError::new("store.fenced", message) });
    }
    Ok(ApiReply::ok(Readiness {
        is_ready: true,
        executions: app.active_count(),
        broken: app.broken().len(),
        queue: health.queue,
        schema: health.schema,
    }))
}

async fn document(call: ApiRequest, _: NoParameters) -> Result<ApiReply<Map<String, Value>>, AppError> {
    Ok(ApiReply::ok(call.api.openapi.clone()))
}

#[derive(Debug, Serialize, JsonSchema)]
struct CurrentPrincipalJson {
    tenant: String,
    name: String,
    /// The kind of actor: `agent` or `person`.
    party: String,
    scopes: Vec<String>,
}

async fn me(call: ApiRequest, _: NoParameters) -> Result<ApiReply<CurrentPrincipalJson>, AppError> {
    let principal = &call.principal;
    Ok(ApiReply::ok(CurrentPrincipalJson {
        tenant: principal.tenant.to_string(),
        name: principal.name.clone(),
        party: spelled(&principal.actor().party),
        scopes: principal.scopes.iter().map(ToString::to_string).collect(),
    }))
}
