//! What every request has to pass, whatever it asks for: the right host, no foreign page, nothing said twice, nothing too
//! large; and for MCP, a token or key and nobody in another's session.

use super::authority::Authority;
use crate::api;
use crate::auth::admit::refused;
use crate::auth::{Auth, Peer, Scope, require};
use crate::fault::Fault;
use crate::guest::{Guest, Toolset};
use crate::limits::{HEAD_BYTES_MAX, MESSAGE_BYTES_MAX, URL_BYTES_MAX};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const SESSION: &str = "mcp-session-id";
/// Sessions whose owner is remembered; the oldest is forgotten first, and its session with it.
const SESSIONS_MAX: usize = 10_000;
/// Said twice, these mean two things.
const ONCE: [HeaderName; 6] = [
    header::HOST,
    header::ORIGIN,
    header::AUTHORIZATION,
    header::COOKIE,
    header::CONTENT_TYPE,
    HeaderName::from_static("x-csrf-token"),
];

#[derive(Debug)]
pub struct Door {
    /// Names under which this server may be addressed, without port.
    hosts: Vec<String>,
    entrance: Entrance,
    sessions: Mutex<Sessions>,
}

#[derive(Debug)]
enum Entrance {
    Guarded(Arc<Auth>),
    /// Everybody is this guest; only for tests of the protocol.
    Open(Guest),
}

#[derive(Debug, Default)]
struct Sessions {
    owners: HashMap<String, String>,
    oldest: VecDeque<String>,
}

impl Door {
    /// `hosts`: names beside those of this machine's own loopback.
    pub fn new(hosts: Vec<String>, auth: Arc<Auth>) -> Door {
        Door { hosts, entrance: Entrance::Guarded(auth), sessions: Mutex::default() }
    }

    /// Without tokens, for one guest. Never reachable from the command line.
    pub fn open_for(guest: Guest) -> Door {
        Door { hosts: Vec::new(), entrance: Entrance::Open(guest), sessions: Mutex::default() }
    }

    /// The name the request was sent to, if it is one of ours.
    fn host<'a>(&self, request: &'a Request) -> Option<Authority<'a>> {
        let text = request.headers().get(header::HOST)?.to_str().ok()?;
        let host = Authority::parse(text).filter(|host| self.is_ours(host.name))?;
        // A target that names a host itself must name the same one.
        let target = request.uri().authority().map(|target| target.as_str());
        target.is_none_or(|target| target.eq_ignore_ascii_case(text)).then_some(host)
    }

    /// A page that was not served by us has no business here, nor has one from another port of the same machine.
    fn knows_origin(&self, headers: &HeaderMap, host: &Authority<'_>) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return true };
        let Some((scheme, rest)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else {
            return false;
        };
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return false,
        };
        let Some(origin) = Authority::parse(rest) else { return false };
        let is_same = origin.name.eq_ignore_ascii_case(host.name)
            && origin.port.unwrap_or(default_port) == host.port.unwrap_or(default_port);
        // Whoever stands in front of this server may have named it otherwise.
        let is_front = origin.port.is_none() && self.is_named(origin.name);
        is_same || is_front
    }

    fn is_ours(&self, name: &str) -> bool {
        let loopback = ["localhost", "127.0.0.1", "[::1]"];
        loopback.iter().any(|known| known.eq_ignore_ascii_case(name)) || self.is_named(name)
    }

    fn is_named(&self, name: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(name))
    }

    fn guest(&self, request: &Request) -> Result<Guest, Box<Response>> {
        let auth = match &self.entrance {
            Entrance::Open(guest) => return Ok(guest.clone()),
            Entrance::Guarded(auth) => auth,
        };
        let principal = auth.by_bearer(request.headers(), Peer::of(request))?;
        let refuse = |status, fault: &Fault| Box::new(refused(status, fault));
        let toolsets = toolsets(request.uri().query())
            .map_err(|message| refuse(StatusCode::BAD_REQUEST, &Fault::new("server.arguments", message)))?;
        let is_admin = toolsets.contains(&Toolset::Admin);
        let guest = principal.guest(toolsets);
        // Every toolset both looks and acts.
        let needed = [Some(Scope::Read), Some(Scope::Operate), is_admin.then_some(Scope::Admin)];
        for scope in needed.into_iter().flatten() {
            require(&guest, scope).map_err(|fault| refuse(StatusCode::FORBIDDEN, &fault))?;
        }
        Ok(guest)
    }

    fn owns(&self, session: &str, guest: &Guest) -> bool {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.owners.get(session).is_none_or(|owner| *owner == guest.id)
    }

    fn remember(&self, session: &str, guest: &Guest) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.owners.insert(session.to_owned(), guest.id.clone()).is_none() {
            sessions.oldest.push_back(session.to_owned());
        }
        while sessions.oldest.len() > SESSIONS_MAX {
            if let Some(session) = sessions.oldest.pop_front() {
                sessions.owners.remove(&session);
            }
        }
    }
}

/// Looks at where a request wants to go, which page sent it, and how large it is.
pub(super) async fn look(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with(api::BASE);
    match door.check(&request) {
        Ok(()) => next.run(request).await,
        Err((status, fault)) if is_api => api::told(status, fault),
        Err((status, fault)) => refused(status, &fault),
    }
}

impl Door {
    fn check(&self, request: &Request) -> Result<(), (StatusCode, Fault)> {
        let headers = request.headers();
        let wrong = |status, message: String| Err((status, Fault::new("server.arguments", message)));
        if let Some(name) = ONCE.iter().find(|name| headers.get_all(*name).iter().nth(1).is_some()) {
            return wrong(StatusCode::BAD_REQUEST, format!("the header {name} came twice"));
        }
        let Some(host) = self.host(request) else {
            let fault = Fault::new("server.host", "this server does not go by the name in Host")
                .hint("the operator adds it under [server] hosts in rutter.toml");
            return Err((StatusCode::FORBIDDEN, fault));
        };
        if !self.knows_origin(headers, &host) {
            let fault = Fault::new("server.origin", "a page from elsewhere may not ask this server anything");
            return Err((StatusCode::FORBIDDEN, fault));
        }
        let url = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
        if url > URL_BYTES_MAX {
            return wrong(
                StatusCode::URI_TOO_LONG,
                format!("an address may have {URL_BYTES_MAX} bytes, this has {url}"),
            );
        }
        let head: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if head > HEAD_BYTES_MAX {
            let message = format!("headers may have {HEAD_BYTES_MAX} bytes, these have {head}");
            return wrong(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message);
        }
        let length =
            headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > MESSAGE_BYTES_MAX as u64) {
            let message = format!("a body may have {MESSAGE_BYTES_MAX} bytes, this one has more");
            return wrong(StatusCode::PAYLOAD_TOO_LARGE, message);
        }
        Ok(())
    }
}

/// Lets in whoever has a token or key.
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
