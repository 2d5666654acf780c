//! The state of an execution for notices: its summary, its cause, and what it leaves behind.

use super::WatchService;
use rutter_core::execution::summary::{PartFailure, PartFailureKind};
use rutter_core::execution::view::ExecutionSnapshot;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::event::Event;
use rutter_core::plan::PolicyAction;
use rutter_core::port;
use rutter_core::text::{cut, spelled};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Items of each list, and the length of a message; the execution itself has all of them.
const ITEMS_MAX: usize = 20;
const MESSAGE_CHARS_MAX: usize = 300;

/// An execution that ended or waits, in a notice. Text of tools is data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExecutionState {
    pub status: String,
    /// The state in one line.
    pub summary: String,
    /// Why it did not complete, is being stopped, or what it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    pub failed_steps: Vec<FailedStepState>,
    /// Skipped and cancelled steps.
    #[serde(default)]
    pub skipped: Vec<SkippedStepState>,
    /// Steps that were compensated.
    pub undone: Vec<String>,
    /// Effects that remain, or may remain, although it did not complete.
    pub remains: Vec<String>,
    /// What the plan and its revisions wanted and the execution did not deliver.
    pub unmet: Vec<UnmetStepState>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedStepState {
    /// A step, or an item of one.
    pub step: String,
    /// Absent of a step that failed; `in_doubt` or `compensation_failed` otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    pub category: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SkippedStepState {
    pub step: String,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnmetStepState {
    pub step: String,
    /// `dropped`, `failed`, `skipped`, `cancelled`, `undone` or `unfinished`.
    pub kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The revision that dropped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
}

impl ExecutionState {
    fn of(view: &ExecutionSnapshot) -> ExecutionState {
        let failed_steps = view.failures.iter().map(|PartFailure { part, kind, failure }| FailedStepState {
            step: part.to_string(),
            state: match kind {
                PartFailureKind::Failed => None,
                PartFailureKind::NotUndone => Some("compensation_failed".to_owned()),
                PartFailureKind::InDoubt(_) => Some("in_doubt".to_owned()),
            },
            category: failure.category.as_str().to_owned(),
            message: cut(&failure.message, MESSAGE_CHARS_MAX),
        });
        let skipped = view.steps.iter().filter_map(|step| {
            let reason = cut(step.skip_reason.as_ref()?, MESSAGE_CHARS_MAX);
            Some(SkippedStepState { step: step.id.to_string(), reason })
        });
        let undone = view.undone.iter().map(ToString::to_string);
        let unmet = view.unmet.iter().map(|unmet| UnmetStepState {
            step: unmet.step.to_string(),
            kind: spelled(&unmet.kind),
            reason: unmet.reason.clone(),
            revision: unmet.revision,
        });
        ExecutionState {
            status: view.status.as_str().to_owned(),
            summary: view.summary(),
            cause: view.cause.clone(),
            failed_steps: failed_steps.take(ITEMS_MAX).collect(),
            skipped: skipped.take(ITEMS_MAX).collect(),
            undone: undone.take(ITEMS_MAX).collect(),
            remains: view.remains.iter().take(ITEMS_MAX).map(ToString::to_string).collect(),
            unmet: unmet.take(ITEMS_MAX).collect(),
        }
    }

    /// The state after this entry, or after the last; `None` if the execution was removed or cannot be read.
    pub async fn after(
        watch: &WatchService,
        tenant: &TenantId,
        execution: &ExecutionId,
        seq: Option<u64>,
    ) -> Result<Option<ExecutionState>, port::Error> {
        let identity = ExecutionIdentity { tenant: tenant.clone(), execution: execution.clone() };
        let loaded = match watch.ports.journal.load(&identity).await {
            Ok(loaded) => loaded,
            // Verification reports a damaged journal; other events must be sent nevertheless.
            Err(port::Error::NotFound { .. } | port::Error::Corrupt(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let count = seq.and_then(|seq| usize::try_from(seq).ok()).unwrap_or(usize::MAX);
        let replayed = Execution::replay(identity, loaded.records.iter().take(count));
        Ok(replayed.ok().map(|execution| ExecutionState::of(&execution.view())))
    }
}

/// Whether an execution may have ended, or may wait for an answer, after this event.
pub fn ends_or_asks<P>(event: &Event<P>) -> bool {
    matches!(
        event,
        Event::ExecutionEnded { .. }
            | Event::ApprovalRequested { .. }
            | Event::ToolAsked { .. }
            | Event::FailureHandled { action: PolicyAction::ManualDecision, .. }
            | Event::LimitReached { action: PolicyAction::ManualDecision, .. }
            | Event::ReplanProposed { .. }
            | Event::Held { .. }
            | Event::AgentSilent { .. }
    )
}
