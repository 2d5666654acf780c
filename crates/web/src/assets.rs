//! Static files, compiled into the binary. Their URLs contain a content hash, so browsers may cache them for ever.

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use rutter_core::hash::Hash;
use std::sync::LazyLock;

const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";

static FILES: &[(&str, &str, &str)] = &[
    ("app.css", CSS, concat!(include_str!("../assets/app.css"), include_str!("drawing/drawing.css"))),
    ("app.js", JS, include_str!("../assets/app.js")),
    ("copy.js", JS, include_str!("../assets/copy.js")),
    ("graph.js", JS, include_str!("../assets/graph.js")),
    ("json.js", JS, include_str!("../assets/json.js")),
    ("keys.js", JS, include_str!("../assets/keys.js")),
    ("live.js", JS, include_str!("../assets/live.js")),
    ("palette.js", JS, include_str!("../assets/palette.js")),
    ("patch.js", JS, include_str!("../assets/patch.js")),
    ("views.js", JS, include_str!("../assets/views.js")),
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
];

/// A hash of all files.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let texts: Vec<&[u8]> = FILES.iter().map(|(_, _, text)| text.as_bytes()).collect();
    Hash::of_fields("rutter/assets/v1", &texts).short()
});

pub fn address(name: &str) -> String {
    format!("/assets/{}/{name}", *VERSION)
}

pub(super) async fn serve(Path((version, name)): Path<(String, String)>, headers: HeaderMap) -> Response {
    let file = FILES.iter().find(|(known, _, _)| *known == name);
    let Some((_, kind, text)) = file.filter(|_| version == *VERSION) else {
        return (StatusCode::NOT_FOUND, "file not found\n").into_response();
    };
    let tag = format!("\"{}\"", *VERSION);
    let known = headers.get(IF_NONE_MATCH).is_some_and(|sent| sent.as_bytes() == tag.as_bytes());
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => ([(CONTENT_TYPE, *kind)], *text).into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}
