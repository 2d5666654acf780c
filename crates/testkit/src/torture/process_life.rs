//! One process of the real program, from its start until it ends or is killed.

use super::notes::now_ms;
use super::pipe::AgentPipe;
use super::workspace::LIFE;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct ProcessLife {
    pub(super) name: String,
    pub(super) began: Instant,
    pub(super) began_ms: u64,
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// How a process ended, and its output.
#[derive(Clone, Debug)]
pub(super) struct ProcessExit {
    pub(super) killed: bool,
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl ProcessLife {
    pub(super) fn start(
        rutter: &Path,
        directory: &Path,
        name: String,
        words: &[String],
    ) -> Result<ProcessLife, String> {
        let out = directory.join(format!("{name}.out"));
        let stdout = File::create(&out).map_err(|error| format!("{}: {error}", out.display()))?;
        ProcessLife::spawn(rutter, directory, name, words, (Stdio::null(), stdout.into()))
    }

    /// Starts a process that an agent speaks to over pipes.
    pub(super) fn start_with_pipe(
        rutter: &Path,
        directory: &Path,
        name: String,
        words: &[String],
    ) -> Result<(ProcessLife, AgentPipe), String> {
        let mut life = ProcessLife::spawn(rutter, directory, name, words, (Stdio::piped(), Stdio::piped()))?;
        let pipes = life.child.stdin.take().zip(life.child.stdout.take());
        let (stdin, stdout) = pipes.ok_or("a process started without its pipes")?;
        Ok((life, AgentPipe::new(stdin, stdout)))
    }

    fn spawn(
        rutter: &Path,
        directory: &Path,
        name: String,
        words: &[String],
        (stdin, stdout): (Stdio, Stdio),
    ) -> Result<ProcessLife, String> {
        let answer = |error: std::io::Error| format!("{} {}: {error}", rutter.display(), words.join(" "));
        let (out, err) = (directory.join(format!("{name}.out")), directory.join(format!("{name}.err")));
        let stderr = File::create(&err).map_err(answer)?;
        let mut command = Command::new(rutter);
        command.args(words).current_dir(directory).env_clear();
        command.env("HOME", directory).env("USER", "torture").env(LIFE, format!("life-{name}"));
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LC_ALL", "C.UTF-8");
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        let child = command.spawn().map_err(answer)?;
        Ok(ProcessLife { name, began: Instant::now(), began_ms: now_ms(), child, out, err })
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it, unless it ended just before.
    pub(super) fn kill(mut self) -> ProcessExit {
        // Its status shows whether it was killed or had ended.
        let _ = self.child.kill();
        self.end()
    }

    /// Lets it end by itself; it is killed after `span`.
    pub(super) fn finish(mut self, span: Duration) -> ProcessExit {
        let until = Instant::now() + span;
        while self.is_alive() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        self.kill()
    }

    fn end(&mut self) -> ProcessExit {
        let status = self.child.wait().unwrap_or(ExitStatus::from_raw(0));
        let read = |path: &Path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let ended = ProcessExit {
            killed: status.signal().is_some(),
            code: status.code(),
            stdout: read(&self.out).unwrap_or_default(),
            stderr: read(&self.err).unwrap_or_default(),
        };
        // Thousands of small files would make the directory hard to read.
        let _ = (fs::remove_file(&self.out), fs::remove_file(&self.err));
        ended
    }
}

impl Drop for ProcessLife {
    fn drop(&mut self) {
        // Most have already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl ProcessExit {
    /// Its output as JSON, if there is any.
    pub(super) fn answer(&self) -> Option<Value> {
        serde_json::from_str(self.stdout.lines().next_back()?).ok()
    }

    /// The execution it printed.
    pub(super) fn execution(&self) -> Option<String> {
        let named = self.stderr.lines().map(str::trim).find(|line| line.starts_with("exec_"));
        let answered = || Some(self.answer()?["execution_id"].as_str()?.to_owned());
        named.map(str::to_owned).or_else(answered)
    }

    /// Whether another process owned the database.
    pub(super) fn is_locked_out(&self) -> bool {
        self.stdout.contains("store.locked") || self.stderr.contains("store.locked")
    }

    /// Whether a tool server could not be reached, which is no mistake of the plan.
    pub(super) fn is_unreachable(&self) -> bool {
        self.stdout.contains("tool.unreachable") || self.stderr.contains("tool.unreachable")
    }

    /// A panic, or an internal error. That another process was killed before it replied is neither.
    pub(super) fn is_broken(&self) -> bool {
        let is_unknown = || self.answer().is_some_and(|answer| answer["error"]["code"] == "store.unknown");
        let is_known = matches!(self.code, Some(0..=3)) || is_unknown();
        !self.killed && (!is_known || self.stderr.contains("panicked at"))
    }
}
