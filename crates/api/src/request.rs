//! The request of a route: principal, path parameters, headers and conditions.

use crate::encode::encoded;
use crate::reply::{ApiReply, ListReply};
use crate::state::ApiState;
use axum::http::{HeaderMap, HeaderName, Uri, header};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::limits::{PAGE_DEFAULT, page_limit};
use rutter_app::principal::Principal;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use rutter_core::port::query::{ListCursor, ListPage, Pagination};
use std::sync::Arc;

pub(crate) struct ApiRequest {
    pub(crate) api: Arc<ApiState>,
    pub(crate) principal: Principal,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// Values of the path parameters, by name.
    pub(crate) path: Vec<(String, String)>,
    /// The idempotency key.
    pub(crate) key: Option<String>,
}

impl ApiRequest {
    pub(crate) fn app(&self) -> &Arc<App> {
        &self.api.app
    }

    /// A path parameter by name.
    pub(crate) fn part(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn id(&self) -> &str {
        self.part("id")
    }

    /// The execution in the path.
    pub(crate) fn identity(&self) -> ExecutionIdentity {
        ExecutionIdentity { tenant: self.principal.tenant.clone(), execution: ExecutionId::new(self.id()) }
    }

    /// The requested page of a list.
    pub(crate) fn page(&self, limit: Option<u32>, cursor: Option<String>) -> Result<Pagination, AppError> {
        Ok(Pagination { limit: page_limit(limit, PAGE_DEFAULT)?, after: cursor.map(ListCursor) })
    }

    /// A page of a list, with a link to the next one.
    pub(crate) fn list<T>(&self, found: ListPage<T>) -> ApiReply<ListReply<T>> {
        let next_cursor = found.next.map(|ListCursor(cursor)| cursor);
        let next = next_cursor.as_deref().map(|cursor| self.with_cursor(cursor));
        let reply = ApiReply::ok(ListReply { items: found.items, next_cursor });
        match next {
            Some(next) => reply.header(header::LINK, &format!("<{next}>; rel=\"next\"")),
            None => reply,
        }
    }

    fn with_cursor(&self, cursor: &str) -> String {
        let query = self.uri.query().unwrap_or_default();
        let others = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("cursor="));
        let mut pairs: Vec<String> = others.map(str::to_owned).collect();
        pairs.push(format!("cursor={}", encoded(cursor)));
        format!("{}?{}", self.uri.path(), pairs.join("&"))
    }

    fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Whether the client has this version already.
    pub(crate) fn has_current_etag(&self, tag: &str) -> bool {
        self.header(header::IF_NONE_MATCH).is_some_and(|tags| lists_tag(tags, tag))
    }

    /// Refuses to change something that no longer has the given ETag. Returns whether `If-Match` was sent.
    pub(crate) fn check_if_match(&self, tag: &str) -> Result<bool, AppError> {
        match self.headers.get(header::IF_MATCH) {
            Some(tags) if !tags.to_str().is_ok_and(|tags| lists_tag(tags, tag)) => {
                let message = format!("it has changed in the meantime; its version is now {tag}");
                Err(AppError::new("server.precondition", message).hint("read it again, then decide"))
            }
            Some(tags) => Ok(tags != "*"),
            None => Ok(false),
        }
    }
}

/// Whether a list of tags contains one, strong or weak.
fn lists_tag(tags: &str, tag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    tags.trim() == "*" || tags.split(',').any(|known| bare(known) == bare(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_in_lists() {
        assert!(lists_tag("\"1\", W/\"2\"", "\"2\"") && lists_tag("*", "\"9\"") && !lists_tag("\"1\"", "\"2\""));
        assert!(!lists_tag("", "\"1\""));
    }
}
