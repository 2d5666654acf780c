//! `timer`: sends a message at a later time, also if the process was restarted in between.
//!
//! A timer is a note until it has fired or is cancelled. It fires once: its notification has an id of its own, so when
//! the process dies between delivering it and removing the timer, the stored notification shows that it was delivered.

mod due;
mod fire;

use super::builtin_tools::{BuiltinEffect, BuiltinTools, invalid, not_done, read, served, store_failed, text, unknown};
use super::notes::{NoteStore, StoredNote};
use super::{BuiltinClock, moment, notify};
use crate::connector::{ConnectorRequest, ServedTool};
use notify::{LOG, NotifyTools};
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use rutter_core::port::Error;
use rutter_core::port::register::{RegisterChange, RegisterKind};
use rutter_core::port::tools::PortFuture;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{CallOutcome, FailureCategory};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, Notify as Signal};

const TIMERS_MAX: u64 = 10_000;
const NAME_CHARACTERS_MAX: usize = 128;
const MESSAGE_CHARACTERS_MAX: usize = 4_000;

/// The longest pause between two checks of the clock and the timers: the clock may have been set.
const LOOK_EVERY: Duration = Duration::from_secs(10);

pub(super) struct TimerTools {
    notes: NoteStore,
    notify: Arc<NotifyTools>,
    clock: BuiltinClock,
    /// Held from reading a timer until its change is stored. Versions alone are not enough: a timer that is cancelled
    /// and set again starts at version 1 again.
    changing: Mutex<()>,
    /// A timer was set that is due before the next check.
    set_soon: Signal,
}

/// A timer as it is stored, under the hash of its name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TimerRecord {
    /// The key of the call that set it.
    pub key: String,
    pub name: String,
    pub message: String,
    pub channel: Option<String>,
    pub at: Timestamp,
    pub set_at: Timestamp,
}

impl TimerTools {
    pub fn new(notes: NoteStore, notify: Arc<NotifyTools>, clock: BuiltinClock) -> TimerTools {
        TimerTools { notes, notify, clock, changing: Mutex::default(), set_soon: Signal::new() }
    }

    pub async fn has_any(&self) -> Result<bool, Error> {
        Ok(!self.notes.tenants(RegisterKind::Timer).await?.is_empty())
    }

    async fn find(&self, tenant: &TenantId, name: &str) -> Result<Option<StoredNote<TimerRecord>>, Error> {
        self.notes.find(tenant, RegisterKind::Timer, &timer_id(name)).await
    }

    async fn answered(&self, tenant: &TenantId, key: &str) -> Result<Option<Value>, CallOutcome> {
        let found = self.notes.find(tenant, RegisterKind::ToolReply, &reply_id(key)).await;
        Ok(found.map_err(store_failed)?.map(|note| note.value))
    }

    async fn set(
        &self,
        asked: SetTimerArguments,
        tenant: &TenantId,
        key: String,
        now: Timestamp,
    ) -> Result<Value, CallOutcome> {
        text("name", &asked.name, NAME_CHARACTERS_MAX)?;
        text("message", &asked.message, MESSAGE_CHARACTERS_MAX)?;
        let at = asked.when(now)?;
        if let Some(channel) = &asked.channel {
            self.notify.check_channel(channel)?;
        }
        let SetTimerArguments { name, message, channel, .. } = asked;
        let _changing = self.changing.lock().await;
        if let Some(answer) = self.answered(tenant, &key).await? {
            return Ok(answer);
        }
        let replaced = self.find(tenant, &name).await.map_err(store_failed)?;
        if replaced.is_none()
            && self.notes.count(tenant, RegisterKind::Timer).await.map_err(store_failed)? >= TIMERS_MAX
        {
            return Err(full());
        }
        let answer = set_answer(&name, at, replaced.is_some());
        let reply = RegisterChange::put(RegisterKind::ToolReply, &reply_id(&key), answer.clone()).expecting(0);
        let id = timer_id(&name);
        let record = TimerRecord { key, name, message, channel, at, set_at: now };
        let version = replaced.map_or(0, |note| note.version);
        let put = RegisterChange::put(RegisterKind::Timer, &id, json!(record)).expecting(version);
        self.notes.write(tenant, now, vec![put, reply]).await.map_err(store_failed)?;
        // A later one is found by the next check.
        if u128::from(at.since(now).0) <= LOOK_EVERY.as_millis() {
            self.set_soon.notify_one();
        }
        Ok(answer)
    }

    async fn cancel(&self, name: &str, tenant: &TenantId, key: &str, now: Timestamp) -> Result<Value, CallOutcome> {
        let _changing = self.changing.lock().await;
        if let Some(answer) = self.answered(tenant, key).await? {
            return Ok(answer);
        }
        let found = self.find(tenant, name).await.map_err(store_failed)?;
        let answer = cancel_answer(name, found.is_some());
        let mut changes =
            vec![RegisterChange::put(RegisterKind::ToolReply, &reply_id(key), answer.clone()).expecting(0)];
        changes.extend(found.map(|note| RegisterChange::remove(RegisterKind::Timer, &note.id).expecting(note.version)));
        self.notes.write(tenant, now, changes).await.map_err(store_failed)?;
        Ok(answer)
    }

    async fn list(&self, tenant: &TenantId) -> Result<Value, CallOutcome> {
        let mut timers: Vec<TimerRecord> = Vec::new();
        let read = self.notes.for_each(tenant, RegisterKind::Timer, |note| timers.push(note.value));
        read.await.map_err(store_failed)?;
        timers.sort_by(|one, other| one.at.cmp(&other.at).then_with(|| one.name.cmp(&other.name)));
        let timer_json = |timer: TimerRecord| {
            let (at, channel) = (moment::write(timer.at), timer.channel.as_deref().unwrap_or(LOG));
            json!({ "name": timer.name, "at": at, "message": timer.message, "channel": channel })
        };
        Ok(json!({ "timers": timers.into_iter().map(timer_json).collect::<Vec<Value>>() }))
    }
}

/// A name may hold characters that an id may not.
pub(super) fn timer_id(name: &str) -> String {
    Hash::of_fields("timer", &[name.as_bytes()]).to_string()
}

pub(super) fn reply_id(key: &str) -> String {
    Hash::of_fields("timer reply", &[key.as_bytes()]).to_string()
}

pub(super) fn set_answer(name: &str, at: Timestamp, replaced: bool) -> Value {
    json!({ "name": name, "at": moment::write(at), "replaced": replaced })
}

pub(super) fn cancel_answer(name: &str, cancelled: bool) -> Value {
    json!({ "name": name, "cancelled": cancelled })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetTimerArguments {
    name: String,
    message: String,
    at: Option<String>,
    after: Option<String>,
    channel: Option<String>,
}

impl SetTimerArguments {
    fn when(&self, now: Timestamp) -> Result<Timestamp, CallOutcome> {
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
struct CancelTimerArguments {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListTimersArguments {}

impl BuiltinTools for TimerTools {
    fn tools(&self) -> Vec<ServedTool> {
        let name = json!({ "type": "string", "maxLength": NAME_CHARACTERS_MAX });
        let at = json!({ "type": "string", "format": "date-time" });
        vec![
            served(
                "set",
                "Sets a timer: at that time the message goes to a notification channel, once, also after a restart. Use \
                 it for reminders and for looking at something again later. A timer of the same name is replaced.",
                BuiltinEffect::Idempotent,
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
                BuiltinEffect::Idempotent,
                json!({ "name": name }),
                &["name"],
                json!({ "name": name, "cancelled": { "type": "boolean" } }),
            ),
            served(
                "list",
                "Lists the timers that have not fired, the next first.",
                BuiltinEffect::None,
                json!({}),
                &[],
                json!({ "timers": { "type": "array", "items": { "type": "object" } } }),
            ),
        ]
    }

    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, Result<Value, CallOutcome>> {
        Box::pin(async move {
            let tenant = &request.id.identity.tenant;
            match request.tool.as_str() {
                "set" => self.set(read(&request.parameters)?, tenant, request.key, request.now).await,
                "cancel" => {
                    let asked: CancelTimerArguments = read(&request.parameters)?;
                    self.cancel(&asked.name, tenant, &request.key, request.now).await
                }
                "list" => {
                    let ListTimersArguments {} = read(&request.parameters)?;
                    self.list(tenant).await
                }
                other => Err(unknown(other)),
            }
        })
    }
}

/// The limit of timers is reached.
fn full() -> CallOutcome {
    not_done(
        FailureCategory::Conflict,
        format!("{TIMERS_MAX} timers are set, which is the most there can be; cancel some"),
    )
}
