//! Executions: starting them, listing them, how each stands.

use crate::api::call::Call;
use crate::api::execution::{ExecutionRow, ToldExecution, ToldStep, results};
use crate::api::reply::{List, Reply};
use crate::api::route::{About, Keyed, Nothing, Route};
use crate::deed::options::ExecutionOptions;
use crate::deed::plan::{Drives, PlanInput, keep, no_plan};
use crate::fault::Fault;
use crate::limits::WAIT_MAX;
use axum::body::Bytes;
use rutter_core::execution::view::Status;
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::PlanId;
use rutter_core::port;
use rutter_core::port::query::{Between, ExecutionFilter, ExecutionSummary};
use rutter_core::time::calendar::read;
use rutter_core::time::{Millis, Timestamp};
use rutter_engine::{Error, Start};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::time::Instant;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::with_body(
            About::post("/executions", "startExecution", "Carry out a saved plan, or one given here")
                .success(&[201, 200])
                .refuses(&[404, 409, 422])
                .keyed(Keyed::Journal),
            start,
        ),
        Route::new(About::get("/executions", "listExecutions", "Executions, newest first"), list),
        Route::new(
            About::get("/executions/{id}", "getExecution", "How an execution stands").success(&[200, 304]),
            show,
        ),
        Route::new(About::get("/executions/{id}/steps", "getSteps", "Every step of an execution"), steps),
        Route::new(
            About::get("/executions/{id}/brief", "getBrief", "The story so far, for whoever takes over"),
            brief,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewExecution {
    plan_id: Option<String>,
    /// Default: the newest.
    revision: Option<u32>,
    /// Instead of `plan_id`.
    plan: Option<PlanInput>,
    #[serde(default)]
    inputs: Map<String, Value>,
    #[serde(default)]
    driver: Drives,
    execution_options: Option<ExecutionOptions>,
    /// How long to wait for its end; default 0.
    #[schemars(range(max = 45))]
    wait_seconds: Option<u64>,
}

async fn start(call: Call, new: NewExecution) -> Result<Reply<ToldExecution>, Fault> {
    let span = span(new.wait_seconds)?;
    let (caller, engine) = (call.caller(), &call.desk().engine);
    let plan = match (&new.plan_id, &new.plan) {
        (Some(id), None) => PlanId::new(id),
        (None, Some(plan)) => {
            let text = plan.text(&caller.tenant, new.driver.into())?;
            keep(&caller, text, None, None, call.key.as_deref()).await?.id
        }
        _ => return Err(Fault::new("server.arguments", "give either plan_id or plan")),
    };
    let revision = match &new.execution_options {
        Some(options) => options.revision(&caller, &plan, new.revision, new.driver.into()).await?,
        None => new.revision,
    };
    let start = Start {
        tenant: caller.tenant.clone(),
        plan: plan.clone(),
        revision,
        inputs: Arc::new(Value::Object(new.inputs)),
        driver: new.driver.into(),
        actor: caller.actor,
        request: call.key.clone(),
    };
    let started = engine.start(start).await.map_err(|error| match error {
        Error::Store(port::Error::NotFound { what: "plan", .. }) => no_plan(&plan),
        error => error.into(),
    })?;
    let identity = Identity { tenant: caller.tenant, execution: started.execution };
    let told = settled(&call, &identity, span).await?;
    let location = format!("{}/executions/{}", crate::api::BASE, identity.execution);
    Ok(match started.is_new {
        true => Reply::created(told, &location),
        false => Reply::ok(told),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutionsQuery {
    /// Statuses, separated by commas.
    status: Option<String>,
    /// The id of a plan.
    plan: Option<String>,
    tag: Option<String>,
    /// Only those that wait for somebody.
    asking: Option<bool>,
    /// Whole words of the plan, or of a decision, reason or error.
    text: Option<String>,
    /// Opened at or after, RFC 3339.
    from: Option<String>,
    /// Opened before, RFC 3339.
    until: Option<String>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

async fn list(call: Call, query: ExecutionsQuery) -> Result<Reply<List<ExecutionRow>>, Fault> {
    let filter = ExecutionFilter {
        plan: query.plan.as_deref().map(PlanId::new),
        tag: query.tag,
        statuses: statuses(query.status.as_deref())?,
        asking: query.asking.unwrap_or(false),
        opened: between(query.from.as_deref(), query.until.as_deref())?,
        text: query.text,
    };
    let page = call.page(query.limit, query.cursor)?;
    let found = call.desk().query.executions(&call.guest.tenant, filter, page).await?;
    let items = found.items.iter().map(ExecutionRow::of).collect();
    Ok(call.list(port::query::Listing { items, next: found.next }))
}

fn statuses(text: Option<&str>) -> Result<Vec<Status>, Fault> {
    let names = text.into_iter().flat_map(|text| text.split(',')).map(str::trim);
    let names = names.filter(|name| !name.is_empty());
    let known = names.map(|name| {
        let known = || Status::ALL.map(Status::as_str).join(", ");
        let unknown = || format!("there is no status {name:?}; there are {}", known());
        Status::parse(name).ok_or_else(|| Fault::new("server.arguments", unknown()))
    });
    known.collect()
}

/// From and until, as a query has them.
pub(crate) fn between(from: Option<&str>, until: Option<&str>) -> Result<Between, Fault> {
    let at = |name: &str, text: &str| -> Result<Timestamp, Fault> {
        let wrong = || format!("{name} is a time such as 2026-11-16T03:55:00Z, this is {text:?}");
        read(text).ok_or_else(|| Fault::new("server.arguments", wrong()))
    };
    Ok(Between {
        from: from.map(|text| at("from", text)).transpose()?,
        until: until.map(|text| at("until", text)).transpose()?,
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutionQuery {
    /// Seconds to wait until it ends or needs somebody.
    #[schemars(range(max = 45))]
    wait: Option<u64>,
}

async fn show(call: Call, query: ExecutionQuery) -> Result<Reply<ToldExecution>, Fault> {
    let (identity, span) = (call.identity(), span(query.wait)?);
    let mut summary = found(&call, &identity).await?;
    if span.0 > 0 && !summary.row.status.has_ended() {
        call.desk().engine.wait(&identity, span).await?;
        summary = found(&call, &identity).await?;
    }
    let tag = tag(&summary);
    if call.has(&tag) {
        return Ok(Reply::unchanged(&tag));
    }
    if let Some(written) = call.api.shelf.find(&identity, summary.entries, Instant::now()) {
        return Ok(Reply::written(written).tag(&tag));
    }
    // The tag is older than what is told, if anything: then the client asks once more.
    let told = told(&call, &identity, &summary).await?;
    let written =
        serde_json::to_vec(&told).map_err(|error| Fault::new("server.internal", error.to_string()))?;
    let written = Bytes::from(written);
    call.api.shelf.put(&identity, summary.entries, written.clone(), Instant::now());
    Ok(Reply::written(written).tag(&tag))
}

#[derive(Debug, Serialize, JsonSchema)]
struct Steps {
    execution_id: String,
    items: Vec<ToldStep>,
}

async fn steps(call: Call, _: Nothing) -> Result<Reply<Steps>, Fault> {
    let look = |execution: &Execution| ToldStep::all(execution.plan(), &execution.view());
    let items = looked(&call, &call.identity(), look).await?;
    Ok(Reply::ok(Steps { execution_id: call.id().to_owned(), items }))
}

#[derive(Debug, Serialize, JsonSchema)]
struct Brief {
    execution_id: String,
    brief: String,
}

async fn brief(call: Call, _: Nothing) -> Result<Reply<Brief>, Fault> {
    let brief = looked(&call, &call.identity(), Execution::brief).await?;
    Ok(Reply::ok(Brief { execution_id: call.id().to_owned(), brief }))
}

/// How long to wait, as asked for.
pub(crate) fn span(seconds: Option<u64>) -> Result<Millis, Fault> {
    match seconds.unwrap_or(0) {
        seconds if seconds <= WAIT_MAX.as_secs() => Ok(Millis::seconds(seconds)),
        seconds => {
            let message = format!("one may wait at most {} s, this is {seconds}", WAIT_MAX.as_secs());
            Err(Fault::new("server.arguments", message))
        }
    }
}

/// How it stands once it has ended or needs somebody, or once a while has passed.
pub(crate) async fn settled(call: &Call, identity: &Identity, span: Millis) -> Result<ToldExecution, Fault> {
    if span.0 > 0 {
        call.desk().engine.wait(identity, span).await?;
    }
    let summary = found(call, identity).await?;
    told(call, identity, &summary).await
}

async fn told(call: &Call, identity: &Identity, summary: &ExecutionSummary) -> Result<ToldExecution, Fault> {
    let look = |execution: &Execution| {
        let view = execution.view();
        let results = if view.status.has_ended() { results(execution) } else { Map::new() };
        (view, results)
    };
    let (view, results) = looked(call, identity, look).await?;
    let link = call.desk().link.get().map(String::as_str);
    Ok(ToldExecution::of(&summary.plan, &view, results, link))
}

/// What is kept of it beside its journal.
pub(crate) async fn found(call: &Call, identity: &Identity) -> Result<ExecutionSummary, Fault> {
    call.desk().query.execution(identity).await?.ok_or_else(|| missing(identity))
}

/// The version of an execution: how many entries its journal has.
pub(crate) fn tag(summary: &ExecutionSummary) -> String {
    format!("\"{}\"", summary.entries)
}

/// How many entries an execution must still have when it is changed, if whoever asks says what they saw of it.
pub(crate) async fn seen(call: &Call, identity: &Identity) -> Result<Option<u64>, Fault> {
    let summary = found(call, identity).await?;
    Ok(call.expects(&tag(&summary))?.then_some(summary.entries))
}

pub(crate) fn missing(identity: &Identity) -> Fault {
    let fault = Fault::missing("execution", identity.execution.as_str());
    fault.hint("GET /api/v1/executions lists what there is")
}

pub(crate) async fn looked<T: Send + 'static>(
    call: &Call,
    identity: &Identity,
    look: impl FnOnce(&Execution) -> T + Send + 'static,
) -> Result<T, Fault> {
    call.desk().engine.look(identity, look).await.map_err(|error| match error {
        Error::Store(port::Error::NotFound { .. }) => missing(identity),
        error => error.into(),
    })
}
