//! `timer`: a message at a later time, also when the process was not there all the while.
//!
//! A timer fires once. Its notification has an id of its own, so that when we die between telling somebody and writing
//! down that we did, the channel's own record tells that it was told.

mod kept;

use super::offer::{Effect, Offer, invalid, not_done, on_a_thread, read, served, text, unknown};
use super::{Clock, moment, notify};
use crate::connector::{Request, Served};
use kept::{Kept, Set};
use notify::{LOG, Notification, Notify, Priority};
use rutter_core::port::tools::Reply;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{Category, Outcome};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify as Signal;
use tokio_util::sync::CancellationToken;

const TIMERS_MAX: usize = 10_000;
const NAME_CHARACTERS_MAX: usize = 128;
const MESSAGE_CHARACTERS_MAX: usize = 4_000;

/// A timer that fires later than this after its time says so.
const LATE_AFTER: Millis = Millis::seconds(10);

/// How long to wait at most before looking at the clock again: somebody may set it.
const LOOK_EVERY: Duration = Duration::from_secs(10);

const DELIVERY_TIMEOUT: Duration = Duration::from_secs(30);

/// Tries to reach a channel before the message goes to the log instead.
const DELIVERIES_MAX: u32 = 5;

/// Timers whose messages are sent at once.
const FIRING_MAX: usize = 16;

pub(super) struct Timers {
    kept: Arc<Mutex<Kept>>,
    notify: Arc<Notify>,
    clock: Clock,
    /// Something was set or cancelled.
    changed: Signal,
}

impl Timers {
    pub fn open(folder: &Path, notify: Arc<Notify>, clock: Clock) -> io::Result<Timers> {
        let kept = Kept::open(&folder.join("timers.log"))?;
        Ok(Timers { kept: Arc::new(Mutex::new(kept)), notify, clock, changed: Signal::new() })
    }

    pub fn has_any(&self) -> bool {
        self.kept().next().is_some()
    }

    pub async fn run(&self, shutdown: CancellationToken) {
        loop {
            let now = (self.clock)();
            let due = self.kept().due(now, FIRING_MAX);
            if due.is_empty() {
                let wait = self.kept().next().map_or(LOOK_EVERY, |at| Duration::from_millis(at.since(now).0));
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep(wait.min(LOOK_EVERY)) => {}
                }
                continue;
            }
            let firing = futures::future::join_all(due.into_iter().map(|set| self.fire(set, now, &shutdown)));
            firing.await;
            if shutdown.is_cancelled() {
                return;
            }
        }
    }

    /// Tells it and writes down that it was told, or when to try again.
    async fn fire(&self, set: Set, now: Timestamp, shutdown: &CancellationToken) {
        let tries = self.kept().tries(&set);
        let gives_up = tries >= DELIVERIES_MAX;
        let wanted = set.channel.as_deref().unwrap_or(LOG);
        let channel = if gives_up { LOG } else { wanted };
        let message = match gives_up {
            true => format!("{} (the channel {wanted:?} could not be reached)", set.message),
            false => set.message.clone(),
        };
        let notification = Notification {
            id: notify::id(&set.tenant, "timer", &set.key),
            at: moment::write(now),
            tenant: set.tenant.clone(),
            channel: channel.to_owned(),
            title: set.name.clone(),
            message,
            priority: Priority::Normal,
            due_at: Some(moment::write(set.at)),
            late: now.since(set.at) > LATE_AFTER,
        };
        match self.notify.deliver(notification, DELIVERY_TIMEOUT, shutdown).await {
            Ok(_) => {
                let kept = Arc::clone(&self.kept);
                let fired = on_a_thread(move || lock(&kept).fired(&set, now)).await;
                if let Err(outcome) = fired {
                    tracing::warn!(?outcome, "a timer fired, and that could not be written down");
                }
            }
            Err(outcome) => {
                tracing::warn!(timer = set.name, tries, ?outcome, "a timer's message was not delivered");
                self.kept().try_again(&set, now);
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }

    async fn set(
        &self,
        asked: SetAsked,
        tenant: String,
        key: String,
        now: Timestamp,
    ) -> Result<Value, Outcome> {
        text("name", &asked.name, NAME_CHARACTERS_MAX)?;
        text("message", &asked.message, MESSAGE_CHARACTERS_MAX)?;
        let at = asked.when(now)?;
        if let Some(channel) = &asked.channel {
            self.notify.check_channel(channel)?;
        }
        let (name, message, channel) = (asked.name, asked.message, asked.channel);
        let set = Set { tenant, key, name, message, channel, at, set_at: now, replaced: false };
        let kept = Arc::clone(&self.kept);
        let answer = on_a_thread(move || lock(&kept).set(set, TIMERS_MAX)).await;
        self.changed.notify_one();
        answer
    }

    async fn cancel(
        &self,
        name: String,
        tenant: String,
        key: String,
        now: Timestamp,
    ) -> Result<Value, Outcome> {
        let kept = Arc::clone(&self.kept);
        on_a_thread(move || lock(&kept).cancel(tenant, key, name, now)).await
    }

    fn list(&self, tenant: &str) -> Value {
        let kept = self.kept();
        let shown = |set: &Set| {
            let (at, channel) = (moment::write(set.at), set.channel.as_deref().unwrap_or(LOG));
            json!({ "name": set.name, "at": at, "message": set.message, "channel": channel })
        };
        json!({ "timers": kept.of(tenant).into_iter().map(shown).collect::<Vec<Value>>() })
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    // Every line is written before what it says is done, so a panic in between leaves nothing half done.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetAsked {
    name: String,
    message: String,
    at: Option<String>,
    after: Option<String>,
    channel: Option<String>,
}

impl SetAsked {
    fn when(&self, now: Timestamp) -> Result<Timestamp, Outcome> {
        match (&self.at, &self.after) {
            (Some(at), None) => moment::read(at)
                .ok_or_else(|| invalid(format!("expected a time such as 2026-11-16T05:30:00Z, got {at:?}"))),
            (None, Some(after)) => Millis::parse(after)
                .map(|after| now.plus(after))
                .ok_or_else(|| invalid(format!("expected a span such as 30s or 2h, got {after:?}"))),
            _ => Err(invalid("give either `at` or `after`")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelAsked {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListAsked {}

impl Offer for Timers {
    fn tools(&self) -> Vec<Served> {
        let name = json!({ "type": "string", "maxLength": NAME_CHARACTERS_MAX });
        let at = json!({ "type": "string", "format": "date-time" });
        vec![
            served(
                "set",
                "Sets a timer: at that time the message goes to a notification channel, once, also after a restart. Use \
                 it for reminders and for looking at something again later. A timer of the same name is replaced.",
                Effect::Idempotent,
                json!({
                    "name": name,
                    "message": { "type": "string", "maxLength": MESSAGE_CHARACTERS_MAX },
                    "at": { "type": "string", "format": "date-time", "description": "either this" },
                    "after": { "type": "string", "description": "or this: a span such as 30s, 10m, 2h, 1d" },
                    "channel": { "type": "string", "description": "a channel of notify.send; the default is log" },
                }),
                &["name", "message"],
                json!({ "name": name, "at": at, "replaced": { "type": "boolean" } }),
            ),
            served(
                "cancel",
                "Cancels a timer that has not fired. It is no error if there is none; the answer says so.",
                Effect::Idempotent,
                json!({ "name": name }),
                &["name"],
                json!({ "name": name, "cancelled": { "type": "boolean" } }),
            ),
            served(
                "list",
                "Lists the timers that have not fired, the next first.",
                Effect::None,
                json!({}),
                &[],
                json!({ "timers": { "type": "array", "items": { "type": "object" } } }),
            ),
        ]
    }

    fn call(&self, request: Request) -> Reply<'_, Result<Value, Outcome>> {
        Box::pin(async move {
            let tenant = request.id.identity.tenant.as_str().to_owned();
            match request.tool.as_str() {
                "set" => self.set(read(&request.parameters)?, tenant, request.key, request.now).await,
                "cancel" => {
                    let asked: CancelAsked = read(&request.parameters)?;
                    self.cancel(asked.name, tenant, request.key, request.now).await
                }
                "list" => {
                    let ListAsked {} = read(&request.parameters)?;
                    Ok(self.list(&tenant))
                }
                other => Err(unknown(other)),
            }
        })
    }
}

/// There is no room for another timer.
fn full(timers_max: usize) -> Outcome {
    not_done(
        Category::Conflict,
        format!("{timers_max} timers are set, which is the most there can be; cancel some"),
    )
}
