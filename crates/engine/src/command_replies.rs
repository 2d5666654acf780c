//! Callers that wait for the decision on a command. A command may be decided before its caller waits.

use rutter_core::execution::input::Refusal;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use tokio::sync::oneshot;

pub(crate) type CommandResult = Result<(), Refusal>;

/// How many recent decisions are remembered, for callers that begin to wait a moment later.
const COMPLETED_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct CommandReplies {
    inner: Mutex<ReplyState>,
}

#[derive(Debug, Default)]
struct ReplyState {
    waiting: HashMap<u64, Vec<oneshot::Sender<CommandResult>>>,
    completed: HashMap<u64, CommandResult>,
    order: VecDeque<u64>,
}

impl CommandReplies {
    pub(crate) fn wait_for(&self, command: u64) -> oneshot::Receiver<CommandResult> {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.inner.lock().expect("no thread panics while holding it");
        match inner.completed.get(&command) {
            // The caller may have stopped waiting.
            Some(decided) => drop(sender.send(decided.clone())),
            None => inner.waiting.entry(command).or_default().push(sender),
        }
        receiver
    }

    pub(crate) fn complete(&self, command: u64, decided: CommandResult) {
        let mut inner = self.inner.lock().expect("no thread panics while holding it");
        for waiting in inner.waiting.remove(&command).unwrap_or_default() {
            let _ = waiting.send(decided.clone());
        }
        if inner.completed.insert(command, decided).is_none() {
            inner.order.push_back(command);
        }
        if inner.order.len() > COMPLETED_MAX
            && let Some(oldest) = inner.order.pop_front()
        {
            inner.completed.remove(&oldest);
        }
    }

    /// The caller has stopped waiting.
    pub(crate) fn forget(&self, command: u64) {
        self.inner.lock().expect("no thread panics while holding it").waiting.remove(&command);
    }
}
