//! From templates and faults to answers, and from requests to visitors.

use super::shell::{Section, Shell, Theme};
use crate::api::problem::status_of;
use crate::auth::Browser;
pub use crate::auth::require;
use crate::fault::Fault;
use crate::guest::Guest;
use askama::Template;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, LOCATION, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rutter_core::execution::Identity;
use rutter_core::id::ExecutionId;
use std::fmt::Write as _;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Who looks, and how they came to this page.
#[derive(Clone, Debug)]
pub struct Visitor {
    pub guest: Guest,
    /// What every form of theirs carries.
    pub csrf: String,
    pub theme: Theme,
    /// The address of this page, with its query.
    pub path: String,
    /// The query, in order.
    pub query: Vec<(String, String)>,
}

impl Visitor {
    fn of(parts: &Parts) -> Option<Visitor> {
        let guest = parts.extensions.get::<Guest>()?.clone();
        let csrf = parts.extensions.get::<Browser>().map(|browser| browser.csrf.clone()).unwrap_or_default();
        let query = pairs(parts.uri.query().unwrap_or_default().as_bytes());
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Some(Visitor { guest, csrf, theme: Theme::of(&parts.headers), path, query })
    }

    /// One value of the query; an empty one counts as none.
    pub fn asked(&self, name: &str) -> Option<&str> {
        value(&self.query, name)
    }

    /// Every value of that name.
    pub fn all_asked<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.query.iter().filter(move |(key, value)| key == name && !value.is_empty());
        named.map(|(_, value)| value.as_str())
    }

    pub fn identity(&self, execution: &str) -> Identity {
        Identity { tenant: self.guest.tenant.clone(), execution: ExecutionId::new(execution) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = Wrong;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Visitor, Wrong> {
        Visitor::of(parts)
            .ok_or_else(|| Fault::new("server.unauthorized", "nobody let this request in").into())
    }
}

/// A form that was sent by one of our own pages.
#[derive(Debug)]
pub struct Posted {
    pub visitor: Visitor,
    pub fields: Vec<(String, String)>,
}

impl Posted {
    pub fn said(&self, name: &str) -> Option<&str> {
        value(&self.fields, name)
    }

    pub fn all_said<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.fields.iter().filter(move |(key, value)| key == name && !value.is_empty());
        named.map(|(_, value)| value.as_str())
    }

    /// Where the form wants to go afterwards: a page of ours, or home.
    pub fn back(&self) -> &str {
        self.said("back").filter(|back| is_local(back)).unwrap_or("/")
    }
}

impl<S: Send + Sync> FromRequest<S> for Posted {
    type Rejection = Wrong;

    async fn from_request(request: Request, state: &S) -> Result<Posted, Wrong> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, state).await?;
        let too_much = |error: BytesRejection| Fault::new("server.arguments", error.to_string());
        let bytes = Bytes::from_request(Request::from_parts(parts, body), state).await.map_err(too_much)?;
        let fields = pairs(&bytes);
        if visitor.csrf.is_empty() || value(&fields, "csrf") != Some(visitor.csrf.as_str()) {
            let fault = Fault::new(
                "server.not_allowed",
                "the form does not come from one of our pages, or from an old one",
            );
            return Err(fault.hint("go back, load the page again and send the form once more").into());
        }
        Ok(Posted { visitor, fields })
    }
}

/// A fault on its way to the page that tells of it.
#[derive(Clone, Debug)]
pub struct Wrong(pub Fault);

impl<E: Into<Fault>> From<E> for Wrong {
    fn from(error: E) -> Wrong {
        Wrong(error.into())
    }
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        (status_of(&self.0), Extension(self)).into_response()
    }
}

/// The answer of a page.
pub type Answer = Result<Response, Wrong>;

/// Writes a page.
pub fn show(template: &impl Template) -> Answer {
    written(StatusCode::OK, template)
}

pub fn written(status: StatusCode, template: &impl Template) -> Answer {
    let unwritten = |error: askama::Error| Fault::new("server.internal", error.to_string());
    let text = visible(template.render().map_err(unwritten)?);
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
    ];
    Ok((status, headers, text).into_response())
}

/// Sends the browser on after a form, with what to say there: one of [`super::shell::SAYINGS`].
pub fn go(back: &str, said: &str) -> Response {
    let (path, fragment) = back.split_once('#').map_or((back, ""), |(path, fragment)| (path, fragment));
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut kept: Vec<(String, String)> = pairs(query.as_bytes());
    kept.retain(|(name, _)| name != "said");
    if !said.is_empty() {
        kept.push(("said".to_owned(), said.to_owned()));
    }
    let mut location = path.to_owned();
    location.push_str(&super::format::query(&kept));
    if !fragment.is_empty() {
        location.push('#');
        location.push_str(fragment);
    }
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    shell: Shell,
    status: u16,
    fault: Fault,
}

/// Turns faults into pages that look like the others.
pub(super) async fn legible(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let visitor = Visitor::of(&parts);
    let response = next.run(Request::from_parts(parts, body)).await;
    let (Some(Wrong(fault)), Some(visitor)) = (response.extensions().get::<Wrong>(), visitor) else {
        return response;
    };
    let status = response.status();
    if status.is_server_error() {
        tracing::error!(error.code = %fault.code, page = %visitor.path, "{}", fault.message);
    }
    let shell = Shell::bare(&visitor, Section::None, title(status));
    let page = ErrorPage { shell, status: status.as_u16(), fault: fault.clone() };
    written(status, &page).unwrap_or(response)
}

fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::CONFLICT => "Not possible now",
        StatusCode::BAD_REQUEST => "Not understood",
        StatusCode::SERVICE_UNAVAILABLE => "Busy",
        _ => "Something went wrong",
    }
}

/// Makes every character that hides or turns text around stand there as what it is, whoever wrote it.
fn visible(html: String) -> String {
    if html.bytes().all(|byte| byte == b'\n' || byte == b'\t' || (0x20..0x7f).contains(&byte)) {
        return html;
    }
    let mut text = String::with_capacity(html.len() + 64);
    for c in html.chars() {
        match c {
            '\n' | '\t' => text.push(c),
            '\0'..='\x1f' => text.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
            '\x7f' => text.push('\u{2421}'),
            '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}' => {
                write!(text, "⟦U+{:04X}⟧", c as u32).expect("writing to a string cannot fail");
            }
            _ => text.push(c),
        }
    }
    text
}

/// The value of one cookie.
pub fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
    let mut single = cookies.flat_map(|cookies| cookies.split(';'));
    single.find_map(|cookie| cookie.trim().strip_prefix(name)?.strip_prefix('='))
}

/// A path on this server and nothing that a browser takes for another server.
fn is_local(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n', '\t'])
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|(key, value)| key == name && !value.trim().is_empty());
    found.map(|(_, value)| value.as_str())
}

/// What a form or a query says, in its order.
fn pairs(text: &[u8]) -> Vec<(String, String)> {
    let pairs = text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            (decoded(&pair[..at]), decoded(pair.get(at + 1..).unwrap_or_default()))
        })
        .collect()
}

fn decoded(text: &[u8]) -> String {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        match (text[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 2;
            }
            (b'+', _, _) => bytes.push(b' '),
            (byte, _, _) => bytes.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_as_browsers_write_them() {
        let read = pairs(b"a=1+2&b=%C3%BC%20%26&a=%zz&empty&=x");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read,
            [pair("a", "1 2"), pair("b", "ü &"), pair("a", "%zz"), pair("empty", ""), pair("", "x")]
        );
    }

    #[test]
    fn hidden_characters_are_shown() {
        assert_eq!(visible("a\u{1b}[31m\u{202e}b\u{e0041}ü".to_owned()), "a␛[31m⟦U+202E⟧b⟦U+E0041⟧ü");
        assert_eq!(visible("plain\n\ttext".to_owned()), "plain\n\ttext");
    }

    #[test]
    fn forms_lead_back_to_our_own_pages_only() {
        for (path, local) in [
            ("/executions?status=failed#top", true),
            ("//elsewhere.example", false),
            ("/\\elsewhere.example", false),
            ("https://elsewhere.example", false),
            ("/a\r\nset-cookie: x", false),
            ("/\t/elsewhere.example", false),
        ] {
            assert_eq!(is_local(path), local, "{path}");
        }
    }
}
