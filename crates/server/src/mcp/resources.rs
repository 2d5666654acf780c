//! Resources: the texts that come with the program, and what it keeps, as data.

mod live;

use crate::desk::Desk;
use crate::guest::Guest;
use crate::mcp::address::{self, Address};
use crate::mcp::error_of;
use crate::mcp::texts::{self, EXAMPLES};
use crate::reference;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate,
};
use rutter_core::port::query::{ExecutionFilter, Page, PlanFilter};
use std::sync::LazyLock;

static PLAN_REFERENCE: LazyLock<String> = LazyLock::new(reference::plan);

/// So many of the newest executions, and plans, are listed; others are found by their id.
const LISTED_MAX: u32 = 50;
/// Texts change only with a new version of the program.
const TEXT_TTL_MS: u64 = 3_600_000;

const MARKDOWN: &str = "text/markdown";
const YAML: &str = "application/yaml";
const JSON: &str = "application/json";

/// The parts of the list, one page each. A cursor names the next one.
const EXECUTIONS: &str = "executions";
const PLANS: &str = "plans";

pub(crate) async fn list(
    desk: &Desk,
    guest: &Guest,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let (resources, next) = match cursor {
        None => (texts(), Some(EXECUTIONS)),
        Some(EXECUTIONS) => (executions(desk, guest).await?, Some(PLANS)),
        Some(PLANS) => (plans(desk, guest).await?, None),
        Some(_) => {
            let message = "this cursor was not given here; leave it out to begin the list again";
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let list = ListResourcesResult {
        resources,
        next_cursor: next.map(str::to_owned),
        ..ListResourcesResult::default()
    };
    Ok(list.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

fn texts() -> Vec<Resource> {
    let text = |address: Address, title: &str, mime: &str, bytes: usize| {
        let uri = address.to_string();
        let name = uri.trim_start_matches("rutter://").to_owned();
        Resource::new(uri, name).with_title(title).with_mime_type(mime).with_size(bytes as u64)
    };
    let guide = text(Address::Guide, "Guide for agents", MARKDOWN, texts::GUIDE.len())
        .with_description("What Rutter is for, in which order to call, and what it will not do");
    let reference = text(Address::PlanReference, "Plan reference", MARKDOWN, PLAN_REFERENCE.len())
        .with_description("Every field of a plan");
    let mut list = vec![guide, reference];
    for example in EXAMPLES {
        let address = Address::Example(example.name.to_owned());
        let title = format!("Example plan: {}", example.name);
        let about = example.source.lines().take_while(|line| line.starts_with('#'));
        let about: Vec<&str> = about.map(|line| line.trim_start_matches('#').trim()).collect();
        list.push(text(address, &title, YAML, example.source.len()).with_description(about.join(" ")));
    }
    list
}

async fn executions(desk: &Desk, guest: &Guest) -> Result<Vec<Resource>, ErrorData> {
    let listing =
        desk.query.executions(&guest.tenant, ExecutionFilter::default(), Page::first(LISTED_MAX)).await;
    let listing = listing.map_err(|error| error_of(error.into()))?;
    let resource = listing.items.into_iter().map(|execution| {
        let row = &execution.row;
        let state = format!("{}, {} of {} steps settled", row.status.as_str(), row.settled, row.total);
        Resource::new(Address::Execution(execution.id.clone()).to_string(), execution.id.to_string())
            .with_title(execution.name)
            .with_description(state)
            .with_mime_type(JSON)
    });
    Ok(resource.collect())
}

async fn plans(desk: &Desk, guest: &Guest) -> Result<Vec<Resource>, ErrorData> {
    let listing = desk.query.plans(&guest.tenant, PlanFilter::default(), Page::first(LISTED_MAX)).await;
    let listing = listing.map_err(|error| error_of(error.into()))?;
    let resource = listing.items.into_iter().map(|plan| {
        let about =
            format!("revision {}, {} steps: {}", plan.revision, plan.steps, texts::cut(&plan.goal, 200));
        Resource::new(Address::Plan(plan.id.clone(), None).to_string(), plan.id.to_string())
            .with_title(plan.name)
            .with_description(about)
    });
    Ok(resource.collect())
}

pub(crate) fn templates() -> ListResourceTemplatesResult {
    let template = |uri: &str, name: &str, title: &str, about: &str| {
        ResourceTemplate::new(uri, name).with_title(title).with_description(about)
    };
    let resource_templates = vec![
        template(
            address::EXECUTION,
            "execution",
            "An execution",
            "State, steps, results (long ones cut), questions; subscribe to hear of changes",
        )
        .with_mime_type(JSON),
        template(
            address::JOURNAL,
            "journal",
            "A journal",
            "What happened in an execution, a hundred entries a page; `next` is where it goes on",
        )
        .with_mime_type(JSON),
        template(address::STEP, "step", "A step", "One step of an execution with its whole result")
            .with_mime_type(JSON),
        template(
            address::PLAN,
            "plan",
            "A plan",
            "A plan as it was written; the newest revision, or one by number",
        ),
        template(address::EXAMPLE, "example", "An example", "A worked plan over made-up tools")
            .with_mime_type(YAML),
    ];
    let list = ListResourceTemplatesResult { resource_templates, ..ListResourceTemplatesResult::default() };
    list.with_ttl_ms(TEXT_TTL_MS).with_cache_scope(CacheScope::Public)
}

pub(crate) async fn read(desk: &Desk, guest: &Guest, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let address = Address::parse(uri).ok_or_else(|| missing(uri))?;
    let fixed = |text: &str, mime: &str| {
        let contents = ResourceContents::text(text, uri).with_mime_type(mime);
        let result = ReadResourceResult::new(vec![contents]);
        Ok(result.with_ttl_ms(TEXT_TTL_MS).with_cache_scope(CacheScope::Public))
    };
    let contents = match &address {
        Address::Guide => return fixed(texts::GUIDE, MARKDOWN),
        Address::PlanReference => return fixed(&PLAN_REFERENCE, MARKDOWN),
        Address::Example(name) => {
            let example = texts::example(name).ok_or_else(|| missing(uri))?;
            return fixed(example.source, YAML);
        }
        Address::Execution(id) => live::execution(desk, guest, id).await,
        Address::Journal(id, after) => live::journal(desk, guest, id, *after).await,
        Address::Step(id, step) => live::step(desk, guest, id, step).await,
        Address::Plan(id, revision) => live::plan(desk, guest, id, *revision).await,
    };
    let contents = contents.map_err(|fault| match fault.code.as_ref() {
        "store.not_found" => missing(uri),
        _ => error_of(fault),
    })?;
    Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

pub(crate) fn missing(uri: &str) -> ErrorData {
    let message = format!(
        "there is no resource {uri:?}; resources/list and resources/templates/list say what there is"
    );
    ErrorData::resource_not_found(message, Some(serde_json::json!({ "uri": uri })))
}
