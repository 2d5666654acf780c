//! What a route knows of the request it answers: who asks, for which thing, and under which conditions.

use crate::api::Api;
use crate::api::reply::{List, Reply};
use crate::auth::enter::encoded;
use crate::deed::Caller;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::guest::Guest;
use crate::limits::{PAGE_DEFAULT, PAGE_MAX};
use axum::http::{HeaderMap, HeaderName, Uri, header};
use rutter_core::execution::Identity;
use rutter_core::id::ExecutionId;
use rutter_core::port::query::{Cursor, Listing, Page};
use std::sync::Arc;

pub(crate) struct Call {
    pub(crate) api: Arc<Api>,
    pub(crate) guest: Guest,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// What stands where the path has names in braces.
    pub(crate) path: Vec<(String, String)>,
    /// What makes asking twice safe.
    pub(crate) key: Option<String>,
}

impl Call {
    pub(crate) fn desk(&self) -> &Arc<Desk> {
        &self.api.desk
    }

    pub(crate) fn caller(&self) -> Caller {
        let (desk, tenant) = (Arc::clone(self.desk()), self.guest.tenant.clone());
        Caller { desk, tenant, actor: self.guest.actor() }
    }

    /// A part of the path by its name in the table.
    pub(crate) fn part(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    pub(crate) fn id(&self) -> &str {
        self.part("id")
    }

    /// The execution the path names.
    pub(crate) fn identity(&self) -> Identity {
        Identity { tenant: self.guest.tenant.clone(), execution: ExecutionId::new(self.id()) }
    }

    /// A page of a list, as the query asks for it.
    pub(crate) fn page(&self, limit: Option<u32>, cursor: Option<String>) -> Result<Page, Fault> {
        match limit.unwrap_or(PAGE_DEFAULT) {
            limit @ 1..=PAGE_MAX => Ok(Page { limit, after: cursor.map(Cursor) }),
            limit => {
                Err(Fault::new("server.arguments", format!("limit is 1 to {PAGE_MAX}, this is {limit}")))
            }
        }
    }

    /// A page of a list, with a link to the next one.
    pub(crate) fn list<T>(&self, found: Listing<T>) -> Reply<List<T>> {
        let next_cursor = found.next.map(|Cursor(cursor)| cursor);
        let next = next_cursor.as_deref().map(|cursor| self.with_cursor(cursor));
        let reply = Reply::ok(List { items: found.items, next_cursor });
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
    pub(crate) fn has(&self, tag: &str) -> bool {
        self.header(header::IF_NONE_MATCH).is_some_and(|tags| names(tags, tag))
    }

    /// Refuses to change something that is not as it was seen. Says whether it must stay like that until it is changed.
    pub(crate) fn expects(&self, tag: &str) -> Result<bool, Fault> {
        match self.headers.get(header::IF_MATCH) {
            Some(tags) if !tags.to_str().is_ok_and(|tags| names(tags, tag)) => {
                let message = format!("it has changed since; its version is {tag} now");
                Err(Fault::new("server.precondition", message).hint("look at it again, then decide"))
            }
            Some(tags) => Ok(tags != "*"),
            None => Ok(false),
        }
    }
}

/// Whether a list of tags has one of them, however strong.
fn names(tags: &str, tag: &str) -> bool {
    let bare = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    tags.trim() == "*" || tags.split(',').any(|known| bare(known) == bare(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_in_lists() {
        assert!(names("\"1\", W/\"2\"", "\"2\"") && names("*", "\"9\"") && !names("\"1\"", "\"2\""));
        assert!(!names("", "\"1\""));
    }
}
