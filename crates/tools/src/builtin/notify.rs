//! `notify`: telling somebody something. Every channel hears each notification at least once, with the same id each time;
//! one that was told is written down, and is then not told again.

mod channel;

pub use channel::{Post, Posted};

use super::log::Log;
use super::offer::{Effect, Offer, invalid, on_a_thread, read, served, text, unknown};
use super::{Setting, moment};
use crate::connector::{Request, Served};
use channel::Channels;
use rutter_core::hash::Hash;
use rutter_core::port::tools::Reply;
use rutter_core::tool::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The channel that is always there.
pub(super) const LOG: &str = "log";

/// When the file has grown to this it is set aside, and the one set aside before is dropped.
const LOG_BYTES_MAX: u64 = 16 * 1024 * 1024;

const TITLE_CHARACTERS_MAX: usize = 200;
const MESSAGE_CHARACTERS_MAX: usize = 10_000;

pub(super) struct Notify {
    channels: Channels,
    told: Arc<Mutex<Told>>,
}

/// What somebody is told; also a line of `notifications.log`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Notification {
    /// The same for every try to deliver it.
    pub id: String,
    pub at: String,
    pub tenant: String,
    pub channel: String,
    pub title: String,
    pub message: String,
    pub priority: Priority,
    /// For a timer: when it was due, and whether that is longer ago than it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Priority {
    Low,
    #[default]
    Normal,
    High,
    Urgent,
}

/// What was told, by id, with when: this file's and the one before it.
struct Told {
    log: Log<Notification>,
    aside: PathBuf,
    now: HashMap<String, String>,
    before: HashMap<String, String>,
}

impl Notify {
    pub fn open(setting: &Setting) -> io::Result<Notify> {
        let told = Told::open(&setting.folder)?;
        Ok(Notify { channels: Channels::new(setting)?, told: Arc::new(Mutex::new(told)) })
    }

    /// Refuses a channel there is not, and names those there are.
    pub fn check_channel(&self, channel: &str) -> Result<(), Outcome> {
        if self.channels.has(channel) {
            return Ok(());
        }
        Err(invalid(format!(
            "there is no channel {channel:?}; there are {}",
            self.channels.names().join(", ")
        )))
    }

    /// Tells it, unless that is known to have happened, and answers when it was told.
    pub async fn deliver(
        &self,
        notification: Notification,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<String, Outcome> {
        self.check_channel(&notification.channel)?;
        if let Some(at) = self.told.lock().unwrap_or_else(PoisonError::into_inner).at(&notification.id) {
            return Ok(at);
        }
        self.channels.tell(&notification, timeout, cancel).await?;
        let told = Arc::clone(&self.told);
        on_a_thread(move || told.lock().unwrap_or_else(PoisonError::into_inner).write(notification)).await
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Send {
    channel: String,
    title: String,
    message: String,
    #[serde(default)]
    priority: Priority,
}

impl Offer for Notify {
    fn tools(&self) -> Vec<Served> {
        let channels = self.channels.names();
        vec![served(
            "send",
            "Tells a person something through one of the configured channels. Use it when somebody should know of a \
             result or a problem without having asked. Delivered at least once: a repeated call is not sent again \
             once the channel has taken it, and a receiver can recognize a repetition by its id.",
            Effect::Idempotent,
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
        )]
    }

    fn call(&self, request: Request) -> Reply<'_, Result<Value, Outcome>> {
        Box::pin(async move {
            if request.tool != "send" {
                return Err(unknown(&request.tool));
            }
            let send: Send = read(&request.parameters)?;
            text("title", &send.title, TITLE_CHARACTERS_MAX)?;
            text("message", &send.message, MESSAGE_CHARACTERS_MAX)?;
            let tenant = request.id.identity.tenant.as_str();
            let id = id(tenant, "send", &request.key);
            let notification = Notification {
                id: id.clone(),
                at: moment::write(request.now),
                tenant: tenant.to_owned(),
                channel: send.channel.clone(),
                title: send.title,
                message: send.message,
                priority: send.priority,
                due_at: None,
                late: false,
            };
            let at = self.deliver(notification, request.timeout, &request.cancel).await?;
            Ok(json!({ "id": id, "channel": send.channel, "delivered_at": at }))
        })
    }
}

/// What a notification is called, so that a repetition can be recognized.
pub(super) fn id(tenant: &str, cause: &str, key: &str) -> String {
    let fields = [tenant.as_bytes(), cause.as_bytes(), key.as_bytes()];
    let hash = Hash::of_fields("notification", &fields).to_string();
    format!("note_{}", &hash[..32])
}

impl Told {
    fn open(folder: &Path) -> io::Result<Told> {
        let aside = folder.join("notifications.1.log");
        let before = if aside.exists() { Log::<Notification>::open(&aside)?.1 } else { Vec::new() };
        let (log, now) = Log::<Notification>::open(&folder.join("notifications.log"))?;
        let by_id = |lines: Vec<Notification>| lines.into_iter().map(|line| (line.id, line.at)).collect();
        Ok(Told { log, aside, now: by_id(now), before: by_id(before) })
    }

    fn at(&self, id: &str) -> Option<String> {
        self.now.get(id).or_else(|| self.before.get(id)).cloned()
    }

    fn write(&mut self, notification: Notification) -> Result<String, Outcome> {
        // Two calls with one key at once: the later one finds the line of the earlier.
        if let Some(at) = self.at(&notification.id) {
            return Ok(at);
        }
        if self.log.bytes() > LOG_BYTES_MAX {
            match self.log.rotate(&self.aside) {
                Ok(()) => self.before = std::mem::take(&mut self.now),
                Err(error) => tracing::warn!(%error, "notifications.log could not be set aside and grows on"),
            }
        }
        self.log.append(&notification)?;
        self.now.insert(notification.id, notification.at.clone());
        Ok(notification.at)
    }
}
