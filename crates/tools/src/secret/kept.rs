//! Values in memory: one that shows nothing and is wiped, one kept for a while, and all that were ever seen.

use rutter_core::redact::Redactor;
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

/// The newest value of one secret.
#[derive(Default)]
pub(super) struct Kept(Mutex<Option<(Instant, Secret)>>);

impl Kept {
    /// Held while the source is asked, so that many calls at once ask it once.
    pub(super) async fn get_or<E>(
        &self,
        span: Duration,
        look_up: impl Future<Output = Result<Secret, E>>,
    ) -> Result<Secret, E> {
        let mut kept = self.0.lock().await;
        if let Some((since, secret)) = &*kept
            && since.elapsed() < span
        {
            return Ok(secret.clone());
        }
        *kept = None;
        let secret = look_up.await?;
        *kept = Some((Instant::now(), secret.clone()));
        Ok(secret)
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
