//! The result of saving a plan, or of checking it.

use super::{PointOfNoReturnView, StepRulesView};
use rutter_core::diagnostic::Diagnostic;
use rutter_core::id::PlanId;
use rutter_core::port::journal::SaveOutcome;
use rutter_core::preview::preview;
use rutter_core::text::spelled;
use rutter_core::tool::ToolFailure;
use rutter_engine::submit::{AcceptedPlan, SubmittedPlan};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SavedPlan")]
pub struct SavedPlanView {
    pub summary: String,
    /// Absent after a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
    /// Whether this revision was saved now; absent after a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_new: Option<bool>,
    pub name: String,
    pub hash: String,
    pub steps_count: usize,
    /// Warnings of the check.
    pub warnings: Vec<DiagnosticView>,
    /// The first step after whose start not everything can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point_of_no_return: Option<PointOfNoReturnView>,
    /// Steps to which a rule of the operator's policy will or may apply; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<StepRulesView>,
}

/// One finding of the check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Diagnostic")]
pub struct DiagnosticView {
    pub code: String,
    pub severity: String,
    /// JSON Pointer into the source of the plan.
    pub pointer: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// A JSON Patch that fixes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Vec<Value>>,
}

/// A server whose tools could not be listed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "UnreachableServer")]
pub struct UnreachableServerView {
    pub server: String,
    pub why: String,
}

impl SavedPlanView {
    pub fn of(submitted: &SubmittedPlan) -> SavedPlanView {
        SavedPlanView::with(&submitted.accepted, Some((&submitted.id, submitted.saved)))
    }

    /// After a dry run.
    pub fn checked(accepted: &AcceptedPlan) -> SavedPlanView {
        SavedPlanView::with(accepted, None)
    }

    fn with(accepted: &AcceptedPlan, saved: Option<(&PlanId, SaveOutcome)>) -> SavedPlanView {
        let plan = &accepted.plan;
        let name = &plan.name;
        SavedPlanView {
            summary: match saved {
                None => format!("{name:?} is valid; nothing was saved"),
                Some((_, SaveOutcome::New { revision })) => format!("saved {name:?} as revision {revision}"),
                Some((_, SaveOutcome::Already { revision })) => {
                    format!("{name:?} is already saved as revision {revision}")
                }
            },
            plan_id: saved.map(|(id, _)| id.to_string()),
            revision: saved.map(|(_, outcome)| outcome.revision()),
            is_new: saved.map(|(_, outcome)| matches!(outcome, SaveOutcome::New { .. })),
            name: name.clone(),
            hash: plan.hash.to_string(),
            steps_count: plan.steps.len(),
            warnings: DiagnosticView::all(&accepted.found),
            point_of_no_return: preview(plan).point_of_no_return.as_ref().map(PointOfNoReturnView::of),
            policy: StepRulesView::all(&accepted.policy),
        }
    }
}

impl DiagnosticView {
    pub fn all(found: &[Diagnostic]) -> Vec<DiagnosticView> {
        found.iter().map(DiagnosticView::of).collect()
    }

    fn of(found: &Diagnostic) -> DiagnosticView {
        DiagnosticView {
            code: found.code.to_owned(),
            severity: spelled(&found.severity),
            pointer: found.pointer.clone(),
            message: found.message.clone(),
            hint: found.hint.clone(),
            fix: found.fix.as_ref().map(|fix| fix.iter().map(|operation| json!(operation)).collect()),
        }
    }
}

impl UnreachableServerView {
    pub fn all(absent: &[(String, ToolFailure)]) -> Vec<UnreachableServerView> {
        let one = |(server, failure): &(String, ToolFailure)| UnreachableServerView {
            server: server.clone(),
            why: failure.to_string(),
        };
        absent.iter().map(one).collect()
    }
}
