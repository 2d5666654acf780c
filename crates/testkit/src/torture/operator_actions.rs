//! Actions on an execution: answers to its questions, and now and then a pause, a cancel or a hand-over.

use crate::chance::SeededRandom;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// One execution as `exec list` prints it.
#[derive(Clone, Debug)]
pub(super) struct ExecutionListEntry {
    pub(super) execution: String,
    pub(super) status: String,
    pub(super) questions: u64,
    driver: String,
    /// The last word of its plan's name.
    pub(super) tag: String,
}

/// An action, as the arguments of `rutter exec`.
#[derive(Clone, Debug)]
pub(super) struct OperatorAction {
    pub(super) execution: String,
    pub(super) tag: String,
    pub(super) what: &'static str,
    pub(super) words: Vec<String>,
    /// The new plan of a replan.
    pub(super) plan: Option<Value>,
}

pub(super) const ENDED: [&str; 5] = ["completed", "partial", "failed", "cancelled", "compensated"];

impl ExecutionListEntry {
    pub(super) fn read(line: &str) -> Option<ExecutionListEntry> {
        let json: Value = serde_json::from_str(line).ok()?;
        Some(ExecutionListEntry {
            execution: json["execution_id"].as_str()?.to_owned(),
            status: json["status"].as_str()?.to_owned(),
            questions: json["questions_count"].as_u64()?,
            driver: json["driver"].as_str()?.to_owned(),
            tag: json["plan"]["name"].as_str()?.rsplit('-').next()?.to_owned(),
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        ENDED.contains(&self.status.as_str())
    }

    pub(super) fn is_agents(&self) -> bool {
        self.driver == "agent"
    }

    /// Whether it waits for a person or an agent.
    pub(super) fn waits(&self) -> bool {
        ["waiting", "paused", "replanning"].contains(&self.status.as_str())
    }

    fn act(&self, what: &'static str, words: &[&str]) -> OperatorAction {
        let mut all = vec![what.to_owned(), self.execution.clone()];
        all.extend(words.iter().map(|word| (*word).to_owned()));
        OperatorAction { execution: self.execution.clone(), tag: self.tag.clone(), what, words: all, plan: None }
    }

    /// Whether the next action without a question is another plan.
    pub(super) fn wants_plan(&self, chance: &mut SeededRandom) -> bool {
        match self.status.as_str() {
            "replanning" => true,
            "paused" => chance.percent(20),
            _ if self.has_ended() => chance.percent(10),
            _ => chance.percent(20),
        }
    }

    pub(super) fn replan(&self, plan: Value) -> OperatorAction {
        OperatorAction { plan: Some(plan), ..self.act("replan", &[]) }
    }

    pub(super) fn hand_back(&self) -> OperatorAction {
        self.act("hand-back", &[])
    }

    /// An action that does not depend on the execution's questions.
    pub(super) fn interfere(&self, chance: &mut SeededRandom) -> Option<OperatorAction> {
        if self.status == "paused" {
            return Some(self.act("resume", &[]));
        }
        if self.has_ended() {
            let undoable = self.status == "completed" && chance.percent(4);
            return undoable.then(|| self.act("undo", &[]));
        }
        match chance.below(100) {
            0..40 => Some(self.act("pause", &[])),
            40..47 => Some(self.act("cancel", &[])),
            47..55 => Some(self.act("cancel", &["--undo"])),
            55..59 => Some(self.act("cancel", &["--no-undo"])),
            59..62 => Some(self.act("kill", &[])),
            62..78 if self.is_agents() => Some(self.hand_back()),
            62..74 => Some(self.act("take-over", &[])),
            // It waits for its new plan.
            78..80 => Some(self.act("replan", &[])),
            _ => None,
        }
    }

    /// An answer to one of its open questions; doubts are settled by the tools' own log.
    pub(super) fn answer(&self, questions: &[Value], log: &Path, chance: &mut SeededRandom) -> Option<OperatorAction> {
        let question = (!questions.is_empty()).then(|| chance.pick(questions))?;
        let word = |name: &str| question[name].as_str().unwrap_or_default();
        let part = word("part");
        Some(match word("kind") {
            "approval" if chance.percent(85) => self.act("approve", &["--step", part, "--call", word("call")]),
            "approval" => self.act("reject", &["--step", part, "--call", word("call")]),
            "doubt" => match happened(log, &self.tag, part, word("side")) {
                Some(true) => {
                    self.act("resolve", &["--step", part, "--evidence", "it is in the log", "--result", "{}"])
                }
                Some(false) => {
                    self.act("resolve", &["--step", part, "--evidence", "the log has nothing", "--not-done"])
                }
                None => return None,
            },
            "failure" => {
                let step = word("step");
                match chance.below(6) {
                    0 | 1 => self.act("retry", &["--step", step]),
                    2 => self.act("skip", &["--step", step]),
                    3 => self.act("answer", &["--step", step, "--with", "compensate"]),
                    4 => self.act("answer", &["--step", step, "--with", "continue"]),
                    _ => self.act("answer", &["--step", step, "--with", "stop"]),
                }
            }
            "compensation" if chance.percent(70) => self.act("retry", &["--step", part]),
            "compensation" => self.act("skip", &["--step", part]),
            "limit" => self.act("answer", &["--with", "continue"]),
            "replan" if chance.percent(70) => self.act("approve", &[]),
            "replan" => self.act("reject", &[]),
            "silence" => match chance.below(4) {
                0 => self.act("continue", &[]),
                1 => self.act("take-over", &[]),
                _ => self.hand_back(),
            },
            "second_effect" => self.act("continue", &["--step", part]),
            "drift" => self.act("accept-tool", &["--tool", word("tool")]),
            _ => return None,
        })
    }
}

/// Whether the tools' log has the effect; `None` while a call may still take effect.
fn happened(log: &Path, tag: &str, part: &str, side: &str) -> Option<bool> {
    let (step, item) = match part.split_once('[') {
        Some((step, item)) => (step, item.trim_end_matches(']').parse::<u64>().ok()),
        None => (part, None),
    };
    let side = if side == "undo" { "undo" } else { "do" };
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let is_it = |line: &&Value| {
        let arguments = &line["arguments"];
        arguments["tag"] == tag
            && arguments["step"] == step
            && arguments["side"] == side
            && arguments["item"].as_u64() == item
    };
    let mine: Vec<&Value> = lines.iter().filter(is_it).collect();
    if mine.iter().any(|line| line.get("effect").is_some()) {
        return Some(true);
    }
    let is_open = |call: &Value| {
        let has_ended = lines.iter().any(|line| line.get("end").is_some_and(|end| *end == call["id"]));
        let is_alive = call["pid"].as_u64().is_some_and(|pid| Path::new(&format!("/proc/{pid}")).exists());
        // A call that was dropped on purpose has no end, and no effect either.
        !has_ended && is_alive && call["fault"] != "drop_before"
    };
    let is_under_way = mine.iter().any(|line| line.get("call").is_some() && is_open(line));
    (!is_under_way).then_some(false)
}
