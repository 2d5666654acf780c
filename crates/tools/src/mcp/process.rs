//! Child processes: how one is started, what it says on stderr, and how it ends together with what it started itself.

use crate::config::mcp::{Child, Reach};
use crate::secret::Vault;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rutter_core::tool::Failure;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Keeps account of the children that live, so that the next start can end those a crash left behind.
pub trait Roster: Send + Sync {
    /// Called before anything is said to the child; an error ends it at once.
    fn born(&self, pid: u32) -> io::Result<()>;

    /// Called when the child and its group were ended.
    fn gone(&self, pid: u32);
}

/// Changes a command before it is started, to confine it for example.
pub type Wrap = Arc<dyn Fn(Command) -> Command + Send + Sync>;

/// The one way children are started.
#[derive(Clone)]
pub struct Launcher {
    inherited: Vec<(OsString, OsString)>,
    roster: Arc<dyn Roster>,
    wrap: Wrap,
    vault: Option<Arc<Vault>>,
}

/// All that a child gets of our own environment.
const INHERITED: &[&str] = &["PATH", "HOME", "LANG", "TMPDIR", "USER"];

impl Launcher {
    pub fn new(
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        roster: Arc<dyn Roster>,
        wrap: Wrap,
    ) -> Launcher {
        let keep = |(name, _): &(OsString, OsString)| INHERITED.iter().any(|kept| name == kept);
        Launcher { inherited: environment.into_iter().filter(keep).collect(), roster, wrap, vault: None }
    }

    /// Fills `${secret:name}` into variables and headers whenever a server is started or reached.
    pub fn with_secrets(self, vault: Arc<Vault>) -> Launcher {
        Launcher { vault: Some(vault), ..self }
    }

    /// The same way to a server, with its secrets.
    pub(super) async fn filled(&self, reach: &Reach) -> Result<Reach, Failure> {
        let Some(vault) = &self.vault else { return Ok(reach.clone()) };
        let mut reach = reach.clone();
        let texts = match &mut reach {
            Reach::Child(child) => &mut child.env,
            Reach::Http(http) => &mut http.headers,
        };
        for text in texts.values_mut() {
            *text = vault.fill_text(text).await?.text().to_owned();
        }
        Ok(reach)
    }

    pub(super) fn start(&self, child: &Child) -> io::Result<(Process, ChildStdin, ChildStdout)> {
        let mut command = Command::new(&child.command);
        command.args(&child.args).env_clear().envs(self.inherited.iter().cloned()).envs(&child.env);
        if let Some(cwd) = &child.cwd {
            command.current_dir(cwd);
        }
        let mut command = (self.wrap)(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own, so that what the child starts can be ended with it.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn()?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let pid = child.id().ok_or_else(|| io::Error::other("the child has no process id"))?;
        let group = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let group = group.ok_or_else(|| io::Error::other("the child has an impossible process id"))?;
        let process = Process {
            child,
            group,
            pid,
            roster: self.roster.clone(),
            tail: Tail::follow(stderr),
            over: false,
        };
        self.roster.born(pid)?;
        Ok((process, stdin, stdout))
    }
}

impl std::fmt::Debug for Launcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launcher").finish_non_exhaustive()
    }
}

/// A child that was started. Dropping it kills its group at once.
pub(super) struct Process {
    child: tokio::process::Child,
    /// Valid until the child is waited for, which happens last.
    group: Pid,
    pid: u32,
    roster: Arc<dyn Roster>,
    pub(super) tail: Tail,
    over: bool,
}

/// How often a dying child is looked at.
const LOOK: Duration = Duration::from_millis(10);
const LOOK_AT_THE_LIVING: Duration = Duration::from_millis(500);
/// Time to end for a child whose pipes were closed, before it is told to.
const BY_ITSELF: Duration = Duration::from_millis(200);

impl Process {
    /// Asks the whole group to end, and kills what is left of it once the child is gone or the grace is over. Answers
    /// how the child exited if nobody had to ask.
    pub(super) async fn end(mut self, grace: Duration) -> Option<ExitStatus> {
        // A dead child stays a zombie until it is waited for below, so its number cannot be somebody else's by now.
        let by_itself = self.exits_within(BY_ITSELF.min(grace)).await;
        if !by_itself {
            _ = kill_process_group(self.group, Signal::TERM);
            self.exits_within(grace).await;
        }
        _ = kill_process_group(self.group, Signal::KILL);
        let status = self.child.wait().await.ok();
        self.over = true;
        self.roster.gone(self.pid);
        self.tail.drained().await;
        status.filter(|_| by_itself)
    }

    /// Comes back when the child has exited, also if something it started still holds its pipes.
    pub(super) async fn exited(&self) {
        while !self.has_exited() {
            tokio::time::sleep(LOOK_AT_THE_LIVING).await;
        }
        // What it said last is still on its way.
        tokio::time::sleep(BY_ITSELF).await;
    }

    async fn exits_within(&self, span: Duration) -> bool {
        let deadline = Instant::now() + span;
        while !self.has_exited() {
            if Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        true
    }

    fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.over {
            _ = kill_process_group(self.group, Signal::KILL);
            self.roster.gone(self.pid);
        }
    }
}

/// The last lines of what a child wrote to stderr.
#[derive(Clone, Default)]
pub(super) struct Tail {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// Cancelled when there will be no more.
    over: CancellationToken,
}

const LINES_KEPT: usize = 200;
const LINE_BYTES_KEPT: usize = 4 * 1024;

impl Tail {
    fn follow(stderr: ChildStderr) -> Tail {
        let tail = Tail::default();
        // Ends with the pipe, which ends with the last process that holds it.
        tokio::spawn(tail.clone().read(stderr));
        tail
    }

    /// Waits a moment for the last lines of a child that is gone. A process that left its group may hold the pipe.
    async fn drained(&self) {
        _ = tokio::time::timeout(Duration::from_millis(100), self.over.cancelled()).await;
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    /// The very last of it, for a message; empty when nothing was written.
    pub(super) fn last_words(&self) -> String {
        const LINES_SHOWN: usize = 3;
        let lines = self.lock();
        let from = lines.len().saturating_sub(LINES_SHOWN);
        let shown: Vec<&str> = lines.iter().skip(from).map(String::as_str).collect();
        if shown.is_empty() { String::new() } else { format!("; it last wrote: {}", shown.join(" | ")) }
    }

    async fn read(self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 8 * 1024];
        let mut line = Vec::new();
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            for byte in &chunk[..count] {
                match byte {
                    b'\n' => self.push(&mut line),
                    byte if line.len() < LINE_BYTES_KEPT => line.push(*byte),
                    _ => {}
                }
            }
        }
        if !line.is_empty() {
            self.push(&mut line);
        }
        self.over.cancel();
    }

    fn push(&self, line: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        line.clear();
        let mut lines = self.lock();
        if lines.len() == LINES_KEPT {
            lines.pop_front();
        }
        lines.push_back(text);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
