//! Programs we start: confined, in a group of their own, written down before they do anything, and gone when we are.
//!
//! Every child is our own binary first. [`launch`] tightens the limits of its process and then becomes the program, so
//! that there is no moment in which the program runs without them. It waits for a word on its standard input before it
//! does: by then the child is on the [`roster`], and whatever becomes of us, the next start finds and ends it.

pub mod confine;
pub mod launch;
mod process;
pub mod roster;
mod spawn;

pub use confine::{Reach, Sandbox};
pub use launch::Limits;
pub use roster::Roster;

use rustix::process::Signal;
use spawn::Leash;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;

/// In the environment of every child, so that those of its descendants that left its group are found too.
const MARK: &str = "RUTTER_CHILD";

/// The word on which a launcher becomes the program.
const GO: u8 = b'\n';

/// Starts programs through one launcher and keeps them on one roster.
#[derive(Debug)]
pub struct Children {
    launcher: Launcher,
    roster: Arc<Roster>,
}

/// How to get to [`launch::main`]: a program, and what comes before the arguments that function takes.
#[derive(Clone, Debug)]
pub struct Launcher {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

/// A program to start. Its environment is what is given here and nothing else.
#[derive(Clone, Debug)]
pub struct Start {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// For whoever looks at the roster.
    pub about: String,
    pub limits: Limits,
    /// `None` leaves it all the files and networks we have ourselves.
    pub reach: Option<Reach>,
}

/// A program that was started. Dropping it kills it, and everything it started.
#[derive(Debug)]
pub struct Child {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    leash: Leash,
    ended: watch::Receiver<Option<Ended>>,
    receipt: String,
}

/// How a program ended; `None` inside when even the system could not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended(pub Option<ExitStatus>);

impl Children {
    pub fn new(launcher: Launcher, roster: Arc<Roster>) -> Children {
        Children { launcher, roster }
    }

    /// Starts a program. An error means that it never ran.
    pub async fn start(&self, start: Start) -> io::Result<Child> {
        let mark = unguessable()?;
        let receipt = unguessable()?;
        let spec = launch::Spec {
            parent: std::process::id(),
            receipt: receipt.clone(),
            limits: start.limits,
            reach: start.reach,
        };
        let mut command = Command::new(&self.launcher.program);
        command
            .args(&self.launcher.arguments)
            .arg(spec.to_json())
            .arg(&start.program)
            .args(&start.arguments)
            .env_clear()
            .envs(&start.environment)
            .env(MARK, &mark)
            .current_dir(&start.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let spawned = spawn::spawn(command, Arc::clone(&self.roster), start.about, mark).await?;
        let mut child = Child {
            stdin: spawned.stdin.map(ChildStdin::from_std).transpose()?,
            stdout: spawned.stdout.map(ChildStdout::from_std).transpose()?,
            stderr: spawned.stderr.map(ChildStderr::from_std).transpose()?,
            leash: spawned.leash,
            ended: spawned.ended,
            receipt,
        };
        if let Some(stdin) = &mut child.stdin {
            // A launcher that has given up already has said why on its standard error.
            match stdin.write_all(&[GO]).await {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        Ok(child)
    }
}

impl Child {
    pub fn id(&self) -> u32 {
        self.leash.group.id()
    }

    /// Asks the program and its group to end.
    pub fn terminate(&self) {
        self.leash.group.signal(Signal::TERM);
    }

    pub fn kill(&self) {
        self.leash.group.signal(Signal::KILL);
    }

    /// Waits until the program has ended and everything it started is gone too.
    pub fn ended(&self) -> impl Future<Output = Ended> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            match ended.wait_for(Option::is_some).await {
                Ok(ended) => ended.unwrap_or(Ended(None)),
                Err(_) => Ended(None),
            }
        }
    }

    /// How many processes its group has now.
    pub async fn processes(&self) -> usize {
        let group = Arc::clone(&self.leash.group);
        tokio::task::spawn_blocking(move || group.processes()).await.unwrap_or(0)
    }

    /// Why the program never ran, if that is what this end means; `stderr` is what the child wrote there.
    pub fn never_ran(&self, ended: Ended, stderr: &[u8]) -> Option<String> {
        let code = ended.0.and_then(|status| status.code());
        launch::refusal(code, &self.receipt, stderr)
    }
}

fn unguessable() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
