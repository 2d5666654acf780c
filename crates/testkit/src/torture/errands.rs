//! What the next process is for: a new execution, one to continue, an agent's work, or an operator's word.

use super::agent::{AgentManner, AgentMemory};
use super::lane::TortureLane;
use super::operator_actions::{ExecutionListEntry, OperatorAction};
use super::plans::{self, TOOL_PROFILES};
use super::replans;
use serde_json::{Value, json};
use std::fs;

/// The most executions left open.
const OPEN_MAX: usize = 6;

/// The purpose of a process.
#[derive(Debug)]
pub(super) enum ProcessTask {
    Run { tag: String },
    Watch,
    Act { act: OperatorAction, reason: String },
    Agent { tag: String, manner: AgentManner },
}

impl TortureLane {
    pub(super) fn errand(&mut self, listed: &[ExecutionListEntry]) -> Result<(ProcessTask, Vec<String>), String> {
        let open: Vec<&ExecutionListEntry> = listed.iter().filter(|listed| !listed.has_ended()).collect();
        let busy: Vec<&ExecutionListEntry> = open.iter().copied().filter(|listed| !listed.waits()).collect();
        if self.chance.percent(33) {
            return self.agent_errand(&open, &busy);
        }
        if open.len() > 2
            && self.chance.percent(35)
            && let Some(act) = self.act(listed)
        {
            let (words, reason) = self.command_line(&act, false)?;
            return Ok((ProcessTask::Act { act, reason }, words));
        }
        // Nothing would come of watching what an agent does, unless it is handed over.
        let goes_on = |one: &&ExecutionListEntry| !one.is_agents() || self.is_handed_over(&one.tag);
        let watched: Vec<&ExecutionListEntry> = busy.into_iter().filter(goes_on).collect();
        if !watched.is_empty() && (open.len() >= OPEN_MAX || self.chance.percent(25)) {
            let execution = self.chance.pick(&watched).execution.clone();
            let mut words: Vec<String> = ["exec", "watch", &execution].map(str::to_owned).to_vec();
            if self.chance.percent(70) {
                words.push("--wait".to_owned());
            }
            return Ok((ProcessTask::Watch, words));
        }
        self.run_errand()
    }

    fn run_errand(&mut self) -> Result<(ProcessTask, Vec<String>), String> {
        let tag = match self.plans > 0 && self.chance.percent(15) {
            // Requested twice with one key, it is one execution.
            true => format!("{}p{}", self.name, 1 + self.chance.below(self.plans)),
            false => self.plan()?,
        };
        let (file, input) = (format!("plans/{tag}.json"), format!("tag={tag}"));
        let mut words: Vec<String> = ["run", &file, "--input", &input, "--key", &tag].map(str::to_owned).to_vec();
        if self.chance.percent(60) {
            words.push("--wait".to_owned());
        }
        if self.chance.percent(50) {
            words.push("--json".to_owned());
        }
        Ok((ProcessTask::Run { tag }, words))
    }

    fn plan(&mut self) -> Result<String, String> {
        self.plans += 1;
        let tag = format!("{}p{}", self.name, self.plans);
        let plan = plans::draw(&tag, &mut self.chance);
        self.write_plan(&tag, &plan)?;
        self.notes.write(&json!({ "plan": tag, "document": plan }));
        self.documents.insert(tag.clone(), plan);
        Ok(tag)
    }

    fn write_plan(&self, name: &str, plan: &Value) -> Result<(), String> {
        let path = self.stage.directory.join("plans").join(format!("{name}.json"));
        fs::write(&path, plan.to_string()).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// An agent starts an execution, goes on with its own, or takes over one of the program's.
    fn agent_errand(
        &mut self,
        open: &[&ExecutionListEntry],
        busy: &[&ExecutionListEntry],
    ) -> Result<(ProcessTask, Vec<String>), String> {
        let own: Vec<&ExecutionListEntry> = open.iter().copied().filter(|one| one.is_agents()).collect();
        let others: Vec<&ExecutionListEntry> = busy.iter().copied().filter(|one| !one.is_agents()).collect();
        if !own.is_empty() && (open.len() >= OPEN_MAX || self.chance.percent(60)) {
            let one = (*self.chance.pick(&own)).clone();
            return Ok(self.agent_task(&one, AgentManner::Careless));
        }
        if !others.is_empty() && (open.len() >= OPEN_MAX || self.chance.percent(40)) {
            let one = (*self.chance.pick(&others)).clone();
            let errand = self.agent_task(&one, AgentManner::Careless);
            if let Some(memory) = self.agents.get_mut(&one.tag) {
                memory.takes_over = true;
            }
            return Ok(errand);
        }
        // One that was started, and whose answer was lost, is asked for again.
        let unknown = self.agents.values().find(|memory| memory.execution.is_none()).map(|memory| memory.tag.clone());
        let tag = unknown.unwrap_or_else(|| {
            let tag = format!("{}a{}", self.name, self.agents.len() + 1);
            let plan = plans::draw_for_agent(&tag, &mut self.chance);
            self.notes.write(&json!({ "plan": tag, "document": plan }));
            self.documents.insert(tag.clone(), plan.clone());
            self.agents.insert(tag.clone(), AgentMemory::new(tag.clone(), tag.clone(), plan));
            tag
        });
        Ok((ProcessTask::Agent { tag, manner: AgentManner::Careless }, agent_words()))
    }

    /// The agent of this execution goes on, or another that knows nothing of it.
    pub(super) fn agent_task(&mut self, one: &ExecutionListEntry, manner: AgentManner) -> (ProcessTask, Vec<String>) {
        let is_another = self.chance.percent(25);
        let document = self.documents.get(&one.tag).cloned().unwrap_or_default();
        let memory = self
            .agents
            .entry(one.tag.clone())
            .or_insert_with(|| AgentMemory::new(one.tag.clone(), one.tag.clone(), document.clone()));
        if is_another && memory.execution.is_some() {
            memory.forget();
        }
        if memory.execution.is_none() {
            memory.execution = Some(one.execution.clone());
        }
        memory.document = document;
        (ProcessTask::Agent { tag: one.tag.clone(), manner }, agent_words())
    }

    /// Whether its plan hands it over when its agent is silent.
    fn is_handed_over(&self, tag: &str) -> bool {
        self.documents.get(tag).is_some_and(|plan| plan["on_agent_silence"] == "hand_over")
    }

    /// An action on one of the executions.
    pub(super) fn act(&mut self, listed: &[ExecutionListEntry]) -> Option<OperatorAction> {
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
            0 => self.interfere(&one),
            _ => self.answer(&one),
        }
    }

    /// An action without a question.
    pub(super) fn interfere(&mut self, one: &ExecutionListEntry) -> Option<OperatorAction> {
        if one.wants_plan(&mut self.chance) {
            let shown = self.show(one)?;
            return self.replan(one, &shown);
        }
        one.interfere(&mut self.chance)
    }

    pub(super) fn answer(&mut self, one: &ExecutionListEntry) -> Option<OperatorAction> {
        let shown = self.show(one)?;
        let questions = shown["questions"].as_array()?;
        let has_failed = questions.iter().any(|question| question["kind"] == "failure");
        if has_failed && self.chance.percent(20) {
            return self.replan(one, &shown);
        }
        one.answer(questions, &self.stage.log(), &mut self.chance)
    }

    fn show(&mut self, one: &ExecutionListEntry) -> Option<Value> {
        self.look(&["exec", "show", &one.execution, "--json"]).ok()?.answer()
    }

    /// Another plan for an execution, made from what the harness knows of it.
    fn replan(&mut self, one: &ExecutionListEntry, shown: &Value) -> Option<OperatorAction> {
        let document = self.documents.get(&one.tag)?;
        let steps = shown["steps"].as_array()?;
        let with = |is_it: &dyn Fn(&str) -> bool| -> Vec<String> {
            let found = steps.iter().filter(|step| step["status"].as_str().is_some_and(is_it));
            found.filter_map(|step| step["id"].as_str().map(str::to_owned)).collect()
        };
        let (begun, failed) = (with(&|status| status != "pending"), with(&|status| status == "failed"));
        let plan = replans::change(document, (&begun, &failed), TOOL_PROFILES, &mut self.chance);
        Some(one.replan(plan))
    }

    /// The command line of an action, with a unique reason.
    pub(super) fn command_line(
        &mut self,
        act: &OperatorAction,
        no_wait: bool,
    ) -> Result<(Vec<String>, String), String> {
        let reason = format!("because-{}-{}", self.name, self.lives);
        let mut words = vec!["exec".to_owned()];
        words.extend(act.words.iter().cloned());
        if let Some(plan) = &act.plan {
            self.write_plan(&reason, plan)?;
            self.notes.write(&json!({ "replan": act.execution, "reason": reason, "document": plan }));
            words.extend(["--plan".to_owned(), format!("plans/{reason}.json")]);
        }
        words.extend(["--json".to_owned(), "--reason".to_owned(), reason.clone()]);
        if no_wait {
            words.push("--no-wait".to_owned());
        }
        Ok((words, reason))
    }
}

fn agent_words() -> Vec<String> {
    ["mcp", "--embedded", "--toolset", "default,journal"].map(str::to_owned).to_vec()
}
