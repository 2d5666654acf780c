//! One execution under test: a plan is given, inputs come in, and the consequences can be checked.
//!
//! After every decision the scenario checks what must always hold: the journal replays to the same state, one entry at
//! a time; every prefix can be recovered from; nothing more follows at the same moment; the next timer lies ahead.
//! A refusal must leave everything unchanged.

mod capacity;
mod catalog;
mod gaps;
mod inputs;
mod questions;

use capacity::SceneCapacity;
pub use capacity::paused;
pub use catalog::catalog;
pub use inputs::{answering, answering_tool, compensating, settling, tool_asking};

use rutter_core::actor::Actor;
use rutter_core::execution::decide::Error;
use rutter_core::execution::input::{Decision, DecisionTerms, ExecutionInput, Refusal, ToolCall};
use rutter_core::execution::opening::opening;
use rutter_core::execution::part::{PartState, StepPart};
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, StepId, TenantId, ToolName};
use rutter_core::journal::event::{CallSide, Event, EventRecord, Question, QuestionAnswer};
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan};
use rutter_core::policy::OperatorPolicy;
use rutter_core::policy::rule::PolicyRuleDraft;
use rutter_core::time::Timestamp;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolCatalog, ToolFailure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The budget of calls, unless a test sets another.
const ROOM: u32 = 1_000;

#[derive(Debug)]
pub struct ExecutionScenario {
    pub execution: Execution,
    /// Everything recorded so far.
    pub journal: Vec<EventRecord>,
    /// The last decision.
    pub last: Decision,
    pub now: Timestamp,
    pub room: u32,
    /// Tools whose servers take no calls until then.
    pub paused: BTreeMap<ToolName, Timestamp>,
    /// The operator's policy; a test may change it at any time.
    pub policy: OperatorPolicy,
    /// The journal applied one entry at a time, to compare with the live state.
    shadow: Execution,
}

/// The call took effect, with this result.
pub fn done(result: Value) -> CallOutcome {
    CallOutcome::Done { result: Arc::new(result), cost_micros: 0 }
}

/// The call certainly had no effect.
pub fn fails(category: FailureCategory) -> CallOutcome {
    CallOutcome::NotDone(ToolFailure::new(category, "refused"))
}

/// The call may have taken effect.
pub fn maybe(category: FailureCategory) -> CallOutcome {
    CallOutcome::Maybe(ToolFailure::new(category, "no answer"))
}

pub fn person() -> Actor {
    Actor::person("operator")
}

pub fn agent() -> Actor {
    Actor::agent("pilot")
}

pub fn part(text: &str) -> PartId {
    PartId::parse(text).unwrap_or_else(|| panic!("{text:?} is not a part"))
}

pub fn step(text: &str) -> StepId {
    StepId::new(text)
}

pub fn tool(text: &str) -> ToolName {
    ToolName::new(text)
}

/// Checks the fields of a plan below its name and goal.
pub fn plan(fields: &str, driver: Driver) -> Arc<Plan> {
    checked(fields, &catalog(), driver)
}

/// The same, with other tools.
pub fn plan_with(tools: &ToolCatalog, fields: &str) -> Arc<Plan> {
    checked(fields, tools, Driver::Server)
}

fn checked(fields: &str, tools: &ToolCatalog, driver: Driver) -> Arc<Plan> {
    let text = format!("name: scene\ngoal: see what follows\n{fields}");
    let checked = read_and_check(text.as_bytes(), DocumentFormat::Yaml, tools, driver, None);
    checked.plan.unwrap_or_else(|| panic!("the plan does not check: {:#?}", checked.diagnostics))
}

/// Reads rules as an operator writes them: the `[[policy]]` of a configuration, as JSON.
pub fn policy(rules: Value) -> OperatorPolicy {
    let drafts: Vec<PolicyRuleDraft> = serde_json::from_value(rules).expect("a list of rules");
    OperatorPolicy::read(&drafts).expect("rules without mistakes")
}

impl ExecutionScenario {
    /// An execution of this plan that Rutter drives, not yet started.
    pub fn of(fields: &str) -> ExecutionScenario {
        ExecutionScenario::open(plan(fields, Driver::Server), Driver::Server, json!({}))
    }

    pub fn with(fields: &str, inputs: Value) -> ExecutionScenario {
        ExecutionScenario::open(plan(fields, Driver::Server), Driver::Server, inputs)
    }

    /// The same, driven by an agent.
    pub fn by_agent(fields: &str) -> ExecutionScenario {
        ExecutionScenario::open(plan(fields, Driver::Agent), Driver::Agent, json!({}))
    }

    /// The same, started.
    pub fn started(fields: &str) -> ExecutionScenario {
        let mut scene = ExecutionScenario::of(fields);
        scene.start();
        scene
    }

    pub fn open(plan: Arc<Plan>, driver: Driver, inputs: Value) -> ExecutionScenario {
        let now = Timestamp(1_000_000);
        let lineage = ExecutionId::new("exec_scene");
        let opened = opening(&plan, 1, driver, Arc::new(inputs), &lineage, person(), now)
            .unwrap_or_else(|refusal| panic!("the execution cannot be opened: {refusal}"));
        let execution = Execution::open(identity(), &opened).expect("it is the first event");
        let shadow = execution.clone();
        ExecutionScenario::new(execution, vec![opened], shadow, now)
    }

    /// The scenario of a journal, perhaps one that an earlier version wrote.
    pub fn of_journal(journal: Vec<EventRecord>) -> ExecutionScenario {
        let execution = Execution::replay(identity(), &journal).expect("the journal replays");
        let now = journal.last().map_or(Timestamp(0), |record| record.at);
        let shadow = execution.clone();
        ExecutionScenario::new(execution, journal, shadow, now)
    }

    fn new(execution: Execution, journal: Vec<EventRecord>, shadow: Execution, now: Timestamp) -> ExecutionScenario {
        let (last, paused, policy) = (Decision::default(), BTreeMap::new(), OperatorPolicy::default());
        ExecutionScenario { execution, journal, last, now, room: ROOM, paused, policy, shadow }
    }

    /// Decides, checks the invariants, and stores the records.
    pub fn input(&mut self, actor: &Actor, input: ExecutionInput) -> Result<(), Refusal> {
        let before = self.execution.clone();
        let mut room = SceneCapacity { now: self.now, room: self.room, paused: &self.paused };
        let terms = DecisionTerms { now: self.now, room: &mut room, policy: &self.policy };
        match self.execution.decide_within(actor, input.clone(), terms) {
            Ok(decision) => self.last = decision,
            Err(Error::Refused(refusal)) => {
                assert!(self.execution == before, "a refusal changed something: {input:?}");
                return Err(refusal);
            }
            Err(Error::Broken(illegal)) => panic!("{input:?} broke the execution: {illegal}"),
        }
        for record in &self.last.records {
            self.journal.push(record.clone());
            self.shadow.apply(record).expect("what was decided can be applied");
            self.check_recovery();
        }
        self.check();
        Ok(())
    }

    fn decide(&self, execution: &mut Execution, actor: &Actor, input: ExecutionInput) -> Result<Decision, Error> {
        let mut room = SceneCapacity { now: self.now, room: self.room, paused: &self.paused };
        execution.decide_within(actor, input, DecisionTerms { now: self.now, room: &mut room, policy: &self.policy })
    }

    /// Every driver that loads this journal can continue from it.
    fn check_recovery(&self) {
        let mut recovered = self.shadow.clone();
        if let Err(error) = self.decide(&mut recovered, &Actor::rutter(), ExecutionInput::Recovered) {
            panic!("recovering after {:?} failed: {error}", self.journal.last());
        }
    }

    fn check(&self) {
        assert!(self.shadow == self.execution, "replayed and live differ:\n{:#?}", self.last);
        for call in &self.last.calls {
            let started = |record: &EventRecord| {
                matches!(&record.event, Event::AttemptStarted { part, side, attempt, .. }
                    if (part, side, attempt) == (&call.part, &call.side, &call.attempt))
            };
            let on_record = if call.is_resumed() { &self.journal } else { &self.last.records };
            assert!(on_record.iter().any(started), "called before it was recorded: {call:?}");
        }
        let brief = self.execution.brief();
        assert!(brief.chars().count() <= 3_200, "a brief of {} characters", brief.chars().count());
        let view = self.execution.view();
        assert_eq!(view.wake_at, self.execution.wake_at());
        if self.room < ROOM {
            return;
        }
        let ahead = self.execution.wake_at().is_none_or(|when| when > self.now);
        assert!(ahead, "a timer is due and nothing follows: {:?} at {:?}", view.wake_at, self.now);
        let mut again = self.execution.clone();
        let more = self.decide(&mut again, &Actor::rutter(), ExecutionInput::Wake);
        let more = more.expect("waking is always possible");
        assert!(more.records.is_empty(), "more follows at the same moment: {:#?}", more.records);
    }

    /// Sends an input that must be accepted.
    pub fn give(&mut self, actor: &Actor, input: ExecutionInput) {
        if let Err(refusal) = self.input(actor, input.clone()) {
            panic!("{input:?} was refused: {refusal} ({})", refusal.code);
        }
    }

    /// Sends an input that must be refused, and returns the code of the refusal.
    pub fn refused(&mut self, actor: &Actor, input: ExecutionInput) -> &'static str {
        match self.input(actor, input.clone()) {
            Ok(()) => panic!("{input:?} was not refused: {:#?}", self.last.records),
            Err(refusal) => refusal.code,
        }
    }
}

/// Inputs.
impl ExecutionScenario {
    pub fn start(&mut self) {
        self.give(&person(), ExecutionInput::Start);
    }

    pub fn wake(&mut self) {
        self.give(&Actor::rutter(), ExecutionInput::Wake);
    }

    /// Lets time pass, and wakes the execution.
    pub fn later(&mut self, millis: i64) {
        self.now.0 += millis;
        self.wake();
    }

    /// Lets time pass until the next wake-up of the execution.
    pub fn wait(&mut self) {
        let when = self.execution.wake_at().expect("the execution waits for some time to come");
        self.now = self.now.max(when);
        self.wake();
    }

    /// The server of this tool takes no calls for so long.
    pub fn pause_server(&mut self, name: &str, millis: i64) {
        self.paused.insert(tool(name), Timestamp(self.now.0 + millis));
    }

    /// The driver dies and another one loads the journal.
    pub fn crash(&mut self) {
        self.execution = Execution::replay(identity(), &self.journal).expect("what was recorded replays");
        assert!(self.execution == self.shadow, "replayed at once and one by one differ");
        self.give(&Actor::rutter(), ExecutionInput::Recovered);
    }

    /// The running attempt or probe returns.
    pub fn returns(&mut self, name: &str, outcome: CallOutcome) {
        let (side, attempt) = self.running(name);
        self.answers(name, side, attempt, outcome);
    }

    /// Some attempt returns, perhaps too late.
    pub fn answers(&mut self, name: &str, side: CallSide, attempt: u32, outcome: CallOutcome) {
        self.give(&Actor::rutter(), ExecutionInput::Returned { part: part(name), side, attempt, outcome });
    }

    /// The tool of the running attempt returns a ticket.
    pub fn accepts(&mut self, name: &str, ticket: &str) {
        let (side, attempt) = self.running(name);
        let ticket = ticket.to_owned();
        self.give(&Actor::rutter(), ExecutionInput::Accepted { part: part(name), side, attempt, ticket });
    }

    /// The tool of the running attempt asks a question.
    pub fn tool_asks(&mut self, name: &str, schema: Value) {
        let (side, attempt) = self.running(name);
        self.give(&Actor::rutter(), tool_asking(name, side, attempt, schema));
    }

    pub fn answer_tool(&mut self, actor: &Actor, name: &str, answer: Option<Value>) {
        let (_, attempt) = self.running(name);
        self.give(actor, answering_tool(name, attempt, answer));
    }

    pub fn approve(&mut self, name: &str) {
        let call = self.asked(name);
        self.give(&person(), ExecutionInput::Approve { part: part(name), call, reason: "fine".into() });
    }

    pub fn deny(&mut self, name: &str) {
        let call = self.asked(name);
        self.give(&person(), ExecutionInput::Deny { part: part(name), call, reason: "no".into() });
    }

    pub fn answer(&mut self, about: Question, answer: QuestionAnswer) {
        self.give(&person(), answering(about, answer, None));
    }

    pub fn answer_failure(&mut self, name: &str, answer: QuestionAnswer) {
        self.answer(Question::Failure(step(name)), answer);
    }

    pub fn resolve(&mut self, name: &str, result: Value) {
        self.give(&person(), answering(Question::Failure(step(name)), QuestionAnswer::Resolve, Some(result)));
    }

    pub fn settle(&mut self, name: &str, happened: bool, result: Value) {
        self.give(&person(), settling(name, happened, result));
    }

    pub fn pause(&mut self) {
        self.give(&person(), ExecutionInput::Pause { reason: "wait".into() });
    }

    pub fn resume(&mut self) {
        self.give(&person(), ExecutionInput::Resume { reason: "go on".into() });
    }

    pub fn resume_expired(&mut self) {
        self.resume_expiring(&[]);
    }

    /// What came due of these happens now, or all of it.
    pub fn resume_expiring(&mut self, only: &[&str]) {
        let only = only.iter().map(ToString::to_string).collect();
        self.give(&person(), ExecutionInput::ResumeExpired { reason: "too late".into(), only });
    }

    pub fn cancel(&mut self, undo: Option<bool>) {
        self.give(&person(), ExecutionInput::Cancel { reason: "no longer wanted".into(), undo });
    }

    pub fn kill(&mut self) {
        self.give(&person(), ExecutionInput::Kill { reason: "stop now".into() });
    }

    pub fn compensate(&mut self, steps: Option<&[&str]>) {
        self.give(&person(), compensating(steps));
    }

    pub fn replan(&mut self, fields: &str) {
        self.replan_as(&agent(), fields);
    }

    pub fn replan_as(&mut self, actor: &Actor, fields: &str) {
        let plan = plan(fields, self.execution.driver());
        let revision = self.execution.revision() + 1;
        self.give(actor, ExecutionInput::Replan { plan, revision, reason: "better".into() });
    }

    pub fn hand_over(&mut self, to: Driver) {
        self.give(&person(), ExecutionInput::HandOver { to, reason: "your turn".into() });
    }

    pub fn record_started(&mut self, name: &str) {
        self.give(&agent(), ExecutionInput::RecordStarted { part: part(name), tool: None, parameters: None });
    }

    pub fn record_finished(&mut self, name: &str, result: Value) {
        self.give(&agent(), ExecutionInput::RecordFinished { part: part(name), result: Arc::new(result) });
    }

    pub fn record_failed(&mut self, name: &str, category: FailureCategory, maybe: bool) {
        let failure = ToolFailure::new(category, "refused");
        self.give(&agent(), ExecutionInput::RecordFailed { part: part(name), failure, maybe });
    }

    pub fn record_end(&mut self) {
        self.give(&agent(), ExecutionInput::RecordEnd { reason: "done".into() });
    }
}

/// Observations.
impl ExecutionScenario {
    /// The calls of the last decision: `a`, `a#2` for its second attempt, `undo a`, `probe a`, `fallback a`.
    pub fn calls(&self) -> Vec<String> {
        self.last.calls.iter().map(describe).collect()
    }

    /// Every call of a side that was ever started, in order.
    pub fn started_calls(&self, wanted: CallSide) -> Vec<String> {
        let started = self.journal.iter().filter_map(|record| match &record.event {
            Event::AttemptStarted { part, side, .. } if *side == wanted => Some(part.to_string()),
            _ => None,
        });
        started.collect()
    }

    /// The names of the events of the last decision.
    pub fn events(&self) -> Vec<String> {
        self.last.records.iter().map(|record| event_name(&record.event)).collect()
    }

    /// How often an event has been recorded so far.
    pub fn count(&self, name: &str) -> usize {
        self.journal.iter().filter(|record| event_name(&record.event) == name).count()
    }

    pub fn status(&self) -> &'static str {
        self.execution.status().as_str()
    }

    /// The status word of one step.
    pub fn step(&self, name: &str) -> &'static str {
        let view = self.execution.view();
        let found = view.steps.iter().find(|step| step.id.as_str() == name);
        found.unwrap_or_else(|| panic!("the plan has no step {name:?}")).status
    }

    /// The status words of all steps, in plan order.
    pub fn steps(&self) -> Vec<&'static str> {
        self.execution.view().steps.iter().map(|step| step.status).collect()
    }

    pub fn part(&self, name: &str) -> &StepPart {
        self.execution.part(&part(name)).unwrap_or_else(|| panic!("there is no part {name}"))
    }

    /// The deviations so far: `Skipped a`.
    pub fn deviations(&self) -> Vec<String> {
        let describe = |(kind, step, _): &(_, Option<StepId>, String)| {
            format!("{kind:?} {}", step.as_ref().map_or("", StepId::as_str))
        };
        self.execution.deviations().iter().map(describe).collect()
    }

    /// The parameters and key of the last call of a part.
    pub fn call(&self, name: &str) -> &ToolCall {
        let found = self.last.calls.iter().find(|call| call.part == part(name));
        found.unwrap_or_else(|| panic!("{name} was not called: {:?}", self.calls()))
    }

    /// The hash of the call a part asks approval for.
    pub fn asked(&self, name: &str) -> Hash {
        match &self.part(name).state {
            PartState::Asking { call, .. } => *call,
            state => panic!("{name} does not ask for approval: {state:?}"),
        }
    }

    /// Milliseconds until the next wake-up.
    pub fn wakes_in(&self) -> Option<i64> {
        self.execution.wake_at().map(|when| when.0 - self.now.0)
    }

    /// The side and number of the running attempt or probe.
    pub fn running(&self, name: &str) -> (CallSide, u32) {
        let attempt = self.part(name).running().unwrap_or_else(|| panic!("{name} is not running"));
        (attempt.side, attempt.number)
    }
}

pub fn identity() -> ExecutionIdentity {
    ExecutionIdentity { tenant: TenantId::new("acme"), execution: ExecutionId::new("exec_scene") }
}

/// The name of an event's variant.
pub fn event_name(event: &Event) -> String {
    let text = format!("{event:?}");
    text.split([' ', '{']).next().unwrap_or_default().to_owned()
}

fn describe(call: &ToolCall) -> String {
    let side = match call.side {
        CallSide::Do => "",
        CallSide::Fallback => "fallback ",
        CallSide::Undo => "undo ",
        CallSide::Probe => "probe ",
    };
    let again = if call.attempt > 1 { format!("#{}", call.attempt) } else { String::new() };
    format!("{side}{}{again}", call.part)
}
