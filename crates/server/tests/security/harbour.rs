//! A server on a port of its own with everything it has, a clock that the test sets, and requests as raw bytes.

use crate::deck::Deck;
use rutter_core::id::TenantId;
use rutter_core::time::{Millis, Timestamp};
use rutter_server::api::{self, pace::Rate};
use rutter_server::auth::key::{KeyView, NewKey};
use rutter_server::auth::{Auth, Scope, Token};
use rutter_server::guest::{Guest, Role};
use rutter_server::http::door::Door;
use rutter_server::http::everything;
use rutter_server::http::listen::{Places, Terms, serve_in};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const AGENT: &str = "agent-token-of-enough-characters";
pub const OPERATOR: &str = "operator-token-of-enough-characters";
/// A name beside those of loopback.
pub const NAMED: &str = "rutter.example";
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Harbour {
    pub deck: Deck,
    pub auth: Arc<Auth>,
    /// Host and port.
    pub address: String,
    pub time: Time,
    pub closing: CancellationToken,
    pub served: JoinHandle<std::io::Result<()>>,
}

/// What time it is, as the test says.
#[derive(Clone)]
pub struct Time(Arc<AtomicI64>);

impl Time {
    fn new() -> Time {
        Time(Arc::new(AtomicI64::new(1_800_000_000_000)))
    }

    pub fn pass(&self, span: Millis) {
        self.0.fetch_add(span.0 as i64, Ordering::SeqCst);
    }

    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

pub fn tenant() -> TenantId {
    TenantId::new("default")
}

/// The one who has the database.
pub fn owner() -> Guest {
    Guest::owner(tenant(), "operator")
}

pub fn tokens() -> Vec<Token> {
    vec![Token::new("agent", Role::Agent, AGENT), Token::new("operator", Role::Operator, OPERATOR)]
}

pub async fn auth(deck: &Deck, time: &Time, tokens: Vec<Token>) -> Arc<Auth> {
    let time = time.clone();
    Auth::open(deck.desk.register.clone(), tenant(), Arc::new(move || time.now()), tokens).await.unwrap()
}

impl Harbour {
    pub async fn new() -> Harbour {
        Harbour::on(Terms::default()).await
    }

    pub async fn on(terms: Terms) -> Harbour {
        Harbour::of(Deck::new().await, Time::new(), tokens(), terms).await
    }

    async fn of(mut deck: Deck, time: Time, tokens: Vec<Token>, terms: Terms) -> Harbour {
        let auth = auth(&deck, &time, tokens).await;
        Arc::get_mut(&mut deck.desk).expect("nobody else has it yet").auth = Arc::clone(&auth);
        let door = Arc::new(Door::new(vec![NAMED.to_owned()], Arc::clone(&auth)));
        let closing = CancellationToken::new();
        // How often somebody may ask is tested elsewhere.
        let free = Rate { per_second: 0, burst: 0 };
        let settings = api::Settings { look: free, change: free, ..api::Settings::default() };
        let router = everything(&deck.desk, door, settings, &closing);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let served = tokio::spawn(serve_in(Places::of(terms), listener, router, closing.clone()));
        Harbour { deck, auth, address, time, closing, served }
    }

    /// Ends the server and begins again with what is on disk.
    pub async fn restarted(self, tokens: Vec<Token>) -> Harbour {
        let Harbour { deck, auth, time, closing, served, .. } = self;
        closing.cancel();
        served.await.unwrap().unwrap();
        auth.keep().await.unwrap();
        drop(auth);
        Harbour::of(deck.restarted().await, time, tokens, Terms::default()).await
    }

    pub async fn key(&self, name: &str, scopes: &[Scope]) -> (KeyView, String) {
        let new =
            NewKey { name: name.to_owned(), scopes: scopes.iter().copied().collect(), expires_in: None };
        self.auth.create(&owner(), new).await.unwrap()
    }

    /// Enters as a browser does, and returns what it sends from then on, and what its forms carry.
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

    /// A whole request; a `Host` among the headers takes the place of the right one.
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

    /// Sends bytes over a connection of their own, and reads what comes until the server hangs up.
    pub async fn ask(&self, bytes: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        // A server that has heard enough may hang up while there is more to say.
        let _ = stream.write_all(bytes.as_bytes()).await;
        hear(stream).await
    }
}

/// Reads until the other end hangs up.
pub async fn hear(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    // One that was reset may have said something before.
    let _ = read.expect("the server answers or hangs up");
    Answer::read(&String::from_utf8_lossy(&bytes))
}

#[derive(Debug)]
pub struct Answer {
    /// 0 if there was none.
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

    /// The cookie that was set, as a browser sends it back.
    pub fn cookie(&self) -> Option<String> {
        Some(self.header("set-cookie")?.split(';').next()?.to_owned())
    }

    pub fn has(&self, code: &str) -> bool {
        self.body.contains(&format!("\"{code}\""))
    }
}
