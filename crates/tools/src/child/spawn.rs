//! Starting and reaping children. One thread starts them all: the signal that kills a child when its parent dies is
//! bound to the thread that started it, and this one lives as long as the process.

use super::child_registry::ChildRegistry;
use super::{ProgramExit, process};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// The capacity of the queue of starts; further callers wait.
const STARTS_WAITING_MAX: usize = 64;

/// How long descendants that were killed may take to disappear.
const STRAYS_GONE_WITHIN: Duration = Duration::from_secs(5);

/// A registered child, with a thread that waits for its end.
#[derive(Debug)]
pub(super) struct SpawnedChild {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    pub leash: KillOnDrop,
    pub ended: watch::Receiver<Option<ProgramExit>>,
}

/// Kills the group when dropped.
#[derive(Debug)]
pub(super) struct KillOnDrop {
    pub group: Arc<ProcessGroup>,
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
    }
}

/// The process group a child leads.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    pid: Pid,
    /// Until its leader is reaped. Afterwards the pid may be reused.
    alive: Mutex<bool>,
}

impl ProcessGroup {
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    pub fn signal(&self, signal: Signal) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if *alive {
            // It can only fail because no process is left.
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }

    pub fn processes(&self) -> usize {
        process::all().filter(|process| process.group == self.id() && !process.is_dead()).count()
    }
}

pub(super) async fn spawn(
    mut command: Command,
    roster: Arc<ChildRegistry>,
    about: String,
    mark: String,
) -> io::Result<SpawnedChild> {
    static STARTER: OnceLock<mpsc::Sender<SpawnRequest>> = OnceLock::new();
    command.process_group(0);
    let (answer, started) = oneshot::channel();
    let starter = STARTER.get_or_init(starter);
    let start = SpawnRequest { command, registry: roster, about, mark, answer };
    starter.send(start).await.map_err(|_| io::Error::other("the thread that starts programs is gone"))?;
    started.await.map_err(|_| io::Error::other("the thread that starts programs gave no answer"))?
}

struct SpawnRequest {
    command: Command,
    registry: Arc<ChildRegistry>,
    about: String,
    mark: String,
    answer: oneshot::Sender<io::Result<SpawnedChild>>,
}

fn starter() -> mpsc::Sender<SpawnRequest> {
    let (sender, mut receiver) = mpsc::channel::<SpawnRequest>(STARTS_WAITING_MAX);
    let thread = move || {
        while let Some(mut start) = receiver.blocking_recv() {
            let spawned = start_one(&mut start.command, start.registry, &start.about, start.mark);
            // The caller may have gone; then the child is dropped, and so killed, here.
            drop(start.answer.send(spawned));
        }
    };
    std::thread::Builder::new()
        .name("children".to_owned())
        .spawn(thread)
        .map(|_| sender)
        .unwrap_or_else(|_| mpsc::channel(1).0)
}

fn start_one(command: &mut Command, roster: Arc<ChildRegistry>, about: &str, mark: String) -> io::Result<SpawnedChild> {
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    if let Err(error) = roster.enter(child.id(), about, Some(&mark)) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        child.wait()?;
        return Err(error);
    }
    let group = Arc::new(ProcessGroup { pid, alive: Mutex::new(true) });
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (tell, ended) = watch::channel(None);
    let leash = KillOnDrop { group: Arc::clone(&group) };
    let bury = move || {
        let end = wait_for_exit(child, &group, &mark);
        roster.remove(group.id());
        tell.send_replace(Some(end));
    };
    std::thread::Builder::new().name("child".to_owned()).spawn(bury)?;
    Ok(SpawnedChild { stdin, stdout, stderr, leash, ended })
}

/// Waits for the end of a child, and kills the processes it leaves behind.
fn wait_for_exit(mut child: Child, group: &ProcessGroup, mark: &str) -> ProgramExit {
    // Observed, not reaped yet: the pid of a zombie cannot be reused.
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while rustix::process::waitid(WaitId::Pid(group.pid), look).is_err_and(|error| error == Errno::INTR) {}
    group.signal(Signal::KILL);
    let until = Instant::now() + STRAYS_GONE_WITHIN;
    let is_left = |process: &process::ProcessStatus| {
        let belongs = process.group == group.id() || process.has_in_environment(mark);
        process.pid != group.id() && !process.is_dead() && belongs
    };
    loop {
        let left: Vec<_> = process::all().filter(is_left).collect();
        if left.is_empty() {
            break;
        }
        left.iter().for_each(process::ProcessStatus::kill);
        if Instant::now() > until {
            tracing::warn!(pid = group.id(), left = left.len(), "a program left processes that do not end");
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    *group.alive.lock().unwrap_or_else(PoisonError::into_inner) = false;
    ProgramExit(child.wait().ok())
}
