//! How a scene ended: in words, in numbers, and whether that is what it promised.

use super::stage::Stage;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) words: &'static str,
    checks: Vec<(String, bool)>,
    pub(crate) calls: u64,
    /// How often each tool took effect.
    pub(crate) effects: BTreeMap<String, u64>,
    /// Calls that took effect more than once.
    pub(crate) done_twice: u64,
    pub(crate) entries: u64,
}

impl Ending {
    pub(crate) fn new(words: &'static str) -> Ending {
        let (checks, effects) = (Vec::new(), BTreeMap::new());
        Ending { words, checks, calls: 0, effects, done_twice: 0, entries: 0 }
    }

    /// Notes whether something the scene promises holds.
    pub(crate) fn check(&mut self, promise: &str, holds: bool) {
        self.checks.push((promise.to_owned(), holds));
    }

    /// Ends an execution: its journal is signed, read back, verified and replayed, and its calls are counted.
    pub(crate) fn close(&mut self, stage: &mut Stage<'_>) -> anyhow::Result<()> {
        let is_same = stage.close()?;
        self.check("the journal on the disk replays to the same state", is_same);
        self.entries += stage.journal.entries();
        self.calls += stage.tools.calls();
        self.done_twice += stage.tools.done_twice();
        self.check("nothing was done twice", stage.tools.done_twice() == 0);
        // What the plan names and never happened is told too.
        for step in &stage.execution.plan().steps {
            self.effects.entry(step.call.tool.to_string()).or_default();
        }
        for (tool, effects) in stage.tools.effects() {
            *self.effects.entry(tool).or_default() += effects;
        }
        Ok(())
    }

    /// What was promised and does not hold.
    pub(crate) fn broken(&self) -> impl Iterator<Item = &str> {
        self.checks.iter().filter(|(_, holds)| !holds).map(|(promise, _)| promise.as_str())
    }

    pub(crate) fn is_as_told(&self) -> bool {
        self.broken().next().is_none()
    }

    pub(crate) fn json(&self, number: u32, title: &str) -> Value {
        let checks = self.checks.iter().map(|(promise, holds)| json!({ "promise": promise, "holds": holds }));
        json!({
            "scene": number,
            "title": title,
            "as_told": self.is_as_told(),
            "ended": self.words,
            "checks": checks.collect::<Vec<_>>(),
            "calls": self.calls,
            "effects": self.effects,
            "done_twice": self.done_twice,
            "entries": self.entries,
        })
    }
}
