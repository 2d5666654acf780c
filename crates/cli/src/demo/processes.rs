//! The processes the demo started, so that none of them remains however it ends.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, Default)]
pub(crate) struct DemoProcesses(Arc<Mutex<Vec<Child>>>);

impl DemoProcesses {
    /// Adds a process, and returns its id.
    pub(crate) fn add(&self, child: Child) -> u32 {
        let pid = child.id();
        self.all().push(child);
        pid
    }

    /// Kills a process with -9, and waits until it is gone.
    pub(crate) fn kill(&self, pid: u32) -> io::Result<()> {
        let mut all = self.all();
        let Some(at) = all.iter().position(|child| child.id() == pid) else { return Ok(()) };
        let mut child = all.remove(at);
        let killed = child.kill();
        child.wait()?;
        killed
    }

    /// Waits for a process to exit; `None` after `patience`.
    pub(crate) fn wait(&self, pid: u32, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let until = Instant::now() + patience;
        loop {
            let mut all = self.all();
            let Some(at) = all.iter().position(|child| child.id() == pid) else { return Ok(None) };
            if let Some(status) = all[at].try_wait()? {
                // It has already been waited for.
                let _ = all.remove(at).wait();
                return Ok(Some(status));
            }
            drop(all);
            if Instant::now() > until {
                return Ok(None);
            }
            thread::sleep(POLL);
        }
    }

    /// Kills all of them, the last started first: a client that sees its server end would start another.
    pub(crate) fn end(&self) {
        let mut all = self.all();
        while let Some(mut child) = all.pop() {
            // It may have exited already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Lets them continue without us.
    pub(crate) fn release(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, Vec<Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
