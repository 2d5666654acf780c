//! The line of the log about the end of an execution.

use super::ExecutionLoop;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::port::journal::Lease;
use rutter_core::text::spelled;

impl ExecutionLoop {
    /// Logs how it ended, and why.
    pub(super) fn log_ending(&self) {
        let ExecutionProjection { status, cause, ending: summary, opened_at, .. } = self.execution.row();
        let Lease { identity, worker, epoch } = &self.writer.lease;
        let (execution, plan, plan_name) = (&identity.execution, &self.plan, &self.execution.plan().name);
        let (status, seq) = (status.as_str(), self.execution.entries());
        let elapsed_ms = self.execution.last_at().since(opened_at).0;
        let outcome = self.execution.outcome().map(|outcome| spelled(&outcome));
        tracing::info!(
            %execution, %plan, plan_name, status, cause, %worker, epoch, seq, elapsed_ms, outcome, summary, "ended"
        );
    }
}
