//! The ending of a scene: in words, in numbers, and whether the scene's promises hold.

use super::tools::call_log::CallLogLines;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct SceneEnding {
    pub(crate) words: &'static str,
    checks: Vec<(String, bool)>,
    /// Calls that reached a tool.
    pub(crate) calls: usize,
    /// How often each tool took effect.
    pub(crate) effects: BTreeMap<String, usize>,
    /// Calls that took effect more than once.
    pub(crate) done_twice: usize,
}

impl SceneEnding {
    pub(crate) fn new(words: &'static str) -> SceneEnding {
        SceneEnding { words, checks: Vec::new(), calls: 0, effects: BTreeMap::new(), done_twice: 0 }
    }

    /// Records whether a promise of the scene holds.
    pub(crate) fn check(&mut self, promise: &str, holds: bool) {
        self.checks.push((promise.to_owned(), holds));
    }

    /// Counts the effects that the tools logged during the scene. The named tools are listed even without effects.
    pub(crate) fn count(&mut self, lines: &CallLogLines, texts: &[&str]) {
        self.calls = lines.calls();
        self.effects = texts.iter().map(|tool| ((*tool).to_owned(), 0)).collect();
        for line in lines.effects() {
            *self.effects.entry(line.tool.clone()).or_default() += 1;
        }
        self.done_twice = lines.done_twice();
        self.check("nothing was done twice", self.done_twice == 0);
    }

    /// The promises that do not hold.
    pub(crate) fn broken(&self) -> impl Iterator<Item = &str> {
        self.checks.iter().filter(|(_, holds)| !holds).map(|(promise, _)| promise.as_str())
    }

    pub(crate) fn is_as_promised(&self) -> bool {
        self.broken().next().is_none()
    }

    pub(crate) fn json(&self, number: u32, title: &str) -> Value {
        let checks = self.checks.iter().map(|(promise, holds)| json!({ "promise": promise, "holds": holds }));
        json!({
            "scene": number,
            "title": title,
            "ended": self.words,
            "as_told": self.is_as_promised(),
            "checks": checks.collect::<Vec<_>>(),
            "calls": self.calls,
            "effects": self.effects,
            "done_twice": self.done_twice,
        })
    }
}
