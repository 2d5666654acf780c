//! Takes secrets out of what a tool says while it is called, before anybody hears it.

use super::text::visible;
use rutter_core::limits;
use rutter_core::port::tools::{Elicitation, Progress, Reply, Reporter};
use rutter_core::redact::Redactor;
use serde_json::Value;
use std::sync::Arc;

pub(crate) struct Discreet {
    pub(crate) redactor: Redactor,
    pub(crate) reporter: Arc<dyn Reporter>,
}

impl Discreet {
    fn text(&self, text: &str) -> String {
        self.redactor.text(&visible(text, limits::TEXT_BYTES_MAX)).into_owned()
    }
}

impl Reporter for Discreet {
    fn accepted(&self, ticket: String) -> Reply<'_, ()> {
        self.reporter.accepted(ticket)
    }

    fn ask(&self, question: Elicitation) -> Reply<'_, Option<Value>> {
        let message = self.text(&question.message);
        self.reporter.ask(Elicitation { message, schema: self.redactor.value(&question.schema) })
    }

    fn progress(&self, progress: Progress) {
        let message = progress.message.as_deref().map(|message| self.text(message));
        self.reporter.progress(Progress { message, ..progress });
    }
}
