//! Starting and burying children. One thread starts them all: the signal that ends a child when its parent dies is bound
//! to the thread that started it, and this one lives as long as the process.

use super::roster::Roster;
use super::{Ended, process};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};

/// Starts that may wait for the thread; further ones wait for a place.
const STARTS_WAITING_MAX: usize = 64;

/// How long descendants that were killed may take to disappear.
const STRAYS_GONE_WITHIN: Duration = Duration::from_secs(5);

/// A child that is on the roster, with somebody waiting for its end.
#[derive(Debug)]
pub(super) struct Spawned {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    pub leash: Leash,
    pub ended: watch::Receiver<Option<Ended>>,
}

/// Kills the group when it is let go.
#[derive(Debug)]
pub(super) struct Leash {
    pub group: Arc<Group>,
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
    }
}

/// The process group a child leads.
#[derive(Debug)]
pub(super) struct Group {
    pid: Pid,
    /// Until its leader is buried. Afterwards the number may be somebody else's.
    alive: Mutex<bool>,
}

impl Group {
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    pub fn signal(&self, signal: Signal) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if *alive {
            // It can only fail because nobody is left to get it.
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }

    pub fn processes(&self) -> usize {
        process::all().filter(|process| process.group == self.id() && !process.is_dead()).count()
    }
}

pub(super) async fn spawn(
    mut command: Command,
    roster: Arc<Roster>,
    about: String,
    mark: String,
) -> io::Result<Spawned> {
    static STARTER: OnceLock<mpsc::Sender<Start>> = OnceLock::new();
    command.process_group(0);
    let (answer, started) = oneshot::channel();
    let starter = STARTER.get_or_init(starter);
    let start = Start { command, roster, about, mark, answer };
    starter.send(start).await.map_err(|_| io::Error::other("the thread that starts programs is gone"))?;
    started.await.map_err(|_| io::Error::other("the thread that starts programs gave no answer"))?
}

struct Start {
    command: Command,
    roster: Arc<Roster>,
    about: String,
    mark: String,
    answer: oneshot::Sender<io::Result<Spawned>>,
}

fn starter() -> mpsc::Sender<Start> {
    let (sender, mut receiver) = mpsc::channel::<Start>(STARTS_WAITING_MAX);
    let thread = move || {
        while let Some(mut start) = receiver.blocking_recv() {
            let spawned = start_one(&mut start.command, start.roster, &start.about, start.mark);
            // Whoever asked may have gone away; then the leash is let go here.
            drop(start.answer.send(spawned));
        }
    };
    std::thread::Builder::new()
        .name("children".to_owned())
        .spawn(thread)
        .map(|_| sender)
        .unwrap_or_else(|_| mpsc::channel(1).0)
}

fn start_one(command: &mut Command, roster: Arc<Roster>, about: &str, mark: String) -> io::Result<Spawned> {
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    if let Err(error) = roster.enter(child.id(), about, Some(&mark)) {
        let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        child.wait()?;
        return Err(error);
    }
    let group = Arc::new(Group { pid, alive: Mutex::new(true) });
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (tell, ended) = watch::channel(None);
    let leash = Leash { group: Arc::clone(&group) };
    let bury = move || {
        let end = bury(child, &group, &mark);
        roster.gone(group.id());
        tell.send_replace(Some(end));
    };
    std::thread::Builder::new().name("child".to_owned()).spawn(bury)?;
    Ok(Spawned { stdin, stdout, stderr, leash, ended })
}

/// Waits for the end of a child, and ends what it leaves behind.
fn bury(mut child: Child, group: &Group, mark: &str) -> Ended {
    // Looked at, not yet buried: as long as it lies there, its number cannot become somebody else's.
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while rustix::process::waitid(WaitId::Pid(group.pid), look).is_err_and(|error| error == Errno::INTR) {}
    group.signal(Signal::KILL);
    let until = Instant::now() + STRAYS_GONE_WITHIN;
    let is_left = |process: &process::Process| {
        let belongs = process.group == group.id() || process.has_in_environment(mark);
        process.pid != group.id() && !process.is_dead() && belongs
    };
    loop {
        let left: Vec<_> = process::all().filter(is_left).collect();
        if left.is_empty() {
            break;
        }
        left.iter().for_each(process::Process::kill);
        if Instant::now() > until {
            tracing::warn!(pid = group.id(), left = left.len(), "a program left processes that do not end");
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    *group.alive.lock().unwrap_or_else(PoisonError::into_inner) = false;
    Ended(child.wait().ok())
}
