//! Executions, steps, plans, questions, journal entries, previews, servers and verdicts as JSON: one shape each. Surfaces
//! select fields of these and add none of their own.

mod entry;
mod execution;
mod plan;
mod preview;
mod question;
mod receipt;
mod saved_plan;
mod server;
mod step;
mod verdict;

pub use entry::{ActorView, EntryView, PayloadDetail};
pub use execution::{
    DeliveryView, DeviationCountView, DeviationView, ExecutionListView, ExecutionView, FailedStepView, PlanRefView,
    SkippedStepView, UnmetStepView, results,
};
pub use plan::PlanView;
pub use preview::{
    ExpectedRuleView, PointOfNoReturnView, PreviewView, RollbackView, StepPreviewView, StepRulesView, UndoCallView,
    WhatIfView,
};
pub use question::QuestionView;
pub use receipt::ReceiptView;
pub use saved_plan::{DiagnosticView, SavedPlanView, UnreachableServerView};
pub use server::{
    BreakerView, ConnectorView, ExcludedToolView, LatencyView, ServerToolView, ServerView, TimedFailureView,
    ToolStatsView,
};
pub use step::{FailurePolicyView, FailureView, ItemCounts, StepView};
pub use verdict::{LedgerFaultView, VerdictView};
