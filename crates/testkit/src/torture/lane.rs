//! One directory and its processes: plans are started, killed, resumed, answered, until enough processes were killed;
//! then everything may settle.

use super::agent::{AgentManner, AgentMemory, AgentSession};
use super::errands::ProcessTask;
use super::notes::{TortureLog, now_ms};
use super::operator_actions::{ExecutionListEntry, OperatorAction};
use super::process_life::{ProcessExit, ProcessLife};
use super::window::{KillWindow, WindowWatcher};
use super::workspace::TortureWorkspace;
use crate::chance::SeededRandom;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(1);
/// How long a command that only reads, or is not to be killed, may take.
const LOOK_MAX: Duration = Duration::from_secs(60);
/// How long everything may take to settle once nothing is killed any more.
const SETTLE_MAX: Duration = Duration::from_secs(30);
const ROUNDS_MAX: usize = 16;
/// Then a person hands back what agents did not finish.
const AGENT_ROUNDS_MAX: usize = 4;

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
    /// The plan that each execution follows, as far as the harness was told, by tag.
    pub(super) documents: BTreeMap<String, Value>,
    /// What agents remember, by tag.
    pub(super) agents: BTreeMap<String, AgentMemory>,
}

/// An agent at work, beside the harness.
type WorkingAgent = JoinHandle<(AgentMemory, Vec<Value>)>;

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
        let (errand, words) = self.errand(&listed)?;
        // An agent has to speak before anything happens.
        let pace = if matches!(errand, ProcessTask::Agent { .. }) { 2 * self.pace } else { self.pace };
        let window = KillWindow::draw(pace, &mut self.chance);
        let aside = match self.chance.percent(40) {
            true => self.act(&listed),
            false => None,
        };
        let aside_at = Duration::from_millis(self.chance.below(300)) + self.pace / 2;
        let mut evaluator = WindowWatcher::new(window, &self.stage.directory);
        let (mut life, agent) = self.begin_task(&errand, &words)?;
        let mut beside: Option<(ProcessLife, OperatorAction, String)> = None;
        let mut waiting = aside;
        while life.is_alive() && !evaluator.is_open(life.began) {
            if life.began.elapsed() >= aside_at
                && let Some(act) = waiting.take()
            {
                let (words, reason) = self.command_line(&act, true)?;
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
        self.note_agent(agent)?;
        let is_refused = matches!(errand, ProcessTask::Run { .. }) && ended.code == Some(2) && !ended.is_locked_out();
        if is_refused && ended.is_unreachable() {
            // A server that just died is started again later, and so is the plan.
            self.notes.write(&json!({ "unreachable": words }));
        } else if is_refused {
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

    fn begin(&mut self, words: &[String]) -> Result<ProcessLife, String> {
        let name = self.next_life();
        ProcessLife::start(&self.rutter, &self.stage.directory, name, words)
    }

    fn next_life(&mut self) -> String {
        self.lives += 1;
        format!("{}-{:05}", self.name, self.lives)
    }

    fn begin_task(
        &mut self,
        task: &ProcessTask,
        words: &[String],
    ) -> Result<(ProcessLife, Option<WorkingAgent>), String> {
        let ProcessTask::Agent { tag, manner } = task else { return Ok((self.begin(words)?, None)) };
        let memory = self.agents.get(tag).cloned().ok_or_else(|| format!("no agent has {tag}"))?;
        let name = self.next_life();
        let (life, pipe) = ProcessLife::start_with_pipe(&self.rutter, &self.stage.directory, name, words)?;
        let chance = SeededRandom::new(self.chance.draw());
        let agent = AgentSession::start(pipe, self.stage.port.clone(), memory, *manner, chance);
        Ok((life, Some(agent)))
    }

    /// What the agent remembers, once its process is gone.
    fn note_agent(&mut self, agent: Option<WorkingAgent>) -> Result<(), String> {
        let Some(agent) = agent else { return Ok(()) };
        let (memory, notes) = agent.join().map_err(|_| "an agent panicked")?;
        notes.iter().for_each(|note| self.notes.write(note));
        self.documents.insert(memory.tag.clone(), memory.document.clone());
        self.agents.insert(memory.tag.clone(), memory);
        Ok(())
    }

    /// Runs a command to its end.
    pub(super) fn look(&mut self, words: &[&str]) -> Result<ProcessExit, String> {
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
            // What an agent was told is noted when it has ended.
            ProcessTask::Watch | ProcessTask::Agent { .. } => {}
            ProcessTask::Act { act, reason } => {
                let error = answer.as_ref().filter(|answer| answer["ok"] == false).map(|answer| &answer["error"]);
                let code = error.and_then(|error| error["code"].as_str()).unwrap_or_default();
                let note = json!({ "execution": act.execution, "what": act.what, "reason": reason });
                let is_refusal = code.starts_with("execution.") || code.starts_with("replan.");
                if matches!(ended.code, Some(0 | 1 | 3)) && error.is_none() {
                    self.notes.write(&json!({ "acknowledged": note }));
                    if let Some(plan) = &act.plan {
                        self.documents.insert(act.tag.clone(), plan.clone());
                    }
                } else if ended.code == Some(2) && is_refusal {
                    self.notes.write(&json!({ "refused": note, "code": code }));
                }
            }
        }
    }

    /// Nothing is killed any more: everything settles or waits with a question, and most questions are answered.
    fn settle(&mut self) -> Result<(), String> {
        let mut listed = self.rest()?;
        for round in 0..ROUNDS_MAX {
            let waiting: Vec<ExecutionListEntry> =
                listed.iter().filter(|listed| !listed.has_ended()).cloned().collect();
            if waiting.is_empty() {
                break;
            }
            for one in waiting {
                let act = match one.questions {
                    0 if one.is_agents() && !one.waits() && round < AGENT_ROUNDS_MAX => {
                        self.let_agent_settle(&one)?;
                        continue;
                    }
                    0 if one.is_agents() && !one.waits() => Some(one.hand_back()),
                    0 => self.interfere(&one),
                    _ => self.answer(&one),
                };
                let Some(act) = act else { continue };
                let (words, reason) = self.command_line(&act, true)?;
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

    /// Its agent works on, with a process that nobody kills.
    fn let_agent_settle(&mut self, one: &ExecutionListEntry) -> Result<(), String> {
        let (task, words) = self.agent_task(one, AgentManner::Settling);
        let (life, agent) = self.begin_task(&task, &words)?;
        let (name, began_ms) = (life.name.clone(), life.began_ms);
        let ended = life.finish(LOOK_MAX);
        if ended.killed {
            return Err(format!("the agent of {} did not come to its end within {LOOK_MAX:?}", one.execution));
        }
        self.note_life(&name, began_ms, &words, &ended);
        self.note_agent(agent)
    }

    /// Continues whatever can continue by itself, for as long as that may take.
    fn rest(&mut self) -> Result<Vec<ExecutionListEntry>, String> {
        let until = Instant::now() + SETTLE_MAX;
        loop {
            let listed = self.list()?;
            let busy = listed.iter().find(|listed| !listed.has_ended() && !listed.waits() && !listed.is_agents());
            let Some(busy) = busy.filter(|_| Instant::now() < until) else { return Ok(listed) };
            let ended = self.look(&["exec", "watch", &busy.execution.clone()])?;
            if ended.killed {
                return Err(format!("{} did not settle within {LOOK_MAX:?}", busy.execution));
            }
        }
    }
}
