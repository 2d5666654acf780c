//! Silences: they suppress notices for a while. The alerts still fire.

use super::alert::AlertRecord;
use super::rfc3339::Rfc3339Timestamp;
use super::webhook::{check_length, invalid};
use crate::Error;
use rutter_core::port;
use rutter_core::port::register::RegisterItem;
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No silence is permanent; a rule can be disabled instead.
const SILENCE_MAX: Millis = Millis::hours(90 * 24);

/// Covers alerts that match every field that is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertSilence {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    pub until: Rfc3339Timestamp,
    pub reason: String,
    pub by: String,
    pub created_at: Rfc3339Timestamp,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSilence {
    /// The id of a rule.
    pub rule: Option<String>,
    /// The id or the name of a plan.
    pub plan: Option<String>,
    /// The subject of an alert, such as an execution.
    pub subject: Option<String>,
    pub until: Rfc3339Timestamp,
    pub reason: String,
}

impl AlertSilence {
    pub fn covers(&self, alert: &AlertRecord, now: Timestamp) -> bool {
        let rule = self.rule.as_ref().is_none_or(|rule| *rule == alert.rule);
        let of_plan = |plan: &String| alert.plan.as_ref().is_some_and(|it| it.id == *plan || it.name == *plan);
        let about = |subject: &String| *subject == alert.subject || Some(subject) == alert.execution.as_ref();
        let (plan, subject) = (self.plan.as_ref().is_none_or(of_plan), self.subject.as_ref().is_none_or(about));
        now < self.until.0 && rule && plan && subject
    }

    pub fn read(note: &RegisterItem) -> Result<AlertSilence, port::Error> {
        let silence: Result<AlertSilence, _> = serde_json::from_value((*note.value).clone());
        silence.map_err(|error| port::Error::Corrupt(format!("silence {}: {error}", note.id)))
    }
}

impl NewSilence {
    pub fn check(&self, now: Timestamp) -> Result<(), Error> {
        let named = [&self.rule, &self.plan, &self.subject];
        if named.iter().all(|name| name.is_none()) {
            return Err(invalid("expected at least one of `rule`, `plan` and `subject`"));
        }
        for name in named.into_iter().flatten() {
            check_length("a name", name, 200)?;
        }
        check_length("a reason", &self.reason, 300)?;
        if self.reason.trim().is_empty() {
            return Err(invalid("expected a reason: others will ask why no notice was sent"));
        }
        if self.until.0 <= now || self.until.0 > now.plus(SILENCE_MAX) {
            return Err(invalid("expected `until` in the future, within 90 days"));
        }
        Ok(())
    }
}
