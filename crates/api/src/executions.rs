//! Executions: start them, list them, read their state.

use crate::idempotent_replies::Idempotency;
use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::response_cache::cache_key;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use axum::body::Bytes;
use rutter_app::error::AppError;
use rutter_app::limits::wait_time;
use rutter_app::options::ExecutionOptions;
use rutter_app::plans::{DriverChoice, PlanInput};
use rutter_app::reader::AnswerReader;
use rutter_app::rights::Operation;
use rutter_app::start::{ExecutionRequest, PlanChoice};
use rutter_app::view::{ExecutionListView, ExecutionView, StepView};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::PlanId;
use rutter_core::port;
use rutter_core::port::query::{ExecutionFilter, ExecutionSummary, TimeRange};
use rutter_core::time::calendar::read;
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Size limits of results in one answer: all together, and each. The journal has all of them.
const RESULTS_BYTES_MAX: usize = 256 << 10;
const RESULT_BYTES_MAX: usize = 64 << 10;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::with_body(
            RouteSpec::post("/executions", "startExecution", "Execute a saved plan, or one given here")
                .right(Operation::StartExecution)
                .success(&[201, 200])
                .refuses(&[404, 409, 422])
                .idempotency(Idempotency::Journal),
            start,
        ),
        ApiRoute::new(RouteSpec::get("/executions", "listExecutions", "Executions, newest first"), list),
        ApiRoute::new(
            RouteSpec::get("/executions/{id}", "getExecution", "The state of an execution").success(&[200, 304]),
            show,
        ),
        ApiRoute::new(RouteSpec::get("/executions/{id}/steps", "getSteps", "Every step of an execution"), steps),
        ApiRoute::new(
            RouteSpec::get("/executions/{id}/brief", "getBrief", "A summary of what happened so far, for a handover"),
            brief,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartExecutionBody {
    /// The id or the name of a saved plan.
    plan_id: Option<String>,
    /// Default: the newest.
    revision: Option<u32>,
    /// Instead of `plan_id`.
    plan: Option<PlanInput>,
    #[serde(default)]
    inputs: Map<String, Value>,
    #[serde(default)]
    driver: DriverChoice,
    execution_options: Option<ExecutionOptions>,
    /// How long to wait for the end; default 0.
    #[schemars(range(max = 45))]
    wait_seconds: Option<u64>,
}

async fn start(call: ApiRequest, new: StartExecutionBody) -> Result<ApiReply<ExecutionView>, AppError> {
    let span = span(new.wait_seconds)?;
    let caller = call.principal.clone();
    let driver = new.driver.into();
    let given = new.plan.as_ref().map(|plan| plan.text(&caller.tenant, driver)).transpose()?;
    let request = ExecutionRequest {
        plan: PlanChoice::of(new.plan_id.as_deref(), new.revision, given)?,
        inputs: Arc::new(Value::Object(new.inputs)),
        driver,
        options: new.execution_options,
        request_key: call.key.clone(),
    };
    let started = call.app().execute(&caller, request).await?;
    let identity = ExecutionIdentity { tenant: caller.tenant, execution: started.execution };
    let execution_json = wait_and_read(&call, &identity, span).await?;
    let location = format!("{}/executions/{}", crate::route::BASE, identity.execution);
    Ok(match started.is_new {
        true => ApiReply::created(execution_json, &location),
        false => ApiReply::ok(execution_json),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutionListQuery {
    /// Statuses, separated by commas.
    status: Option<String>,
    /// The id of a plan.
    plan: Option<String>,
    tag: Option<String>,
    /// Only those with open questions.
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

async fn list(call: ApiRequest, query: ExecutionListQuery) -> Result<ApiReply<ListReply<ExecutionListView>>, AppError> {
    let filter = ExecutionFilter {
        plan: query.plan.as_deref().map(PlanId::new),
        tag: query.tag,
        statuses: statuses(query.status.as_deref())?,
        asking: query.asking.unwrap_or(false),
        opened: between(query.from.as_deref(), query.until.as_deref())?,
        text: query.text,
    };
    let page = call.page(query.limit, query.cursor)?;
    let found = call.app().query.executions(&call.principal.tenant, filter, page).await?;
    let items = found.items.iter().map(ExecutionListView::of).collect();
    Ok(call.list(port::query::ListPage { items, next: found.next }))
}

fn statuses(text: Option<&str>) -> Result<Vec<ExecutionStatus>, AppError> {
    let names = text.into_iter().flat_map(|text| text.split(',')).map(str::trim);
    let statuses = names.filter(|name| !name.is_empty()).map(ExecutionStatus::named);
    statuses.map(|status| status.map_err(|why| AppError::new("server.arguments", why))).collect()
}

/// Parses `from` and `until` of a query.
pub(crate) fn between(from: Option<&str>, until: Option<&str>) -> Result<TimeRange, AppError> {
    let at = |name: &str, text: &str| -> Result<Timestamp, AppError> {
        let wrong = || format!("{name} is a time such as 2026-11-16T03:55:00Z, this is {text:?}");
        read(text).ok_or_else(|| AppError::new("server.arguments", wrong()))
    };
    Ok(TimeRange {
        from: from.map(|text| at("from", text)).transpose()?,
        until: until.map(|text| at("until", text)).transpose()?,
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutionQuery {
    /// Seconds to wait until it ends or waits for a person.
    #[schemars(range(max = 45))]
    wait: Option<u64>,
}

async fn show(call: ApiRequest, query: ExecutionQuery) -> Result<ApiReply<ExecutionView>, AppError> {
    let (identity, span) = (call.identity(), span(query.wait)?);
    let mut summary = find_summary(&call, &identity).await?;
    if span.0 > 0 && !summary.row.status.has_ended() {
        call.app().wait_for(&call.principal, &identity, span).await?;
        summary = find_summary(&call, &identity).await?;
    }
    let reader = call.app().reader(&call.principal);
    let (tag, key) = (tag(&summary, &reader), cache_key(&identity, &reader));
    if call.has_current_etag(&tag) {
        return Ok(ApiReply::unchanged(&tag));
    }
    if let Some(written) = call.api.response_cache.find(&key, summary.entries, Instant::now()) {
        return Ok(ApiReply::written(written).tag(&tag));
    }
    // The tag is never newer than the content: at worst the client asks once more.
    let execution_json = read_execution(&call, &identity).await?;
    let written =
        serde_json::to_vec(&execution_json).map_err(|error| AppError::new("server.internal", error.to_string()))?;
    let written = Bytes::from(written);
    call.api.response_cache.put(key, summary.entries, written.clone(), Instant::now());
    Ok(ApiReply::written(written).tag(&tag))
}

#[derive(Debug, Serialize, JsonSchema)]
struct StepListJson {
    execution_id: String,
    items: Vec<StepView>,
}

async fn steps(call: ApiRequest, _: NoParameters) -> Result<ApiReply<StepListJson>, AppError> {
    let look = StepView::all;
    let items = inspect_execution(&call, &call.identity(), look).await?;
    Ok(ApiReply::ok(StepListJson { execution_id: call.id().to_owned(), items }))
}

#[derive(Debug, Serialize, JsonSchema)]
struct ExecutionBriefJson {
    execution_id: String,
    brief: String,
}

async fn brief(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ExecutionBriefJson>, AppError> {
    let brief = inspect_execution(&call, &call.identity(), Execution::brief).await?;
    Ok(ApiReply::ok(ExecutionBriefJson { execution_id: call.id().to_owned(), brief }))
}

pub(crate) fn span(seconds: Option<u64>) -> Result<Millis, AppError> {
    Ok(Millis::seconds(wait_time(seconds, Duration::ZERO)?.as_secs()))
}

/// The state once the execution ends or waits for a person, or the time is up.
pub(crate) async fn wait_and_read(
    call: &ApiRequest,
    identity: &ExecutionIdentity,
    span: Millis,
) -> Result<ExecutionView, AppError> {
    if span.0 > 0 {
        call.app().wait_for(&call.principal, identity, span).await?;
    }
    read_execution(call, identity).await
}

async fn read_execution(call: &ApiRequest, identity: &ExecutionIdentity) -> Result<ExecutionView, AppError> {
    let found =
        call.app().execution(call.app().reader(&call.principal), identity, RESULTS_BYTES_MAX, RESULT_BYTES_MAX).await;
    found.map_err(|error| if error.code == "store.not_found" { missing(identity) } else { error })
}

/// The stored summary of the execution.
pub(crate) async fn find_summary(
    call: &ApiRequest,
    identity: &ExecutionIdentity,
) -> Result<ExecutionSummary, AppError> {
    call.app().query.execution(identity).await?.ok_or_else(|| missing(identity))
}

/// The ETag of an execution: the number of its journal entries. An agent is shown less than a person, so its version is
/// another one.
fn tag(summary: &ExecutionSummary, reader: &AnswerReader) -> String {
    match reader.is_person() {
        true => format!("\"{}\"", summary.entries),
        false => format!("\"{}-agent\"", summary.entries),
    }
}

/// The number of entries the execution must still have when it is changed, if the client sent `If-Match`.
pub(crate) async fn expected_entries(call: &ApiRequest, identity: &ExecutionIdentity) -> Result<Option<u64>, AppError> {
    let summary = find_summary(call, identity).await?;
    let tag = tag(&summary, &call.app().reader(&call.principal));
    Ok(call.check_if_match(&tag)?.then_some(summary.entries))
}

pub(crate) fn missing(identity: &ExecutionIdentity) -> AppError {
    let error = AppError::missing("execution", identity.execution.as_str());
    error.hint("GET /api/v1/executions lists executions")
}

pub(crate) async fn inspect_execution<T: Send + 'static>(
    call: &ApiRequest,
    identity: &ExecutionIdentity,
    look: impl FnOnce(&Execution) -> T + Send + 'static,
) -> Result<T, AppError> {
    call.app().look(identity, look).await.map_err(|error| match error {
        app_error if app_error.code == "store.not_found" => missing(identity),
        fault => fault,
    })
}
