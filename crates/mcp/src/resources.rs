//! Resources: built-in texts, and executions, journals and plans as data.

mod live;

use crate::address::{self, ResourceAddress};
use crate::guard::error_of;
use crate::reference;
use crate::texts::{self, EXAMPLES};
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceContents,
    ResourceTemplate,
};
use rutter_app::app::App;
use rutter_app::principal::Principal;
use rutter_app::templates::PlanTemplate;
use rutter_core::port::query::{ExecutionFilter, Pagination, PlanFilter};
use rutter_core::text::cut;
use std::sync::LazyLock;

static PLAN_REFERENCE: LazyLock<String> = LazyLock::new(reference::plan);

/// How many of the newest executions and plans are listed; others are found by id.
const LISTED_MAX: u32 = 50;
/// Built-in texts change only with a new version of the program.
const TEXT_TTL_MS: u64 = 3_600_000;

const MARKDOWN: &str = "text/markdown";
const YAML: &str = "application/yaml";
const JSON: &str = "application/json";

/// The parts of the list, one page each. The cursor names the next one.
const EXECUTIONS: &str = "executions";
const PLANS: &str = "plans";

pub(crate) async fn list(
    app: &App,
    principal: &Principal,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let (resources, next) = match cursor {
        None => (texts(app), Some(EXECUTIONS)),
        Some(EXECUTIONS) => (executions(app, principal).await?, Some(PLANS)),
        Some(PLANS) => (plans(app, principal).await?, None),
        Some(_) => {
            let message = "unknown cursor; omit it to start from the beginning";
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    let list =
        ListResourcesResult { resources, next_cursor: next.map(str::to_owned), ..ListResourcesResult::default() };
    Ok(list.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

fn texts(app: &App) -> Vec<Resource> {
    let text = |address: ResourceAddress, title: &str, mime: &str, bytes: usize| {
        let uri = address.to_string();
        let name = uri.trim_start_matches("rutter://").to_owned();
        Resource::new(uri, name).with_title(title).with_mime_type(mime).with_size(bytes as u64)
    };
    let guide = text(ResourceAddress::Guide, "Guide for agents", MARKDOWN, texts::GUIDE.len())
        .with_description("What Rutter is for, the order of calls, and what it will not do");
    let reference = text(ResourceAddress::PlanReference, "Plan reference", MARKDOWN, PLAN_REFERENCE.len())
        .with_description("Every field of a plan");
    let mut list = vec![guide, reference];
    for example in EXAMPLES {
        let address = ResourceAddress::Example(example.name.to_owned());
        let title = format!("Example plan: {}", example.name);
        let about = example.source.lines().take_while(|line| line.starts_with('#'));
        let about: Vec<&str> = about.map(|line| line.trim_start_matches('#').trim()).collect();
        list.push(text(address, &title, YAML, example.source.len()).with_description(about.join(" ")));
    }
    for template in PlanTemplate::all(app.settings.templates.as_deref()) {
        let bytes = template.document().to_string().len();
        let address = ResourceAddress::Template(template.name.clone());
        list.push(
            text(address, &format!("Template: {}", template.name), JSON, bytes).with_description(template.description),
        );
    }
    list
}

async fn executions(app: &App, principal: &Principal) -> Result<Vec<Resource>, ErrorData> {
    let listing =
        app.query.executions(&principal.tenant, ExecutionFilter::default(), Pagination::first(LISTED_MAX)).await;
    let listing = listing.map_err(|error| error_of(error.into()))?;
    let resource = listing.items.into_iter().map(|execution| {
        let state = execution.row.summary();
        Resource::new(ResourceAddress::Execution(execution.id.clone()).to_string(), execution.id.to_string())
            .with_title(execution.name)
            .with_description(state)
            .with_mime_type(JSON)
    });
    Ok(resource.collect())
}

async fn plans(app: &App, principal: &Principal) -> Result<Vec<Resource>, ErrorData> {
    let listing = app.query.plans(&principal.tenant, PlanFilter::default(), Pagination::first(LISTED_MAX)).await;
    let listing = listing.map_err(|error| error_of(error.into()))?;
    let resource = listing.items.into_iter().map(|plan| {
        let about = format!("revision {}, {} steps: {}", plan.revision, plan.steps, cut(&plan.goal, 200));
        Resource::new(ResourceAddress::Plan(plan.id.clone(), None).to_string(), plan.id.to_string())
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
            "State, steps, results (long ones cut), questions; subscribe to be notified of changes",
        )
        .with_mime_type(JSON),
        template(
            address::JOURNAL,
            "journal",
            "A journal",
            "What happened in an execution, a hundred entries per page; `next` is the next page",
        )
        .with_mime_type(JSON),
        template(address::STEP, "step", "A step", "One step of an execution with its full result").with_mime_type(JSON),
        template(address::PLAN, "plan", "A plan", "The source of a plan; the newest revision, or one by number"),
        template(
            address::TEMPLATE,
            "template",
            "A template",
            "A plan with parameters: write their values for ${name}, then save_plan",
        )
        .with_mime_type(JSON),
        template(address::EXAMPLE, "example", "An example", "A worked plan over made-up tools").with_mime_type(YAML),
    ];
    let list = ListResourceTemplatesResult { resource_templates, ..ListResourceTemplatesResult::default() };
    list.with_ttl_ms(TEXT_TTL_MS).with_cache_scope(CacheScope::Public)
}

pub(crate) async fn read(app: &App, principal: &Principal, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let address = ResourceAddress::parse(uri).ok_or_else(|| missing(uri))?;
    let fixed = |text: &str, mime: &str| {
        let contents = ResourceContents::text(text, uri).with_mime_type(mime);
        let result = ReadResourceResult::new(vec![contents]);
        Ok(result.with_ttl_ms(TEXT_TTL_MS).with_cache_scope(CacheScope::Public))
    };
    let contents = match &address {
        ResourceAddress::Guide => return fixed(texts::GUIDE, MARKDOWN),
        ResourceAddress::PlanReference => return fixed(&PLAN_REFERENCE, MARKDOWN),
        ResourceAddress::Example(name) => {
            let example = texts::example(name).ok_or_else(|| missing(uri))?;
            return fixed(example.source, YAML);
        }
        ResourceAddress::Template(name) => PlanTemplate::find(name, app.settings.templates.as_deref()).map(|found| {
            ResourceContents::text(found.document().to_string(), address.to_string()).with_mime_type(JSON)
        }),
        ResourceAddress::Execution(id) => live::execution(app, principal, id).await,
        ResourceAddress::Journal(id, after) => live::journal(app, principal, id, *after).await,
        ResourceAddress::Step(id, step) => live::step(app, principal, id, step).await,
        ResourceAddress::Plan(id, revision) => live::plan(app, principal, id, *revision).await,
    };
    let contents = contents.map_err(|error| match error.code.as_ref() {
        "store.not_found" => missing(uri),
        _ => error_of(error),
    })?;
    Ok(ReadResourceResult::new(vec![contents]).with_ttl_ms(0).with_cache_scope(CacheScope::Private))
}

pub(crate) fn missing(uri: &str) -> ErrorData {
    let message = format!("there is no resource {uri:?}; see resources/list and resources/templates/list");
    ErrorData::resource_not_found(message, Some(serde_json::json!({ "uri": uri })))
}
