//! One simulated voyage: a random plan in an unkind world, with crashes at every boundary.

use super::crew::{self, Deed, Move};
use super::flight::Flight;
use super::logbook::{Hand, Logbook};
use super::monitor::Monitor;
use super::mutation::{self, DriverMutation};
use super::plans;
use super::tally::Tally;
use super::world::{Weather, World};
use crate::chance::Chance;
use rutter_core::actor::Actor;
use rutter_core::execution::input::{Input, Moment};
use rutter_core::execution::part::PartState;
use rutter_core::execution::view::Status;
use rutter_core::execution::{Execution, Identity, Phase, decide};
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::event::{Event, PlanRef, Record};
use rutter_core::journal::payload::Payload;
use rutter_core::plan::Driver;
use rutter_core::port::Error;
use rutter_core::port::journal::Journal;
use rutter_core::time::Timestamp;
use rutter_core::tool::{Safety, ToolCatalog};
use serde_json::Value;
use std::sync::Arc;

/// More turns than any voyage needs; one that takes them does not end.
const TURNS_MAX: u32 = 4_000;

/// A process that was thought dead and is not.
#[derive(Debug)]
pub(super) struct Zombie {
    execution: Execution,
    hand: Hand,
}

/// A voyage under way.
#[derive(Debug)]
pub struct Voyage<'a> {
    pub(super) chance: Chance,
    pub(super) catalog: &'a ToolCatalog,
    pub(super) document: Value,
    pub(super) identity: Identity,
    pub(super) logbook: Logbook<'a>,
    pub(super) execution: Execution,
    pub(super) monitor: Monitor,
    pub(super) world: World,
    pub(super) weather: Weather,
    pub(super) crash_percent: u64,
    /// How often somebody interferes.
    pub(super) unrest_percent: u64,
    pub(super) inbox: Vec<Input>,
    pub(super) flights: Vec<Flight>,
    pub(super) zombie: Option<Zombie>,
    pub(super) now: Timestamp,
    pub(super) tally: Tally,
}

/// Sails one seed on a journal with nothing in it; an error says which promise was broken.
pub fn sail(seed: u64, catalog: &ToolCatalog, journal: &dyn Journal) -> Result<Tally, String> {
    let mut voyage = Voyage::embark(seed, catalog, journal)?;
    voyage.finish()?;
    Ok(voyage.tally)
}

/// Sails one seed and tells the whole story: the plan, every record, and how it ended.
pub fn tell(seed: u64, catalog: &ToolCatalog, journal: &dyn Journal) -> Result<String, String> {
    let mut voyage = Voyage::embark(seed, catalog, journal)?;
    let mut story = format!("{:#}\n", voyage.document);
    let end = voyage.finish();
    for (at, record) in voyage.logbook.records.iter().enumerate() {
        story += &format!("{at:>4} {:>8} {:<12} {:?}\n", record.at.0, record.actor.to_string(), record.event);
    }
    story += &format!("{:?}\n", voyage.world.order);
    story += &match end {
        Ok(()) => format!("{}\n", voyage.execution.brief()),
        Err(what) => format!("violation: {what}\n"),
    };
    Ok(story)
}

impl Voyage<'_> {
    fn embark<'a>(
        seed: u64,
        catalog: &'a ToolCatalog,
        journal: &'a dyn Journal,
    ) -> Result<Voyage<'a>, String> {
        let mut chance = Chance::new(seed);
        let document = plans::document(&mut chance);
        let plan =
            plans::compile(&document, catalog).map_err(|found| format!("bad generated plan: {found}"))?;
        let inputs = plans::inputs(&mut chance);
        let identity =
            Identity { tenant: TenantId::new("sim"), execution: ExecutionId::new(&format!("exec_{seed}")) };
        let driver = if chance.percent(12) { Driver::Agent } else { Driver::Server };
        let opened = Record {
            at: Timestamp(0),
            actor: Actor::agent("pilot"),
            event: Event::ExecutionOpened {
                plan: PlanRef::of(&plan),
                revision: 1,
                lineage: identity.execution.to_string(),
                driver,
                inputs: Payload::Present(Arc::new(inputs.clone())),
            },
        };
        let execution = Execution::open(identity.clone(), &opened).map_err(|error| error.to_string())?;
        let row = execution.row();
        let logbook = Logbook::open(journal, identity.clone(), &plan, opened, row, &mut chance)?;
        let monitor = Monitor::new(plan, &inputs);
        let weather = Weather::new(&mut chance);
        let crash_percent = *chance.pick(&[0, 0, 2, 6, 12]);
        let unrest_percent = *chance.pick(&[0, 3, 10, 25, 40]);
        Ok(Voyage {
            catalog,
            document,
            identity,
            logbook,
            execution,
            monitor,
            world: World::default(),
            weather,
            crash_percent,
            unrest_percent,
            inbox: vec![Input::Start],
            flights: Vec::new(),
            zombie: None,
            now: Timestamp(0),
            tally: Tally { voyages: 1, ..Tally::default() },
            chance,
        })
    }

    fn finish(&mut self) -> Result<(), String> {
        self.sail()?;
        self.inspect()?;
        self.recover_every_prefix()
    }

    fn sail(&mut self) -> Result<(), String> {
        let mut undo_after_the_end = self.chance.percent(30);
        for _ in 0..TURNS_MAX {
            self.wake_the_dead()?;
            if self.execution.outcome().is_some() && self.inbox.is_empty() {
                if undo_after_the_end && self.execution.questions().is_empty() {
                    undo_after_the_end = false;
                    let steps = self.chance.percent(40).then(|| {
                        let plan = self.execution.plan();
                        vec![plan.steps[self.chance.index(plan.steps.len())].id.clone()]
                    });
                    let input = Input::Compensate { steps, reason: "changed our mind".into() };
                    self.turn(Move { actor: Actor::person("operator"), input, deed: Deed::None })?;
                    continue;
                }
                return Ok(());
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

    /// What happens next: an answer, the crew, or time going by.
    fn next_move(&mut self) -> Result<Option<Move>, String> {
        let rutter = |input| Move { actor: Actor::rutter(), input, deed: Deed::None };
        self.land();
        if !self.inbox.is_empty() {
            let at = self.chance.index(self.inbox.len());
            return Ok(Some(rutter(self.inbox.swap_remove(at))));
        }
        if self.chance.percent(self.unrest_percent) {
            return Ok(Some(crew::interfere(
                &self.execution,
                &self.document,
                self.catalog,
                &mut self.chance,
            )));
        }
        if matches!(self.execution.phase(), Phase::Pending) {
            return Ok(Some(rutter(Input::Start)));
        }
        let next_flight = self.flights.iter().filter_map(|flight| flight.at).min();
        let wake_at = self.execution.wake_at();
        let busy =
            self.flights.iter().any(|flight| !flight.asks) || wake_at.is_some_and(|when| when <= self.now);
        if self.execution.driver() == Driver::Agent && !self.execution.is_paused() && self.chance.percent(70)
        {
            return Ok(Some(crew::sail(&self.execution, &self.world, &mut self.chance)));
        }
        let ask_now = !busy || self.chance.percent(30);
        if let Some(answer) = crew::answer(&self.execution, &self.world, &mut self.chance).filter(|_| ask_now)
        {
            return Ok(Some(answer));
        }
        if let Some(when) = next_flight.into_iter().chain(wake_at).min() {
            self.now = self.now.max(when);
            return Ok(Some(rutter(Input::Wake)));
        }
        self.get_going()
    }

    /// Nothing moves by itself: somebody must, or it is a defect that nothing says so.
    fn get_going(&mut self) -> Result<Option<Move>, String> {
        let person = |input| Move { actor: Actor::person("operator"), input, deed: Deed::None };
        let reason = || "go on".to_owned();
        match self.execution.status() {
            Status::Paused => Ok(Some(person(Input::Resume { reason: reason() }))),
            Status::Replanning => Ok(Some(person(Input::AbandonReplan { reason: reason() }))),
            _ if self.execution.driver() == Driver::Agent => {
                Ok(Some(person(Input::HandOver { to: Driver::Server, reason: reason() })))
            }
            _ if self.execution.wants_room() => Ok(Some(person(Input::Wake))),
            Status::Waiting if self.chance.percent(90) => Ok(Some(person(Input::Wake))),
            Status::Waiting => Ok(None),
            status => Err(format!("{status:?}, nothing will happen, and it does not say so")),
        }
    }

    fn turn(&mut self, next: Move) -> Result<(), String> {
        let room = u32::try_from(self.chance.below(4)).expect("small");
        let room = if self.flights.is_empty() { room.max(1) } else { room };
        let moment = Moment { now: self.now, room };
        let before = self.execution.clone();
        let recovers = matches!(next.input, Input::Recovered);
        let decision = match self.execution.decide(&next.actor, next.input, moment) {
            Ok(decision) => decision,
            Err(decide::Error::Refused(_)) => {
                self.tally.refusals += 1;
                return if self.execution == before {
                    Ok(())
                } else {
                    Err("a refusal changed something".into())
                };
            }
            Err(decide::Error::Broken(broken)) => return Err(format!("decided an illegal event: {broken}")),
        };
        let early = mutation::is_active(DriverMutation::CallBeforeAppend);
        if early && !self.call(&decision.calls)? {
            return Ok(());
        }
        if self.crashes() {
            return self.crash();
        }
        if let Deed::Revise(_, plan) = &next.deed {
            self.logbook.save(plan)?;
        }
        let twice = mutation::is_active(DriverMutation::AppendTwice) && self.chance.percent(5);
        for _ in 0..1 + u32::from(twice) {
            let appended = self.logbook.append(&decision.records, self.execution.row(), &mut self.chance);
            appended.map_err(|error| format!("the owner could not append: {error}"))?;
        }
        self.watch(before, &decision.records)?;
        if recovers {
            self.monitor.talk.gone_on_with(&decision.calls)?;
        }
        self.do_deed(next.deed);
        self.pass_on(&decision.records);
        if self.crashes() {
            return self.crash();
        }
        if !early && !self.call(&decision.calls)? {
            return Ok(());
        }
        self.woken_for_something()
    }

    /// Shows the monitor what was appended, each record with the plan it was decided under.
    fn watch(&mut self, mut before: Execution, records: &[Record]) -> Result<(), String> {
        for record in records {
            before.apply(record).map_err(|error| error.to_string())?;
            self.monitor.observe(record, before.plan())?;
            self.tally.count(&record.event);
        }
        if before != self.execution {
            return Err("applying the records does not lead where deciding led".into());
        }
        Ok(())
    }

    fn do_deed(&mut self, deed: Deed) {
        match deed {
            Deed::None => {}
            Deed::CarryOut(part) => {
                let plan = self.execution.plan();
                let step = plan.find(part.step.as_str()).map(|step| plan.steps[step].clone());
                let really =
                    step.is_some_and(|step| step.call.safety != Safety::ReadOnly) && self.chance.percent(75);
                let running = self.execution.part(&part).filter(
                    |part| matches!(&part.state, PartState::Running(attempt) if attempt.by == Driver::Agent),
                );
                if let Some(key) = running.and_then(|part| part.key).filter(|_| really) {
                    self.world.happen_by_agent(&part, key);
                }
            }
            Deed::UndoByHand(part) => {
                self.world.standing.remove(&part);
            }
            Deed::Revise(document, _) => self.document = document,
        }
    }

    /// A wake-up time that has passed must lead to something as soon as there is room.
    fn woken_for_something(&mut self) -> Result<(), String> {
        if self.execution.wake_at().is_none_or(|when| when > self.now) {
            return Ok(());
        }
        let mut ahead = self.execution.clone();
        let moment = Moment { now: self.now, room: 64 };
        match ahead.decide(&Actor::rutter(), Input::Wake, moment) {
            Ok(decision) if decision.records.is_empty() => Err("woke up for nothing".into()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("waking up failed: {error}")),
        }
    }

    pub(super) fn crashes(&mut self) -> bool {
        self.chance.percent(self.crash_percent)
    }

    /// The process is gone, or seems to be; another takes over from the journal.
    pub(super) fn crash(&mut self) -> Result<(), String> {
        self.tally.crashes += 1;
        if self.chance.percent(30) {
            let (execution, hand) = (self.execution.clone(), self.logbook.hand.clone());
            self.zombie = Some(Zombie { execution, hand });
        }
        self.execution = self.logbook.take_over(self.now)?;
        self.inbox = vec![Input::Recovered];
        // Some answers still find their way, late; a tool that asked has nobody left to ask.
        let chance = &mut self.chance;
        self.flights.retain(|flight| !flight.asks && chance.percent(30));
        Ok(())
    }

    /// A process that was thought dead goes on where it stood; nothing it does may count.
    fn wake_the_dead(&mut self) -> Result<(), String> {
        if self.zombie.is_none() || !self.chance.percent(10) {
            return Ok(());
        }
        let Some(mut zombie) = self.zombie.take() else { return Ok(()) };
        let moment = Moment { now: self.now, room: 4 };
        let input = if self.chance.percent(50) { Input::Wake } else { Input::Recovered };
        let Ok(decision) = zombie.execution.decide(&Actor::rutter(), input, moment) else { return Ok(()) };
        if decision.records.is_empty() {
            // What it does without writing anything must not have an effect.
            let asks_only = decision.calls.iter().all(|call| call.ticket.is_some());
            return if asks_only { Ok(()) } else { Err("a call was made anew without a record".into()) };
        }
        let row = zombie.execution.row();
        let appended = match mutation::is_active(DriverMutation::SkipFence) {
            true => self.logbook.append(&decision.records, row, &mut self.chance),
            false => self.logbook.append_as(zombie.hand, &decision.records, row),
        };
        match appended {
            Err(Error::Fenced { .. }) => {
                self.tally.fenced += 1;
                Ok(())
            }
            Err(error) => Err(format!("a process that was replaced is not fenced: {error}")),
            Ok(()) => {
                for call in &decision.calls {
                    self.world.call(call, self.now, self.weather, &mut self.chance);
                }
                Ok(())
            }
        }
    }
}
