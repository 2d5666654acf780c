//! The launcher: our own binary, on its way to become a program. It binds its life to ours, takes on the program's
//! limits, waits until it is on the roster, gives up what the program must not reach, and becomes the program.

use super::GO;
use super::confine::{self, Reach};
use rustix::process::{Resource, Rlimit};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The exit code that says, with the line below on standard error, that the program never ran.
const NEVER_RAN: u8 = 125;

const PREFIX: &str = "rutter: the program was not started";

const MIB: u64 = 1024 * 1024;

/// What a program may use; what is `None` is not limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Address space of each of its processes.
    pub memory_mib: Option<u64>,
    pub cpu_seconds: Option<u64>,
    /// Beyond those its user has already. The system does not hold the superuser to it.
    pub processes: Option<u64>,
    pub files: Option<u64>,
}

/// What a launcher is told by whoever starts it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spec {
    pub parent: u32,
    /// Repeated in the line that says that the program never ran, which the program cannot know.
    pub receipt: String,
    pub limits: Limits,
    pub reach: Option<Reach>,
}

impl Spec {
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("numbers, texts and paths that came from text")
    }
}

/// Becomes a program. `arguments` are what [`super::Children`] put behind the launcher's own: what to take on, the program,
/// and its arguments. Returns only when that failed and nothing ran.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let spec = arguments.next().unwrap_or_default();
    let (receipt, error) = match serde_json::from_slice::<Spec>(spec.as_encoded_bytes()) {
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

fn become_program(spec: &Spec, program: &OsString, arguments: impl Iterator<Item = OsString>) -> io::Error {
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

/// From now on this process dies with the one that started it.
fn bind_to_parent(parent: u32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        rustix::thread::set_no_new_privs(true)?;
    }
    // The parent may have died just before that; then somebody else has adopted us.
    let found = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().unsigned_abs());
    if found == Some(parent) {
        return Ok(());
    }
    Err(io::Error::other("whoever started this is gone"))
}

/// Takes one byte, and leaves all that follows to the program.
fn wait_for_word() -> io::Result<()> {
    let mut word = [0];
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    match stdin.read(&mut word)? {
        1 if word[0] == GO => Ok(()),
        _ => Err(io::Error::other("whoever started this did not say to go on")),
    }
}

impl Limits {
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
