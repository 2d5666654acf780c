//! Random requests, most of which are valid.

use crate::differential::both::Both;
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::event::Event;
use rutter_core::plan::Plan;
use rutter_core::port::journal::{
    AppendOutcome, AppendRequest, ClaimRequest, EnqueueOutcome, ExecutionOpening, Lease, NewCommand, NewRevision,
    OpenOutcome, PlanState, PlanStateChange, RevisionScope,
};
use rutter_core::port::query::{EntryFilter, ExecutionFilter, Pagination, PlanFilter, TimeRange};
use rutter_core::port::upkeep::{CleanedPart, CleaningRequest, ErasureRequest};
use rutter_core::time::{Millis, Timestamp};
use rutter_store::wait;
use rutter_testkit::chance::SeededRandom;
use rutter_testkit::conformance::{ConformanceWriter, plan_with, request, worker};
use serde_json::json;
use std::sync::Arc;

const TENANTS: [&str; 2] = ["harbour", "elsewhere"];
const PLANS: [&str; 3] = ["plan_1", "plan_2", "plan_3"];
const WORKERS: [&str; 3] = ["worker_1", "worker_2", "worker_3"];
const WORDS: [&str; 5] = ["anchor", "Sail", "rudder anchor", "no-wind", "sail; rudder"];

/// The sender of requests, and what it remembers of replies.
pub struct Requests<'a> {
    pub both: Both<'a>,
    chance: SeededRandom,
    now: Timestamp,
    plans: Vec<Arc<Plan>>,
    pens: Vec<ConformanceWriter>,
    /// Every lease there ever was.
    leases: Vec<Lease>,
    commands: Vec<u64>,
    /// The last append, to be repeated.
    append: Option<AppendRequest>,
}

impl<'a> Requests<'a> {
    pub fn new(both: Both<'a>, seed: u64) -> Requests<'a> {
        let plan = |at: u32| {
            let tag = ["old", "new", "both"][at as usize % 3];
            let fields = json!({ "tags": [tag, "all"], "goal": format!("goal {at}") });
            plan_with(&format!("plan {at}"), fields)
        };
        Requests {
            both,
            // Neighbouring seeds share a stream; streams seeded from their first draw do not.
            chance: SeededRandom::new(SeededRandom::new(seed).draw()),
            now: Timestamp(1_000),
            plans: (0..4).map(plan).collect(),
            pens: Vec::new(),
            leases: Vec::new(),
            commands: Vec::new(),
            append: None,
        }
    }

    pub fn next(&mut self) {
        self.now = self.now.plus(Millis(self.chance.below(3)));
        match self.chance.below(41) {
            0..=3 => self.save(),
            4..=8 => self.open(),
            9..=11 => self.renew(),
            12..=15 => self.claim(),
            16..=23 => self.append(),
            24..=26 => self.post(),
            27 => self.release(),
            28..=29 => self.load(),
            30 => self.erase(),
            31..=32 => self.clean(),
            33..=34 => self.find_executions(),
            35..=36 => self.find_entries(),
            37..=38 => self.find_plans(),
            39 => self.change_plan(),
            _ => self.look_at_totals(),
        }
    }

    /// Compares everything both have in the end.
    pub fn look_at_everything(&mut self) {
        for pen in self.pens.clone() {
            self.load_one(&pen.identity);
        }
        for tenant in TENANTS.map(TenantId::new) {
            self.both.list(&"all executions", 3, |store, page| store.executions(&tenant, Default::default(), page));
            self.both.list(&"all entries", 7, |store, page| store.entries(&tenant, Default::default(), page));
            self.both.list(&"all plans", 2, |store, page| store.plans(&tenant, Default::default(), page));
            let own = EntryFilter { execution: Some(ExecutionId::new("ledger")), ..EntryFilter::default() };
            self.both.list(&own, 5, |store, page| store.entries(&tenant, own.clone(), page));
        }
        self.look_at_totals();
    }

    fn tenant(&mut self) -> TenantId {
        TenantId::new(TENANTS[usize::from(self.chance.percent(20))])
    }

    fn name(&mut self, names: &[&'static str]) -> &'static str {
        names[self.chance.index(names.len())]
    }

    fn actor(&mut self) -> Actor {
        self.chance.pick(&[Actor::rutter(), Actor::agent("pilot"), Actor::person("operator")]).clone()
    }

    fn plan_id(&mut self) -> PlanId {
        PlanId::new(self.name(&PLANS))
    }

    /// Mostly an existing execution.
    fn identity(&mut self) -> ExecutionIdentity {
        let tenant = self.tenant();
        let other =
            ExecutionIdentity { tenant, execution: ExecutionId::new(self.name(&["exec_0", "ledger", "nobody"])) };
        match self.pens.is_empty() || self.chance.percent(5) {
            true => other,
            false => self.chance.pick(&self.pens).identity.clone(),
        }
    }

    fn lease(&mut self, identity: &ExecutionIdentity) -> Lease {
        let of: Vec<&Lease> = self.leases.iter().filter(|lease| lease.identity == *identity).collect();
        match of.last() {
            Some(newest) if self.chance.percent(90) => (*newest).clone(),
            Some(_) => (*self.chance.pick(&of)).clone(),
            None => {
                let (name, epoch) = (*self.chance.pick(&WORKERS), self.chance.below(3));
                Lease { identity: identity.clone(), worker: worker(name), epoch }
            }
        }
    }

    fn save(&mut self) {
        let new = NewRevision {
            tenant: self.tenant(),
            id: self.plan_id(),
            plan: self.chance.pick(&self.plans).clone(),
            expected: *self.chance.pick(&[None, None, None, Some(0), Some(1), Some(2)]),
            scope: *self.chance.pick(&[RevisionScope::Plan, RevisionScope::Plan, RevisionScope::Execution]),
            actor: self.actor(),
            at: self.now,
        };
        self.both.ask(&new, |store| store.save(new.clone()));
    }

    fn change_plan(&mut self) {
        let change = PlanStateChange {
            tenant: self.tenant(),
            id: self.plan_id(),
            to: *self.chance.pick(&[PlanState::Active, PlanState::Archived, PlanState::Deleted]),
            actor: self.actor(),
            at: self.now,
            reason: "tidying up".to_owned(),
        };
        self.both.ask(&change, |store| store.change_plan(change.clone()));
    }

    fn open(&mut self) {
        let tenant = self.tenant();
        // Now and then an id that is taken.
        let execution = match self.pens.len() as u64 {
            known if self.chance.percent(10) => self.chance.below(known + 1),
            known => known,
        };
        let identity = ExecutionIdentity { tenant, execution: ExecutionId::new(&format!("exec_{execution}")) };
        let plan = self.chance.pick(&self.plans).clone();
        let mut pen = ConformanceWriter::new(identity, self.plan_id().as_str(), &plan, self.now);
        self.dress(&mut pen);
        let key = format!("key-{}", self.chance.below(30));
        let about = self.chance.below(2).to_string();
        let opening = ExecutionOpening {
            request: request(&key, &about).filter(|_| self.chance.percent(30)),
            worker: self.chance.percent(60).then(|| worker(self.name(&WORKERS))),
            ..pen.opening()
        };
        let opened = self.both.ask(&opening, |store| store.open(opening.clone()));
        if let Some(OpenOutcome::New { lease }) = opened {
            self.leases.extend(lease);
            self.pens.push(pen);
        }
    }

    /// Fills a row as a worker might.
    fn dress(&mut self, pen: &mut ConformanceWriter) {
        let later = self.now.plus(Millis(self.chance.below(20)));
        pen.row.due_at = *self.chance.pick(&[None, Some(self.now), Some(later)]);
        pen.row.status = *self.chance.pick(&ExecutionStatus::ALL);
        pen.row.questions = u32::from(self.chance.percent(30));
        pen.row.last_at = self.now;
    }

    fn renew(&mut self) {
        let (name, until) = (worker(self.name(&WORKERS)), self.now.plus(Millis(self.chance.below(12))));
        self.both.ask(&("renew", &name, until), |store| store.renew(&name, until));
    }

    fn claim(&mut self) {
        let name = worker(self.name(&WORKERS));
        let claim = ClaimRequest { worker: name, now: self.now, limit: self.chance.below(4) as u32 };
        let leases = self.both.ask(&claim, |store| store.claim(claim.clone()));
        self.leases.extend(leases.into_iter().flatten());
    }

    fn append(&mut self) {
        if self.pens.is_empty() {
            return;
        }
        if let Some(again) = self.append.clone().filter(|_| self.chance.percent(10)) {
            self.both.ask(&again, |store| store.append(again.clone()));
            return;
        }
        let at = self.chance.index(self.pens.len());
        let mut pen = self.pens[at].clone();
        let expected = pen.head();
        pen.now = self.now;
        self.dress(&mut pen);
        let mut entries = Vec::new();
        for _ in 0..self.chance.below(4) {
            let (words, actor) = (*self.chance.pick(&WORDS), self.actor());
            entries.push(match self.chance.percent(60) {
                true => pen.note_with(words, json!({ "n": self.chance.below(1_000), "text": words })),
                false => pen.seal_as(actor, Event::Paused { reason: words.into() }),
            });
        }
        if self.chance.percent(3) && !entries.is_empty() {
            entries.remove(0);
        }
        pen.lease = self.lease(&pen.identity);
        let consumed = self.commands.iter().filter(|_| self.chance.percent(30)).copied().collect();
        let append = AppendRequest { decided_commands: consumed, ..pen.append(expected, entries) };
        if self.both.ask(&append, |store| store.append(append.clone())) == Some(AppendOutcome::New) {
            self.pens[at] = pen;
            self.append = Some(append);
        }
    }

    fn post(&mut self) {
        let key = format!("key-{}", self.chance.below(30));
        let about = self.chance.below(2).to_string();
        let stored_command = NewCommand {
            identity: self.identity(),
            request: request(&key, &about).filter(|_| self.chance.percent(50)),
            actor: self.actor(),
            at: self.now,
            bytes: key.into_bytes(),
        };
        let form = self.both.ask(&stored_command, |store| store.enqueue(stored_command.clone()));
        if let Some(EnqueueOutcome::New { command }) = form {
            self.commands.push(command);
        }
    }

    fn release(&mut self) {
        let identity = self.identity();
        let lease = self.lease(&identity);
        self.both.ask(&("release", &lease), |store| store.release(lease.clone()));
    }

    fn load(&mut self) {
        let identity = self.identity();
        self.load_one(&identity);
    }

    fn load_one(&mut self, identity: &ExecutionIdentity) {
        self.both.compare(&("load", identity), |store| {
            let loaded = wait(store.load(identity))?;
            Ok((loaded.head, loaded.plan, loaded.records, loaded.commands))
        });
        self.both.ask(&("find", identity), |store| store.execution(identity));
    }

    fn erase(&mut self) {
        let some = (0..self.chance.below(4)).map(|_| self.chance.below(6)).collect();
        let erasure = ErasureRequest {
            identity: self.identity(),
            entries: self.chance.percent(60).then_some(some),
            actor: self.actor(),
            at: self.now,
            reason: "asked to forget".into(),
        };
        self.both.ask(&erasure, |store| store.erase(erasure.clone()));
    }

    fn clean(&mut self) {
        let statuses = [
            vec![],
            vec![ExecutionStatus::Completed],
            vec![ExecutionStatus::Failed, ExecutionStatus::Partial],
            vec![ExecutionStatus::Running],
        ];
        let cleaning = CleaningRequest {
            tenant: self.tenant(),
            statuses: self.chance.pick(&statuses).clone(),
            untouched_since: Timestamp(self.now.0 - self.chance.below(60) as i64),
            what: *self.chance.pick(&[CleanedPart::Payloads, CleanedPart::Payloads, CleanedPart::Executions]),
            dry_run: self.chance.percent(50),
            actor: self.actor(),
            at: self.now,
            reason: "old anchor".into(),
        };
        self.both.ask(&cleaning, |store| store.clean(cleaning.clone()));
    }

    fn text(&mut self) -> Option<String> {
        self.chance.percent(40).then(|| (*self.chance.pick(&WORDS)).to_owned())
    }

    fn between(&mut self) -> TimeRange {
        let mut time = || self.chance.percent(25).then(|| Timestamp(1_000 + self.chance.below(400) as i64));
        TimeRange { from: time(), until: time() }
    }

    fn find_executions(&mut self) {
        let (tenant, limit) = (self.tenant(), 1 + self.chance.below(9) as u32);
        let statuses = ExecutionStatus::ALL.into_iter().filter(|_| self.chance.percent(30)).collect();
        let filter = ExecutionFilter {
            plan: self.chance.percent(30).then(|| self.plan_id()),
            tag: self.chance.percent(30).then(|| (*self.chance.pick(&["old", "all", "none"])).to_owned()),
            statuses: if self.chance.percent(50) { statuses } else { Vec::new() },
            asking: self.chance.percent(20),
            opened: self.between(),
            text: if self.chance.percent(10) { Some("goal 1 plan".into()) } else { self.text() },
        };
        self.both.list(&filter, limit, |store, page| store.executions(&tenant, filter.clone(), page));
    }

    fn find_entries(&mut self) {
        let (tenant, limit) = (self.tenant(), 1 + self.chance.below(9) as u32);
        let kinds = ["paused", "decision_recorded", "execution_opened", "plan_saved"];
        let filter = EntryFilter {
            execution: self.chance.percent(40).then(|| self.identity().execution),
            kinds: kinds.iter().filter(|_| self.chance.percent(25)).map(|kind| (*kind).to_owned()).collect(),
            actor: self.chance.percent(25).then(|| self.actor()),
            at: self.between(),
            text: self.text(),
        };
        self.both.list(&filter, limit, |store, page| store.entries(&tenant, filter.clone(), page));
    }

    fn find_plans(&mut self) {
        let (tenant, id, limit) = (self.tenant(), self.plan_id(), 1 + self.chance.below(3) as u32);
        let filter = PlanFilter {
            archived: self.chance.percent(25),
            name: self.chance.percent(25).then(|| "plan 1".to_owned()),
            tag: self.chance.percent(25).then(|| "both".to_owned()),
            text: self.chance.percent(25).then(|| "goal 2".to_owned()),
        };
        self.both.list(&filter, limit, |store, page| store.plans(&tenant, filter.clone(), page));
        let revision = *self.chance.pick(&[None, Some(1), Some(2), Some(5)]);
        self.both.compare(&("plan", &id, revision), |store| {
            let found = wait(store.plan(&tenant, &id, revision))?;
            Ok(found.map(|found| (found.summary, found.plan.hash)))
        });
    }

    fn look_at_totals(&mut self) {
        for tenant in TENANTS.map(TenantId::new) {
            self.both.ask(&("totals", &tenant), |store| store.totals(&tenant));
        }
        let page = Pagination::first(self.chance.below(3) as u32 * 600);
        let tenant = self.tenant();
        self.both.compare(&page, |store| {
            let found = wait(store.executions(&tenant, Default::default(), page.clone()))?;
            Ok(found.items)
        });
    }
}
