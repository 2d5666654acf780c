//! MCP child processes: how one is started, its stderr, and how it ends together with what it started itself.

use crate::config::mcp::{McpChildConfig, McpTransport};
use crate::secret::SecretVault;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use rutter_core::tool::ToolFailure;
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

/// Tracks the running children, so that the next start can kill those a crash left behind.
pub trait ChildTracker: Send + Sync {
    /// Called before anything is sent to the child; an error ends it at once.
    fn started(&self, pid: u32) -> io::Result<()>;

    /// Called when the child and its group have ended.
    fn ended(&self, pid: u32);
}

/// Changes a command before it is started, to confine it for example.
pub type CommandWrapper = Arc<dyn Fn(Command) -> Command + Send + Sync>;

/// Starts MCP children.
#[derive(Clone)]
pub struct McpChildLauncher {
    inherited: Vec<(OsString, OsString)>,
    tracker: Arc<dyn ChildTracker>,
    wrap: CommandWrapper,
    vault: Option<Arc<SecretVault>>,
}

/// The variables that a child inherits from our environment.
const INHERITED: &[&str] = &["PATH", "HOME", "LANG", "TMPDIR", "USER"];

impl McpChildLauncher {
    pub fn new(
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        roster: Arc<dyn ChildTracker>,
        wrap: CommandWrapper,
    ) -> McpChildLauncher {
        let keep = |(name, _): &(OsString, OsString)| INHERITED.iter().any(|stored| name == stored);
        McpChildLauncher {
            inherited: environment.into_iter().filter(keep).collect(),
            tracker: roster,
            wrap,
            vault: None,
        }
    }

    /// Fills `${secret:name}` into variables and headers whenever a server is started or reached.
    pub fn with_secrets(self, vault: Arc<SecretVault>) -> McpChildLauncher {
        McpChildLauncher { vault: Some(vault), ..self }
    }

    /// The transport with its secrets filled in.
    pub(super) async fn filled(&self, reach: &McpTransport) -> Result<McpTransport, ToolFailure> {
        let Some(vault) = &self.vault else { return Ok(reach.clone()) };
        let mut reach = reach.clone();
        let texts = match &mut reach {
            McpTransport::Child(child) => &mut child.env,
            McpTransport::Http(http) => &mut http.headers,
        };
        for text in texts.values_mut() {
            *text = vault.fill_text(text).await?.text().to_owned();
        }
        Ok(reach)
    }

    pub(super) fn start(&self, child: &McpChildConfig) -> io::Result<(McpProcess, ChildStdin, ChildStdout)> {
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
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("the child has no pipes"));
        };
        let pid = child.id().ok_or_else(|| io::Error::other("the child has no process id"))?;
        let group = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let group = group.ok_or_else(|| io::Error::other("the child has an impossible process id"))?;
        let process = McpProcess {
            child,
            group,
            pid,
            tracker: self.tracker.clone(),
            tail: StderrTail::follow(stderr),
            over: false,
        };
        self.tracker.started(pid)?;
        Ok((process, stdin, stdout))
    }
}

impl std::fmt::Debug for McpChildLauncher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpChildLauncher").finish_non_exhaustive()
    }
}

/// A child that was started. Dropping it kills its group at once.
pub(super) struct McpProcess {
    child: tokio::process::Child,
    /// Valid until the child is waited for, which happens last.
    group: Pid,
    pid: u32,
    tracker: Arc<dyn ChildTracker>,
    pub(super) tail: StderrTail,
    over: bool,
}

/// How often a dying child is checked, and a running one.
const LOOK: Duration = Duration::from_millis(10);
const LOOK_AT_THE_LIVING: Duration = Duration::from_millis(500);
/// Time to end for a child whose pipes were closed, before it is asked to.
const BY_ITSELF: Duration = Duration::from_millis(200);

impl McpProcess {
    /// Asks the whole group to end, and kills what is left of it once the child is gone or the grace is over. Returns
    /// how the child exited if it ended by itself.
    pub(super) async fn end(mut self, grace: Duration) -> Option<ExitStatus> {
        // A dead child stays a zombie until it is waited for below, so its pid cannot have been reused.
        let by_itself = self.exits_within(BY_ITSELF.min(grace)).await;
        if !by_itself {
            _ = kill_process_group(self.group, Signal::TERM);
            self.exits_within(grace).await;
        }
        _ = kill_process_group(self.group, Signal::KILL);
        let status = self.child.wait().await.ok();
        self.over = true;
        self.tracker.ended(self.pid);
        self.tail.drained().await;
        status.filter(|_| by_itself)
    }

    /// Returns when the child has exited, also if something it started still holds its pipes.
    pub(super) async fn exited(&self) {
        while !self.has_exited() {
            tokio::time::sleep(LOOK_AT_THE_LIVING).await;
        }
        // Its last output may still be on its way.
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

impl Drop for McpProcess {
    fn drop(&mut self) {
        if !self.over {
            _ = kill_process_group(self.group, Signal::KILL);
            self.tracker.ended(self.pid);
        }
    }
}

/// The last lines of what a child wrote to stderr.
#[derive(Clone, Default)]
pub(super) struct StderrTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    /// Cancelled when there will be no more.
    over: CancellationToken,
}

const LINES_MAX: usize = 200;
const LINE_BYTES_MAX: usize = 4 * 1024;

impl StderrTail {
    fn follow(stderr: ChildStderr) -> StderrTail {
        let tail = StderrTail::default();
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

    /// The last few lines, for a message; empty when nothing was written.
    pub(super) fn last_words(&self) -> String {
        const LINES_QUOTED: usize = 3;
        let lines = self.lock();
        let from = lines.len().saturating_sub(LINES_QUOTED);
        let texts: Vec<&str> = lines.iter().skip(from).map(String::as_str).collect();
        if texts.is_empty() { String::new() } else { format!("; it last wrote: {}", texts.join(" | ")) }
    }

    async fn read(self, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 8 * 1024];
        let mut line = Vec::new();
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            for byte in &chunk[..count] {
                match byte {
                    b'\n' => self.push(&mut line),
                    byte if line.len() < LINE_BYTES_MAX => line.push(*byte),
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
        if lines.len() == LINES_MAX {
            lines.pop_front();
        }
        lines.push_back(text);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<String>> {
        self.lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
