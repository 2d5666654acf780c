//! The socket beside the database, by which programs of the same user reach whoever has it.
//!
//! The first line says what one comes for. Most get one line back; an MCP client stays and speaks its protocol.

use crate::auth::key::Wish;
use crate::auth::{Auth, enter};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::guest::{Guest, Toolset};
use crate::limits::{CONNECTIONS_MAX, MESSAGE_BYTES_MAX};
use crate::mcp::Surface;
use crate::mcp::pipes::Pipes;
use rmcp::ServiceExt;
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::plan::Driver;
use rutter_core::plan::document::Format;
use rutter_core::port::journal::Saved;
use rutter_engine::control::Control;
use rutter_engine::submit::{PlanText, Submitted};
use rutter_engine::{Engine, Start};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

const NAME: &str = "rutter.sock";
/// Addresses of sockets cannot be longer.
const PATH_BYTES_MAX: usize = 100;
/// How long a server may take from its start until it listens for HTTP.
const LISTENING_MAX: Duration = Duration::from_secs(5);
/// How long one may take to say what one comes for.
const GREETING_MAX: Duration = Duration::from_secs(10);

/// What somebody comes for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case", deny_unknown_fields)]
pub enum Greeting {
    /// To speak MCP from here on.
    Mcp { tenant: TenantId, toolsets: BTreeSet<Toolset> },
    /// To say something to an execution.
    Say(Box<Sent>),
    /// To have a plan carried out.
    Run { tenant: TenantId, actor: Actor, plan: String, inputs: Value, key: Option<String> },
    /// To have a plan kept: as a new one, or as the next revision of `id`.
    Save { tenant: TenantId, actor: Actor, plan: String, id: Option<PlanId>, driver: Driver },
    /// To have something done with keys.
    Key { tenant: TenantId, person: String, wish: Wish },
    /// To have a link that lets a browser in, once.
    Link { tenant: TenantId, person: String },
    /// To know who is there.
    Who,
    /// To end the server: what is under way comes to its end first.
    Stop,
}

/// What is asked of an execution, by whoever has the database or through it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    pub tenant: TenantId,
    pub execution: ExecutionId,
    pub actor: Actor,
    pub what: What,
    pub reason: String,
    pub key: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    Control(Control),
    /// The text of a new plan.
    Replan(String),
}

impl Sent {
    pub fn identity(&self) -> Identity {
        Identity { tenant: self.tenant.clone(), execution: self.execution.clone() }
    }

    /// Says it to an engine in this process.
    pub async fn say(self, engine: &Engine) -> Result<(), rutter_engine::Error> {
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

/// An address for the socket of a directory, short enough however long the directory's name is.
#[derive(Debug)]
pub struct Address {
    pub path: PathBuf,
    /// What the short path goes through.
    _directory: Option<File>,
}

impl Address {
    pub fn of(directory: &Path) -> io::Result<Address> {
        let path = directory.join(NAME);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Address { path, _directory: None });
        }
        let open = File::open(directory)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", open.as_raw_fd()));
        Ok(Address { path, _directory: Some(open) })
    }
}

/// A socket that listens; it goes away with [`Socket::close`].
#[derive(Debug)]
pub struct Socket {
    path: PathBuf,
    places: Arc<Semaphore>,
    closing: CancellationToken,
}

impl Socket {
    /// Listens beside the database, which the caller has: whoever left a socket there is gone. `tools_mark` differs where
    /// other tools are configured.
    pub fn listen(
        directory: &Path,
        desk: Arc<Desk>,
        auth: Arc<Auth>,
        person: &str,
        tools_mark: &str,
        stop: CancellationToken,
    ) -> io::Result<Socket> {
        let address = Address::of(directory)?;
        let _ = fs::remove_file(&address.path);
        let listener = UnixListener::bind(&address.path)?;
        fs::set_permissions(&address.path, Permissions::from_mode(0o600))?;
        let closing = CancellationToken::new();
        let (person, tools_mark) = (person.to_owned(), tools_mark.to_owned());
        let porter = Porter { desk, auth, person, tools_mark, stop, closing: closing.clone() };
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        tokio::spawn(Arc::new(porter).run(listener, Arc::clone(&places)));
        Ok(Socket { path: directory.join(NAME), places, closing })
    }

    /// How many are here now.
    pub fn connections(&self) -> usize {
        CONNECTIONS_MAX - self.places.available_permits()
    }

    pub fn close(self) {
        self.closing.cancel();
        // One that is not there does no harm.
        let _ = fs::remove_file(&self.path);
    }
}

struct Porter {
    desk: Arc<Desk>,
    auth: Arc<Auth>,
    person: String,
    tools_mark: String,
    stop: CancellationToken,
    closing: CancellationToken,
}

impl Porter {
    async fn run(self: Arc<Porter>, listener: UnixListener, places: Arc<Semaphore>) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.closing.cancelled() => return,
            };
            let Ok((stream, _)) = accepted else {
                // Out of files, most likely; those under way will end.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                let fault = Fault::new("server.busy", "too many connections; try again");
                tokio::spawn(answer(stream.into_split().1, Err(Fault { retryable: true, ..fault })));
                continue;
            };
            let porter = Arc::clone(&self);
            tokio::spawn(async move {
                if let Err(error) = porter.receive(stream).await {
                    tracing::debug!("a connection over the socket ended: {error}");
                }
                drop(place);
            });
        }
    }

    async fn receive(&self, stream: UnixStream) -> io::Result<()> {
        let (reader, writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        let mut line = String::new();
        let mut first = (&mut reader).take(MESSAGE_BYTES_MAX as u64);
        tokio::time::timeout(GREETING_MAX, first.read_line(&mut line)).await??;
        let greeting: Greeting = match serde_json::from_str(&line) {
            Ok(greeting) => greeting,
            Err(error) => {
                let fault = Fault::new("server.greeting", format!("this is not what one says here: {error}"))
                    .hint("both ends must be the same version of rutter: `rutter stop` ends the other");
                return answer(writer, Err(fault)).await;
            }
        };
        let engine = &self.desk.engine;
        match greeting {
            Greeting::Mcp { tenant, toolsets } => {
                let guest = Guest::local(tenant, &self.person, toolsets);
                let surface = Surface::of(Arc::clone(&self.desk), guest);
                let closing = self.closing.child_token();
                match surface.serve_with_ct(Pipes::new(reader, writer), closing).await {
                    Ok(service) => drop(service.waiting().await),
                    Err(error) => tracing::debug!("a client left before it began: {error}"),
                }
                Ok(())
            }
            Greeting::Say(sent) => {
                let said = sent.say(engine).await;
                answer(writer, said.map(|()| json!({})).map_err(Fault::from)).await
            }
            Greeting::Run { tenant, actor, plan, inputs, key } => {
                let mut begun = begin(engine, tenant, actor, plan, inputs, key).await;
                if let (Ok(begun), Some(link)) = (&mut begun, self.desk.link.get()) {
                    let execution = begun["execution"].as_str().unwrap_or_default();
                    begun["page"] = json!(format!("{link}/executions/{execution}"));
                }
                answer(writer, begun).await
            }
            Greeting::Save { tenant, actor, plan, id, driver } => {
                answer(writer, save(engine, tenant, actor, plan, id, driver).await).await
            }
            Greeting::Key { tenant, person, wish } => {
                answer(writer, self.auth.grant(&Guest::owner(tenant, &person), wish).await).await
            }
            Greeting::Link { tenant, person } => {
                answer(writer, self.link(&Guest::owner(tenant, &person)).await).await
            }
            Greeting::Who => {
                let who = json!({ "version": env!("CARGO_PKG_VERSION"), "pid": std::process::id(),
                    "executions": engine.live(), "link": self.desk.link.get(), "tools_mark": self.tools_mark });
                answer(writer, Ok(who)).await
            }
            Greeting::Stop => {
                answer(writer, Ok(json!({ "pid": std::process::id() }))).await?;
                self.stop.cancel();
                Ok(())
            }
        }
    }
}

impl Porter {
    async fn link(&self, by: &Guest) -> Result<Value, Fault> {
        // A server that has just started can be asked before it listens for HTTP.
        let deadline = Instant::now() + LISTENING_MAX;
        while self.desk.link.get().is_none() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let Some(address) = self.desk.link.get() else {
            let fault =
                Fault::new("server.address", "the process that has the database does not listen for HTTP");
            return Err(fault.hint("end it with `rutter stop`; `rutter serve` listens"));
        };
        let code = self.auth.link(by).await?;
        Ok(json!({ "link": enter::link(address, &code) }))
    }
}

async fn begin(
    engine: &Engine,
    tenant: TenantId,
    actor: Actor,
    plan: String,
    inputs: Value,
    key: Option<String>,
) -> Result<Value, Fault> {
    let source = plan.into_bytes();
    let format = Format::guess(&source);
    let text = PlanText { tenant: tenant.clone(), source, format, driver: Driver::Server };
    let submitted = engine.submit(text, None, None, actor.clone()).await?;
    let (plan, driver) = (submitted.id, Driver::Server);
    let start = Start { tenant, plan, revision: None, inputs: Arc::new(inputs), driver, actor, request: key };
    let started = engine.start(start).await?;
    Ok(json!({ "execution": started.execution, "is_new": started.is_new }))
}

async fn save(
    engine: &Engine,
    tenant: TenantId,
    actor: Actor,
    plan: String,
    id: Option<PlanId>,
    driver: Driver,
) -> Result<Value, Fault> {
    let source = plan.into_bytes();
    let format = Format::guess(&source);
    let text = PlanText { tenant, source, format, driver };
    Ok(kept(&engine.submit(text, id, None, actor).await?))
}

/// What is told of a plan that was kept.
pub fn kept(submitted: &Submitted) -> Value {
    let plan = &submitted.accepted.plan;
    let is_new = matches!(submitted.saved, Saved::New { .. });
    json!({ "plan_id": submitted.id, "revision": submitted.saved.revision(), "is_new": is_new, "name": plan.name,
        "steps": plan.steps.len(), "hash": plan.hash, "warnings": submitted.accepted.found })
}

async fn answer(
    mut writer: tokio::net::unix::OwnedWriteHalf,
    answer: Result<Value, Fault>,
) -> io::Result<()> {
    let line = match answer {
        Ok(mut value) => {
            value["ok"] = json!(true);
            value
        }
        Err(fault) => json!({ "ok": false, "error": fault }),
    };
    writer.write_all(format!("{line}\n").as_bytes()).await
}
