//! Redacts what a tool reports during a call.

use super::call::inspected;
use super::offered_tool::OfferedTool;
use super::secrets::SecretResolver;
use super::text::visible;
use rutter_core::id::ToolName;
use rutter_core::limits;
use rutter_core::port::tools::{CallReporter, PortFuture, ToolCallId, ToolProgress};
use rutter_core::tool::{CallOutcome, Elicitation};
use serde_json::Value;
use std::sync::Arc;

pub(crate) struct RedactingReporter {
    pub(crate) call: ToolCallId,
    pub(crate) tool: ToolName,
    /// What the results of the tool are checked against.
    pub(crate) offer: Option<Arc<OfferedTool>>,
    pub(crate) secrets: Arc<dyn SecretResolver>,
    pub(crate) reporter: Arc<dyn CallReporter>,
}

impl RedactingReporter {
    fn text(&self, text: &str) -> String {
        self.secrets.redactor().text(&visible(text, limits::TEXT_BYTES_MAX)).into_owned()
    }
}

impl CallReporter for RedactingReporter {
    fn accepted(&self, ticket: String) -> PortFuture<'_, ()> {
        self.reporter.accepted(ticket)
    }

    fn ask(&self, question: Elicitation) -> PortFuture<'_, Option<Value>> {
        let message = visible(&question.message, limits::TEXT_BYTES_MAX).into_owned();
        let fits = |continuation: &Arc<Value>| continuation.to_string().len() <= limits::CONTINUATION_BYTES_MAX;
        let continuation = question.continuation.filter(fits);
        self.reporter.ask(self.secrets.redactor().elicitation(Elicitation { message, continuation, ..question }))
    }

    fn progress(&self, progress: ToolProgress) {
        let message = progress.message.as_deref().map(|message| self.text(message));
        self.reporter.progress(ToolProgress { message, ..progress });
    }

    fn late(&self, outcome: CallOutcome) {
        let ToolCallId { identity, part, side, attempt } = &self.call;
        tracing::warn!(
            execution = %identity.execution, step = %part, attempt, side = ?side, tool = %self.tool,
            "a tool answered a call that had ended"
        );
        let (offer, redactor, reporter) = (self.offer.clone(), self.secrets.redactor(), Arc::clone(&self.reporter));
        // Ends with the check of the result.
        tokio::spawn(async move { reporter.late(inspected(outcome, offer, redactor).await) });
    }
}
