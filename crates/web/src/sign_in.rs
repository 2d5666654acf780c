//! Sign-in of browsers, by a one-time link or with a token or key, and sign-out.

use crate::assets;
use askama::Template;
use axum::Router;
use axum::extract::{Form, FromRequest, Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, ORIGIN, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use rutter_api::admit::{self, COOKIE, PeerAddress, cookie, refused};
use rutter_app::auth::session::AGE_MAX;
use rutter_app::auth::{Authenticator, SecretRejection};
use rutter_app::error::AppError;
use serde::Deserialize;
use std::sync::Arc;

const NEXT_BYTES_MAX: usize = 2_048;
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub fn routes(auth: Arc<Authenticator>) -> Router {
    let admit = from_fn_with_state(Arc::clone(&auth), admit::for_pages);
    Router::new().route("/leave", post(sign_out).layer(admit)).route("/enter", get(show).post(sign_in)).with_state(auth)
}

#[derive(Debug, Default, Deserialize)]
struct SignInQuery {
    code: Option<String>,
    next: Option<String>,
}

/// A GET does not use the link up, because programs that preview links send one.
async fn show(Query(asked): Query<SignInQuery>) -> Response {
    page(StatusCode::OK, &asked, "")
}

#[derive(Deserialize)]
struct SignInForm {
    #[serde(flatten)]
    query: SignInQuery,
    secret: Option<String>,
}

async fn sign_in(State(auth): State<Arc<Authenticator>>, request: Request) -> Response {
    let (peer, is_encrypted) = (PeerAddress::of(&request), came_encrypted(request.headers()));
    let sign_in_form = match Form::<SignInForm>::from_request(request, &()).await {
        Ok(Form(form)) => form,
        Err(rejection) => {
            let error = AppError::new("server.arguments", rejection.body_text());
            return refused(rejection.status(), &error);
        }
    };
    let entered = match (&sign_in_form.secret, &sign_in_form.query.code) {
        (Some(secret), _) => auth.sign_in_by_secret(secret.trim(), peer).await,
        (None, Some(code)) => auth.sign_in_by_link(code, peer).await,
        (None, None) => Ok(Err(SecretRejection::Unrecognised)),
    };
    let by_link = sign_in_form.secret.is_none() && sign_in_form.query.code.is_some();
    let asked = SignInQuery { code: None, ..sign_in_form.query };
    match entered {
        Ok(Ok(cookie)) => {
            let secure = if is_encrypted { "; Secure" } else { "" };
            let seconds = AGE_MAX.0 / 1_000;
            let cookie = format!("{COOKIE}={cookie}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
            let next = local_path(asked.next.as_deref()).to_owned();
            (StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, next)]).into_response()
        }
        Ok(Err(SecretRejection::Unrecognised)) if by_link => {
            page(StatusCode::UNAUTHORIZED, &asked, "This link is used or expired. `rutter open` creates another.")
        }
        Ok(Err(unknown)) => {
            let response = admit::unrecognised(unknown);
            let mut page = page(response.status(), &asked, &sentence(&unknown.fault().message));
            let wait = response.headers().get(RETRY_AFTER).cloned();
            wait.map(|seconds| page.headers_mut().insert(RETRY_AFTER, seconds));
            page
        }
        Err(app_error) => refused(StatusCode::SERVICE_UNAVAILABLE, &app_error),
    }
}

async fn sign_out(State(auth): State<Arc<Authenticator>>, headers: HeaderMap) -> Response {
    let left = auth.sign_out(cookie(&headers).unwrap_or_default()).await;
    if let Err(error) = left {
        return refused(StatusCode::SERVICE_UNAVAILABLE, &error);
    }
    let gone = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    (StatusCode::SEE_OTHER, [(SET_COOKIE, gone), (LOCATION, "/enter".to_owned())]).into_response()
}

/// Whether a reverse proxy in front of this server speaks TLS.
fn came_encrypted(headers: &HeaderMap) -> bool {
    headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
}

/// Only local paths; anything else could lead to another site.
fn local_path(next: Option<&str>) -> &str {
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
struct SignInPage<'a> {
    style: String,
    next: &'a str,
    code: Option<&'a str>,
    remark: &'a str,
}

fn page(status: StatusCode, asked: &SignInQuery, remark: &str) -> Response {
    let (next, code) = (local_path(asked.next.as_deref()), asked.code.as_deref());
    let entrance = SignInPage { style: assets::address("app.css"), next, code, remark };
    match entrance.render() {
        Ok(text) => {
            (status, [(CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-store")], Html(text)).into_response()
        }
        Err(error) => refused(StatusCode::INTERNAL_SERVER_ERROR, &AppError::new("server.internal", error.to_string())),
    }
}

fn sentence(text: &str) -> String {
    let mut commands = text.chars();
    commands.next().map(|first| first.to_uppercase().chain(commands).chain(['.']).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_paths_are_redirected_to() {
        for next in ["/", "/executions?status=failed&text=a", "/plans/plan_1@2#steps", "/a//b"] {
            assert_eq!(local_path(Some(next)), next);
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
            assert_eq!(local_path(Some(next)), "/", "{next:?}");
        }
        assert_eq!(local_path(Some(&format!("/{}", "a".repeat(NEXT_BYTES_MAX)))), "/");
        assert_eq!(local_path(None), "/");
    }
}
