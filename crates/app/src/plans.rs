//! A plan as it arrives, as an object or as text, and how it is saved.

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::request_key::RequestKey;
use crate::rights::{Operation, require};
use rutter_core::hash::Hash;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::port;
use rutter_engine::Error;
use rutter_engine::submit::{PlanText, SubmittedPlan};
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The plan itself, or its text in YAML or JSON.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum PlanInput {
    Text(String),
    Object(serde_json::Map<String, Value>),
}

impl PlanInput {
    pub fn text(&self, tenant: &TenantId, driver: Driver) -> Result<PlanText, AppError> {
        let source = match self {
            PlanInput::Text(text) => text.clone().into_bytes(),
            PlanInput::Object(fields) => {
                let bytes = serde_json::to_vec(fields);
                bytes.map_err(|error| AppError::new("server.arguments", error.to_string()))?
            }
        };
        let format = DocumentFormat::guess(&source);
        Ok(PlanText { tenant: tenant.clone(), source, format, driver })
    }
}

/// The schema lists only the most used fields: all of them would cost every prompt more than they help. The plan check
/// decides, and the reference is a resource.
impl JsonSchema for PlanInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Plan".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        let call = |what: &str| {
            json_schema!({ "type": "object", "description": what, "properties": {
                "tool": { "type": "string" }, "parameters": { "type": "object" } } })
        };
        json_schema!({
            "type": "object",
            "description": "All fields: rutter://plan-reference",
            "properties": {
                "name": { "type": "string" },
                "goal": { "type": "string" },
                "inputs": { "type": "object", "description": "JSON Schema of the inputs" },
                "max_parallel": { "type": "integer", "description": "Default 1" },
                "on_failure": { "type": "string", "enum": ["manual_decision", "cancel_all", "cancel_dependent",
                    "continue_others", "compensate"] },
                "steps": { "type": "array", "items": { "type": "object", "required": ["id", "tool"], "properties": {
                    "id": { "type": "string" },
                    "tool": { "type": "string", "description": "server.tool, from find_tools" },
                    "parameters": { "type": "object", "description":
                        "Values, {{ inputs.x }}, {{ steps.id.result.y }}, {{ key }} (idempotency key)" },
                    "depends_on": { "type": "array", "items": { "type": "string" } },
                    "cancellable": { "type": "string", "enum": ["reversible", "partially-reversible", "irreversible"] },
                    "compensation": call("Undoes it; may use {{ result.x }}, {{ parameters.x }}"),
                    "probe": call("Reads whether it happened; `happened`: expression that says so"),
                    "approval": { "type": "object", "description": "{required: true}: a person must approve" },
                } } },
            },
            "required": ["name", "steps"],
        })
    }
}

/// Saves a plan. A new plan's id is derived from the request's id, or else from its text, so that a repeated request
/// saves one plan.
pub async fn save_plan(
    app: &App,
    caller: &Principal,
    text: PlanText,
    plan: Option<PlanId>,
    expected: Option<u32>,
    request: Option<&str>,
) -> Result<SubmittedPlan, AppError> {
    require(caller, Operation::SavePlan)?;
    store_plan(app, caller, text, plan, expected, request).await
}

/// The same for an operation that saves a plan on its way, and has its own row in the table of rights.
pub(crate) async fn store_plan(
    app: &App,
    caller: &Principal,
    text: PlanText,
    plan: Option<PlanId>,
    expected: Option<u32>,
    request: Option<&str>,
) -> Result<SubmittedPlan, AppError> {
    let engine = &app.engine;
    if plan.is_some() {
        return Ok(engine.submit(text, plan, expected, caller.actor()).await?);
    }
    let key = RequestKey::of(caller, request)?;
    let hash = match &key.stored {
        Some(key) => Hash::of_fields("rutter/plan-of-request/v1", &[key.as_bytes()]),
        None => Hash::of_fields("rutter/plan-of-text/v1", &[&text.source]),
    };
    let id = PlanId::new(&format!("plan_{}", &hash.to_string()[..26]));
    let accepted = engine.check(&text).await?;
    match (engine.save(text.tenant.clone(), accepted.clone(), Some(id), Some(0), caller.actor()).await, request) {
        // The key was used before, for another plan.
        (Err(Error::Store(port::Error::Conflict { .. })), Some(_)) => Err(key.reused()),
        // The plan saved under this text has newer revisions, or its tools have changed.
        (Err(Error::Store(port::Error::Conflict { .. })), None) => {
            Ok(engine.save(text.tenant, accepted, None, None, caller.actor()).await?)
        }
        (stored, _) => Ok(stored?),
    }
}

/// The same where the schema was given before; repeating it would cost every prompt.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct SamePlanInput(pub PlanInput);

impl JsonSchema for SamePlanInput {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SamePlan".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "description": "A plan as in save_plan" })
    }
}

// Who calls the tools: Rutter, or the agent, which then records each call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverChoice {
    #[default]
    Server,
    Agent,
}

impl From<DriverChoice> for Driver {
    fn from(drives: DriverChoice) -> Driver {
        match drives {
            DriverChoice::Server => Driver::Server,
            DriverChoice::Agent => Driver::Agent,
        }
    }
}

pub fn no_plan(id: &PlanId) -> AppError {
    AppError::missing("plan", id.as_str()).hint("find_plans finds saved plans; save_plan saves a new one")
}
