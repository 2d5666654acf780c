//! One call on its way: made if that is still right, and its answer brought back.

use crate::engine::Shared;
use crate::event::{Happening, Live};
use crate::fleet::{Mail, Report, Said};
use rutter_core::execution::Identity;
use rutter_core::execution::input::ToolCall;
use rutter_core::id::{PartId, ToolName};
use rutter_core::journal::event::Side;
use rutter_core::port::tools::{Berth, Call, CallId, Elicitation, Progress, Reply, Reporter, Return};
use rutter_core::tool::{Category, Failure, Outcome};
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::oneshot;

pub(crate) struct Landed {
    pub(crate) part: PartId,
    pub(crate) side: Side,
    pub(crate) attempt: u32,
    pub(crate) tool: ToolName,
    pub(crate) returned: Return,
}

pub(crate) async fn fly(shared: Arc<Shared>, identity: Identity, call: ToolCall, berth: Berth) -> Landed {
    let now = shared.clock.now();
    let execution = identity.execution.clone();
    let ToolCall { part, side, attempt, tool, definition, parameters, key, deadline, ticket } = call;
    let returned = match unsent(&shared, deadline.since(now).0) {
        Some(failure) => Return::Outcome(Outcome::NotDone(failure)),
        None => {
            let id = CallId { identity, part: part.clone(), side, attempt };
            let reporter = Arc::new(Relay { shared: Arc::clone(&shared), call: id.clone() });
            let call = Call {
                id,
                tool: tool.clone(),
                definition,
                parameters,
                key,
                timeout: deadline.since(now),
                now,
                ticket: ticket.map(|ticket| ticket.to_string()),
                reporter,
            };
            shared.tools.call(call, berth).await
        }
    };
    let elapsed_ms = shared.clock.now().since(now).0;
    let (outcome, code) = match &returned {
        Return::Outcome(Outcome::Done { .. }) => ("done", None),
        Return::Outcome(Outcome::NotDone(failure)) => ("not done", Some(failure.category.as_str())),
        Return::Outcome(Outcome::Maybe(failure)) => ("maybe", Some(failure.category.as_str())),
        Return::Drifted { .. } => ("drifted", None),
    };
    let worker = &shared.options.worker;
    tracing::info!(
        %execution, step = %part, attempt, side = ?side, %tool, %worker, elapsed_ms, outcome, error.code = code,
        "attempt"
    );
    Landed { part, side, attempt, tool, returned }
}

/// Why nothing must be sent any more. Looked at in the last moment: the process may have stood still.
fn unsent(shared: &Shared, left_ms: u64) -> Option<Failure> {
    if shared.lease_has_ended() {
        let message = "the lease ended before the call could be sent";
        return Some(Failure::new(Category::Unavailable, message));
    }
    let message = "its time was over before it could be sent";
    (left_ms == 0).then(|| Failure::new(Category::Timeout, message))
}

/// Carries what a tool says to the loop of its execution.
struct Relay {
    shared: Arc<Shared>,
    call: CallId,
}

impl Relay {
    fn send(&self, said: Said) {
        let CallId { identity, part, side, attempt } = self.call.clone();
        // A loop that has ended answers nobody, and whoever waits for an answer learns that.
        let _ = self.shared.fleet.deliver(&identity, Mail::Report(Report { part, side, attempt, said }));
    }
}

impl Reporter for Relay {
    fn accepted(&self, ticket: String) -> Reply<'_, ()> {
        let (recorded, done) = oneshot::channel();
        self.send(Said::Accepted { ticket, recorded });
        Box::pin(async move { done.await.unwrap_or_default() })
    }

    fn ask(&self, question: Elicitation) -> Reply<'_, Option<Value>> {
        let (answer, answered) = oneshot::channel();
        self.send(Said::Asked { question, answer });
        Box::pin(async move { answered.await.unwrap_or_default() })
    }

    fn progress(&self, progress: Progress) {
        let live = Live::Progress { part: self.call.part.clone(), progress };
        self.shared.tell(Happening { identity: self.call.identity.clone(), live });
    }
}
