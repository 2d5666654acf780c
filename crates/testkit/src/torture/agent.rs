//! An agent that drives executions: it asks the program what is next, makes the calls itself, and records them. It outlives
//! the processes it speaks to: a request without an answer is repeated with its key to the next one.

use super::agent_call::{AgentCallOutcome, AwaitedAnswer, DueCall};
use super::agent_request::{AgentRequest, RequestPurpose};
use super::brief::ExecutionBrief;
use super::notes::now_ms;
use super::pipe::{AgentPipe, ConnectionLost, ToolReply};
use super::plans::{AGENT_TOOL_PROFILES, TOOL_PROFILES};
use super::replans;
use crate::chance::SeededRandom;
use serde_json::{Value, json};
use std::thread::{self, JoinHandle};

const NAME: &str = "pilot";
/// How much an agent does with one process.
const ACTIONS_MAX: usize = 12;
/// How often it makes a call again that may be repeated.
const TRIES_MAX: usize = 3;

/// What an agent knows of one execution, besides what the program tells it.
#[derive(Clone, Debug)]
pub(super) struct AgentMemory {
    /// Part of its marks and keys, which are unique.
    pub(super) name: String,
    pub(super) tag: String,
    pub(super) execution: Option<String>,
    /// The plan that it sent or was told last.
    pub(super) document: Value,
    /// Whether it is to take over what the program drives.
    pub(super) takes_over: bool,
    plan_id: Option<String>,
    unanswered: Option<AgentRequest>,
    doing: Option<CallProgress>,
    /// A call that was recorded as failed and may be tried again.
    refused: Option<DueCall>,
    requests: u64,
}

/// How far the agent is with a call.
#[derive(Clone, Debug)]
enum CallProgress {
    Begun(DueCall),
    Made(DueCall, AgentCallOutcome),
}

/// How the agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgentManner {
    /// As it likes: it replans, hands over, forgets, falls silent.
    Careless,
    /// It brings the execution to its end, or hands it back.
    Settling,
}

/// The agent at work with one process.
#[derive(Debug)]
pub(super) struct AgentSession {
    pub(super) memory: AgentMemory,
    pub(super) notes: Vec<Value>,
    pipe: AgentPipe,
    port: String,
    manner: AgentManner,
    chance: SeededRandom,
}

impl AgentMemory {
    pub(super) fn new(name: String, tag: String, document: Value) -> AgentMemory {
        AgentMemory {
            name,
            tag,
            execution: None,
            document,
            takes_over: false,
            plan_id: None,
            unanswered: None,
            doing: None,
            refused: None,
            requests: 0,
        }
    }

    /// Another agent knows only what the program says.
    pub(super) fn forget(&mut self) {
        (self.unanswered, self.doing, self.refused) = (None, None, None);
    }

    /// A unique text for the journal, which is the key of its request, too.
    fn mark(&mut self) -> String {
        self.requests += 1;
        format!("because-{}-{}", self.name, self.requests)
    }
}

impl AgentSession {
    /// Begins to work, beside the harness. It ends when it has done enough, or the process is gone.
    pub(super) fn start(
        pipe: AgentPipe,
        port: String,
        memory: AgentMemory,
        manner: AgentManner,
        chance: SeededRandom,
    ) -> JoinHandle<(AgentMemory, Vec<Value>)> {
        let session = AgentSession { memory, notes: Vec::new(), pipe, port, manner, chance };
        thread::spawn(move || session.go())
    }

    fn go(mut self) -> (AgentMemory, Vec<Value>) {
        // A lost connection ends it like everything else: what has no answer is remembered.
        let _ = self.work();
        (self.memory, self.notes)
    }

    fn work(&mut self) -> Result<(), ConnectionLost> {
        self.pipe.introduce(NAME)?;
        if let Some(unanswered) = self.memory.unanswered.clone() {
            self.send(unanswered)?;
        }
        if self.memory.execution.is_none() && !self.begin()? {
            return Ok(());
        }
        self.resume()?;
        for _ in 0..ACTIONS_MAX {
            if !self.act()? {
                break;
            }
        }
        Ok(())
    }

    /// Starts its execution, in one of three ways.
    fn begin(&mut self) -> Result<bool, ConnectionLost> {
        let (tag, plan) = (self.memory.tag.clone(), self.memory.document.clone());
        let inputs = json!({ "tag": tag });
        if self.memory.plan_id.is_none() && self.chance.percent(50) {
            let request = match self.chance.percent(50) {
                true => AgentRequest::new("record_plan", RequestPurpose::Save, json!({ "plan": plan })),
                false => {
                    let arguments = json!({ "plan": plan, "driver": "agent" });
                    AgentRequest::new("save_plan", RequestPurpose::Save, arguments)
                }
            };
            self.send(request.with_key(&format!("save-{tag}")))?;
        }
        let request = match (&self.memory.plan_id, self.chance.percent(50)) {
            (Some(plan_id), true) => {
                let arguments = json!({ "plan_id": plan_id, "inputs": inputs, "notes": "to count effects" });
                AgentRequest::new("record_execution_start", RequestPurpose::Start, arguments)
            }
            (Some(plan_id), false) => {
                let arguments = json!({ "plan_id": plan_id, "inputs": inputs, "driver": "agent" });
                AgentRequest::new("execute_plan", RequestPurpose::Start, arguments)
            }
            (None, _) => {
                let arguments = json!({ "plan": plan, "inputs": inputs, "driver": "agent" });
                AgentRequest::new("execute_plan", RequestPurpose::Start, arguments)
            }
        };
        self.send(request.with_key(&tag))?;
        Ok(self.memory.execution.is_some())
    }

    /// Goes on with the call that an earlier process heard of, or says what became of it.
    fn resume(&mut self) -> Result<(), ConnectionLost> {
        match self.memory.doing.take() {
            None => Ok(()),
            Some(CallProgress::Made(call, outcome)) => self.record_end(&call, outcome),
            Some(CallProgress::Begun(call)) => {
                let brief = self.look()?;
                let is_mine = brief.is_some_and(|brief| brief.is_agents && brief.is_under_way(&call.part));
                if is_mine { self.make(call) } else { Ok(()) }
            }
        }
    }

    /// Does one thing. Whether there may be more to do.
    fn act(&mut self) -> Result<bool, ConnectionLost> {
        let Some(brief) = self.look()? else { return Ok(false) };
        if brief.has_ended() {
            return Ok(false);
        }
        if !brief.is_agents {
            let takes_over = self.memory.takes_over && self.manner == AgentManner::Careless;
            self.memory.takes_over = false;
            return if takes_over { self.control("take_over") } else { Ok(false) };
        }
        if self.manner == AgentManner::Careless
            && let Some(goes_on) = self.digress(&brief)?
        {
            return Ok(goes_on);
        }
        if let Some(undo) = &brief.undo {
            return self.undo(undo);
        }
        if let Some(question) = brief.questions.first() {
            return self.answer(&brief, question);
        }
        if let Some(due) = brief.due.clone() {
            return match due.own_tool() {
                Some(_) => self.carry_out(due),
                None if self.manner == AgentManner::Settling || self.chance.percent(70) => self.control("hand_back"),
                None => Ok(false),
            };
        }
        match brief.under_way.first() {
            Some(step) => self.explain(step),
            None => self.control("hand_back"),
        }
    }

    /// Something else than what is next. `None` if nothing is.
    fn digress(&mut self, brief: &ExecutionBrief) -> Result<Option<bool>, ConnectionLost> {
        let drawn = self.chance.below(100);
        Ok(Some(match drawn {
            0..3 => self.record_action()?,
            3..10 => self.replan(brief)?,
            10..13 => self.control("hand_back")?,
            // It falls silent.
            13..18 => false,
            18..19 => self.decide("end")?,
            19..20 => self.decide("stop")?,
            20..21 => self.control("pause")?,
            _ => return Ok(None),
        }))
    }

    fn look(&mut self) -> Result<Option<ExecutionBrief>, ConnectionLost> {
        let arguments = json!({ "execution_id": self.memory.execution, "brief": true });
        Ok(match self.pipe.call("status", &arguments)? {
            ToolReply::Done(answer) => Some(ExecutionBrief::read(&answer)),
            ToolReply::Refused { .. } => None,
        })
    }

    /// Records the beginning of a call, mostly, and makes it.
    fn carry_out(&mut self, call: DueCall) -> Result<bool, ConnectionLost> {
        if self.chance.percent(85) {
            let arguments = json!({ "step_id": call.part, "status": "started" });
            self.memory.doing = Some(CallProgress::Begun(call.clone()));
            if !self.record(&call.part, "started", arguments)? {
                self.memory.doing = None;
                return Ok(false);
            }
        }
        self.make(call)?;
        Ok(true)
    }

    fn make(&mut self, call: DueCall) -> Result<(), ConnectionLost> {
        let who = format!("agent-{}", self.memory.name);
        let (mut outcome, mut awaited) = call.make(&self.port, &who);
        for _ in 1..TRIES_MAX {
            if !call.is_repeatable() || matches!(outcome, AgentCallOutcome::Done(_)) {
                break;
            }
            (outcome, awaited) = call.make(&self.port, &who);
        }
        self.record_end(&call, outcome)?;
        // What it gave up may be answered after all: that settles nothing, and is on record.
        match awaited.and_then(AwaitedAnswer::late) {
            Some(result) => self.record_end(&call, AgentCallOutcome::Done(result)),
            None => Ok(()),
        }
    }

    fn record_end(&mut self, call: &DueCall, outcome: AgentCallOutcome) -> Result<(), ConnectionLost> {
        self.memory.doing = Some(CallProgress::Made(call.clone(), outcome.clone()));
        let mark = self.memory.mark();
        let is_refused = matches!(outcome, AgentCallOutcome::Refused(_));
        let (status, mut arguments) = match outcome {
            AgentCallOutcome::Done(mut result) => {
                result["mark"] = json!(mark);
                ("completed", json!({ "result": result }))
            }
            AgentCallOutcome::Refused(why) => {
                let error = json!({ "category": "unavailable", "message": format!("{why} {mark}") });
                ("failed", json!({ "error": error }))
            }
            AgentCallOutcome::Unknown(why) => ("in_doubt", json!({ "error": format!("{why} {mark}") })),
        };
        (arguments["step_id"], arguments["status"]) = (json!(call.part), json!(status));
        self.memory.refused = is_refused.then(|| call.clone());
        self.record_as(&call.part, status, arguments, mark)?;
        self.memory.doing = None;
        Ok(())
    }

    /// A step is under way that nothing more is to be done for: it is tried again, or nobody knows what became of it.
    fn explain(&mut self, step: &str) -> Result<bool, ConnectionLost> {
        if let Some(call) = self.memory.refused.take().filter(|call| call.part == step) {
            return self.carry_out(call);
        }
        if self.manner == AgentManner::Settling || self.chance.percent(30) {
            return self.control("hand_back");
        }
        let mark = self.memory.mark();
        let error = format!("nobody knows what became of it {mark}");
        let arguments = json!({ "step_id": step, "status": "in_doubt", "error": error });
        self.record_as(step, "in_doubt", arguments, mark)?;
        Ok(false)
    }

    fn undo(&mut self, call: &DueCall) -> Result<bool, ConnectionLost> {
        if call.own_tool().is_none() {
            return self.control("hand_back");
        }
        let who = format!("agent-{}", self.memory.name);
        let (AgentCallOutcome::Done(_), _) = call.make(&self.port, &who) else {
            return self.control("hand_back");
        };
        let mark = self.memory.mark();
        let arguments = json!({ "step_id": call.part, "action_taken": "called its compensation", "reason": mark });
        self.say("record_compensation", arguments, "undoing", mark)
    }

    /// An agent decides about failures; other questions are for people.
    fn answer(&mut self, brief: &ExecutionBrief, question: &Value) -> Result<bool, ConnectionLost> {
        let step = question["step"].as_str().unwrap_or_default();
        if question["kind"] != "failure" || step.is_empty() {
            return Ok(false);
        }
        if self.manner == AgentManner::Careless && self.chance.percent(40) {
            return self.replan(brief);
        }
        let mark = self.memory.mark();
        match self.chance.below(3) {
            0 => {
                let arguments = json!({ "action": "retry", "step_id": step, "reason": mark, "wait_seconds": 0 });
                self.say("control", arguments, "retry", mark)
            }
            _ => {
                let arguments = json!({ "action": "continue", "step_id": step, "reason": mark });
                self.say("record_decision", arguments, "continue", mark)
            }
        }
    }

    fn replan(&mut self, brief: &ExecutionBrief) -> Result<bool, ConnectionLost> {
        let tools = if self.chance.percent(85) { AGENT_TOOL_PROFILES } else { TOOL_PROFILES };
        let known = (brief.begun.as_slice(), brief.failed.as_slice());
        let document = replans::change(&self.memory.document, known, tools, &mut self.chance);
        let mark = self.memory.mark();
        self.notes.push(json!({ "replan": self.memory.execution, "reason": mark, "document": document }));
        let arguments = json!({ "plan": document, "reason": mark });
        let request = AgentRequest::new("replan", RequestPurpose::Replan { mark: mark.clone() }, arguments);
        self.send(request.with_key(&mark))
    }

    fn control(&mut self, action: &'static str) -> Result<bool, ConnectionLost> {
        let mark = self.memory.mark();
        let arguments = json!({ "action": action, "reason": mark, "wait_seconds": 0 });
        let is_done = self.say("control", arguments, action, mark)?;
        // What is handed back or paused is no longer the agent's.
        Ok(is_done && action == "take_over")
    }

    fn decide(&mut self, action: &'static str) -> Result<bool, ConnectionLost> {
        let mark = self.memory.mark();
        self.say("record_decision", json!({ "action": action, "reason": mark }), action, mark)
    }

    fn record_action(&mut self) -> Result<bool, ConnectionLost> {
        let mark = self.memory.mark();
        let arguments = json!({ "action_type": "notified", "description": mark });
        self.say("record_action", arguments, "action", mark)
    }

    fn record(&mut self, part: &str, status: &'static str, arguments: Value) -> Result<bool, ConnectionLost> {
        let mark = self.memory.mark();
        self.record_as(part, status, arguments, mark)
    }

    fn record_as(
        &mut self,
        part: &str,
        status: &'static str,
        arguments: Value,
        mark: String,
    ) -> Result<bool, ConnectionLost> {
        let purpose = RequestPurpose::Record { part: part.to_owned(), status, mark: mark.clone() };
        self.send(AgentRequest::new("record_step", purpose, arguments).with_key(&mark))
    }

    fn say(
        &mut self,
        tool: &'static str,
        arguments: Value,
        what: &'static str,
        mark: String,
    ) -> Result<bool, ConnectionLost> {
        let purpose = RequestPurpose::Say { what, mark: mark.clone() };
        self.send(AgentRequest::new(tool, purpose, arguments).with_key(&mark))
    }

    /// Sends a request, which is remembered until it has its answer. Whether it was performed.
    fn send(&mut self, mut request: AgentRequest) -> Result<bool, ConnectionLost> {
        if let Some(execution) = self.memory.execution.as_ref().filter(|_| request.concerns_execution()) {
            request.arguments["execution_id"] = json!(execution);
        }
        self.memory.unanswered = Some(request.clone());
        let reply = self.pipe.call(request.tool, &request.arguments)?;
        self.memory.unanswered = None;
        self.notes.extend(request.note(&self.memory.tag, &reply, now_ms()));
        match reply {
            ToolReply::Done(answer) => {
                self.learn(&request, &answer);
                Ok(true)
            }
            ToolReply::Refused { .. } => {
                self.memory.doing = None;
                Ok(false)
            }
        }
    }

    fn learn(&mut self, request: &AgentRequest, answer: &Value) {
        let text = |name: &str| answer[name].as_str().map(str::to_owned);
        match &request.purpose {
            RequestPurpose::Save => self.memory.plan_id = text("plan_id"),
            RequestPurpose::Start => self.memory.execution = text("execution_id"),
            RequestPurpose::Replan { .. } if answer["is_applied"] == true => {
                self.memory.document = request.arguments["plan"].clone();
            }
            RequestPurpose::Record { status, .. } if *status != "started" => self.memory.doing = None,
            _ => {}
        }
    }
}
