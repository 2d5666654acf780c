//! Reaching the process that has the database, by the socket beside it; starting one where there is none.

use crate::args::StoreArgs;
use crate::args::run::ToolArgs;
use crate::config::Config;
use crate::failure::Refusal;
use anyhow::Context;
use rutter_core::port::Error;
use rutter_server::socket::{Address, Greeting};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How long a server may take to be there: it looks after what an earlier one left.
const START_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);
/// How long a process may have the database without being there to be asked: while it starts, and while it ends.
const UNREACHABLE_MAX: Duration = Duration::from_secs(45);
const UNREACHABLE_POLL: Duration = Duration::from_millis(100);
/// Where a server that nobody watches writes what it has to say.
pub(crate) const LOG: &str = "server.log";
/// A server that was started for a client ends when nobody needs it for so long.
const IDLE_SECONDS: u64 = 600;

/// Says something to the process that has the database, and returns its answer. `None` when it does not listen: it is
/// just starting, coming to its end, or gone.
pub(crate) fn ask(directory: &Path, greeting: &Greeting) -> anyhow::Result<Option<Value>> {
    let Some(stream) = connect(directory) else { return Ok(None) };
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let mut line = serde_json::to_vec(greeting)?;
    line.push(b'\n');
    // From here on it may have been heard.
    let unknown = |why: String| Error::Unknown(format!("the process that has the database {why}"));
    let lost = |error: io::Error| unknown(format!("did not answer: {error}"));
    (&stream).write_all(&line).map_err(lost)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(lost)?;
    let answer = serde_json::from_str(&answer).map_err(|_| unknown("ended before it answered".to_owned()))?;
    Ok(Some(answer))
}

/// Who did something.
pub(crate) enum Done<T> {
    Here(T),
    /// The process that has the database; its answer, which may be a refusal.
    There(Value),
}

/// Does something here where nobody has the database, and otherwise has it done by whoever has it.
pub(crate) fn here_or_there<T>(
    directory: &Path,
    greeting: &Greeting,
    mut here: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<Done<T>> {
    let until = Instant::now() + UNREACHABLE_MAX;
    loop {
        let error = match here() {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Locked { .. })) => error,
            here => return here.map(Done::Here),
        };
        match ask(directory, greeting)? {
            Some(answer) => return Ok(Done::There(answer)),
            None if Instant::now() < until => thread::sleep(UNREACHABLE_POLL),
            None => return Err(error),
        }
    }
}

/// Whoever names tools on the command line means those, and a server has its own.
pub(crate) fn check_tools(store: &StoreArgs, tools: &ToolArgs, config: &Config) -> anyhow::Result<()> {
    if store.config.is_none() && tools.mcp_config.is_empty() {
        return Ok(());
    }
    let Some(who) = ask(&config.directory, &Greeting::Who)? else { return Ok(()) };
    if who["tools_mark"] == config.tools_mark {
        return Ok(());
    }
    let message =
        format!("process {} has the database and other tools than --config or --mcp-config name", who["pid"]);
    Err(Refusal::new("command.invalid", message)
        .with_hint("leave them out to use its tools, or end it first with `rutter stop`")
        .into())
}

pub(crate) fn connect(directory: &Path) -> Option<UnixStream> {
    UnixStream::connect(Address::of(directory).ok()?.path).ok()
}

/// The server that a client starts when there is none.
#[derive(Clone, Debug)]
pub(crate) struct Starter {
    pub(crate) directory: PathBuf,
    /// Flags that say which tools there are.
    pub(crate) flags: Vec<String>,
}

impl Starter {
    /// Connects, starting a server first if there is none. Two that do so at once get the same server: only one of
    /// those they start gets the database, and the other ends.
    pub(crate) fn connect(&self) -> anyhow::Result<UnixStream> {
        if let Some(stream) = connect(&self.directory) {
            return Ok(stream);
        }
        std::fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot make {}", self.directory.display()))?;
        let mut child = self.spawn()?;
        let until = Instant::now() + START_MAX;
        let mut ended = None;
        loop {
            if let Some(stream) = connect(&self.directory) {
                return Ok(stream);
            }
            if ended.is_none() {
                ended = child.try_wait()?.map(|status| (status, Instant::now()));
            }
            // One that lost the race ends at once; the one that won is there soon after.
            let is_over = ended.is_some_and(|(_, at)| at.elapsed() > Duration::from_secs(3));
            if is_over || Instant::now() > until {
                let log = self.directory.join(LOG);
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let last: Vec<&str> = said.lines().rev().take(6).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                anyhow::bail!("no server could be started; {} says:\n{}", log.display(), last.join("\n"));
            }
            thread::sleep(POLL);
        }
    }

    fn spawn(&self) -> anyhow::Result<std::process::Child> {
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(self.directory.join(LOG))?;
        let program = std::env::current_exe().context("this program does not know where it is")?;
        let mut command = Command::new(program);
        command
            .args(["serve", "--background", "--idle", &IDLE_SECONDS.to_string(), "--dir"])
            .arg(&self.directory)
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command.spawn().context("cannot start a server")
    }
}
