//! Who may come in over HTTP: the right host, no foreign page, a token, and nobody in another's session.

use crate::fault::Fault;
use crate::guest::{Guest, Role, Toolset};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const SESSION: &str = "mcp-session-id";
/// Sessions whose owner is remembered; the oldest is forgotten first, and its session with it.
const SESSIONS_MAX: usize = 10_000;

#[derive(Debug)]
pub struct Door {
    /// Names under which this server may be addressed, without port.
    hosts: Vec<String>,
    tokens: Vec<Token>,
    /// Lets everybody in as this guest; only for tests of the protocol.
    open_for: Option<Guest>,
    sessions: Mutex<Sessions>,
}

/// A token and who comes with it. Only its hash is kept in memory.
#[derive(Clone, Debug)]
pub struct Token {
    hash: Hash,
    pub name: String,
    pub role: Role,
}

impl Token {
    pub fn new(name: &str, role: Role, secret: &str) -> Token {
        Token { hash: digest(secret), name: name.to_owned(), role }
    }
}

#[derive(Debug, Default)]
struct Sessions {
    owners: HashMap<String, String>,
    oldest: VecDeque<String>,
}

impl Door {
    /// `hosts`: names beside those of this machine's own loopback.
    pub fn new(hosts: Vec<String>, tokens: Vec<Token>) -> Door {
        Door { hosts, tokens, open_for: None, sessions: Mutex::default() }
    }

    /// Without tokens, for one guest. Never reachable from the command line.
    pub fn open_for(guest: Guest) -> Door {
        Door { open_for: Some(guest), ..Door::new(Vec::new(), Vec::new()) }
    }

    /// Who a secret belongs to.
    pub fn whose(&self, secret: &str) -> Option<&Token> {
        // Hashes are compared, which tells nothing about the secret by how long it takes.
        let hash = digest(secret);
        self.tokens.iter().find(|token| token.hash == hash)
    }

    fn knows_host(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| self.is_ours(host_of(host)))
    }

    /// A page that was not served by us has no business here.
    fn knows_origin(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return true };
        let Some((scheme, rest)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else {
            return false;
        };
        matches!(scheme, "http" | "https") && self.is_ours(host_of(rest))
    }

    fn is_ours(&self, host: &str) -> bool {
        let loopback = ["localhost", "127.0.0.1", "[::1]", "::1"];
        loopback.contains(&host) || self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    fn guest(&self, request: &Request) -> Result<Guest, Box<Response>> {
        if let Some(guest) = &self.open_for {
            return Ok(guest.clone());
        }
        let secret = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let secret = secret.and_then(|value| value.split_once(' '));
        let secret = secret.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let token = secret.and_then(|(_, secret)| self.whose(secret.trim()));
        let token = token.ok_or_else(|| {
            let fault = Fault::new("server.unauthorized", "this needs a token: Authorization: Bearer …")
                .hint("the operator finds tokens beside the database: agent.token");
            let mut response = refused(StatusCode::UNAUTHORIZED, &fault);
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"rutter\""));
            Box::new(response)
        })?;
        let wrong =
            |message| Box::new(refused(StatusCode::BAD_REQUEST, &Fault::new("server.arguments", message)));
        let toolsets = toolsets(request.uri().query()).map_err(wrong)?;
        if toolsets.contains(&Toolset::Admin) && token.role != Role::Operator {
            let fault = Fault::new("server.not_allowed", "the toolset admin is for operators")
                .hint("come with the operator's token, or without the toolset");
            return Err(Box::new(refused(StatusCode::FORBIDDEN, &fault)));
        }
        Ok(Guest {
            tenant: TenantId::new("default"),
            name: token.name.clone(),
            scopes: token.role.scopes(),
            person: token.name.clone(),
            toolsets,
            is_local: false,
        })
    }

    fn owns(&self, session: &str, guest: &Guest) -> bool {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.owners.get(session).is_none_or(|owner| *owner == guest.name)
    }

    fn remember(&self, session: &str, guest: &Guest) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.owners.insert(session.to_owned(), guest.name.clone()).is_none() {
            sessions.oldest.push_back(session.to_owned());
        }
        while sessions.oldest.len() > SESSIONS_MAX {
            if let Some(session) = sessions.oldest.pop_front() {
                sessions.owners.remove(&session);
            }
        }
    }
}

/// Looks at where a request wants to go and which page sent it.
pub(super) async fn look(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    if !door.knows_host(request.headers()) {
        let fault = Fault::new("server.host", "this server does not go by the name in Host")
            .hint("the operator adds it under [server] hosts in rutter.toml");
        return refused(StatusCode::FORBIDDEN, &fault);
    }
    if !door.knows_origin(request.headers()) {
        let fault = Fault::new("server.origin", "a page from elsewhere may not ask this server anything");
        return refused(StatusCode::FORBIDDEN, &fault);
    }
    next.run(request).await
}

/// Lets in whoever has a token.
pub(super) async fn admit(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response {
    let guest = match door.guest(&request) {
        Ok(guest) => guest,
        Err(response) => return *response,
    };
    let session = request.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
    if session.as_ref().is_some_and(|session| !door.owns(session, &guest)) {
        let fault = Fault::new("server.session", "there is no such session for you").hint("initialize again");
        return refused(StatusCode::NOT_FOUND, &fault);
    }
    let begins = request.method() == Method::POST && session.is_none();
    request.extensions_mut().insert(guest.clone());
    let response = next.run(request).await;
    let begun = response.headers().get(SESSION).and_then(|id| id.to_str().ok());
    if let Some(session) = begun.filter(|_| begins) {
        door.remember(session, &guest);
    }
    response
}

pub(crate) fn refused(status: StatusCode, fault: &Fault) -> Response {
    let content = [(header::CONTENT_TYPE, "application/json")];
    (status, content, Body::from(fault.json().to_string())).into_response()
}

fn digest(secret: &str) -> Hash {
    Hash::of_fields("rutter/token/v1", &[secret.as_bytes()])
}

/// The name without port.
fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[').and_then(|rest| rest.find(']')) {
        Some(end) => &authority[..end + 2],
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// `?toolset=default,journal`
fn toolsets(query: Option<&str>) -> Result<BTreeSet<Toolset>, String> {
    let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let named: Vec<&str> =
        pairs.filter(|(name, _)| *name == "toolset").flat_map(|(_, list)| list.split(',')).collect();
    match named.as_slice() {
        [] => Ok(BTreeSet::from([Toolset::Default])),
        named => named.iter().map(|name| name.parse()).collect(),
    }
}
