//! A bounded ring of the newest entries of one ledger.

use super::LiveEntry;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most entries returned at once, so that the lock is held briefly.
const TAKEN_MAX: usize = 256;

#[derive(Debug)]
pub struct EntryRing {
    entries: VecDeque<Arc<LiveEntry>>,
    max: usize,
    /// The ring holds every entry after this position and up to `until`, except removed ones.
    after: u64,
    until: u64,
}

impl EntryRing {
    pub fn new(max: usize, place: u64) -> EntryRing {
        EntryRing { entries: VecDeque::new(), max, after: place, until: place }
    }

    pub fn push(&mut self, items: Vec<Arc<LiveEntry>>, until: u64) {
        self.entries.extend(items);
        self.until = self.until.max(until);
        while self.entries.len() > self.max {
            if let Some(oldest) = self.entries.pop_front() {
                self.after = oldest.placed.position;
            }
        }
    }

    /// The entries after a position, and the position up to which they are complete; `None` when the ring does not
    /// reach back that far. After a position in the future there are none yet.
    pub fn after(&self, place: u64) -> Option<(Vec<Arc<LiveEntry>>, u64)> {
        if place < self.after {
            return None;
        }
        let first = self.entries.partition_point(|entry| entry.placed.position <= place);
        let taken: Vec<Arc<LiveEntry>> = self.entries.iter().skip(first).take(TAKEN_MAX).cloned().collect();
        let is_all = first + taken.len() == self.entries.len();
        let until = match taken.last() {
            Some(last) if !is_all => last.placed.position,
            _ => self.until.max(place),
        };
        Some((taken, until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::actor::Actor;
    use rutter_core::hash::Hash;
    use rutter_core::id::{ExecutionId, TenantId};
    use rutter_core::journal::codec::StoredRecord;
    use rutter_core::journal::event::{Event, EventRecord};
    use rutter_core::port::feed::FeedEntry;
    use rutter_core::time::Timestamp;

    fn placed(place: u64) -> Arc<LiveEntry> {
        let record =
            EventRecord { at: Timestamp(0), actor: Actor::rutter(), event: Event::Paused { reason: "tea".to_owned() } };
        let (tenant, execution) = (TenantId::new("default"), ExecutionId::new("exec_1"));
        let split = StoredRecord::split(&tenant, &execution, place, &record, &mut || unreachable!("no payloads"));
        LiveEntry::of(FeedEntry { position: place, hash: Hash::of(&[b"entry"]), stored: split.unwrap().0 })
    }

    fn places(found: Option<(Vec<Arc<LiveEntry>>, u64)>) -> Option<(Vec<u64>, u64)> {
        found.map(|(items, until)| (items.iter().map(|item| item.placed.position).collect(), until))
    }

    #[test]
    fn positions_within_the_ring_are_served_from_it() {
        let mut ring = EntryRing::new(3, 10);
        assert_eq!(places(ring.after(10)), Some((vec![], 10)));
        assert_eq!(places(ring.after(9)), None, "earlier entries were never read");
        ring.push(vec![placed(11), placed(13)], 14);
        assert_eq!(places(ring.after(10)), Some((vec![11, 13], 14)), "12 and 14 were cleaned up");
        assert_eq!(places(ring.after(11)), Some((vec![13], 14)));
        assert_eq!(places(ring.after(14)), Some((vec![], 14)));
        ring.push(vec![placed(15), placed(16)], 16);
        assert_eq!(places(ring.after(10)), None, "11 was dropped");
        assert_eq!(places(ring.after(11)), Some((vec![13, 15, 16], 16)));
        assert_eq!(places(ring.after(99)), Some((vec![], 99)), "a position in the future");
    }

    #[test]
    fn a_large_ring_is_handed_out_in_pieces() {
        let mut ring = EntryRing::new(1_000, 0);
        ring.push((1..=600).map(placed).collect(), 600);
        let (mut place, mut seen) = (0, Vec::new());
        while let Some((items, until)) = ring.after(place).filter(|(items, _)| !items.is_empty()) {
            seen.extend(items.iter().map(|item| item.placed.position));
            place = until;
        }
        assert_eq!(seen, (1..=600).collect::<Vec<u64>>());
    }
}
