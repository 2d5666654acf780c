//! One tool: what it says of itself, how safe it is and why, who relies on it, and a form to try it out.

use super::{Figures, address, safety, source};
use crate::dashboard::format::{self, Id, Look};
use crate::dashboard::page::{self, Answer, Visitor};
use crate::dashboard::question::Field;
use crate::dashboard::question::field;
use crate::dashboard::shell::{Section, Shell};
use crate::desk::Desk;
use crate::fault::Fault;
use askama::Template;
use axum::extract::{Path, State};
use futures::future::join_all;
use rutter_core::hash::Hash;
use rutter_core::id::{TenantId, ToolName};
use rutter_core::plan::wording::guess;
use rutter_core::port::query::{Page, PlanFilter};
use rutter_core::port::tools::Servers;
use rutter_core::tool::report::ToolSummary;
use rutter_core::tool::{Safety, Tool};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// The newest plans are looked through for the tool.
const PLANS_MAX: u32 = 100;
const SERVER_WAIT: Duration = Duration::from_secs(15);
const SCHEMA_BYTES_MAX: usize = 64 << 10;

#[derive(Template)]
#[template(path = "tool.html")]
struct Shown {
    shell: Shell,
    name: String,
    server_href: String,
    server: String,
    /// The server's own words.
    description: String,
    safety: Look,
    source: &'static str,
    meaning: &'static str,
    key_parameter: Option<String>,
    definition: Hash,
    input: String,
    output: Option<String>,
    figures: Figures,
    errors: Vec<(&'static str, u64)>,
    users: Vec<User>,
    plans_max: u32,
    fields: Vec<Field>,
    /// What the form holds as JSON.
    raw: String,
    call_href: String,
    needs_confirmation: bool,
    command: String,
}

/// A plan that calls the tool.
struct User {
    plan: Id,
    name: String,
    revision: u32,
    pinned: Hash,
    /// The tool was another when the plan was checked.
    has_drifted: bool,
}

pub(in crate::dashboard) async fn show(
    State(desk): State<Arc<Desk>>,
    Path(name): Path<String>,
    visitor: Visitor,
) -> Answer {
    let tool = find(&desk, &name).await?;
    let shell = Shell::open(&desk, &visitor, Section::Tools, name.clone()).await?;
    let now = shell.now;
    let stats = stats(&desk, &tool.name);
    let server = tool.name.as_str().split_once('.').map_or("", |(server, _)| server).to_owned();
    let raw = example(&tool.input);
    let errors = stats.errors.iter().map(|(category, count)| (category.as_str(), *count)).collect();
    let shown = Shown {
        server_href: format!("/tools{}", format::query(&[("server".to_owned(), server.clone())])),
        server,
        description: tool.description.clone(),
        safety: safety(tool.safety),
        source: source(tool.safety_source),
        meaning: meaning(tool.safety),
        key_parameter: tool.key_parameter.clone(),
        definition: tool.definition,
        input: pretty(&tool.input),
        output: tool.output.as_ref().map(|schema| pretty(schema)),
        figures: Figures::of(&stats, now),
        errors,
        users: users(&desk, &visitor.guest.tenant, &tool).await?,
        plans_max: PLANS_MAX,
        fields: field::of(&tool.input),
        command: format!("rutter tools call {name} '{}'", raw.replace('\'', "'\\''")),
        raw,
        call_href: format!("{}/call", address(&tool.name)),
        needs_confirmation: tool.safety != Safety::ReadOnly,
        shell,
        name,
    };
    page::show(&shown)
}

/// The tool as its server offers it now; the server is started if it was not.
pub(super) async fn find(desk: &Desk, name: &str) -> Result<Arc<Tool>, Fault> {
    let server = name.split_once('.').map_or(name, |(server, _)| server).to_owned();
    let tools = Arc::clone(&desk.tools);
    let asking = tokio::spawn(async move { tools.catalog(Servers::Named([server].into())).await });
    let Ok(Ok(catalog)) = tokio::time::timeout(SERVER_WAIT, asking).await else {
        let fault = Fault::new("server.busy", "the server did not say in time which tools it has");
        return Err(Fault { retryable: true, ..fault });
    };
    let tools = &catalog.tools.tools;
    if let Some(tool) = tools.get(name) {
        return Ok(Arc::clone(tool));
    }
    let fault = Fault::missing("tool", name);
    let meant = guess(name, tools.keys().map(ToolName::as_str));
    Err(match (meant, catalog.absent.first()) {
        (Some(meant), _) => fault.hint(format!("did you mean {}?", meant.word())),
        (None, Some((server, why))) => fault.hint(format!("the server {server} was not reached: {why}")),
        (None, None) => fault.hint("the page Tools lists what there is"),
    })
}

fn stats(desk: &Desk, name: &ToolName) -> ToolSummary {
    let reports = desk.tools.report();
    let mut tools = reports.into_iter().flat_map(|server| server.tools);
    tools.find(|tool| tool.name == *name).map(|tool| tool.stats).unwrap_or_default()
}

async fn users(desk: &Desk, tenant: &TenantId, tool: &Tool) -> Result<Vec<User>, Fault> {
    let plans = desk.query.plans(tenant, PlanFilter::default(), Page::first(PLANS_MAX)).await?;
    let looks = plans.items.iter().map(|summary| async move {
        let saved = desk.query.plan(tenant, &summary.id, Some(summary.revision)).await.ok()??;
        let pinned = saved.plan.tools.get(&tool.name)?.definition;
        let href = format!("/plans/{}@{}", format::encoded(summary.id.as_str()), summary.revision);
        Some(User {
            plan: Id { full: summary.id.to_string(), href },
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
        Safety::ReadOnly => "It only looks: it can be called again at any time.",
        Safety::Idempotent => {
            "Called again with the same arguments it changes nothing more, so that it is retried."
        }
        Safety::Once => {
            "Every call may have an effect of its own: a call that may have happened is never repeated blindly."
        }
    }
}

/// What the required parameters could be, to begin with.
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
    crate::words::cut(&serde_json::to_string_pretty(schema).unwrap_or_default(), SCHEMA_BYTES_MAX)
}
