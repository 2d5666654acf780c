//! The state of the limiter: who holds a permit, who waits in which queue, and what is granted next.

use super::GRANT_LIFETIME;
use super::permit_queue::{
    PermitGrant, PermitQueue, QueuePosition, QueuedWaiter, SlotUsage, TenantShare, TenantShares,
};
use super::rate_limiter::RateLimiter;
use crate::config::{CallLimits, ServerSettings};
use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::tools::PermitWaiter;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use tokio::time::Instant;

/// After [`LimiterState::settle`] no waiter is queued that could have a permit.
#[derive(Debug)]
pub(super) struct LimiterState {
    limits: CallLimits,
    settings: BTreeMap<String, ServerSettings>,
    all: SlotUsage,
    tenants: TenantShares,
    servers: HashMap<String, ServerSlots>,
    queues: HashMap<ToolName, PermitQueue>,
    /// Tools with queued waiters.
    waiting: BTreeSet<ToolName>,
    queued: usize,
    /// Grants in the order in which they expire; some have been claimed since.
    ends: VecDeque<GrantExpiry>,
    /// Counts turns, arrivals and grants, so that each has its own number.
    count: u64,
    /// When a rate next allows a queued waiter to proceed.
    paced: Option<Instant>,
    /// When the refill task wakes by itself.
    planned: Option<Instant>,
}

#[derive(Debug)]
struct ServerSlots {
    slots: SlotUsage,
    rate: Option<RateLimiter>,
}

#[derive(Debug)]
struct GrantExpiry {
    at: Instant,
    tool: ToolName,
    address: usize,
    number: u64,
}

impl LimiterState {
    pub(super) fn new(limits: CallLimits, settings: BTreeMap<String, ServerSettings>) -> LimiterState {
        LimiterState {
            limits,
            settings,
            all: SlotUsage::new(limits.calls),
            tenants: HashMap::new(),
            servers: HashMap::new(),
            queues: HashMap::new(),
            waiting: BTreeSet::new(),
            queued: 0,
            ends: VecDeque::new(),
            count: 0,
            paced: None,
            planned: None,
        }
    }

    pub(super) fn occupied(&self) -> u32 {
        self.all.used
    }

    pub(super) fn queued(&self) -> usize {
        self.queued
    }

    /// Claims the permit that was granted to this address, if one was.
    pub(super) fn claim(&mut self, tool: &ToolName, address: usize) -> bool {
        self.queues.get_mut(tool).is_some_and(|line| line.grants.remove(&address).is_some())
    }

    /// Takes a permit if every limit allows it.
    pub(super) fn try_acquire(&mut self, tool: &ToolName, tenant: &TenantId, now: Instant) -> bool {
        self.prepare(tool, tenant);
        let is_free = self.all.has_free_slot()
            && self.tenants[tenant].slots.has_free_slot()
            && self.opening(tool, now).is_ok_and(|not_before| not_before.is_none());
        if is_free {
            self.acquire(tool, tenant, now);
        }
        is_free
    }

    pub(super) fn is_queued(&self, tool: &ToolName, address: usize) -> bool {
        self.queues.get(tool).is_some_and(|line| line.is_queued(address))
    }

    pub(super) fn enqueue(
        &mut self,
        tool: &ToolName,
        tenant: &TenantId,
        priority: i32,
        address: usize,
        applicant: Weak<dyn PermitWaiter>,
    ) {
        let number = self.next_number();
        self.prepare(tool, tenant);
        let entry = self.tenants.get_mut(tenant).expect("prepared above");
        if entry.queued == 0 {
            entry.turn = number;
        }
        entry.queued += 1;
        self.queued += 1;
        let line = self.queues.get_mut(tool).expect("prepared above");
        line.enqueue(tenant, entry.turn, (Reverse(priority), number), QueuedWaiter { address, waiter: applicant });
        self.waiting.insert(tool.clone());
    }

    pub(super) fn release(&mut self, tool: &ToolName, tenant: &TenantId) {
        let line = self.queues.get_mut(tool).expect("a queue stays while a permit of it is held");
        let bay = self.servers.get_mut(&line.server).expect("a server stays while a permit of it is held");
        let entry = self.tenants.get_mut(tenant).expect("a tenant stays while it has a permit");
        self.all.used -= 1;
        line.slots.used -= 1;
        bay.slots.used -= 1;
        entry.slots.used -= 1;
        self.forget(tool, tenant);
    }

    /// Grants every free permit to the waiter whose turn it is. Returns the waiters to be woken.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<Arc<dyn PermitWaiter>> {
        self.end_grants(now);
        let mut woken = Vec::new();
        self.paced = None;
        while self.all.has_free_slot() {
            let Some((tool, tenant)) = self.next(now) else { break };
            let turn = self.tenants[&tenant].turn;
            let line = self.queues.get_mut(&tool).expect("a waiter is queued there");
            let waiter = line.dequeue(&tenant, turn).expect("a waiter of this tenant is next");
            if line.is_empty() {
                self.waiting.remove(&tool);
            }
            self.queued -= 1;
            let entry = self.tenants.get_mut(&tenant).expect("it has a queued waiter");
            entry.queued -= 1;
            match waiter.waiter.upgrade() {
                Some(applicant) => {
                    self.grant(&tool, &tenant, waiter, now);
                    woken.push(applicant);
                }
                None => self.forget(&tool, &tenant),
            }
        }
        woken
    }

    /// When time alone frees capacity, saved as what the refill task waits for.
    pub(super) fn plan(&mut self) -> Option<Instant> {
        self.planned = self.due();
        self.planned
    }

    pub(super) fn is_due_earlier_than_planned(&self) -> bool {
        self.due().is_some_and(|due| self.planned.is_none_or(|planned| due < planned))
    }

    fn due(&self) -> Option<Instant> {
        let end = self.ends.front().map(|end| end.at);
        end.into_iter().chain(self.paced).min()
    }

    /// Whose turn it is among those with free capacity. Checks every queue once, and only its head.
    fn next(&mut self, now: Instant) -> Option<(ToolName, TenantId)> {
        let mut best: Option<((u64, QueuePosition), ToolName, TenantId)> = None;
        let mut paced: Option<Instant> = None;
        for tool in &self.waiting {
            let not_before = match opening(&self.queues[tool], &self.servers, now) {
                Ok(not_before) => not_before,
                Err(NoFreeSlot) => continue,
            };
            let line = self.queues.get_mut(tool).expect("a waiter is queued there");
            let Some((turn, place, tenant)) = line.head(&self.tenants) else { continue };
            if let Some(at) = not_before {
                paced = Some(paced.map_or(at, |earliest| earliest.min(at)));
                continue;
            }
            if best.as_ref().is_none_or(|(first, ..)| (turn, place) < *first) {
                best = Some(((turn, place), tool.clone(), tenant));
            }
        }
        self.paced = paced;
        best.map(|(_, tool, tenant)| (tool, tenant))
    }

    fn grant(&mut self, tool: &ToolName, tenant: &TenantId, waiter: QueuedWaiter, now: Instant) {
        self.acquire(tool, tenant, now);
        let number = self.next_number();
        self.tenants.get_mut(tenant).expect("it has a permit now").turn = number;
        let line = self.queues.get_mut(tool).expect("a permit of it is held now");
        let QueuedWaiter { address, waiter: applicant } = waiter;
        line.grants.insert(address, PermitGrant { number, tenant: tenant.clone(), _waiter: applicant });
        self.ends.push_back(GrantExpiry { at: now + GRANT_LIFETIME, tool: tool.clone(), address, number });
    }

    /// Takes back unclaimed grants.
    fn end_grants(&mut self, now: Instant) {
        while let Some(end) = self.ends.front() {
            let grants = self.queues.get(&end.tool).map(|line| &line.grants);
            let grant = grants.and_then(|grants| grants.get(&end.address));
            let tenant = grant.filter(|grant| grant.number == end.number).map(|grant| grant.tenant.clone());
            if tenant.is_some() && end.at > now {
                break;
            }
            let end = self.ends.pop_front().expect("it was there");
            if let Some(tenant) = tenant {
                self.claim(&end.tool, end.address);
                self.release(&end.tool, &tenant);
            }
        }
    }

    fn opening(&self, tool: &ToolName, now: Instant) -> Result<Option<Instant>, NoFreeSlot> {
        opening(&self.queues[tool], &self.servers, now)
    }

    fn acquire(&mut self, tool: &ToolName, tenant: &TenantId, now: Instant) {
        let line = self.queues.get_mut(tool).expect("the queue was prepared");
        let bay = self.servers.get_mut(&line.server).expect("every queue has its server");
        let entry = self.tenants.get_mut(tenant).expect("the tenant was prepared");
        self.all.used += 1;
        entry.slots.used += 1;
        for (places, pace) in [(&mut line.slots, &mut line.rate), (&mut bay.slots, &mut bay.rate)] {
            places.used += 1;
            if let Some(pace) = pace {
                pace.take(now);
            }
        }
    }

    /// Makes an entry for everything a call counts against.
    fn prepare(&mut self, tool: &ToolName, tenant: &TenantId) {
        if !self.tenants.contains_key(tenant) {
            let places = SlotUsage::new(self.limits.calls_per_tenant);
            self.tenants.insert(tenant.clone(), TenantShare { slots: places, turn: 0, queued: 0 });
        }
        if self.queues.contains_key(tool) {
            return;
        }
        let (server, name) = tool.as_str().split_once('.').unwrap_or((tool.as_str(), ""));
        let common = self.settings.get(server);
        if !self.servers.contains_key(server) {
            let max = common.and_then(|common| common.concurrency).unwrap_or(self.limits.calls_per_server);
            let pace = common.and_then(|common| common.rate).map(RateLimiter::new);
            self.servers.insert(server.to_owned(), ServerSlots { slots: SlotUsage::new(max), rate: pace });
        }
        let settings = common.and_then(|common| common.tools.get(name));
        let max = settings.and_then(|settings| settings.concurrency).unwrap_or(u32::MAX);
        let pace = settings.and_then(|settings| settings.rate).map(RateLimiter::new);
        self.queues.insert(tool.clone(), PermitQueue::new(server, SlotUsage::new(max), pace));
    }

    /// Drops idle entries, so that unused names cost nothing.
    pub(super) fn forget(&mut self, tool: &ToolName, tenant: &TenantId) {
        if self.tenants.get(tenant).is_some_and(|entry| entry.slots.used == 0 && entry.queued == 0) {
            self.tenants.remove(tenant);
        }
        if self.queues.get(tool).is_some_and(PermitQueue::is_idle) {
            self.queues.remove(tool);
        }
    }

    fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

/// A limit on concurrent calls is reached.
struct NoFreeSlot;

/// Whether a queue is open: now, or not before a time that its rates determine.
fn opening(
    line: &PermitQueue,
    servers: &HashMap<String, ServerSlots>,
    now: Instant,
) -> Result<Option<Instant>, NoFreeSlot> {
    let bay = &servers[&line.server];
    if !line.slots.has_free_slot() || !bay.slots.has_free_slot() {
        return Err(NoFreeSlot);
    }
    let paces = [&line.rate, &bay.rate].into_iter().flatten();
    Ok(paces.filter_map(|pace| pace.not_before(now)).max())
}
