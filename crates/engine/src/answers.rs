//! Who waits for which letter to be decided. A letter may be decided before anybody waits for it.

use rutter_core::execution::input::Refusal;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use tokio::sync::oneshot;

pub(crate) type Decided = Result<(), Refusal>;

/// Letters decided lately, for those who come to ask a moment later.
const GIVEN_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(crate) struct Answers {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: HashMap<u64, Vec<oneshot::Sender<Decided>>>,
    given: HashMap<u64, Decided>,
    order: VecDeque<u64>,
}

impl Answers {
    pub(crate) fn of(&self, letter: u64) -> oneshot::Receiver<Decided> {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.inner.lock().expect("nobody panics while holding it");
        match inner.given.get(&letter) {
            // Whoever stopped waiting does not want to know.
            Some(decided) => drop(sender.send(decided.clone())),
            None => inner.waiting.entry(letter).or_default().push(sender),
        }
        receiver
    }

    pub(crate) fn give(&self, letter: u64, decided: Decided) {
        let mut inner = self.inner.lock().expect("nobody panics while holding it");
        for waiting in inner.waiting.remove(&letter).unwrap_or_default() {
            let _ = waiting.send(decided.clone());
        }
        if inner.given.insert(letter, decided).is_none() {
            inner.order.push_back(letter);
        }
        if inner.order.len() > GIVEN_MAX
            && let Some(oldest) = inner.order.pop_front()
        {
            inner.given.remove(&oldest);
        }
    }

    /// Nobody waits any more.
    pub(crate) fn forget(&self, letter: u64) {
        self.inner.lock().expect("nobody panics while holding it").waiting.remove(&letter);
    }
}
