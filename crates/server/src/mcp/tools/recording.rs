//! What every tool that records answers: how the execution stands afterwards.

use crate::deed::record::OWN;
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::visit::Visit;
use crate::words;
use rutter_core::execution::Identity;
use rutter_core::execution::view::{Ask, DeviationView, Status, View};
use rutter_core::id::StepId;
use rutter_core::journal::event::Deviation;
use rutter_core::plan::Driver;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

/// Differences between deed and plan in one answer.
const DEVIATIONS_MAX: usize = 10;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Recorded {
    summary: String,
    next: String,
    execution_id: String,
    status: String,
    /// Where deed and plan differ.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deviations: Vec<String>,
}

impl Recorded {
    /// How an execution stands once `what` is on record.
    pub(crate) async fn of(visit: &Visit, identity: &Identity, what: &str) -> Result<Recorded, Fault> {
        let look = visit.desk.engine.look(identity, |execution| (execution.view(), execution.brief()));
        let (view, brief) = look.await?;
        Ok(Recorded {
            summary: format!("{what}; {}", words::summary(&view)),
            next: next(visit, &view, &brief),
            execution_id: view.execution.to_string(),
            status: view.status.as_str().to_owned(),
            deviations: Vec::new(),
        })
    }

    /// The same with everything that was noticed about a step. All of it, so that a repeated call hears the same.
    pub(crate) async fn of_step(
        visit: &Visit,
        identity: &Identity,
        step: &StepId,
        what: &str,
    ) -> Result<Recorded, Fault> {
        let recorded = Recorded::of(visit, identity, what).await?;
        let view = visit.desk.engine.view(identity).await?;
        let noticed = view.deviations.iter().filter(|deviation| concerns(deviation, step));
        let deviations: Vec<String> = noticed.map(told).collect();
        let newest = deviations.len().saturating_sub(DEVIATIONS_MAX);
        Ok(Recorded { deviations: deviations[newest..].to_vec(), ..recorded })
    }
}

/// A step that was passed over is noticed when the one after it begins.
fn concerns(deviation: &DeviationView, step: &StepId) -> bool {
    let passed_over = || {
        deviation.kind == Deviation::Skipped && deviation.description == format!("passed over by {step:?}")
    };
    deviation.step.as_ref() == Some(step) || passed_over()
}

fn told(deviation: &DeviationView) -> String {
    let kind = json!(deviation.kind);
    let step = deviation.step.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{} {step}: {}", kind.as_str().unwrap_or_default(), deviation.description)
}

/// What the agent does now. Its own calls are told with their parameters, which only the execution can work out.
fn next(visit: &Visit, view: &View, brief: &str) -> String {
    let call = brief.lines().next_back().and_then(|line| line.strip_prefix("Next: "));
    let execution = &view.execution;
    let again = view.steps.iter().find(|step| step.status == "retrying");
    let again = again.map(|step| {
        let tool = step.tool.as_str();
        format!(
            "call {} for step {} again, then record_step",
            tool.strip_prefix(OWN).unwrap_or(tool),
            step.id
        )
    });
    match (view.questions.first(), call) {
        (None, Some(call)) if view.driver == Driver::Agent && view.status == Status::Running => {
            match call.strip_prefix("call ") {
                Some(call) => {
                    let call = call.strip_prefix(OWN).unwrap_or(call);
                    format!("call {call}: record_step {}", json!({ "execution_id": execution }))
                }
                None => again.unwrap_or_else(|| call.to_owned()),
            }
        }
        (Some(Ask::Failure { step, .. }), _) if !visit.guest.toolsets.contains(&Toolset::Default) => format!(
            "decide, then record_decision {} (or stop), or try it again and record_step",
            json!({ "execution_id": execution, "action": "continue", "step_id": step, "reason": "…" })
        ),
        (Some(Ask::Limit { .. }), _) if !visit.guest.toolsets.contains(&Toolset::Default) => format!(
            "decide, then record_decision {} (or stop)",
            json!({ "execution_id": execution, "action": "continue", "reason": "…" })
        ),
        _ => words::next(view),
    }
}
