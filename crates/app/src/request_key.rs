//! Idempotency keys: a request repeated with its key takes effect once, and keys of different principals are independent.

use crate::app::App;
use crate::error::AppError;
use crate::limits::REPLY_AGE_MAX;
use crate::principal::Principal;
use rutter_core::canonical::canonical;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::limits::REQUEST_KEY_BYTES_MAX;
use rutter_core::port;
use rutter_core::port::register::{RegisterChange, RegisterKind, RegisterWrite};
use rutter_engine::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The key of a request as the client chose it, and as it is stored. Every operation that takes a key stores it this way.
#[derive(Clone, Debug)]
pub(crate) struct RequestKey {
    given: Option<String>,
    /// Depends on the principal, which outlives sessions and restarts.
    pub(crate) stored: Option<String>,
    /// As earlier versions stored it, for which everybody at the socket was one.
    earlier: Option<String>,
}

impl RequestKey {
    pub(crate) fn of(caller: &Principal, given: Option<&str>) -> Result<RequestKey, AppError> {
        if given.is_some_and(|key| !is_request_key(key)) {
            let message =
                format!("a request_id has 1 to {REQUEST_KEY_BYTES_MAX} visible ASCII characters, without spaces");
            return Err(AppError::new("server.arguments", message));
        }
        let stored = |owner: &str| {
            let key = |key: &str| Hash::of_fields("rutter/request-key/v1", &[owner.as_bytes(), key.as_bytes()]);
            given.map(|given| key(given).to_string())
        };
        let (owner, id) = (caller.key_owner(), caller.id());
        let earlier = stored(&id).filter(|_| owner != id);
        Ok(RequestKey { given: given.map(str::to_owned), stored: stored(&owner), earlier })
    }

    /// An error that names the key, names it as the client does, and says what the key led to.
    pub(crate) async fn error(&self, app: &App, tenant: &TenantId, error: Error) -> AppError {
        let (Error::Store(port::Error::KeyReused { .. }), Some(stored)) = (&error, &self.stored) else {
            return error.into();
        };
        match app.query.request(tenant, stored).await {
            Ok(Some(known)) => self.reused(&format!("execution {}", known.execution)),
            Ok(None) | Err(_) => port::Error::KeyReused { key: self.given.clone().unwrap_or_default() }.into(),
        }
    }

    /// The execution this request opened when it first came. Asked before anything is checked, so that a repeated
    /// request gets its first answer whatever has become of the tools since.
    pub(crate) async fn execution(
        &self,
        app: &App,
        tenant: &TenantId,
        digest: Hash,
    ) -> Result<Option<ExecutionId>, AppError> {
        let Some(stored) = &self.stored else { return Ok(None) };
        match app.query.request(tenant, stored).await? {
            None => self.execution_before(app, tenant, digest).await,
            Some(known) if known.digest == digest => Ok(Some(known.execution)),
            Some(known) => Err(self.reused(&format!("execution {}", known.execution))),
        }
    }

    /// The execution that the same request opened through an earlier version. A different request with that key may have
    /// been another caller's.
    async fn execution_before(
        &self,
        app: &App,
        tenant: &TenantId,
        digest: Hash,
    ) -> Result<Option<ExecutionId>, AppError> {
        let Some(earlier) = &self.earlier else { return Ok(None) };
        let known = app.query.request(tenant, earlier).await?;
        Ok(known.filter(|known| known.digest == digest).map(|known| known.execution))
    }

    /// The plan this request saved when it first came, and the revision.
    pub(crate) async fn saved_plan(
        &self,
        app: &App,
        tenant: &TenantId,
        digest: Hash,
    ) -> Result<Option<(PlanId, u32)>, AppError> {
        let known = self.known_save(app, tenant, digest).await?;
        Ok(known.map(|known| (known.plan, known.revision)))
    }

    async fn known_save(&self, app: &App, tenant: &TenantId, digest: Hash) -> Result<Option<KnownSave>, AppError> {
        let Some(id) = self.save_id() else { return Ok(None) };
        let found = app.register.find(tenant, RegisterKind::Reply, &id).await?;
        let found = found.filter(|item| u128::from(app.now().since(item.changed_at).0) <= REPLY_AGE_MAX.as_millis());
        let Some(item) = found else { return Ok(None) };
        let unreadable = |error: serde_json::Error| AppError::new("server.internal", error.to_string());
        let known: KnownSave = serde_json::from_value((*item.value).clone()).map_err(unreadable)?;
        match known.digest == digest {
            true => Ok(Some(known)),
            false => Err(self.reused(&format!("plan {} revision {}", known.plan, known.revision))),
        }
    }

    /// Remembers what a request saved. A crash before this is harmless: the same content is the same revision.
    pub(crate) async fn remember_saved(
        &self,
        app: &App,
        tenant: &TenantId,
        digest: Hash,
        (plan, revision): (&PlanId, u32),
        answer: Option<Value>,
    ) -> Result<(), AppError> {
        let Some(id) = self.save_id() else { return Ok(()) };
        let known = json!(KnownSave { digest, plan: plan.clone(), revision, answer });
        let changes = vec![RegisterChange::put(RegisterKind::Reply, &id, known)];
        Ok(app.register.write(RegisterWrite { tenant: tenant.clone(), at: app.now(), changes, record: None }).await?)
    }

    /// The draft this request made when it first came, as it was answered.
    pub(crate) async fn drafted(&self, app: &App, tenant: &TenantId, digest: Hash) -> Result<Option<Value>, AppError> {
        let known = self.known_save(app, tenant, digest).await?;
        Ok(known.and_then(|known| known.answer))
    }

    /// Saves have keys of their own: an agent may use one key to save a plan and to execute it.
    fn save_id(&self) -> Option<String> {
        let stored = self.stored.as_ref()?;
        Some(Hash::of_fields("rutter/save-key/v1", &[stored.as_bytes()]).to_string())
    }

    /// The refusal of another request with the same key. It names what the first one led to.
    fn reused(&self, what: &str) -> AppError {
        key_reused(self.given.as_deref().unwrap_or_default(), what)
    }
}

/// The refusal of another request with a key that already led to `what`.
pub fn key_reused(key: &str, what: &str) -> AppError {
    AppError::from(port::Error::KeyReused { key: key.to_owned() }).hint(format!(
        "this key already led to {what}: look at it first. If it is what you wanted, nothing more is to be done; only for \
         something else, send this again with a new key"
    ))
}

/// What a request with a key saved.
#[derive(Debug, Serialize, Deserialize)]
struct KnownSave {
    digest: Hash,
    plan: PlanId,
    revision: u32,
    /// Of a drafted plan: what the caller was told about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
}

/// The digest of a request: over its canonical form, without the definitions of tools.
pub(crate) fn digest(kind: &str, request: &Value) -> Hash {
    Hash::of_fields(kind, &[canonical(request).as_bytes()])
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
    fn at_the_socket_a_key_belongs_to_a_person_or_to_the_programs() {
        let tenant = TenantId::new("default");
        let local = Principal::local(tenant.clone(), "ada", Default::default());
        let mut callers = vec![Principal::owner(tenant.clone(), "ada"), Principal::owner(tenant, "grace")];
        callers.push(local.through(Some("pilot")));
        callers.extend(local.person_at(Some("pilot")));
        let keys: Vec<RequestKey> = callers.iter().map(|it| RequestKey::of(it, Some("1")).unwrap()).collect();
        let stored: std::collections::BTreeSet<_> = keys.iter().map(|key| key.stored.clone()).collect();
        assert_eq!(stored.len(), keys.len(), "{keys:?}");
        let earlier: std::collections::BTreeSet<_> = keys.iter().map(|key| key.earlier.clone()).collect();
        assert_eq!(earlier.len(), 1, "once they were one: {keys:?}");
        for name in [Some("pilot"), Some("ada"), Some("another"), None] {
            let again = RequestKey::of(&local.through(name), Some("1")).unwrap();
            assert_eq!(again.stored, keys[2].stored, "{name:?}: a program chooses its name");
        }
    }

    #[test]
    fn a_key_is_short_and_visible() {
        for (text, is_key) in [("k", true), ("", false), ("a b", false), ("ü", false)] {
            assert_eq!(is_request_key(text), is_key, "{text:?}");
        }
        assert!(!is_request_key(&"x".repeat(REQUEST_KEY_BYTES_MAX + 1)));
    }
}
