//! Child programs: sandboxed, in a process group of their own, registered before they run, and killed with us.
//!
//! Every child is our own binary first. [`launch`] sets the limits of its process and then executes the program, so
//! that the program never runs without them. Before that it waits for a byte on its standard input: by then the child
//! is in the [`child_registry`], so that after a crash of this process the next start finds and kills it.

pub mod child_registry;
pub mod confine;
pub mod launch;
mod process;
mod spawn;

pub use child_registry::ChildRegistry;
pub use confine::{SandboxPermissions, SandboxSupport};
pub use launch::ResourceLimits;

use rustix::process::Signal;
use rutter_core::encoding::hex;
use spawn::KillOnDrop;
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

/// The byte on which a launcher executes the program.
const GO: u8 = b'\n';

/// Starts programs through one launcher and registers them in one registry.
#[derive(Debug)]
pub struct ChildSpawner {
    launcher: LauncherProgram,
    registry: Arc<ChildRegistry>,
}

/// How to reach [`launch::main`]: a program, and the arguments before those of that function.
#[derive(Clone, Debug)]
pub struct LauncherProgram {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

/// A program to start. Its environment has only the variables given here.
#[derive(Clone, Debug)]
pub struct ProgramStart {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: BTreeMap<String, String>,
    pub cwd: PathBuf,
    /// A label in the registry.
    pub about: String,
    pub limits: ResourceLimits,
    /// `None` restricts neither files nor networks.
    pub reach: Option<SandboxPermissions>,
}

/// A program that was started. Dropping it kills it, and everything it started.
#[derive(Debug)]
pub struct ChildProcess {
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
    leash: KillOnDrop,
    ended: watch::Receiver<Option<ProgramExit>>,
    receipt: String,
}

/// How a program ended; `None` if the system does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramExit(pub Option<ExitStatus>);

impl ChildSpawner {
    pub fn new(launcher: LauncherProgram, registry: Arc<ChildRegistry>) -> ChildSpawner {
        ChildSpawner { launcher, registry }
    }

    /// Starts a program. An error means that it never ran.
    pub async fn start(&self, start: ProgramStart) -> io::Result<ChildProcess> {
        let mark = unguessable()?;
        let receipt = unguessable()?;
        let spec = launch::LaunchSpec {
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
        let spawned = spawn::spawn(command, Arc::clone(&self.registry), start.about, mark).await?;
        let mut child = ChildProcess {
            stdin: spawned.stdin.map(ChildStdin::from_std).transpose()?,
            stdout: spawned.stdout.map(ChildStdout::from_std).transpose()?,
            stderr: spawned.stderr.map(ChildStderr::from_std).transpose()?,
            leash: spawned.leash,
            ended: spawned.ended,
            receipt,
        };
        if let Some(stdin) = &mut child.stdin {
            // A launcher that has already given up wrote the reason to its standard error.
            match stdin.write_all(&[GO]).await {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
        }
        Ok(child)
    }
}

impl ChildProcess {
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
    pub fn ended(&self) -> impl Future<Output = ProgramExit> + Send + use<> {
        let mut ended = self.ended.clone();
        async move {
            match ended.wait_for(Option::is_some).await {
                Ok(ended) => ended.unwrap_or(ProgramExit(None)),
                Err(_) => ProgramExit(None),
            }
        }
    }

    /// How many processes its group has now.
    pub async fn processes(&self) -> usize {
        let group = Arc::clone(&self.leash.group);
        tokio::task::spawn_blocking(move || group.processes()).await.unwrap_or(0)
    }

    /// Why the program never ran, if it did not; `stderr` is what the child wrote there.
    pub fn never_ran(&self, ended: ProgramExit, stderr: &[u8]) -> Option<String> {
        let code = ended.0.and_then(|status| status.code());
        launch::refusal(code, &self.receipt, stderr)
    }
}

fn unguessable() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(hex(&bytes))
}
