//! The engine's interface: start, command, inspect, wait, subscribe, close.

use crate::active_executions::{ActiveExecutions, LoopMessage};
use crate::clock::SystemClock;
use crate::command::{CommandBody, CommandEnvelope, ReplanCommand, redacted};
use crate::command_replies::CommandReplies;
use crate::control::ControlAction;
use crate::error::Error;
use crate::execution_loop::{ExecutionLoop, PendingCommit, WaiterHandle, is_settled};
use crate::gaps::GapRecord;
use crate::journal_writer::{self, JournalWriter};
use crate::limit_counts;
use crate::name;
use crate::options::{DECISION_MAX, EngineOptions, RETRY_AFTER, UPDATES_MAX};
use crate::permits::PermitSource;
use crate::report::AgentReport;
use crate::shared::EngineShared;
use crate::update::{ExecutionUpdate, UpdateContent};
use crate::worker;
use rutter_core::actor::Actor;
use rutter_core::canonical::canonical;
use rutter_core::execution::input::{Decision, DecisionTerms, ExecutionInput};
use rutter_core::execution::opening::opening;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus};
use rutter_core::execution::{Execution, ExecutionIdentity, decide};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::chain::HashChain;
use rutter_core::plan::{Driver, inputs};
use rutter_core::port;
use rutter_core::port::journal::{
    EnqueueOutcome, ExecutionOpening, IdempotentRequest, Journal, NewCommand, OpenOutcome, StoredCommand,
};
use rutter_core::port::query::{ExecutionFilter, ExecutionSummary, Pagination, StoreQuery};
use rutter_core::port::register::Register;
use rutter_core::port::tools::ToolGateway;
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
    pub(crate) shared: Arc<EngineShared>,
    worker: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// A plan to be carried out.
#[derive(Clone, Debug)]
pub struct StartRequest {
    pub tenant: TenantId,
    pub plan: PlanId,
    /// The newest, if none is named.
    pub revision: Option<u32>,
    pub inputs: Arc<Value>,
    pub driver: Driver,
    pub actor: Actor,
    /// An idempotency key and the digest of the request: repeated, it gets the execution of the first.
    pub request: Option<IdempotentRequest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedExecution {
    pub execution: ExecutionId,
    pub is_new: bool,
}

impl Engine {
    /// Starts the engine; executions that earlier processes left are resumed at once.
    pub async fn run(
        journal: Arc<dyn Journal>,
        query: Arc<dyn StoreQuery>,
        register: Arc<dyn Register>,
        tools: Arc<dyn ToolGateway>,
        clock: SystemClock,
        options: EngineOptions,
    ) -> Result<Engine, Error> {
        let gaps = GapRecord::open(register, clock, options.last_entry).await?;
        let (updates, _) = broadcast::channel(UPDATES_MAX);
        let windows = limit_counts::recount(&*journal, &*query, &options.policy, clock.now()).await?;
        let shared = Arc::new(EngineShared {
            journal,
            query,
            tools,
            clock,
            gaps,
            options,
            runtime: Handle::current(),
            loops: TaskTracker::new(),
            active_executions: ActiveExecutions::default(),
            command_replies: CommandReplies::default(),
            recheck: Notify::new(),
            backlog: AtomicUsize::new(0),
            lease_until: AtomicI64::new(i64::MIN),
            updates,
            windows: Mutex::new(windows),
            broken: Mutex::default(),
            signs: Mutex::default(),
            held: AtomicUsize::new(0),
            closing: CancellationToken::new(),
            cancel_calls: CancellationToken::new(),
            stopped: CancellationToken::new(),
        });
        worker::renew(&shared).await?;
        let worker = tokio::spawn(worker::run(Arc::clone(&shared)));
        Ok(Engine { shared, worker: Arc::new(Mutex::new(Some(worker))) })
    }

    /// Starts an execution of a saved plan. It is recorded when this returns; dropping the future does not stop it.
    pub async fn start(&self, start: StartRequest) -> Result<StartedExecution, Error> {
        let engine = self.clone();
        self.run_to_completion(async move { engine.open(start).await }).await
    }

    /// Runs work to its end even if the caller stops waiting: stopping halfway would leave an execution leased but not
    /// driven.
    async fn run_to_completion<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let ended = self.shared.runtime.spawn(work).await;
        // A panic, which has been reported: it may have written before.
        ended.unwrap_or_else(|panicked| Err(Error::Store(port::Error::Unknown(panicked.to_string()))))
    }

    async fn open(&self, start: StartRequest) -> Result<StartedExecution, Error> {
        let shared = &self.shared;
        if shared.closing.is_cancelled() {
            return Err(Error::Closing);
        }
        let saved = shared.query.plan(&start.tenant, &start.plan, start.revision).await?;
        let missing = || port::Error::NotFound { what: "plan", id: start.plan.to_string() };
        let saved = saved.ok_or_else(missing)?;
        let (plan, revision) = (saved.plan, saved.summary.revision);
        let now = shared.now();
        let id = ExecutionId::new(&name::fresh("exec", now));
        let identity = ExecutionIdentity { tenant: start.tenant, execution: id.clone() };
        let inputs = match &plan.inputs {
            Some(schema) => inputs::filled(schema, &start.inputs),
            None => start.inputs,
        };
        if shared.tools.redactor().value(&inputs) != inputs {
            return Err(Error::Secret);
        }
        let opened = opening(&plan, revision, start.driver, inputs, &id, start.actor.clone(), now)?;
        let mut execution = Execution::open(identity.clone(), &opened).map_err(|error| broken(&id, &error))?;

        let is_full = shared.active_executions.len() >= shared.options.executions_max;
        if is_full && shared.backlog.load(Ordering::Relaxed) >= shared.options.backlog_max {
            return Err(Error::Busy { retry_after: RETRY_AFTER });
        }
        let line = WaiterHandle::of(&execution);
        let mut records = vec![opened];
        let mut begun = PendingCommit::default();
        if !is_full {
            let mut permits = PermitSource::new(shared, &line.waiter, &id, now);
            let terms = DecisionTerms { now, room: &mut permits, policy: &shared.options.policy };
            let decided = execution.decide_within(&start.actor, ExecutionInput::Start, terms);
            begun.granted = permits.granted;
            match decided {
                Ok(Decision { records: more, calls }) => {
                    records.extend(more);
                    begun.calls = calls;
                }
                Err(decide::Error::Refused(refusal)) => return Err(refusal.into()),
                Err(decide::Error::Broken(illegal)) => return Err(broken(&id, &illegal)),
            }
        }
        let mut chain = HashChain::new(identity.tenant.clone(), id.clone());
        let opening = ExecutionOpening {
            identity: identity.clone(),
            plan: start.plan.clone(),
            request: start.request,
            worker: (!is_full).then(|| shared.options.worker.clone()),
            entries: journal_writer::seal(&mut chain, &records)?,
            row: execution.row(),
        };
        match shared.journal.open(opening).await.map_err(busy)? {
            OpenOutcome::Already { execution } => Ok(StartedExecution { execution, is_new: false }),
            OpenOutcome::New { lease } => {
                let live = UpdateContent::Recorded { first: 1, records: records.into(), status: execution.status() };
                shared.publish(ExecutionUpdate { identity: identity.clone(), content: live });
                match lease.and_then(|lease| Some((lease, shared.active_executions.register(&identity)?))) {
                    Some((lease, message)) => {
                        let journal_writer = JournalWriter { journal: Arc::clone(&shared.journal), lease, chain };
                        let drive = ExecutionLoop::new(
                            Arc::clone(shared),
                            start.plan,
                            execution,
                            journal_writer,
                            message,
                            line,
                        );
                        let keeping = Arc::clone(shared);
                        let driving =
                            async move { worker::resume_while_leased(keeping, drive.begin(begun).await).await };
                        shared.loops.spawn_on(driving, &shared.runtime);
                    }
                    None => {
                        shared.backlog.fetch_add(1, Ordering::Relaxed);
                        shared.recheck.notify_one();
                    }
                }
                Ok(StartedExecution { execution: id, is_new: true })
            }
        }
    }

    /// Sends an input to an execution. Returns when it is decided and recorded.
    pub async fn command(
        &self,
        identity: &ExecutionIdentity,
        actor: Actor,
        input: ExecutionInput,
        request: Option<String>,
    ) -> Result<(), Error> {
        let body = CommandBody::Input(redacted(input, &self.shared.tools.redactor()));
        self.submit_command(identity, actor, body, request, None).await
    }

    /// Records what an agent reports: all of it, or nothing.
    pub async fn report(
        &self,
        identity: &ExecutionIdentity,
        actor: Actor,
        report: AgentReport,
        request: Option<String>,
    ) -> Result<(), Error> {
        let body = CommandBody::Report { report: report.redacted(&self.shared.tools.redactor()) };
        self.submit_command(identity, actor, body, request, None).await
    }

    /// Asks an execution to follow a saved revision; refused when it has other than `seen` entries by then.
    pub async fn follow_revision(
        &self,
        identity: &ExecutionIdentity,
        actor: Actor,
        mut command: ReplanCommand,
        request: Option<IdempotentRequest>,
        seen: Option<u64>,
    ) -> Result<(), Error> {
        command.reason = self.shared.tools.redactor().text(&command.reason).into_owned();
        self.submit_request(identity, actor, CommandBody::Replan(command), request, seen).await
    }

    /// Stores a command, and waits until it is decided.
    pub(crate) async fn submit_command(
        &self,
        identity: &ExecutionIdentity,
        actor: Actor,
        body: CommandBody,
        request: Option<String>,
        seen: Option<u64>,
    ) -> Result<(), Error> {
        let invalid = |error: serde_json::Error| port::Error::Invalid(error.to_string());
        let words = canonical(&serde_json::to_value(&body).map_err(invalid)?);
        let request = request.map(|key| {
            let execution = identity.execution.as_str().as_bytes();
            IdempotentRequest { key, digest: Hash::of_fields("rutter/signal/v2", &[execution, words.as_bytes()]) }
        });
        self.submit_request(identity, actor, body, request, seen).await
    }

    /// The same for a request whose digest is not over the command it became.
    async fn submit_request(
        &self,
        identity: &ExecutionIdentity,
        actor: Actor,
        body: CommandBody,
        request: Option<IdempotentRequest>,
        seen: Option<u64>,
    ) -> Result<(), Error> {
        let shared = &self.shared;
        let invalid = |error: serde_json::Error| port::Error::Invalid(error.to_string());
        let key = request.as_ref().map(|request| request.key.clone());
        let bytes = serde_json::to_vec(&CommandEnvelope { key, seen, proof: actor.proof, body }).map_err(invalid)?;
        let at = shared.clock.now();
        let new = NewCommand { identity: identity.clone(), request, actor, at, bytes };
        let engine = self.clone();
        let Some(number) = self.run_to_completion(async move { engine.enqueue(new).await }).await? else {
            return Ok(());
        };
        let decided = shared.command_replies.wait_for(number);
        match tokio::time::timeout(Duration::from_millis(DECISION_MAX.0), decided).await {
            Ok(Ok(decided)) => Ok(decided?),
            Ok(Err(_)) | Err(_) => {
                shared.command_replies.forget(number);
                Err(self.broken_error(identity).unwrap_or(Error::Undecided))
            }
        }
    }

    /// Stores a command and sends it to the execution's loop; `None` if the same request came before.
    async fn enqueue(&self, new: NewCommand) -> Result<Option<u64>, Error> {
        let NewCommand { identity, actor, at, bytes, .. } = new.clone();
        let number = match self.shared.journal.enqueue(new).await.map_err(busy)? {
            EnqueueOutcome::Already => return Ok(None),
            EnqueueOutcome::New { command: stored_command } => stored_command,
        };
        let envelope = StoredCommand { number, actor, at, bytes };
        if self.shared.active_executions.send(&identity, LoopMessage::Command(envelope)).is_err() {
            self.shared.recheck.notify_one();
        }
        Ok(Some(number))
    }

    /// Notices that an agent is alive. A sign early in its lease is worth no entry, and remembered until the lease ends.
    pub async fn notice_agent(&self, identity: &ExecutionIdentity, actor: Actor) -> Result<(), Error> {
        let (seen, now) = (actor.clone(), self.shared.now());
        let look =
            move |execution: &Execution| (execution.is_sign_of_life(&seen), execution.is_sign_of_life_due(&seen, now));
        match self.inspect(identity, look).await? {
            (_, true) => self.command(identity, actor, ExecutionInput::AgentSeen { remembered: false }, None).await,
            (true, false) => {
                let mut signs = self.shared.signs.lock().expect("no thread panics while holding it");
                signs.insert(identity.execution.clone(), (actor, now));
                Ok(())
            }
            (false, false) => Ok(()),
        }
    }

    /// Reads the current state of an execution.
    pub async fn inspect<T: Send + 'static>(
        &self,
        identity: &ExecutionIdentity,
        look: impl FnOnce(&Execution) -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        // The caller may have gone.
        let looking = Box::new(move |execution: &Execution| drop(sender.send(look(execution))));
        match self.shared.active_executions.send(identity, LoopMessage::Inspect(looking)) {
            Ok(()) => {}
            Err(LoopMessage::Inspect(looking)) => {
                let loaded = self.shared.journal.load(identity).await?;
                let execution = Execution::replay(identity.clone(), &loaded.records)
                    .map_err(|error| broken(&identity.execution, &error))?;
                looking(&execution);
            }
            Err(LoopMessage::Command(_) | LoopMessage::Wait(_) | LoopMessage::Report(_)) => {
                return Err(Error::Undecided);
            }
        }
        receiver.await.map_err(|_| Error::Closing)
    }

    pub async fn view(&self, identity: &ExecutionIdentity) -> Result<ExecutionSnapshot, Error> {
        self.inspect(identity, Execution::view).await
    }

    /// A summary in a few lines, for an agent or person who takes over.
    pub async fn brief(&self, identity: &ExecutionIdentity) -> Result<String, Error> {
        self.inspect(identity, Execution::brief).await
    }

    /// Waits until an execution ends or waits for a person or agent; `None` if `span` passes first.
    pub async fn wait(&self, identity: &ExecutionIdentity, span: Millis) -> Result<Option<ExecutionStatus>, Error> {
        let waiting = async {
            loop {
                let (sender, receiver) = oneshot::channel();
                if self.shared.active_executions.send(identity, LoopMessage::Wait(sender)).is_ok()
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

    /// The newest executions that match, at most one page.
    pub async fn executions(&self, tenant: &TenantId, filter: ExecutionFilter) -> Result<Vec<ExecutionSummary>, Error> {
        let page = Pagination::first(rutter_core::limits::PAGE_MAX);
        Ok(self.shared.query.executions(tenant, filter, page).await?.items)
    }

    async fn summary(&self, identity: &ExecutionIdentity) -> Result<ExecutionSummary, Error> {
        let missing = || port::Error::NotFound { what: "execution", id: identity.execution.to_string() };
        Ok(self.shared.query.execution(identity).await?.ok_or_else(missing)?)
    }

    /// Subscribes to updates from now on. A slow receiver learns how many it missed, and finds them in the journal.
    pub fn subscribe(&self) -> broadcast::Receiver<ExecutionUpdate> {
        self.shared.updates.subscribe()
    }

    /// Why this process cannot continue an execution, if it cannot.
    fn broken_error(&self, identity: &ExecutionIdentity) -> Option<Error> {
        let broken = self.shared.broken.lock().expect("no thread panics while holding it");
        let why = broken.get(&identity.execution)?.clone();
        Some(Error::Broken { execution: identity.execution.to_string(), why })
    }

    /// Executions that this process cannot continue, each with the reason.
    pub fn broken(&self) -> BTreeMap<ExecutionId, String> {
        self.shared.broken.lock().expect("no thread panics while holding it").clone()
    }

    /// Executions in memory.
    pub fn active_count(&self) -> usize {
        self.shared.active_executions.len()
    }

    /// Whether this worker may drive executions now: it is not closing, and its lease has not expired.
    pub fn may_drive(&self) -> bool {
        !self.shared.closing.is_cancelled() && !self.shared.lease_has_ended()
    }

    /// Accepted executions that wait for capacity in memory.
    pub fn backlog(&self) -> usize {
        self.shared.backlog.load(Ordering::Relaxed)
    }

    pub fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub fn clock(&self) -> SystemClock {
        self.shared.clock
    }

    /// Starts nothing new, lets calls in flight end, and releases the leases.
    pub async fn close(&self) {
        let shared = &self.shared;
        shared.closing.cancel();
        shared.loops.close();
        if !self.all_end_within(shared.options.drain).await {
            shared.cancel_calls.cancel();
            self.all_end_within(CANCEL_CALLS_MAX).await;
        }
        shared.stopped.cancel();
        let worker = self.worker.lock().expect("no thread panics while holding it").take();
        if let Some(worker) = worker {
            // A panic has already been reported.
            let _ = worker.await;
        }
    }

    async fn all_end_within(&self, span: Millis) -> bool {
        tokio::time::timeout(Duration::from_millis(span.0), self.shared.loops.wait()).await.is_ok()
    }
}

impl Engine {
    /// Sends a command; refused if the execution has other than `seen` entries by then.
    pub async fn control(
        &self,
        identity: &ExecutionIdentity,
        actor: Actor,
        control: ControlAction,
        reason: String,
        request: Option<String>,
        seen: Option<u64>,
    ) -> Result<(), Error> {
        let redactor = self.shared.tools.redactor();
        let reason = redactor.text(&reason).into_owned();
        let body = CommandBody::Control { control: control.redacted(&redactor), reason };
        self.submit_command(identity, actor, body, request, seen).await
    }
}

/// The pause between two checks of an execution that is not in memory.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long a cancelled call may take to end: a program has ten seconds before it is killed.
const CANCEL_CALLS_MAX: Millis = Millis::seconds(13);

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("options", &self.shared.options).finish_non_exhaustive()
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
