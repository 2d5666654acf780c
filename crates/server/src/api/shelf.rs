//! How executions stood when they were last asked about, written out. As long as nothing was added to its journal an
//! execution stands as it did, so that asking often costs little.

use axum::body::Bytes;
use rutter_core::execution::Identity;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const EXECUTIONS_MAX: usize = 1_024;
/// Longer ones are told anew each time, so that all of them together stay small.
const BYTES_MAX: usize = 32 << 10;
/// Erasing a result adds nothing to the journal; soon after, nobody hears of it any more.
const AGE_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct Shelf {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// By tenant and execution.
    told: HashMap<(String, String), Told>,
    oldest: VecDeque<(String, String)>,
}

#[derive(Debug)]
struct Told {
    /// How many the journal had.
    entries: u64,
    bytes: Bytes,
    at: Instant,
}

impl Shelf {
    pub(crate) fn find(&self, identity: &Identity, entries: u64, now: Instant) -> Option<Bytes> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let told = kept.told.get(&name(identity))?;
        let is_good = told.entries == entries && now.saturating_duration_since(told.at) < AGE_MAX;
        is_good.then(|| told.bytes.clone())
    }

    pub(crate) fn put(&self, identity: &Identity, entries: u64, bytes: Bytes, at: Instant) {
        if bytes.len() > BYTES_MAX {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.told.insert(name(identity), Told { entries, bytes, at }).is_none() {
            kept.oldest.push_back(name(identity));
        }
        while kept.oldest.len() > EXECUTIONS_MAX {
            if let Some(oldest) = kept.oldest.pop_front() {
                kept.told.remove(&oldest);
            }
        }
    }
}

fn name(identity: &Identity) -> (String, String) {
    (identity.tenant.to_string(), identity.execution.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::id::{ExecutionId, TenantId};

    fn identity(number: usize) -> Identity {
        let execution = ExecutionId::new(&format!("exec_{number}"));
        Identity { tenant: TenantId::new("default"), execution }
    }

    #[test]
    fn what_has_changed_since_or_is_old_is_not_told() {
        let (shelf, now) = (Shelf::default(), Instant::now());
        shelf.put(&identity(1), 7, Bytes::from_static(b"seven"), now);
        assert_eq!(shelf.find(&identity(1), 7, now).as_deref(), Some(&b"seven"[..]));
        assert_eq!((shelf.find(&identity(1), 8, now), shelf.find(&identity(2), 7, now)), (None, None));
        assert_eq!(shelf.find(&identity(1), 7, now + AGE_MAX), None);
        shelf.put(&identity(1), 8, Bytes::from_static(b"eight"), now);
        assert_eq!(
            (shelf.find(&identity(1), 7, now), shelf.find(&identity(1), 8, now).is_some()),
            (None, true)
        );
        let other = Identity { tenant: TenantId::new("other"), ..identity(1) };
        assert_eq!(shelf.find(&other, 8, now), None);
    }

    #[test]
    fn the_oldest_makes_way_and_the_longest_never_comes_in() {
        let (shelf, now) = (Shelf::default(), Instant::now());
        for number in 0..=EXECUTIONS_MAX {
            shelf.put(&identity(number), 1, Bytes::from_static(b"x"), now);
        }
        assert_eq!(
            (shelf.find(&identity(0), 1, now), shelf.find(&identity(1), 1, now).is_some()),
            (None, true)
        );
        shelf.put(&identity(0), 1, Bytes::from(vec![b'x'; BYTES_MAX + 1]), now);
        assert_eq!(shelf.find(&identity(0), 1, now), None);
    }
}
