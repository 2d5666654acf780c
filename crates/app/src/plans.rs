//! A plan as it arrives, as an object or as text, and how it is saved.

pub mod archive;
pub mod identity;
pub mod state;

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::request_key::{RequestKey, digest};
use crate::rights::Operation;
pub use identity::{find_plan, saved_plan};
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::{Driver, Plan};
use rutter_core::policy::expect::PlanCaller;
use rutter_core::port::journal::SaveOutcome;
use rutter_core::preview::{PlanPreview, preview_under};
use rutter_engine::submit::{AcceptedPlan, PlanText, SubmittedPlan};
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The plan itself, or its text in YAML or JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
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

    /// The name it gives itself, if it can be read.
    pub fn name(&self) -> Option<String> {
        let name = |value: &Value| {
            let named = ["/name", "/plan/name"].iter().find_map(|pointer| value.pointer(pointer));
            named.and_then(Value::as_str).map(str::to_owned)
        };
        match self {
            PlanInput::Object(fields) => name(&Value::Object(fields.clone())),
            PlanInput::Text(text) => {
                let bytes = text.as_bytes();
                name(&PlanDocument::read(bytes, DocumentFormat::guess(bytes)).ok()?.value)
            }
        }
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

/// Saves a plan: as the next revision of `plan`, given by id or name, or else of the plan with its name. The same content
/// is the same revision.
pub async fn save_plan(
    app: &App,
    caller: &Principal,
    text: PlanText,
    plan: Option<&str>,
    expected: Option<u32>,
    request: Option<&str>,
) -> Result<SubmittedPlan, AppError> {
    app.require(caller, Operation::SavePlan)?;
    store_plan(app, caller, text, plan, expected, request).await
}

/// A preview of a plan under the operator's policy, with everybody who has a say in the calls of its execution, if there
/// is one.
pub fn preview_plan(app: &App, plan: &Plan, tenant: &TenantId, principals: Option<&[Actor]>) -> PlanPreview {
    preview_under(plan, app.engine.policy(), PlanCaller { tenant: Some(tenant), principals })
}

/// The same for an operation that saves a plan on its way, and has its own row in the table of rights.
pub(crate) async fn store_plan(
    app: &App,
    caller: &Principal,
    text: PlanText,
    plan: Option<&str>,
    expected: Option<u32>,
    request: Option<&str>,
) -> Result<SubmittedPlan, AppError> {
    let key = RequestKey::of(caller, request)?;
    let digest = save_digest(&text, plan, expected);
    // A plan that was deleted meanwhile is saved anew.
    if let Some((id, revision)) = key.saved_plan(app, &text.tenant, digest).await?
        && let Some(saved) = app.query.plan(&text.tenant, &id, Some(revision)).await?
    {
        let policy = app.engine.expected_rules(&saved.plan, &text.tenant);
        let accepted = AcceptedPlan { plan: saved.plan, found: Vec::new(), absent: Vec::new(), policy };
        return Ok(SubmittedPlan { id, saved: SaveOutcome::Already { revision }, accepted });
    }
    let revised = match plan {
        Some(plan) => Some(identity::whole(app, &text.tenant, plan, "saved as the next one").await?.summary.id),
        None => None,
    };
    let accepted = app.engine.check(&text).await?;
    let submitted = match revised {
        Some(id) => save_accepted(app, caller, accepted, id, expected).await?,
        None => save_by_name(app, caller, accepted, expected).await?,
    };
    let saved = (&submitted.id, submitted.saved.revision());
    key.remember_saved(app, &text.tenant, digest, saved, None).await?;
    Ok(submitted)
}

/// What a request to draft a plan was answered when it first came. Asked before the tools are, which may have changed.
pub async fn drafted_before(
    app: &App,
    caller: &Principal,
    arguments: &Value,
    request: Option<&str>,
) -> Result<Option<Value>, AppError> {
    app.require(caller, Operation::SavePlan)?;
    let key = RequestKey::of(caller, request)?;
    key.drafted(app, &caller.tenant, digest(DRAFT_DIGEST, arguments)).await
}

/// Remembers the answer to a request that drafted and saved a plan.
pub async fn remember_draft(
    app: &App,
    caller: &Principal,
    arguments: &Value,
    request: Option<&str>,
    saved: (&PlanId, u32),
    answer: Value,
) -> Result<(), AppError> {
    let key = RequestKey::of(caller, request)?;
    key.remember_saved(app, &caller.tenant, digest(DRAFT_DIGEST, arguments), saved, Some(answer)).await
}

const DRAFT_DIGEST: &str = "rutter/draft/v1";

/// Saves a checked plan under its name.
async fn save_by_name(
    app: &App,
    caller: &Principal,
    accepted: AcceptedPlan,
    expected: Option<u32>,
) -> Result<SubmittedPlan, AppError> {
    for nth in 0..DELETED_MAX {
        let id = identity::of(app, &caller.tenant, &accepted.plan, nth).await?;
        match save_accepted(app, caller, accepted.clone(), id, expected).await {
            // A deleted plan had this id.
            Err(error) if error.code == "store.not_found" => {}
            saved => return saved,
        }
    }
    Err(AppError::new("store.conflict", format!("too many deleted plans had the name {:?}", accepted.plan.name)))
}

/// The most deleted plans of one name whose texts journals still need.
const DELETED_MAX: u64 = 1_000;

/// Saves a checked plan as the next revision of `id`, unless the newest has the same content and the same tools.
pub(crate) async fn save_accepted(
    app: &App,
    caller: &Principal,
    accepted: AcceptedPlan,
    id: PlanId,
    expected: Option<u32>,
) -> Result<SubmittedPlan, AppError> {
    let newest = app.query.plan(&caller.tenant, &id, None).await?;
    newest.as_ref().map_or(Ok(()), state::refuse_archived)?;
    if let Some(newest) = newest.filter(|newest| newest.plan.has_same_content(&accepted.plan)) {
        let saved = SaveOutcome::Already { revision: newest.summary.revision };
        // It may be written otherwise, and has another hash then.
        return Ok(SubmittedPlan { id, saved, accepted: AcceptedPlan { plan: newest.plan, ..accepted } });
    }
    if identity::is_named(&accepted.plan) {
        state::refuse_name(app, caller, &id, &accepted.plan.name).await?;
    }
    Ok(app.engine.save(caller.tenant.clone(), accepted, Some(id), expected, caller.actor()).await?)
}

fn save_digest(text: &PlanText, plan: Option<&str>, expected: Option<u32>) -> Hash {
    let request = json!({ "plan": given(text), "plan_id": plan, "expected_revision": expected,
        "driver": text.driver.as_str() });
    digest("rutter/save/v1", &request)
}

/// A plan as part of a digest: its document, however it was written, or its text where it cannot be read.
pub(crate) fn given(text: &PlanText) -> Value {
    match PlanDocument::read(&text.source, text.format) {
        Ok(document) => json!({ "document": document.value }),
        Err(_) => json!({ "text": String::from_utf8_lossy(&text.source) }),
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

impl From<Driver> for DriverChoice {
    fn from(driver: Driver) -> DriverChoice {
        match driver {
            Driver::Server => DriverChoice::Server,
            Driver::Agent => DriverChoice::Agent,
        }
    }
}

pub fn no_plan(id: &PlanId) -> AppError {
    AppError::missing("plan", id.as_str()).hint("find_plans finds saved plans; save_plan saves a new one")
}
