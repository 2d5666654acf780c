//! The page of one tool: description, safety, figures, the plans that use it, and a form that calls it.

use super::{CallFigures, address, safety, source};
use crate::format::{self, IdentifierLink, StatusBadge};
use crate::page::{self, PageRequest, PageResult};
use crate::question::FormField;
use crate::question::field;
use crate::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::{Path, State};
use futures::future::join_all;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::principal::Principal;
use rutter_core::hash::Hash;
use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::query::{Pagination, PlanFilter};
use rutter_core::port::tools::ServerSelection;
use rutter_core::text::cut;
use rutter_core::tool::report::ToolSummary;
use rutter_core::tool::{Safety, Tool};
use rutter_core::wording::guess;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The newest plans searched for the tool.
const PLANS_MAX: u32 = 100;
const SERVER_WAIT: Duration = Duration::from_secs(15);
const SCHEMA_BYTES_MAX: usize = 64 << 10;

#[derive(Template)]
#[template(path = "tool.html")]
struct ToolPage {
    shell: PageShell,
    name: String,
    server_href: String,
    server: String,
    /// Written by the server.
    description: String,
    safety: StatusBadge,
    source: &'static str,
    meaning: &'static str,
    key_parameter: Option<String>,
    sends_key: bool,
    definition: Hash,
    input: String,
    output: Option<String>,
    figures: CallFigures,
    errors: Vec<(&'static str, u64)>,
    users: Vec<ToolUser>,
    plans_max: u32,
    fields: Vec<FormField>,
    /// Example parameters as JSON.
    raw: String,
    call_href: String,
    needs_confirmation: bool,
    command: String,
}

/// A plan that calls the tool.
struct ToolUser {
    plan: IdentifierLink,
    name: String,
    revision: u32,
    pinned: Hash,
    /// The tool changed since the plan was checked.
    has_drifted: bool,
}

pub(crate) async fn show(State(app): State<Arc<App>>, Path(name): Path<String>, request: PageRequest) -> PageResult {
    let tool = find(&app, &request.principal, &name).await?;
    let shell = PageShell::open(&app, &request, PageSection::Tools, name.clone()).await?;
    let now = shell.now;
    let stats = stats(&app, &tool.name);
    let server = tool.name.as_str().split_once('.').map_or("", |(server, _)| server).to_owned();
    let raw = example(&tool.input);
    let errors = stats.errors.iter().map(|(category, count)| (category.as_str(), *count)).collect();
    let tool_page = ToolPage {
        server_href: format!("/tools{}", format::query(&[("server".to_owned(), server.clone())])),
        server,
        description: tool.description.clone(),
        safety: safety(tool.safety),
        source: source(tool.safety_source),
        meaning: meaning(tool.safety),
        key_parameter: tool.key_parameter.clone(),
        sends_key: tool.sends_key,
        definition: tool.definition,
        input: pretty(&tool.input),
        output: tool.output.as_ref().map(|schema| pretty(schema)),
        figures: CallFigures::of(&stats, now),
        errors,
        users: users(&app, &request.principal.tenant, &tool).await?,
        plans_max: PLANS_MAX,
        fields: field::of(&tool.input),
        command: format!("rutter tools call {name} '{}'", raw.replace('\'', "'\\''")),
        raw,
        call_href: format!("{}/call", address(&tool.name)),
        needs_confirmation: tool.safety != Safety::ReadOnly,
        shell,
        name,
    };
    page::render(&tool_page)
}

/// The present definition of the tool; starts the server if it is not running.
pub(super) async fn find(app: &Arc<App>, caller: &Principal, name: &str) -> Result<Arc<Tool>, AppError> {
    let server = name.split_once('.').map_or(name, |(server, _)| server).to_owned();
    let (app, caller) = (Arc::clone(app), caller.clone());
    let asking = tokio::spawn(async move { app.catalog(&caller, ServerSelection::Named([server].into())).await });
    let Ok(Ok(catalog)) = tokio::time::timeout(SERVER_WAIT, asking).await else {
        let error = AppError::new("server.busy", "the server did not list its tools in time");
        return Err(AppError { retryable: true, ..error });
    };
    let catalog = catalog?;
    let tools = &catalog.tools.tools;
    if let Some(tool) = tools.get(name) {
        return Ok(Arc::clone(tool));
    }
    let app_error = AppError::missing("tool", name);
    let meant = guess(name, tools.keys().map(ToolName::as_str));
    Err(match (meant, catalog.absent.first()) {
        (Some(meant), _) => app_error.hint(format!("did you mean {}?", meant.word())),
        (None, Some((server, why))) => app_error.hint(format!("the server {server} is unreachable: {why}")),
        (None, None) => app_error.hint("see the Tools page"),
    })
}

fn stats(app: &App, name: &ToolName) -> ToolSummary {
    let reports = app.servers();
    let mut tools = reports.into_iter().flat_map(|server| server.tools);
    tools.find(|tool| tool.name == *name).map(|tool| tool.stats).unwrap_or_default()
}

async fn users(app: &App, tenant: &TenantId, tool: &Tool) -> Result<Vec<ToolUser>, AppError> {
    let plans = app.query.plans(tenant, PlanFilter::default(), Pagination::first(PLANS_MAX)).await?;
    let looks = plans.items.iter().map(|summary| async move {
        let saved = app.query.plan(tenant, &summary.id, Some(summary.revision)).await.ok()??;
        let pinned = saved.plan.tools.get(&tool.name)?.definition;
        let href = format!("/plans/{}@{}", format::encoded(summary.id.as_str()), summary.revision);
        Some(ToolUser {
            plan: IdentifierLink { full: summary.id.to_string(), href },
            name: summary.name.clone(),
            revision: summary.revision,
            has_drifted: pinned != tool.definition,
            pinned,
        })
    });
    Ok(join_all(looks).await.into_iter().flatten().collect())
}

fn meaning(safety: Safety) -> &'static str {
    match safety {
        Safety::ReadOnly => "It only reads, so it can be retried at any time.",
        Safety::Idempotent => "A repeated call with the same arguments changes nothing more, so it is retried.",
        Safety::Once => {
            "Every call may have its own effect, so a call that may have taken effect is never repeated blindly."
        }
    }
}

/// Example values of the required parameters.
fn example(schema: &Value) -> String {
    let properties = schema["properties"].as_object();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let pairs = required.map(|name| {
        let about = properties.and_then(|properties| properties.get(name)).unwrap_or(&Value::Null);
        let given = about.get("default").or_else(|| about["enum"].as_array()?.first()).cloned();
        let empty = match about["type"].as_str() {
            Some("number" | "integer") => Value::from(0),
            Some("boolean") => Value::from(false),
            Some("object") => Value::Object(serde_json::Map::new()),
            Some("array") => Value::Array(Vec::new()),
            _ => Value::from(""),
        };
        (name.to_owned(), given.unwrap_or(empty))
    });
    Value::Object(pairs.collect()).to_string()
}

fn pretty(schema: &Value) -> String {
    cut(&serde_json::to_string_pretty(schema).unwrap_or_default(), SCHEMA_BYTES_MAX)
}
