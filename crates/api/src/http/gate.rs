//! Checks on every request: host, origin, duplicate headers, sizes; and for MCP a token or key and the owner of the
//! session.

use super::authority::HostAuthority;
use crate::admit::{PeerAddress, by_bearer, refused};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use rutter_app::auth::Authenticator;
use rutter_app::error::AppError;
use rutter_app::limits::{HEAD_BYTES_MAX, MESSAGE_BYTES_MAX, URL_BYTES_MAX};
use rutter_app::principal::{McpToolset, Principal};
use rutter_app::rights::Operation;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

pub(super) const SESSION: &str = "mcp-session-id";
/// Sessions whose owner is remembered; the oldest are dropped first, and become unusable.
const SESSIONS_MAX: usize = 10_000;
/// Headers that must not be repeated, because the copies could contradict each other.
const ONCE: [HeaderName; 6] = [
    header::HOST,
    header::ORIGIN,
    header::AUTHORIZATION,
    header::COOKIE,
    header::CONTENT_TYPE,
    HeaderName::from_static("x-csrf-token"),
];

#[derive(Debug)]
pub struct RequestGate {
    /// Host names of this server, without port.
    hosts: Vec<String>,
    auth: Arc<Authenticator>,
    sessions: Mutex<SessionOwners>,
}

#[derive(Debug, Default)]
struct SessionOwners {
    owners: HashMap<String, String>,
    oldest: VecDeque<String>,
}

impl RequestGate {
    /// `hosts`: names in addition to the loopback names.
    pub fn new(hosts: Vec<String>, auth: Arc<Authenticator>) -> RequestGate {
        RequestGate { hosts, auth, sessions: Mutex::default() }
    }

    /// The host of the request, if it is one of ours.
    fn host<'a>(&self, request: &'a Request) -> Option<HostAuthority<'a>> {
        let text = request.headers().get(header::HOST)?.to_str().ok()?;
        let host = HostAuthority::parse(text).filter(|host| self.is_ours(host.name))?;
        // An absolute request target must name the same host.
        let target = request.uri().authority().map(|target| target.as_str());
        target.is_none_or(|target| target.eq_ignore_ascii_case(text)).then_some(host)
    }

    /// Rejects pages of other origins, including other ports of this machine.
    fn knows_origin(&self, headers: &HeaderMap, host: &HostAuthority<'_>) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return true };
        let Some((scheme, rest)) = origin.to_str().ok().and_then(|origin| origin.split_once("://")) else {
            return false;
        };
        let default_port = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return false,
        };
        let Some(origin) = HostAuthority::parse(rest) else { return false };
        let is_same = origin.name.eq_ignore_ascii_case(host.name)
            && origin.port.unwrap_or(default_port) == host.port.unwrap_or(default_port);
        // A reverse proxy may serve this server under another origin.
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

    fn principal(&self, request: &Request) -> Result<Principal, Box<Response>> {
        let principal = by_bearer(&self.auth, request.headers(), PeerAddress::of(request))?;
        let refuse = |status, error: &AppError| Box::new(refused(status, error));
        let toolsets = toolsets(request.uri().query())
            .map_err(|message| refuse(StatusCode::BAD_REQUEST, &AppError::new("server.arguments", message)))?;
        // Each tool needs the right of what it does; the admin toolset as a whole needs one, too.
        let needed = match toolsets.contains(&McpToolset::Admin) {
            true => Operation::UseAdminTools,
            false => Operation::Read,
        };
        self.auth.require(&principal, needed).map_err(|app_error| refuse(StatusCode::FORBIDDEN, &app_error))?;
        Ok(Principal { toolsets, ..principal })
    }

    fn owns(&self, session: &str, principal: &Principal) -> bool {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.owners.get(session).is_none_or(|owner| *owner == principal.id())
    }

    fn remember(&self, session: &str, principal: &Principal) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.owners.insert(session.to_owned(), principal.id()).is_none() {
            sessions.oldest.push_back(session.to_owned());
        }
        while sessions.oldest.len() > SESSIONS_MAX {
            if let Some(session) = sessions.oldest.pop_front() {
                sessions.owners.remove(&session);
            }
        }
    }
}

/// Checks host, origin and size of a request.
pub(super) async fn check_request(State(door): State<Arc<RequestGate>>, request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with(crate::route::BASE);
    match door.check(&request) {
        Ok(()) => next.run(request).await,
        Err((status, error)) if is_api => crate::problem::response_with_status(status, error),
        Err((status, app_error)) => refused(status, &app_error),
    }
}

impl RequestGate {
    fn check(&self, request: &Request) -> Result<(), (StatusCode, AppError)> {
        let headers = request.headers();
        let wrong = |status, message: String| Err((status, AppError::new("server.arguments", message)));
        if let Some(name) = ONCE.iter().find(|name| headers.get_all(*name).iter().nth(1).is_some()) {
            return wrong(StatusCode::BAD_REQUEST, format!("the header {name} is repeated"));
        }
        let Some(host) = self.host(request) else {
            let error = AppError::new("server.host", "unknown host name in Host")
                .hint("the operator adds it under [server] hosts in rutter.toml");
            return Err((StatusCode::FORBIDDEN, error));
        };
        if !self.knows_origin(headers, &host) {
            let app_error = AppError::new("server.origin", "requests from pages of another origin are refused");
            return Err((StatusCode::FORBIDDEN, app_error));
        }
        let url = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
        if url > URL_BYTES_MAX {
            return wrong(
                StatusCode::URI_TOO_LONG,
                format!("expected a URL of at most {URL_BYTES_MAX} bytes, not {url}"),
            );
        }
        let head: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if head > HEAD_BYTES_MAX {
            let message = format!("expected headers of at most {HEAD_BYTES_MAX} bytes, not {head}");
            return wrong(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message);
        }
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > MESSAGE_BYTES_MAX as u64) {
            let message = format!("expected a body of at most {MESSAGE_BYTES_MAX} bytes");
            return wrong(StatusCode::PAYLOAD_TOO_LARGE, message);
        }
        Ok(())
    }
}

/// Authenticates MCP requests by token or key.
pub(super) async fn admit(State(door): State<Arc<RequestGate>>, mut request: Request, next: Next) -> Response {
    let principal = match door.principal(&request) {
        Ok(caller) => caller,
        Err(response) => return *response,
    };
    let session = request.headers().get(SESSION).and_then(|id| id.to_str().ok()).map(str::to_owned);
    if session.as_ref().is_some_and(|session| !door.owns(session, &principal)) {
        let error = AppError::new("server.session", "unknown session").hint("initialize again");
        door.auth.note_foreign_session(&principal, &error);
        return refused(StatusCode::NOT_FOUND, &error);
    }
    let begins = request.method() == Method::POST && session.is_none();
    request.extensions_mut().insert(principal.clone());
    let response = next.run(request).await;
    let begun = response.headers().get(SESSION).and_then(|id| id.to_str().ok());
    if let Some(session) = begun.filter(|_| begins) {
        door.remember(session, &principal);
    }
    response
}

/// `?toolset=default,journal`
fn toolsets(query: Option<&str>) -> Result<BTreeSet<McpToolset>, String> {
    let pairs = query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let named: Vec<&str> = pairs.filter(|(name, _)| *name == "toolset").flat_map(|(_, list)| list.split(',')).collect();
    match named.as_slice() {
        [] => Ok(BTreeSet::from([McpToolset::Default])),
        named => named.iter().map(|name| name.parse()).collect(),
    }
}
