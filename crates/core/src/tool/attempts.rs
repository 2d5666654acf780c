//! The operator's settings for the attempts of a tool: how long one may take, and when it is retried.

use super::FailureCategory;
use crate::limits;
use crate::time::Millis;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Set per tool or per server. A plan's own values come first, up to `timeout_max`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttemptSettings {
    /// Of calls whose plan gives them none.
    #[serde(with = "span_text", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Millis>,
    /// No plan may give an attempt more; a plan that does is refused when it is checked.
    #[serde(with = "span_text", skip_serializing_if = "Option::is_none")]
    pub timeout_max: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetrySettings>,
}

impl AttemptSettings {
    pub fn is_empty(&self) -> bool {
        *self == AttemptSettings::default()
    }

    /// These settings, and `server`'s where there are none.
    pub fn or(&self, server: &AttemptSettings) -> AttemptSettings {
        AttemptSettings {
            timeout: self.timeout.or(server.timeout),
            timeout_max: self.timeout_max.or(server.timeout_max),
            retry: self.retry.clone().or_else(|| server.retry.clone()),
        }
    }

    /// What is wrong with them, if anything is.
    pub fn problem(&self) -> Option<String> {
        let max = limits::TIMEOUT_MAX;
        for (name, span) in [("timeout", self.timeout), ("timeout_max", self.timeout_max)] {
            if span.is_some_and(|span| span == Millis(0) || span > max) {
                return Some(format!("`{name}` must be more than 0 and at most {max}"));
            }
        }
        match (self.timeout, self.timeout_max) {
            (Some(timeout), Some(timeout_max)) if timeout > timeout_max => {
                Some(format!("`timeout` is {timeout}, more than `timeout_max`, which is {timeout_max}"))
            }
            _ => None,
        }
    }
}

/// How the pauses between attempts grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackoffStrategy {
    Fixed,
    Linear,
    Exponential,
}

/// A retry policy in part: what is left out is as usual.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RetryTable")]
pub struct RetrySettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<BackoffStrategy>,
    #[serde(with = "span_text", skip_serializing_if = "Option::is_none")]
    pub initial: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    #[serde(with = "span_text", skip_serializing_if = "Option::is_none")]
    pub max: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<FailureCategory>>,
}

/// The settings as written, before their limits are checked.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RetryTable {
    max_attempts: Option<u32>,
    backoff: Option<BackoffStrategy>,
    #[serde(with = "span_text")]
    initial: Option<Millis>,
    factor: Option<f64>,
    #[serde(with = "span_text")]
    max: Option<Millis>,
    jitter: Option<bool>,
    on: Option<Vec<FailureCategory>>,
}

impl TryFrom<RetryTable> for RetrySettings {
    type Error = String;

    fn try_from(written: RetryTable) -> Result<RetrySettings, String> {
        let RetryTable { max_attempts, backoff, initial, factor, max, jitter, on } = written;
        let longest = limits::BACKOFF_MAX;
        if max_attempts.is_some_and(|attempts| attempts == 0 || attempts > limits::ATTEMPTS_MAX) {
            return Err(format!("`max_attempts` must be from 1 to {}", limits::ATTEMPTS_MAX));
        }
        if factor.is_some_and(|factor| !(1.0..=limits::BACKOFF_FACTOR_MAX).contains(&factor)) {
            return Err(format!("`factor` must be from 1 to {}", limits::BACKOFF_FACTOR_MAX));
        }
        if initial.max(max).is_some_and(|pause| pause > longest) {
            return Err(format!("`initial` and `max` must be at most {longest}"));
        }
        if initial.is_some_and(|initial| initial > max.unwrap_or(limits::BACKOFF_CAP_DEFAULT)) {
            return Err("`initial` must not be more than `max`".to_owned());
        }
        Ok(RetrySettings { max_attempts, backoff, initial, factor, max, jitter, on })
    }
}

/// Spans as `30s` or `1h30m`.
mod span_text {
    use super::*;

    pub(super) fn serialize<S: Serializer>(span: &Option<Millis>, serializer: S) -> Result<S::Ok, S::Error> {
        span.map(|span| span.to_string()).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Millis>, D::Error> {
        let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
        let expected = || D::Error::custom(format!("expected a span such as `30s` or `5m`, got {text:?}"));
        Millis::parse(&text).ok_or_else(expected).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn retry(value: Value) -> Result<RetrySettings, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn retry_settings_survive_writing_and_reading() {
        let written = json!({"max_attempts": 4, "backoff": "fixed", "initial": "250ms", "factor": 1.5, "max": "1m30s",
                             "jitter": false, "on": ["unavailable"]});
        assert_eq!(serde_json::to_value(retry(written.clone()).unwrap()).unwrap(), written);
    }

    #[test]
    fn retry_settings_below_at_and_above_their_limits() {
        for (field, fine, refused) in [
            ("max_attempts", vec![json!(1), json!(10)], vec![json!(0), json!(11)]),
            ("factor", vec![json!(1.0), json!(10.0)], vec![json!(0.9), json!(10.1)]),
            ("max", vec![json!("2s"), json!("1h")], vec![json!("1h1ms"), json!("soon")]),
            ("initial", vec![json!("0ms"), json!("1m")], vec![json!("1m1ms"), json!(5)]),
        ] {
            for value in fine {
                retry(json!({ field: value })).unwrap_or_else(|error| panic!("{field} = {value}: {error}"));
            }
            for value in refused {
                assert!(retry(json!({ field: value })).is_err(), "{field} = {value}");
            }
        }
        assert!(retry(json!({"attempts": 3})).is_err(), "an unknown field");
    }

    #[test]
    fn timeouts_below_at_and_above_their_limits() {
        let settings = |timeout: u64, timeout_max: u64| AttemptSettings {
            timeout: Some(Millis(timeout)),
            timeout_max: Some(Millis(timeout_max)),
            retry: None,
        };
        let day = limits::TIMEOUT_MAX.0;
        for (timeout, timeout_max, is_fine) in
            [(1, 1, true), (day, day, true), (0, 1, false), (1, 0, false), (2, 1, false), (1, day + 1, false)]
        {
            let problem = settings(timeout, timeout_max).problem();
            assert_eq!(problem.is_none(), is_fine, "{timeout} of {timeout_max}: {problem:?}");
        }
    }
}
