//! A point in time in text form: RFC 3339 in UTC.

use rutter_core::time::{Timestamp, calendar};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rfc3339Timestamp(pub Timestamp);

impl Rfc3339Timestamp {
    /// Parses `2026-11-16T03:55:00Z`, also with a fraction or another offset.
    pub fn parse(text: &str) -> Option<Rfc3339Timestamp> {
        calendar::read(text).map(Rfc3339Timestamp)
    }
}

impl std::fmt::Display for Rfc3339Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&calendar::utc(self.0))
    }
}

impl From<Timestamp> for Rfc3339Timestamp {
    fn from(at: Timestamp) -> Rfc3339Timestamp {
        Rfc3339Timestamp(at)
    }
}

impl Serialize for Rfc3339Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rfc3339Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rfc3339Timestamp, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Rfc3339Timestamp::parse(&text).ok_or_else(|| de::Error::custom("expected a time such as 2026-11-16T03:55:00Z"))
    }
}

impl JsonSchema for Rfc3339Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }

    fn inline_schema() -> bool {
        true
    }
}
