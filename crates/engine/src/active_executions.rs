//! The executions in memory, and the channels to their loops.

use rutter_core::execution::view::ExecutionStatus;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::{ExecutionId, PartId, TenantId};
use rutter_core::journal::event::CallSide;
use rutter_core::port::journal::StoredCommand;
use rutter_core::tool::{CallOutcome, Elicitation};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::sync::{mpsc, oneshot};

/// A message to the loop of an execution. The store bounds commands, the waiting callers bound the rest.
pub(crate) enum LoopMessage {
    Command(StoredCommand),
    /// Reads the current state.
    Inspect(Box<dyn FnOnce(&Execution) + Send>),
    /// Waits until the execution ends or waits for a person or agent.
    Wait(oneshot::Sender<ExecutionStatus>),
    /// A tool reports something during a call.
    Report(CallReport),
}

/// What a tool reports during a call, and where to send the reply.
pub(crate) struct CallReport {
    pub(crate) part: PartId,
    pub(crate) side: CallSide,
    pub(crate) attempt: u32,
    pub(crate) message: CallMessage,
}

pub(crate) enum CallMessage {
    /// The call continues elsewhere under this ticket. Acknowledged when the ticket is recorded.
    Accepted { ticket: String, recorded: oneshot::Sender<()> },
    /// The tool asks a question. The reply is the answer of a person or agent, or `None`.
    Asked { question: Elicitation, answer: oneshot::Sender<Option<Value>> },
    /// The tool answered after the call had ended.
    Late(CallOutcome),
}

type ActiveKey = (TenantId, ExecutionId);

#[derive(Debug, Default)]
pub(crate) struct ActiveExecutions {
    inboxes: Mutex<HashMap<ActiveKey, mpsc::UnboundedSender<LoopMessage>>>,
}

impl std::fmt::Debug for LoopMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoopMessage::Command(command) => f.debug_tuple("Command").field(&command.number).finish(),
            LoopMessage::Inspect(_) => f.write_str("Inspect"),
            LoopMessage::Wait(_) => f.write_str("Wait"),
            LoopMessage::Report(report) => f.debug_tuple("Report").field(&report.part).finish(),
        }
    }
}

impl ActiveExecutions {
    /// Registers an execution; `None` if it already is.
    pub(crate) fn register(&self, identity: &ExecutionIdentity) -> Option<mpsc::UnboundedReceiver<LoopMessage>> {
        let mut boxes = self.lock();
        let key = key(identity);
        if boxes.contains_key(&key) {
            return None;
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        boxes.insert(key, sender);
        Some(receiver)
    }

    /// Unregisters an execution, unless a message has just arrived.
    pub(crate) fn leave_if_empty(
        &self,
        identity: &ExecutionIdentity,
        message: &mpsc::UnboundedReceiver<LoopMessage>,
    ) -> bool {
        let mut boxes = self.lock();
        if !message.is_empty() {
            return false;
        }
        boxes.remove(&key(identity));
        true
    }

    pub(crate) fn remove(&self, identity: &ExecutionIdentity) {
        self.lock().remove(&key(identity));
    }

    /// Returns the message if the execution is not in memory.
    pub(crate) fn send(&self, identity: &ExecutionIdentity, message: LoopMessage) -> Result<(), LoopMessage> {
        match self.lock().get(&key(identity)) {
            Some(sender) => sender.send(message).map_err(|unsent| unsent.0),
            None => Err(message),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<ActiveKey, mpsc::UnboundedSender<LoopMessage>>> {
        self.inboxes.lock().expect("no thread panics while holding it")
    }
}

fn key(identity: &ExecutionIdentity) -> ActiveKey {
    (identity.tenant.clone(), identity.execution.clone())
}
