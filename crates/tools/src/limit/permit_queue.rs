//! The queue for one tool: tenants by turn, and within each its waiters by priority.

use super::rate_limiter::RateLimiter;
use rutter_core::id::TenantId;
use rutter_core::port::tools::PermitWaiter;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Weak;

/// How many calls there may be at once, and how many there are.
#[derive(Debug)]
pub(super) struct SlotUsage {
    pub(super) used: u32,
    max: u32,
}

impl SlotUsage {
    /// At least one, or a queued waiter would wait for ever.
    pub(super) fn new(max: u32) -> SlotUsage {
        SlotUsage { used: 0, max: max.max(1) }
    }

    pub(super) fn has_free_slot(&self) -> bool {
        self.used < self.max
    }
}

/// What the waiters of one tenant share, in all queues.
#[derive(Debug)]
pub(super) struct TenantShare {
    pub(super) slots: SlotUsage,
    /// The tenant with the lowest number is next. It grows with every grant, so that a tenant goes to the end then.
    pub(super) turn: u64,
    pub(super) queued: usize,
}

pub(super) type TenantShares = HashMap<TenantId, TenantShare>;

/// The position of a waiter within its tenant: first by priority, then by arrival.
pub(super) type QueuePosition = (Reverse<i32>, u64);

/// A queued waiter. As long as its `Weak` exists, no other waiter can have the address.
pub(super) struct QueuedWaiter {
    pub(super) address: usize,
    pub(super) waiter: Weak<dyn PermitWaiter>,
}

/// A granted permit that waits to be claimed.
pub(super) struct PermitGrant {
    pub(super) number: u64,
    pub(super) tenant: TenantId,
    /// Keeps the address from being used again.
    pub(super) _waiter: Weak<dyn PermitWaiter>,
}

pub(super) struct PermitQueue {
    pub(super) server: String,
    pub(super) slots: SlotUsage,
    pub(super) rate: Option<RateLimiter>,
    /// By address.
    pub(super) grants: HashMap<usize, PermitGrant>,
    queued: HashSet<usize>,
    /// Tenants with waiters here, by the turn they had at the last check.
    turns: BTreeSet<(u64, TenantId)>,
    by_tenant: HashMap<TenantId, BTreeMap<QueuePosition, QueuedWaiter>>,
}

impl PermitQueue {
    pub(super) fn new(server: &str, places: SlotUsage, pace: Option<RateLimiter>) -> PermitQueue {
        PermitQueue {
            server: server.to_owned(),
            slots: places,
            rate: pace,
            grants: HashMap::new(),
            queued: HashSet::new(),
            turns: BTreeSet::new(),
            by_tenant: HashMap::new(),
        }
    }

    pub(super) fn is_queued(&self, address: usize) -> bool {
        self.queued.contains(&address)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty()
    }

    /// Whether dropping this queue loses no state.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.slots.used == 0 && self.rate.is_none()
    }

    pub(super) fn enqueue(&mut self, tenant: &TenantId, turn: u64, place: QueuePosition, waiter: QueuedWaiter) {
        self.queued.insert(waiter.address);
        let cell = self.by_tenant.entry(tenant.clone()).or_default();
        if cell.is_empty() {
            self.turns.insert((turn, tenant.clone()));
        }
        cell.insert(place, waiter);
    }

    /// Who is next here: the tenant's turn, and the position of its first waiter.
    ///
    /// Tenants at their limit are skipped. There are no more of them than calls in flight, however many wait.
    pub(super) fn head(&mut self, tenants: &TenantShares) -> Option<(u64, QueuePosition, TenantId)> {
        loop {
            let has_room = |(_, tenant): &&(u64, TenantId)| tenants[tenant].slots.has_free_slot();
            let (seen, tenant) = self.turns.iter().find(has_room)?.clone();
            let turn = tenants[&tenant].turn;
            if seen == turn {
                let (place, _) = self.by_tenant[&tenant].first_key_value().expect("a tenant with a turn has a waiter");
                return Some((turn, *place, tenant));
            }
            // It was granted a permit in another queue since. Its turn only ever moves back, so this ends.
            self.turns.remove(&(seen, tenant.clone()));
            self.turns.insert((turn, tenant));
        }
    }

    /// Removes the first waiter of a tenant from the queue.
    pub(super) fn dequeue(&mut self, tenant: &TenantId, turn: u64) -> Option<QueuedWaiter> {
        let cell = self.by_tenant.get_mut(tenant)?;
        let (_, waiter) = cell.pop_first()?;
        if cell.is_empty() {
            self.by_tenant.remove(tenant);
            self.turns.remove(&(turn, tenant.clone()));
        }
        self.queued.remove(&waiter.address);
        Some(waiter)
    }
}

impl fmt::Debug for PermitQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = &mut f.debug_struct("PermitQueue");
        line.field("used", &self.slots.used).field("queued", &self.queued.len()).finish_non_exhaustive()
    }
}
