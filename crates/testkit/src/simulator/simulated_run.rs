//! One simulated run: a random plan in an unkind world, with crashes at every boundary.

use super::evasion;
use super::late::LateUpstream;
use super::monitor::JournalMonitor;
use super::operators::{self, OperatorEffect, OperatorMove};
use super::pending_call::PendingCall;
use super::plans;
use super::simulated_journal::{SimulatedJournal, WriterHandle};
use super::tally::SimulationTally;
use super::world::{FailureRates, SimulatedWorld};
use crate::chance::SeededRandom;
use rutter_core::actor::Actor;
use rutter_core::execution::hold::WorkerGap;
use rutter_core::execution::input::{CallCapacity, CallRoom, DecisionTerms, ExecutionInput, ToolCall};
use rutter_core::execution::view::{ExecutionStatus, PendingQuestion};
use rutter_core::execution::{Execution, ExecutionIdentity, ExecutionPhase};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, TenantId, ToolName};
use rutter_core::journal::event::{Event, EventRecord, PlanReference};
use rutter_core::journal::payload::EventPayload;
use rutter_core::plan::Driver;
use rutter_core::policy::OperatorPolicy;
use rutter_core::policy::window::{LimitWindows, LimitedCall};
use rutter_core::port::Error;
use rutter_core::port::journal::Journal;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::ToolCatalog;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// More turns than any run needs; a run that takes them does not end.
const TURNS_MAX: u32 = 4_000;

/// One run in eight is short of time in a world that fails often, which leads to rare situations.
const HARD: u64 = 6;

/// Of sixteen runs these decide as the engine does, several inputs per append, and have tools that change, plans that
/// are revised in detail, calls that are not made, and an agent that answers late. The others stay as they were, so that
/// old seeds still tell their stories.
const WILD: [u64; 4] = [4, 5, 7, 10];

/// Of sixteen runs these have little time, long gaps without a worker, and agents that fall silent.
const GAPS: [u64; 2] = [3, 9];

/// Of sixteen runs these have upstreams that act after their calls were given up, answer twice and forget keys, and
/// people who take their time.
const LATE: [u64; 2] = [4, 14];

/// Of thirty-two runs these have late upstreams, of idempotent tools too, programs that act on after their time is up, and
/// people who correct what they said. The first of them has gaps as well.
const MIXED: [u64; 2] = [1, 8];

/// A number of calls of any tools, and the limits of the policy.
pub(super) struct SimulatedCapacity<'a> {
    pub room: u32,
    pub windows: &'a mut LimitWindows,
    pub identity: &'a ExecutionIdentity,
}

impl CallCapacity for SimulatedCapacity<'_> {
    fn try_acquire(&mut self, tool: &ToolName) -> CallRoom {
        self.room.try_acquire(tool)
    }

    fn reserve(&mut self, call: &LimitedCall<'_>, now: Timestamp) -> Option<Timestamp> {
        self.windows.reserve(&self.identity.tenant, &self.identity.execution, call, now)
    }
}

/// A process that was thought dead and is not.
#[derive(Debug)]
pub(super) struct ZombieProcess {
    execution: Execution,
    hand: WriterHandle,
}

/// A run in progress.
#[derive(Debug)]
pub struct SimulatedRun<'a> {
    pub(super) chance: SeededRandom,
    pub(super) catalog: &'a ToolCatalog,
    pub(super) document: Value,
    pub(super) identity: ExecutionIdentity,
    pub(super) journal: SimulatedJournal<'a>,
    pub(super) execution: Execution,
    pub(super) monitor: JournalMonitor,
    pub(super) world: SimulatedWorld,
    pub(super) failure_rates: FailureRates,
    pub(super) is_wild: bool,
    /// The operator's policy, and the calls counted under its limits in this process.
    pub(super) policy: OperatorPolicy,
    /// Whether the word of people and the policy is evaded; and the rules since a restart, from which record on.
    pub(super) is_evasive: bool,
    pub(super) first_policy: OperatorPolicy,
    pub(super) later_policy: Option<(usize, OperatorPolicy)>,
    /// Who proves who they are; apart from all other chance, which it does not change.
    pub(super) proof_chance: SeededRandom,
    pub(super) windows: LimitWindows,
    /// The documents of new plans, by the hash of the plan.
    pub(super) documents: BTreeMap<Hash, Value>,
    pub(super) has_gaps: bool,
    /// A gap whose executions are not held yet.
    pub(super) gap: Option<WorkerGap>,
    pub(super) crash_percent: u64,
    /// How often people interfere.
    pub(super) unrest_percent: u64,
    pub(super) inbox: Vec<ExecutionInput>,
    pub(super) pending_calls: Vec<PendingCall>,
    /// Whether a question was accepted whose answer was recorded before the resumed call could ask for it.
    pub(super) early_answers: BTreeMap<(PartId, u32), bool>,
    pub(super) zombie: Option<ZombieProcess>,
    pub(super) now: Timestamp,
    pub(super) tally: SimulationTally,
}

/// Runs one seed on an empty journal; an error names the broken promise.
pub fn run(seed: u64, catalog: &ToolCatalog, journal: &dyn Journal) -> Result<SimulationTally, String> {
    let mut run = SimulatedRun::start(seed, catalog, journal)?;
    run.finish()?;
    Ok(run.tally)
}

/// Runs one seed and returns the whole story: the plan, every record, and the ending.
pub fn describe(seed: u64, catalog: &ToolCatalog, journal: &dyn Journal) -> Result<String, String> {
    let mut run = SimulatedRun::start(seed, catalog, journal)?;
    let mut story = format!("{:#}\n", run.document);
    let end = run.finish();
    for (at, record) in run.journal.records.iter().enumerate() {
        story += &format!("{at:>4} {:>8} {:<12} {:?}\n", record.at.0, record.actor.to_string(), record.event);
    }
    story += &format!("{:?}\n", run.world.order);
    story += &match end {
        Ok(()) => format!("{}\n", run.execution.brief()),
        Err(what) => format!("violation: {what}\n"),
    };
    Ok(story)
}

impl SimulatedRun<'_> {
    fn start<'a>(seed: u64, catalog: &'a ToolCatalog, journal: &'a dyn Journal) -> Result<SimulatedRun<'a>, String> {
        let mut chance = SeededRandom::new(seed);
        let mut document = plans::document(&mut chance);
        let is_hard = seed % 8 == HARD;
        if is_hard {
            plans::hasten(&mut document, &mut SeededRandom::new(!seed));
        }
        let is_mixed = MIXED.contains(&(seed % 32));
        let has_gaps = GAPS.contains(&(seed % 16)) || seed % 32 == MIXED[0];
        if has_gaps {
            document = plans::limit_time(document, catalog, &mut SeededRandom::new(!seed));
        }
        let is_late = LATE.contains(&(seed % 16)) || is_mixed;
        let catalog = match (is_late, is_mixed) {
            (_, true) => plans::mixed_catalog(),
            (true, false) => plans::forgetful_catalog(),
            (false, false) => catalog,
        };
        if is_late {
            plans::doubt(&mut document, &mut SeededRandom::new(!seed));
        }
        if evasion::is_evasive(seed) {
            evasion::guard(&mut document, &mut SeededRandom::new(!seed));
        }
        let plan = plans::compile(&document, catalog).map_err(|found| format!("bad generated plan: {found}"))?;
        let inputs = plans::inputs(&mut chance);
        let identity =
            ExecutionIdentity { tenant: TenantId::new("sim"), execution: ExecutionId::new(&format!("exec_{seed}")) };
        let driver = if chance.percent(12) { Driver::Agent } else { Driver::Server };
        let opened = EventRecord {
            at: Timestamp(0),
            actor: Actor::agent("pilot"),
            event: Event::ExecutionOpened {
                plan: PlanReference::of(&plan),
                revision: 1,
                lineage: identity.execution.to_string(),
                driver,
                inputs: EventPayload::Present(Arc::new(inputs.clone())),
            },
        };
        let execution = Execution::open(identity.clone(), &opened).map_err(|error| error.to_string())?;
        let row = execution.row();
        let journal_writer = SimulatedJournal::open(journal, identity.clone(), &plan, opened, row, &mut chance)?;
        let monitor = JournalMonitor::new(plan, &inputs, plans::policy(seed));
        let failure_rates = FailureRates::new(&mut chance);
        let failure_rates = if is_hard { FailureRates::HARD } else { failure_rates };
        let crash_percent = *chance.pick(&[0, 0, 2, 6, 12]);
        let unrest_percent = *chance.pick(&[0, 3, 10, 25, 40]);
        let mut world = SimulatedWorld::new(catalog);
        world.late = is_late.then(|| LateUpstream::new(is_mixed));
        Ok(SimulatedRun {
            catalog,
            document,
            identity,
            journal: journal_writer,
            execution,
            monitor,
            world,
            failure_rates,
            policy: plans::policy(seed),
            is_evasive: evasion::is_evasive(seed),
            first_policy: plans::policy(seed),
            later_policy: None,
            proof_chance: SeededRandom::new(seed ^ 0x00f0_4123),
            windows: LimitWindows::default(),
            documents: BTreeMap::new(),
            is_wild: WILD.contains(&(seed % 16)),
            has_gaps,
            gap: None,
            crash_percent,
            unrest_percent,
            inbox: vec![ExecutionInput::Start],
            pending_calls: Vec::new(),
            early_answers: BTreeMap::new(),
            zombie: None,
            now: Timestamp(0),
            tally: SimulationTally { runs: 1, ..SimulationTally::default() },
            chance,
        })
    }

    fn finish(&mut self) -> Result<(), String> {
        self.run()?;
        self.inspect()?;
        self.recover_every_prefix()
    }

    fn run(&mut self) -> Result<(), String> {
        let mut undo_after_the_end = self.chance.percent(30);
        let mut reopenings = if self.chance.percent(30) { 2 } else { 0 };
        for _ in 0..TURNS_MAX {
            self.resume_zombie()?;
            if self.execution.outcome().is_some() && self.inbox.is_empty() && self.chance_to_be_late() {
                continue;
            }
            let is_proposed = |ask: &PendingQuestion| matches!(ask, PendingQuestion::Replan { .. });
            if self.execution.outcome().is_some()
                && self.inbox.is_empty()
                && self.execution.questions().iter().any(is_proposed)
                && self.chance.percent(80)
                && let Some(next) = operators::answer(&self.execution, &self.world, &mut self.chance)
            {
                self.turn(next)?;
                continue;
            }
            if self.execution.outcome().is_some() && self.is_mixed() && self.chance.percent(20) {
                let correction = operators::correct(&self.execution, &self.world, &mut self.chance);
                if let Some(correction) = correction {
                    self.turn(correction)?;
                    continue;
                }
            }
            if self.execution.outcome().is_some() && self.inbox.is_empty() && reopenings > 0 {
                reopenings -= 1;
                let (document, catalog) = (&self.document, self.catalog);
                let next = operators::take_up_again(&self.execution, document, catalog, &mut self.chance);
                self.turn(next)?;
                continue;
            }
            if self.execution.outcome().is_some() && self.inbox.is_empty() {
                let questions = self.execution.questions();
                let is_late = self.world.late.is_some() && questions.iter().all(is_about_second_effect);
                if undo_after_the_end && (questions.is_empty() || is_late) {
                    undo_after_the_end = false;
                    let steps = self.chance.percent(40).then(|| {
                        let plan = self.execution.plan();
                        vec![plan.steps[self.chance.index(plan.steps.len())].id.clone()]
                    });
                    let input = ExecutionInput::Compensate { steps, reason: "changed our mind".into() };
                    self.turn(OperatorMove { actor: Actor::person("operator"), input, effect: OperatorEffect::None })?;
                    continue;
                }
                match self.surprise() {
                    Some(next) => self.turn(next)?,
                    None if self.inbox.is_empty() => return Ok(()),
                    None => {}
                }
                continue;
            }
            let next = self.next_move()?;
            let Some(next) = next else {
                self.tally.waiting += 1;
                return Ok(());
            };
            self.turn(next)?;
        }
        Err(format!("no end after {TURNS_MAX} turns, status {:?}", self.execution.status()))
    }

    /// After the end, in some runs: waits for an answer that is still to come.
    fn chance_to_be_late(&mut self) -> bool {
        let Some(next) = self.world.late.as_ref().and_then(LateUpstream::next_answer) else { return false };
        self.chance.percent(60) && self.wait_for(next)
    }

    fn wait_for(&mut self, answer: Timestamp) -> bool {
        self.now = self.now.max(answer);
        self.deliver_next();
        true
    }

    /// At the very end: the last answers arrive, and people decide on most of what they brought.
    fn surprise(&mut self) -> Option<OperatorMove> {
        if let Some(next) = self.world.late.as_ref()?.next_answer() {
            self.wait_for(next);
            return None;
        }
        let is_asked = self.execution.questions().iter().any(is_about_second_effect);
        let answers = is_asked && self.chance.percent(80);
        answers.then(|| operators::answer(&self.execution, &self.world, &mut self.chance)).flatten()
    }

    /// People take their time, in some runs: more than a tool remembers a key.
    fn take_time(&mut self) {
        if self.world.late.is_some() && self.chance.percent(20) {
            self.now = self.now.plus(Millis(self.chance.below(120_000)));
        }
    }

    /// The next event: a response, an operator's move, or time passing.
    fn next_move(&mut self) -> Result<Option<OperatorMove>, String> {
        let rutter = OperatorMove::by_rutter;
        self.deliver_next();
        if !self.inbox.is_empty() {
            let recovered = self.inbox.iter().position(|input| matches!(input, ExecutionInput::Recovered));
            let at = recovered
                .filter(|_| self.is_wild || self.gap.is_some())
                .unwrap_or_else(|| self.chance.index(self.inbox.len()));
            return Ok(Some(rutter(self.inbox.swap_remove(at))));
        }
        if self.chance.percent(self.unrest_percent) {
            return Ok(Some(self.interfere()));
        }
        if matches!(self.execution.phase(), ExecutionPhase::Pending) {
            return Ok(Some(rutter(ExecutionInput::Start)));
        }
        let late = self.world.late.as_ref().and_then(LateUpstream::next_answer);
        let next_answer = self.pending_calls.iter().filter_map(|call| call.at).chain(late).min();
        let wake_at = self.execution.wake_at();
        let busy =
            self.pending_calls.iter().any(|pending| !pending.asks) || wake_at.is_some_and(|when| when <= self.now);
        if self.execution.driver() == Driver::Agent && !self.execution.is_paused() && self.chance.percent(70) {
            let late = self.is_wild && self.chance.percent(50);
            let late = late.then(|| operators::answer_late(&self.execution, &self.world, &mut self.chance)).flatten();
            if late.is_some() {
                return Ok(late);
            }
            return Ok(Some(operators::drive_as_agent(&self.execution, &self.world, &mut self.chance)));
        }
        let ask_now = !busy || self.chance.percent(30);
        if let Some(answer) = operators::answer(&self.execution, &self.world, &mut self.chance).filter(|_| ask_now) {
            self.take_time();
            return Ok(Some(self.by_approver(answer)));
        }
        if let Some(when) = next_answer.into_iter().chain(wake_at).min() {
            self.now = self.now.max(when);
            return Ok(Some(rutter(ExecutionInput::Wake)));
        }
        self.get_going()
    }

    fn is_mixed(&self) -> bool {
        self.world.late.as_ref().is_some_and(|late| late.is_mixed)
    }

    pub(super) fn interfere(&mut self) -> OperatorMove {
        if self.is_mixed()
            && self.chance.percent(25)
            && let Some(correction) = operators::correct(&self.execution, &self.world, &mut self.chance)
        {
            return correction;
        }
        if self.is_evasive && self.chance.percent(30) {
            return match self.chance.percent(50) {
                true => evasion::claim(&self.execution, &mut self.chance),
                false => self.disguise(),
            };
        }
        let (document, catalog) = (&self.document, self.catalog);
        if self.is_wild && self.chance.percent(20) {
            return operators::revise_details(document, catalog, &mut self.chance);
        }
        if (self.is_wild || !self.policy.is_empty()) && self.chance.percent(25) {
            return operators::evade(&self.execution, document, catalog, &mut self.chance);
        }
        operators::interfere(&self.execution, document, catalog, &mut self.chance)
    }

    /// Nothing will happen by itself: an operator must act, or it is a defect that no question is open.
    fn get_going(&mut self) -> Result<Option<OperatorMove>, String> {
        let person = |input| OperatorMove { actor: Actor::person("operator"), input, effect: OperatorEffect::None };
        let reason = || "go on".to_owned();
        match self.execution.status() {
            ExecutionStatus::Paused => Ok(Some(person(ExecutionInput::Resume { reason: reason() }))),
            ExecutionStatus::Replanning => Ok(Some(person(ExecutionInput::AbandonReplan { reason: reason() }))),
            status if self.execution.driver() == Driver::Agent => {
                if status != ExecutionStatus::Pending && self.execution.questions().is_empty() {
                    return Err(format!("{status:?}, and nobody would notice that the agent is gone"));
                }
                Ok(Some(person(ExecutionInput::HandOver { to: Driver::Server, reason: reason() })))
            }
            _ if self.execution.wants_room() => Ok(Some(person(ExecutionInput::Wake))),
            ExecutionStatus::Waiting if self.chance.percent(90) => Ok(Some(person(ExecutionInput::Wake))),
            ExecutionStatus::Waiting => Ok(None),
            status => Err(format!("{status:?}, nothing will happen, and no question is open")),
        }
    }

    pub(super) fn crashes(&mut self) -> bool {
        self.chance.percent(self.crash_percent)
    }

    /// The process is gone, or seems to be; another takes over from the journal.
    pub(super) fn crash(&mut self) -> Result<(), String> {
        self.tally.crashes += 1;
        if self.chance.percent(30) {
            let (execution, hand) = (self.execution.clone(), self.journal.hand.clone());
            self.zombie = Some(ZombieProcess { execution, hand });
        }
        self.execution = self.journal.take_over(self.now)?;
        self.change_rules();
        self.windows = LimitWindows::default();
        let (identity, records) = (self.identity.clone(), &self.journal.records);
        Execution::count_calls(identity, records, &self.policy, Timestamp(0), &mut self.windows)
            .map_err(|error| error.to_string())?;
        if self.has_gaps && self.gap.is_none() && self.chance.percent(50) {
            let since = self.now;
            self.now = since.plus(Millis::hours(25 + self.chance.below(100)));
            self.gap = Some(WorkerGap { reason: "no worker ran".into(), since, until: self.now });
        }
        self.inbox = vec![ExecutionInput::Recovered];
        self.early_answers.clear();
        // Some responses still arrive, late; a tool that asked gets no answer.
        let chance = &mut self.chance;
        self.pending_calls.retain(|call| !call.asks && chance.percent(30));
        Ok(())
    }

    /// A process that was thought dead continues where it was; nothing it does may count.
    fn resume_zombie(&mut self) -> Result<(), String> {
        if self.zombie.is_none() || !self.chance.percent(10) {
            return Ok(());
        }
        let Some(mut zombie) = self.zombie.take() else { return Ok(()) };
        let mut windows = self.windows.clone();
        let mut room = SimulatedCapacity { room: 4, windows: &mut windows, identity: &self.identity };
        let terms = DecisionTerms { now: self.now, room: &mut room, policy: &self.policy };
        let input = if self.chance.percent(50) { ExecutionInput::Wake } else { ExecutionInput::Recovered };
        let decided = zombie.execution.decide_within(&Actor::rutter(), input, terms);
        let Ok(decision) = decided else { return Ok(()) };
        if decision.records.is_empty() {
            // What it does without a record must not have an effect.
            let asks_only = decision.calls.iter().all(ToolCall::is_resumed);
            return if asks_only { Ok(()) } else { Err("a call was made anew without a record".into()) };
        }
        let row = zombie.execution.row();
        match self.journal.append_as(zombie.hand, &decision.records, row) {
            Err(Error::Fenced { .. }) => {
                self.tally.fenced += 1;
                Ok(())
            }
            Err(error) => Err(format!("a process that was replaced is not fenced: {error}")),
            Ok(()) => {
                for call in &decision.calls {
                    self.world.call(call, self.now, self.failure_rates, &mut self.chance);
                }
                Ok(())
            }
        }
    }
}

fn is_about_second_effect(question: &PendingQuestion) -> bool {
    matches!(question, PendingQuestion::SecondEffect { .. })
}
