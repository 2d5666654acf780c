//! Authenticates requests and attaches the principal for the handlers behind.

use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use rutter_app::auth::session::BrowserContext;
use rutter_app::auth::{Authenticator, SecretRejection, secret};
use rutter_app::error::AppError;
use rutter_app::limits::FORM_BYTES_MAX;
use rutter_app::principal::{McpToolset, Principal};
use rutter_app::rights::{Operation, check};
use rutter_core::hash::Hash;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

pub const COOKIE: &str = "rutter_session";
const CSRF: &str = "x-csrf-token";

/// The address of the client, as the listener saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerAddress(pub IpAddr);

impl PeerAddress {
    pub fn of(request: &Request) -> IpAddr {
        request.extensions().get::<PeerAddress>().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.0)
    }
}

/// For the API: a token or key, or a browser's session cookie. With both, the cookie is ignored.
pub async fn for_api(State(auth): State<Arc<Authenticator>>, request: Request, next: Next) -> Response {
    let has_bearer = request.headers().contains_key(header::AUTHORIZATION);
    let admitted = match cookie(request.headers()).filter(|_| !has_bearer) {
        None => {
            by_bearer(&auth, request.headers(), PeerAddress::of(&request)).map(|principal| (request, principal, None))
        }
        Some(cookie) => match auth.session(cookie) {
            None => Err(Box::new(unauthorized("the session in this browser has ended", "sign in again at /enter"))),
            Some((principal, browser)) => {
                check_csrf(request, &browser).await.map(|request| (request, principal, Some(browser)))
            }
        },
    };
    match admitted {
        Ok((request, principal, browser)) => run_as_principal(request, principal, browser, next).await,
        Err(response) => *response,
    }
}

/// For pages: a browser's session cookie. Without one the browser is sent to the sign-in page.
pub async fn for_pages(State(auth): State<Arc<Authenticator>>, request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::AUTHORIZATION) {
        return unauthorized("pages are for browsers, which sign in at /enter", "programs use /api/v1");
    }
    let Some((principal, browser)) = cookie(request.headers()).and_then(|cookie| auth.session(cookie)) else {
        return redirect_to_sign_in(&request);
    };
    match check_csrf(request, &browser).await {
        Ok(request) => run_as_principal(request, principal, Some(browser), next).await,
        Err(response) => *response,
    }
}

/// Requires the right to read; actions on a page need their own rights.
pub async fn require_read(Extension(principal): Extension<Principal>, request: Request, next: Next) -> Response {
    match check(&principal, Operation::Read) {
        Ok(()) => next.run(request).await,
        Err(error) => refused(StatusCode::FORBIDDEN, &error),
    }
}

async fn run_as_principal(
    mut request: Request,
    principal: Principal,
    browser: Option<BrowserContext>,
    next: Next,
) -> Response {
    request.extensions_mut().insert(Principal { toolsets: BTreeSet::from([McpToolset::Default]), ..principal });
    request.extensions_mut().insert(browser.clone());
    browser.map(|browser| request.extensions_mut().insert(browser));
    next.run(request).await
}

/// The principal of the token or key in the request.
pub fn by_bearer(auth: &Authenticator, headers: &HeaderMap, peer: IpAddr) -> Result<Principal, Box<Response>> {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = value.and_then(|value| value.split_once(' '));
    let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let Some((_, secret)) = bearer else {
        let message = "a token or key is required: Authorization: Bearer …";
        let hint = "tokens are next to the database (agent.token); `rutter key create` makes keys";
        auth.note_stranger(peer, &AppError::new("server.unauthorized", message));
        return Err(Box::new(unauthorized(message, hint)));
    };
    auth.recognise(secret.trim(), peer).map_err(|unknown| {
        auth.note_stranger(peer, &unknown.fault());
        Box::new(unrecognised(unknown))
    })
}

pub fn unrecognised(unknown: SecretRejection) -> Response {
    let error = unknown.fault();
    let SecretRejection::TooMany { retry_after_seconds } = unknown else {
        return unauthorized(&error.message, error.hint.as_deref().unwrap_or_default());
    };
    let mut response = refused(StatusCode::TOO_MANY_REQUESTS, &error);
    response.headers_mut().insert(header::RETRY_AFTER, retry_after_seconds.into());
    response
}

/// A request that changes something must come from a page of the same session.
async fn check_csrf(request: Request, browser: &BrowserContext) -> Result<Request, Box<Response>> {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return Ok(request);
    }
    let foreign = || {
        let error = AppError::new("server.origin", "the request does not come from a page of your session");
        Box::new(refused(StatusCode::FORBIDDEN, &error.hint("reload the page and submit it again")))
    };
    let site = request.headers().get("sec-fetch-site").map(HeaderValue::as_bytes);
    if site.is_some_and(|site| site != b"same-origin") {
        return Err(foreign());
    }
    if let Some(token) = request.headers().get(CSRF) {
        return if matches_csrf(token.as_bytes(), browser) { Ok(request) } else { Err(foreign()) };
    }
    let kind = request.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if !kind.starts_with(b"application/x-www-form-urlencoded") {
        return Err(foreign());
    }
    let (parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, FORM_BYTES_MAX).await else {
        let message = format!("expected a complete form of at most {FORM_BYTES_MAX} bytes");
        return Err(Box::new(refused(StatusCode::PAYLOAD_TOO_LARGE, &AppError::new("server.arguments", message))));
    };
    let mut fields = bytes.split(|byte| *byte == b'&').filter_map(|pair| pair.strip_prefix(b"csrf="));
    match (fields.next(), fields.next()) {
        (Some(items), None) if matches_csrf(items, browser) => Ok(Request::from_parts(parts, Body::from(bytes))),
        _ => Err(foreign()),
    }
}

fn matches_csrf(items: &[u8], browser: &BrowserContext) -> bool {
    let hash = |bytes: &[u8]| Hash::of(&[bytes]);
    secret::same(&hash(items), &hash(browser.csrf.as_bytes()))
}

/// The session cookie.
pub fn cookie(headers: &HeaderMap) -> Option<&str> {
    named_cookie(headers, COOKIE)
}

/// The value of a cookie; two cookies of the name count as none, since another site must have set one of them.
pub fn named_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get(header::COOKIE)?.to_str().ok()?;
    let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
    let mut ours = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
    let (one, another) = (ours.next(), ours.next());
    one.filter(|_| another.is_none())
}

/// Redirects a browser without a session to the sign-in page.
fn redirect_to_sign_in(request: &Request) -> Response {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_page = *request.method() == Method::GET && header("accept").contains("text/html");
    if !is_page {
        return unauthorized("a session is required", "sign in at /enter");
    }
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    // Browsers omit strict cookies when a link on another site was followed. Requested again from here, they send them.
    if header("sec-fetch-site") == "cross-site" {
        let address = crate::encode::escaped(path);
        let again =
            format!("<!doctype html><title>Rutter</title><meta http-equiv=refresh content=\"0;url={address}\">");
        return Html(again).into_response();
    }
    let target = format!("/enter?next={}", crate::encode::encoded(path));
    (StatusCode::SEE_OTHER, [(header::LOCATION, target)]).into_response()
}

fn unauthorized(message: &str, hint: &str) -> Response {
    let mut response = refused(StatusCode::UNAUTHORIZED, &AppError::new("server.unauthorized", message).hint(hint));
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"rutter\""));
    response
}

/// The response to a refused request. The error is attached, for layers that render it in another form.
pub fn refused(status: StatusCode, error: &AppError) -> Response {
    let content = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (status, content, Body::from(error.json().to_string())).into_response();
    response.extensions_mut().insert(error.clone());
    response
}
