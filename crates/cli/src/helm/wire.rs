//! How one command reaches another that has the database: a socket beside it, one request and one answer per line.

use crate::failure::Failure;
use crate::helm;
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::plan::document::Format;
use rutter_core::port::Error;
use rutter_engine::Engine;
use rutter_engine::control::Control;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

const SOCKET: &str = "rutter.sock";
const LINE_BYTES_MAX: u64 = 2 << 20;
const CONNECTIONS_MAX: usize = 16;
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// What is asked of an execution, by whoever has the database or through it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sent {
    pub(crate) tenant: TenantId,
    pub(crate) execution: ExecutionId,
    pub(crate) actor: Actor,
    pub(crate) what: What,
    pub(crate) reason: String,
    pub(crate) key: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum What {
    Control(Control),
    /// The text of a new plan.
    Replan(String),
}

impl Sent {
    pub(crate) fn identity(&self) -> Identity {
        Identity { tenant: self.tenant.clone(), execution: self.execution.clone() }
    }

    /// Says it to an engine in this process.
    pub(crate) async fn say(self, engine: &Engine) -> Result<(), rutter_engine::Error> {
        let identity = self.identity();
        match self.what {
            What::Control(control) => {
                engine.control(&identity, self.actor, control, self.reason, self.key).await
            }
            What::Replan(text) => {
                let format = Format::guess(text.as_bytes());
                let source = text.into_bytes();
                engine.replan(&identity, source, format, self.reason, self.actor).await.map(drop)
            }
        }
    }
}

/// Says it to the process that has the database, and returns its answer. `None` when it does not listen: it is just
/// starting, coming to its end, or gone.
pub(crate) fn ask(directory: &Path, sent: &Sent) -> anyhow::Result<Option<Value>> {
    let Ok(stream) = UnixStream::connect(directory.join(SOCKET)) else { return Ok(None) };
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let mut line = serde_json::to_vec(sent)?;
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

/// The socket of this process; it goes away with it.
pub(crate) struct Wire {
    path: PathBuf,
    closing: CancellationToken,
}

impl Wire {
    pub(crate) fn close(self) {
        self.closing.cancel();
        // One that is not there does no harm.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Listens beside the database. Without a socket everything works but being asked by others.
pub(crate) fn listen(directory: &Path, engine: Engine) -> Wire {
    let wire = Wire { path: directory.join(SOCKET), closing: CancellationToken::new() };
    // Whoever left one behind is gone: the database is ours.
    let _ = std::fs::remove_file(&wire.path);
    match bind(&wire.path) {
        Ok(listener) => {
            let closing = wire.closing.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = accept(listener, engine) => {}
                    () = closing.cancelled() => {}
                }
            });
        }
        Err(error) => {
            tracing::warn!("other commands cannot reach this one: {}: {error}", wire.path.display())
        }
    }
    wire
}

fn bind(path: &Path) -> io::Result<tokio::net::UnixListener> {
    let listener = tokio::net::UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn accept(listener: tokio::net::UnixListener, engine: Engine) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
        let engine = engine.clone();
        tokio::spawn(async move {
            if let Err(error) = tokio::time::timeout(ANSWER_MAX, serve(stream, &engine)).await {
                tracing::debug!("a request over the socket took too long: {error}");
            }
            drop(place);
        });
    }
}

async fn serve(stream: tokio::net::UnixStream, engine: &Engine) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    tokio::io::BufReader::new(reader.take(LINE_BYTES_MAX)).read_line(&mut line).await?;
    let answer = match serde_json::from_str::<Sent>(&line) {
        Ok(sent) => match sent.say(engine).await {
            Ok(()) => json!({ "ok": true }),
            Err(error) => Failure::of(&helm::told(error)).json(),
        },
        Err(error) => {
            json!({ "ok": false, "error": { "code": "command.wire", "message": error.to_string() } })
        }
    };
    writer.write_all(format!("{answer}\n").as_bytes()).await
}
