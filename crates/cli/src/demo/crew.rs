//! The processes the demo started, so that none of them is left behind however it ends.

use std::io;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(10);

#[derive(Clone, Debug, Default)]
pub(crate) struct Crew(Arc<Mutex<Vec<Child>>>);

impl Crew {
    /// Takes a process in, and says by which number it is known.
    pub(crate) fn add(&self, child: Child) -> u32 {
        let pid = child.id();
        self.all().push(child);
        pid
    }

    /// Kills it with -9, and waits until it is gone.
    pub(crate) fn kill(&self, pid: u32) -> io::Result<()> {
        let mut all = self.all();
        let Some(at) = all.iter().position(|child| child.id() == pid) else { return Ok(()) };
        let mut child = all.remove(at);
        let killed = child.kill();
        child.wait()?;
        killed
    }

    /// How it ended; nothing when it goes on for longer than one has patience for.
    pub(crate) fn wait(&self, pid: u32, patience: Duration) -> io::Result<Option<ExitStatus>> {
        let until = Instant::now() + patience;
        loop {
            let mut all = self.all();
            let Some(at) = all.iter().position(|child| child.id() == pid) else { return Ok(None) };
            if let Some(status) = all[at].try_wait()? {
                // It has been waited for already.
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

    /// Kills all of them. Who came last goes first: a client that sees its server go would start another.
    pub(crate) fn end(&self) {
        let mut all = self.all();
        while let Some(mut child) = all.pop() {
            // One that has ended already is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Lets them go on without us.
    pub(crate) fn let_go(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, Vec<Child>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
