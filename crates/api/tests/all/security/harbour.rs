//! A complete server on its own port, with a clock that the test sets, and requests as raw bytes.

use rutter_api::http::full_router;
use rutter_api::http::gate::RequestGate;
use rutter_api::http::listen::{ConnectionLimits, ConnectionSlots, serve_with_slots};
use rutter_api::rate_limit::RequestRate;
use rutter_app::auth::key::{ApiKeyView, NewApiKey};
use rutter_app::auth::{AccessScope, AccessToken, Authenticator};
use rutter_app::principal::{Principal, PrincipalRole};
use rutter_app::runtime::RuntimeOptions;
use rutter_core::id::TenantId;
use rutter_core::time::{Millis, Timestamp};
use rutter_testkit::server::beside;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::installation::options;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const AGENT: &str = "agent-token-of-enough-characters";
pub const OPERATOR: &str = "operator-token-of-enough-characters";
/// A host name in addition to those of loopback.
pub const NAMED: &str = "rutter.example";
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Harbour {
    pub deck: ServerFixture,
    pub auth: Arc<Authenticator>,
    /// Host and port.
    pub address: String,
    pub time: Time,
    pub closing: CancellationToken,
    pub served: JoinHandle<std::io::Result<()>>,
}

/// A clock set by the test.
#[derive(Clone)]
pub struct Time(Arc<AtomicI64>);

impl Time {
    fn new() -> Time {
        Time(Arc::new(AtomicI64::new(1_800_000_000_000)))
    }

    pub fn pass(&self, span: Millis) {
        self.0.fetch_add(span.0 as i64, Ordering::SeqCst);
    }

    pub fn set_back(&self, span: Millis) {
        self.0.fetch_sub(span.0 as i64, Ordering::SeqCst);
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

pub fn tenant() -> TenantId {
    TenantId::new("default")
}

/// The owner of the database.
pub fn owner() -> Principal {
    Principal::owner(tenant(), "operator")
}

pub fn tokens() -> Vec<AccessToken> {
    vec![
        AccessToken::new("agent", PrincipalRole::Agent, AGENT),
        AccessToken::new("operator", PrincipalRole::Operator, OPERATOR),
    ]
}

impl Harbour {
    pub async fn new() -> Harbour {
        Harbour::on(ConnectionLimits::default()).await
    }

    pub async fn on(terms: ConnectionLimits) -> Harbour {
        Harbour::of(tempfile::tempdir().unwrap(), Time::new(), tokens(), terms).await
    }

    async fn of(folder: TempDir, time: Time, tokens: Vec<AccessToken>, terms: ConnectionLimits) -> Harbour {
        let clock = time.clone();
        let options =
            RuntimeOptions { tokens, auth_clock: Some(Arc::new(move || clock.now())), ..options(folder.path(), "") };
        let deck = ServerFixture::open_with(folder, options).await;
        let auth = Arc::clone(&deck.app.auth);
        let door = Arc::new(RequestGate::new(vec![NAMED.to_owned()], Arc::clone(&auth)));
        let closing = CancellationToken::new();
        // Rate limits are tested elsewhere.
        let free = RequestRate { per_second: 0, burst: 0 };
        let settings = rutter_api::ApiSettings { reads: free, changes: free, ..rutter_api::ApiSettings::default() };
        let router = full_router(&deck.app, door, settings, beside(&deck.app, &closing), &closing);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let served = tokio::spawn(serve_with_slots(ConnectionSlots::of(terms), listener, router, closing.clone()));
        Harbour { deck, auth, address, time, closing, served }
    }

    /// Stops the server and starts again with what is on disk.
    pub async fn restarted(self, tokens: Vec<AccessToken>) -> Harbour {
        self.restarted_after(tokens, || {}).await
    }

    /// The same, and this happens while no process runs.
    pub async fn restarted_after(self, tokens: Vec<AccessToken>, meanwhile: impl FnOnce()) -> Harbour {
        let Harbour { deck, auth, time, closing, served, .. } = self;
        closing.cancel();
        served.await.unwrap().unwrap();
        auth.write_changes().await.unwrap();
        drop(auth);
        let folder = deck.close().await;
        meanwhile();
        Harbour::of(folder, time, tokens, ConnectionLimits::default()).await
    }

    pub async fn key(&self, name: &str, scopes: &[AccessScope]) -> (ApiKeyView, String) {
        let new = NewApiKey { name: name.to_owned(), scopes: scopes.iter().copied().collect(), expires_in: None };
        self.auth.create(&owner(), new).await.unwrap()
    }

    /// Signs in as a browser does; returns the cookie and the CSRF token.
    pub async fn session(&self, secret: &str) -> (String, String) {
        let entered = self.post("/enter", &[], &format!("secret={secret}")).await;
        assert_eq!(entered.status, 303, "{}", entered.body);
        let cookie = entered.cookie().unwrap();
        let (_, browser) = self.auth.session(cookie.split_once('=').unwrap().1).unwrap();
        (cookie, browser.csrf)
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(&self.request("GET", path, headers, "")).await
    }

    /// Posts a form.
    pub async fn post(&self, path: &str, headers: &[(&str, &str)], form: &str) -> Answer {
        let kind = ("Content-Type", "application/x-www-form-urlencoded");
        self.ask(&self.request("POST", path, &[&[kind], headers].concat(), form)).await
    }

    /// A whole request; a `Host` among the headers replaces the default.
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            text += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        text + "\r\n" + body
    }

    /// Sends bytes over a new connection, and reads until the server closes it.
    pub async fn ask(&self, bytes: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        // The server may close the connection before everything is sent.
        let _ = stream.write_all(bytes.as_bytes()).await;
        hear(stream).await
    }
}

/// Reads until the peer closes the connection.
pub async fn hear(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    // A reset connection may have delivered something before.
    let _ = read.expect("the server answers or closes the connection");
    Answer::read(&String::from_utf8_lossy(&bytes))
}

#[derive(Debug)]
pub struct Answer {
    /// 0 if there was no response.
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    fn read(text: &str) -> Answer {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The session cookie, in the form a browser sends it back.
    pub fn cookie(&self) -> Option<String> {
        Some(self.header("set-cookie")?.split(';').next()?.to_owned())
    }

    pub fn has(&self, code: &str) -> bool {
        self.body.contains(&format!("\"{code}\""))
    }
}
