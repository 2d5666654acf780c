//! How a scene ended: in words, in numbers, and whether that is what it promised.

use super::tools::book::Lines;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) words: &'static str,
    checks: Vec<(String, bool)>,
    /// Calls that reached a tool.
    pub(crate) calls: usize,
    /// How often each tool took effect.
    pub(crate) effects: BTreeMap<String, usize>,
    /// Calls that took effect more than once.
    pub(crate) done_twice: usize,
}

impl Ending {
    pub(crate) fn new(words: &'static str) -> Ending {
        Ending { words, checks: Vec::new(), calls: 0, effects: BTreeMap::new(), done_twice: 0 }
    }

    /// Notes whether something the scene promises holds.
    pub(crate) fn check(&mut self, promise: &str, holds: bool) {
        self.checks.push((promise.to_owned(), holds));
    }

    /// Counts what the tools wrote into their book during the scene. These tools are told also where they did nothing.
    pub(crate) fn count(&mut self, lines: &Lines, told: &[&str]) {
        self.calls = lines.calls();
        self.effects = told.iter().map(|tool| ((*tool).to_owned(), 0)).collect();
        for line in lines.effects() {
            *self.effects.entry(line.tool.clone()).or_default() += 1;
        }
        self.done_twice = lines.done_twice();
        self.check("nothing was done twice", self.done_twice == 0);
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
            "ended": self.words,
            "as_told": self.is_as_told(),
            "checks": checks.collect::<Vec<_>>(),
            "calls": self.calls,
            "effects": self.effects,
            "done_twice": self.done_twice,
        })
    }
}
