//! Firing timers as they come due, until the process ends.

use super::due::{self, DeliveryRetries, DueTimer};
use super::{LOOK_EVERY, TimerTools};
use crate::builtin::builtin_tools::store_failed;
use crate::builtin::moment;
use crate::builtin::notes::StoredNote;
use crate::builtin::notify::{self, LOG, Notification, NotificationPriority};
use futures::StreamExt;
use rutter_core::port::Error;
use rutter_core::port::register::{RegisterChange, RegisterKind};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::CallOutcome;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A timer that fires later than this after its time is marked as late.
const LATE_AFTER: Millis = Millis::seconds(10);

const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Deliveries tried before the message goes to the log instead.
const DELIVERIES_MAX: u32 = 5;

/// Timers whose messages are sent at once.
const FIRING_MAX: usize = 16;

/// How often old answers and notifications are removed.
const REMOVE_OLD_EVERY: Millis = Millis::hours(24);

/// The result of firing a timer.
enum Firing {
    /// It needs no further try: it fired, or is no longer set.
    Ended,
    Failed,
}

impl TimerTools {
    pub async fn run(&self, shutdown: CancellationToken) {
        let mut retries = DeliveryRetries::default();
        let mut removed_old_at = None;
        while !shutdown.is_cancelled() {
            let now = (self.clock)();
            let pause = match due::find(&self.notes, now, &retries).await {
                Ok(found) if found.due.is_empty() => {
                    self.remove_old(&mut removed_old_at, now).await;
                    found.next.map_or(LOOK_EVERY, |at| Duration::from_millis(at.since(now).0))
                }
                Ok(found) => {
                    self.fire_all(found.due, now, &mut retries, &shutdown).await;
                    continue;
                }
                Err(error) => {
                    tracing::warn!(error.code = error.code(), %error, "timers cannot be read");
                    LOOK_EVERY
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.set_soon.notified() => {}
                () = tokio::time::sleep(pause.min(LOOK_EVERY)) => {}
            }
        }
    }

    async fn fire_all(
        &self,
        due: Vec<DueTimer>,
        now: Timestamp,
        retries: &mut DeliveryRetries,
        shutdown: &CancellationToken,
    ) {
        let due: Vec<(u32, DueTimer)> = due.into_iter().map(|timer| (retries.count(&timer), timer)).collect();
        let firing = futures::stream::iter(due)
            .map(|(failures, timer)| async move { (self.fire(&timer, failures, shutdown).await, timer) });
        let fired: Vec<(Firing, DueTimer)> = firing.buffer_unordered(FIRING_MAX).collect().await;
        for (firing, timer) in fired {
            match firing {
                Firing::Ended => retries.ended(&timer),
                Firing::Failed => retries.failed(&timer, now),
            }
        }
    }

    /// Delivers the message, then removes the timer.
    async fn fire(&self, timer: &DueTimer, failures: u32, shutdown: &CancellationToken) -> Firing {
        let fired = match self.is_still_set(timer).await {
            Ok(true) if shutdown.is_cancelled() => return Firing::Failed,
            Ok(true) => self.deliver(timer, failures, shutdown).await,
            Ok(false) => return Firing::Ended,
            Err(error) => Err(store_failed(error)),
        };
        let ended = match fired {
            Ok(()) => self.remove(timer).await.map_err(store_failed),
            Err(outcome) => Err(outcome),
        };
        match ended {
            Ok(()) => Firing::Ended,
            Err(outcome) => {
                tracing::warn!(timer = timer.note.value.name, failures, ?outcome, "a timer did not fire");
                Firing::Failed
            }
        }
    }

    async fn deliver(&self, timer: &DueTimer, failures: u32, shutdown: &CancellationToken) -> Result<(), CallOutcome> {
        let (now, record) = ((self.clock)(), &timer.note.value);
        let wanted = record.channel.as_deref().unwrap_or(LOG);
        let (channel, message) = match failures >= DELIVERIES_MAX {
            true => (LOG, format!("{} (the channel {wanted:?} could not be reached)", record.message)),
            false => (wanted, record.message.clone()),
        };
        let notification = Notification {
            id: notify::id(&timer.tenant, "timer", &record.key),
            at: moment::write(now),
            tenant: timer.tenant.clone(),
            channel: channel.to_owned(),
            title: record.name.clone(),
            message,
            priority: NotificationPriority::Normal,
            due_at: Some(moment::write(record.at)),
            late: now.since(record.at) > LATE_AFTER,
        };
        self.notify.deliver(notification, now, DELIVERY_TIMEOUT, shutdown).await.map(|_| ())
    }

    /// Whether it was neither cancelled nor replaced since it was found due.
    async fn is_still_set(&self, timer: &DueTimer) -> Result<bool, Error> {
        let found = self.find(&timer.tenant, &timer.note.value.name).await?;
        Ok(found.is_some_and(|note| note.value == timer.note.value))
    }

    /// Only this timer: one of the same name that was set meanwhile waits for its own time.
    async fn remove(&self, timer: &DueTimer) -> Result<(), Error> {
        let _changing = self.changing.lock().await;
        if !self.is_still_set(timer).await? {
            return Ok(());
        }
        let StoredNote { id, version, .. } = &timer.note;
        let removal = RegisterChange::remove(RegisterKind::Timer, id).expecting(*version);
        self.notes.write(&timer.tenant, (self.clock)(), vec![removal]).await
    }

    async fn remove_old(&self, removed_old_at: &mut Option<Timestamp>, now: Timestamp) {
        if removed_old_at.is_some_and(|at| now.since(at) < REMOVE_OLD_EVERY) {
            return;
        }
        *removed_old_at = Some(now);
        for kind in [RegisterKind::ToolReply, RegisterKind::Notification] {
            if let Err(error) = self.notes.remove_old(kind, now).await {
                tracing::warn!(error.code = error.code(), %error, "old notes of built-in tools were not removed");
            }
        }
    }
}
