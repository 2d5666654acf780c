//! Completions: ids and names that begin with the text typed so far.

use crate::address;
use crate::prompts::{COMPLEXITIES, DOMAINS, HANDLE_FAILURE, PLAN_GOAL, TAKE_OVER};
use crate::texts::EXAMPLES;
use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::principal::Principal;
use rutter_app::templates::PlanTemplate;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::limits::PAGE_MAX;
use rutter_core::port::query::{ExecutionFilter, Pagination, PlanFilter};

/// What an argument means.
enum CompletionMeaning {
    Execution,
    Plan,
    /// A revision of the plan given before.
    Revision,
    /// A step of the execution given before.
    Step,
    Template,
    OneOf(Vec<String>),
}

/// Unknown arguments get no suggestions.
pub(crate) async fn complete(
    app: &App,
    principal: &Principal,
    request: &CompleteRequestParams,
) -> Result<CompletionInfo, AppError> {
    let argument = &request.argument;
    let Some(meaning) = meaning(&request.r#ref, &argument.name) else { return Ok(CompletionInfo::default()) };
    let before = |name: &str| request.context.as_ref().and_then(|context| context.get_argument(name)).cloned();
    let values = match meaning {
        CompletionMeaning::Execution => executions(app, principal).await?,
        CompletionMeaning::Plan => plans(app, principal).await?,
        CompletionMeaning::Revision => match before("id") {
            Some(plan) => revisions(app, principal, &plan).await?,
            None => Vec::new(),
        },
        CompletionMeaning::Step => match before("id") {
            Some(execution) => steps(app, principal, &execution).await?,
            None => Vec::new(),
        },
        CompletionMeaning::Template => {
            let all = PlanTemplate::all(app.settings.templates.as_deref());
            all.into_iter().map(|template| template.name).collect()
        }
        CompletionMeaning::OneOf(values) => values,
    };
    let mut values: Vec<String> = values.into_iter().filter(|value| value.starts_with(&argument.value)).collect();
    let total = u32::try_from(values.len()).unwrap_or(u32::MAX);
    values.truncate(CompletionInfo::MAX_VALUES);
    let has_more = values.len() < total as usize;
    let info = CompletionInfo::with_pagination(values, Some(total), has_more);
    Ok(info.expect("the values were cut to the allowed number"))
}

fn meaning(reference: &Reference, argument: &str) -> Option<CompletionMeaning> {
    let one_of = |list: &[&str]| CompletionMeaning::OneOf(list.iter().map(|text| (*text).to_owned()).collect());
    let of = match reference {
        Reference::Prompt(prompt) => prompt.name.as_str(),
        Reference::Resource(template) => template.uri.as_str(),
        _ => return None,
    };
    Some(match (of, argument) {
        (PLAN_GOAL, "complexity") => one_of(COMPLEXITIES),
        (PLAN_GOAL, "domain") => one_of(DOMAINS),
        (HANDLE_FAILURE | TAKE_OVER, "execution_id") => CompletionMeaning::Execution,
        (address::EXECUTION | address::JOURNAL | address::STEP, "id") => CompletionMeaning::Execution,
        (address::STEP, "step") => CompletionMeaning::Step,
        (address::PLAN, "id") => CompletionMeaning::Plan,
        (address::PLAN, "revision") => CompletionMeaning::Revision,
        (address::TEMPLATE, "name") => CompletionMeaning::Template,
        (address::EXAMPLE, "name") => {
            CompletionMeaning::OneOf(EXAMPLES.iter().map(|example| example.name.to_owned()).collect())
        }
        _ => return None,
    })
}

/// The newest executions, one page.
async fn executions(app: &App, principal: &Principal) -> Result<Vec<String>, AppError> {
    let page = Pagination::first(PAGE_MAX);
    let listing = app.query.executions(&principal.tenant, ExecutionFilter::default(), page).await?;
    Ok(listing.items.into_iter().map(|execution| execution.id.to_string()).collect())
}

async fn plans(app: &App, principal: &Principal) -> Result<Vec<String>, AppError> {
    let listing = app.query.plans(&principal.tenant, PlanFilter::default(), Pagination::first(PAGE_MAX)).await?;
    Ok(listing.items.into_iter().map(|plan| plan.id.to_string()).collect())
}

async fn revisions(app: &App, principal: &Principal, plan: &str) -> Result<Vec<String>, AppError> {
    let newest = app.query.plan(&principal.tenant, &PlanId::new(plan), None).await?;
    let newest = newest.map_or(0, |saved| saved.summary.revision);
    Ok((1..=newest).rev().map(|revision| revision.to_string()).collect())
}

async fn steps(app: &App, principal: &Principal, execution: &str) -> Result<Vec<String>, AppError> {
    let identity = ExecutionIdentity { tenant: principal.tenant.clone(), execution: ExecutionId::new(execution) };
    match app.view(&identity).await {
        Ok(view) => Ok(view.steps.iter().map(|step| step.id.to_string()).collect()),
        Err(error) if error.code == "store.not_found" => Ok(Vec::new()),
        Err(app_error) => Err(app_error),
    }
}
