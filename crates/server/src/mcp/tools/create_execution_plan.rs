//! `create_execution_plan`: a plan from selected tools, made by rules and checked like any other.

use crate::deed::plan::keep;
use crate::draft::{Wanted, draft, refuse, unknown};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::terse::{fitting, object, rows};
use crate::mcp::visit::Visit;
use rutter_core::plan::Driver;
use rutter_core::plan::document::Format;
use rutter_core::port::tools::{Catalog, Servers};
use rutter_engine::submit::PlanText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A larger plan is read with its resource.
const PLAN_BYTES_SHOWN_MAX: usize = 5 << 10;
/// What each list of parameters may take; the summary counts them all.
const LIST_BYTES_MAX: usize = 900;
/// A call with more inputs than fit is told without them.
const CALL_BYTES_MAX: usize = 600;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "create_execution_plan",
        title: "Draft a plan from tools",
        description: "Draft and save a plan of selected tools, one step each in that order. Deterministic, no model: \
                      parameters come from `context`, earlier results or schemas; unknown ones become inputs, see \
                      `missing`. No undo is made up. For other plans use save_plan.",
        nature: Nature::Keeps,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// In the user's words.
    request: String,
    /// server.tool, in order.
    selected_tools: Vec<String>,
    /// Values by name; `tool.name` and `server.name` win.
    #[serde(default)]
    context: Map<String, Value>,
    name: Option<String>,
    /// Default true.
    save: Option<bool>,
    request_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    summary: String,
    next: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u32>,
    // Left out when it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "object")]
    plan: Option<Value>,
    #[schemars(schema_with = "rows")]
    filled: Vec<Value>,
    // Inputs to give when it is executed.
    #[schemars(schema_with = "rows")]
    missing: Vec<Value>,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let wanted = Wanted {
        request: &input.request,
        name: input.name.as_deref(),
        tools: &input.selected_tools,
        context: &input.context,
    };
    let catalog = catalog(&visit, &wanted).await;
    refuse(&wanted, &catalog.tools, &|words| visit.desk.tools.search(words, 3)).map_err(|mut fault| {
        if let (Some(details), false) = (&mut fault.details, catalog.absent.is_empty()) {
            let absent = catalog.absent.iter();
            let absent: Vec<Value> =
                absent.map(|(server, why)| json!({ "server": server, "why": why.to_string() })).collect();
            details["servers_not_reached"] = json!(absent);
        }
        fault
    })?;
    let drafted = draft(&wanted, &catalog.tools);
    let text = PlanText {
        tenant: visit.guest.tenant.clone(),
        source: drafted.plan.to_string().into_bytes(),
        format: Format::Json,
        driver: Driver::Server,
    };
    let (id, revision) = match input.save.unwrap_or(true) {
        true => {
            let submitted = keep(&visit.caller(), text, None, None, input.request_id.as_deref()).await?;
            (Some(submitted.id.to_string()), Some(submitted.saved.revision()))
        }
        false => {
            visit.desk.engine.check(&text).await?;
            (None, None)
        }
    };
    let (filled, missing) = (drafted.filled.len(), drafted.missing.len());
    let steps = input.selected_tools.len();
    let state = if id.is_some() { "saved" } else { "checked, not saved" };
    let summary = format!(
        "drafted without a model and {state}: steps {steps}, parameters filled {filled}, inputs missing {missing}"
    );
    let shown = drafted.plan.to_string().len() <= PLAN_BYTES_SHOWN_MAX;
    Answer::done(&Output {
        summary,
        next: next(id.as_deref(), &drafted.inputs),
        plan_id: id,
        revision,
        plan: shown.then_some(drafted.plan),
        filled: fitting(drafted.filled.iter().map(|filled| json!(filled)), LIST_BYTES_MAX),
        missing: fitting(drafted.missing.iter().map(|missing| json!(missing)), LIST_BYTES_MAX),
    })
}

/// The tools of the servers that were named, or of all when one is unknown, so that a near name can be found.
async fn catalog(visit: &Visit, wanted: &Wanted<'_>) -> Catalog {
    let servers = wanted.tools.iter().filter_map(|tool| tool.split_once('.'));
    let servers = servers.map(|(server, _)| server.to_owned()).collect();
    let catalog = visit.desk.tools.catalog(Servers::Named(servers)).await;
    match unknown(wanted, &catalog.tools).is_empty() {
        true => catalog,
        false => visit.desk.tools.catalog(Servers::All).await,
    }
}

fn next(plan: Option<&str>, inputs: &Map<String, Value>) -> String {
    let Some(plan) = plan else {
        return "create_execution_plan without save: false, or save_plan".to_owned();
    };
    let call = match inputs.is_empty() {
        true => json!({ "plan_id": plan }),
        false => json!({ "plan_id": plan, "inputs": inputs }),
    };
    let undo = "no step declares a compensation; find_tools may have one, and save_plan with plan_id adds it";
    let call = call.to_string();
    match call.len() <= CALL_BYTES_MAX {
        true => format!("execute_plan {call}; {undo}"),
        false => format!("execute_plan {} with the inputs in `missing`; {undo}", json!({ "plan_id": plan })),
    }
}
