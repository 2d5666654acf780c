//! Tools that come with Rutter: timers that survive a restart, a memory, notifications, and the journal itself.
//!
//! Each group is a server of its own: `timer`, `memory`, `notify`, `journal`. What they store is in the register, beside
//! the journals. A call that is repeated with its key has one effect and gets the same answer.

mod builtin_tools;
mod import;
mod journal;
mod memory;
mod moment;
mod notes;
mod notify;
mod timer;

pub use notify::{WebhookOutcome, WebhookPoster};

use crate::child::ChildSpawner;
use crate::config::NotificationChannel;
use crate::connector::Connector;
use builtin_tools::BuiltinConnector;
use notes::NoteStore;
use notify::NotifyTools;
use rutter_core::port;
use rutter_core::port::query::StoreQuery;
use rutter_core::port::register::Register;
use rutter_core::time::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use timer::TimerTools;
use tokio_util::sync::CancellationToken;

/// Returns the current time.
pub type BuiltinClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the built-in tools need.
#[derive(Clone)]
pub struct BuiltinContext {
    /// The working directory of the programs of `notify`. Earlier versions had their logs here.
    pub folder: PathBuf,
    /// The notification channels, beside `log`.
    pub channels: BTreeMap<String, NotificationChannel>,
    pub post: Arc<dyn WebhookPoster>,
    pub children: Arc<ChildSpawner>,
    pub query: Arc<dyn StoreQuery>,
    pub register: Arc<dyn Register>,
    pub clock: BuiltinClock,
}

impl fmt::Debug for BuiltinContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltinContext").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// Why the built-in tools could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] port::Error),
}

/// All built-in servers.
pub struct BuiltinServers {
    timers: Arc<TimerTools>,
    servers: Vec<(&'static str, Arc<dyn Connector>)>,
}

impl fmt::Debug for BuiltinServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.servers.iter().map(|(name, _)| *name).collect();
        f.debug_struct("BuiltinServers").field("servers", &names).finish()
    }
}

impl BuiltinServers {
    /// Imports what earlier versions left. Nothing fires before [`BuiltinServers::run_timers`].
    pub async fn open(setting: BuiltinContext) -> Result<BuiltinServers, OpenError> {
        std::fs::create_dir_all(&setting.folder)?;
        let notes = NoteStore::new(Arc::clone(&setting.register));
        import::import(&setting.folder, &notes, (setting.clock)()).await?;
        let notify = Arc::new(NotifyTools::open(&setting, notes.clone())?);
        let timers = Arc::new(TimerTools::new(notes.clone(), Arc::clone(&notify), setting.clock));
        let memories = memory::MemoryTools::new(notes);
        let servers: Vec<(&'static str, Arc<dyn Connector>)> = vec![
            ("timer", Arc::new(BuiltinConnector::new(Arc::clone(&timers)))),
            ("memory", Arc::new(BuiltinConnector::new(Arc::new(memories)))),
            ("notify", Arc::new(BuiltinConnector::new(notify))),
            ("journal", Arc::new(BuiltinConnector::new(Arc::new(journal::JournalTools::new(setting.query))))),
        ];
        Ok(BuiltinServers { timers, servers })
    }

    /// Each group under the name of its server.
    pub fn servers(&self) -> &[(&'static str, Arc<dyn Connector>)] {
        &self.servers
    }

    /// Whether a timer waits, which fires only while a process runs the timers.
    pub async fn has_timers(&self) -> Result<bool, port::Error> {
        self.timers.has_any().await
    }

    /// Fires timers as they come due, first those that came due while no process ran, until the shutdown.
    pub async fn run_timers(&self, shutdown: CancellationToken) {
        self.timers.run(shutdown).await;
    }
}
