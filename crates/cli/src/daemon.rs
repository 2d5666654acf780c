//! Connects to the process that owns the database, by the socket beside it, or starts one.

use crate::args::DatabaseArgs;
use crate::args::run::ToolSourceArgs;
use crate::config::Config;
use crate::failure::CommandRefusal;
use crate::socket::{SocketAddress, SocketRequest};
use anyhow::Context;
use rutter_core::port::Error;
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
/// For a link that is left out if the owner is busy.
const LINK_MAX: Duration = Duration::from_secs(2);
/// How long a server may take to start: it recovers what an earlier one left.
const START_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// How long a process may own the database without listening: while it starts, and while it shuts down.
pub(crate) const UNREACHABLE_MAX: Duration = Duration::from_secs(45);
pub(crate) const UNREACHABLE_POLL: Duration = Duration::from_millis(100);
/// The log file of a server in the background.
pub(crate) const LOG: &str = "server.log";
/// A server that was started for a client stops after being idle for this long.
const IDLE_SECONDS: u64 = 600;

/// Sends a request to the process that owns the database, and returns its reply. `None` if it does not listen: it is
/// just starting, shutting down, or gone.
pub(crate) fn ask(directory: &Path, greeting: &SocketRequest) -> anyhow::Result<Option<Value>> {
    ask_within(directory, greeting, ANSWER_MAX)
}

/// The address of the pages, if the process that owns the database has some and replies soon.
pub(crate) fn link(directory: &Path) -> Option<String> {
    let who = ask_within(directory, &SocketRequest::Who, LINK_MAX).ok()??;
    who["link"].as_str().map(str::to_owned)
}

fn ask_within(directory: &Path, greeting: &SocketRequest, answer_max: Duration) -> anyhow::Result<Option<Value>> {
    let Some(stream) = connect(directory) else { return Ok(None) };
    stream.set_read_timeout(Some(answer_max))?;
    let mut line = serde_json::to_vec(greeting)?;
    line.push(b'\n');
    // From here on the request may have been received.
    let unknown = |why: String| Error::Unknown(format!("the process that owns the database {why}"));
    let lost = |error: io::Error| unknown(format!("did not reply: {error}"));
    (&stream).write_all(&line).map_err(lost)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).map_err(lost)?;
    let answer = serde_json::from_str(&answer).map_err(|_| unknown("ended before it replied".to_owned()))?;
    Ok(Some(answer))
}

/// Which process handled a request.
pub(crate) enum HandledBy<T> {
    ThisProcess(T),
    /// The process that owns the database; its reply may be a refusal.
    Server(Value),
}

/// Runs `here` if no process owns the database, and otherwise sends the request to the owner.
pub(crate) fn locally_or_by_server<T>(
    directory: &Path,
    greeting: &SocketRequest,
    mut here: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<HandledBy<T>> {
    let until = Instant::now() + UNREACHABLE_MAX;
    loop {
        let error = match here() {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Locked { .. })) => error,
            here => return here.map(HandledBy::ThisProcess),
        };
        match ask(directory, greeting)? {
            Some(answer) if !is_closing(&answer) || Instant::now() >= until => return Ok(HandledBy::Server(answer)),
            None if Instant::now() >= until => return Err(error),
            Some(_) | None => thread::sleep(UNREACHABLE_POLL),
        }
    }
}

/// Whether the owner refused because it is about to end: nothing has happened, and the next owner can be asked.
fn is_closing(answer: &Value) -> bool {
    answer["error"]["code"] == "engine.closing"
}

/// Refuses tools given on the command line if the running server has others.
pub(crate) fn check_tools(store: &DatabaseArgs, tools: &ToolSourceArgs, config: &Config) -> anyhow::Result<()> {
    if store.config.is_none() && tools.mcp_config.is_empty() {
        return Ok(());
    }
    let Some(who) = ask(&config.directory, &SocketRequest::Who)? else { return Ok(()) };
    if who["tools_mark"] == config.tools_mark {
        return Ok(());
    }
    let message = format!("process {} owns the database and has other tools than --config or --mcp-config", who["pid"]);
    Err(CommandRefusal::new("command.invalid", message)
        .with_hint("omit them to use its tools, or stop it first with `rutter stop`")
        .into())
}

pub(crate) fn connect(directory: &Path) -> Option<UnixStream> {
    UnixStream::connect(SocketAddress::of(directory).ok()?.path).ok()
}

/// Starts a server for a client if none runs.
#[derive(Clone, Debug)]
pub(crate) struct ServerStarter {
    pub(crate) directory: PathBuf,
    /// Flags that configure the tools.
    pub(crate) flags: Vec<String>,
}

impl ServerStarter {
    /// Connects, starting a server first if none runs. Two clients that do so at once get the same server: only one of
    /// the started processes gets the database, and the other exits.
    pub(crate) fn connect(&self) -> anyhow::Result<UnixStream> {
        if let Some(stream) = connect(&self.directory) {
            return Ok(stream);
        }
        std::fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot create {}", self.directory.display()))?;
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
            // The process that lost the race exits at once; the winner listens soon after.
            let is_over = ended.is_some_and(|(_, at)| at.elapsed() > Duration::from_secs(3));
            if is_over || Instant::now() > until {
                let log = self.directory.join(LOG);
                let message = std::fs::read_to_string(&log).unwrap_or_default();
                let last: Vec<&str> = message.lines().rev().take(6).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                anyhow::bail!("no server could be started; {} says:\n{}", log.display(), last.join("\n"));
            }
            thread::sleep(POLL);
        }
    }

    fn spawn(&self) -> anyhow::Result<std::process::Child> {
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(self.directory.join(LOG))?;
        let program = std::env::current_exe().context("cannot find the path of this program")?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn what_a_closing_owner_refuses_is_done_by_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(SocketAddress::of(directory.path()).unwrap().path).unwrap();
        let owner = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            BufReader::new(stream.try_clone().unwrap()).read_line(&mut String::new()).unwrap();
            stream.write_all(b"{\"ok\":false,\"error\":{\"code\":\"engine.closing\"}}\n").unwrap();
        });
        let mut tries = 0;
        let here = || {
            tries += 1;
            match tries {
                1 => Err(Error::Locked { path: directory.path().display().to_string(), pid: "1".to_owned() }.into()),
                _ => Ok("done here"),
            }
        };
        let handled = locally_or_by_server(directory.path(), &SocketRequest::Who, here).unwrap();
        assert!(matches!(handled, HandledBy::ThisProcess("done here")));
        owner.join().unwrap();
    }
}
