//! The line for one tool: tenants by turn, and within each its applicants by priority.

use super::pace::Pace;
use rutter_core::id::TenantId;
use rutter_core::port::tools::Applicant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Weak;

/// How many may be at something at once, and how many are.
#[derive(Debug)]
pub(super) struct Places {
    pub(super) used: u32,
    max: u32,
}

impl Places {
    /// At least one, or whoever stands in line would stand there for ever.
    pub(super) fn new(max: u32) -> Places {
        Places { used: 0, max: max.max(1) }
    }

    pub(super) fn has_room(&self) -> bool {
        self.used < self.max
    }
}

/// What is common to the applicants of one tenant, in all lines.
#[derive(Debug)]
pub(super) struct Tenant {
    pub(super) places: Places,
    /// The tenant with the lowest number is next. It grows with every grant, so that a tenant goes to the end then.
    pub(super) turn: u64,
    pub(super) standing: usize,
}

pub(super) type Tenants = HashMap<TenantId, Tenant>;

/// Where somebody stands within a tenant: first by priority, then by who came first.
pub(super) type Place = (Reverse<i32>, u64);

/// Who stands in line. As long as its `Weak` is kept, nobody else can have the address.
pub(super) struct Waiter {
    pub(super) address: usize,
    pub(super) applicant: Weak<dyn Applicant>,
}

/// A berth that is kept for somebody.
pub(super) struct Grant {
    pub(super) number: u64,
    pub(super) tenant: TenantId,
    /// Keeps the address from being used again.
    pub(super) _applicant: Weak<dyn Applicant>,
}

pub(super) struct Line {
    pub(super) server: String,
    pub(super) places: Places,
    pub(super) pace: Option<Pace>,
    /// By address.
    pub(super) grants: HashMap<usize, Grant>,
    standing: HashSet<usize>,
    /// Tenants that stand here, by the turn they had when it was last looked at.
    ring: BTreeSet<(u64, TenantId)>,
    cells: HashMap<TenantId, BTreeMap<Place, Waiter>>,
}

impl Line {
    pub(super) fn new(server: &str, places: Places, pace: Option<Pace>) -> Line {
        Line {
            server: server.to_owned(),
            places,
            pace,
            grants: HashMap::new(),
            standing: HashSet::new(),
            ring: BTreeSet::new(),
            cells: HashMap::new(),
        }
    }

    pub(super) fn stands(&self, address: usize) -> bool {
        self.standing.contains(&address)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.standing.is_empty()
    }

    /// Nothing would be forgotten with this line.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && self.places.used == 0 && self.pace.is_none()
    }

    pub(super) fn stand(&mut self, tenant: &TenantId, turn: u64, place: Place, waiter: Waiter) {
        self.standing.insert(waiter.address);
        let cell = self.cells.entry(tenant.clone()).or_default();
        if cell.is_empty() {
            self.ring.insert((turn, tenant.clone()));
        }
        cell.insert(place, waiter);
    }

    /// Who is next here: the tenant's turn, and its first applicant's place.
    ///
    /// Tenants that are at their limit are passed over. There are no more of them than calls under way, however many
    /// stand in line.
    pub(super) fn head(&mut self, tenants: &Tenants) -> Option<(u64, Place, TenantId)> {
        loop {
            let has_room = |(_, tenant): &&(u64, TenantId)| tenants[tenant].places.has_room();
            let (seen, tenant) = self.ring.iter().find(has_room)?.clone();
            let turn = tenants[&tenant].turn;
            if seen == turn {
                let (place, _) =
                    self.cells[&tenant].first_key_value().expect("a tenant in the ring stands here");
                return Some((turn, *place, tenant));
            }
            // It was granted something in another line since. Its turn only ever moves back, so this ends.
            self.ring.remove(&(seen, tenant.clone()));
            self.ring.insert((turn, tenant));
        }
    }

    /// Takes the first applicant of a tenant out of the line.
    pub(super) fn leave(&mut self, tenant: &TenantId, turn: u64) -> Option<Waiter> {
        let cell = self.cells.get_mut(tenant)?;
        let (_, waiter) = cell.pop_first()?;
        if cell.is_empty() {
            self.cells.remove(tenant);
            self.ring.remove(&(turn, tenant.clone()));
        }
        self.standing.remove(&waiter.address);
        Some(waiter)
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = &mut f.debug_struct("Line");
        line.field("used", &self.places.used).field("standing", &self.standing.len()).finish_non_exhaustive()
    }
}
