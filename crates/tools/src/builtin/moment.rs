//! Points in time as people and agents write them: RFC 3339, in UTC when we write.

pub(super) use rutter_core::time::calendar::{read, utc_short as write};
