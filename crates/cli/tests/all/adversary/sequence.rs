//! One sequence: an agent starts executions around one order each, then does whatever comes to its mind.

mod direct;
mod restart;

use super::AttackTally;
use super::agent::{Agent, AnsweredForm, Transport};
use super::installation::{Installation, InstallationState};
use super::person::{Person, PersonAnswer};
use rutter_testkit::adversary::INVOICE;
use rutter_testkit::adversary::plans::{first_plan, guarded_call, new_plan};
use rutter_testkit::chance::SeededRandom;
use serde_json::{Value, json};
use std::sync::RwLockReadGuard;

/// Verbs, synonyms, and words that are none.
const VERBS: &[&str] = &[
    "pause",
    "resume",
    "cancel",
    "undo",
    "compensate",
    "reopen",
    "take_over",
    "take-over",
    "hand_back",
    "hand-back",
    "kill",
    "retry",
    "skip",
    "resolve",
    "settle",
    "correct",
    "stop",
    "continue",
    "replan",
    "answer",
    "reply",
    "approve",
    "reject",
    "deny",
    "accept_tool",
    "Approve",
    "approve ",
    "allow",
    "grant",
    "force",
    "complete",
    "",
];
/// Verbs that keep an execution going or take a denied step further.
const PUSHING: &[&str] = &["retry", "resume", "reopen", "resolve", "approve", "hand_back", "undo", "continue", "skip"];
/// Paths of the HTTP API that change something; `ID` is an execution.
const PATHS: &[&str] = &[
    "/executions",
    "/executions/ID/signals",
    "/executions/ID/replan",
    "/executions/ID/records",
    "/tools/TOOL/call",
    "/history/cleanup",
    "/keys",
    "/webhooks",
    "/rules",
    "/silences",
    "/plans",
    "/ledger/checkpoints",
    "/servers/shop/reset",
];
/// Paths that read.
const READS: &[&str] = &[
    "/questions",
    "/executions/ID",
    "/executions/ID/steps",
    "/executions/ID/brief",
    "/executions/ID/journal",
    "/keys",
    "/executions/ID/preview",
    "/tools",
    "/me",
    "/ledger",
];

/// How much of an answer is printed with a violation.
const ANSWER_CHARS_MAX: usize = 400;
/// How many sequences of a hundred restart the server once.
const RESTARTS_PERCENT: u64 = 12;

struct Started {
    id: String,
    order: String,
    plan: Value,
    plan_id: Option<String>,
    request_id: Option<String>,
}

pub struct Sequence<'a> {
    name: String,
    random: SeededRandom,
    transport: Transport,
    installation: &'a Installation,
    /// The run of the server that agent and person are connected to.
    run: &'a mut usize,
    /// The server may end at any time, and leaves requests without an answer.
    is_killing: bool,
    agent: &'a mut Agent,
    person: &'a mut Person,
    tally: &'a mut AttackTally,
    executions: Vec<Started>,
    /// Executions of direct calls, and their orders.
    direct: Vec<(String, String)>,
    orders: Vec<String>,
    /// What happened, for people.
    pub lines: Vec<String>,
}

/// Who acts in a sequence, and what it counts.
pub struct SequenceParties<'a> {
    pub installation: &'a Installation,
    pub run: &'a mut usize,
    pub agent: &'a mut Agent,
    pub person: &'a mut Person,
    pub tally: &'a mut AttackTally,
}

impl<'a> Sequence<'a> {
    pub fn new(seed: u64, transport: Transport, parties: SequenceParties<'a>) -> Sequence<'a> {
        let random = SeededRandom::new(seed);
        let (executions, direct, orders, lines) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let SequenceParties { installation, run, agent, person, tally } = parties;
        let (name, is_killing) = (format!("s{seed}"), false);
        Sequence {
            name,
            random,
            transport,
            installation,
            run,
            is_killing,
            agent,
            person,
            tally,
            executions,
            direct,
            orders,
            lines,
        }
    }

    pub fn run(&mut self) {
        let steps = 6 + self.random.below(8);
        let restart_at = self.random.percent(RESTARTS_PERCENT).then(|| self.random.below(steps));
        let state = self.enter();
        self.start();
        drop(state);
        for step in 0..steps {
            if restart_at == Some(step) {
                self.restart();
            }
            let _state = self.enter();
            self.step();
        }
        let _state = self.enter();
        for id in self.executions.iter().map(|started| &started.id).chain(self.direct.iter().map(|(id, _)| id)) {
            self.person.end(id);
        }
    }

    /// Takes part in the installation, with connections to the server that runs now.
    fn enter(&mut self) -> RwLockReadGuard<'a, InstallationState> {
        let state = self.installation.enter();
        self.find_server(&state);
        state
    }

    fn find_server(&mut self, state: &InstallationState) {
        let newest = state.rules.len() - 1;
        if newest == *self.run {
            return;
        }
        *self.run = newest;
        self.agent.reconnect(&state.fixture);
        self.person.reconnect(&state.fixture);
        self.lines.push(format!("run {newest} of the server, {:?} rules", state.rules[newest]));
    }

    /// The orders whose effects belong to this sequence.
    pub fn orders(&self) -> Vec<String> {
        self.orders.clone()
    }

    fn step(&mut self) {
        if self.executions.is_empty() {
            return self.start();
        }
        let at = self.random.index(self.executions.len());
        match self.random.below(20) {
            0 => self.start(),
            1..5 => self.look_in(at),
            5..9 => self.replan(at),
            9..14 => self.control(at),
            14 => self.record(at),
            15 => self.call_the_api(at),
            16 => self.forge_an_answer(at),
            17 => self.start_again(at),
            18 => self.administer(at),
            _ => self.wait(at),
        }
    }

    /// A new execution with an order of its own.
    fn start(&mut self) {
        let order = self.new_order();
        let plan = first_plan(&mut self.random, &order);
        self.open(&order, &plan);
        if self.random.percent(15) {
            return self.start_by_person(order, plan);
        }
        let request_id = format!("start-{order}");
        let driver = if self.random.percent(15) { "agent" } else { "server" };
        let mut arguments = json!({ "driver": driver, "request_id": request_id, "wait_seconds": 0 });
        let mut plan_id = None;
        if self.random.percent(40) {
            let saved = self.call("save_plan", &json!({ "plan": plan, "driver": driver }), &order);
            plan_id = saved["plan_id"].as_str().map(str::to_owned);
        }
        match &plan_id {
            Some(plan_id) => arguments["plan_id"] = json!(plan_id),
            None => arguments["plan"] = plan.clone(),
        }
        let answer = self.call("execute_plan", &arguments, &order);
        self.remember(&answer, Started { id: String::new(), order, plan, plan_id, request_id: Some(request_id) });
    }

    /// An execution that a person opened, which the agent then works on.
    fn start_by_person(&mut self, order: String, plan: Value) {
        self.lines.push(format!("person: starts {plan}"));
        let answer = self.person.start(&plan);
        self.tell("started", &answer);
        self.tally.count("started by a person");
        self.remember(&answer, Started { id: String::new(), order, plan, plan_id: None, request_id: None });
    }

    fn new_order(&mut self) -> String {
        let order = format!("{}-{}", self.name, self.orders.len());
        self.orders.push(order.clone());
        order
    }

    /// Invoices need a yes if the first plan has any: all of those ask for approval.
    fn open(&mut self, order: &str, plan: &Value) {
        let has_invoice = plan["steps"].as_array().is_some_and(|steps| steps.iter().any(|it| it["tool"] == INVOICE));
        self.person.record.open(order, has_invoice);
        self.person.record.note_plan(order, plan);
    }

    /// A plan that replaces the one of an execution.
    fn new_plan(&mut self, at: usize) -> Value {
        let started = &self.executions[at];
        let plan = new_plan(&mut self.random, &started.plan, &started.order);
        self.person.record.note_plan(&started.order, &plan);
        plan
    }

    fn remember(&mut self, answer: &Value, started: Started) {
        let id = answer["execution_id"].as_str().or(answer["taskId"].as_str());
        if let Some(id) = id.filter(|_| answer.get("error").is_none()) {
            self.tally.count("executions");
            self.executions.push(Started { id: id.to_owned(), ..started });
        }
    }

    /// The person answers some questions, after they had time to come up.
    fn look_in(&mut self, at: usize) {
        self.wait(at);
        let started = &self.executions[at];
        let mut answers = self.person.answer_some(&mut self.random, &started.id, &started.order);
        for (id, order) in &self.direct {
            answers.extend(self.person.answer_some(&mut self.random, id, order));
        }
        for answer in answers {
            let (what, line) = match answer {
                PersonAnswer::Yes(call) => ("yes", format!("person: yes to {call}")),
                PersonAnswer::No(call) => ("no", format!("person: no to {call}")),
                PersonAnswer::Loosened => ("loosened", "person: yes to a plan that asks for less".to_owned()),
                PersonAnswer::Lost(what) => ("lost", format!("person: perhaps answered {what}")),
            };
            self.tally.count(what);
            self.lines.push(format!("{} {line}", started.order));
        }
    }

    fn wait(&mut self, at: usize) {
        let seconds = u64::from(self.random.percent(20));
        let arguments = json!({ "execution_id": self.executions[at].id, "wait_seconds": seconds });
        self.call_at("status", &arguments, at);
    }

    fn replan(&mut self, at: usize) {
        let (plan, reason) = (self.new_plan(at), "something changed");
        let started = &self.executions[at];
        let arguments = json!({ "execution_id": started.id, "plan": plan, "reason": reason,
            "completed_steps": if self.random.percent(10) { json!(["look"]) } else { json!([]) } });
        let answer = match self.random.percent(15) {
            true => {
                let body = json!({ "plan": plan, "reason": reason });
                self.http("POST", &format!("/executions/{}/replan", self.executions[at].id), &body)
            }
            false => self.call_at("replan", &arguments, at),
        };
        if answer.get("error").is_none() && answer["is_applied"] == true {
            self.tally.count("replanned");
            self.executions[at].plan = plan;
        }
    }

    fn control(&mut self, at: usize) {
        let verb = *if self.random.percent(50) { self.random.pick(PUSHING) } else { self.random.pick(VERBS) };
        let mut arguments = self.arguments(at, verb);
        arguments["execution_id"] = json!(self.executions[at].id);
        arguments["wait_seconds"] = json!(0);
        self.call_at("control", &arguments, at);
    }

    /// The arguments of a verb: mostly those it takes.
    fn arguments(&mut self, at: usize, verb: &str) -> Value {
        let mut arguments = json!({ "action": verb, "reason": "because" });
        let steps: Vec<Value> = self.executions[at].plan["steps"].as_array().cloned().unwrap_or_default();
        if self.random.percent(60) && !steps.is_empty() {
            let step = &steps[self.random.index(steps.len())];
            arguments["step_id"] = self.step_or_item(step);
        }
        if ["resolve", "settle", "correct"].contains(&verb) {
            arguments["evidence"] = json!("I saw it");
            arguments["happened"] = json!(self.random.percent(50));
            if self.random.percent(50) {
                arguments["result"] = json!({ "id": "invented" });
            }
        }
        if ["approve", "reject"].contains(&verb) && self.random.percent(50) {
            arguments["call"] = self.open_call(at);
        }
        if verb == "answer" {
            arguments["with"] = json!(*self.random.pick(&["retry", "skip", "approve", "continue"]));
        }
        if verb == "reply" {
            arguments["reply"] = json!({ "approve": true });
        }
        if verb == "cancel" || self.random.percent(3) {
            arguments["undo"] = json!(true);
        }
        arguments
    }

    /// The name of a step; of a fan-out mostly that of an item.
    fn step_or_item(&mut self, step: &Value) -> Value {
        let id = step["id"].as_str().unwrap_or("step0");
        match step.get("for_each").is_some() && self.random.percent(80) {
            true => json!(format!("{id}[{}]", self.random.below(3))),
            false => json!(id),
        }
    }

    /// The digest of a call that waits for a person, as agents can read it.
    fn open_call(&mut self, at: usize) -> Value {
        let view = self.call_at("status", &json!({ "execution_id": self.executions[at].id }), at);
        let asked = view["questions"].as_array().and_then(|questions| questions.first());
        asked.map(|asked| asked["call"].clone()).unwrap_or_default()
    }

    fn record(&mut self, at: usize) {
        let id = self.executions[at].id.clone();
        let steps: Vec<Value> = self.executions[at].plan["steps"].as_array().cloned().unwrap_or_default();
        let step = match steps.is_empty() {
            true => json!("step0"),
            false => {
                let step = &steps[self.random.index(steps.len())];
                self.step_or_item(step)
            }
        };
        let order = self.executions[at].order.clone();
        let (tool, arguments) = match self.random.below(5) {
            0 => (
                "record_decision",
                json!({ "action": *self.random.pick(&["stop", "continue", "end"]),
                "reason": "I decided" }),
            ),
            1 => ("record_action", json!({ "action_type": "other", "description": "approved it", "step_id": step })),
            2 => ("record_compensation", json!({ "step_id": step, "reason": "undone", "action_taken": "undone" })),
            _ => {
                let status = *self.random.pick(&["started", "completed", "completed", "failed", "in_doubt"]);
                let mut record = json!({ "step_id": step, "status": status });
                if self.random.percent(25) {
                    // As if another call had been made than the plan's.
                    let (tool, parameters) = guarded_call(&mut self.random, &order);
                    record["tool"] = json!(tool);
                    record["parameters"] = parameters;
                }
                if status == "completed" {
                    record["result"] = json!({ "id": "invented" });
                }
                if status == "failed" {
                    record["error"] = json!("it failed");
                }
                ("record_step", record)
            }
        };
        let mut arguments = arguments;
        arguments["execution_id"] = json!(id);
        self.call_at(tool, &arguments, at);
    }

    /// The same things over the HTTP API, with the agent's token.
    fn call_the_api(&mut self, at: usize) {
        let id = self.executions[at].id.clone();
        if self.random.percent(20) {
            let path = self.random.pick(READS).replace("ID", &id);
            self.agent.http("GET", &format!("/api/v1{path}"), None);
            return;
        }
        let path = *self.random.pick(PATHS);
        let body = match path {
            "/executions" => return self.start_over_http(),
            "/executions/ID/signals" => {
                let verb = *self.random.pick(VERBS);
                self.arguments(at, verb)
            }
            "/executions/ID/replan" => json!({ "plan": self.new_plan(at), "reason": "because" }),
            "/executions/ID/records" => {
                json!({ "step": { "step_id": "step0", "status": "completed", "result": { "id": "invented" } } })
            }
            "/tools/TOOL/call" => return self.call_tool_over_http(),
            "/keys" => json!({ "name": "mine", "scopes": ["read", "operate", "approve", "admin"] }),
            "/history/cleanup" => json!({ "older_than_days": 0, "reason": "because" }),
            _ => json!({ "name": "x", "reason": "because" }),
        };
        let answer = self.http("POST", &path.replace("ID", &id), &body);
        if path == "/executions/ID/replan" && answer["is_applied"] == true {
            self.executions[at].plan = body["plan"].clone();
        }
    }

    /// Answers to forms that this client was not asked.
    fn forge_an_answer(&mut self, at: usize) {
        let (id, call) = (self.executions[at].id.clone(), self.open_call(at));
        let step = format!("step{}", self.random.below(3));
        let key = format!("approve {step} {}", call.as_str().unwrap_or("none"));
        let answers = json!({ key: { "action": "accept", "content": { "approve": true, "reason": "yes" } } });
        let (method, params) = match self.random.percent(50) {
            true => ("tasks/update", json!({ "taskId": id, "inputResponses": answers })),
            false => {
                let state = *self.random.pick(&["", "forged", "eyJhIjoxfQ"]);
                let arguments = json!({ "execution_id": id });
                (
                    "tools/call",
                    json!({ "name": "status", "arguments": arguments, "requestState": state,
                    "inputResponses": answers }),
                )
            }
        };
        let mut forms = Vec::new();
        let answer = self.agent.request(&mut self.random, method, params, &mut forms);
        let order = self.executions[at].order.clone();
        // Over pipes a task may be answered without having been asked: it is the same user.
        if method == "tasks/update" && self.transport == Transport::Pipes {
            self.person.record.open(&order, false);
        }
        self.note_forms(&forms, &order);
        self.tell(method, &answer);
    }

    /// The same request once more, as it was or with another plan.
    fn start_again(&mut self, at: usize) {
        let started = &self.executions[at];
        let Some(request_id) = &started.request_id else { return };
        let mut arguments = json!({ "request_id": request_id, "wait_seconds": 0 });
        match (&started.plan_id, self.random.percent(50)) {
            (Some(plan_id), true) => arguments["plan_id"] = json!(plan_id),
            _ => arguments["plan"] = self.new_plan(at),
        }
        let answer = self.call_at("execute_plan", &arguments, at);
        if let Some(id) = answer["execution_id"].as_str() {
            assert_eq!(id, self.executions[at].id, "one request started two executions: {:#?}", self.lines);
        }
    }

    fn start_over_http(&mut self) {
        let order = self.new_order();
        let plan = first_plan(&mut self.random, &order);
        self.open(&order, &plan);
        let answer = self.http("POST", "/executions", &json!({ "plan": plan, "wait_seconds": 0 }));
        self.remember(&answer, Started { id: String::new(), order, plan, plan_id: None, request_id: None });
    }

    fn call_at(&mut self, tool: &str, arguments: &Value, at: usize) -> Value {
        let order = self.executions[at].order.clone();
        self.call(tool, arguments, &order)
    }

    fn call(&mut self, tool: &str, arguments: &Value, order: &str) -> Value {
        self.lines.push(format!("agent: {tool} {arguments}"));
        let (answer, forms) = self.agent.call(&mut self.random, tool, arguments);
        let is_lost = answer["error"].get("lost").is_some();
        assert!(!is_lost || self.is_killing, "the server did not answer: {:#?}", self.lines);
        self.note_forms(&forms, order);
        self.tell(tool, &answer);
        answer
    }

    fn http(&mut self, method: &str, path: &str, body: &Value) -> Value {
        self.lines.push(format!("agent: {method} {path} {body}"));
        let Some(reply) = self.agent.http(method, &format!("/api/v1{path}"), Some(body)) else {
            assert!(self.is_killing, "the server did not answer: {:#?}", self.lines);
            return json!({ "error": { "lost": path } });
        };
        assert!(reply.status < 500, "{reply:?} {:#?}", self.lines);
        let answer: Value = serde_json::from_str(&reply.body).unwrap_or_default();
        let answer = if reply.status < 300 { answer } else { json!({ "error": answer }) };
        self.tell(path, &answer);
        answer
    }

    /// The user of a local program answers for what no rule guards, so the agent that pretends to be the user does too.
    /// The journal says "unproven"; over HTTP nobody is asked.
    fn note_forms(&mut self, forms: &[AnsweredForm], order: &str) {
        for form in forms {
            assert_eq!(self.transport, Transport::Pipes, "an agent over HTTP was asked: {}", form.message);
            if form.is_yes {
                self.person.record.open(order, false);
            }
            self.tally.count("forms");
            let word = if form.is_yes { "yes" } else { "no" };
            self.lines.push(format!("agent: {word} to the form {:?}", form.message));
        }
    }

    fn tell(&mut self, what: &str, answer: &Value) {
        self.tally.count("requests");
        if answer.get("error").is_some() {
            self.tally.count("refused");
        }
        let text = answer.to_string();
        let end = text.char_indices().nth(ANSWER_CHARS_MAX).map_or(text.len(), |(at, _)| at);
        self.lines.push(format!("    {what}: {}", &text[..end]));
    }
}
