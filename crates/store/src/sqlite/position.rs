//! The position of an entry: tenant and leaf in one number, which is the entry's key.

use rutter_core::port::Error;

const LEAF_BITS: u32 = 40;
/// The number of a payload is that of its entry times four, and must still fit in an `i64`.
pub(super) const TENANTS_MAX: i64 = (1 << 20) - 1;
pub(super) const PAYLOADS_PER_ENTRY: i64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryPosition(i64);

impl EntryPosition {
    pub fn new(tenant: i64, leaf: u64) -> Result<EntryPosition, Error> {
        match i64::try_from(leaf) {
            Ok(leaf) if leaf < 1 << LEAF_BITS => Ok(EntryPosition(tenant << LEAF_BITS | leaf)),
            _ => Err(Error::Limit { limit: "ledger_entries_max", max: 1 << LEAF_BITS, found: leaf }),
        }
    }

    /// The first and the last position a tenant can have.
    pub fn range(tenant: i64) -> (i64, i64) {
        (tenant << LEAF_BITS, (tenant << LEAF_BITS) | ((1 << LEAF_BITS) - 1))
    }

    pub fn number(self) -> i64 {
        self.0
    }

    pub fn leaf(self) -> u64 {
        (self.0 & ((1 << LEAF_BITS) - 1)) as u64
    }

    /// The key of the n-th payload of the entry.
    pub fn payload(self, nth: usize) -> i64 {
        self.0 * PAYLOADS_PER_ENTRY + nth as i64
    }
}

impl From<i64> for EntryPosition {
    fn from(number: i64) -> EntryPosition {
        EntryPosition(number)
    }
}
