//! The loop of one execution: something happens, it is decided, recorded, and then acted upon.
//!
//! Everything that is ready is decided before anything is written, so that the result of one step and the start of the
//! next are one append. A call is made only after its start is on the disk.

mod hear;

use crate::answers::Decided;
use crate::berths::{Berths, Waiting};
use crate::engine::Shared;
use crate::event::{Happening, Live};
use crate::fleet::Mail;
use crate::flight::{Landed, fly};
use crate::logbook::Logbook;
use rutter_core::actor::Actor;
use rutter_core::execution::input::{Decision, Input, ToolCall};
use rutter_core::execution::view::Status;
use rutter_core::execution::{Execution, IllegalEvent, Phase, decide};
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event::Record;
use rutter_core::plan::schema::Schema;
use rutter_core::port;
use rutter_core::port::journal::{Lease, Letter};
use rutter_core::port::tools::{Applicant, Berth, CallId};
use rutter_core::time::Timestamp;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};

/// Why a loop ended before its execution did.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    #[error(transparent)]
    Store(#[from] port::Error),
    #[error(transparent)]
    Broken(#[from] IllegalEvent),
}

/// What was decided and is not on record yet.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) records: Vec<Record>,
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) granted: Vec<(ToolName, Berth)>,
    consumed: Vec<u64>,
    /// Keys of letters that were refused.
    forgotten: Vec<String>,
    replies: Vec<(u64, Decided)>,
    /// Whoever waits until a ticket is on record.
    recorded: Vec<oneshot::Sender<()>>,
    /// What somebody answered to a tool.
    answered: Vec<(PartId, u32, Option<Value>)>,
}

pub(crate) struct Drive {
    shared: Arc<Shared>,
    execution: Execution,
    logbook: Logbook,
    mail: mpsc::UnboundedReceiver<Mail>,
    bell: Arc<Notify>,
    applicant: Arc<dyn Applicant>,
    flights: JoinSet<Landed>,
    aloft: Vec<CallId>,
    /// Letters that were decided here. One may come both from the store and by hand.
    seen: HashSet<u64>,
    waiting: Vec<oneshot::Sender<Status>>,
    /// Of the steps that say what their result must be, compiled once.
    schemas: HashMap<StepId, Option<Schema>>,
    /// Calls that wait for somebody's word.
    asked: HashMap<(PartId, u32), oneshot::Sender<Option<Value>>>,
    pending: Pending,
    /// When room may be there again, where somebody said so.
    room_at: Option<Timestamp>,
    decided_at: Timestamp,
    /// When something last happened to it, or somebody asked.
    active_at: Timestamp,
    is_closing: bool,
}

enum Next {
    Landed(Result<Landed, JoinError>),
    Mail(Mail),
    Wake,
    Close,
    Hurry,
}

impl Drive {
    pub(crate) fn new(
        shared: Arc<Shared>,
        execution: Execution,
        logbook: Logbook,
        mail: mpsc::UnboundedReceiver<Mail>,
        line: Line,
    ) -> Drive {
        let decided_at = shared.clock.now();
        Drive {
            shared,
            execution,
            logbook,
            mail,
            bell: line.bell,
            applicant: line.applicant,
            flights: JoinSet::new(),
            aloft: Vec::new(),
            seen: HashSet::new(),
            waiting: Vec::new(),
            schemas: HashMap::new(),
            asked: HashMap::new(),
            pending: Pending::default(),
            room_at: None,
            decided_at,
            active_at: decided_at,
            is_closing: false,
        }
    }

    /// Carries the execution on until it has nothing to do here.
    ///
    /// `begun` is what its opening decided: on record already, and to be acted upon.
    pub(crate) async fn begin(mut self, begun: Pending) -> Option<Lease> {
        self.act(begun.calls, begun.granted);
        let ended = self.sail().await;
        self.end(ended).await
    }

    /// Takes up an execution that somebody else has left.
    pub(crate) async fn resume(mut self, letters: Vec<Letter>) -> Option<Lease> {
        let ended = match self.recover(letters).await {
            Ok(()) => self.sail().await,
            Err(stop) => Err(stop),
        };
        self.end(ended).await
    }

    async fn recover(&mut self, letters: Vec<Letter>) -> Result<(), Stop> {
        if let Some(reason) = self.shared.options.hold.clone() {
            self.hold(reason)?;
        }
        self.decide(&Actor::rutter(), Input::Recovered)?.ok();
        if *self.execution.phase() == Phase::Pending {
            self.decide(&Actor::rutter(), Input::Start)?.ok();
        }
        for letter in letters {
            self.read(letter).await?;
        }
        self.commit().await
    }

    /// Pauses an execution whose timers are due after a gap nobody can vouch for, as of when it was last seen.
    fn hold(&mut self, reason: String) -> Result<(), Stop> {
        let now = self.shared.clock.now();
        if self.execution.wake_at().is_none_or(|when| when > now) || self.execution.is_paused() {
            return Ok(());
        }
        // Before anything else is decided: what was lost meanwhile would be tried again at once.
        self.decide_at(&Actor::rutter(), Input::Pause { reason }, self.execution.last_at())?.ok();
        Ok(())
    }

    async fn sail(&mut self) -> Result<(), Stop> {
        loop {
            if self.is_at_rest() && self.shared.fleet.leave(self.execution.identity(), &self.mail) {
                return Ok(());
            }
            let next = self.next().await;
            self.take(next).await?;
            while let Some(next) = self.ready() {
                self.take(next).await?;
            }
            self.commit().await?;
        }
    }

    async fn next(&mut self) -> Next {
        let alarm = self.alarm();
        tokio::select! {
            Some(landed) = self.flights.join_next() => Next::Landed(landed),
            Some(mail) = self.mail.recv() => Next::Mail(mail),
            () = self.bell.notified() => Next::Wake,
            () = self.shared.clock.sleep_until(alarm.unwrap_or_default()), if alarm.is_some() => Next::Wake,
            () = self.shared.closing.cancelled(), if !self.is_closing => Next::Close,
            () = self.shared.hurry.cancelled(), if !self.aloft.is_empty() => Next::Hurry,
        }
    }

    /// What has happened meanwhile, without waiting for more.
    fn ready(&mut self) -> Option<Next> {
        let landed = self.flights.try_join_next().map(Next::Landed);
        landed.or_else(|| self.mail.try_recv().ok().map(Next::Mail))
    }

    async fn take(&mut self, next: Next) -> Result<(), Stop> {
        let rutter = Actor::rutter();
        match next {
            Next::Landed(Ok(landed)) => self.land(landed),
            // Its outcome is what nobody knows: the attempt runs into its deadline.
            Next::Landed(Err(error)) => {
                tracing::error!(execution = %self.execution.identity().execution, "a call was lost: {error}");
                Ok(())
            }
            Next::Mail(Mail::Letter(letter)) => self.read(letter).await,
            Next::Mail(Mail::Look(look)) => {
                look(&self.execution);
                self.active_at = self.shared.clock.now();
                Ok(())
            }
            Next::Mail(Mail::Wait(waiting)) => {
                self.waiting.push(waiting);
                Ok(())
            }
            Next::Mail(Mail::Report(report)) => self.hear(report),
            Next::Wake => self.decide(&rutter, Input::Wake).map(drop),
            Next::Close => {
                self.is_closing = true;
                Ok(())
            }
            Next::Hurry => {
                self.aloft.drain(..).for_each(|call| self.shared.tools.cancel(&call));
                Ok(())
            }
        }
    }

    /// Decides; what follows waits for [`Drive::commit`].
    fn decide(&mut self, actor: &Actor, input: Input) -> Result<Decided, Stop> {
        self.notice_drift()?;
        self.decide_one(actor, input)
    }

    fn decide_one(&mut self, actor: &Actor, input: Input) -> Result<Decided, Stop> {
        self.decide_at(actor, input, self.shared.clock.now())
    }

    fn decide_at(&mut self, actor: &Actor, input: Input, now: Timestamp) -> Result<Decided, Stop> {
        self.decided_at = now;
        let mut berths = Berths {
            tools: &*self.shared.tools,
            applicant: &self.applicant,
            is_closed: self.is_closing,
            granted: Vec::new(),
            again: None,
        };
        let decided = self.execution.decide_within(actor, input, self.decided_at, &mut berths);
        let Berths { granted, again, .. } = berths;
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

    /// Reports tools that are not what the plan was checked with, before anything of theirs begins.
    fn notice_drift(&mut self) -> Result<(), Stop> {
        if self.execution.outcome().is_some() {
            return Ok(());
        }
        let plan = Arc::clone(self.execution.plan());
        for tool in plan.tools.keys() {
            let Some(found) = self.shared.tools.definition(tool) else { continue };
            if self.execution.is_news(tool, found) {
                self.decide_one(&Actor::rutter(), Input::ReportDrift { tool: tool.clone(), found })?.ok();
            }
        }
        Ok(())
    }

    /// Puts on record what was decided, then acts upon it.
    async fn commit(&mut self) -> Result<(), Stop> {
        let mut pending = std::mem::take(&mut self.pending);
        let (calls, granted) = (std::mem::take(&mut pending.calls), std::mem::take(&mut pending.granted));
        if !pending.records.is_empty() || !pending.consumed.is_empty() {
            self.record(pending).await?;
        }
        // A call that goes on under its ticket is on record since long.
        self.act(calls, granted);
        let status = self.execution.status();
        if is_settled(status) {
            // Whoever stopped waiting does not want to know.
            for waiting in self.waiting.drain(..) {
                let _ = waiting.send(status);
            }
        }
        Ok(())
    }

    async fn record(&mut self, pending: Pending) -> Result<(), Stop> {
        let Pending { records, consumed, forgotten, replies, recorded, answered, .. } = pending;
        self.active_at = self.decided_at;
        let row = self.execution.row();
        let asked_at = self.shared.clock.now();
        let head = self.logbook.append(&records, row, (consumed, forgotten), &self.shared.stopped).await?;
        let elapsed_ms = self.shared.clock.now().since(asked_at).0;
        let Lease { identity, worker, epoch } = &self.logbook.lease;
        let execution = &identity.execution;
        tracing::debug!(%execution, %worker, epoch, seq = head + records.len() as u64, elapsed_ms, "append");
        for (letter, decided) in replies {
            self.shared.answers.give(letter, decided);
        }
        if let Some(outcome) = self.execution.outcome() {
            let seq = self.execution.entries();
            let elapsed_ms = self.execution.last_at().since(row.opened_at).0;
            tracing::info!(%execution, %worker, epoch, seq, elapsed_ms, outcome = ?outcome, "ended");
        }
        if !records.is_empty() {
            let live = Live::Recorded { first: head + 1, records: records.into(), status: row.status };
            self.shared.tell(Happening { identity: self.execution.identity().clone(), live });
        }
        // Whoever does not wait any more does not want to know.
        for waiting in recorded {
            let _ = waiting.send(());
        }
        for (part, attempt, answer) in answered {
            if let Some(waiting) = self.asked.remove(&(part, attempt)) {
                let _ = waiting.send(answer);
            }
        }
        Ok(())
    }

    /// Makes the calls that were decided, and ends those nobody wants any more.
    fn act(&mut self, calls: Vec<ToolCall>, mut granted: Vec<(ToolName, Berth)>) {
        let identity = self.execution.identity().clone();
        for call in calls {
            let berth = Berths::of(&mut granted, &call.tool);
            let id = CallId {
                identity: identity.clone(),
                part: call.part.clone(),
                side: call.side,
                attempt: call.attempt,
            };
            self.aloft.push(id);
            self.flights.spawn(fly(Arc::clone(&self.shared), identity.clone(), call, berth));
        }
        let (execution, tools) = (&self.execution, &self.shared.tools);
        self.aloft.retain(|call| {
            let unwanted = execution.is_unwanted(&call.part, call.side, call.attempt);
            if unwanted {
                tools.cancel(call);
            }
            !unwanted
        });
    }

    /// When to look again although nobody asks.
    fn alarm(&self) -> Option<Timestamp> {
        // A time that has passed means: as soon as there is room, and the bell tells that.
        let due = self.execution.wake_at().filter(|when| *when > self.decided_at);
        let idle = self.can_rest().then(|| self.active_at.plus(self.shared.options.rest));
        [due, self.room_at, idle].into_iter().flatten().min()
    }

    fn is_at_rest(&self) -> bool {
        let is_idle = self.shared.clock.now().since(self.active_at) >= self.shared.options.rest;
        let is_over = self.is_closing || self.execution.outcome().is_some();
        self.flights.is_empty() && (is_over || (is_idle && self.can_rest()))
    }

    /// Whether nothing is to be done for a good while.
    fn can_rest(&self) -> bool {
        let soon = self.shared.clock.now().plus(self.shared.options.rest);
        self.flights.is_empty()
            && !self.execution.wants_room()
            && self.execution.wake_at().is_none_or(|when| when > soon)
    }

    /// Lets go of it. What is still ours although this loop cannot go on is given back, to be read and carried on.
    async fn end(self, ended: Result<(), Stop>) -> Option<Lease> {
        let identity = self.execution.identity().clone();
        self.shared.fleet.remove(&identity);
        match ended {
            Ok(()) => {
                if let Err(error) = self.logbook.journal.release(self.logbook.lease).await {
                    tracing::debug!(execution = %identity.execution, error.code = error.code(), "{error}");
                }
                // Something may have been asked of it just now.
                self.shared.nudge.notify_one();
            }
            Err(Stop::Store(error)) => {
                tracing::warn!(execution = %identity.execution, error.code = error.code(), "{error}");
                if !matches!(error, port::Error::Fenced { .. }) {
                    return Some(self.logbook.lease);
                }
            }
            Err(Stop::Broken(illegal)) => {
                tracing::error!(execution = %identity.execution, "{illegal}");
                self.shared.broken(identity, illegal.to_string());
            }
        }
        None
    }
}

/// Whether nothing more happens by itself: it has ended, or needs somebody.
pub(crate) fn is_settled(status: Status) -> bool {
    status.has_ended() || matches!(status, Status::Waiting | Status::Paused | Status::Replanning)
}

/// An execution's place in the lines for room.
pub(crate) struct Line {
    pub(crate) bell: Arc<Notify>,
    pub(crate) applicant: Arc<dyn Applicant>,
}

impl Line {
    pub(crate) fn of(execution: &Execution) -> Line {
        let bell = Arc::new(Notify::new());
        let priority = execution.plan().steps.iter().map(|step| step.priority).max().unwrap_or(0);
        let tenant = execution.identity().tenant.clone();
        let applicant = Arc::new(Waiting { tenant, priority, bell: Arc::clone(&bell) });
        Line { bell, applicant }
    }
}
