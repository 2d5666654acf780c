//! A cache of serialized executions. An execution is unchanged as long as its journal has no new entries, so frequent
//! polling is cheap.

use axum::body::Bytes;
use rutter_app::reader::AnswerReader;
use rutter_core::execution::ExecutionIdentity;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const EXECUTIONS_MAX: usize = 1_024;
/// Longer responses are not cached, which bounds the memory.
const BYTES_MAX: usize = 32 << 10;
/// Erasing a result adds no entry, so cached responses expire soon.
const AGE_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct ResponseCache {
    entries: Mutex<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    responses: HashMap<CacheKey, CachedResponse>,
    oldest: VecDeque<CacheKey>,
}

/// Tenant, execution, and whether a person reads it, who is shown more than an agent.
type CacheKey = (String, String, bool);

#[derive(Debug)]
struct CachedResponse {
    /// The number of journal entries at that time.
    entries: u64,
    bytes: Bytes,
    at: Instant,
}

impl ResponseCache {
    pub(crate) fn find(&self, key: &CacheKey, entries: u64, now: Instant) -> Option<Bytes> {
        let stored = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = stored.responses.get(key)?;
        let is_good = answer.entries == entries && now.saturating_duration_since(answer.at) < AGE_MAX;
        is_good.then(|| answer.bytes.clone())
    }

    pub(crate) fn put(&self, key: CacheKey, entries: u64, bytes: Bytes, at: Instant) {
        if bytes.len() > BYTES_MAX {
            return;
        }
        let mut stored = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.responses.insert(key.clone(), CachedResponse { entries, bytes, at }).is_none() {
            stored.oldest.push_back(key);
        }
        while stored.oldest.len() > EXECUTIONS_MAX {
            if let Some(oldest) = stored.oldest.pop_front() {
                stored.responses.remove(&oldest);
            }
        }
    }
}

pub(crate) fn cache_key(identity: &ExecutionIdentity, reader: &AnswerReader) -> CacheKey {
    (identity.tenant.to_string(), identity.execution.to_string(), reader.is_person())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::id::{ExecutionId, TenantId};

    fn key(tenant: &str, number: usize, reader: &AnswerReader) -> CacheKey {
        let execution = ExecutionId::new(&format!("exec_{number}"));
        cache_key(&ExecutionIdentity { tenant: TenantId::new(tenant), execution }, reader)
    }

    fn identity(number: usize) -> CacheKey {
        key("default", number, &AnswerReader::person(None))
    }

    #[test]
    fn changed_or_expired_responses_are_not_returned() {
        let (row, now) = (ResponseCache::default(), Instant::now());
        row.put(identity(1), 7, Bytes::from_static(b"seven"), now);
        assert_eq!(row.find(&identity(1), 7, now).as_deref(), Some(&b"seven"[..]));
        assert_eq!((row.find(&identity(1), 8, now), row.find(&identity(2), 7, now)), (None, None));
        assert_eq!(row.find(&identity(1), 7, now + AGE_MAX), None);
        row.put(identity(1), 8, Bytes::from_static(b"eight"), now);
        assert_eq!((row.find(&identity(1), 7, now), row.find(&identity(1), 8, now).is_some()), (None, true));
        assert_eq!(row.find(&key("other", 1, &AnswerReader::person(None)), 8, now), None);
        assert_eq!(row.find(&key("default", 1, &AnswerReader::agent(None)), 8, now), None, "it is shown less");
    }

    #[test]
    fn the_oldest_is_evicted_and_long_responses_are_not_cached() {
        let (row, now) = (ResponseCache::default(), Instant::now());
        for number in 0..=EXECUTIONS_MAX {
            row.put(identity(number), 1, Bytes::from_static(b"x"), now);
        }
        assert_eq!((row.find(&identity(0), 1, now), row.find(&identity(1), 1, now).is_some()), (None, true));
        row.put(identity(0), 1, Bytes::from(vec![b'x'; BYTES_MAX + 1]), now);
        assert_eq!(row.find(&identity(0), 1, now), None);
    }
}
