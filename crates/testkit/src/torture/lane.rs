//! One directory and its processes: plans are started, killed, resumed, answered, until enough processes were killed;
//! then everything may settle.

use super::notes::{TortureLog, now_ms};
use super::operator_actions::{ExecutionListEntry, OperatorAction};
use super::plans;
use super::process_life::{ProcessExit, ProcessLife};
use super::window::{KillWindow, WindowWatcher};
use super::workspace::TortureWorkspace;
use crate::chance::SeededRandom;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// The most executions left open.
const OPEN_MAX: usize = 6;
const POLL: Duration = Duration::from_millis(1);
/// How long a command that only reads, or is not to be killed, may take.
const LOOK_MAX: Duration = Duration::from_secs(60);
/// How long everything may take to settle once nothing is killed any more.
const SETTLE_MAX: Duration = Duration::from_secs(30);
const ROUNDS_MAX: usize = 12;

pub(super) struct TortureLane {
    pub(super) name: String,
    pub(super) rutter: PathBuf,
    pub(super) stage: TortureWorkspace,
    pub(super) notes: TortureLog,
    pub(super) chance: SeededRandom,
    pub(super) lives: u64,
    pub(super) plans: u64,
    /// How long a process takes until its first write.
    pub(super) pace: Duration,
    pub(super) kills: BTreeMap<&'static str, u64>,
}

/// The purpose of a process.
enum ProcessTask {
    Run { tag: String },
    Watch,
    Act { act: OperatorAction, reason: String },
}

impl TortureLane {
    /// Kills this many processes, then lets the rest end.
    pub(super) fn go(&mut self, kills: u64) -> Result<(), String> {
        while self.kills.values().sum::<u64>() < kills {
            self.live_and_die()?;
        }
        self.settle()
    }

    fn live_and_die(&mut self) -> Result<(), String> {
        let listed = self.list()?;
        let (errand, words) = self.errand(&listed);
        let window = KillWindow::draw(self.pace, &mut self.chance);
        let aside = match self.chance.percent(40) {
            true => self.act(&listed),
            false => None,
        };
        let aside_at = Duration::from_millis(self.chance.below(300)) + self.pace / 2;
        let mut evaluator = WindowWatcher::new(window, &self.stage.directory);
        let mut life = self.begin(&words)?;
        let mut beside: Option<(ProcessLife, OperatorAction, String)> = None;
        let mut waiting = aside;
        while life.is_alive() && !evaluator.is_open(life.began) {
            if life.began.elapsed() >= aside_at
                && let Some(act) = waiting.take()
            {
                let (words, reason) = self.command_line(&act, true);
                beside = Some((self.begin(&words)?, act, reason));
            }
            thread::sleep(POLL);
        }
        if let Some(first) = evaluator.first_write {
            self.pace = (self.pace * 7 + first.duration_since(life.began)) / 8;
        }
        let (name, began_ms) = (life.name.clone(), life.began_ms);
        let ended = life.kill();
        if ended.killed {
            *self.kills.entry(window.name()).or_default() += 1;
        }
        self.note_life(&name, began_ms, &words, &ended);
        self.note_errand(&errand, &ended);
        if matches!(errand, ProcessTask::Run { .. }) && ended.code == Some(2) && !ended.is_locked_out() {
            return Err(format!("`rutter {}` was refused: {}{}", words.join(" "), ended.stdout, ended.stderr));
        }
        if let Some((other, act, reason)) = beside {
            let (name, began_ms) = (other.name.clone(), other.began_ms);
            let ended = match self.chance.percent(40) {
                true => other.kill(),
                false => other.finish(LOOK_MAX),
            };
            if ended.killed {
                *self.kills.entry("beside").or_default() += 1;
            }
            self.note_life(&name, began_ms, &[act.what.to_owned()], &ended);
            self.note_errand(&ProcessTask::Act { act, reason }, &ended);
        }
        Ok(())
    }

    /// A new execution, one to continue, or an answer that also continues it.
    fn errand(&mut self, listed: &[ExecutionListEntry]) -> (ProcessTask, Vec<String>) {
        let open: Vec<&ExecutionListEntry> = listed.iter().filter(|listed| !listed.has_ended()).collect();
        let busy: Vec<&ExecutionListEntry> = open.iter().copied().filter(|listed| !listed.waits()).collect();
        if open.len() > 2
            && self.chance.percent(35)
            && let Some(act) = self.act(listed)
        {
            let (words, reason) = self.command_line(&act, false);
            return (ProcessTask::Act { act, reason }, words);
        }
        if !busy.is_empty() && (open.len() >= OPEN_MAX || self.chance.percent(25)) {
            let execution = self.chance.pick(&busy).execution.clone();
            let mut words: Vec<String> = ["exec", "watch", &execution].map(str::to_owned).to_vec();
            if self.chance.percent(70) {
                words.push("--wait".to_owned());
            }
            return (ProcessTask::Watch, words);
        }
        let tag = match self.plans > 0 && self.chance.percent(15) {
            // Requested twice with one key, it is one execution.
            true => format!("{}p{}", self.name, 1 + self.chance.below(self.plans)),
            false => self.plan(),
        };
        let (file, input) = (format!("plans/{tag}.json"), format!("tag={tag}"));
        let mut words: Vec<String> = ["run", &file, "--input", &input, "--key", &tag].map(str::to_owned).to_vec();
        if self.chance.percent(60) {
            words.push("--wait".to_owned());
        }
        if self.chance.percent(50) {
            words.push("--json".to_owned());
        }
        (ProcessTask::Run { tag }, words)
    }

    fn plan(&mut self) -> String {
        self.plans += 1;
        let tag = format!("{}p{}", self.name, self.plans);
        let plan = plans::draw(&tag, &mut self.chance);
        let path = self.stage.directory.join("plans").join(format!("{tag}.json"));
        fs::write(&path, plan.to_string()).expect("the directory was created with the workspace");
        self.notes.write(&json!({ "plan": tag, "document": plan }));
        tag
    }

    /// An action on one of the executions.
    fn act(&mut self, listed: &[ExecutionListEntry]) -> Option<OperatorAction> {
        let open: Vec<&ExecutionListEntry> = listed.iter().filter(|listed| !listed.has_ended()).collect();
        let among: Vec<&ExecutionListEntry> = match open.is_empty() || self.chance.percent(10) {
            true => listed.iter().collect(),
            false => open,
        };
        if among.is_empty() {
            return None;
        }
        let one = (*self.chance.pick(&among)).clone();
        match one.questions {
            0 => one.interfere(&mut self.chance),
            _ => self.answer(&one),
        }
    }

    fn answer(&mut self, one: &ExecutionListEntry) -> Option<OperatorAction> {
        let answer = self.look(&["exec", "show", &one.execution, "--json"]).ok()?.answer()?;
        let questions = answer["questions"].as_array()?.clone();
        one.answer(&questions, &self.stage.log(), &mut self.chance)
    }

    /// The command line of an action, with a unique reason.
    fn command_line(&mut self, act: &OperatorAction, no_wait: bool) -> (Vec<String>, String) {
        let reason = format!("because-{}-{}", self.name, self.lives);
        let mut words = vec!["exec".to_owned()];
        words.extend(act.words.iter().cloned());
        words.extend(["--json".to_owned(), "--reason".to_owned(), reason.clone()]);
        if no_wait {
            words.push("--no-wait".to_owned());
        }
        (words, reason)
    }

    fn begin(&mut self, words: &[String]) -> Result<ProcessLife, String> {
        self.lives += 1;
        let name = format!("{}-{:05}", self.name, self.lives);
        ProcessLife::start(&self.rutter, &self.stage.directory, name, words)
    }

    /// Runs a command to its end.
    fn look(&mut self, words: &[&str]) -> Result<ProcessExit, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let life = self.begin(&words)?;
        let (name, began_ms) = (life.name.clone(), life.began_ms);
        let ended = life.finish(LOOK_MAX);
        if ended.killed || ended.is_broken() {
            self.note_life(&name, began_ms, &words, &ended);
        }
        Ok(ended)
    }

    fn list(&mut self) -> Result<Vec<ExecutionListEntry>, String> {
        let ended = self.look(&["exec", "list", "--json", "-n", "1000"])?;
        // There is no database before the first process, or no execution yet.
        if ended.code == Some(2) {
            return Ok(Vec::new());
        }
        Ok(ended.stdout.lines().filter_map(ExecutionListEntry::read).collect())
    }

    fn note_life(&mut self, name: &str, began_ms: u64, words: &[String], ended: &ProcessExit) {
        let mut note = json!({
            "life": name, "began_ms": began_ms, "ended_ms": now_ms(), "words": words,
            "killed": ended.killed, "code": ended.code,
        });
        if ended.is_broken() {
            note["broken"] = json!({ "stdout": ended.stdout, "stderr": ended.stderr });
        }
        self.notes.write(&note);
    }

    /// What the process acknowledged before it ended or was killed.
    fn note_errand(&mut self, errand: &ProcessTask, ended: &ProcessExit) {
        let answer = ended.answer();
        if let Some(answer) = answer.as_ref().filter(|answer| answer["receipt"].is_object()) {
            let (execution, status) = (&answer["execution_id"], &answer["status"]);
            self.notes.write(&json!({ "concluded": execution, "status": status, "receipt": answer["receipt"] }));
        }
        match errand {
            ProcessTask::Run { tag } => {
                if let Some(execution) = ended.execution() {
                    self.notes.write(&json!({ "started": execution, "tag": tag, "code": ended.code }));
                }
            }
            ProcessTask::Watch => {}
            ProcessTask::Act { act, reason } => {
                let error = answer.as_ref().filter(|answer| answer["ok"] == false).map(|answer| &answer["error"]);
                let code = error.and_then(|error| error["code"].as_str()).unwrap_or_default();
                let note = json!({ "execution": act.execution, "what": act.what, "reason": reason });
                if matches!(ended.code, Some(0 | 1 | 3)) && error.is_none() {
                    self.notes.write(&json!({ "acknowledged": note }));
                } else if ended.code == Some(2) && code.starts_with("execution.") {
                    self.notes.write(&json!({ "refused": note, "code": code }));
                }
            }
        }
    }

    /// Nothing is killed any more: everything settles or waits with a question, and most questions are answered.
    fn settle(&mut self) -> Result<(), String> {
        let mut listed = self.rest()?;
        for _ in 0..ROUNDS_MAX {
            let waiting: Vec<ExecutionListEntry> = listed.iter().filter(|listed| listed.waits()).cloned().collect();
            if waiting.is_empty() {
                break;
            }
            for one in waiting {
                let act = match one.questions {
                    0 => one.interfere(&mut self.chance),
                    _ => self.answer(&one),
                };
                let Some(act) = act else { continue };
                let (words, reason) = self.command_line(&act, true);
                let life = self.begin(&words)?;
                let (name, began_ms) = (life.name.clone(), life.began_ms);
                let ended = life.finish(LOOK_MAX);
                self.note_life(&name, began_ms, &words, &ended);
                self.note_errand(&ProcessTask::Act { act, reason }, &ended);
            }
            listed = self.rest()?;
        }
        for one in &listed {
            let (execution, status) = (&one.execution, &one.status);
            self.notes.write(&json!({ "final": execution, "status": status, "questions": one.questions }));
        }
        let verified = self.look(&["journal", "verify", "--projections", "--json"])?;
        self.notes.write(&json!({ "verified": verified.code == Some(0), "said": verified.stdout }));
        let exported = self.look(&["journal", "export", "--out", "export.jsonl", "--force"])?;
        match exported.code {
            Some(0) => Ok(()),
            _ => Err(format!("the export failed: {}{}", exported.stdout, exported.stderr)),
        }
    }

    /// Continues whatever can continue by itself, for as long as that may take.
    fn rest(&mut self) -> Result<Vec<ExecutionListEntry>, String> {
        let until = Instant::now() + SETTLE_MAX;
        loop {
            let listed = self.list()?;
            let busy = listed.iter().find(|listed| !listed.has_ended() && !listed.waits());
            let Some(busy) = busy.filter(|_| Instant::now() < until) else { return Ok(listed) };
            let ended = self.look(&["exec", "watch", &busy.execution.clone()])?;
            if ended.killed {
                return Err(format!("{} did not settle within {LOOK_MAX:?}", busy.execution));
            }
        }
    }
}
