//! What a webhook is: where events go, which ones, and how the receiver knows them.

use super::moment::Moment;
use crate::fault::Fault;
use crate::limits::{WEBHOOK_NAMES_MAX, WEBHOOK_PATTERNS_MAX};
use crate::watch::plans::PlanOf;
use rutter_core::journal::label::KINDS;
use rutter_core::port;
use rutter_core::port::register::Note;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The pattern by which a webhook gets alerts; they are no events of the ledger.
pub const ALERT: &str = "alert";

const DESCRIPTION_CHARS_MAX: usize = 300;

/// A webhook as anybody may see it: without its secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Webhook {
    pub id: String,
    pub url: String,
    pub description: String,
    /// Kinds of events such as `attempt_failed`, beginnings such as `attempt_*`, `*` for every event of the ledger,
    /// `alert` for alerts.
    pub events: Vec<String>,
    /// Ids or names of plans; empty means all, and what belongs to no plan too.
    pub plans: Vec<String>,
    pub enabled: bool,
    /// Why Rutter switched it off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disabled_because: Option<String>,
    pub created_at: Moment,
    pub created_by: String,
    /// It gets what comes after this place of the ledger.
    pub since: u64,
    /// Until when deliveries are signed with the secret before the last rotation too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret_until: Option<Moment>,
    /// Counts changes; say which one you have seen when you change it.
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
    /// Which events: kinds, beginnings such as `attempt_*`, `*`, `alert`.
    #[serde(default = "everything")]
    pub events: Vec<String>,
    /// Only events of these plans, by id or name.
    #[serde(default)]
    pub plans: Vec<String>,
}

/// What is not said stays as it is.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookChange {
    pub url: Option<String>,
    pub description: Option<String>,
    pub events: Option<Vec<String>>,
    pub plans: Option<Vec<String>>,
    /// One that is switched on again gets what comes from then on.
    pub enabled: Option<bool>,
}

/// A secret is told once, when it is made.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SecretWebhook {
    #[serde(flatten)]
    pub webhook: Webhook,
    /// For checking signatures; it is not shown again.
    pub secret: String,
}

/// As it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(flatten)]
    pub webhook: Webhook,
    pub secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_secret: Option<String>,
}

impl Kept {
    pub fn read(note: &Note) -> Result<Kept, port::Error> {
        let kept: Result<Kept, _> = serde_json::from_value((*note.value).clone());
        let mut kept = kept.map_err(|error| port::Error::Corrupt(format!("webhook {}: {error}", note.id)))?;
        kept.webhook.version = note.version;
        Ok(kept)
    }

    /// As it goes into the register, which counts its versions by itself.
    pub fn value(&self) -> Value {
        serde_json::to_value(self).expect("a webhook has only text keys and finite numbers")
    }

    /// With which a delivery is signed now, the newest first.
    pub fn secrets(&self, now: Moment) -> impl Iterator<Item = &str> {
        let previous =
            self.previous_secret.as_deref().filter(|_| self.webhook.previous_secret_until > Some(now));
        std::iter::once(self.secret.as_str()).chain(previous)
    }
}

impl Webhook {
    pub(super) fn wants(&self, kind: &str) -> bool {
        self.events.iter().any(|pattern| matches(pattern, kind))
    }

    pub(super) fn wants_plan(&self, plan: Option<&PlanOf>) -> bool {
        self.plans.is_empty() || plan.is_some_and(|plan| plan.is_among(&self.plans))
    }

    /// Refuses what could not be meant; whether the address may be reached is for others to say.
    pub(super) fn check(&self) -> Result<(), Fault> {
        check_length("a description", &self.description, DESCRIPTION_CHARS_MAX)?;
        check_count("the number of patterns of a webhook", self.events.len(), WEBHOOK_PATTERNS_MAX)?;
        check_names("plans of a webhook", &self.plans)?;
        if self.events.is_empty() {
            return Err(invalid(
                "expected at least one pattern in `events`, such as `execution_*`, `*` or `alert`",
            ));
        }
        let known = |pattern: &&String| *pattern == ALERT || KINDS.iter().any(|kind| matches(pattern, kind));
        match self.events.iter().find(|pattern| !known(pattern)) {
            None => Ok(()),
            Some(pattern) => Err(invalid(format!(
                "no event is called {pattern:?}; expected a kind such as `execution_ended`, a beginning such as \
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

pub(super) fn invalid(message: impl Into<String>) -> Fault {
    port::Error::Invalid(message.into()).into()
}

pub(super) fn check_count(limit: &'static str, found: usize, max: usize) -> Result<(), Fault> {
    if found <= max {
        return Ok(());
    }
    Err(port::Error::Limit { limit, max: max as u64, found: found as u64 }.into())
}

/// Names of plans, webhooks, commands: not too many, not too long.
pub(super) fn check_names(what: &'static str, names: &[String]) -> Result<(), Fault> {
    check_count(what, names.len(), WEBHOOK_NAMES_MAX)?;
    names.iter().try_for_each(|name| check_length("a name", name, 200))
}

pub(super) fn check_length(what: &str, text: &str, chars_max: usize) -> Result<(), Fault> {
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
