//! Errors as pages.

use super::page::{PageError, PageRequest, render_with_status};
use super::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use rutter_app::error::AppError;

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage {
    shell: PageShell,
    status: u16,
    fault: AppError,
}

/// Renders errors as pages.
pub(super) async fn render_errors(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let page_request = PageRequest::of(&parts);
    let response = next.run(Request::from_parts(parts, body)).await;
    let (Some(PageError(app_error)), Some(request)) = (response.extensions().get::<PageError>(), page_request) else {
        return response;
    };
    let status = response.status();
    if status.is_server_error() {
        tracing::error!(error.code = %app_error.code, page = %request.path, "{}", app_error.message);
    }
    let shell = PageShell::bare(&request, PageSection::None, title(status));
    let page = ErrorPage { shell, status: status.as_u16(), fault: app_error.clone() };
    render_with_status(status, &page).unwrap_or(response)
}

fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::CONFLICT => "Not possible now",
        StatusCode::BAD_REQUEST => "Bad request",
        StatusCode::SERVICE_UNAVAILABLE => "Busy",
        _ => "Something went wrong",
    }
}
