//! What everybody asks: start, signal, look, wait, listen, close.

use crate::answers::Answers;
use crate::berths::Berths;
use crate::clock::Clock;
use crate::defaults;
use crate::drive::{Drive, Line, Pending, is_settled};
use crate::error::Error;
use crate::event::{Happening, Live};
use crate::fleet::{Fleet, Mail};
use crate::logbook::{self, Logbook};
use crate::name;
use crate::options::{DECISION_MAX, HAPPENINGS_MAX, Options, RETRY_AFTER};
use crate::signal::{Said, Sheet, Signal};
use crate::worker;
use rutter_core::actor::Actor;
use rutter_core::execution::admit::opening;
use rutter_core::execution::input::{Decision, Input};
use rutter_core::execution::view::{Status, View};
use rutter_core::execution::{Execution, Identity, decide};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::chain::Chain;
use rutter_core::plan::Driver;
use rutter_core::port;
use rutter_core::port::journal::{Journal, Letter, NewLetter, Opened, Opening, Posted, Request};
use rutter_core::port::query::{ExecutionFilter, ExecutionSummary, Page, Query};
use rutter_core::port::tools::Tools;
use rutter_core::time::{Millis, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, broadcast, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Carries executions out. Cheap to clone; [`Engine::close`] ends it.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    worker: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// What the loops share.
pub(crate) struct Shared {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) query: Arc<dyn Query>,
    pub(crate) tools: Arc<dyn Tools>,
    pub(crate) clock: Clock,
    pub(crate) options: Options,
    /// Where the loops run, whoever starts them.
    pub(crate) runtime: Handle,
    /// The loops, so that the end can wait for theirs.
    pub(crate) loops: TaskTracker,
    pub(crate) fleet: Fleet,
    pub(crate) answers: Answers,
    /// Something may be due.
    pub(crate) nudge: Notify,
    /// Accepted, and not in memory yet.
    pub(crate) backlog: AtomicUsize,
    /// Until when this worker may believe that it holds what it holds.
    lease_until: AtomicI64,
    happenings: broadcast::Sender<Happening>,
    broken: Mutex<BTreeMap<ExecutionId, String>>,
    /// Nothing new begins.
    pub(crate) closing: CancellationToken,
    /// What is under way is asked to end.
    pub(crate) hurry: CancellationToken,
    /// Nobody waits for anything any more.
    pub(crate) stopped: CancellationToken,
}

/// A plan to be carried out.
#[derive(Clone, Debug)]
pub struct Start {
    pub tenant: TenantId,
    pub plan: PlanId,
    /// The newest, if none is named.
    pub revision: Option<u32>,
    pub inputs: Arc<Value>,
    pub driver: Driver,
    pub actor: Actor,
    /// Whoever asks twice with one key gets the execution of the first time.
    pub request: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    pub execution: ExecutionId,
    pub is_new: bool,
}

impl Engine {
    /// Starts driving: what earlier processes left is taken up at once.
    pub async fn run(
        journal: Arc<dyn Journal>,
        query: Arc<dyn Query>,
        tools: Arc<dyn Tools>,
        clock: Clock,
        options: Options,
    ) -> Result<Engine, Error> {
        let (happenings, _) = broadcast::channel(HAPPENINGS_MAX);
        let shared = Arc::new(Shared {
            journal,
            query,
            tools,
            clock,
            options,
            runtime: Handle::current(),
            loops: TaskTracker::new(),
            fleet: Fleet::default(),
            answers: Answers::default(),
            nudge: Notify::new(),
            backlog: AtomicUsize::new(0),
            lease_until: AtomicI64::new(i64::MIN),
            happenings,
            broken: Mutex::default(),
            closing: CancellationToken::new(),
            hurry: CancellationToken::new(),
            stopped: CancellationToken::new(),
        });
        worker::renew(&shared).await?;
        let worker = tokio::spawn(worker::run(Arc::clone(&shared)));
        Ok(Engine { shared, worker: Arc::new(Mutex::new(Some(worker))) })
    }

    /// Begins an execution of a saved plan. It is on record when this returns. Whoever stops waiting for the answer
    /// stops nothing else.
    pub async fn start(&self, start: Start) -> Result<Started, Error> {
        let engine = self.clone();
        self.to_its_end(async move { engine.open(start).await }).await
    }

    /// Carries something through even if nobody waits for it any more: half of it would leave an execution that is
    /// held and driven by nobody.
    async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        self.shared.runtime.spawn(work).await.unwrap_or(Err(Error::Closing))
    }

    async fn open(&self, start: Start) -> Result<Started, Error> {
        let shared = &self.shared;
        if shared.closing.is_cancelled() {
            return Err(Error::Closing);
        }
        let saved = shared.query.plan(&start.tenant, &start.plan, start.revision).await?;
        let missing = || port::Error::NotFound { what: "plan", id: start.plan.to_string() };
        let plan = saved.ok_or_else(missing)?.plan;
        let now = shared.clock.now();
        let id = ExecutionId::new(&name::fresh("exec", now));
        let identity = Identity { tenant: start.tenant, execution: id.clone() };
        let inputs = match &plan.inputs {
            Some(schema) => defaults::filled(schema, &start.inputs),
            None => start.inputs,
        };
        if shared.tools.redactor().value(&inputs) != inputs {
            return Err(Error::Secret);
        }
        let request = start.request.map(|key| {
            let digest = Hash::of_fields(
                "rutter/start/v1",
                &[&plan.hash.0, inputs.to_string().as_bytes(), &[start.driver as u8]],
            );
            Request { key, digest }
        });
        let opened = opening(&plan, start.driver, inputs, &id, start.actor.clone(), now)?;
        let mut execution =
            Execution::open(identity.clone(), &opened).map_err(|error| broken(&id, &error))?;

        let is_full = shared.fleet.len() >= shared.options.executions_max;
        if is_full && shared.backlog.load(Ordering::Relaxed) >= shared.options.backlog_max {
            return Err(Error::Busy { retry_after: RETRY_AFTER });
        }
        let line = Line::of(&execution);
        let mut records = vec![opened];
        let mut begun = Pending::default();
        if !is_full {
            let mut berths = Berths {
                tools: &*shared.tools,
                applicant: &line.applicant,
                is_closed: false,
                granted: Vec::new(),
                again: None,
            };
            let decided = execution.decide_within(&start.actor, Input::Start, now, &mut berths);
            begun.granted = berths.granted;
            match decided {
                Ok(Decision { records: more, calls }) => {
                    records.extend(more);
                    begun.calls = calls;
                }
                Err(decide::Error::Refused(refusal)) => return Err(refusal.into()),
                Err(decide::Error::Broken(illegal)) => return Err(broken(&id, &illegal)),
            }
        }
        let mut chain = Chain::new(identity.tenant.clone(), id.clone());
        let opening = Opening {
            identity: identity.clone(),
            plan: start.plan,
            request,
            worker: (!is_full).then(|| shared.options.worker.clone()),
            entries: logbook::seal(&mut chain, &records)?,
            row: execution.row(),
        };
        match shared.journal.open(opening).await.map_err(busy)? {
            Opened::Already { execution } => Ok(Started { execution, is_new: false }),
            Opened::New { lease } => {
                let live = Live::Recorded { first: 1, records: records.into(), status: execution.status() };
                shared.tell(Happening { identity: identity.clone(), live });
                match lease.and_then(|lease| Some((lease, shared.fleet.enter(&identity)?))) {
                    Some((lease, mail)) => {
                        let logbook = Logbook { journal: Arc::clone(&shared.journal), lease, chain };
                        let drive = Drive::new(Arc::clone(shared), execution, logbook, mail, line);
                        let keeping = Arc::clone(shared);
                        let driving = async move { worker::keep(keeping, drive.begin(begun).await).await };
                        shared.loops.spawn_on(driving, &shared.runtime);
                    }
                    None => {
                        shared.backlog.fetch_add(1, Ordering::Relaxed);
                        shared.nudge.notify_one();
                    }
                }
                Ok(Started { execution: id, is_new: true })
            }
        }
    }

    /// Asks something of an execution. Answers when that is decided and on record.
    pub async fn signal(
        &self,
        identity: &Identity,
        actor: Actor,
        signal: Signal,
        request: Option<String>,
    ) -> Result<(), Error> {
        self.signal_as_seen(identity, actor, signal, request, None).await
    }

    /// The same, refused when the execution has other than so many entries by then.
    pub async fn signal_as_seen(
        &self,
        identity: &Identity,
        actor: Actor,
        signal: Signal,
        request: Option<String>,
        seen: Option<u64>,
    ) -> Result<(), Error> {
        let said = Said::Signal(signal.redacted(&self.shared.tools.redactor()));
        self.say(identity, actor, said, request, seen).await
    }

    /// Puts what somebody says on record, and waits until it is decided.
    pub(crate) async fn say(
        &self,
        identity: &Identity,
        actor: Actor,
        said: Said,
        request: Option<String>,
        seen: Option<u64>,
    ) -> Result<(), Error> {
        let shared = &self.shared;
        let invalid = |error: serde_json::Error| port::Error::Invalid(error.to_string());
        let words = serde_json::to_vec(&said).map_err(invalid)?;
        let bytes = serde_json::to_vec(&Sheet { key: request.clone(), seen, said }).map_err(invalid)?;
        let request = request.map(|key| {
            let execution = identity.execution.as_str().as_bytes();
            Request { key, digest: Hash::of_fields("rutter/signal/v1", &[execution, &words]) }
        });
        let at = shared.clock.now();
        let new = NewLetter { identity: identity.clone(), request, actor, at, bytes };
        let engine = self.clone();
        let Some(number) = self.to_its_end(async move { engine.post(new).await }).await? else {
            return Ok(());
        };
        let decided = shared.answers.of(number);
        match tokio::time::timeout(Duration::from_millis(DECISION_MAX.0), decided).await {
            Ok(Ok(decided)) => Ok(decided?),
            Ok(Err(_)) | Err(_) => {
                shared.answers.forget(number);
                Err(self.why_not(identity).unwrap_or(Error::Undecided))
            }
        }
    }

    /// Puts a letter on record and hands it to whoever drives the execution; `None` when it came before.
    async fn post(&self, new: NewLetter) -> Result<Option<u64>, Error> {
        let NewLetter { identity, actor, at, bytes, .. } = new.clone();
        let number = match self.shared.journal.post(new).await.map_err(busy)? {
            Posted::Already => return Ok(None),
            Posted::New { letter } => letter,
        };
        let letter = Letter { number, actor, at, bytes };
        if self.shared.fleet.deliver(&identity, Mail::Letter(letter)).is_err() {
            self.shared.nudge.notify_one();
        }
        Ok(Some(number))
    }

    /// Looks at an execution as it is now.
    pub async fn look<T: Send + 'static>(
        &self,
        identity: &Identity,
        look: impl FnOnce(&Execution) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        // Whoever went away does not want to know.
        let looking = Box::new(move |execution: &Execution| drop(sender.send(look(execution))));
        match self.shared.fleet.deliver(identity, Mail::Look(looking)) {
            Ok(()) => {}
            Err(Mail::Look(looking)) => {
                let loaded = self.shared.journal.load(identity).await?;
                let execution = Execution::replay(identity.clone(), &loaded.records)
                    .map_err(|error| broken(&identity.execution, &error))?;
                looking(&execution);
            }
            Err(Mail::Letter(_) | Mail::Wait(_) | Mail::Report(_)) => return Err(Error::Undecided),
        }
        receiver.await.map_err(|_| Error::Closing)
    }

    pub async fn view(&self, identity: &Identity) -> Result<View, Error> {
        self.look(identity, Execution::view).await
    }

    /// What somebody who takes over needs to know, in a few lines.
    pub async fn brief(&self, identity: &Identity) -> Result<String, Error> {
        self.look(identity, Execution::brief).await
    }

    /// Waits until an execution has ended or needs somebody, at the longest for a span. `None` when that was too short.
    pub async fn wait(&self, identity: &Identity, span: Millis) -> Result<Option<Status>, Error> {
        let waiting = async {
            loop {
                let (sender, receiver) = oneshot::channel();
                if self.shared.fleet.deliver(identity, Mail::Wait(sender)).is_ok()
                    && let Ok(status) = receiver.await
                {
                    return Ok(status);
                }
                // It is not in memory, or has just left it.
                let status = self.summary(identity).await?.row.status;
                if is_settled(status) {
                    return Ok(status);
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        match tokio::time::timeout(Duration::from_millis(span.0), waiting).await {
            Ok(status) => status.map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The newest executions that fit, as many as fit on a page.
    pub async fn executions(
        &self,
        tenant: &TenantId,
        filter: ExecutionFilter,
    ) -> Result<Vec<ExecutionSummary>, Error> {
        let page = Page::first(rutter_core::limits::PAGE_MAX);
        Ok(self.shared.query.executions(tenant, filter, page).await?.items)
    }

    async fn summary(&self, identity: &Identity) -> Result<ExecutionSummary, Error> {
        let missing = || port::Error::NotFound { what: "execution", id: identity.execution.to_string() };
        Ok(self.shared.query.execution(identity).await?.ok_or_else(missing)?)
    }

    /// Hears what happens from now on. One that is too slow is told how much it missed, and finds that in the journal.
    pub fn listen(&self) -> broadcast::Receiver<Happening> {
        self.shared.happenings.subscribe()
    }

    /// Why an execution will not go on by itself, if it is our fault.
    fn why_not(&self, identity: &Identity) -> Option<Error> {
        let broken = self.shared.broken.lock().expect("nobody panics while holding it");
        let why = broken.get(&identity.execution)?.clone();
        Some(Error::Broken { execution: identity.execution.to_string(), why })
    }

    /// Executions this process cannot carry on, each with the reason.
    pub fn broken(&self) -> BTreeMap<ExecutionId, String> {
        self.shared.broken.lock().expect("nobody panics while holding it").clone()
    }

    /// Executions in memory.
    pub fn live(&self) -> usize {
        self.shared.fleet.len()
    }

    /// Whether this worker may drive executions now: it is not being closed, and its right has not run out.
    pub fn may_drive(&self) -> bool {
        !self.shared.closing.is_cancelled() && !self.shared.lease_has_ended()
    }

    /// Executions that were accepted and wait for a place in memory.
    pub fn backlog(&self) -> usize {
        self.shared.backlog.load(Ordering::Relaxed)
    }

    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    /// Begins nothing new, lets what is under way end, and gives back what it holds.
    pub async fn close(&self) {
        let shared = &self.shared;
        shared.closing.cancel();
        shared.loops.close();
        if !self.all_end_within(shared.options.drain).await {
            shared.hurry.cancel();
            self.all_end_within(HURRY_MAX).await;
        }
        shared.stopped.cancel();
        let worker = self.worker.lock().expect("nobody panics while holding it").take();
        if let Some(worker) = worker {
            // One that panicked has said so.
            let _ = worker.await;
        }
    }

    async fn all_end_within(&self, span: Millis) -> bool {
        tokio::time::timeout(Duration::from_millis(span.0), self.shared.loops.wait()).await.is_ok()
    }
}

/// How long to wait for an execution that is on its way into memory.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long a call that was asked to end may take for it: a program has ten seconds before it is killed.
const HURRY_MAX: Millis = Millis::seconds(13);

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn tell(&self, happening: Happening) {
        // It is no mistake that nobody listens.
        let _ = self.happenings.send(happening);
    }

    pub(crate) fn broken(&self, identity: Identity, why: String) {
        self.broken.lock().expect("nobody panics while holding it").insert(identity.execution, why);
    }

    pub(crate) fn lease_has_ended(&self) -> bool {
        self.clock.now().0 > self.lease_until.load(Ordering::Acquire)
    }

    pub(crate) fn lease_renewed(&self, until: Timestamp) {
        self.lease_until.store(until.0, Ordering::Release);
    }
}

fn broken(execution: &ExecutionId, why: &dyn std::fmt::Display) -> Error {
    Error::Broken { execution: execution.to_string(), why: why.to_string() }
}

fn busy(error: port::Error) -> Error {
    match error {
        port::Error::Overloaded => Error::Busy { retry_after: RETRY_AFTER },
        error => Error::Store(error),
    }
}
