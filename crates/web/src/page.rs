//! Renders templates and errors, and parses page requests and forms.

use super::theme::ColorTheme;
use askama::Template;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use rutter_api::problem::status_of;
use rutter_app::auth::BrowserContext;
use rutter_app::command::{Command, CommandArguments};
use rutter_app::error::AppError;
use rutter_app::principal::Principal;
use rutter_app::verb::Verb;
use rutter_core::encoding::percent_decoded;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use rutter_core::port;
use rutter_core::port::query::ListPage;
use rutter_core::text::is_hidden;
use std::fmt::Write as _;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The request of a page: principal, theme, path and query.
#[derive(Clone, Debug)]
pub struct PageRequest {
    pub principal: Principal,
    /// The CSRF token for the forms of the page.
    pub csrf: String,
    pub theme: ColorTheme,
    /// The path of this page, with its query.
    pub path: String,
    /// The query parameters, in order.
    pub query: Vec<(String, String)>,
}

impl PageRequest {
    pub(super) fn of(parts: &Parts) -> Option<PageRequest> {
        let caller = parts.extensions.get::<Principal>()?.clone();
        let csrf = parts.extensions.get::<BrowserContext>().map(|browser| browser.csrf.clone()).unwrap_or_default();
        let query = pairs(parts.uri.query().unwrap_or_default().as_bytes());
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        Some(PageRequest { principal: caller, csrf, theme: ColorTheme::of(&parts.headers), path, query })
    }

    /// A query parameter; an empty one counts as absent.
    pub fn query_value(&self, name: &str) -> Option<&str> {
        value(&self.query, name)
    }

    /// Every value of a query parameter.
    pub fn query_values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.query.iter().filter(move |(key, value)| key == name && !value.is_empty());
        named.map(|(_, value)| value.as_str())
    }

    pub fn identity(&self, execution: &str) -> ExecutionIdentity {
        ExecutionIdentity { tenant: self.principal.tenant.clone(), execution: ExecutionId::new(execution) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PageRequest {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<PageRequest, PageError> {
        PageRequest::of(parts)
            .ok_or_else(|| AppError::new("server.unauthorized", "the request is not authenticated").into())
    }
}

/// A form submitted from one of our own pages.
#[derive(Debug)]
pub struct FormRequest {
    pub request: PageRequest,
    pub fields: Vec<(String, String)>,
}

impl FormRequest {
    pub fn value(&self, name: &str) -> Option<&str> {
        value(&self.fields, name)
    }

    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let named = self.fields.iter().filter(move |(key, value)| key == name && !value.is_empty());
        named.map(|(_, value)| value.as_str())
    }

    /// The command that the form sends to an execution, with the reason that every such form has.
    pub fn command(&self, execution: &str, verb: Verb, arguments: CommandArguments) -> Command {
        let reason = self.value("reason").map(str::to_owned);
        Command::new(self.request.principal.clone(), ExecutionId::new(execution), verb, arguments, reason)
    }

    /// The page to return to: a local path, or the overview.
    pub fn back(&self) -> &str {
        self.value("back").filter(|back| is_local(back)).unwrap_or("/")
    }
}

impl<S: Send + Sync> FromRequest<S> for FormRequest {
    type Rejection = PageError;

    async fn from_request(request: Request, state: &S) -> Result<FormRequest, PageError> {
        let (mut parts, body) = request.into_parts();
        let kind = parts.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        if !kind.starts_with(b"application/x-www-form-urlencoded") {
            return Err(AppError::new("server.arguments", "expected a form").into());
        }
        let page_request = PageRequest::from_request_parts(&mut parts, state).await?;
        let too_much = |error: BytesRejection| AppError::new("server.arguments", error.to_string());
        let bytes = Bytes::from_request(Request::from_parts(parts, body), state).await.map_err(too_much)?;
        let fields = pairs(&bytes);
        Ok(FormRequest { request: page_request, fields })
    }
}

/// An error to be rendered as a page.
#[derive(Clone, Debug)]
pub struct PageError(pub AppError);

impl<E: Into<AppError>> From<E> for PageError {
    fn from(error: E) -> PageError {
        PageError(error.into())
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        (status_of(&self.0), Extension(self)).into_response()
    }
}

/// The response of a page.
pub type PageResult = Result<Response, PageError>;

/// Renders a page.
pub fn render(template: &impl Template) -> PageResult {
    render_with_status(StatusCode::OK, template)
}

pub fn render_with_status(status: StatusCode, template: &impl Template) -> PageResult {
    let unwritten = |error: askama::Error| AppError::new("server.internal", error.to_string());
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

/// A list, or an empty one and what is wrong with its filter.
pub fn listed<T>(found: Result<ListPage<T>, port::Error>) -> Result<(ListPage<T>, Option<String>), PageError> {
    match found {
        Ok(found) => Ok((found, None)),
        Err(port::Error::Invalid(problem)) => Ok((ListPage { items: Vec::new(), next: None }, Some(problem))),
        Err(error) => Err(error.into()),
    }
}

/// Redirects after a form, with a message for the next page: one of `shell::FLASH_MESSAGES`.
pub fn redirect_with_flash(back: &str, message: &str) -> Response {
    let (path, fragment) = back.split_once('#').map_or((back, ""), |(path, fragment)| (path, fragment));
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut stored: Vec<(String, String)> = pairs(query.as_bytes());
    stored.retain(|(name, _)| name != "said");
    if !message.is_empty() {
        stored.push(("said".to_owned(), message.to_owned()));
    }
    let mut location = path.to_owned();
    location.push_str(&super::format::query(&stored));
    if !fragment.is_empty() {
        location.push('#');
        location.push_str(fragment);
    }
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

/// Makes characters visible that hide text or change its direction.
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
            c if is_hidden(c) => write!(text, "⟦U+{:04X}⟧", c as u32).expect("writing to a string cannot fail"),
            _ => text.push(c),
        }
    }
    text
}

/// Whether it is a path on this server that no browser takes for another host.
fn is_local(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n', '\t'])
}

fn value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = pairs.iter().find(|(key, value)| key == name && !value.trim().is_empty());
    found.map(|(_, value)| value.as_str())
}

/// Parses a form or a query, in order.
fn pairs(text: &[u8]) -> Vec<(String, String)> {
    let pairs = text.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
            (decoded(&pair[..at]), decoded(pair.get(at + 1..).unwrap_or_default()))
        })
        .collect()
}

/// In a form a plus sign is a space.
fn decoded(text: &[u8]) -> String {
    let text: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    String::from_utf8_lossy(&percent_decoded(&text)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_parsed_as_browsers_encode_them() {
        let read = pairs(b"a=1+2&b=%C3%BC%20%26&a=%zz&empty&=x");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read, [pair("a", "1 2"), pair("b", "ü &"), pair("a", "%zz"), pair("empty", ""), pair("", "x")]);
    }

    #[test]
    fn hidden_characters_are_made_visible() {
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
