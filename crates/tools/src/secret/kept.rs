//! Values in memory: one that shows nothing and is wiped, one kept for a while, and all that were ever seen.

use rutter_core::redact::Redactor;
use rutter_core::tool::Failure;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use zeroize::Zeroizing;

/// Values of one secret that are still recognized after it has changed; the oldest goes first.
const VALUES_MAX: usize = 32;

/// A value that no message shows, and that is wiped from memory when it is dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(value: String) -> Secret {
        Secret(Zeroizing::new(value))
    }

    /// For sending, never for a message.
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

/// What was found the last time somebody asked for one secret.
#[derive(Default)]
pub(super) struct Kept(Mutex<Option<Found>>);

struct Found {
    at: Instant,
    secret: Result<Secret, Failure>,
}

impl Kept {
    /// Held while the source is asked, so that many calls at once ask it once. Those who waited meanwhile hear of a
    /// failure too; whoever comes later asks again.
    pub(super) async fn get_or(
        &self,
        span: Duration,
        look_up: impl Future<Output = Result<Secret, Failure>>,
    ) -> Result<Secret, Failure> {
        let came = Instant::now();
        let mut kept = self.0.lock().await;
        if let Some(Found { at, secret }) = &*kept
            && if secret.is_ok() { at.elapsed() < span } else { *at >= came }
        {
            return secret.clone();
        }
        *kept = None;
        let secret = look_up.await;
        *kept = Some(Found { at: Instant::now(), secret: secret.clone() });
        secret
    }
}

/// Every value that was handed out, and the redactor that knows them.
pub(super) struct Seen {
    values: BTreeMap<String, Vec<Secret>>,
    redactor: Redactor,
}

impl Default for Seen {
    fn default() -> Seen {
        Seen { values: BTreeMap::new(), redactor: Redactor::standard() }
    }
}

impl Seen {
    pub(super) fn add(&mut self, name: &str, secret: &Secret) {
        let values = self.values.entry(name.to_owned()).or_default();
        if values.contains(secret) {
            return;
        }
        if values.len() == VALUES_MAX {
            values.remove(0);
        }
        values.push(secret.clone());
        let all = self.values.iter();
        let pairs =
            all.flat_map(|(name, values)| values.iter().map(|value| (name.clone(), value.text().to_owned())));
        self.redactor = Redactor::standard().with_secrets(pairs);
    }

    pub(super) fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }
}
