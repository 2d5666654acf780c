//! Secrets: named in plans and configuration, looked up at the last moment, redacted from everything that is written.
//!
//! A plan says `{"secret": "payments_token"}`, a configured text says `${secret:payments_token}`. A value is cached
//! for a minute, and known to the [`Redactor`] from then on.

mod cached;
mod source;
mod text;

pub use cached::SecretValue;
pub use text::names_in;

use crate::config::secret::SecretSource;
use crate::registry::SecretResolver;
use cached::{CachedSecret, ResolvedSecrets};
use rutter_core::port::tools::PortFuture;
use rutter_core::redact::{Redactor, SECRET_CHARS_MIN};
use rutter_core::tool::{FailureCategory, ToolFailure};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a value is cached before its source is read again.
pub const CACHE_LIFETIME: Duration = Duration::from_secs(60);
pub const BYTES_MAX: usize = 64 << 10;

/// How the environment is read; only the code that reads the configuration asks the system.
pub type EnvironmentLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

pub struct SecretVault {
    secrets: BTreeMap<String, (SecretSource, CachedSecret)>,
    lookup: EnvironmentLookup,
    seen: Mutex<ResolvedSecrets>,
}

impl SecretVault {
    pub fn new(sources: BTreeMap<String, SecretSource>, lookup: EnvironmentLookup) -> SecretVault {
        let secrets = sources.into_iter().map(|(name, source)| (name, (source, CachedSecret::default()))).collect();
        SecretVault { secrets, lookup, seen: Mutex::default() }
    }

    pub fn has(&self, name: &str) -> bool {
        self.secrets.contains_key(name)
    }

    /// Registers a value that is written in the settings themselves, so that it is redacted everywhere else.
    pub fn know(&self, name: &str, value: &str) {
        if value.trim().chars().count() >= SECRET_CHARS_MIN {
            let secret = SecretValue::new(value.trim().to_owned());
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).add(name, &secret);
        }
    }

    /// Replaces every `${secret:name}`. Filled-in values are not expanded again.
    pub async fn fill_text(&self, text: &str) -> Result<SecretValue, ToolFailure> {
        let names = names_in(text).map_err(|message| ToolFailure::new(FailureCategory::InvalidInput, message))?;
        let secrets = self.all(names).await?;
        Ok(text::filled(text, &secrets))
    }

    async fn all(&self, names: BTreeSet<&str>) -> Result<BTreeMap<String, SecretValue>, ToolFailure> {
        let mut secrets = BTreeMap::new();
        for name in names {
            secrets.insert(name.to_owned(), self.resolve(name).await?);
        }
        Ok(secrets)
    }

    /// The value of one secret, for sending.
    pub async fn resolve(&self, name: &str) -> Result<SecretValue, ToolFailure> {
        let Some((source, stored)) = self.secrets.get(name) else {
            let message = format!("there is no secret {name:?}; declare it under `secrets`");
            return Err(ToolFailure::new(FailureCategory::InvalidInput, message));
        };
        let secret = stored.get_or(CACHE_LIFETIME, self.look_up(name, source)).await?;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).add(name, &secret);
        Ok(secret)
    }

    async fn look_up(&self, name: &str, source: &SecretSource) -> Result<SecretValue, ToolFailure> {
        let refused = |(category, why): (FailureCategory, String)| {
            ToolFailure::new(category, format!("secret {name:?} could not be read: {why}"))
        };
        let secret = source::read(source, &self.lookup).await.map_err(refused)?;
        if secret.text().trim().chars().count() < SECRET_CHARS_MIN {
            let why = format!("it is shorter than {SECRET_CHARS_MIN} characters, too short to be recognized in a text");
            return Err(refused((FailureCategory::InvalidInput, why)));
        }
        Ok(secret)
    }
}

impl SecretResolver for SecretVault {
    /// Replaces every object that is `{"secret": "name"}` and nothing more.
    fn fill(&self, value: &Value) -> PortFuture<'_, Result<Value, ToolFailure>> {
        let value = value.clone();
        Box::pin(async move {
            let mut names = BTreeSet::new();
            collect_names(&value, &mut names);
            let secrets = self.all(names).await?;
            Ok(filled(&value, &secrets))
        })
    }

    fn redactor(&self) -> Redactor {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).redactor()
    }
}

impl std::fmt::Debug for SecretVault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretVault").field("names", &self.secrets.keys()).finish_non_exhaustive()
    }
}

fn reference(fields: &Map<String, Value>) -> Option<&str> {
    if fields.len() == 1 { fields.get("secret")?.as_str() } else { None }
}

fn collect_names<'a>(value: &'a Value, names: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => match reference(fields) {
            Some(name) => drop(names.insert(name)),
            None => fields.values().for_each(|value| collect_names(value, names)),
        },
        Value::Array(items) => items.iter().for_each(|item| collect_names(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn filled(value: &Value, secrets: &BTreeMap<String, SecretValue>) -> Value {
    match value {
        Value::Object(fields) => match reference(fields) {
            Some(name) => Value::from(secrets[name].text()),
            None => fields.iter().map(|(key, value)| (key.clone(), filled(value, secrets))).collect(),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, secrets)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
