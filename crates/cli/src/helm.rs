//! An engine with its database and tools, for as long as one command needs it.

use crate::args::StoreArgs;
use crate::args::run::ToolArgs;
use crate::config::Config;
use crate::failure::Refusal;
use crate::progress::Progress;
use crate::{store, tools};
use anyhow::Context;
use rutter_core::execution::Identity;
use rutter_core::execution::view::Status;
use rutter_core::id::{TenantId, WorkerId};
use rutter_core::journal::verify::Receipt;
use rutter_core::port::proof::Proof;
use rutter_core::time::Timestamp;
use rutter_engine::options::hold_after;
use rutter_engine::{Clock, Engine, Error, Happening, Live, Options};
use rutter_server::auth::{Auth, Token};
use rutter_server::desk::{Desk, Parts, Settings};
use rutter_server::guest::Role;
use rutter_server::keys::Keys;
use rutter_server::socket::Socket;
use rutter_store::{Archive, Store};
use rutter_tools::builtin::Builtins;
use rutter_tools::guard::SystemResolver;
use rutter_tools::post::Carrier;
use rutter_tools::registry::Registry;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) struct Helm {
    pub(crate) engine: Engine,
    pub(crate) registry: Arc<Registry>,
    pub(crate) builtins: Arc<Builtins>,
    pub(crate) config: Config,
    pub(crate) desk: Arc<Desk>,
    pub(crate) auth: Arc<Auth>,
    store: Arc<Store>,
    socket: Option<Socket>,
    timers: CancellationToken,
    /// What is done beside answering.
    beside: JoinHandle<()>,
    /// Somebody asked this process to end.
    pub(crate) stop: CancellationToken,
}

impl Helm {
    /// Takes the database, starts driving what is due in it, and can be asked by other commands from now on.
    pub(crate) async fn open(store: &StoreArgs, args: &ToolArgs) -> anyhow::Result<Helm> {
        let config = Config::load_with(store, args)?;
        let clock = Clock::system();
        let options =
            rutter_store::Options { clock: Arc::new(move || clock.now()), ..store::options(&config) };
        let store = Arc::new(Store::open(options)?);
        let tooling = tools::tooling(&config, store.clone(), clock)?;
        let registry = Arc::clone(&tooling.registry);
        let worker = WorkerId::new(&rutter_engine::name::fresh("worker", clock.now()));
        let mut options = Options::new(worker);
        // A lease ends some time after its worker was last alive.
        let last_alive = store.believed_until().map(|until| Timestamp(until.0 - options.lease.0 as i64));
        options.hold = hold_after(last_alive, clock.now());
        let engine = Engine::run(store.clone(), store.clone(), registry.clone(), clock, options).await;
        let engine = engine.map_err(told)?;
        let keys = Keys::of(&config.directory).context("the keys beside the database")?;
        let settings = Settings { ask_at_client: config.server.ask_at_client };
        let carrier = Carrier::new(&config.webhooks.allow, Arc::new(SystemResolver));
        let carrier = carrier.map_err(|why| {
            Refusal::new("config.invalid", format!("webhooks.allow: {why}"))
                .with_hint("list hosts, addresses or networks such as 10.0.0.0/8")
        })?;
        let desk = Desk::open(Parts {
            engine: engine.clone(),
            store: store.clone(),
            tools: registry.clone(),
            post: Arc::new(carrier),
            bell: tooling.bells,
            collector: config.telemetry.collector(config.tools.servers.keys().cloned().collect())?,
            clock,
            tokens: tokens(&config, &keys),
            settings,
            seal: keys.seal,
        })
        .await?;
        let auth = Arc::clone(&desk.auth);
        let stop = CancellationToken::new();
        let (person, mark) = (&config.operator, &config.tools_mark);
        let socket =
            Socket::listen(&config.directory, desk.clone(), auth.clone(), person, mark, stop.clone());
        let socket = socket.inspect_err(|error| {
            tracing::warn!("other commands cannot reach this one: no socket beside the database: {error}");
        });
        let timers = CancellationToken::new();
        let beside = tokio::spawn(Arc::clone(&desk).run(timers.clone()));
        let (builtins, shutdown) = (Arc::clone(&tooling.builtins), timers.clone());
        tokio::spawn(async move { builtins.run_timers(shutdown).await });
        Ok(Helm {
            engine,
            registry,
            builtins: tooling.builtins,
            config,
            desk,
            auth,
            store,
            socket: socket.ok(),
            timers,
            beside,
            stop,
        })
    }

    /// Tells what happens until the execution has ended or needs somebody; with `stays`, until it has ended.
    pub(crate) async fn follow(
        &self,
        identity: &Identity,
        mut happenings: broadcast::Receiver<Happening>,
        stays: bool,
        progress: &mut Progress,
    ) -> anyhow::Result<()> {
        // What was written between the opening and the listening is only in the journal.
        progress.tell_all(1, &Archive::open(&self.config.directory)?.load(identity)?.records);
        let mut status = self.engine.view(identity).await.map_err(told)?.status;
        let mut interrupted = false;
        loop {
            // What was written before the status was looked at has been heard already.
            while let Ok(happening) = happenings.try_recv() {
                status = hear(identity, happening, progress).unwrap_or(status);
            }
            let needs_somebody = matches!(status, Status::Waiting | Status::Paused | Status::Replanning);
            if status.has_ended() || interrupted || (needs_somebody && !stays) {
                return Ok(());
            }
            tokio::select! {
                heard = happenings.recv() => match heard {
                    Ok(happening) => status = hear(identity, happening, progress).unwrap_or(status),
                    Err(broadcast::error::RecvError::Lagged(_)) => {
                        status = self.engine.view(identity).await.map_err(told)?.status;
                    }
                    Err(broadcast::error::RecvError::Closed) => return Ok(()),
                },
                () = tokio::time::sleep(Duration::from_millis(500)) => progress.count_down(self.engine.now()),
                _ = tokio::signal::ctrl_c() => interrupted = true,
            }
        }
    }

    /// How many have come to this process over its socket.
    pub(crate) fn connections(&self) -> usize {
        self.socket.as_ref().map_or(0, Socket::connections)
    }

    /// What can be kept to show later that this execution stood like this.
    pub(crate) async fn receipt(&self, identity: &Identity) -> anyhow::Result<Receipt> {
        self.store.sign(&identity.tenant).await?;
        Ok(Archive::open(&self.config.directory)?.receipt(identity, None)?)
    }

    /// Lets what is under way end, and lets go of everything.
    pub(crate) async fn close(self) {
        self.timers.cancel();
        self.engine.close().await;
        // One that panicked has said so.
        let _ = self.beside.await;
        // Until here one can still ask how things stand.
        if let Some(socket) = self.socket {
            socket.close();
        }
        self.registry.close().await;
    }
}

/// Who may come in. A token that cannot be read lets nobody in; `rutter serve` does not start then.
pub(crate) async fn auth(
    register: Arc<Store>,
    clock: Clock,
    config: &Config,
    keys: &Keys,
) -> Result<Arc<Auth>, rutter_core::port::Error> {
    let tenant = TenantId::new("default");
    Auth::open(register, tenant, Arc::new(move || clock.now()), tokens(config, keys)).await
}

fn tokens(config: &Config, keys: &Keys) -> Vec<Token> {
    let mut tokens = config.server.tokens().unwrap_or_default();
    tokens.push(Token::new("agent", Role::Agent, &keys.agent));
    tokens.push(Token::new(&config.operator, Role::Operator, &keys.operator));
    tokens
}

fn hear(identity: &Identity, happening: Happening, progress: &mut Progress) -> Option<Status> {
    if happening.identity != *identity {
        return None;
    }
    match happening.live {
        Live::Recorded { first, records, status } => {
            progress.tell_all(first, &records);
            Some(status)
        }
        Live::Progress { part, progress: how } => {
            progress.hint(&part, &how);
            None
        }
    }
}

/// Runs a command that waits for things.
pub(crate) fn on_runtime<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("no runtime")?;
    let ended = runtime.block_on(command);
    runtime.shutdown_timeout(Duration::from_secs(2));
    ended
}

/// An error of the engine as commands tell errors.
pub(crate) fn told(error: Error) -> anyhow::Error {
    match error {
        Error::Store(error) => error.into(),
        Error::Refused(refusal) => {
            let told = Refusal::new(refusal.code, refusal.message);
            match refusal.hint {
                Some(hint) => told.with_hint(hint).into(),
                None => told.into(),
            }
        }
        Error::Secret => Refusal::new(error.code(), error.to_string())
            .with_hint("name it under [secrets] in rutter.toml, and write {\"secret\": \"name\"} in the plan")
            .into(),
        error => Refusal::new(error.code(), error.to_string()).into(),
    }
}
