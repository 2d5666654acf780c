//! Secret values in memory: one that is never printed and is wiped, the cache, and all values ever resolved.

use rutter_core::redact::Redactor;
use rutter_core::tool::ToolFailure;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use zeroize::Zeroizing;

/// Values of one secret that are still recognized after it has changed; the oldest goes first.
const VALUES_MAX: usize = 32;

/// A value that no message shows, and that is wiped from memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretValue(Zeroizing<String>);

impl SecretValue {
    pub fn new(value: String) -> SecretValue {
        SecretValue(Zeroizing::new(value))
    }

    /// For sending, never for a message.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretValue")
    }
}

/// The last lookup of one secret.
#[derive(Default)]
pub(super) struct CachedSecret(Mutex<Option<CachedLookup>>);

struct CachedLookup {
    at: Instant,
    secret: Result<SecretValue, ToolFailure>,
}

impl CachedSecret {
    /// Locked while the source is read, so that concurrent calls read it once. Callers that waited meanwhile get a
    /// failure too; later callers try again.
    pub(super) async fn get_or(
        &self,
        span: Duration,
        look_up: impl Future<Output = Result<SecretValue, ToolFailure>>,
    ) -> Result<SecretValue, ToolFailure> {
        let came = Instant::now();
        let mut stored = self.0.lock().await;
        if let Some(CachedLookup { at, secret }) = &*stored
            && if secret.is_ok() { at.elapsed() < span } else { *at >= came }
        {
            return secret.clone();
        }
        *stored = None;
        let secret = look_up.await;
        *stored = Some(CachedLookup { at: Instant::now(), secret: secret.clone() });
        secret
    }
}

/// Every value that was handed out, and the redactor that knows them.
pub(super) struct ResolvedSecrets {
    values: BTreeMap<String, Vec<SecretValue>>,
    redactor: Redactor,
}

impl Default for ResolvedSecrets {
    fn default() -> ResolvedSecrets {
        ResolvedSecrets { values: BTreeMap::new(), redactor: Redactor::standard() }
    }
}

impl ResolvedSecrets {
    pub(super) fn add(&mut self, name: &str, secret: &SecretValue) {
        let values = self.values.entry(name.to_owned()).or_default();
        if values.contains(secret) {
            return;
        }
        if values.len() == VALUES_MAX {
            values.remove(0);
        }
        values.push(secret.clone());
        let all = self.values.iter();
        let pairs = all.flat_map(|(name, values)| values.iter().map(|value| (name.clone(), value.text().to_owned())));
        self.redactor = Redactor::standard().with_secrets(pairs);
    }

    pub(super) fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }
}
