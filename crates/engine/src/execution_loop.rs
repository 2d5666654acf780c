//! The loop of one execution: an input arrives, is decided, recorded, and then acted upon.
//!
//! Everything that is ready is decided before anything is written, so that the result of one step and the start of the
//! next are one append. A call is made only after its start is on the disk.

mod ending;
mod incoming;
mod reports;

use crate::active_executions::LoopMessage;
use crate::call_task::{CallEnded, run_call, withdrawn};
use crate::command_replies::CommandResult;
use crate::journal_writer::JournalWriter;
use crate::permits::{ExecutionWaiter, PermitSource};
use crate::shared::EngineShared;
use crate::update::{ExecutionUpdate, UpdateContent};
use rutter_core::actor::Actor;
use rutter_core::execution::hold::WorkerGap;
use rutter_core::execution::input::{Decision, DecisionTerms, ExecutionInput, ToolCall};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::execution::{Execution, ExecutionPhase, IllegalEvent, decide};
use rutter_core::id::{PartId, PlanId, StepId, ToolName};
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::plan::schema::CompiledSchema;
use rutter_core::port;
use rutter_core::port::journal::{Lease, StoredCommand};
use rutter_core::port::tools::{CallPermit, PermitWaiter, ToolCallId};
use rutter_core::time::Timestamp;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};

/// Why a loop ended before its execution did.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoopError {
    #[error(transparent)]
    Store(#[from] port::Error),
    #[error(transparent)]
    Broken(#[from] IllegalEvent),
}

/// Decisions that are not recorded yet.
#[derive(Default)]
pub(crate) struct PendingCommit {
    pub(crate) records: Vec<EventRecord>,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) granted: Vec<(ToolName, CallPermit)>,
    decided_commands: Vec<u64>,
    /// Keys of refused commands.
    refused_keys: Vec<String>,
    replies: Vec<(u64, CommandResult)>,
    /// Calls that wait until their ticket is recorded.
    recorded: Vec<oneshot::Sender<()>>,
    /// Answers to the questions of tools.
    answered: Vec<(PartId, u32, Option<Value>)>,
}

pub(crate) struct ExecutionLoop {
    shared: Arc<EngineShared>,
    plan: PlanId,
    execution: Execution,
    writer: JournalWriter,
    messages: mpsc::UnboundedReceiver<LoopMessage>,
    wakeup: Arc<Notify>,
    waiter: Arc<dyn PermitWaiter>,
    call_tasks: JoinSet<CallEnded>,
    active_calls: Vec<ToolCallId>,
    /// Commands that were decided here. One may arrive both from the store and as a message.
    seen: HashSet<u64>,
    waiting: Vec<oneshot::Sender<ExecutionStatus>>,
    /// Result schemas of the steps that declare one, compiled once.
    schemas: HashMap<StepId, Option<CompiledSchema>>,
    /// Calls that wait for the answer to a question of their tool.
    elicitation_replies: HashMap<(PartId, u32), oneshot::Sender<Option<Value>>>,
    /// Answers that were recorded before the resumed call could ask for them.
    early_answers: HashMap<(PartId, u32), Option<Value>>,
    pending: PendingCommit,
    /// When there may be capacity again, where that is known.
    room_at: Option<Timestamp>,
    decided_at: Timestamp,
    /// When it last recorded something or was last inspected.
    active_at: Timestamp,
    is_closing: bool,
    /// Gaps that it was compared with.
    gaps_seen: usize,
    /// It is not decided yet what became of the calls of an earlier process.
    is_recovering: bool,
}

enum LoopInput {
    CallEnded(Result<CallEnded, JoinError>),
    Message(LoopMessage),
    Wake,
    Close,
    CancelCalls,
}

impl ExecutionLoop {
    pub(crate) fn new(
        shared: Arc<EngineShared>,
        plan: PlanId,
        execution: Execution,
        journal: JournalWriter,
        message: mpsc::UnboundedReceiver<LoopMessage>,
        line: WaiterHandle,
    ) -> ExecutionLoop {
        let (decided_at, gaps_seen) = (shared.now(), shared.gaps.found());
        ExecutionLoop {
            shared,
            plan,
            execution,
            writer: journal,
            messages: message,
            wakeup: line.wakeup,
            waiter: line.waiter,
            call_tasks: JoinSet::new(),
            active_calls: Vec::new(),
            seen: HashSet::new(),
            waiting: Vec::new(),
            schemas: HashMap::new(),
            elicitation_replies: HashMap::new(),
            early_answers: HashMap::new(),
            pending: PendingCommit::default(),
            room_at: None,
            decided_at,
            active_at: decided_at,
            is_closing: false,
            gaps_seen,
            is_recovering: false,
        }
    }

    /// Runs the execution until there is nothing to do for it here.
    ///
    /// `begun` is what its opening decided: already recorded, and to be acted upon.
    pub(crate) async fn begin(mut self, begun: PendingCommit) -> Option<Lease> {
        if self.execution.outcome().is_some() {
            self.log_ending();
        }
        self.start_calls(begun.calls, begun.granted);
        let ended = self.run().await;
        self.end(ended).await
    }

    /// Resumes an execution that an earlier loop or process has left.
    pub(crate) async fn resume(mut self, commands: Vec<StoredCommand>) -> Option<Lease> {
        let ended = match self.recover(commands).await {
            Ok(()) => self.run().await,
            Err(stop) => Err(stop),
        };
        self.end(ended).await
    }

    async fn recover(&mut self, commands: Vec<StoredCommand>) -> Result<(), LoopError> {
        let now = self.shared.now();
        self.hold(now)?;
        self.notice_sign(now)?;
        // Nothing starts before `Recovered`: it would count as left open by the earlier process, and be lost.
        self.is_recovering = true;
        self.notice_drift(now)?;
        self.is_recovering = false;
        self.decide_at(&Actor::rutter(), ExecutionInput::Recovered, now)?.ok();
        if *self.execution.phase() == ExecutionPhase::Pending {
            self.decide(&Actor::rutter(), ExecutionInput::Start)?.ok();
        }
        for command in commands {
            self.on_command(command).await?;
        }
        self.commit().await
    }

    /// Holds an execution that was caught by a gap: before anything else is decided, and when it is loaded in the same
    /// append as what became of its calls.
    fn hold(&mut self, now: Timestamp) -> Result<(), LoopError> {
        self.gaps_seen = self.shared.gaps.found();
        let caught = self.shared.gaps.all().into_iter().find(|gap| self.execution.is_caught_by(gap));
        let Some(WorkerGap { reason, since, .. }) = caught else { return Ok(()) };
        match self.decide_at(&Actor::rutter(), ExecutionInput::Hold { reason, since }, now)? {
            Ok(()) => drop(self.shared.held.fetch_add(1, Ordering::Relaxed)),
            Err(refusal) => {
                tracing::warn!(execution = %self.execution.identity().execution, "not held: {refusal}");
            }
        }
        Ok(())
    }

    /// Renews the lease of the agent from its last sign of life, before the agent is called silent.
    fn notice_sign(&mut self, now: Timestamp) -> Result<(), LoopError> {
        if self.execution.agent_lease_end().is_none_or(|end| end > now) {
            return Ok(());
        }
        let Some((agent, at)) = self.shared.take_sign(&self.execution.identity().execution) else { return Ok(()) };
        self.decide_at(&agent, ExecutionInput::AgentSeen { remembered: true }, at).map(drop)
    }

    async fn run(&mut self) -> Result<(), LoopError> {
        loop {
            if self.is_at_rest()
                && self.shared.active_executions.leave_if_empty(self.execution.identity(), &self.messages)
            {
                return Ok(());
            }
            let next = self.next_input().await;
            self.on_next(next).await?;
            while let Some(next) = self.try_next_input() {
                self.on_next(next).await?;
            }
            self.commit().await?;
        }
    }

    async fn next_input(&mut self) -> LoopInput {
        let alarm = self.next_wake_at();
        tokio::select! {
            Some(ended) = self.call_tasks.join_next() => LoopInput::CallEnded(ended),
            Some(message) = self.messages.recv() => LoopInput::Message(message),
            () = self.wakeup.notified() => LoopInput::Wake,
            () = self.shared.clock.sleep_until(alarm.unwrap_or_default()), if alarm.is_some() => LoopInput::Wake,
            () = self.shared.closing.cancelled(), if !self.is_closing => LoopInput::Close,
            () = self.shared.cancel_calls.cancelled(), if !self.active_calls.is_empty() => LoopInput::CancelCalls,
        }
    }

    /// The next input that is already there, without waiting.
    fn try_next_input(&mut self) -> Option<LoopInput> {
        let ended = self.call_tasks.try_join_next().map(LoopInput::CallEnded);
        ended.or_else(|| self.messages.try_recv().ok().map(LoopInput::Message))
    }

    async fn on_next(&mut self, next: LoopInput) -> Result<(), LoopError> {
        let rutter = Actor::rutter();
        match next {
            LoopInput::CallEnded(Ok(ended)) => self.on_call_ended(ended),
            // Its outcome is unknown: the attempt runs into its deadline.
            LoopInput::CallEnded(Err(error)) => {
                tracing::error!(execution = %self.execution.identity().execution, "call task failed: {error}");
                Ok(())
            }
            LoopInput::Message(LoopMessage::Command(command)) => self.on_command(command).await,
            LoopInput::Message(LoopMessage::Inspect(look)) => {
                // A drift may have ended meanwhile.
                self.notice_drift(self.shared.clock.now())?;
                look(&self.execution);
                self.active_at = self.shared.clock.now();
                Ok(())
            }
            LoopInput::Message(LoopMessage::Wait(waiting)) => {
                self.notice_drift(self.shared.clock.now())?;
                self.waiting.push(waiting);
                Ok(())
            }
            LoopInput::Message(LoopMessage::Report(report)) => self.on_report(report),
            LoopInput::Wake => self.decide(&rutter, ExecutionInput::Wake).map(drop),
            LoopInput::Close => {
                self.is_closing = true;
                Ok(())
            }
            LoopInput::CancelCalls => {
                self.active_calls.drain(..).for_each(|call| self.shared.tools.cancel(&call));
                Ok(())
            }
        }
    }

    /// Decides an input; [`ExecutionLoop::commit`] records the decision and acts upon it.
    fn decide(&mut self, actor: &Actor, input: ExecutionInput) -> Result<CommandResult, LoopError> {
        let now = self.look_around()?;
        self.decide_at(actor, input, now)
    }

    /// Notices what comes before any input: gaps, signs of life, tools that changed. Returns the time of the decision.
    fn look_around(&mut self) -> Result<Timestamp, LoopError> {
        // One time for all of it: what is compared with the gaps is what the timers are compared with.
        let now = self.shared.now();
        if self.gaps_seen < self.shared.gaps.found() {
            self.hold(now)?;
        }
        self.notice_sign(now)?;
        self.notice_drift(now)?;
        Ok(now)
    }

    fn decide_at(&mut self, actor: &Actor, input: ExecutionInput, now: Timestamp) -> Result<CommandResult, LoopError> {
        self.decided_at = now;
        let execution = self.execution.identity().execution.clone();
        let mut permits = PermitSource::new(&self.shared, &self.waiter, &execution, now);
        permits.is_closed = self.is_closing || self.is_recovering;
        let policy = &self.shared.options.policy;
        let terms = DecisionTerms { now: self.decided_at, room: &mut permits, policy };
        let decided = self.execution.decide_within(actor, input, terms);
        let PermitSource { granted, retry_after: again, .. } = permits;
        match decided {
            Ok(Decision { records, calls }) => {
                self.pending.records.extend(records);
                self.pending.calls.extend(calls);
                self.pending.granted.extend(granted);
                self.room_at = again.map(|again| self.decided_at.plus(again));
                Ok(Ok(()))
            }
            Err(decide::Error::Refused(refusal)) => Ok(Err(refusal)),
            Err(decide::Error::Broken(illegal)) => Err(illegal.into()),
        }
    }

    /// Reports tools that differ from what the plan was checked with, before any of their calls starts.
    fn notice_drift(&mut self, now: Timestamp) -> Result<(), LoopError> {
        if self.execution.outcome().is_some() {
            return Ok(());
        }
        let plan = Arc::clone(self.execution.plan());
        for tool in plan.tools.keys() {
            let Some(found) = self.shared.tools.definition(tool) else { continue };
            if self.execution.is_news(tool, found) {
                let drift = ExecutionInput::ReportDefinition { tool: tool.clone(), found };
                self.decide_at(&Actor::rutter(), drift, now)?.ok();
            }
        }
        Ok(())
    }

    /// Records the pending decisions, then acts upon them.
    async fn commit(&mut self) -> Result<(), LoopError> {
        let mut pending = std::mem::take(&mut self.pending);
        let (calls, granted) = (std::mem::take(&mut pending.calls), std::mem::take(&mut pending.granted));
        if !pending.records.is_empty() || !pending.decided_commands.is_empty() {
            self.record(pending).await?;
        }
        // Also without records: a call that continues under its ticket was recorded earlier.
        self.start_calls(calls, granted);
        let status = self.execution.status();
        if is_settled(status) {
            // The caller may have stopped waiting.
            for waiting in self.waiting.drain(..) {
                let _ = waiting.send(status);
            }
        }
        Ok(())
    }

    async fn record(&mut self, pending: PendingCommit) -> Result<(), LoopError> {
        let PendingCommit {
            records,
            decided_commands: consumed,
            refused_keys: forgotten,
            replies,
            recorded,
            answered,
            ..
        } = pending;
        self.active_at = self.decided_at;
        let row = self.execution.row();
        let status = row.status;
        let asked_at = self.shared.clock.now();
        let head = self.writer.append(&records, row, (consumed, forgotten), &self.shared.stopped).await?;
        let elapsed_ms = self.shared.clock.now().since(asked_at).0;
        let Lease { identity, worker, epoch } = &self.writer.lease;
        let execution = &identity.execution;
        tracing::debug!(%execution, %worker, epoch, seq = head + records.len() as u64, elapsed_ms, "append");
        for (command, decided) in replies {
            self.shared.command_replies.complete(command, decided);
        }
        if self.execution.outcome().is_some() {
            self.shared.take_sign(execution);
        }
        // Entries after the end, such as a late answer, are no end.
        if records.iter().any(|record| matches!(record.event, Event::ExecutionEnded { .. })) {
            self.log_ending();
        }
        if !records.is_empty() {
            let live = UpdateContent::Recorded { first: head + 1, records: records.into(), status };
            self.shared.publish(ExecutionUpdate { identity: self.execution.identity().clone(), content: live });
        }
        // The callers may have stopped waiting.
        for waiting in recorded {
            let _ = waiting.send(());
        }
        for (part, attempt, answer) in answered {
            let call = (part, attempt);
            match self.elicitation_replies.remove(&call) {
                Some(waiting) => drop(waiting.send(answer)),
                None => drop(self.early_answers.insert(call, answer)),
            }
        }
        Ok(())
    }

    /// Starts the calls that were decided, and cancels those that are no longer wanted.
    fn start_calls(&mut self, calls: Vec<ToolCall>, mut granted: Vec<(ToolName, CallPermit)>) {
        let identity = self.execution.identity().clone();
        for call in calls {
            let permit = PermitSource::take_permit(&mut granted, &call.tool);
            if !self.execution.is_under_way(&call.part, call.side, call.attempt) {
                // A later decision of the same append has closed it. Of a resumed call nothing new is known.
                if !call.is_resumed() {
                    self.call_tasks.spawn(std::future::ready(withdrawn(call)));
                }
                continue;
            }
            let id = ToolCallId {
                identity: identity.clone(),
                part: call.part.clone(),
                side: call.side,
                attempt: call.attempt,
            };
            // A hold in a running process ends with its calls still in flight.
            if self.active_calls.contains(&id) {
                continue;
            }
            self.active_calls.push(id);
            self.call_tasks.spawn(run_call(Arc::clone(&self.shared), identity.clone(), call, permit));
        }
        let (execution, tools) = (&self.execution, &self.shared.tools);
        self.active_calls.retain(|call| {
            let unwanted = execution.is_unwanted(&call.part, call.side, call.attempt);
            if unwanted {
                tools.cancel(call);
            }
            !unwanted
        });
    }

    /// When to wake without a message.
    fn next_wake_at(&self) -> Option<Timestamp> {
        // A time in the past means: as soon as there is capacity, which `wakeup` signals.
        let due = self.execution.wake_at().filter(|when| *when > self.decided_at);
        let idle = self.can_rest().then(|| self.active_at.plus(self.shared.options.rest));
        [due, self.room_at, idle].into_iter().flatten().min()
    }

    fn is_at_rest(&self) -> bool {
        let is_idle = self.shared.clock.now().since(self.active_at) >= self.shared.options.rest;
        let is_over = self.is_closing || self.execution.outcome().is_some();
        self.call_tasks.is_empty() && (is_over || (is_idle && self.can_rest()))
    }

    /// Whether nothing is due within the `rest` span.
    fn can_rest(&self) -> bool {
        let soon = self.shared.clock.now().plus(self.shared.options.rest);
        self.call_tasks.is_empty()
            && !self.execution.wants_room()
            && self.execution.wake_at().is_none_or(|when| when > soon)
    }

    /// Unregisters the execution. After a store error returns the lease, if still held, so that it is loaded again.
    async fn end(self, ended: Result<(), LoopError>) -> Option<Lease> {
        let identity = self.execution.identity().clone();
        self.shared.active_executions.remove(&identity);
        match ended {
            Ok(()) => {
                if let Err(error) = self.writer.journal.release(self.writer.lease).await {
                    tracing::debug!(execution = %identity.execution, error.code = error.code(), "{error}");
                }
                // A command may have just arrived.
                self.shared.recheck.notify_one();
            }
            Err(LoopError::Store(error)) => {
                tracing::warn!(execution = %identity.execution, error.code = error.code(), "{error}");
                if !matches!(error, port::Error::Fenced { .. }) {
                    return Some(self.writer.lease);
                }
            }
            Err(LoopError::Broken(illegal)) => {
                tracing::error!(execution = %identity.execution, "{illegal}");
                self.shared.broken(identity, illegal.to_string());
            }
        }
        None
    }
}

/// Whether nothing more happens by itself: it has ended, or waits for a person or agent.
pub(crate) fn is_settled(status: ExecutionStatus) -> bool {
    status.has_ended()
        || matches!(status, ExecutionStatus::Waiting | ExecutionStatus::Paused | ExecutionStatus::Replanning)
}

/// An execution's handle for waiting in the queues for call permits.
pub(crate) struct WaiterHandle {
    pub(crate) wakeup: Arc<Notify>,
    pub(crate) waiter: Arc<dyn PermitWaiter>,
}

impl WaiterHandle {
    pub(crate) fn of(execution: &Execution) -> WaiterHandle {
        let wakeup = Arc::new(Notify::new());
        let priority = execution.plan().steps.iter().map(|step| step.priority).max().unwrap_or(0);
        let tenant = execution.identity().tenant.clone();
        let waiter = Arc::new(ExecutionWaiter { tenant, priority, wakeup: Arc::clone(&wakeup) });
        WaiterHandle { wakeup, waiter }
    }
}
