//! The timers as they are kept: what was set, cancelled and fired, and what was answered to whom.

use super::full;
use crate::builtin::log::Log;
use crate::builtin::moment;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

/// Answers are remembered this long, for a call that is repeated with its key.
const ANSWERS_KEPT: Millis = Millis::hours(30 * 24);

/// The file is written anew when more than this many lines no longer count.
const STALE_LINES_MAX: usize = 10_000;

/// The first pause before a channel is tried again; it doubles.
const AGAIN_AFTER: Millis = Millis::seconds(2);

#[derive(Debug)]
pub(super) struct Kept {
    log: Log<Line>,
    /// By tenant and name.
    waiting: BTreeMap<(String, String), Set>,
    /// By tenant and key.
    answers: HashMap<(String, String), Answer>,
    /// How often a message could not be delivered, and when to try again. Forgotten at a restart, which is a new chance.
    troubled: HashMap<(String, String), (u32, Timestamp)>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Set {
    pub tenant: String,
    pub key: String,
    pub name: String,
    pub message: String,
    pub channel: Option<String>,
    pub at: Timestamp,
    pub set_at: Timestamp,
    pub replaced: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    tenant: String,
    key: String,
    at: Timestamp,
    answer: Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Set(Set),
    Cancelled {
        tenant: String,
        key: String,
        name: String,
        found: bool,
        at: Timestamp,
    },
    Fired {
        tenant: String,
        key: String,
        name: String,
        at: Timestamp,
    },
    /// What is left of a call whose timer is gone, when the file is written anew.
    Answered(Answer),
}

impl Set {
    fn id(&self) -> (String, String) {
        (self.tenant.clone(), self.name.clone())
    }
}

impl Kept {
    pub fn open(path: &Path) -> io::Result<Kept> {
        let (log, lines) = Log::open(path)?;
        let mut kept =
            Kept { log, waiting: BTreeMap::new(), answers: HashMap::new(), troubled: HashMap::new() };
        lines.into_iter().for_each(|line| kept.apply(line));
        Ok(kept)
    }

    pub fn set(&mut self, mut set: Set, timers_max: usize) -> Result<Value, Outcome> {
        if let Some(answer) = self.answered(&set.tenant, &set.key) {
            return Ok(answer);
        }
        set.replaced = self.waiting.contains_key(&set.id());
        if self.waiting.len() >= timers_max && !set.replaced {
            return Err(full(timers_max));
        }
        let (tenant, key) = (set.tenant.clone(), set.key.clone());
        self.write(Line::Set(set))?;
        Ok(self.answered(&tenant, &key).unwrap_or_default())
    }

    pub fn cancel(
        &mut self,
        tenant: String,
        key: String,
        name: String,
        at: Timestamp,
    ) -> Result<Value, Outcome> {
        if let Some(answer) = self.answered(&tenant, &key) {
            return Ok(answer);
        }
        let found = self.waiting.contains_key(&(tenant.clone(), name.clone()));
        self.write(Line::Cancelled { tenant: tenant.clone(), key: key.clone(), name, found, at })?;
        Ok(self.answered(&tenant, &key).unwrap_or_default())
    }

    /// Only this timer: one of the same name that was set meanwhile waits for its own time.
    pub fn fired(&mut self, set: &Set, at: Timestamp) -> Result<(), Outcome> {
        let (tenant, key, name) = (set.tenant.clone(), set.key.clone(), set.name.clone());
        self.write(Line::Fired { tenant, key, name, at })
    }

    pub fn due(&self, now: Timestamp, most: usize) -> Vec<Set> {
        let mut due: Vec<&Set> = self.waiting.values().filter(|set| self.fires_at(set) <= now).collect();
        due.sort_by_key(|set| set.at);
        due.into_iter().take(most).cloned().collect()
    }

    /// When the next one fires.
    pub fn next(&self) -> Option<Timestamp> {
        self.waiting.values().map(|set| self.fires_at(set)).min()
    }

    pub fn tries(&self, set: &Set) -> u32 {
        self.troubled.get(&trouble(set)).map_or(0, |(tries, _)| *tries)
    }

    pub fn try_again(&mut self, set: &Set, now: Timestamp) {
        let tries = self.tries(set);
        let pause = Millis(AGAIN_AFTER.0 << tries.min(5));
        self.troubled.insert(trouble(set), (tries + 1, now.plus(pause)));
    }

    /// The timers of a tenant, the next first.
    pub fn of(&self, tenant: &str) -> Vec<&Set> {
        let mut own: Vec<&Set> = self.waiting.values().filter(|set| set.tenant == tenant).collect();
        own.sort_by_key(|set| set.at);
        own
    }

    fn fires_at(&self, set: &Set) -> Timestamp {
        self.troubled.get(&trouble(set)).map_or(set.at, |(_, again)| *again)
    }

    fn answered(&self, tenant: &str, key: &str) -> Option<Value> {
        self.answers.get(&(tenant.to_owned(), key.to_owned())).map(|answer| answer.answer.clone())
    }

    fn write(&mut self, line: Line) -> Result<(), Outcome> {
        self.log.append(&line)?;
        let at = line.at();
        self.apply(line);
        if self.log.lines() > self.waiting.len() + self.answers.len() + STALE_LINES_MAX {
            self.write_anew(at);
        }
        Ok(())
    }

    fn apply(&mut self, line: Line) {
        match line {
            Line::Set(set) => {
                let answer =
                    json!({ "name": set.name, "at": moment::write(set.at), "replaced": set.replaced });
                self.remember(set.tenant.clone(), set.key.clone(), set.set_at, answer);
                self.waiting.insert(set.id(), set);
            }
            Line::Cancelled { tenant, key, name, found, at } => {
                self.waiting.remove(&(tenant.clone(), name.clone()));
                self.remember(tenant, key, at, json!({ "name": name, "cancelled": found }));
            }
            Line::Fired { tenant, key, name, .. } => {
                self.troubled.remove(&(tenant.clone(), key.clone()));
                let id = (tenant, name);
                if self.waiting.get(&id).is_some_and(|set| set.key == key) {
                    self.waiting.remove(&id);
                }
            }
            Line::Answered(answer) => {
                self.answers.insert((answer.tenant.clone(), answer.key.clone()), answer);
            }
        }
    }

    fn remember(&mut self, tenant: String, key: String, at: Timestamp, answer: Value) {
        let id = (tenant.clone(), key.clone());
        self.answers.insert(id, Answer { tenant, key, at, answer });
    }

    /// Forgets answers nobody will ask for again, and the lines that no longer count.
    fn write_anew(&mut self, now: Timestamp) {
        self.answers.retain(|_, answer| now.since(answer.at) < ANSWERS_KEPT);
        let answers = self.answers.values().cloned().map(Line::Answered);
        let lines: Vec<Line> = self.waiting.values().cloned().map(Line::Set).chain(answers).collect();
        if let Err(error) = self.log.rewrite(lines.iter()) {
            tracing::warn!(%error, "timers.log could not be written anew and grows on");
        }
    }
}

impl Line {
    fn at(&self) -> Timestamp {
        match self {
            Line::Set(set) => set.set_at,
            Line::Cancelled { at, .. } | Line::Fired { at, .. } => *at,
            Line::Answered(answer) => answer.at,
        }
    }
}

fn trouble(set: &Set) -> (String, String) {
    (set.tenant.clone(), set.key.clone())
}
