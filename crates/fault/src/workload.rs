//! A workload as an engine would bring it to a store: plans, executions of every shape, letters, leases.
//!
//! The same name and the same answers of the store give the same workload. What is asked and answered is told to
//! whoever keeps the account. An error is met as an engine has to: read the head, and go on from what is there.

use crate::account::{Note, Said, What};
use crate::shapes::{self, Shape};
use rutter_core::actor::Actor;
use rutter_core::execution::input::{Input, Moment};
use rutter_core::execution::{Execution, Identity, admit, decide};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::Chain;
use rutter_core::journal::event::Record;
use rutter_core::journal::payload::Salt;
use rutter_core::plan::Driver;
use rutter_core::port::journal::{
    Append, Claim, Journal, Lease, Letter, NewLetter, NewPlan, Opened, Opening, Request, Sealed,
};
use rutter_core::port::{Answer, Error};
use rutter_core::time::Timestamp;
use rutter_store::{Store, wait};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub const TENANT: &str = "acme";
/// Every shape, some twice.
pub const SHAPES: [Shape; 6] =
    [Shape::Chain, Shape::Diamond, Shape::FanOut, Shape::Compensated, Shape::Chain, Shape::Compensated];

/// How often something is asked again before it is given up.
const TRIES: usize = 3;
const TURNS_MAX: usize = 200;
/// Answers of tools that are recorded in one piece.
const ANSWERS_MAX: usize = 6;
const ROOM: u32 = 16;
/// Larger than what is kept beside the entry, and hardly compressible.
const LARGE_BYTES: usize = 66_000;
const TICK_MS: i64 = 7;
const LEASE_MS: i64 = 5_000;
/// After an error: long enough for a lease to end that was given and not heard of.
const LEAP_MS: i64 = 2 * LEASE_MS;

/// Carries out executions of these shapes, after those that somebody left behind. An error says why the store
/// writes no more.
pub fn carry_out(
    store: &Store,
    name: &str,
    begin: Timestamp,
    shapes: &[Shape],
    tell: &mut dyn FnMut(Note),
) -> Result<(), Error> {
    let worker = WorkerId::new(name);
    let mut workload = Workload { store, name, worker, now: begin, salts: 0, leases: BTreeMap::new(), tell };
    for shape in Shape::ALL.into_iter().filter(|shape| shapes.contains(shape)) {
        workload.save(shape)?;
    }
    workload.take_over()?;
    for (nth, shape) in shapes.iter().enumerate() {
        workload.execute(nth, *shape)?;
    }
    Ok(())
}

struct Workload<'a> {
    store: &'a Store,
    name: &'a str,
    worker: WorkerId,
    now: Timestamp,
    salts: u64,
    leases: BTreeMap<ExecutionId, Lease>,
    tell: &'a mut dyn FnMut(Note),
}

/// An execution as its journal has it.
struct Voyage {
    execution: Execution,
    chain: Chain,
    letters: Vec<Letter>,
}

impl<'a> Workload<'a> {
    fn save(&mut self, shape: Shape) -> Result<(), Error> {
        let plan = shape.plan();
        let id = format!("plan_{}", shape.name());
        for _ in 0..TRIES {
            let new = NewPlan {
                tenant: TenantId::new(TENANT),
                id: PlanId::new(&id),
                plan: Arc::clone(&plan),
                expected: None,
                actor: Actor::agent("pilot"),
                at: self.tick(),
            };
            let what = What::Plan { id: id.clone(), hash: plan.hash };
            match self.ask(what, |store| store.save(new)) {
                Ok(_) => return Ok(()),
                Err(error) => self.weigh(error)?,
            }
        }
        Ok(())
    }

    /// Sees to the end what somebody else began.
    fn take_over(&mut self) -> Result<(), Error> {
        self.claim()?;
        for execution in self.leases.keys().cloned().collect::<Vec<_>>() {
            let identity = Identity { tenant: TenantId::new(TENANT), execution };
            if let Some(voyage) = self.load(&identity)? {
                self.drive(voyage, Input::Recovered)?;
            }
        }
        Ok(())
    }

    fn execute(&mut self, nth: usize, shape: Shape) -> Result<(), Error> {
        let name = format!("{}-{nth}", self.name);
        let execution = ExecutionId::new(&format!("exec_{name}"));
        let identity = Identity { tenant: TenantId::new(TENANT), execution };
        // Some are driven by whoever opens them, some by whoever claims them.
        let is_own = nth.is_multiple_of(2);
        let Some(voyage) = self.open(&identity, nth, shape, is_own)? else { return Ok(()) };
        self.post(&identity, format!("go-{name}"))?;
        let until = Timestamp(self.now.0 + LEASE_MS);
        if let Err(error) = wait(self.store.renew(&self.worker, until)) {
            self.weigh(error)?;
        }
        for _ in 0..TRIES {
            if !self.leases.contains_key(&identity.execution) {
                self.claim()?;
            }
        }
        self.drive(voyage, Input::Start)?;
        // Nobody answers this one before somebody takes over.
        self.post(&identity, format!("late-{name}"))?;
        match self.leases.remove(&identity.execution).filter(|_| is_own) {
            Some(lease) => match wait(self.store.release(lease)) {
                Ok(()) | Err(Error::Fenced { .. }) => Ok(()),
                Err(error) => self.weigh(error),
            },
            None => Ok(()),
        }
    }

    fn open(
        &mut self,
        identity: &Identity,
        nth: usize,
        shape: Shape,
        is_own: bool,
    ) -> Result<Option<Voyage>, Error> {
        let inputs = Arc::new(shape.inputs(if nth == 0 { noise() } else { "" }));
        let (plan, now) = (shape.plan(), self.tick());
        let opened =
            admit::opening(&plan, Driver::Server, inputs, &identity.execution, Actor::agent("pilot"), now);
        let opened = opened.expect("the inputs are what the plan asks for");
        let execution = Execution::open(identity.clone(), &opened).expect("a journal begins so");
        let mut chain = Chain::new(identity.tenant.clone(), identity.execution.clone());
        let entries = self.seal(&mut chain, &[opened]);
        let what = asked(&identity.execution, &entries, &[]);
        let opening = Opening {
            identity: identity.clone(),
            plan: PlanId::new(&format!("plan_{}", shape.name())),
            request: is_own.then(|| Request { key: identity.execution.to_string(), digest: plan.hash }),
            worker: is_own.then(|| self.worker.clone()),
            entries,
            row: execution.row(),
        };
        for _ in 0..TRIES {
            let again = opening.clone();
            match self.ask(what.clone(), |store| store.open(again)) {
                Ok(opened) => {
                    if let Opened::New { lease: Some(lease) } = opened {
                        self.hold(lease);
                    }
                    return Ok(Some(Voyage { execution, chain, letters: Vec::new() }));
                }
                Err(error) => self.weigh(error)?,
            }
        }
        Ok(None)
    }

    fn post(&mut self, identity: &Identity, text: String) -> Result<(), Error> {
        for _ in 0..TRIES {
            let letter = NewLetter {
                identity: identity.clone(),
                request: Some(Request { key: text.clone(), digest: Hash::ZERO }),
                actor: Actor::person("operator"),
                at: self.tick(),
                bytes: text.clone().into_bytes(),
            };
            let what = What::Letter { execution: identity.execution.to_string(), text: text.clone() };
            match self.ask(what, |store| store.post(letter)) {
                Ok(_) => return Ok(()),
                Err(error) => self.weigh(error)?,
            }
        }
        Ok(())
    }

    fn claim(&mut self) -> Result<(), Error> {
        let claim = Claim { worker: self.worker.clone(), now: self.tick(), limit: 32 };
        match wait(self.store.claim(claim)) {
            Ok(leases) => leases.into_iter().for_each(|lease| self.hold(lease)),
            Err(error) => self.weigh(error)?,
        }
        Ok(())
    }

    fn hold(&mut self, lease: Lease) {
        let execution = lease.identity.execution.clone();
        (self.tell)(Note::Leased { execution: execution.to_string(), epoch: lease.epoch });
        self.leases.insert(execution, lease);
    }

    fn load(&mut self, identity: &Identity) -> Result<Option<Voyage>, Error> {
        for _ in 0..TRIES {
            let loaded = match wait(self.store.load(identity)) {
                Ok(loaded) => loaded,
                Err(error) => {
                    self.weigh(error)?;
                    continue;
                }
            };
            let replayed = Execution::replay(identity.clone(), &loaded.records);
            let execution = replayed.map_err(|why| Error::Corrupt(why.to_string()))?;
            let Identity { tenant, execution: id } = identity.clone();
            let chain = Chain::resume(tenant, id, loaded.head);
            return Ok(Some(Voyage { execution, chain, letters: loaded.letters }));
        }
        Ok(None)
    }

    /// Goes on until the end, as far as the store lets it.
    fn drive(&mut self, mut voyage: Voyage, first: Input) -> Result<(), Error> {
        let identity = voyage.execution.identity().clone();
        let mut inputs = VecDeque::from([first]);
        for turn in 0..TURNS_MAX {
            if turn == 1 {
                // What waits in the inbox is answered together with what comes next.
                let Some(again) = self.load(&identity)? else { return Ok(()) };
                voyage = again;
            }
            if inputs.is_empty() && voyage.letters.is_empty() {
                match voyage.execution.wake_at() {
                    _ if voyage.execution.outcome().is_some() => return Ok(()),
                    Some(when) => self.now = self.now.max(when),
                    None if voyage.execution.wants_room() => {}
                    None => return Ok(()),
                }
                inputs.push_back(Input::Wake);
            }
            let now: Vec<Input> = inputs.drain(..inputs.len().min(ANSWERS_MAX)).collect();
            let Some(answers) = self.turn(&mut voyage, &now)? else { return Ok(()) };
            inputs.extend(answers);
        }
        Ok(())
    }

    /// Records what follows from the inputs, then makes the calls. `None` when somebody else has to go on.
    fn turn(&mut self, voyage: &mut Voyage, inputs: &[Input]) -> Result<Option<Vec<Input>>, Error> {
        let identity = voyage.execution.identity().clone();
        for _ in 0..TRIES {
            let Some(lease) = self.leases.get(&identity.execution).cloned() else { return Ok(None) };
            let expected = voyage.chain.head();
            let mut decided =
                self.decide(voyage, inputs.iter().cloned().map(|input| (Actor::rutter(), input)));
            let asked_for = voyage.letters.iter().map(|letter| {
                let decision = text_of(letter);
                let input =
                    Input::RecordDecision { step: None, decision, reason: "asked".to_owned(), details: None };
                (letter.actor.clone(), input)
            });
            let asked_for: Vec<_> = asked_for.collect();
            let more = self.decide(voyage, asked_for.into_iter());
            decided.0.extend(more.0);
            decided.1.extend(more.1);
            let (records, answers) = decided;
            if records.is_empty() && voyage.letters.is_empty() {
                return Ok(Some(answers));
            }
            let entries = self.seal(&mut voyage.chain, &records);
            let what = asked(&identity.execution, &entries, &voyage.letters);
            let consumed = voyage.letters.iter().map(|letter| letter.number).collect();
            let append = Append {
                lease,
                expected,
                entries,
                row: voyage.execution.row(),
                consumed,
                forgotten: Vec::new(),
            };
            match self.ask(what, |store| store.append(append)) {
                Ok(_) => {
                    voyage.letters.clear();
                    return Ok(Some(answers));
                }
                Err(Error::Fenced { .. }) => {
                    self.leases.remove(&identity.execution);
                    return Ok(None);
                }
                Err(error) => self.weigh(error)?,
            }
            let ours = voyage.chain.head();
            let Some(found) = self.load(&identity)? else { return Ok(None) };
            *voyage = found;
            if voyage.chain.head() == ours && ours != expected {
                return Ok(Some(answers));
            }
        }
        Ok(None)
    }

    /// What follows from inputs: records, and what the tools will answer.
    fn decide(
        &mut self,
        voyage: &mut Voyage,
        inputs: impl Iterator<Item = (Actor, Input)>,
    ) -> (Vec<Record>, Vec<Input>) {
        let (mut records, mut answers) = (Vec::new(), Vec::new());
        for (actor, input) in inputs {
            let moment = Moment { now: self.tick(), room: ROOM };
            match voyage.execution.decide(&actor, input, moment) {
                Ok(decision) => {
                    records.extend(decision.records);
                    answers.extend(decision.calls.iter().map(shapes::answer));
                }
                // What somebody else has done meanwhile.
                Err(decide::Error::Refused(_)) => {}
                Err(decide::Error::Broken(broken)) => panic!("the core contradicts itself: {broken}"),
            }
        }
        (records, answers)
    }

    fn seal(&mut self, chain: &mut Chain, records: &[Record]) -> Vec<Sealed> {
        let (name, counter) = (self.name.as_bytes(), &mut self.salts);
        let mut salts = || {
            *counter += 1;
            let hash = Hash::of_fields("salt", &[name, &counter.to_be_bytes()]);
            Salt(*hash.0.first_chunk().expect("a hash is longer"))
        };
        let sealed = records.iter().map(|record| Sealed::seal(chain, record, &mut salts));
        sealed.collect::<Result<_, _>>().expect("nothing was erased")
    }

    /// Asks the store, and tells what was asked and what it said.
    fn ask<T>(&mut self, what: What, ask: impl FnOnce(&'a Store) -> Answer<'a, T>) -> Result<T, Error> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        (self.tell)(Note::Asked { number, what });
        let answer = wait(ask(self.store));
        let said = match &answer {
            Ok(_) => Said::Yes,
            Err(Error::Unknown(_)) => Said::Maybe,
            Err(error) => Said::No { code: error.code().to_owned() },
        };
        (self.tell)(Note::Answered { number, said });
        answer
    }

    /// Passes on an error after which nothing can be written; after another one, time goes by.
    fn weigh(&mut self, error: Error) -> Result<(), Error> {
        self.now.0 += LEAP_MS;
        match error {
            Error::ReadOnly(_) | Error::Corrupt(_) | Error::Closed | Error::Invalid(_) => Err(error),
            _ => Ok(()),
        }
    }

    fn tick(&mut self) -> Timestamp {
        self.now.0 += TICK_MS;
        self.now
    }
}

fn asked(execution: &ExecutionId, entries: &[Sealed], letters: &[Letter]) -> What {
    What::Entries {
        execution: execution.to_string(),
        first: entries.first().map_or(0, |sealed| sealed.entry.seq),
        hashes: entries.iter().map(|sealed| sealed.entry.hash).collect(),
        consumed: letters.iter().map(text_of).collect(),
    }
}

pub(crate) fn text_of(letter: &Letter) -> String {
    String::from_utf8_lossy(&letter.bytes).into_owned()
}

/// Text without repetition, always the same.
fn noise() -> &'static str {
    static NOISE: OnceLock<String> = OnceLock::new();
    NOISE.get_or_init(|| {
        let hashes = (0_u64..).map(|nth| Hash::of(&[&nth.to_be_bytes()]).to_string());
        hashes.take(LARGE_BYTES.div_ceil(64)).collect()
    })
}
