//! Where browsers get their cookie: by a link that is good once, or with a token or key; and where they leave it.

use super::admit::{self, COOKIE, Peer, cookie, refused};
use super::session::AGE_MAX;
use super::{Auth, Unknown};
use crate::dashboard::assets;
use crate::fault::Fault;
use askama::Template;
use axum::Router;
use axum::extract::{Form, FromRequest, Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, ORIGIN, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use std::sync::Arc;

const NEXT_BYTES_MAX: usize = 2_048;
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub fn routes(auth: Arc<Auth>) -> Router {
    let admit = from_fn_with_state(Arc::clone(&auth), admit::for_pages);
    Router::new()
        .route("/leave", post(leave).layer(admit))
        .route("/enter", get(show).post(enter))
        .with_state(auth)
}

/// What somebody opens to come in; `address` is where the server listens.
pub fn link(address: &str, code: &str) -> String {
    format!("{address}/enter?code={code}")
}

#[derive(Debug, Default, Deserialize)]
struct Asked {
    code: Option<String>,
    next: Option<String>,
}

/// A link is not used up by being looked at: programs that preview links do that.
async fn show(Query(asked): Query<Asked>) -> Response {
    page(StatusCode::OK, &asked, "")
}

#[derive(Deserialize)]
struct Shown {
    #[serde(flatten)]
    asked: Asked,
    secret: Option<String>,
}

async fn enter(State(auth): State<Arc<Auth>>, request: Request) -> Response {
    let (peer, is_encrypted) = (Peer::of(&request), came_encrypted(request.headers()));
    let shown = match Form::<Shown>::from_request(request, &()).await {
        Ok(Form(shown)) => shown,
        Err(rejection) => {
            let fault = Fault::new("server.arguments", rejection.body_text());
            return refused(rejection.status(), &fault);
        }
    };
    let entered = match (&shown.secret, &shown.asked.code) {
        (Some(secret), _) => auth.enter_by_secret(secret.trim(), peer).await,
        (None, Some(code)) => auth.enter_by_link(code, peer).await,
        (None, None) => Ok(Err(Unknown::Nobodys)),
    };
    let by_link = shown.secret.is_none() && shown.asked.code.is_some();
    let asked = Asked { code: None, ..shown.asked };
    match entered {
        Ok(Ok(cookie)) => {
            let secure = if is_encrypted { "; Secure" } else { "" };
            let seconds = AGE_MAX.0 / 1_000;
            let cookie =
                format!("{COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
            let next = local(asked.next.as_deref()).to_owned();
            (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, next)]).into_response()
        }
        Ok(Err(Unknown::Nobodys)) if by_link => page(
            StatusCode::UNAUTHORIZED,
            &asked,
            "This link was used, or is too old. `rutter open` makes another.",
        ),
        Ok(Err(unknown)) => {
            let told = unknown.response();
            let mut page = page(told.status(), &asked, &sentence(&unknown.fault().message));
            let wait = told.headers().get(RETRY_AFTER).cloned();
            wait.map(|seconds| page.headers_mut().insert(RETRY_AFTER, seconds));
            page
        }
        Err(fault) => refused(StatusCode::SERVICE_UNAVAILABLE, &fault),
    }
}

async fn leave(State(auth): State<Arc<Auth>>, headers: HeaderMap) -> Response {
    let left = auth.leave(cookie(&headers).unwrap_or_default()).await;
    if let Err(fault) = left {
        return refused(StatusCode::SERVICE_UNAVAILABLE, &fault);
    }
    let gone = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    (StatusCode::SEE_OTHER, [(SET_COOKIE, gone), (LOCATION, "/enter".to_owned())]).into_response()
}

/// Somebody in front of this server speaks TLS.
fn came_encrypted(headers: &HeaderMap) -> bool {
    headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// Only a path of this server; anything else could lead away from it.
fn local(next: Option<&str>) -> &str {
    let is_local = |next: &str| {
        let bytes = next.as_bytes();
        next.len() <= NEXT_BYTES_MAX
            && bytes.first() == Some(&b'/')
            && !matches!(bytes.get(1), Some(b'/' | b'\\'))
            && bytes.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'\\')
    };
    next.filter(|next| is_local(next)).unwrap_or("/")
}

#[derive(Template)]
#[template(path = "enter.html")]
struct Entrance<'a> {
    style: String,
    next: &'a str,
    code: Option<&'a str>,
    remark: &'a str,
}

fn page(status: StatusCode, asked: &Asked, remark: &str) -> Response {
    let (next, code) = (local(asked.next.as_deref()), asked.code.as_deref());
    let entrance = Entrance { style: assets::address("app.css"), next, code, remark };
    match entrance.render() {
        Ok(text) => (status, [(CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-store")], Html(text))
            .into_response(),
        Err(error) => {
            refused(StatusCode::INTERNAL_SERVER_ERROR, &Fault::new("server.internal", error.to_string()))
        }
    }
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).chain(['.']).collect()).unwrap_or_default()
}

pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            character => safe.push(character),
        }
    }
    safe
}

/// As a value in a query.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_of_this_server_are_gone_to() {
        for next in ["/", "/executions?status=failed&text=a", "/plans/plan_1@2#steps", "/a//b"] {
            assert_eq!(local(Some(next)), next);
        }
        for next in [
            "",
            "executions",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "javascript:alert(1)",
            "/a\r\nSet-Cookie: b",
            "/a b",
            "/\u{e4}",
            "/\t/evil.example",
            "/a\\b",
            " /a",
        ] {
            assert_eq!(local(Some(next)), "/", "{next:?}");
        }
        assert_eq!(local(Some(&format!("/{}", "a".repeat(NEXT_BYTES_MAX)))), "/");
        assert_eq!(local(None), "/");
    }

    #[test]
    fn what_goes_into_a_query_comes_out_of_it_as_it_was() {
        assert_eq!(encoded("/a?b=c&d=%20#e"), "/a%3Fb%3Dc%26d%3D%2520%23e");
    }
}
