//! A step of an execution.

use crate::terse::bytes;
use rutter_core::execution::Execution;
use rutter_core::execution::part::{PartState, StepPart};
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
/// Items of a fan-out in a short answer.
const SHORT_ITEMS_MAX: usize = 10;
/// A longer result of an item is only counted.
const ITEM_RESULT_BYTES_MAX: usize = 200;

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
    /// What became of each item of a fan-out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub item_states: Vec<ItemView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureView>,
    /// Why it was skipped or cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
    /// A call of it waits because its server takes none after failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<ServerWaitView>,
    pub failure_policy: FailurePolicyView,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// Which call waits for its server, until when, and why.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ServerWait")]
pub struct ServerWaitView {
    /// The step, or its item.
    pub part: String,
    pub until: String,
    pub failure: FailureView,
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

/// An item of a fan-out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Item")]
pub struct ItemView {
    /// As it is named in calls: `update[12]`.
    pub item: String,
    pub status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureView>,
    /// It was skipped by decision: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
    /// A short result, or the length of a long one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_bytes: Option<usize>,
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
        let of = |(at, step): (usize, &StepSnapshot)| match step.items {
            Some(_) => StepView { item_states: ItemView::all(execution, step), ..StepView::of(plan, at, step) },
            None => StepView::of(plan, at, step),
        };
        snapshot.steps.iter().enumerate().map(of).collect()
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
            "id" | "tool" | "status" | "items" | "item_states" | "failure" | "skip_reason" | "wait" => true,
            "attempts" => self.attempts > 1,
            "by_hand" => *value == json!(true),
            _ => false,
        });
        if let Some(Value::Array(items)) = fields.get_mut("item_states") {
            // Those that need a decision come first.
            items.sort_by_key(|item| item["status"] == "completed");
            items.truncate(SHORT_ITEMS_MAX);
            for item in items {
                shorten(item);
            }
        }
        shorten(&mut step);
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
            item_states: Vec::new(),
            failure: step.failure.as_ref().map(FailureView::of),
            skip_reason: step.skip_reason.clone(),
            wait: step.wait.as_ref().map(|wait| ServerWaitView {
                part: wait.part.to_string(),
                until: utc(wait.until),
                failure: FailureView::of(&wait.failure),
            }),
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

impl ItemView {
    fn all(execution: &Execution, step: &StepSnapshot) -> Vec<ItemView> {
        let items = execution.parts().filter(|(id, _)| id.step == step.id && id.item.is_some());
        items.map(|(id, part)| ItemView::of(id.to_string(), part)).collect()
    }

    fn of(item: String, part: &StepPart) -> ItemView {
        let failure = match &part.state {
            PartState::Failed { failure } | PartState::CompensationFailed { failure, .. } => Some(failure),
            PartState::InDoubt { failure, .. } => failure.as_ref(),
            _ => None,
        };
        let result = part.result.as_ref().and_then(|result| result.value()).filter(|_| part.status() == "completed");
        let (short, long): (Option<_>, Option<_>) = match result.map(|result| (bytes(&**result), result)) {
            Some((size, result)) if size <= ITEM_RESULT_BYTES_MAX => (Some((**result).clone()), None),
            Some((size, _)) => (None, Some(size)),
            None => (None, None),
        };
        ItemView {
            item,
            status: if part.accepted { "skipped" } else { part.status() },
            failure: failure.map(FailureView::of),
            skip_reason: part.accepted.then(|| part.accepted_because.to_string()),
            result: short,
            result_bytes: long,
        }
    }
}

/// Cuts the texts of a step or an item.
fn shorten(step: &mut Value) {
    for pointer in ["/failure/message", "/skip_reason", "/wait/failure/message"] {
        if let Some(Value::String(text)) = step.pointer_mut(pointer) {
            *text = cut(text, SHORT_TEXT_CHARS_MAX);
        }
    }
}
