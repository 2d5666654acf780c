//! Sources of secrets: a variable, a file that is not world-readable, or the output of a program.

use super::{BYTES_MAX, EnvironmentLookup, SecretValue};
use crate::config::secret::SecretSource;
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use rutter_core::tool::FailureCategory;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// How long a program may take to print its secret.
const PRINT: Duration = Duration::from_secs(10);
/// The variables that a program inherits from our environment.
const VARIABLES: [&str; 2] = ["PATH", "HOME"];

/// Why there is no value. Nothing of what was read is ever in it.
type SourceFailure = (FailureCategory, String);

pub(super) async fn read(source: &SecretSource, lookup: &EnvironmentLookup) -> Result<SecretValue, SourceFailure> {
    match source {
        SecretSource::Env(variable) => match lookup(variable) {
            Some(value) => Ok(SecretValue::new(value)),
            None => Err(misconfigured(format!("the variable {variable} is not set"))),
        },
        SecretSource::File(path) => {
            let path = path.clone();
            let reading = tokio::task::spawn_blocking(move || read_file(&path));
            reading.await.map_err(|_| (FailureCategory::Internal, "reading its file failed".to_owned()))?
        }
        SecretSource::Command(argv) => print(argv, lookup).await,
    }
}

fn read_file(path: &Path) -> Result<SecretValue, SourceFailure> {
    let display = path.display();
    let failed = |error: std::io::Error| misconfigured(format!("{display}: {error}"));
    // Non-blocking: opening a pipe would wait for a writer.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("the flag is one low bit");
    let file = File::options().read(true).custom_flags(flags).open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(misconfigured(format!("{display} is not a file")));
    }
    if metadata.permissions().mode() & 0o007 != 0 {
        return Err(misconfigured(format!("{display} is open to everyone; run `chmod o= {display}`")));
    }
    // The full capacity at once: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(BYTES_MAX + 1));
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    text_of(&bytes)
}

async fn print(argv: &[String], lookup: &EnvironmentLookup) -> Result<SecretValue, SourceFailure> {
    let Some((program, arguments)) = argv.split_first() else {
        return Err(misconfigured("its command is empty; name a program".to_owned()));
    };
    let variables = VARIABLES.into_iter().filter_map(|name| Some((name, lookup(name)?)));
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(variables)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let mut child = child.map_err(|error| misconfigured(format!("{program} could not be started: {error}")))?;
    let mut group = SecretProcessGroup(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
    let stdout = child.stdout.take().expect("stdout is piped");
    let printed = timeout(PRINT, async {
        let secret = text_of(&collect(stdout).await.map_err(|error| broken(program, error))?)?;
        let status = child.wait().await.map_err(|error| broken(program, error))?;
        Ok((secret, status))
    });
    let late = |_| (FailureCategory::Unavailable, format!("{program} did not end within {} s", PRINT.as_secs()));
    let (secret, status) = printed.await.map_err(late)??;
    group.0 = None;
    if !status.success() {
        return Err((FailureCategory::Unavailable, format!("{program} ended with {status}")));
    }
    Ok(secret)
}

fn broken(program: &str, error: std::io::Error) -> SourceFailure {
    (FailureCategory::Unavailable, format!("{program}: {error}"))
}

async fn collect(stdout: impl AsyncRead + Unpin) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(BYTES_MAX + 1));
    stdout.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

/// A program that has not ended, and everything it started; all of them are killed on drop.
struct SecretProcessGroup(Option<Pid>);

impl Drop for SecretProcessGroup {
    fn drop(&mut self) {
        if let Some(pid) = self.0 {
            // Fails when all of them have ended by themselves.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

fn text_of(bytes: &[u8]) -> Result<SecretValue, SourceFailure> {
    if bytes.len() > BYTES_MAX {
        return Err(misconfigured(format!("it is larger than {BYTES_MAX} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| misconfigured("it is not UTF-8 text".to_owned()))?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Ok(SecretValue::new(text.strip_suffix('\r').unwrap_or(text).to_owned()))
}

fn misconfigured(why: String) -> SourceFailure {
    (FailureCategory::InvalidInput, why)
}
