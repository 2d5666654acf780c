//! A webhook: the receiver's URL, the events it subscribes to, and the secret that signs them.

use super::rfc3339::Rfc3339Timestamp;
use crate::Error;
use crate::limits::{WEBHOOK_NAMES_MAX, WEBHOOK_PATTERNS_MAX};
use crate::watch::plans::NamedPlan;
use rutter_core::journal::label::KINDS;
use rutter_core::port;
use rutter_core::port::register::RegisterItem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The pattern that subscribes to alerts, which are not events of the ledger.
pub const ALERT: &str = "alert";

const DESCRIPTION_CHARS_MAX: usize = 300;

/// A webhook without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WebhookView {
    pub id: String,
    pub url: String,
    pub description: String,
    /// Kinds of events such as `attempt_failed`, prefixes such as `attempt_*`, `*` for every event of the ledger,
    /// `alert` for alerts.
    pub events: Vec<String>,
    /// Ids or names of plans; empty means all plans, and events that belong to no plan.
    pub plans: Vec<String>,
    pub enabled: bool,
    /// Why Rutter disabled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_because: Option<String>,
    pub created_at: Rfc3339Timestamp,
    pub created_by: String,
    /// It receives events after this position of the ledger.
    pub since: u64,
    /// Until then deliveries are also signed with the previous secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret_until: Option<Rfc3339Timestamp>,
    /// Counts changes; send the version you read when you change it.
    #[serde(default)]
    pub version: u64,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// Where events are sent, over https.
    pub url: String,
    #[serde(default)]
    pub description: String,
    /// Which events: kinds, prefixes such as `attempt_*`, `*`, `alert`.
    #[serde(default = "everything")]
    pub events: Vec<String>,
    /// Only events of these plans, by id or name.
    #[serde(default)]
    pub plans: Vec<String>,
}

/// Fields that are absent stay as they are.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookChange {
    pub url: Option<String>,
    pub description: Option<String>,
    pub events: Option<Vec<String>>,
    pub plans: Option<Vec<String>>,
    /// A webhook that is enabled again receives events from then on.
    pub enabled: Option<bool>,
}

/// The secret is returned once, when it is created.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SecretWebhook {
    #[serde(flatten)]
    pub webhook: WebhookView,
    /// For verifying signatures; it is not shown again.
    pub secret: String,
}

/// A webhook in the store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredWebhook {
    #[serde(flatten)]
    pub webhook: WebhookView,
    pub secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret: Option<String>,
}

impl StoredWebhook {
    pub fn read(note: &RegisterItem) -> Result<StoredWebhook, port::Error> {
        let stored: Result<StoredWebhook, _> = serde_json::from_value((*note.value).clone());
        let mut retained = stored.map_err(|error| port::Error::Corrupt(format!("webhook {}: {error}", note.id)))?;
        retained.webhook.version = note.version;
        Ok(retained)
    }

    /// The value for the register, which counts versions itself.
    pub fn value(&self) -> Value {
        serde_json::to_value(self).expect("a webhook has only text keys and finite numbers")
    }

    /// The secrets that sign a delivery now, newest first.
    pub fn secrets(&self, now: Rfc3339Timestamp) -> impl Iterator<Item = &str> {
        let previous = self.previous_secret.as_deref().filter(|_| self.webhook.previous_secret_until > Some(now));
        std::iter::once(self.secret.as_str()).chain(previous)
    }
}

impl WebhookView {
    pub fn wants(&self, kind: &str) -> bool {
        self.events.iter().any(|pattern| matches(pattern, kind))
    }

    pub fn wants_plan(&self, plan: Option<&NamedPlan>) -> bool {
        self.plans.is_empty() || plan.is_some_and(|plan| plan.is_among(&self.plans))
    }

    /// Checks the fields; whether the address is allowed is checked elsewhere.
    pub fn check(&self) -> Result<(), Error> {
        check_length("a description", &self.description, DESCRIPTION_CHARS_MAX)?;
        check_count("the number of patterns of a webhook", self.events.len(), WEBHOOK_PATTERNS_MAX)?;
        check_names("plans of a webhook", &self.plans)?;
        if self.events.is_empty() {
            return Err(invalid("expected at least one pattern in `events`, such as `execution_*`, `*` or `alert`"));
        }
        let known = |pattern: &&String| *pattern == ALERT || KINDS.iter().any(|kind| matches(pattern, kind));
        match self.events.iter().find(|pattern| !known(pattern)) {
            None => Ok(()),
            Some(pattern) => Err(invalid(format!(
                "no event is called {pattern:?}; expected a kind such as `execution_ended`, a prefix such as \
                 `attempt_*`, `*`, or `alert`"
            ))),
        }
    }
}

fn matches(pattern: &str, kind: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => kind != ALERT && kind.starts_with(beginning),
        None => pattern == kind,
    }
}

fn everything() -> Vec<String> {
    vec!["*".to_owned()]
}

pub fn invalid(message: impl Into<String>) -> Error {
    port::Error::Invalid(message.into()).into()
}

pub fn check_count(limit: &'static str, found: usize, max: usize) -> Result<(), Error> {
    if found <= max {
        return Ok(());
    }
    Err(port::Error::Limit { limit, max: max as u64, found: found as u64 }.into())
}

/// Names of plans, webhooks, commands: not too many, not too long.
pub fn check_names(what: &'static str, names: &[String]) -> Result<(), Error> {
    check_count(what, names.len(), WEBHOOK_NAMES_MAX)?;
    names.iter().try_for_each(|name| check_length("a name", name, 200))
}

pub fn check_length(what: &str, text: &str, chars_max: usize) -> Result<(), Error> {
    if text.chars().count() > chars_max || text.chars().any(char::is_control) {
        return Err(invalid(format!("expected {what} of at most {chars_max} characters on one line")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_kinds_beginnings_and_everything_but_alerts() {
        for (pattern, kind, expected) in [
            ("*", "attempt_failed", true),
            ("*", ALERT, false),
            ("al*", ALERT, false),
            (ALERT, ALERT, true),
            ("attempt_*", "attempt_failed", true),
            ("attempt_*", "execution_ended", false),
            ("attempt_failed", "attempt_failed", true),
            ("attempt", "attempt_failed", false),
            ("ATTEMPT_*", "attempt_failed", false),
        ] {
            assert_eq!(matches(pattern, kind), expected, "{pattern} {kind}");
        }
    }
}
