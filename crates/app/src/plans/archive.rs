//! Plans as a file: what an export contains, and what an import does with each plan of it.
//!
//! One plan is its document and nothing else, so that it can be edited and saved again. Several plans are in an envelope,
//! [`PlanArchive`]. An import saves every plan under its name, as any other door does.

use super::{DriverChoice, PlanInput, store_plan};
use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::rights::Operation;
use rutter_core::plan::Driver;
use rutter_core::plan::document::embedded::keep_texts;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::port::journal::SaveOutcome;
use rutter_core::port::query::SavedPlan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The format of an envelope. Another one is refused.
pub const FORMAT: &str = "rutter-plans/1";

/// Several plans, as an import reads them.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanArchive {
    /// `rutter-plans/1`
    pub format: String,
    pub plans: Vec<ArchivedPlan>,
}

/// One plan of an envelope. What is beside the document says where it came from; the document decides.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArchivedPlan {
    #[serde(default)]
    pub name: String,
    /// The revision where it was exported; where it is imported, revisions are counted anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// Who calls the tools: a plan for an agent may name tools that are not registered.
    #[serde(default)]
    pub driver: DriverChoice,
    pub document: PlanInput,
}

/// What an import did with a plan.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ImportedPlan")]
pub struct ImportedPlanView {
    pub name: String,
    pub result: ImportResult,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Why it was refused: code, message, hint, and the diagnostics of the check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub error: Option<AppError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportResult {
    /// No plan had this name.
    New,
    NextRevision,
    /// The newest revision has the same content.
    Unchanged,
    Refused,
}

/// The document of a saved plan as JSON, however it was written.
pub fn document(saved: &SavedPlan) -> Result<Value, AppError> {
    let unreadable = |_| AppError::new("server.internal", "a saved plan can no longer be read");
    let document = PlanDocument::read(&saved.plan.source, saved.plan.format).map_err(unreadable)?;
    Ok((*document.value).clone())
}

/// Several saved plans as an envelope.
pub fn envelope(saved: &[SavedPlan]) -> Result<Value, AppError> {
    let plan = |saved: &SavedPlan| {
        let mut plan = json!({ "name": saved.summary.name, "revision": saved.summary.revision,
            "hash": saved.summary.hash });
        if saved.plan.driver() == Driver::Agent {
            plan["driver"] = json!(DriverChoice::Agent);
        }
        plan["document"] = document(saved)?;
        Ok(plan)
    };
    let plans: Vec<Value> = saved.iter().map(plan).collect::<Result<_, AppError>>()?;
    Ok(json!({ "format": FORMAT, "plans": plans }))
}

/// Reads an envelope, or the text of one plan. Every document is kept as it was written, for the strict reader.
pub fn read(bytes: &[u8], driver: DriverChoice) -> Result<Vec<ArchivedPlan>, AppError> {
    let is_json = DocumentFormat::guess(bytes) == DocumentFormat::Json;
    let value = is_json.then(|| serde_json::from_slice::<Value>(bytes).ok()).flatten();
    let Some(mut value) = value.filter(|value| value.get("format").is_some()) else {
        let text = std::str::from_utf8(bytes);
        let text =
            text.map_err(|_| AppError::new("document.encoding", "expected UTF-8 text, found an invalid byte"))?;
        let document = PlanInput::Text(text.to_owned());
        return Ok(vec![ArchivedPlan { name: String::new(), revision: None, hash: None, driver, document }]);
    };
    let wrong =
        |error: serde_json::Error| AppError::new("server.arguments", format!("not an export of plans: {error}"));
    // From the text: a general reader keeps the last of two equal fields, and would lose plans.
    serde_json::from_slice::<PlanArchive>(bytes).map_err(wrong)?;
    keep_texts(bytes, &mut value, &["plans"], "document");
    serde_json::from_value::<PlanArchive>(value).map_err(wrong)?.plans()
}

impl PlanArchive {
    /// Its plans, if this version knows its format.
    pub fn plans(self) -> Result<Vec<ArchivedPlan>, AppError> {
        match self.format == FORMAT {
            true => Ok(self.plans),
            false => {
                let message = format!("format {:?} is not known; expected {FORMAT:?}", self.format);
                Err(AppError::new("server.arguments", message))
            }
        }
    }
}

/// Saves every plan under its name. A plan that is refused does not hinder the others.
pub async fn import(
    app: &App,
    caller: &Principal,
    plans: Vec<ArchivedPlan>,
) -> Result<Vec<ImportedPlanView>, AppError> {
    app.require(caller, Operation::SavePlan)?;
    let mut imported = Vec::new();
    for plan in plans {
        imported.push(import_one(app, caller, plan).await);
    }
    Ok(imported)
}

async fn import_one(app: &App, caller: &Principal, plan: ArchivedPlan) -> ImportedPlanView {
    let saved = match plan.document.text(&caller.tenant, plan.driver.into()) {
        Ok(text) => store_plan(app, caller, text, None, None, None).await,
        Err(error) => Err(error),
    };
    match saved {
        Ok(submitted) => ImportedPlanView {
            name: submitted.accepted.plan.name.clone(),
            result: match submitted.saved {
                SaveOutcome::New { revision: 1 } => ImportResult::New,
                SaveOutcome::New { .. } => ImportResult::NextRevision,
                SaveOutcome::Already { .. } => ImportResult::Unchanged,
            },
            plan_id: Some(submitted.id.to_string()),
            revision: Some(submitted.saved.revision()),
            error: None,
        },
        Err(error) => ImportedPlanView {
            name: plan.document.name().unwrap_or(plan.name),
            result: ImportResult::Refused,
            plan_id: None,
            revision: None,
            error: Some(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Result<Vec<String>, String> {
        let plans = read(text.as_bytes(), DriverChoice::Server).map_err(|error| error.message)?;
        let text = |plan: ArchivedPlan| match plan.document {
            PlanInput::Text(text) => text,
            PlanInput::Object(fields) => panic!("the text of {fields:?} is lost"),
        };
        Ok(plans.into_iter().map(text).collect())
    }

    #[test]
    fn one_plan_or_an_envelope_is_read_and_every_document_stays_as_written() {
        let plan = r#"{ "name": "a", "name": "b" }"#;
        assert_eq!(texts(plan).unwrap(), [plan]);
        assert_eq!(texts("name: a\n").unwrap(), ["name: a\n"]);
        let envelope = format!(r#"{{"format": "{FORMAT}", "plans": [{{"name": "a", "document": {plan}}}]}}"#);
        assert_eq!(texts(&envelope).unwrap(), [plan]);
    }

    #[test]
    fn an_envelope_with_a_mistake_is_refused_as_a_whole() {
        for (text, why) in [
            (r#"{"format": "rutter-plans/2", "plans": []}"#, "\"rutter-plans/2\" is not known"),
            (r#"{"format": "rutter-plans/1"}"#, "missing field `plans`"),
            (r#"{"format": "rutter-plans/1", "plans": [], "plans": []}"#, "duplicate field `plans`"),
            (r#"{"format": "rutter-plans/1", "plans": [], "plnas": []}"#, "unknown field `plnas`"),
            (r#"{"format": "rutter-plans/1", "plans": [{"name": "a"}]}"#, "missing field `document`"),
            (r#"{"format": "rutter-plans/1", "plans": [{"document": 7}]}"#, "not an export of plans"),
        ] {
            let refused = texts(text).unwrap_err();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
