//! A preview: what can be undone, what each failure leads to, a forecast, and what undoing an execution now would do.

use crate::forecast::ForecastJson;
use crate::rollback::Rollback;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::policy::expect::{ExpectedRule, StepRules};
use rutter_core::preview::{PlanPreview, PointOfNoReturn, StepPreview, WhatIfScenario};
use rutter_core::text::spelled;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Preview")]
pub struct PreviewView {
    /// The first step after whose start not everything can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point_of_no_return: Option<PointOfNoReturnView>,
    /// The longest chain of steps that must follow each other.
    pub critical_path: Vec<String>,
    /// In the order they run when nothing fails.
    pub steps: Vec<StepPreviewView>,
    /// For an execution: what undoing it now would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollback: Option<RollbackView>,
    /// The forecast from history; absent for an execution that makes no more forward steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastJson>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PointOfNoReturn")]
pub struct PointOfNoReturnView {
    pub step: String,
    pub reason: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "StepPreview")]
pub struct StepPreviewView {
    pub step: String,
    pub undo: String,
    pub why: String,
    pub guarantee: String,
    pub guarantee_why: String,
    /// What happens when it is unknown whether the step took effect.
    pub in_doubt: String,
    pub what_if: WhatIfView,
    /// The rules of the operator's policy that will or may apply to its calls; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<ExpectedRuleView>,
}

/// A rule of the operator's policy that will or may apply to a call of a step, if the call is made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ExpectedRule")]
pub struct ExpectedRuleView {
    pub rule: String,
    /// `deny`, `approval` or `limit`.
    pub kind: String,
    /// `certain`, or `possible` if it depends on what is known only in the run.
    pub certainty: String,
    /// Which call of the step: `do`, `fallback`, `undo` or `probe`.
    pub call: String,
    pub tool: String,
    /// Who may approve; anyone with the right to if absent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// What the rule says.
    pub effect: String,
    /// Why it matches, or what that depends on.
    pub reason: String,
}

/// The rules that will or may apply to the calls of a step.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "StepRules")]
pub struct StepRulesView {
    pub step: String,
    pub rules: Vec<ExpectedRuleView>,
}

/// The step fails permanently, without effect.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "WhatIf")]
pub struct WhatIfView {
    pub action: String,
    pub ends: String,
    pub completed: Vec<String>,
    pub continue_with: Vec<String>,
    pub held: Vec<String>,
    pub cancelled: Vec<String>,
    pub skipped: Vec<String>,
    pub undone: Vec<String>,
    pub undoable: Vec<String>,
    pub remains: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Rollback")]
pub struct RollbackView {
    pub count: usize,
    pub in_order: Vec<UndoCallView>,
    /// Steps with an effect and no compensation.
    pub stays: Vec<String>,
    /// Running steps, which finish first and are then undone if possible.
    pub under_way: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "UndoCall")]
pub struct UndoCallView {
    pub step: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

impl PreviewView {
    pub fn of(preview: &PlanPreview, rollback: Option<&Rollback>, forecast: Option<ForecastJson>) -> PreviewView {
        let cards = preview.steps.iter().zip(&preview.what_if);
        PreviewView {
            point_of_no_return: preview.point_of_no_return.as_ref().map(PointOfNoReturnView::of),
            critical_path: names(&preview.critical_path),
            steps: cards.map(|(card, what_if)| StepPreviewView::of(card, what_if)).collect(),
            rollback: rollback.map(RollbackView::of),
            forecast,
        }
    }
}

impl PointOfNoReturnView {
    pub fn of(point: &PointOfNoReturn) -> PointOfNoReturnView {
        PointOfNoReturnView { step: point.step.to_string(), reason: point.reason.clone() }
    }
}

impl StepPreviewView {
    pub fn of(card: &StepPreview, what_if: &WhatIfScenario) -> StepPreviewView {
        StepPreviewView {
            step: card.step.to_string(),
            undo: spelled(&card.undo.coverage),
            why: card.undo.reason.clone(),
            guarantee: spelled(&card.guarantee.kind),
            guarantee_why: card.guarantee.reason.clone(),
            in_doubt: card.guarantee.in_doubt.clone(),
            what_if: WhatIfView {
                action: spelled(&what_if.action),
                ends: spelled(&what_if.ends),
                completed: names(&what_if.completed),
                continue_with: names(&what_if.continue_with),
                held: names(&what_if.held),
                cancelled: names(&what_if.cancelled),
                skipped: names(&what_if.skipped),
                undone: names(&what_if.undone),
                undoable: names(&what_if.undoable),
                remains: names(&what_if.remains),
            },
            policy: card.policy.iter().map(ExpectedRuleView::of).collect(),
        }
    }
}

impl ExpectedRuleView {
    fn of(expected: &ExpectedRule) -> ExpectedRuleView {
        ExpectedRuleView {
            rule: expected.rule.clone(),
            kind: expected.kind.to_owned(),
            certainty: spelled(&expected.certainty),
            call: expected.call.to_owned(),
            tool: expected.tool.to_string(),
            by: expected.by.clone(),
            effect: expected.effect.clone(),
            reason: expected.reason.clone(),
        }
    }
}

impl StepRulesView {
    pub fn all(steps: &[StepRules]) -> Vec<StepRulesView> {
        let one = |step: &StepRules| StepRulesView {
            step: step.step.to_string(),
            rules: step.rules.iter().map(ExpectedRuleView::of).collect(),
        };
        steps.iter().map(one).collect()
    }
}

impl RollbackView {
    pub fn of(rollback: &Rollback) -> RollbackView {
        let names = |parts: &[PartId]| parts.iter().map(ToString::to_string).collect();
        let undoing = |(part, tool): &(PartId, Option<ToolName>)| UndoCallView {
            step: part.to_string(),
            tool: tool.as_ref().map(ToString::to_string),
        };
        RollbackView {
            count: rollback.parts.len(),
            in_order: rollback.parts.iter().map(undoing).collect(),
            stays: names(&rollback.stays),
            under_way: names(&rollback.under_way),
        }
    }
}

fn names(steps: &[StepId]) -> Vec<String> {
    steps.iter().map(ToString::to_string).collect()
}
