//! Completions: ids and names that begin with what was typed so far.

use crate::desk::Desk;
use crate::fault::Fault;
use crate::guest::Guest;
use crate::mcp::address;
use crate::mcp::prompts::{COMPLEXITIES, DOMAINS, HANDLE_FAILURE, PLAN_GOAL, TAKE_OVER};
use crate::mcp::texts::EXAMPLES;
use rmcp::model::{CompleteRequestParams, CompletionInfo, Reference};
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::limits::PAGE_MAX;
use rutter_core::port;
use rutter_core::port::query::{ExecutionFilter, Page, PlanFilter};

/// What an argument stands for.
enum Meaning {
    Execution,
    Plan,
    /// Of the plan named before.
    Revision,
    /// Of the execution named before.
    Step,
    OneOf(Vec<String>),
}

/// Nothing is suggested for what is not known here.
pub(crate) async fn complete(
    desk: &Desk,
    guest: &Guest,
    request: &CompleteRequestParams,
) -> Result<CompletionInfo, Fault> {
    let argument = &request.argument;
    let Some(meaning) = meaning(&request.r#ref, &argument.name) else { return Ok(CompletionInfo::default()) };
    let before =
        |name: &str| request.context.as_ref().and_then(|context| context.get_argument(name)).cloned();
    let values = match meaning {
        Meaning::Execution => executions(desk, guest).await?,
        Meaning::Plan => plans(desk, guest).await?,
        Meaning::Revision => match before("id") {
            Some(plan) => revisions(desk, guest, &plan).await?,
            None => Vec::new(),
        },
        Meaning::Step => match before("id") {
            Some(execution) => steps(desk, guest, &execution).await?,
            None => Vec::new(),
        },
        Meaning::OneOf(values) => values,
    };
    let mut values: Vec<String> =
        values.into_iter().filter(|value| value.starts_with(&argument.value)).collect();
    let total = u32::try_from(values.len()).unwrap_or(u32::MAX);
    values.truncate(CompletionInfo::MAX_VALUES);
    let has_more = values.len() < total as usize;
    let info = CompletionInfo::with_pagination(values, Some(total), has_more);
    Ok(info.expect("what is more than allowed was cut off"))
}

fn meaning(reference: &Reference, argument: &str) -> Option<Meaning> {
    let one_of = |list: &[&str]| Meaning::OneOf(list.iter().map(|text| (*text).to_owned()).collect());
    let of = match reference {
        Reference::Prompt(prompt) => prompt.name.as_str(),
        Reference::Resource(template) => template.uri.as_str(),
        _ => return None,
    };
    Some(match (of, argument) {
        (PLAN_GOAL, "complexity") => one_of(COMPLEXITIES),
        (PLAN_GOAL, "domain") => one_of(DOMAINS),
        (HANDLE_FAILURE | TAKE_OVER, "execution_id") => Meaning::Execution,
        (address::EXECUTION | address::JOURNAL | address::STEP, "id") => Meaning::Execution,
        (address::STEP, "step") => Meaning::Step,
        (address::PLAN, "id") => Meaning::Plan,
        (address::PLAN, "revision") => Meaning::Revision,
        (address::EXAMPLE, "name") => {
            Meaning::OneOf(EXAMPLES.iter().map(|example| example.name.to_owned()).collect())
        }
        _ => return None,
    })
}

/// The newest, as many as fit on a page.
async fn executions(desk: &Desk, guest: &Guest) -> Result<Vec<String>, Fault> {
    let page = Page::first(PAGE_MAX);
    let listing = desk.query.executions(&guest.tenant, ExecutionFilter::default(), page).await?;
    Ok(listing.items.into_iter().map(|execution| execution.id.to_string()).collect())
}

async fn plans(desk: &Desk, guest: &Guest) -> Result<Vec<String>, Fault> {
    let listing = desk.query.plans(&guest.tenant, PlanFilter::default(), Page::first(PAGE_MAX)).await?;
    Ok(listing.items.into_iter().map(|plan| plan.id.to_string()).collect())
}

async fn revisions(desk: &Desk, guest: &Guest, plan: &str) -> Result<Vec<String>, Fault> {
    let newest = desk.query.plan(&guest.tenant, &PlanId::new(plan), None).await?;
    let newest = newest.map_or(0, |saved| saved.summary.revision);
    Ok((1..=newest).rev().map(|revision| revision.to_string()).collect())
}

async fn steps(desk: &Desk, guest: &Guest, execution: &str) -> Result<Vec<String>, Fault> {
    let identity = Identity { tenant: guest.tenant.clone(), execution: ExecutionId::new(execution) };
    match desk.engine.view(&identity).await {
        Ok(view) => Ok(view.steps.iter().map(|step| step.id.to_string()).collect()),
        Err(rutter_engine::Error::Store(port::Error::NotFound { .. })) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}
