//! `record_plan`: keeps a plan that the agent will carry out with tools of its own.

use crate::deed::plan::{PlanInput, SamePlanInput, keep};
use crate::deed::record::full_name;
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::visit::Visit;
use rutter_core::plan::Driver;
use rutter_core::plan::document::Document;
use rutter_core::time::calendar::utc;
use rutter_engine::submit::PlanText;
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub(super) fn tool() -> Tool {
    let about = About {
        name: "record_plan",
        title: "Record a plan",
        description: "Keep a plan of calls that you will make with your own tools, before you make them. It is checked: \
                      duplicate ids, unknown references and cycles are refused. Then record_execution_start.",
        nature: Nature::Keeps,
        toolsets: &[Toolset::Journal],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    name: Option<String>,
    description: Option<String>,
    steps: Option<Steps>,
    /// Instead of name, description and steps: all of it as one object.
    plan: Option<SamePlanInput>,
    request_id: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
struct Steps(Vec<Map<String, Value>>);

/// The check of the plan is the judge; this says what is used most.
impl JsonSchema for Steps {
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
struct Output {
    summary: String,
    next: String,
    plan_id: String,
    name: String,
    steps_count: usize,
    created_at: String,
    failure_policies_defined: usize,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let Input { name, description, steps, plan, request_id } = input;
    let plan = match (plan, &name, &description, steps) {
        (Some(SamePlanInput(plan)), None, None, None) => plan,
        (None, _, _, Some(Steps(steps))) => {
            let texts = [("name", name), ("description", description)];
            let mut fields: Map<String, Value> =
                texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text?)))).collect();
            fields.insert("steps".to_owned(), json!(steps));
            PlanInput::Object(fields)
        }
        _ => return Err(Fault::new("server.arguments", "give either plan, or name, description and steps")),
    };
    let text = with_full_names(plan).text(&visit.guest.tenant, Driver::Agent)?;
    let failure_policies_defined = policies(&text);
    let submitted = keep(&visit.caller(), text, None, None, request_id.as_deref()).await?;
    let (id, revision) = (&submitted.id, submitted.saved.revision());
    let saved = visit.desk.query.plan(&visit.guest.tenant, id, Some(revision)).await?;
    let created_at = saved.ok_or_else(|| Fault::missing("plan", id.as_str()))?.summary.saved_at;
    let plan = &submitted.accepted.plan;
    let warnings = submitted.accepted.found.iter().map(|found| format!("; {}", found.message)).take(3);
    Answer::done(&Output {
        summary: format!(
            "recorded {:?} with {} steps{}",
            plan.name,
            plan.steps.len(),
            warnings.collect::<String>()
        ),
        next: format!("record_execution_start {}", json!({ "plan_id": id })),
        plan_id: id.to_string(),
        name: plan.name.clone(),
        steps_count: plan.steps.len(),
        created_at: utc(created_at),
        failure_policies_defined,
    })
}

/// Agents call their tools by short names; in plans a tool is of a server.
fn with_full_names(plan: PlanInput) -> PlanInput {
    let PlanInput::Object(mut plan) = plan else { return plan };
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

/// Steps that say themselves what their failure means.
fn policies(text: &PlanText) -> usize {
    // What cannot be read is refused by the check.
    let Ok(document) = Document::read(&text.source, text.format) else { return 0 };
    let steps = document.value.get("steps").and_then(Value::as_array);
    steps.map_or(0, |steps| steps.iter().filter(|step| step.get("failure_policy").is_some()).count())
}
