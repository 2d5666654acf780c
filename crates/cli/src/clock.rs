//! The system clock. Only this module of the crate reads it.

use rutter_core::time::Timestamp;
use std::time::SystemTime;

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
