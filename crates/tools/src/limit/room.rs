//! Who has a berth, who stands in which line, and what is granted next.

use super::GRANT_KEPT;
use super::line::{Grant, Line, Place, Places, Tenant, Tenants, Waiter};
use super::pace::Pace;
use crate::config::{Common, Limits};
use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::tools::Applicant;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Weak};
use tokio::time::Instant;

/// After [`Room::settle`] nobody stands in line who could have a berth.
#[derive(Debug)]
pub(super) struct Room {
    limits: Limits,
    settings: BTreeMap<String, Common>,
    all: Places,
    tenants: Tenants,
    servers: HashMap<String, Bay>,
    lines: HashMap<ToolName, Line>,
    /// Tools for which somebody stands in line.
    waiting: BTreeSet<ToolName>,
    standing: usize,
    /// Grants in the order in which they end; some have been used since.
    ends: VecDeque<End>,
    /// Counts turns, arrivals and grants, so that each has its own number.
    count: u64,
    /// When a rate next allows somebody in line to go on.
    paced: Option<Instant>,
    /// When the tender will look again by itself.
    planned: Option<Instant>,
}

#[derive(Debug)]
struct Bay {
    places: Places,
    pace: Option<Pace>,
}

#[derive(Debug)]
struct End {
    at: Instant,
    tool: ToolName,
    address: usize,
    number: u64,
}

impl Room {
    pub(super) fn new(limits: Limits, settings: BTreeMap<String, Common>) -> Room {
        Room {
            limits,
            settings,
            all: Places::new(limits.calls),
            tenants: HashMap::new(),
            servers: HashMap::new(),
            lines: HashMap::new(),
            waiting: BTreeSet::new(),
            standing: 0,
            ends: VecDeque::new(),
            count: 0,
            paced: None,
            planned: None,
        }
    }

    pub(super) fn occupied(&self) -> u32 {
        self.all.used
    }

    pub(super) fn standing(&self) -> usize {
        self.standing
    }

    /// Takes the berth that was granted to this address, if one was.
    pub(super) fn claim(&mut self, tool: &ToolName, address: usize) -> bool {
        self.lines.get_mut(tool).is_some_and(|line| line.grants.remove(&address).is_some())
    }

    /// Takes a berth if there is room in every respect.
    pub(super) fn try_occupy(&mut self, tool: &ToolName, tenant: &TenantId, now: Instant) -> bool {
        self.prepare(tool, tenant);
        let is_free = self.all.has_room()
            && self.tenants[tenant].places.has_room()
            && self.opening(tool, now).is_ok_and(|not_before| not_before.is_none());
        if is_free {
            self.occupy(tool, tenant, now);
        }
        is_free
    }

    pub(super) fn stands(&self, tool: &ToolName, address: usize) -> bool {
        self.lines.get(tool).is_some_and(|line| line.stands(address))
    }

    pub(super) fn stand(
        &mut self,
        tool: &ToolName,
        tenant: &TenantId,
        priority: i32,
        address: usize,
        applicant: Weak<dyn Applicant>,
    ) {
        let number = self.next_number();
        self.prepare(tool, tenant);
        let entry = self.tenants.get_mut(tenant).expect("prepared above");
        if entry.standing == 0 {
            entry.turn = number;
        }
        entry.standing += 1;
        self.standing += 1;
        let line = self.lines.get_mut(tool).expect("prepared above");
        line.stand(tenant, entry.turn, (Reverse(priority), number), Waiter { address, applicant });
        self.waiting.insert(tool.clone());
    }

    pub(super) fn vacate(&mut self, tool: &ToolName, tenant: &TenantId) {
        let line = self.lines.get_mut(tool).expect("a line stays while a berth of it is taken");
        let bay = self.servers.get_mut(&line.server).expect("a server stays while a berth of it is taken");
        let entry = self.tenants.get_mut(tenant).expect("a tenant stays while it has a berth");
        self.all.used -= 1;
        line.places.used -= 1;
        bay.places.used -= 1;
        entry.places.used -= 1;
        self.forget(tool, tenant);
    }

    /// Grants everything that is free to those whose turn it is. They are to be woken.
    pub(super) fn settle(&mut self, now: Instant) -> Vec<Arc<dyn Applicant>> {
        self.end_grants(now);
        let mut woken = Vec::new();
        self.paced = None;
        while self.all.has_room() {
            let Some((tool, tenant)) = self.next(now) else { break };
            let turn = self.tenants[&tenant].turn;
            let line = self.lines.get_mut(&tool).expect("somebody stands there");
            let waiter = line.leave(&tenant, turn).expect("somebody of this tenant is next");
            if line.is_empty() {
                self.waiting.remove(&tool);
            }
            self.standing -= 1;
            let entry = self.tenants.get_mut(&tenant).expect("it stands in a line");
            entry.standing -= 1;
            match waiter.applicant.upgrade() {
                Some(applicant) => {
                    self.grant(&tool, &tenant, waiter, now);
                    woken.push(applicant);
                }
                None => self.forget(&tool, &tenant),
            }
        }
        woken
    }

    /// When time by itself will make room, noted as what the tender waits for.
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

    /// Whose turn it is among those for whom there is room. Looks at every line once, and at its head only.
    fn next(&mut self, now: Instant) -> Option<(ToolName, TenantId)> {
        let mut best: Option<((u64, Place), ToolName, TenantId)> = None;
        let mut paced: Option<Instant> = None;
        for tool in &self.waiting {
            let not_before = match opening(&self.lines[tool], &self.servers, now) {
                Ok(not_before) => not_before,
                Err(Full) => continue,
            };
            let line = self.lines.get_mut(tool).expect("somebody stands there");
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

    fn grant(&mut self, tool: &ToolName, tenant: &TenantId, waiter: Waiter, now: Instant) {
        self.occupy(tool, tenant, now);
        let number = self.next_number();
        self.tenants.get_mut(tenant).expect("it has a berth now").turn = number;
        let line = self.lines.get_mut(tool).expect("a berth of it is taken now");
        let Waiter { address, applicant } = waiter;
        line.grants.insert(address, Grant { number, tenant: tenant.clone(), _applicant: applicant });
        self.ends.push_back(End { at: now + GRANT_KEPT, tool: tool.clone(), address, number });
    }

    /// Takes back what nobody came for.
    fn end_grants(&mut self, now: Instant) {
        while let Some(end) = self.ends.front() {
            let grants = self.lines.get(&end.tool).map(|line| &line.grants);
            let grant = grants.and_then(|grants| grants.get(&end.address));
            let tenant = grant.filter(|grant| grant.number == end.number).map(|grant| grant.tenant.clone());
            if tenant.is_some() && end.at > now {
                break;
            }
            let end = self.ends.pop_front().expect("it was there");
            if let Some(tenant) = tenant {
                self.claim(&end.tool, end.address);
                self.vacate(&end.tool, &tenant);
            }
        }
    }

    fn opening(&self, tool: &ToolName, now: Instant) -> Result<Option<Instant>, Full> {
        opening(&self.lines[tool], &self.servers, now)
    }

    fn occupy(&mut self, tool: &ToolName, tenant: &TenantId, now: Instant) {
        let line = self.lines.get_mut(tool).expect("there is a line for whoever asks");
        let bay = self.servers.get_mut(&line.server).expect("every line has its server");
        let entry = self.tenants.get_mut(tenant).expect("whoever asks is known");
        self.all.used += 1;
        entry.places.used += 1;
        for (places, pace) in [(&mut line.places, &mut line.pace), (&mut bay.places, &mut bay.pace)] {
            places.used += 1;
            if let Some(pace) = pace {
                pace.take(now);
            }
        }
    }

    /// Makes an entry for everything a call counts against.
    fn prepare(&mut self, tool: &ToolName, tenant: &TenantId) {
        if !self.tenants.contains_key(tenant) {
            let places = Places::new(self.limits.calls_per_tenant);
            self.tenants.insert(tenant.clone(), Tenant { places, turn: 0, standing: 0 });
        }
        if self.lines.contains_key(tool) {
            return;
        }
        let (server, name) = tool.as_str().split_once('.').unwrap_or((tool.as_str(), ""));
        let common = self.settings.get(server);
        if !self.servers.contains_key(server) {
            let max = common.and_then(|common| common.concurrency).unwrap_or(self.limits.calls_per_server);
            let pace = common.and_then(|common| common.rate).map(Pace::new);
            self.servers.insert(server.to_owned(), Bay { places: Places::new(max), pace });
        }
        let settings = common.and_then(|common| common.tools.get(name));
        let max = settings.and_then(|settings| settings.concurrency).unwrap_or(u32::MAX);
        let pace = settings.and_then(|settings| settings.rate).map(Pace::new);
        self.lines.insert(tool.clone(), Line::new(server, Places::new(max), pace));
    }

    /// Drops entries that say nothing any more, so that names nobody uses now cost nothing.
    pub(super) fn forget(&mut self, tool: &ToolName, tenant: &TenantId) {
        if self.tenants.get(tenant).is_some_and(|entry| entry.places.used == 0 && entry.standing == 0) {
            self.tenants.remove(tenant);
        }
        if self.lines.get(tool).is_some_and(Line::is_idle) {
            self.lines.remove(tool);
        }
    }

    fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }
}

/// As many at once as there may be.
struct Full;

/// Whether a line is open: now, or not before a time that its rates say.
fn opening(line: &Line, servers: &HashMap<String, Bay>, now: Instant) -> Result<Option<Instant>, Full> {
    let bay = &servers[&line.server];
    if !line.places.has_room() || !bay.places.has_room() {
        return Err(Full);
    }
    let paces = [&line.pace, &bay.pace].into_iter().flatten();
    Ok(paces.filter_map(|pace| pace.not_before(now)).max())
}
