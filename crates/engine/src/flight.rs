//! One call on its way: made if that is still right, and its answer brought back.

use crate::engine::Shared;
use crate::event::{Happening, Live};
use rutter_core::execution::Identity;
use rutter_core::execution::input::ToolCall;
use rutter_core::id::{PartId, ToolName};
use rutter_core::journal::event::Side;
use rutter_core::port::tools::{Berth, Call, CallId, Elicitation, Progress, Reply, Reporter, Return};
use rutter_core::tool::{Category, Failure, Outcome};
use serde_json::Value;
use std::sync::Arc;

pub(crate) struct Landed {
    pub(crate) part: PartId,
    pub(crate) side: Side,
    pub(crate) attempt: u32,
    pub(crate) tool: ToolName,
    pub(crate) returned: Return,
}

pub(crate) async fn fly(shared: Arc<Shared>, identity: Identity, call: ToolCall, berth: Berth) -> Landed {
    let now = shared.clock.now();
    let ToolCall { part, side, attempt, tool, definition, parameters, key, deadline } = call;
    let returned = match unsent(&shared, deadline.since(now).0) {
        Some(failure) => Return::Outcome(Outcome::NotDone(failure)),
        None => {
            let reporter = Arc::new(Report {
                shared: Arc::clone(&shared),
                identity: identity.clone(),
                part: part.clone(),
            });
            let call = Call {
                id: CallId { identity, part: part.clone(), side, attempt },
                tool: tool.clone(),
                definition,
                parameters,
                key,
                timeout: deadline.since(now),
                now,
                ticket: None,
                reporter,
            };
            shared.tools.call(call, berth).await
        }
    };
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

struct Report {
    shared: Arc<Shared>,
    identity: Identity,
    part: PartId,
}

impl Reporter for Report {
    fn accepted(&self, _ticket: String) -> Reply<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn ask(&self, _question: Elicitation) -> Reply<'_, Option<Value>> {
        Box::pin(std::future::ready(None))
    }

    fn progress(&self, progress: Progress) {
        let live = Live::Progress { part: self.part.clone(), progress };
        self.shared.tell(Happening { identity: self.identity.clone(), live });
    }
}
