//! The socket beside the database, by which programs of the same user reach the process that owns it.
//!
//! The first line is a request. Most get one line as a reply; an MCP client then speaks its protocol.

use rmcp::ServiceExt;
use rutter_app::app::App;
use rutter_app::auth::key::KeyRequest;
use rutter_app::auth::session;
use rutter_app::command::{Command, CommandArguments};
use rutter_app::error::AppError;
use rutter_app::executions::{PlanText, StartedExecution};
use rutter_app::limits::{BODY_BYTES_MAX, CONNECTIONS_MAX};
use rutter_app::optimize::{OptimizedPlan, optimize_plan};
use rutter_app::plans::archive::{self, ArchivedPlan};
use rutter_app::plans::state::{PlanAction, change_plan};
use rutter_app::plans::{PlanInput, save_plan};
use rutter_app::principal::{McpToolset, Principal};
use rutter_app::replan::{carry_out, propose, repeated};
use rutter_app::start::{ExecutionRequest, PlanChoice};
use rutter_app::verb::Verb;
use rutter_app::view::SavedPlanView;
use rutter_core::execution::Execution;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use rutter_mcp::McpSurface;
use rutter_mcp::pipes::ServerPipeTransport;
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
/// The longest address of a socket.
const PATH_BYTES_MAX: usize = 100;
/// How long a server may take from its start until it listens for HTTP.
const LISTENING_MAX: Duration = Duration::from_secs(5);
/// The longest request: inputs of [`BODY_BYTES_MAX`] and a plan, both written as JSON once more.
const REQUEST_BYTES_MAX: u64 = 3 * BODY_BYTES_MAX as u64;
/// How long a client may take to send its request.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);

/// The first line of a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case", deny_unknown_fields)]
pub enum SocketRequest {
    /// Speak MCP from here on.
    Mcp { tenant: TenantId, toolsets: BTreeSet<McpToolset> },
    /// Perform a command on an execution.
    Say(Box<SocketCommand>),
    /// Execute a plan.
    Run { tenant: TenantId, person: String, plan: String, inputs: Value, key: Option<String> },
    /// Execute a saved plan, by name or id.
    Start { tenant: TenantId, person: String, plan: String, inputs: Value, key: Option<String> },
    /// Save a plan: as the next revision of `id`, or of the plan with its name.
    Save {
        tenant: TenantId,
        person: String,
        plan: String,
        /// By id or name.
        id: Option<String>,
        /// The revision that is to be the newest so far.
        #[serde(default)]
        revision: Option<u32>,
        driver: Driver,
    },
    /// Save plans of an export, each under its name.
    Import { tenant: TenantId, person: String, plans: Vec<ArchivedPlan> },
    /// Suggest what would improve a plan: the given text, or else a saved one.
    Optimize { tenant: TenantId, person: String, text: Option<String>, saved: String, driver: Driver },
    /// Archive, restore, rename or delete a plan.
    ChangePlan { tenant: TenantId, person: String, plan: String, action: PlanAction, reason: Option<String> },
    /// Create, list or revoke keys.
    Key { tenant: TenantId, person: String, wish: KeyRequest },
    /// Create a one-time sign-in link.
    Link { tenant: TenantId, person: String },
    /// Record that the policy refused a call by hand.
    RefusedCall { tenant: TenantId, person: String, refusal: AppError },
    /// Identify the server.
    Who,
    /// Stop the server; calls in flight end first.
    Stop,
}

/// A command to an execution, performed by the process that owns the database.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SocketCommand {
    pub tenant: TenantId,
    pub execution: ExecutionId,
    /// The person at the terminal.
    pub person: String,
    pub what: SocketCommandKind,
    pub reason: String,
    pub key: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketCommandKind {
    Command {
        verb: Verb,
        arguments: Box<CommandArguments>,
    },
    /// The text of a new plan.
    Replan(String),
}

impl SocketCommand {
    pub fn identity(&self) -> ExecutionIdentity {
        ExecutionIdentity { tenant: self.tenant.clone(), execution: self.execution.clone() }
    }

    /// Performs the command in this process, as the owner of the database.
    pub async fn perform(self, app: &App) -> Result<(), AppError> {
        let identity = self.identity();
        let principal = Principal::owner(self.tenant, &self.person);
        match self.what {
            SocketCommandKind::Command { verb, arguments } => {
                let command = Command {
                    principal,
                    execution: self.execution,
                    verb,
                    arguments: *arguments,
                    reason: Some(self.reason),
                    request_key: self.key,
                    if_match: None,
                };
                app.perform(command).await
            }
            SocketCommandKind::Replan(text) => {
                let plan = PlanInput::Text(text);
                let (reason, key) = (Some(self.reason.as_str()), self.key.as_deref());
                if repeated(app, &principal, &identity, &plan, reason, key).await?.is_some() {
                    return Ok(());
                }
                let look = |execution: &Execution| (Arc::clone(execution.plan()), execution.driver());
                let (old, driver) = app.look(&identity, look).await?;
                let old = (&*old, driver);
                let proposal = propose(app, &principal, &identity, old, &plan, Some(self.reason)).await?;
                carry_out(app, &principal, &identity, proposal, self.key, None).await?;
                Ok(())
            }
        }
    }
}

/// The address of a directory's socket, short even if the directory's path is long.
#[derive(Debug)]
pub struct SocketAddress {
    pub path: PathBuf,
    /// The short path goes through this open directory.
    _directory: Option<File>,
}

impl SocketAddress {
    pub fn of(directory: &Path) -> io::Result<SocketAddress> {
        let path = directory.join(NAME);
        if path.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(SocketAddress { path, _directory: None });
        }
        let open = File::open(directory)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", open.as_raw_fd()));
        Ok(SocketAddress { path, _directory: Some(open) })
    }
}

/// A listening socket; [`ListeningSocket::close`] removes it.
#[derive(Debug)]
pub struct ListeningSocket {
    path: PathBuf,
    connection_slots: Arc<Semaphore>,
    closing: CancellationToken,
}

impl ListeningSocket {
    /// Listens beside the database, which the caller owns: a socket file left there is stale. `tools_mark` identifies
    /// the configured tools.
    pub fn listen(
        directory: &Path,
        app: Arc<App>,
        person: &str,
        tools_mark: &str,
        stop: CancellationToken,
    ) -> io::Result<ListeningSocket> {
        let address = SocketAddress::of(directory)?;
        let _ = fs::remove_file(&address.path);
        let listener = UnixListener::bind(&address.path)?;
        fs::set_permissions(&address.path, Permissions::from_mode(0o600))?;
        let closing = CancellationToken::new();
        let (person, tools_mark) = (person.to_owned(), tools_mark.to_owned());
        let server = SocketServer { app, person, tools_mark, stop, closing: closing.clone() };
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        tokio::spawn(Arc::new(server).run(listener, Arc::clone(&places)));
        Ok(ListeningSocket { path: directory.join(NAME), connection_slots: places, closing })
    }

    /// The number of open connections.
    pub fn connections(&self) -> usize {
        CONNECTIONS_MAX - self.connection_slots.available_permits()
    }

    pub fn close(self) {
        self.closing.cancel();
        // It may be gone already.
        let _ = fs::remove_file(&self.path);
    }
}

struct SocketServer {
    app: Arc<App>,
    person: String,
    tools_mark: String,
    stop: CancellationToken,
    closing: CancellationToken,
}

impl SocketServer {
    async fn run(self: Arc<SocketServer>, listener: UnixListener, places: Arc<Semaphore>) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.closing.cancelled() => return,
            };
            let Ok((stream, _)) = accepted else {
                // Most likely out of file descriptors; connections that end free some.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                let app_error = AppError::new("server.busy", "too many connections; try again");
                tokio::spawn(answer(stream.into_split().1, Err(AppError { retryable: true, ..app_error })));
                continue;
            };
            let socket_server = Arc::clone(&self);
            tokio::spawn(async move {
                if let Err(error) = socket_server.receive(stream).await {
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
        let mut first = (&mut reader).take(REQUEST_BYTES_MAX);
        tokio::time::timeout(REQUEST_TIME_MAX, first.read_line(&mut line)).await??;
        let greeting: SocketRequest = match serde_json::from_str(&line) {
            Ok(greeting) => greeting,
            Err(error) => {
                let app_error = AppError::new("server.greeting", format!("this is not a valid request: {error}"))
                    .hint("both processes must be the same version of rutter: `rutter stop` stops the other");
                return answer(writer, Err(app_error)).await;
            }
        };
        match greeting {
            SocketRequest::Mcp { tenant, toolsets } => {
                let principal = Principal::local(tenant, &self.person, toolsets);
                let surface = McpSurface::of(Arc::clone(&self.app), principal);
                let closing = self.closing.child_token();
                match surface.serve_with_ct(ServerPipeTransport::new(reader, writer), closing).await {
                    Ok(service) => drop(service.waiting().await),
                    Err(error) => tracing::debug!("a client left before it began: {error}"),
                }
                Ok(())
            }
            SocketRequest::Say(sent) => {
                let done = sent.perform(&self.app).await;
                answer(writer, done.map(|()| json!({}))).await
            }
            SocketRequest::Run { tenant, person, plan, inputs, key } => {
                let caller = Principal::owner(tenant, &person);
                let begun = start_plan(&self.app, &caller, plan.into_bytes(), Arc::new(inputs), key).await;
                answer(writer, self.started(begun)).await
            }
            SocketRequest::Start { tenant, person, plan, inputs, key } => {
                let caller = Principal::owner(tenant, &person);
                let begun = start_saved(&self.app, &caller, &plan, Arc::new(inputs), key).await;
                answer(writer, self.started(begun)).await
            }
            SocketRequest::Save { tenant, person, plan, id, revision, driver } => {
                let caller = Principal::owner(tenant, &person);
                let text = text_of(&caller, plan.into_bytes(), driver);
                let saved = save_plan(&self.app, &caller, text, id.as_deref(), revision, None).await;
                answer(writer, saved.map(|saved| json!(SavedPlanView::of(&saved)))).await
            }
            SocketRequest::Import { tenant, person, plans } => {
                let caller = Principal::owner(tenant, &person);
                let imported = archive::import(&self.app, &caller, plans).await;
                answer(writer, imported.map(|plans| json!({ "plans": plans }))).await
            }
            SocketRequest::Optimize { tenant, person, text, saved, driver } => {
                let caller = Principal::owner(tenant, &person);
                let plan = match text {
                    Some(text) => OptimizedPlan::Given(text_of(&caller, text.into_bytes(), driver)),
                    None => OptimizedPlan::Saved(saved),
                };
                let found = optimize_plan(&self.app, &caller, plan).await;
                answer(writer, found.map(|found| json!(found))).await
            }
            SocketRequest::ChangePlan { tenant, person, plan, action, reason } => {
                let caller = Principal::owner(tenant, &person);
                let changed = change_plan(&self.app, &caller, &plan, action, reason).await;
                answer(writer, changed.map(|changed| json!(changed))).await
            }
            SocketRequest::Key { tenant, person, wish } => {
                answer(writer, self.app.auth.grant(&Principal::owner(tenant, &person), wish).await).await
            }
            SocketRequest::Link { tenant, person } => {
                answer(writer, self.link(&Principal::owner(tenant, &person)).await).await
            }
            SocketRequest::RefusedCall { tenant, person, refusal } => {
                self.app.refusals.record_refused_call(&Principal::owner(tenant, &person), &refusal).await;
                answer(writer, Ok(json!({}))).await
            }
            SocketRequest::Who => {
                let who = json!({ "version": env!("CARGO_PKG_VERSION"), "pid": std::process::id(),
                    "executions": self.app.active_count(), "link": self.app.link.get(), "tools_mark": self.tools_mark });
                answer(writer, Ok(who)).await
            }
            SocketRequest::Stop => {
                answer(writer, Ok(json!({ "pid": std::process::id() }))).await?;
                self.stop.cancel();
                Ok(())
            }
        }
    }
}

impl SocketServer {
    /// The reply about an execution that was started.
    fn started(&self, begun: Result<StartedExecution, AppError>) -> Result<Value, AppError> {
        let begun = begun?;
        let mut reply = json!({ "execution": begun.execution, "is_new": begun.is_new });
        if let Some(link) = self.app.link.get() {
            reply["url"] = json!(format!("{link}/executions/{}", begun.execution));
        }
        Ok(reply)
    }

    async fn link(&self, by: &Principal) -> Result<Value, AppError> {
        // A server that has just started replies here before it listens for HTTP.
        let deadline = Instant::now() + LISTENING_MAX;
        while self.app.link.get().is_none() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let Some(address) = self.app.link.get() else {
            let error = AppError::new("server.address", "the process that owns the database does not listen for HTTP");
            return Err(error.hint("stop it with `rutter stop`; `rutter serve` listens"));
        };
        let code = self.app.auth.create_sign_in_link(by).await?;
        Ok(json!({ "link": session::link(address, &code) }))
    }
}

/// Saves a plan and executes it. A repeated request with the same key gets the same execution.
pub async fn start_plan(
    app: &App,
    caller: &Principal,
    source: Vec<u8>,
    inputs: Arc<Value>,
    key: Option<String>,
) -> Result<StartedExecution, AppError> {
    let text = text_of(caller, source, Driver::Server);
    let plan = PlanChoice::Given(text);
    let request = ExecutionRequest { plan, inputs, driver: Driver::Server, options: None, request_key: key };
    app.execute(caller, request).await
}

/// Executes a saved plan, by name or id.
pub async fn start_saved(
    app: &App,
    caller: &Principal,
    plan: &str,
    inputs: Arc<Value>,
    key: Option<String>,
) -> Result<StartedExecution, AppError> {
    let plan = PlanChoice::Saved { plan: plan.to_owned(), revision: None };
    let request = ExecutionRequest { plan, inputs, driver: Driver::Server, options: None, request_key: key };
    app.execute(caller, request).await
}

/// The text of a plan, in whichever format it is.
pub fn text_of(caller: &Principal, source: Vec<u8>, driver: Driver) -> PlanText {
    let format = DocumentFormat::guess(&source);
    PlanText { tenant: caller.tenant.clone(), source, format, driver }
}

async fn answer(mut writer: tokio::net::unix::OwnedWriteHalf, answer: Result<Value, AppError>) -> io::Result<()> {
    let line = match answer {
        Ok(mut value) => {
            value["ok"] = json!(true);
            value
        }
        Err(app_error) => json!({ "ok": false, "error": app_error }),
    };
    writer.write_all(format!("{line}\n").as_bytes()).await
}
