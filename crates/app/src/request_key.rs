//! Idempotency keys: a request repeated with its key takes effect once, and keys of different principals are independent.

use crate::error::AppError;
use crate::principal::Principal;
use rutter_core::hash::Hash;
use rutter_core::limits::REQUEST_KEY_BYTES_MAX;
use rutter_core::port;
use rutter_engine::Error;

/// The key of a request as the client chose it, and as it is stored. Every operation that takes a key stores it this way.
#[derive(Clone, Debug)]
pub(crate) struct RequestKey {
    given: Option<String>,
    /// Depends on the principal's id, which outlives sessions and restarts.
    pub(crate) stored: Option<String>,
}

impl RequestKey {
    pub(crate) fn of(caller: &Principal, given: Option<&str>) -> Result<RequestKey, AppError> {
        if given.is_some_and(|key| !is_request_key(key)) {
            let message =
                format!("a request_id has 1 to {REQUEST_KEY_BYTES_MAX} visible ASCII characters, without spaces");
            return Err(AppError::new("server.arguments", message));
        }
        let id = caller.id();
        let stored = |key: &str| Hash::of_fields("rutter/request-key/v1", &[id.as_bytes(), key.as_bytes()]).to_string();
        Ok(RequestKey { given: given.map(str::to_owned), stored: given.map(stored) })
    }

    /// An error that names the key, names it as the client does.
    pub(crate) fn error(self, error: Error) -> AppError {
        match (error, self.given) {
            (Error::Store(port::Error::KeyReused { .. }), Some(key)) => port::Error::KeyReused { key }.into(),
            (error, _) => error.into(),
        }
    }

    /// The refusal of another request with the same key.
    pub(crate) fn reused(self) -> AppError {
        port::Error::KeyReused { key: self.given.unwrap_or_default() }.into()
    }
}

/// Whether a text can be the key of a request.
pub fn is_request_key(text: &str) -> bool {
    (1..=REQUEST_KEY_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Credential;
    use crate::scope;
    use rutter_core::id::TenantId;

    fn stored(name: &str, key: &str) -> Option<String> {
        let credential = Credential::Token { name: name.to_owned() };
        let principal = Principal::new(TenantId::new("default"), name, scope::of_agent(), credential);
        RequestKey::of(&principal, Some(key)).unwrap().stored
    }

    #[test]
    fn a_key_belongs_to_its_principal() {
        assert_eq!(stored("one", "k-1"), stored("one", "k-1"));
        assert_ne!(stored("one", "k-1"), stored("two", "k-1"));
        assert_ne!(stored("one", "k-1"), stored("one", "k-2"));
        assert!(is_request_key(&stored("one", "k-1").unwrap()), "the store accepts it");
    }

    #[test]
    fn a_key_is_short_and_visible() {
        for (text, is_key) in [("k", true), ("", false), ("a b", false), ("ü", false)] {
            assert_eq!(is_request_key(text), is_key, "{text:?}");
        }
        assert!(!is_request_key(&"x".repeat(REQUEST_KEY_BYTES_MAX + 1)));
    }
}
