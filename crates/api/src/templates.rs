//! Templates of plans: list them, and make a plan of one.

use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_app::templates::PlanTemplate;
use rutter_core::port::query::ListPage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::new(RouteSpec::get("/templates", "listTemplates", "Templates of plans, with their parameters"), list),
        ApiRoute::with_body(
            RouteSpec::post("/templates/{id}/plan", "instantiateTemplate", "A plan from a template; saves nothing")
                .right(Operation::CheckPlan),
            instantiate,
        ),
    ]
}

async fn list(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ListReply<PlanTemplate>>, AppError> {
    Ok(call.list(ListPage { items: PlanTemplate::all(call.app().settings.templates.as_deref()), next: None }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TemplateParameters {
    #[serde(default)]
    parameters: Map<String, Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TemplateInstance {
    /// To be checked, saved or executed.
    plan: Value,
}

async fn instantiate(call: ApiRequest, body: TemplateParameters) -> Result<ApiReply<TemplateInstance>, AppError> {
    let plan = PlanTemplate::find(call.id(), call.app().settings.templates.as_deref())?.instantiate(body.parameters)?;
    Ok(ApiReply::ok(TemplateInstance { plan }))
}
