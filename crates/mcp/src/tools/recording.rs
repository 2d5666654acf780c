//! The result of every recording tool: the state of the execution afterwards.

use crate::execution_answer::ITEMS_MAX;
use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::principal::McpToolset;
use rutter_app::records::AGENT_PREFIX;
use rutter_app::view::{DeliveryView, ExecutionView};
use rutter_app::wording;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::{DeviationSnapshot, ExecutionSnapshot, ExecutionStatus, PendingQuestion};
use rutter_core::id::StepId;
use rutter_core::journal::event::Deviation;
use rutter_core::plan::Driver;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// The most deviations from the plan in one result.
const DEVIATIONS_MAX: usize = 10;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RecordedAnswer {
    summary: String,
    next: String,
    execution_id: String,
    status: String,
    /// Deviations from the plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deviations: Vec<String>,
    /// After the end.
    #[serde(flatten)]
    #[schemars(skip)]
    delivery: DeliveryView,
}

impl RecordedAnswer {
    /// The state of an execution after `what` was recorded.
    pub(crate) async fn of(
        request: &ToolRequest,
        identity: &ExecutionIdentity,
        what: &str,
    ) -> Result<RecordedAnswer, AppError> {
        let (view, brief) = read(request, identity).await?;
        Ok(RecordedAnswer::written(request, &view, &brief, what))
    }

    /// The same with all deviations of a step. All of them, so that a repeated call returns the same.
    pub(crate) async fn of_step(
        request: &ToolRequest,
        identity: &ExecutionIdentity,
        step: &StepId,
        what: &str,
    ) -> Result<RecordedAnswer, AppError> {
        let (view, brief) = read(request, identity).await?;
        let noticed = view.deviations.iter().filter(|deviation| concerns(deviation, step));
        let deviations: Vec<String> = noticed.map(deviation_text).collect();
        let newest = deviations.len().saturating_sub(DEVIATIONS_MAX);
        let recorded = RecordedAnswer::written(request, &view, &brief, what);
        Ok(RecordedAnswer { deviations: deviations[newest..].to_vec(), ..recorded })
    }

    fn written(request: &ToolRequest, view: &ExecutionSnapshot, brief: &str, what: &str) -> RecordedAnswer {
        let execution = ExecutionView::of(None, view, &request.reader()).short(ITEMS_MAX);
        RecordedAnswer {
            delivery: if view.status.has_ended() { execution.delivery() } else { DeliveryView::default() },
            summary: format!("{what}; {}", wording::summary(view)),
            next: next(request, view, brief),
            execution_id: view.execution.to_string(),
            status: view.status.as_str().to_owned(),
            deviations: Vec::new(),
        }
    }
}

async fn read(request: &ToolRequest, identity: &ExecutionIdentity) -> Result<(ExecutionSnapshot, String), AppError> {
    request.app.look(identity, |execution| (execution.view(), execution.brief())).await
}

/// A skipped step is reported when the step after it starts.
fn concerns(deviation: &DeviationSnapshot, step: &StepId) -> bool {
    let passed_over =
        || deviation.kind == Deviation::Skipped && deviation.description == format!("passed over by {step:?}");
    deviation.step.as_ref() == Some(step) || passed_over()
}

fn deviation_text(deviation: &DeviationSnapshot) -> String {
    let kind = json!(deviation.kind);
    let step = deviation.step.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{} {step}: {}", kind.as_str().unwrap_or_default(), deviation.description)
}

/// What the agent does next. Calls are shown with their parameters, which only the execution can resolve.
fn next(request: &ToolRequest, view: &ExecutionSnapshot, brief: &str) -> String {
    let call = brief.lines().next_back().and_then(|line| line.strip_prefix("Next: "));
    let execution = &view.execution;
    let again = view.steps.iter().find(|step| step.status == "retrying");
    let again = again.map(|step| {
        let tool = step.tool.as_str();
        format!("call {} for step {} again, then record_step", tool.strip_prefix(AGENT_PREFIX).unwrap_or(tool), step.id)
    });
    match (view.questions.first(), call) {
        (None, Some(call)) if view.driver == Driver::Agent && view.status == ExecutionStatus::Running => {
            match call.strip_prefix("call ") {
                Some(call) => {
                    let call = call.strip_prefix(AGENT_PREFIX).unwrap_or(call);
                    format!("call {call}: record_step {}", json!({ "execution_id": execution }))
                }
                None => again.unwrap_or_else(|| call.to_owned()),
            }
        }
        (Some(PendingQuestion::Failure { step, .. }), _)
            if !request.principal.toolsets.contains(&McpToolset::Default) =>
        {
            format!(
                "decide, then record_decision {} (or stop), or try it again and record_step",
                json!({ "execution_id": execution, "action": "continue", "step_id": step, "reason": "…" })
            )
        }
        (Some(PendingQuestion::Limit { .. }), _) if !request.principal.toolsets.contains(&McpToolset::Default) => {
            format!(
                "tell the user: only a person can let it go on, {}; or record_decision {}",
                request.reader().place(execution),
                json!({ "execution_id": execution, "action": "stop", "reason": "…" })
            )
        }
        _ => wording::next(view, &request.reader()),
    }
}
