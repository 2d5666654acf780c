//! Previews: what can be undone, what each failure leads to, a forecast, and what undoing an execution now would do.

use crate::executions::inspect_execution;
use crate::plans::saved;
use crate::reply::ApiReply;
use crate::request::ApiRequest;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::forecast;
use rutter_app::plans::preview_plan;
use rutter_app::rollback::Rollback;
use rutter_app::view::PreviewView;
use rutter_core::execution::Execution;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::new(
            RouteSpec::get(
                "/plans/{id}/preview",
                "previewPlan",
                "Preview a plan: what can be undone, what each failure leads to, and a forecast",
            ),
            of_plan,
        ),
        ApiRoute::new(
            RouteSpec::get(
                "/executions/{id}/preview",
                "previewExecution",
                "Preview undoing an execution now, with a forecast of its rest",
            ),
            of_execution,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PreviewQuery {
    /// Default: the newest.
    #[schemars(range(min = 1))]
    revision: Option<u32>,
}

async fn of_plan(call: ApiRequest, query: PreviewQuery) -> Result<ApiReply<PreviewView>, AppError> {
    let plan = saved(&call, query.revision).await?.plan;
    let forecast = forecast::of_plan(call.app(), &plan);
    let preview = preview_plan(call.app(), &plan, &call.principal.tenant, None);
    Ok(ApiReply::ok(PreviewView::of(&preview, None, Some(forecast))))
}

async fn of_execution(call: ApiRequest, _: NoParameters) -> Result<ApiReply<PreviewView>, AppError> {
    let identity = call.identity();
    let look = |execution: &Execution| {
        let (plan, principals) = (Arc::clone(execution.plan()), execution.principals().to_vec());
        (plan, principals, Rollback::of(execution), execution.view())
    };
    let (plan, principals, rollback, view) = inspect_execution(&call, &identity, look).await?;
    let forecast = forecast::of_execution(call.app(), &plan, &view);
    let preview = preview_plan(call.app(), &plan, &identity.tenant, Some(&principals));
    Ok(ApiReply::ok(PreviewView::of(&preview, Some(&rollback), forecast)))
}
