//! Limits on calls: how many at once, how many per span, and whose turn it is.
//!
//! A [`CallLimiter`] grants permits. A waiter that finds none is queued; a permit that becomes free is granted to the
//! next one, which is woken and has a second to claim it. Tenants take turns; within a tenant the higher priority goes
//! first, then the earlier arrival. Time is the runtime's monotonic clock: a jump of the wall clock changes no rate.

mod limiter_state;
mod permit_queue;
mod rate_limiter;

use crate::config::{CallLimits, ServerSettings};
use limiter_state::LimiterState;
use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::tools::{Admission, CallPermit, PermitWaiter};
use rutter_core::time::Millis;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// How long a granted permit may wait to be claimed.
const GRANT_LIFETIME: Duration = Duration::from_secs(1);

/// The most queued waiters; further ones must ask again after a pause.
const QUEUED_MAX: usize = 50_000;
const QUEUE_FULL_PAUSE: Millis = Millis::seconds(1);

#[derive(Debug)]
pub struct CallLimiter {
    shared: Arc<LimiterShared>,
    /// Grants the permits that only the passing of time makes free.
    _refill_task: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct LimiterShared {
    state: Mutex<LimiterState>,
    /// Wakes the refill task earlier than it has planned.
    alarm: Arc<Notify>,
}

impl CallLimiter {
    /// Must be called within a runtime, which runs the refill task.
    pub fn new(limits: &CallLimits, servers: BTreeMap<String, ServerSettings>) -> CallLimiter {
        let alarm = Arc::new(Notify::new());
        let room = Mutex::new(LimiterState::new(*limits, servers));
        let shared = Arc::new(LimiterShared { state: room, alarm: Arc::clone(&alarm) });
        let refill_task = tokio::spawn(refill(Arc::downgrade(&shared), alarm));
        CallLimiter { shared, _refill_task: AbortOnDropHandle::new(refill_task) }
    }

    /// Grants a permit for one call, or queues the waiter.
    pub fn admit(&self, tool: &ToolName, applicant: &Arc<dyn PermitWaiter>) -> Admission {
        let tenant = applicant.tenant().clone();
        let priority = applicant.priority();
        let address = Arc::as_ptr(applicant).addr();
        self.shared.with(|room, now| {
            if room.claim(tool, address) || room.try_acquire(tool, &tenant, now) {
                let shared = Arc::clone(&self.shared);
                return Admission::Granted(CallPermit::new(HeldPermit { shared, tool: tool.clone(), tenant }));
            }
            if !room.is_queued(tool, address) {
                if room.queued() >= QUEUED_MAX {
                    room.forget(tool, &tenant);
                    return Admission::After(QUEUE_FULL_PAUSE);
                }
                room.enqueue(tool, &tenant, priority, address, Arc::downgrade(applicant));
            }
            Admission::Later
        })
    }

    /// How many permits are held or granted.
    pub fn occupied(&self) -> u32 {
        self.shared.lock().occupied()
    }

    /// How many waiters are queued.
    pub fn queued(&self) -> usize {
        self.shared.lock().queued()
    }
}

impl LimiterShared {
    /// Changes the state, then grants free permits and wakes their waiters.
    fn with<T>(&self, change: impl FnOnce(&mut LimiterState, Instant) -> T) -> T {
        let now = Instant::now();
        let mut room = self.lock();
        // Queued waiters come before a new one, also where time has freed the capacity.
        let mut woken = room.settle(now);
        let answer = change(&mut room, now);
        woken.extend(room.settle(now));
        let alarm = room.is_due_earlier_than_planned();
        drop(room);
        if alarm {
            self.alarm.notify_one();
        }
        // Without the lock: a woken waiter may ask at once, and dropping the last reference may free a permit.
        for applicant in woken {
            applicant.wake();
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, LimiterState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The content of a permit; dropping it releases the permit.
struct HeldPermit {
    shared: Arc<LimiterShared>,
    tool: ToolName,
    tenant: TenantId,
}

impl Drop for HeldPermit {
    fn drop(&mut self) {
        self.shared.with(|room, _| room.release(&self.tool, &self.tenant));
    }
}

/// Grants what time makes free: unclaimed permits, and calls that a rate allows again.
async fn refill(shared: Weak<LimiterShared>, alarm: Arc<Notify>) {
    while let Some(limiter) = shared.upgrade() {
        let due = limiter.with(|room, _| room.plan());
        drop(limiter);
        match due {
            Some(due) => tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = alarm.notified() => {}
            },
            None => alarm.notified().await,
        }
    }
}
