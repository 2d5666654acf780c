//! Secrets: named in plans and configuration, looked up at the last moment, kept out of everything that is written.
//!
//! A plan says `{"secret": "payments_token"}`, a configured text says `${secret:payments_token}`. What was looked up is
//! kept for a minute, and known to the [`Redactor`] from then on.

mod kept;
mod source;
mod text;

pub use kept::Secret;
pub use text::names_in;

use crate::config::secret::Source;
use crate::registry::Secrets;
use kept::{Kept, Seen};
use rutter_core::port::tools::Reply;
use rutter_core::redact::{Redactor, SECRET_CHARS_MIN};
use rutter_core::tool::{Category, Failure};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a value is used before its source is asked again.
pub const KEPT: Duration = Duration::from_secs(60);
pub const BYTES_MAX: usize = 64 << 10;

/// How the environment is read; only whoever reads the configuration asks the system.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

pub struct Vault {
    secrets: BTreeMap<String, (Source, Kept)>,
    lookup: Lookup,
    seen: Mutex<Seen>,
}

impl Vault {
    pub fn new(sources: BTreeMap<String, Source>, lookup: Lookup) -> Vault {
        let secrets = sources.into_iter().map(|(name, source)| (name, (source, Kept::default()))).collect();
        Vault { secrets, lookup, seen: Mutex::default() }
    }

    pub fn has(&self, name: &str) -> bool {
        self.secrets.contains_key(name)
    }

    /// A value that was written into the settings themselves, so that it is not repeated anywhere else.
    pub fn know(&self, name: &str, value: &str) {
        if value.trim().chars().count() >= SECRET_CHARS_MIN {
            let secret = Secret::new(value.trim().to_owned());
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).add(name, &secret);
        }
    }

    /// Replaces every `${secret:name}`. What is put in is not looked into again.
    pub async fn fill_text(&self, text: &str) -> Result<Secret, Failure> {
        let names = names_in(text).map_err(|message| Failure::new(Category::InvalidInput, message))?;
        let secrets = self.all(names).await?;
        Ok(text::filled(text, &secrets))
    }

    async fn all(&self, names: BTreeSet<&str>) -> Result<BTreeMap<String, Secret>, Failure> {
        let mut secrets = BTreeMap::new();
        for name in names {
            secrets.insert(name.to_owned(), self.resolve(name).await?);
        }
        Ok(secrets)
    }

    /// The value of one secret, for sending.
    pub async fn resolve(&self, name: &str) -> Result<Secret, Failure> {
        let Some((source, kept)) = self.secrets.get(name) else {
            let message = format!("there is no secret {name:?}; declare it under `secrets`");
            return Err(Failure::new(Category::InvalidInput, message));
        };
        let secret = kept.get_or(KEPT, self.look_up(name, source)).await?;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).add(name, &secret);
        Ok(secret)
    }

    async fn look_up(&self, name: &str, source: &Source) -> Result<Secret, Failure> {
        let refused = |(category, why): (Category, String)| {
            Failure::new(category, format!("secret {name:?} could not be read: {why}"))
        };
        let secret = source::read(source, &self.lookup).await.map_err(refused)?;
        if secret.text().trim().chars().count() < SECRET_CHARS_MIN {
            let why = format!(
                "it is shorter than {SECRET_CHARS_MIN} characters, too short to be recognized in a text"
            );
            return Err(refused((Category::InvalidInput, why)));
        }
        Ok(secret)
    }
}

impl Secrets for Vault {
    /// Replaces every object that is `{"secret": "name"}` and nothing more.
    fn fill(&self, value: &Value) -> Reply<'_, Result<Value, Failure>> {
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

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vault").field("names", &self.secrets.keys()).finish_non_exhaustive()
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

fn filled(value: &Value, secrets: &BTreeMap<String, Secret>) -> Value {
    match value {
        Value::Object(fields) => match reference(fields) {
            Some(name) => Value::from(secrets[name].text()),
            None => fields.iter().map(|(key, value)| (key.clone(), filled(value, secrets))).collect(),
        },
        Value::Array(items) => items.iter().map(|item| filled(item, secrets)).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
