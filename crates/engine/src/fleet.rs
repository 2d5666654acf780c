//! The executions in memory, and how they are reached.

use rutter_core::execution::view::Status;
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::{ExecutionId, PartId, TenantId};
use rutter_core::journal::event::Side;
use rutter_core::port::journal::Letter;
use rutter_core::port::tools::Elicitation;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::sync::{mpsc, oneshot};

/// What reaches the loop of an execution. Letters are bounded by the store, looks by those who wait for them.
pub(crate) enum Mail {
    Letter(Letter),
    /// Somebody wants to look at the state as it is now.
    Look(Box<dyn FnOnce(&Execution) + Send>),
    /// Somebody waits until it has ended or needs somebody.
    Wait(oneshot::Sender<Status>),
    /// A tool said something in the middle of a call.
    Report(Report),
}

/// What a tool says while it is called, and whom to answer.
pub(crate) struct Report {
    pub(crate) part: PartId,
    pub(crate) side: Side,
    pub(crate) attempt: u32,
    pub(crate) said: Said,
}

pub(crate) enum Said {
    /// It goes on elsewhere under this ticket. Answered when that is on record.
    Accepted { ticket: String, recorded: oneshot::Sender<()> },
    /// It wants to know something. Answered with what somebody says, or with nothing.
    Asked { question: Elicitation, answer: oneshot::Sender<Option<Value>> },
}

type Key = (TenantId, ExecutionId);

#[derive(Debug, Default)]
pub(crate) struct Fleet {
    boxes: Mutex<HashMap<Key, mpsc::UnboundedSender<Mail>>>,
}

impl std::fmt::Debug for Mail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Mail::Letter(letter) => f.debug_tuple("Letter").field(&letter.number).finish(),
            Mail::Look(_) => f.write_str("Look"),
            Mail::Wait(_) => f.write_str("Wait"),
            Mail::Report(report) => f.debug_tuple("Report").field(&report.part).finish(),
        }
    }
}

impl Fleet {
    /// Makes an execution reachable; `None` when it already is.
    pub(crate) fn enter(&self, identity: &Identity) -> Option<mpsc::UnboundedReceiver<Mail>> {
        let mut boxes = self.lock();
        let key = key(identity);
        if boxes.contains_key(&key) {
            return None;
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        boxes.insert(key, sender);
        Some(receiver)
    }

    /// Leaves, unless something arrived at the last moment.
    pub(crate) fn leave(&self, identity: &Identity, mail: &mpsc::UnboundedReceiver<Mail>) -> bool {
        let mut boxes = self.lock();
        if !mail.is_empty() {
            return false;
        }
        boxes.remove(&key(identity));
        true
    }

    pub(crate) fn remove(&self, identity: &Identity) {
        self.lock().remove(&key(identity));
    }

    /// Gives the mail back when the execution is not here.
    pub(crate) fn deliver(&self, identity: &Identity, mail: Mail) -> Result<(), Mail> {
        match self.lock().get(&key(identity)) {
            Some(sender) => sender.send(mail).map_err(|unsent| unsent.0),
            None => Err(mail),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, mpsc::UnboundedSender<Mail>>> {
        self.boxes.lock().expect("nobody panics while holding it")
    }
}

fn key(identity: &Identity) -> Key {
    (identity.tenant.clone(), identity.execution.clone())
}
