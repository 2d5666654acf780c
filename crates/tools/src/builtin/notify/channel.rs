//! The ways to somebody: a line in a file, a POST, a program.

use super::{LOG, Notification};
use crate::builtin::Setting;
use crate::builtin::offer::{invalid, not_done};
use crate::child::{Children, Limits, Reach, Sandbox, Start};
use crate::command::run::{Bounds, Cut, Ran, run};
use crate::command::{basic_environment, last_words, sandbox};
use crate::config::Channel;
use rutter_core::port::tools::Reply;
use rutter_core::tool::{Category, Failure, Outcome};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Sends a webhook. Whoever implements it keeps it away from addresses that are nobody else's business.
pub trait Post: Send + Sync {
    /// `allow` are the networks the operator opens for this URL; `key` is for the header `Idempotency-Key`.
    fn post<'a>(
        &'a self,
        url: &'a str,
        allow: &'a [String],
        key: &'a str,
        body: Vec<u8>,
        timeout: Duration,
    ) -> Reply<'a, Posted>;
}

/// What became of a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Posted {
    /// It was answered with this status.
    Answered(u16),
    /// Nothing can have arrived; why.
    NotSent(String),
    /// It may have arrived; what is known.
    Unanswered(String),
}

pub(super) struct Channels {
    channels: BTreeMap<String, Channel>,
    post: Arc<dyn Post>,
    children: Arc<Children>,
    /// Where programs start.
    cwd: PathBuf,
    sandbox: Sandbox,
}

impl Channels {
    pub fn new(setting: &Setting) -> io::Result<Channels> {
        let cwd = setting.folder.join("notify");
        std::fs::create_dir_all(&cwd)?;
        let mut channels = setting.channels.clone();
        channels.entry(LOG.to_owned()).or_insert(Channel::Log {});
        for (name, channel) in &channels {
            let is_absolute = |argv: &[String]| argv.first().is_some_and(|program| program.starts_with('/'));
            if matches!(channel, Channel::Command { argv, .. } if !is_absolute(argv)) {
                let message = format!("notify.{name}: `argv` must begin with the whole path of a program");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
            }
        }
        Ok(Channels {
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

    pub async fn tell(
        &self,
        notification: &Notification,
        timeout: Duration,
        cancel: &CancellationToken,
    ) -> Result<(), Outcome> {
        let body = serde_json::to_vec(notification).map_err(|error| invalid(error.to_string()))?;
        match self.channels.get(&notification.channel) {
            // The line that says it was told is the telling.
            Some(Channel::Log {}) => Ok(()),
            Some(Channel::Webhook { url, allow }) => {
                let posting = self.post.post(url, allow, &notification.id, body, timeout);
                tokio::select! {
                    posted = posting => posted.told(),
                    () = cancel.cancelled() => Err(maybe(Category::Cancelled, "cancelled while it was being sent")),
                }
            }
            Some(Channel::Command { argv, network }) => {
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
    ) -> Result<(), Outcome> {
        let mut environment = basic_environment(&self.cwd);
        environment.insert("RUTTER_KEY".to_owned(), id.to_owned());
        let reach = Reach { read: Vec::new(), write: vec![self.cwd.clone()], network };
        let start = Start {
            program: PathBuf::from(&argv[0]),
            arguments: argv[1..].iter().map(Into::into).collect(),
            environment,
            cwd: self.cwd.clone(),
            about: "notify.send".to_owned(),
            limits: Limits {
                memory_mib: Some(512),
                cpu_seconds: Some(60),
                processes: Some(64),
                files: Some(256),
            },
            reach: (!matches!(self.sandbox, Sandbox::None { .. })).then_some(reach),
        };
        let bounds = Bounds { timeout, grace: Duration::from_secs(2), output_kib: 64, processes: 64 };
        match run(&self.children, start, &bounds, body, cancel.cancelled()).await {
            Ran::Never(why) => Err(not_done(Category::Unavailable, why)),
            Ran::Ended { ended, .. } if ended.0.is_some_and(|status| status.success()) => Ok(()),
            Ran::Ended { cut: Some(Cut::Timeout), .. } => {
                Err(maybe(Category::Timeout, "the program took too long"))
            }
            Ran::Ended { cut: Some(Cut::Cancelled), .. } => {
                Err(maybe(Category::Cancelled, "the call was cancelled"))
            }
            Ran::Ended { ended, stderr, .. } => Err(maybe(Category::ToolError, &last_words(ended, &stderr))),
        }
    }
}

impl Posted {
    fn told(self) -> Result<(), Outcome> {
        let status = match self {
            Posted::Answered(200..=299) => return Ok(()),
            Posted::Answered(status) => status,
            Posted::NotSent(why) => return Err(not_done(Category::Unavailable, why)),
            Posted::Unanswered(why) => return Err(maybe(Category::Unavailable, &why)),
        };
        let message = format!("the receiver answered with status {status}");
        Err(match status {
            401 | 403 => not_done(Category::Unauthorized, message),
            404 | 410 => not_done(Category::NotFound, message),
            429 => not_done(Category::RateLimited, message),
            400..=499 => not_done(Category::InvalidInput, message),
            _ => maybe(Category::Unavailable, &message),
        })
    }
}

fn maybe(category: Category, message: &str) -> Outcome {
    Outcome::Maybe(Failure::new(category, message))
}
