//! The launcher: our own binary before it executes a program. It dies with its parent, sets the program's limits,
//! waits until it is registered, enters the sandbox, and executes the program.

use super::GO;
use super::confine::{self, SandboxPermissions};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The exit code that, with the line below on standard error, means that the program never ran.
const NEVER_RAN: u8 = 125;

const PREFIX: &str = "rutter: the program was not started";

const MIB: u64 = 1024 * 1024;

/// The resources of a program; `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceLimits {
    /// Address space of each of its processes.
    pub memory_mib: Option<u64>,
    pub cpu_seconds: Option<u64>,
    /// Beyond those its user already has. The kernel does not enforce it for root.
    pub processes: Option<u64>,
    pub files: Option<u64>,
}

/// What the parent passes to the launcher.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LaunchSpec {
    pub parent: u32,
    /// A secret, repeated in the line that says that the program never ran; the program cannot forge it.
    pub receipt: String,
    pub limits: ResourceLimits,
    pub reach: Option<SandboxPermissions>,
}

impl LaunchSpec {
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers, strings and paths that came from strings")
    }
}

/// Executes a program. `arguments` are what [`super::ChildSpawner`] appended to the launcher's own: the specification,
/// the program, and its arguments. Returns only when that failed and nothing ran.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let spec = arguments.next().unwrap_or_default();
    let (receipt, error) = match serde_json::from_slice::<LaunchSpec>(spec.as_encoded_bytes()) {
        Ok(spec) => {
            let error = match arguments.next() {
                Some(program) => become_program(&spec, &program, arguments),
                None => io::Error::other("no program was named"),
            };
            (spec.receipt, error)
        }
        Err(error) => (String::new(), io::Error::other(format!("this is for Rutter's own use ({error})"))),
    };
    eprintln!("{PREFIX} {receipt}: {error}");
    ExitCode::from(NEVER_RAN)
}

/// Why a program never ran, if this exit code and this standard error say so.
pub(super) fn refusal(code: Option<i32>, receipt: &str, stderr: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(stderr);
    let prefix = format!("{PREFIX} {receipt}: ");
    let why = text.lines().find_map(|line| line.strip_prefix(&prefix))?;
    (code == Some(i32::from(NEVER_RAN))).then(|| why.to_owned())
}

fn become_program(spec: &LaunchSpec, program: &OsString, arguments: impl Iterator<Item = OsString>) -> io::Error {
    let prepared = bind_to_parent(spec.parent)
        .and_then(|()| spec.limits.take_on())
        .and_then(|()| wait_for_word())
        .and_then(|()| match &spec.reach {
            Some(reach) => confine::confine(reach, Path::new(program)),
            None => Ok(()),
        });
    match prepared {
        Ok(()) => {
            let error = Command::new(program).args(arguments).exec();
            io::Error::other(format!("{}: {error}", Path::new(program).display()))
        }
        Err(error) => error,
    }
}

/// Makes this process die with its parent.
fn bind_to_parent(parent: u32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        rustix::thread::set_no_new_privs(true)?;
    }
    // The parent may have died just before that; then this process has another parent.
    let found = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if found == Some(parent) {
        return Ok(());
    }
    Err(io::Error::other("the parent process is gone"))
}

/// Reads one byte, and leaves the rest of the input to the program.
fn wait_for_word() -> io::Result<()> {
    let mut word = [0];
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    match stdin.read(&mut word)? {
        1 if word[0] == GO => Ok(()),
        _ => Err(io::Error::other("the parent process gave no go-ahead")),
    }
}

impl ResourceLimits {
    fn take_on(&self) -> io::Result<()> {
        limit(Resource::Core, Some(0), 0)?;
        limit(Resource::As, self.memory_mib.map(|mib| mib.saturating_mul(MIB)), 0)?;
        // The first signal can be caught, to end in order; two seconds later there is another that cannot.
        limit(Resource::Cpu, self.cpu_seconds, 2)?;
        limit(Resource::Nofile, self.files, 0)?;
        limit(Resource::Nproc, self.processes.map(|processes| processes.saturating_add(in_use())), 0)
    }
}

fn limit(resource: Resource, current: Option<u64>, more_for_hard: u64) -> io::Result<()> {
    let Some(current) = current else { return Ok(()) };
    let bound = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let hard = current.saturating_add(more_for_hard).min(bound);
    let new = Rlimit { current: Some(current.min(hard)), maximum: Some(hard) };
    Ok(rustix::process::setrlimit(resource, new)?)
}

/// How many threads this user has now: the system counts them all against the limit on processes.
fn in_use() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let own = rustix::process::getuid().as_raw();
    let is_own = |pid: u32| std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|folder| folder.uid() == own);
    super::process::all().filter(|process| is_own(process.pid)).map(|process| process.threads).sum()
}
