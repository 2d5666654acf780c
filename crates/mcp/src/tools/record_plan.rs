//! `record_plan`: saves a plan that the agent will execute with its own tools.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::plans::{PlanInput, SamePlanInput, save_plan};
use rutter_app::principal::McpToolset;
use rutter_app::records::full_name;
use rutter_app::view::SavedPlanView;
use rutter_core::plan::Driver;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::time::calendar::utc;
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "record_plan",
        title: "Record a plan",
        description: "Save a plan of calls that you will make with your own tools, before you make them. It is checked: \
                      duplicate ids, unknown references and cycles are refused. Then record_execution_start.",
        behavior: ToolBehavior::Keeps,
        toolsets: &[McpToolset::Journal],
    };
    McpToolDefinition::new::<RecordPlanArguments, RecordPlanResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordPlanArguments {
    name: Option<String>,
    description: Option<String>,
    steps: Option<PlanStepsInput>,
    /// Instead of name, description and steps: all of it as one object.
    plan: Option<SamePlanInput>,
    request_id: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
struct PlanStepsInput(Vec<Map<String, Value>>);

/// Describes the common fields; the plan check decides about the rest.
impl JsonSchema for PlanStepsInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Steps".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        let text = || json_schema!({ "type": "string" });
        let texts = || json_schema!({ "type": "array", "items": text() });
        json_schema!({ "type": "array", "items": { "type": "object", "required": ["id", "tool"], "properties": {
            "id": text(),
            "name": text(),
            "tool": text(),
            "parameters": { "type": "object" },
            "depends_on": texts(),
            "cancellable": { "type": "string", "enum": ["reversible", "partially-reversible", "irreversible"] },
            "failure_policy": { "type": "object", "properties": {
                "propagate_to": texts(),
                "action": { "type": "string", "enum": ["cancel_all", "cancel_dependent", "continue_others",
                    "manual_decision"] },
                "reason": text() } } } } })
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct RecordPlanResult {
    summary: String,
    next: String,
    plan_id: String,
    name: String,
    #[schemars(skip)]
    revision: u32,
    #[schemars(skip)]
    hash: String,
    steps_count: usize,
    created_at: String,
    failure_policies_defined: usize,
}

async fn run(request: ToolRequest, input: RecordPlanArguments) -> Result<ToolAnswer, AppError> {
    let RecordPlanArguments { name, description, steps, plan, request_id } = input;
    let plan = match (plan, &name, &description, steps) {
        (Some(SamePlanInput(plan)), None, None, None) => plan,
        (None, _, _, Some(PlanStepsInput(steps))) => {
            let texts = [("name", name), ("description", description)];
            let mut fields: Map<String, Value> =
                texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text?)))).collect();
            fields.insert("steps".to_owned(), json!(steps));
            PlanInput::Object(fields)
        }
        _ => {
            return Err(AppError::new("server.arguments", "give either plan, or name, description and steps"));
        }
    };
    let failure_policies_defined = policies(&plan);
    let text = with_full_names(plan).text(&request.principal.tenant, Driver::Agent)?;
    let submitted = save_plan(&request.app, &request.principal(), text, None, None, request_id.as_deref()).await?;
    let (id, revision) = (&submitted.id, submitted.saved.revision());
    let saved = request.app.query.plan(&request.principal.tenant, id, Some(revision)).await?;
    let created_at = saved.ok_or_else(|| AppError::missing("plan", id.as_str()))?.summary.saved_at;
    let (plan, view) = (&submitted.accepted.plan, SavedPlanView::of(&submitted));
    let warnings = submitted.accepted.found.iter().map(|found| format!("; {}", found.message)).take(3);
    ToolAnswer::done(&RecordPlanResult {
        summary: format!("recorded {:?} with {} steps{}", plan.name, plan.steps.len(), warnings.collect::<String>()),
        next: format!("record_execution_start {}", json!({ "plan_id": id })),
        plan_id: id.to_string(),
        name: view.name,
        revision,
        hash: view.hash,
        steps_count: view.steps_count,
        created_at: utc(created_at),
        failure_policies_defined,
    })
}

/// Agents use short tool names; in plans a tool name includes its server.
fn with_full_names(plan: PlanInput) -> PlanInput {
    let mut plan = match plan {
        PlanInput::Object(plan) => plan,
        PlanInput::Text(text) => match PlanDocument::read(text.as_bytes(), DocumentFormat::guess(text.as_bytes())) {
            Ok(document) => match &*document.value {
                Value::Object(plan) => plan.clone(),
                _ => return PlanInput::Text(text),
            },
            // The check names every mistake.
            Err(_) => return PlanInput::Text(text),
        },
    };
    let steps = plan.get_mut("steps").and_then(Value::as_array_mut);
    steps.into_iter().flatten().for_each(name_call);
    PlanInput::Object(plan)
}

fn name_call(call: &mut Value) {
    let Value::Object(fields) = call else { return };
    if let Some(Value::String(tool)) = fields.get_mut("tool") {
        *tool = full_name(tool);
    }
    for key in ["compensation", "fallback", "probe"] {
        if let Some(call) = fields.get_mut(key) {
            name_call(call);
        }
    }
}

/// How many steps have a failure policy of their own.
fn policies(plan: &PlanInput) -> usize {
    let count = |steps: Option<&Value>| {
        let steps = steps.and_then(Value::as_array).into_iter().flatten();
        steps.filter(|step| step.get("failure_policy").is_some()).count()
    };
    match plan {
        PlanInput::Object(fields) => count(fields.get("steps")),
        PlanInput::Text(text) => {
            // An unreadable plan is refused by the check.
            let document = PlanDocument::read(text.as_bytes(), DocumentFormat::guess(text.as_bytes()));
            document.map_or(0, |document| count(document.value.get("steps")))
        }
    }
}
