//! A workload like an engine's for a store: plans, executions of every shape, commands, leases.
//!
//! The same name and the same replies of the store give the same workload. Every request and reply goes to the account.
//! After an error it does what an engine has to: read the head, and continue from there.

use crate::disk::account::{AccountNote, StoreAnswer, StoreRequest};
use crate::disk::shapes::{self, PlanShape};
use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::execution::{Execution, ExecutionIdentity, decide, opening};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId, WorkerId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::plan::Driver;
use rutter_core::port::journal::{
    AppendRequest, ClaimRequest, ExecutionOpening, IdempotentRequest, Journal, Lease, NewCommand, NewRevision,
    OpenOutcome, RevisionScope, SealedEntry, StoredCommand,
};
use rutter_core::port::{Error, StoreFuture};
use rutter_core::time::Timestamp;
use rutter_store::{SqliteStore, wait};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub const TENANT: &str = "acme";
/// Every shape, some twice.
pub const SHAPES: [PlanShape; 6] = [
    PlanShape::Chain,
    PlanShape::Diamond,
    PlanShape::FanOut,
    PlanShape::Compensated,
    PlanShape::Chain,
    PlanShape::Compensated,
];

/// How often a request is repeated before giving up.
const TRIES: usize = 3;
const TURNS_MAX: usize = 200;
/// Responses of tools that are recorded in one append.
const ANSWERS_MAX: usize = 6;
const ROOM: u32 = 16;
/// Larger than an inline payload, and hardly compressible.
const LARGE_BYTES: usize = 66_000;
const TICK_MS: i64 = 7;
const LEASE_MS: i64 = 5_000;
/// After an error: long enough for a lease to expire whose grant was not received.
const LEAP_MS: i64 = 2 * LEASE_MS;

/// Runs executions of these shapes, after those that an earlier process left. An error says why the store writes no
/// more.
pub fn carry_out(
    store: &SqliteStore,
    name: &str,
    begin: Timestamp,
    shapes: &[PlanShape],
    tell: &mut dyn FnMut(AccountNote),
) -> Result<(), Error> {
    let worker = WorkerId::new(name);
    let mut workload = StoreWorkload { store, name, worker, now: begin, salts: 0, leases: BTreeMap::new(), tell };
    for shape in PlanShape::ALL.into_iter().filter(|shape| shapes.contains(shape)) {
        workload.save(shape)?;
    }
    workload.take_over()?;
    for (nth, shape) in shapes.iter().enumerate() {
        workload.execute(nth, *shape)?;
    }
    Ok(())
}

struct StoreWorkload<'a> {
    store: &'a SqliteStore,
    name: &'a str,
    worker: WorkerId,
    now: Timestamp,
    salts: u64,
    leases: BTreeMap<ExecutionId, Lease>,
    tell: &'a mut dyn FnMut(AccountNote),
}

/// An execution according to its journal.
struct DrivenExecution {
    execution: Execution,
    chain: HashChain,
    commands: Vec<StoredCommand>,
}

impl<'a> StoreWorkload<'a> {
    fn save(&mut self, shape: PlanShape) -> Result<(), Error> {
        let plan = shape.plan();
        let id = format!("plan_{}", shape.name());
        for _ in 0..TRIES {
            let new = NewRevision {
                tenant: TenantId::new(TENANT),
                id: PlanId::new(&id),
                plan: Arc::clone(&plan),
                expected: None,
                scope: RevisionScope::Plan,
                actor: Actor::agent("pilot"),
                at: self.tick(),
            };
            let what = StoreRequest::Plan { id: id.clone(), hash: plan.hash };
            match self.ask(what, |store| store.save(new)) {
                Ok(_) => return Ok(()),
                Err(error) => self.weigh(error)?,
            }
        }
        Ok(())
    }

    /// Finishes what another process began.
    fn take_over(&mut self) -> Result<(), Error> {
        self.claim()?;
        for execution in self.leases.keys().cloned().collect::<Vec<_>>() {
            let identity = ExecutionIdentity { tenant: TenantId::new(TENANT), execution };
            if let Some(run) = self.load(&identity)? {
                self.drive(run, ExecutionInput::Recovered)?;
            }
        }
        Ok(())
    }

    fn execute(&mut self, nth: usize, shape: PlanShape) -> Result<(), Error> {
        let name = format!("{}-{nth}", self.name);
        let execution = ExecutionId::new(&format!("exec_{name}"));
        let identity = ExecutionIdentity { tenant: TenantId::new(TENANT), execution };
        // Some are driven by the process that opens them, some by the one that claims them.
        let is_own = nth.is_multiple_of(2);
        let Some(run) = self.open(&identity, nth, shape, is_own)? else { return Ok(()) };
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
        self.drive(run, ExecutionInput::Start)?;
        // This one is answered only after a takeover.
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
        identity: &ExecutionIdentity,
        nth: usize,
        shape: PlanShape,
        is_own: bool,
    ) -> Result<Option<DrivenExecution>, Error> {
        let inputs = Arc::new(shape.inputs(if nth == 0 { noise() } else { "" }));
        let (plan, now) = (shape.plan(), self.tick());
        let opened =
            opening::opening(&plan, 1, Driver::Server, inputs, &identity.execution, Actor::agent("pilot"), now);
        let opened = opened.expect("the inputs are what the plan asks for");
        let execution = Execution::open(identity.clone(), &opened).expect("a journal begins with its opening");
        let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
        let entries = self.seal(&mut chain, &[opened]);
        let what = asked(&identity.execution, &entries, &[]);
        let opening = ExecutionOpening {
            identity: identity.clone(),
            plan: PlanId::new(&format!("plan_{}", shape.name())),
            request: is_own.then(|| IdempotentRequest { key: identity.execution.to_string(), digest: plan.hash }),
            worker: is_own.then(|| self.worker.clone()),
            entries,
            row: execution.row(),
        };
        for _ in 0..TRIES {
            let again = opening.clone();
            match self.ask(what.clone(), |store| store.open(again)) {
                Ok(opened) => {
                    if let OpenOutcome::New { lease: Some(lease) } = opened {
                        self.hold(lease);
                    }
                    return Ok(Some(DrivenExecution { execution, chain, commands: Vec::new() }));
                }
                Err(error) => self.weigh(error)?,
            }
        }
        Ok(None)
    }

    fn post(&mut self, identity: &ExecutionIdentity, text: String) -> Result<(), Error> {
        for _ in 0..TRIES {
            let command = NewCommand {
                identity: identity.clone(),
                request: Some(IdempotentRequest { key: text.clone(), digest: Hash::ZERO }),
                actor: Actor::person("operator"),
                at: self.tick(),
                bytes: text.clone().into_bytes(),
            };
            let what = StoreRequest::Command { execution: identity.execution.to_string(), text: text.clone() };
            match self.ask(what, |store| store.enqueue(command)) {
                Ok(_) => return Ok(()),
                Err(error) => self.weigh(error)?,
            }
        }
        Ok(())
    }

    fn claim(&mut self) -> Result<(), Error> {
        let claim = ClaimRequest { worker: self.worker.clone(), now: self.tick(), limit: 32 };
        match wait(self.store.claim(claim)) {
            Ok(leases) => leases.into_iter().for_each(|lease| self.hold(lease)),
            Err(error) => self.weigh(error)?,
        }
        Ok(())
    }

    fn hold(&mut self, lease: Lease) {
        let execution = lease.identity.execution.clone();
        (self.tell)(AccountNote::Leased { execution: execution.to_string(), epoch: lease.epoch });
        self.leases.insert(execution, lease);
    }

    fn load(&mut self, identity: &ExecutionIdentity) -> Result<Option<DrivenExecution>, Error> {
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
            let ExecutionIdentity { tenant, execution: id } = identity.clone();
            let chain = HashChain::resume(tenant, id, loaded.head);
            return Ok(Some(DrivenExecution { execution, chain, commands: loaded.commands }));
        }
        Ok(None)
    }

    /// Drives it to the end, as far as the store allows.
    fn drive(&mut self, mut run: DrivenExecution, first: ExecutionInput) -> Result<(), Error> {
        let identity = run.execution.identity().clone();
        let mut inputs = VecDeque::from([first]);
        for turn in 0..TURNS_MAX {
            if turn == 1 {
                // Pending commands are answered together with the next input.
                let Some(again) = self.load(&identity)? else { return Ok(()) };
                run = again;
            }
            if inputs.is_empty() && run.commands.is_empty() {
                match run.execution.wake_at() {
                    _ if run.execution.outcome().is_some() => return Ok(()),
                    Some(when) => self.now = self.now.max(when),
                    None if run.execution.wants_room() => {}
                    None => return Ok(()),
                }
                inputs.push_back(ExecutionInput::Wake);
            }
            let now: Vec<ExecutionInput> = inputs.drain(..inputs.len().min(ANSWERS_MAX)).collect();
            let Some(answers) = self.turn(&mut run, &now)? else { return Ok(()) };
            inputs.extend(answers);
        }
        Ok(())
    }

    /// Records the consequences of the inputs, then makes the calls. `None` if another process has to continue.
    fn turn(
        &mut self,
        run: &mut DrivenExecution,
        inputs: &[ExecutionInput],
    ) -> Result<Option<Vec<ExecutionInput>>, Error> {
        let identity = run.execution.identity().clone();
        for _ in 0..TRIES {
            let Some(lease) = self.leases.get(&identity.execution).cloned() else { return Ok(None) };
            let expected = run.chain.head();
            let mut decided = self.decide(run, inputs.iter().cloned().map(|input| (Actor::rutter(), input)));
            let asked_for = run.commands.iter().map(|command| {
                let decision = text_of(command);
                let input =
                    ExecutionInput::RecordDecision { step: None, decision, reason: "asked".to_owned(), details: None };
                (command.actor.clone(), input)
            });
            let asked_for: Vec<_> = asked_for.collect();
            let more = self.decide(run, asked_for.into_iter());
            decided.0.extend(more.0);
            decided.1.extend(more.1);
            let (records, answers) = decided;
            if records.is_empty() && run.commands.is_empty() {
                return Ok(Some(answers));
            }
            let entries = self.seal(&mut run.chain, &records);
            let what = asked(&identity.execution, &entries, &run.commands);
            let consumed = run.commands.iter().map(|stored_command| stored_command.number).collect();
            let append = AppendRequest {
                lease,
                expected,
                entries,
                row: run.execution.row(),
                decided_commands: consumed,
                refused_keys: Vec::new(),
            };
            match self.ask(what, |store| store.append(append)) {
                Ok(_) => {
                    run.commands.clear();
                    return Ok(Some(answers));
                }
                Err(Error::Fenced { .. }) => {
                    self.leases.remove(&identity.execution);
                    return Ok(None);
                }
                Err(error) => self.weigh(error)?,
            }
            let ours = run.chain.head();
            let Some(found) = self.load(&identity)? else { return Ok(None) };
            *run = found;
            if run.chain.head() == ours && ours != expected {
                return Ok(Some(answers));
            }
        }
        Ok(None)
    }

    /// The consequences of inputs: records, and the responses of the tools.
    fn decide(
        &mut self,
        run: &mut DrivenExecution,
        inputs: impl Iterator<Item = (Actor, ExecutionInput)>,
    ) -> (Vec<EventRecord>, Vec<ExecutionInput>) {
        let (mut records, mut answers) = (Vec::new(), Vec::new());
        for (actor, input) in inputs {
            let moment = DecisionContext { now: self.tick(), room: ROOM };
            match run.execution.decide(&actor, input, moment) {
                Ok(decision) => {
                    records.extend(decision.records);
                    answers.extend(decision.calls.iter().map(shapes::answer));
                }
                // Another process has done it meanwhile.
                Err(decide::Error::Refused(_)) => {}
                Err(decide::Error::Broken(broken)) => panic!("the core contradicts itself: {broken}"),
            }
        }
        (records, answers)
    }

    fn seal(&mut self, chain: &mut HashChain, records: &[EventRecord]) -> Vec<SealedEntry> {
        let (name, counter) = (self.name.as_bytes(), &mut self.salts);
        let mut salts = || {
            *counter += 1;
            let hash = Hash::of_fields("salt", &[name, &counter.to_be_bytes()]);
            PayloadSalt(*hash.0.first_chunk().expect("a hash is longer"))
        };
        let sealed = records.iter().map(|record| SealedEntry::seal(chain, record, &mut salts));
        sealed.collect::<Result<_, _>>().expect("nothing was erased")
    }

    /// Sends a request to the store, and notes it and the reply.
    fn ask<T>(
        &mut self,
        what: StoreRequest,
        ask: impl FnOnce(&'a SqliteStore) -> StoreFuture<'a, T>,
    ) -> Result<T, Error> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        (self.tell)(AccountNote::Asked { number, what });
        let answer = wait(ask(self.store));
        let store_answer = match &answer {
            Ok(_) => StoreAnswer::Yes,
            Err(Error::Unknown(_)) => StoreAnswer::Maybe,
            Err(error) => StoreAnswer::No { code: error.code().to_owned() },
        };
        (self.tell)(AccountNote::Answered { number, answer: store_answer });
        answer
    }

    /// Returns an error after which nothing can be written; after another one, time passes.
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

fn asked(execution: &ExecutionId, entries: &[SealedEntry], commands: &[StoredCommand]) -> StoreRequest {
    StoreRequest::Entries {
        execution: execution.to_string(),
        first: entries.first().map_or(0, |sealed| sealed.entry.seq),
        hashes: entries.iter().map(|sealed| sealed.entry.hash).collect(),
        consumed: commands.iter().map(text_of).collect(),
    }
}

pub(crate) fn text_of(command: &StoredCommand) -> String {
    String::from_utf8_lossy(&command.bytes).into_owned()
}

/// Text without repetition, always the same.
fn noise() -> &'static str {
    static NOISE: OnceLock<String> = OnceLock::new();
    NOISE.get_or_init(|| {
        let hashes = (0_u64..).map(|nth| Hash::of(&[&nth.to_be_bytes()]).to_string());
        hashes.take(LARGE_BYTES.div_ceil(64)).collect()
    })
}
