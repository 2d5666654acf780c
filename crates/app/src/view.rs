//! Executions, steps, plans, questions and journal entries as JSON: one shape each. Surfaces select fields of these and
//! add none of their own.

mod entry;
mod execution;
mod plan;
mod question;
mod receipt;
mod server;
mod step;

pub use entry::{ActorView, EntryView, PayloadDetail};
pub use execution::{
    DeviationView, ExecutionListView, ExecutionView, FailedStepView, PlanRefView, SkippedStepView, results,
};
pub use plan::PlanView;
pub use question::QuestionView;
pub use receipt::ReceiptView;
pub use server::{
    BreakerView, ConnectorView, ExcludedToolView, LatencyView, ServerToolView, ServerView, TimedFailureView, ToolStatsView,
};
pub use step::{FailurePolicyView, FailureView, ItemCounts, StepView};

/// The page of an execution, if the server has pages.
fn execution_url(base: Option<&str>, execution: &rutter_core::id::ExecutionId) -> Option<String> {
    base.map(|base| format!("{base}/executions/{execution}"))
}
