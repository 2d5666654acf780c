//! A step of an execution.

use rutter_core::execution::Execution;
use rutter_core::execution::view::StepSnapshot;
use rutter_core::plan::Plan;
use rutter_core::text::{cut, spelled};
use rutter_core::time::calendar::utc;
use rutter_core::tool::ToolFailure;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The length of each text of a step in a short answer.
const SHORT_TEXT_CHARS_MAX: usize = 160;

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Step")]
pub struct StepView {
    pub id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub tool: String,
    pub status: String,
    pub depends_on: Vec<String>,
    pub attempts: u32,
    /// A person or an agent did it, or undid it, by hand.
    pub by_hand: bool,
    /// It has taken effect, or may have.
    pub touched: bool,
    /// Of a fan-out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureView>,
    /// Why it was skipped or cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
    pub failure_policy: FailurePolicyView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// What happens when the step fails for good.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "FailurePolicy")]
pub struct FailurePolicyView {
    pub action: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub propagate_to: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Settled items, and all items.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ItemCounts {
    pub settled: usize,
    pub total: usize,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Failure")]
pub struct FailureView {
    pub category: String,
    pub message: String,
}

impl FailureView {
    pub fn of(failure: &ToolFailure) -> FailureView {
        FailureView { category: failure.category.as_str().to_owned(), message: failure.message.clone() }
    }
}

impl StepView {
    /// Every step, without results.
    pub fn all(execution: &Execution) -> Vec<StepView> {
        let (plan, snapshot) = (execution.plan(), execution.view());
        snapshot.steps.iter().enumerate().map(|(at, step)| StepView::of(plan, at, step)).collect()
    }

    /// Every step, each with its result.
    pub fn all_with_results(execution: &Execution) -> Vec<StepView> {
        let with_result = |step: StepView| StepView { result: execution.result_of(&step.id).cloned(), ..step };
        StepView::all(execution).into_iter().map(with_result).collect()
    }

    /// The step for a short answer: id, tool, status, and what is unusual; texts are cut.
    pub fn short(&self) -> Value {
        let mut step = json!(self);
        let Value::Object(fields) = &mut step else { return step };
        fields.retain(|name, value| match name.as_str() {
            "id" | "tool" | "status" | "items" | "failure" | "skip_reason" => true,
            "attempts" => self.attempts > 1,
            "by_hand" => *value == json!(true),
            _ => false,
        });
        for pointer in ["/failure/message", "/skip_reason"] {
            if let Some(Value::String(text)) = step.pointer_mut(pointer) {
                *text = cut(text, SHORT_TEXT_CHARS_MAX);
            }
        }
        step
    }

    fn of(plan: &Plan, at: usize, step: &StepSnapshot) -> StepView {
        let planned = &plan.steps[at];
        let needs = plan.graph.needs[at].iter().map(|need| plan.steps[need.step].id.to_string());
        let spread = planned.policy.propagate_to.iter().map(|step| plan.steps[*step].id.to_string());
        StepView {
            id: step.id.to_string(),
            name: planned.name.clone(),
            tool: step.tool.to_string(),
            status: step.status.to_owned(),
            depends_on: needs.collect(),
            attempts: step.attempts,
            by_hand: step.by_hand,
            touched: step.touched,
            items: step.items.map(|(settled, total)| ItemCounts { settled, total }),
            failure: step.failure.as_ref().map(FailureView::of),
            skip_reason: step.skip_reason.clone(),
            failure_policy: FailurePolicyView {
                action: spelled(&planned.policy.action),
                propagate_to: spread.collect(),
                reason: planned.policy.reason.clone(),
            },
            began_at: step.began_at.map(utc),
            ended_at: step.ended_at.map(utc),
            result: None,
        }
    }
}
