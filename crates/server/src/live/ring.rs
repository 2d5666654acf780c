//! The newest entries of one ledger, as many as there is room for.

use super::Entry;
use std::collections::VecDeque;
use std::sync::Arc;

/// Taken from the ring at once, so that nobody holds it for long.
const TAKEN_MAX: usize = 256;

#[derive(Debug)]
pub(super) struct Ring {
    entries: VecDeque<Arc<Entry>>,
    max: usize,
    /// Everything after this place, up to `until`, is here, but for what was cleaned up.
    after: u64,
    until: u64,
}

impl Ring {
    pub(super) fn new(max: usize, place: u64) -> Ring {
        Ring { entries: VecDeque::new(), max, after: place, until: place }
    }

    pub(super) fn push(&mut self, items: Vec<Arc<Entry>>, until: u64) {
        self.entries.extend(items);
        self.until = self.until.max(until);
        while self.entries.len() > self.max {
            if let Some(oldest) = self.entries.pop_front() {
                self.after = oldest.placed.place;
            }
        }
    }

    /// What stands after a place, and up to where that is everything; `None` when the ring does not reach back so far.
    /// A place that is still to come has nothing after it yet.
    pub(super) fn after(&self, place: u64) -> Option<(Vec<Arc<Entry>>, u64)> {
        if place < self.after {
            return None;
        }
        let first = self.entries.partition_point(|entry| entry.placed.place <= place);
        let taken: Vec<Arc<Entry>> = self.entries.iter().skip(first).take(TAKEN_MAX).cloned().collect();
        let is_all = first + taken.len() == self.entries.len();
        let until = match taken.last() {
            Some(last) if !is_all => last.placed.place,
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
    use rutter_core::journal::codec::Stored;
    use rutter_core::journal::event::{Event, Record};
    use rutter_core::port::feed::Placed;
    use rutter_core::time::Timestamp;

    fn placed(place: u64) -> Arc<Entry> {
        let record = Record {
            at: Timestamp(0),
            actor: Actor::rutter(),
            event: Event::Paused { reason: "tea".to_owned() },
        };
        let (tenant, execution) = (TenantId::new("default"), ExecutionId::new("exec_1"));
        let split = Stored::split(&tenant, &execution, place, &record, &mut || unreachable!("no payloads"));
        Entry::of(Placed { place, hash: Hash::of(&[b"entry"]), stored: split.unwrap().0 })
    }

    fn places(found: Option<(Vec<Arc<Entry>>, u64)>) -> Option<(Vec<u64>, u64)> {
        found.map(|(items, until)| (items.iter().map(|item| item.placed.place).collect(), until))
    }

    #[test]
    fn whoever_is_within_the_ring_takes_from_it() {
        let mut ring = Ring::new(3, 10);
        assert_eq!(places(ring.after(10)), Some((vec![], 10)));
        assert_eq!(places(ring.after(9)), None, "what came before was never read");
        ring.push(vec![placed(11), placed(13)], 14);
        assert_eq!(places(ring.after(10)), Some((vec![11, 13], 14)), "12 and 14 were cleaned up");
        assert_eq!(places(ring.after(11)), Some((vec![13], 14)));
        assert_eq!(places(ring.after(14)), Some((vec![], 14)));
        ring.push(vec![placed(15), placed(16)], 16);
        assert_eq!(places(ring.after(10)), None, "11 had to go");
        assert_eq!(places(ring.after(11)), Some((vec![13, 15, 16], 16)));
        assert_eq!(places(ring.after(99)), Some((vec![], 99)), "that is still to come");
    }

    #[test]
    fn a_large_ring_is_handed_out_in_pieces() {
        let mut ring = Ring::new(1_000, 0);
        ring.push((1..=600).map(placed).collect(), 600);
        let (mut place, mut seen) = (0, Vec::new());
        while let Some((items, until)) = ring.after(place).filter(|(items, _)| !items.is_empty()) {
            seen.extend(items.iter().map(|item| item.placed.place));
            place = until;
        }
        assert_eq!(seen, (1..=600).collect::<Vec<u64>>());
    }
}
