//! The service itself: which version it is, whether it can do its work, what it offers.

use crate::api::call::Call;
use crate::api::openapi;
use crate::api::reply::Reply;
use crate::api::route::{About, Nothing, Route};
use crate::fault::Fault;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            About::get("/version", "getVersion", "Which version this is").open().tag("service"),
            version,
        ),
        Route::new(
            About::get("/readyz", "getReadiness", "Whether it can do its work")
                .open()
                .success(&[200])
                .tag("service"),
            readiness,
        ),
        Route::new(
            About::get("/openapi.json", "getOpenapi", "This document").open().tag("service"),
            document,
        ),
        Route::new(About::get("/me", "getMe", "Who you are, and what you may do").tag("service"), me),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct Version {
    name: &'static str,
    version: &'static str,
    api: &'static str,
}

async fn version(_: Call, _: Nothing) -> Result<Reply<Version>, Fault> {
    Ok(Reply::ok(Version { name: "rutter", version: env!("CARGO_PKG_VERSION"), api: "v1" }))
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Readiness {
    is_ready: bool,
    /// Executions in memory.
    executions: usize,
    /// Executions this process cannot carry on.
    broken: usize,
    /// Requests to write that wait for their turn.
    queue: u64,
    schema: u64,
}

/// Ready when the store can be written and this worker may drive. Otherwise it says why not.
pub(crate) async fn readiness(call: Call, _: Nothing) -> Result<Reply<Readiness>, Fault> {
    let desk = call.desk();
    let health = desk.proof.health().await?;
    if let Some(why) = health.trouble {
        let fault = Fault::new("store.read_only", format!("nothing can be written: {why}"));
        return Err(Fault { retryable: true, ..fault });
    }
    if call.api.closing.is_cancelled() {
        return Err(rutter_engine::Error::Closing.into());
    }
    if !desk.engine.may_drive() {
        let message = "this worker may not drive executions now: it could not renew its right in time";
        return Err(Fault { retryable: true, ..Fault::new("store.fenced", message) });
    }
    Ok(Reply::ok(Readiness {
        is_ready: true,
        executions: desk.engine.live(),
        broken: desk.engine.broken().len(),
        queue: health.queue,
        schema: health.schema,
    }))
}

async fn document(_: Call, _: Nothing) -> Result<Reply<Map<String, Value>>, Fault> {
    Ok(Reply::ok(openapi::document().clone()))
}

#[derive(Debug, Serialize, JsonSchema)]
struct Me {
    tenant: String,
    name: String,
    /// In whose name things are done: `agent` or `person`.
    party: String,
    scopes: Vec<String>,
}

async fn me(call: Call, _: Nothing) -> Result<Reply<Me>, Fault> {
    let guest = &call.guest;
    Ok(Reply::ok(Me {
        tenant: guest.tenant.to_string(),
        name: guest.name.clone(),
        party: crate::api::execution::word(&guest.actor().party),
        scopes: guest.scopes.iter().map(ToString::to_string).collect(),
    }))
}
