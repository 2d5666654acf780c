//! Refusals of privileged acts, on record in the ledger's own journal.
//!
//! Whoever probes what it may do leaves a trace. A principal that is refused again and again gets one entry per refusal up
//! to a limit per minute, and one entry with the sum of the others, so that it cannot fill the ledger.

use crate::error::AppError;
use crate::limits::REFUSALS_PER_MINUTE;
use crate::principal::{Credential, Principal};
use crate::rights::{self, Operation};
use crate::scope::{AccessScope, AccessScopes};
use crate::verb::Verb;
use rutter_core::actor::Actor;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::port::register::{Register, RegisterWrite};
use rutter_core::text::cut;
use rutter_core::time::{Millis, Timestamp};
use rutter_observe::metrics::ServerMetrics;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

const MINUTE: Millis = Millis(60_000);
const REASON_CHARS_MAX: usize = 300;
/// Whoever sends no secret, or one that is not known.
const STRANGER: &str = "stranger";
/// The acts of those whose rights are not known, or not looked at.
const AUTHENTICATE: &str = "authenticate";
const USE_SESSION: &str = "use_session";
/// What an entry for several refusals calls them.
const SEVERAL: &str = "several acts";

pub struct RefusalLog {
    register: Arc<dyn Register>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    metrics: Arc<ServerMetrics>,
    state: Mutex<LogState>,
    /// Held while entries are written, so that they stay in order.
    write_lock: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct LogState {
    /// The current minute of each principal, by its id. There are as many as keys and tokens.
    minutes: HashMap<String, RefusalMinute>,
    waiting: Vec<(TenantId, EventRecord)>,
}

#[derive(Debug)]
struct RefusalMinute {
    began_at: Timestamp,
    count: u64,
    tenant: TenantId,
    actor: Actor,
    /// The code of the last refusal beyond the limit.
    code: String,
}

impl RefusalMinute {
    /// The entry for the refusals beyond the limit, if there were some.
    fn sum(self, now: Timestamp) -> Option<(TenantId, EventRecord)> {
        let count = self.count.checked_sub(REFUSALS_PER_MINUTE).filter(|count| *count > 0)?;
        let reason = format!("more than {REFUSALS_PER_MINUTE} refusals in a minute");
        let event = Event::ActRefused { act: SEVERAL.to_owned(), execution: None, code: self.code, reason, count };
        Some((self.tenant, EventRecord { at: now, actor: self.actor, event }))
    }
}

impl RefusalLog {
    /// Of a process that owns the database.
    pub fn new(
        register: Arc<dyn Register>,
        clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
        metrics: Arc<ServerMetrics>,
    ) -> Arc<RefusalLog> {
        let (state, write_lock) = (Mutex::default(), tokio::sync::Mutex::default());
        Arc::new(RefusalLog { register, clock, metrics, state, write_lock })
    }

    /// Returns an error that names the missing scope unless the principal may do this; the refusal is recorded.
    pub fn require(self: &Arc<Self>, principal: &Principal, operation: Operation) -> Result<(), AppError> {
        let row = operation.row();
        rights::check(principal, operation).inspect_err(|error| self.note(principal, row.name, row.scope, None, error))
    }

    /// The same for a command to an execution.
    pub fn require_verb(
        self: &Arc<Self>,
        principal: &Principal,
        verb: Verb,
        execution: Option<&ExecutionId>,
    ) -> Result<(), AppError> {
        let row = verb.row();
        let refused = rights::check_verb(principal, verb);
        refused.inspect_err(|error| self.note(principal, row.name, row.scope, execution, error))
    }

    /// The same for a scope, such as one that a new key is to have.
    pub(crate) fn require_scope(
        self: &Arc<Self>,
        principal: &Principal,
        act: &str,
        scope: AccessScope,
    ) -> Result<(), AppError> {
        rights::check_scope(principal, scope).inspect_err(|error| self.note(principal, act, scope, None, error))
    }

    /// Records the refusal of an execution that wants a person, or another one; passes every error on.
    pub(crate) fn noting(
        self: &Arc<Self>,
        principal: &Principal,
        act: &str,
        execution: &ExecutionId,
        error: AppError,
    ) -> AppError {
        const CODES: [&str; 4] =
            ["execution.not_a_person", "execution.not_the_approver", "execution.not_proven", "replan.rejected"];
        if CODES.iter().any(|code| error.code == *code) {
            self.note(principal, act, AccessScope::Approve, Some(execution), &error);
        }
        error
    }

    /// Records an answer to a question that was not asked, from somebody whose answer would not count; passes the error on.
    pub fn note_forged_answer(self: &Arc<Self>, principal: &Principal, error: AppError) -> AppError {
        if !principal.may(AccessScope::Approve) {
            self.note(principal, Verb::Answer.name(), AccessScope::Approve, None, &error);
        }
        error
    }

    /// Records that a secret, or none, was refused. All strangers together are counted as one.
    pub(crate) fn note_stranger(self: &Arc<Self>, tenant: &TenantId, peer: IpAddr, error: &AppError) {
        let stranger = Principal::new(tenant.clone(), STRANGER, AccessScopes::new(), Credential::Anonymous {});
        let error = AppError { message: format!("{}, from {peer}", error.message), ..error.clone() };
        self.note(&stranger, AUTHENTICATE, AccessScope::Operate, None, &error);
    }

    /// Records that a call by hand was refused, which needs no execution.
    pub async fn record_refused_call(self: &Arc<Self>, principal: &Principal, error: &AppError) {
        let row = Operation::CallTool.row();
        self.note(principal, row.name, row.scope, None, error);
        self.flush().await;
    }

    /// Records that a session of another principal was used.
    pub(crate) fn note_foreign_session(self: &Arc<Self>, principal: &Principal, error: &AppError) {
        self.note(principal, USE_SESSION, AccessScope::Operate, None, error);
    }

    /// A refusal to read is not privileged, and not recorded.
    fn note(
        self: &Arc<Self>,
        principal: &Principal,
        act: &str,
        scope: AccessScope,
        execution: Option<&ExecutionId>,
        error: &AppError,
    ) {
        if scope == AccessScope::Read {
            return;
        }
        self.metrics.refusal(scope.as_str());
        let now = (self.clock)();
        self.count(principal, act, execution, error, now);
        if let Ok(runtime) = Handle::try_current() {
            let log = Arc::clone(self);
            runtime.spawn(async move { log.flush().await });
        }
    }

    fn count(
        &self,
        principal: &Principal,
        act: &str,
        execution: Option<&ExecutionId>,
        error: &AppError,
        now: Timestamp,
    ) {
        let mut state = self.state();
        let begun = state.minutes.remove(&principal.id());
        let (current, ended) = match begun {
            Some(minute) if now < minute.began_at.plus(MINUTE) => (Some(minute), None),
            ended => (None, ended),
        };
        state.waiting.extend(ended.and_then(|ended| ended.sum(now)));
        let (tenant, actor) = (principal.tenant.clone(), principal.actor());
        let mut minute = current.unwrap_or_else(|| RefusalMinute {
            began_at: now,
            count: 0,
            tenant: tenant.clone(),
            actor: actor.clone(),
            code: String::new(),
        });
        minute.count += 1;
        if minute.count > REFUSALS_PER_MINUTE {
            (minute.actor, minute.code) = (actor, error.code.to_string());
        } else {
            let (act, execution) = (act.to_owned(), execution.cloned());
            let (code, reason) = (error.code.to_string(), cut(&error.message, REASON_CHARS_MAX));
            let event = Event::ActRefused { act, execution, code, reason, count: 1 };
            state.waiting.push((tenant, EventRecord { at: now, actor, event }));
        }
        state.minutes.insert(principal.id(), minute);
    }

    /// Sums up the minutes that are over; all of them when the server closes.
    pub(crate) async fn sum_up(&self, is_closing: bool) {
        let now = (self.clock)();
        {
            let mut state = self.state();
            let LogState { minutes, waiting } = &mut *state;
            let over = minutes.extract_if(|_, minute| is_closing || now >= minute.began_at.plus(MINUTE));
            waiting.extend(over.filter_map(|(_, minute)| minute.sum(now)));
        }
        self.flush().await;
    }

    /// Writes what waits.
    pub async fn flush(&self) {
        let _pen = self.write_lock.lock().await;
        let waiting = std::mem::take(&mut self.state().waiting);
        for (tenant, record) in waiting {
            let write = RegisterWrite { tenant, at: record.at, changes: Vec::new(), record: Some(record) };
            if let Err(error) = self.register.write(write).await {
                tracing::warn!(error.code = error.code(), "a refusal could not be recorded: {error}");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for RefusalLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RefusalLog").finish_non_exhaustive()
    }
}
