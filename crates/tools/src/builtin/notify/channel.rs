//! Notification channels: a note in the database, a webhook, a program.

use super::{LOG, Notification};
use crate::builtin::BuiltinContext;
use crate::builtin::builtin_tools::{invalid, not_done};
use crate::child::{ChildSpawner, ProgramStart, ResourceLimits, SandboxPermissions, SandboxSupport};
use crate::command::run::{CutReason, ProgramBounds, ProgramRun, run};
use crate::command::{basic_environment, last_words, sandbox};
use crate::config::NotificationChannel;
use rutter_core::port::tools::PortFuture;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Sends a webhook. Implementations refuse addresses of internal networks.
pub trait WebhookPoster: Send + Sync {
    /// `allow` are the networks the operator opens for this URL; `key` is for the header `Idempotency-Key`.
    fn post<'a>(
        &'a self,
        url: &'a str,
        allow: &'a [String],
        key: &'a str,
        body: Vec<u8>,
        timeout: Duration,
    ) -> PortFuture<'a, WebhookOutcome>;
}

/// The outcome of a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// It was answered with this status.
    Answered(u16),
    /// Nothing can have arrived, for this reason.
    NotSent(String),
    /// It may have arrived; the text says what is known.
    Unanswered(String),
}

pub(super) struct NotificationChannels {
    channels: BTreeMap<String, NotificationChannel>,
    post: Arc<dyn WebhookPoster>,
    children: Arc<ChildSpawner>,
    /// The working directory of programs.
    cwd: PathBuf,
    sandbox: SandboxSupport,
}

impl NotificationChannels {
    pub fn new(setting: &BuiltinContext) -> io::Result<NotificationChannels> {
        let cwd = std::path::absolute(setting.folder.join("notify"))?;
        std::fs::create_dir_all(&cwd)?;
        let mut channels = setting.channels.clone();
        channels.entry(LOG.to_owned()).or_insert(NotificationChannel::Log {});
        for (name, channel) in &channels {
            let is_absolute = |argv: &[String]| argv.first().is_some_and(|program| program.starts_with('/'));
            if matches!(channel, NotificationChannel::Command { argv, .. } if !is_absolute(argv)) {
                let message = format!("notify.{name}: `argv` must begin with the absolute path of a program");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
        }
        Ok(NotificationChannels {
            channels,
            post: Arc::clone(&setting.post),
            children: Arc::clone(&setting.children),
            cwd,
            sandbox: sandbox(),
        })
    }

    pub fn has(&self, name: &str) -> bool {
        self.channels.contains_key(name)
    }

    pub fn names(&self) -> Vec<&str> {
        self.channels.keys().map(String::as_str).collect()
    }

    /// Whether a notification to this channel is delivered by being stored.
    pub fn is_log(&self, name: &str) -> bool {
        matches!(self.channels.get(name), Some(NotificationChannel::Log {}))
    }

    pub async fn send(
        &self,
        notification: &Notification,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<(), CallOutcome> {
        let body = serde_json::to_vec(notification).map_err(|error| invalid(error.to_string()))?;
        match self.channels.get(&notification.channel) {
            // Storing it is delivering it.
            Some(NotificationChannel::Log {}) => Ok(()),
            Some(NotificationChannel::Webhook { url, allow }) => {
                let posting = self.post.post(url, allow, &notification.id, body, timeout);
                tokio::select! {
                    form = posting => form.delivered(),
                    () = cancel.cancelled() => Err(maybe(FailureCategory::Cancelled, "cancelled while it was being sent")),
                }
            }
            Some(NotificationChannel::Command { argv, network }) => {
                self.start(argv, *network, body, &notification.id, timeout, cancel).await
            }
            None => Err(invalid(format!("there is no channel {:?}", notification.channel))),
        }
    }

    async fn start(
        &self,
        argv: &[String],
        network: bool,
        body: Vec<u8>,
        id: &str,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<(), CallOutcome> {
        let mut environment = basic_environment(&self.cwd);
        environment.insert("RUTTER_KEY".to_owned(), id.to_owned());
        let reach = SandboxPermissions { read: Vec::new(), write: vec![self.cwd.clone()], network };
        let start = ProgramStart {
            program: PathBuf::from(&argv[0]),
            arguments: argv[1..].iter().map(Into::into).collect(),
            environment,
            cwd: self.cwd.clone(),
            about: "notify.send".to_owned(),
            limits: ResourceLimits {
                memory_mib: Some(512),
                cpu_seconds: Some(60),
                processes: Some(64),
                files: Some(256),
            },
            reach: (!matches!(self.sandbox, SandboxSupport::None { .. })).then_some(reach),
        };
        let bounds = ProgramBounds { timeout, grace: Duration::from_secs(2), output_kib: 64, processes: 64 };
        match run(&self.children, start, &bounds, body, cancel.cancelled()).await {
            ProgramRun::Never(why) => Err(not_done(FailureCategory::Unavailable, why)),
            ProgramRun::Ended { ended, .. } if ended.0.is_some_and(|status| status.success()) => Ok(()),
            ProgramRun::Ended { cut: Some(CutReason::Timeout), .. } => {
                Err(maybe(FailureCategory::Timeout, "the program took too long"))
            }
            ProgramRun::Ended { cut: Some(CutReason::Cancelled), .. } => {
                Err(maybe(FailureCategory::Cancelled, "the call was cancelled"))
            }
            ProgramRun::Ended { ended, stderr, .. } => {
                Err(maybe(FailureCategory::ToolError, &last_words(ended, &stderr)))
            }
        }
    }
}

impl WebhookOutcome {
    fn delivered(self) -> Result<(), CallOutcome> {
        let status = match self {
            WebhookOutcome::Answered(200..=299) => return Ok(()),
            WebhookOutcome::Answered(status) => status,
            WebhookOutcome::NotSent(why) => return Err(not_done(FailureCategory::Unavailable, why)),
            WebhookOutcome::Unanswered(why) => return Err(maybe(FailureCategory::Unavailable, &why)),
        };
        let message = format!("the receiver answered with status {status}");
        Err(match status {
            401 | 403 => not_done(FailureCategory::Unauthorized, message),
            404 | 410 => not_done(FailureCategory::NotFound, message),
            429 => not_done(FailureCategory::RateLimited, message),
            400..=499 => not_done(FailureCategory::InvalidInput, message),
            _ => maybe(FailureCategory::Unavailable, &message),
        })
    }
}

fn maybe(category: FailureCategory, message: &str) -> CallOutcome {
    CallOutcome::Maybe(ToolFailure::new(category, message))
}
