//! Redacts what a tool reports during a call.

use super::text::visible;
use rutter_core::limits;
use rutter_core::port::tools::{CallReporter, PortFuture, ToolProgress};
use rutter_core::redact::Redactor;
use rutter_core::tool::Elicitation;
use serde_json::Value;
use std::sync::Arc;

pub(crate) struct RedactingReporter {
    pub(crate) redactor: Redactor,
    pub(crate) reporter: Arc<dyn CallReporter>,
}

impl RedactingReporter {
    fn text(&self, text: &str) -> String {
        self.redactor.text(&visible(text, limits::TEXT_BYTES_MAX)).into_owned()
    }
}

impl CallReporter for RedactingReporter {
    fn accepted(&self, ticket: String) -> PortFuture<'_, ()> {
        self.reporter.accepted(ticket)
    }

    fn ask(&self, question: Elicitation) -> PortFuture<'_, Option<Value>> {
        let message = self.text(&question.message);
        self.reporter.ask(Elicitation { message, schema: self.redactor.value(&question.schema) })
    }

    fn progress(&self, progress: ToolProgress) {
        let message = progress.message.as_deref().map(|message| self.text(message));
        self.reporter.progress(ToolProgress { message, ..progress });
    }
}
