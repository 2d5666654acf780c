//! Room for calls: how many at once, how many per span, and whose turn it is.
//!
//! A [`Quay`] has berths. Who finds none stands in line; a berth that becomes free is granted to the next in line, who
//! is woken and has a second to come for it. Tenants take turns; within a tenant the higher priority goes first, then
//! who came first. Time here is the monotonic clock of the runtime: a wall clock that jumps changes no rate.

mod line;
mod pace;
mod room;

use crate::config::{Common, Limits};
use room::Room;
use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::tools::{Admission, Applicant, Berth};
use rutter_core::time::Millis;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// How long a granted berth is kept for whom it was granted to.
const GRANT_KEPT: Duration = Duration::from_secs(1);

/// Who comes when so many stand in line already is sent away for a while.
const STANDING_MAX: usize = 50_000;
const SENT_AWAY: Millis = Millis::seconds(1);

#[derive(Debug)]
pub struct Quay {
    shared: Arc<Shared>,
    /// Grants what only the passing of time makes free.
    _tender: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct Shared {
    room: Mutex<Room>,
    /// There is something to do earlier than the tender knows.
    alarm: Arc<Notify>,
}

impl Quay {
    /// Must be called within a runtime: what time makes free is granted from there.
    pub fn new(limits: &Limits, servers: BTreeMap<String, Common>) -> Quay {
        let alarm = Arc::new(Notify::new());
        let room = Mutex::new(Room::new(*limits, servers));
        let shared = Arc::new(Shared { room, alarm: Arc::clone(&alarm) });
        let tender = tokio::spawn(tend(Arc::downgrade(&shared), alarm));
        Quay { shared, _tender: AbortOnDropHandle::new(tender) }
    }

    /// A berth for one call, or a place in the line for it.
    pub fn admit(&self, tool: &ToolName, applicant: &Arc<dyn Applicant>) -> Admission {
        let tenant = applicant.tenant().clone();
        let priority = applicant.priority();
        let address = Arc::as_ptr(applicant).addr();
        self.shared.with(|room, now| {
            if room.claim(tool, address) || room.try_occupy(tool, &tenant, now) {
                let shared = Arc::clone(&self.shared);
                return Admission::Granted(Berth::new(Seat { shared, tool: tool.clone(), tenant }));
            }
            if !room.stands(tool, address) {
                if room.standing() >= STANDING_MAX {
                    room.forget(tool, &tenant);
                    return Admission::After(SENT_AWAY);
                }
                room.stand(tool, &tenant, priority, address, Arc::downgrade(applicant));
            }
            Admission::Later
        })
    }

    /// How many calls are being made or about to be.
    pub fn occupied(&self) -> u32 {
        self.shared.lock().occupied()
    }

    /// How many stand in line.
    pub fn standing(&self) -> usize {
        self.shared.lock().standing()
    }
}

impl Shared {
    /// Does something to the room, then grants what is free and wakes whom it was granted to.
    fn with<T>(&self, change: impl FnOnce(&mut Room, Instant) -> T) -> T {
        let now = Instant::now();
        let mut room = self.lock();
        // Those in line come before whoever comes now, also where time has made the room.
        let mut woken = room.settle(now);
        let answer = change(&mut room, now);
        woken.extend(room.settle(now));
        let alarm = room.is_due_earlier_than_planned();
        drop(room);
        if alarm {
            self.alarm.notify_one();
        }
        // Without the lock: whoever is woken may ask at once, and dropping the last reference may free a berth.
        for applicant in woken {
            applicant.wake();
        }
        answer
    }

    fn lock(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a berth holds.
struct Seat {
    shared: Arc<Shared>,
    tool: ToolName,
    tenant: TenantId,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.shared.with(|room, _| room.vacate(&self.tool, &self.tenant));
    }
}

/// Grants what time makes free: berths nobody came for, and calls that a rate allows again.
async fn tend(shared: Weak<Shared>, alarm: Arc<Notify>) {
    while let Some(quay) = shared.upgrade() {
        let due = quay.with(|room, _| room.plan());
        drop(quay);
        match due {
            Some(due) => tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                () = alarm.notified() => {}
            },
            None => alarm.notified().await,
        }
    }
}
