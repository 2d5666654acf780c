//! Tools that come with Rutter: timers that survive a restart, a memory, notifications, and the journal itself.
//!
//! Each group is a server of its own: `timer`, `memory`, `notify`, `journal`. What they keep is in plain files of the data
//! directory. A call that is repeated with its key has one effect and gets the same answer.

mod journal;
mod log;
mod memory;
mod moment;
mod notify;
mod offer;
mod timer;

pub use notify::{Post, Posted};

use crate::child::Children;
use crate::config::Channel;
use crate::connector::Connector;
use notify::Notify;
use offer::Group;
use rutter_core::port::query::Query;
use rutter_core::time::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use timer::Timers;
use tokio_util::sync::CancellationToken;

/// Says what time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What the built-ins need of the world.
#[derive(Clone)]
pub struct Setting {
    /// Theirs alone.
    pub folder: PathBuf,
    /// Where notifications can go, beside `log`.
    pub channels: BTreeMap<String, Channel>,
    pub post: Arc<dyn Post>,
    pub children: Arc<Children>,
    pub query: Arc<dyn Query>,
    pub clock: Clock,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("folder", &self.folder).finish_non_exhaustive()
    }
}

/// All groups, opened.
pub struct Builtins {
    timers: Arc<Timers>,
    servers: Vec<(&'static str, Arc<dyn Connector>)>,
}

impl fmt::Debug for Builtins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.servers.iter().map(|(name, _)| *name).collect();
        f.debug_struct("Builtins").field("servers", &names).finish()
    }
}

impl Builtins {
    /// Reads what was kept. Nothing fires before [`Builtins::run_timers`].
    pub fn open(setting: Setting) -> io::Result<Builtins> {
        std::fs::create_dir_all(&setting.folder)?;
        let notify = Arc::new(Notify::open(&setting)?);
        let timers = Arc::new(Timers::open(&setting.folder, Arc::clone(&notify), setting.clock)?);
        let memories = memory::Memories::open(&setting.folder)?;
        let servers: Vec<(&'static str, Arc<dyn Connector>)> = vec![
            ("timer", Arc::new(Group::new(Arc::clone(&timers)))),
            ("memory", Arc::new(Group::new(Arc::new(memories)))),
            ("notify", Arc::new(Group::new(notify))),
            ("journal", Arc::new(Group::new(Arc::new(journal::Reader::new(setting.query))))),
        ];
        Ok(Builtins { timers, servers })
    }

    /// Each group under the name of its server.
    pub fn servers(&self) -> &[(&'static str, Arc<dyn Connector>)] {
        &self.servers
    }

    /// Whether a timer waits, which fires only while somebody is there.
    pub fn has_timers(&self) -> bool {
        self.timers.has_any()
    }

    /// Fires timers as they come due, first those that came due while nobody was there, until it is told to stop.
    pub async fn run_timers(&self, shutdown: CancellationToken) {
        self.timers.run(shutdown).await;
    }
}
