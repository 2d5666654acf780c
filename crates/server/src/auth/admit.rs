//! Lets requests in: looks at what they show for themselves, and tells those behind who it is.

use super::session::Browser;
use super::{Auth, Principal, Scope, Unknown, require, secret};
use crate::fault::Fault;
use crate::guest::{Guest, Toolset};
use crate::limits::FORM_BYTES_MAX;
use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use rutter_core::hash::Hash;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

pub const COOKIE: &str = "rutter_session";
const CSRF: &str = "x-csrf-token";

/// Where a request comes from, as the listener saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

impl Peer {
    pub(crate) fn of(request: &Request) -> IpAddr {
        request.extensions().get::<Peer>().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.0)
    }
}

/// For programs and pages: a token or key, or the cookie of a browser. With both, the cookie does not count.
pub async fn for_api(State(auth): State<Arc<Auth>>, request: Request, next: Next) -> Response {
    let has_bearer = request.headers().contains_key(header::AUTHORIZATION);
    let admitted = match cookie(request.headers()).filter(|_| !has_bearer) {
        None => {
            auth.by_bearer(request.headers(), Peer::of(&request)).map(|principal| (request, principal, None))
        }
        Some(cookie) => match auth.session(cookie) {
            None => {
                Err(Box::new(unauthorized("the session in this browser has ended", "enter again at /enter")))
            }
            Some((principal, browser)) => {
                own(request, &browser).await.map(|request| (request, principal, Some(browser)))
            }
        },
    };
    match admitted {
        Ok((request, principal, browser)) => enter(request, principal, browser, next).await,
        Err(response) => *response,
    }
}

/// For people: the cookie of a browser. Whoever has none is shown where to get one.
pub async fn for_pages(State(auth): State<Arc<Auth>>, request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::AUTHORIZATION) {
        return unauthorized("pages are for browsers, which enter at /enter", "programs use /api/v1");
    }
    let Some((principal, browser)) = cookie(request.headers()).and_then(|cookie| auth.session(cookie)) else {
        return elsewhere(&request);
    };
    match own(request, &browser).await {
        Ok(request) => enter(request, principal, Some(browser), next).await,
        Err(response) => *response,
    }
}

/// Nobody sees a page who may not look; what a page lets them do has rights of its own.
pub async fn readers(Extension(guest): Extension<Guest>, request: Request, next: Next) -> Response {
    match require(&guest, Scope::Read) {
        Ok(()) => next.run(request).await,
        Err(fault) => refused(StatusCode::FORBIDDEN, &fault),
    }
}

async fn enter(mut request: Request, principal: Principal, browser: Option<Browser>, next: Next) -> Response {
    request.extensions_mut().insert(principal.guest(BTreeSet::from([Toolset::Default])));
    request.extensions_mut().insert(browser.clone());
    browser.map(|browser| request.extensions_mut().insert(browser));
    next.run(request).await
}

impl Auth {
    /// Whose token or key a request comes with.
    pub(crate) fn by_bearer(&self, headers: &HeaderMap, peer: IpAddr) -> Result<Principal, Box<Response>> {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let bearer = value.and_then(|value| value.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let Some((_, secret)) = bearer else {
            let message = "this needs a token or key: Authorization: Bearer …";
            let hint = "tokens are beside the database (agent.token); `rutter key create` makes keys";
            return Err(Box::new(unauthorized(message, hint)));
        };
        self.recognise(secret.trim(), peer).map_err(|unknown| Box::new(unknown.response()))
    }
}

impl Unknown {
    pub(crate) fn response(self) -> Response {
        let fault = self.fault();
        let Unknown::TooMany { retry_after_seconds } = self else {
            return unauthorized(&fault.message, fault.hint.as_deref().unwrap_or_default());
        };
        let mut response = refused(StatusCode::TOO_MANY_REQUESTS, &fault);
        response.headers_mut().insert(header::RETRY_AFTER, retry_after_seconds.into());
        response
    }

    pub(crate) fn fault(self) -> Fault {
        let hint = "`rutter key list` says which keys are good";
        match self {
            Unknown::Nobodys => {
                let hint = "tokens are beside the database (agent.token); `rutter key create` makes keys";
                Fault::new("server.unauthorized", "this token or key is not known here").hint(hint)
            }
            Unknown::Revoked => Fault::new("server.unauthorized", "this key was revoked").hint(hint),
            Unknown::Expired => Fault::new("server.unauthorized", "this key has expired").hint(hint),
            Unknown::TooMany { .. } => {
                let message =
                    format!("{} wrong tokens or keys a minute are enough", super::failures::FAILURES_MAX);
                Fault { retryable: true, ..Fault::new("server.busy", message) }
            }
        }
    }
}

/// What changes something comes from a page of this very session.
async fn own(request: Request, browser: &Browser) -> Result<Request, Box<Response>> {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(request);
    }
    let foreign = || {
        let fault = Fault::new("server.origin", "this did not come from a page of your session");
        Box::new(refused(StatusCode::FORBIDDEN, &fault.hint("load the page again, and send it from there")))
    };
    let site = request.headers().get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin") {
        return Err(foreign());
    }
    if let Some(shown) = request.headers().get(CSRF) {
        return if is_of(shown.as_bytes(), browser) { Ok(request) } else { Err(foreign()) };
    }
    let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if !kind.starts_with(b"application/x-www-form-urlencoded") {
        return Err(foreign());
    }
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, FORM_BYTES_MAX).await else {
        let message =
            format!("a form may have {FORM_BYTES_MAX} bytes, this one has more or did not come whole");
        return Err(Box::new(refused(
            StatusCode::PAYLOAD_TOO_LARGE,
            &Fault::new("server.arguments", message),
        )));
    };
    let mut fields = bytes.split(|byte| *byte == b'&').filter_map(|pair| pair.strip_prefix(b"csrf="));
    match (fields.next(), fields.next()) {
        (Some(shown), None) if is_of(shown, browser) => Ok(Request::from_parts(parts, Body::from(bytes))),
        _ => Err(foreign()),
    }
}

fn is_of(shown: &[u8], browser: &Browser) -> bool {
    let hash = |bytes: &[u8]| Hash::of(&[bytes]);
    secret::same(&hash(shown), &hash(browser.csrf.as_bytes()))
}

/// The cookie of the session; two of the name are none, since one of them was put there by somebody else.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    let mut ours = pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value);
    let (one, another) = (ours.next(), ours.next());
    one.filter(|_| another.is_none())
}

/// Where a browser without a session goes.
fn elsewhere(request: &Request) -> Response {
    let header =
        |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_page = *request.method() == Method::GET && header("accept").contains("text/html");
    if !is_page {
        return unauthorized("this needs a session", "enter at /enter");
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // Browsers leave strict cookies out when a link on another site was followed. Asked again from here, they send them.
    if header("sec-fetch-site") == "cross-site" {
        let address = super::enter::escaped(path);
        let again = format!(
            "<!doctype html><title>Rutter</title><meta http-equiv=refresh content=\"0;url={address}\">"
        );
        return Html(again).into_response();
    }
    let target = format!("/enter?next={}", super::enter::encoded(path));
    (StatusCode::SEE_OTHER, [(header::LOCATION, target)]).into_response()
}

fn unauthorized(message: &str, hint: &str) -> Response {
    let mut response =
        refused(StatusCode::UNAUTHORIZED, &Fault::new("server.unauthorized", message).hint(hint));
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"rutter\""));
    response
}

/// The answer to a request that is not let in. The fault goes with it, for those who tell it in another form.
pub(crate) fn refused(status: StatusCode, fault: &Fault) -> Response {
    let content = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (status, content, Body::from(fault.json().to_string())).into_response();
    response.extensions_mut().insert(fault.clone());
    response
}
