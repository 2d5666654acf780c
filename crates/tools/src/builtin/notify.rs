//! `notify`: sends messages to people. A channel gets each notification at least once, with the same id each time; one
//! that was delivered is stored, and is then not sent again.

mod channel;

pub use channel::{WebhookOutcome, WebhookPoster};

use super::builtin_tools::{BuiltinEffect, BuiltinTools, invalid, limit, read, served, store_failed, text, unknown};
use super::notes::NoteStore;
use super::{BuiltinContext, moment};
use crate::connector::{ConnectorRequest, ServedTool};
use channel::NotificationChannels;
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use rutter_core::port::Error;
use rutter_core::port::register::{RegisterChange, RegisterKind};
use rutter_core::port::tools::PortFuture;
use rutter_core::time::Timestamp;
use rutter_core::tool::CallOutcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The channel that is always there.
pub(super) const LOG: &str = "log";

const TITLE_CHARACTERS_MAX: usize = 200;
const MESSAGE_CHARACTERS_MAX: usize = 10_000;

pub(super) struct NotifyTools {
    channels: NotificationChannels,
    notes: NoteStore,
}

/// A message as channels get it, and as it is stored once it was delivered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Notification {
    /// The same for every try to deliver it.
    pub id: String,
    pub at: String,
    pub tenant: TenantId,
    pub channel: String,
    pub title: String,
    pub message: String,
    pub priority: NotificationPriority,
    /// For a timer: when it was due, and whether it fired late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NotificationPriority {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

impl NotifyTools {
    pub fn open(setting: &BuiltinContext, notes: NoteStore) -> io::Result<NotifyTools> {
        Ok(NotifyTools { channels: NotificationChannels::new(setting)?, notes })
    }

    /// Refuses an unknown channel, and names the known ones.
    pub fn check_channel(&self, channel: &str) -> Result<(), CallOutcome> {
        if self.channels.has(channel) {
            return Ok(());
        }
        Err(invalid(format!("there is no channel {channel:?}; there are {}", self.channels.names().join(", "))))
    }

    /// Delivers a notification unless it was already delivered; returns when it was.
    pub async fn deliver(
        &self,
        notification: Notification,
        now: Timestamp,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<String, CallOutcome> {
        self.check_channel(&notification.channel)?;
        if let Some(at) = self.delivered_at(&notification).await.map_err(store_failed)? {
            return Ok(at);
        }
        self.channels.send(&notification, timeout, cancel).await?;
        match self.record(&notification, now).await {
            Ok(at) => Ok(at),
            Err(error) if self.channels.is_log(&notification.channel) => Err(store_failed(error)),
            // The channel has it, and a repeated call will send it again.
            Err(error) => match store_failed(error) {
                CallOutcome::NotDone(failure) => Err(CallOutcome::Maybe(failure)),
                outcome => Err(outcome),
            },
        }
    }

    async fn delivered_at(&self, notification: &Notification) -> Result<Option<String>, Error> {
        let found = self.notes.find::<Notification>(&notification.tenant, RegisterKind::Notification, &notification.id);
        Ok(found.await?.map(|note| note.value.at))
    }

    /// Stores that it was delivered.
    async fn record(&self, notification: &Notification, now: Timestamp) -> Result<String, Error> {
        let change =
            RegisterChange::put(RegisterKind::Notification, &notification.id, json!(notification)).expecting(0);
        match self.notes.write(&notification.tenant, now, vec![change]).await {
            Ok(()) => Ok(notification.at.clone()),
            // Two calls with one key at once: the later one finds the note of the earlier.
            Err(Error::Conflict { .. }) => {
                let found = self.delivered_at(notification).await?;
                Ok(found.unwrap_or_else(|| notification.at.clone()))
            }
            Err(error) => Err(error),
        }
    }

    async fn send(&self, request: ConnectorRequest) -> Result<Value, CallOutcome> {
        let send: SendArguments = read(&request.parameters)?;
        text("title", &send.title, TITLE_CHARACTERS_MAX)?;
        text("message", &send.message, MESSAGE_CHARACTERS_MAX)?;
        let tenant = request.id.identity.tenant.clone();
        let id = id(&tenant, "send", &request.key);
        let notification = Notification {
            id: id.clone(),
            at: moment::write(request.now),
            tenant,
            channel: send.channel.clone(),
            title: send.title,
            message: send.message,
            priority: send.priority,
            due_at: None,
            late: false,
        };
        let at = self.deliver(notification, request.now, request.timeout, &request.cancel).await?;
        Ok(json!({ "id": id, "channel": send.channel, "delivered_at": at }))
    }

    /// Newest first.
    async fn recent(&self, asked: Recent, tenant: &TenantId) -> Result<Value, CallOutcome> {
        let limit = limit(asked.limit)? as usize;
        let mut newest: Vec<Notification> = Vec::new();
        let newest_first = |list: &mut Vec<Notification>| {
            list.sort_by_cached_key(|notification| std::cmp::Reverse(moment::read(&notification.at)));
            list.truncate(limit);
        };
        let read = self.notes.for_each(tenant, RegisterKind::Notification, |note| {
            newest.push(note.value);
            // Bounds the memory used, however many there are.
            if newest.len() >= 10 * limit {
                newest_first(&mut newest);
            }
        });
        read.await.map_err(store_failed)?;
        newest_first(&mut newest);
        Ok(json!({ "notifications": newest }))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SendArguments {
    channel: String,
    title: String,
    message: String,
    #[serde(default)]
    priority: NotificationPriority,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recent {
    limit: Option<u32>,
}

impl BuiltinTools for NotifyTools {
    fn tools(&self) -> Vec<ServedTool> {
        let channels = self.channels.names();
        let limit = json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 10 });
        let send = served(
            "send",
            "Tells a person something through one of the configured channels. Use it when somebody should know of a \
             result or a problem without having asked. Delivered at least once: a repeated call is not sent again \
             once the channel has taken it, and a receiver can recognize a repetition by its id.",
            BuiltinEffect::Idempotent,
            json!({
                "channel": { "type": "string", "enum": channels, "description": "where to send it" },
                "title": { "type": "string", "maxLength": TITLE_CHARACTERS_MAX },
                "message": { "type": "string", "maxLength": MESSAGE_CHARACTERS_MAX },
                "priority": { "type": "string", "enum": ["low", "normal", "high", "urgent"], "default": "normal" },
            }),
            &["channel", "title", "message"],
            json!({
                "id": { "type": "string" },
                "channel": { "type": "string" },
                "delivered_at": { "type": "string", "format": "date-time" },
            }),
        );
        let recent = served(
            "recent",
            "Lists the notifications that were delivered in the last 30 days, the newest first. The channel log has no \
             other place where they can be read.",
            BuiltinEffect::None,
            json!({ "limit": limit }),
            &[],
            json!({ "notifications": { "type": "array", "items": { "type": "object" } } }),
        );
        vec![send, recent]
    }

    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, Result<Value, CallOutcome>> {
        Box::pin(async move {
            match request.tool.as_str() {
                "send" => self.send(request).await,
                "recent" => self.recent(read(&request.parameters)?, &request.id.identity.tenant).await,
                other => Err(unknown(other)),
            }
        })
    }
}

/// The id of a notification: the same for every repetition of its cause.
pub(super) fn id(tenant: &TenantId, cause: &str, key: &str) -> String {
    let fields = [tenant.as_str().as_bytes(), cause.as_bytes(), key.as_bytes()];
    let hash = Hash::of_fields("notification", &fields).to_string();
    format!("note_{}", &hash[..32])
}
