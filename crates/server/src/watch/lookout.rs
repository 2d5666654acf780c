//! Keeps a lookout: follows the ledger, looks around from time to time, and sees to it that somebody is told.
//!
//! How far was read, what is the matter and which alerts there are is written in one piece, so that a process that ends
//! in the middle goes on where it was, and tells nobody twice.

use super::alert::Alert;
use super::judge::{Case, Ruling};
use super::matter::{Concern, Effect, Matter, Matters, Sightings, effects};
use super::notice::{self, Rung};
use super::plans::Plans;
use super::verify::Verified;
use super::{Patience, Watch, look};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::proof::Checked;
use rutter_core::port::register::{Change, Changes, Kind};
use rutter_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const MARK: &str = "lookout";
/// Entries read at once.
const STRETCH: u32 = 500;
/// So many entries that mean nothing here may be passed over before that is written down.
const PASSED_MAX: u64 = 5_000;
/// Alerts changed in one piece; the rest has its turn at the next look.
const CHANGED_MAX: usize = 400;
/// Alerts that are over and can still be looked at.
const HISTORY_MAX: usize = 1_000;
/// Looking at every execution that should move costs more than the rest.
const SILENCE_EVERY: Millis = Millis::seconds(60);
const VERIFY_EVERY: Millis = Millis::hours(24);
const VERIFY_AGAIN_AFTER: Millis = Millis::hours(1);

pub(super) async fn run(watch: &Watch, tenant: &TenantId) {
    let mut patience = Patience::default();
    loop {
        let kept = match Lookout::load(watch, tenant).await {
            Ok(lookout) => lookout.keep(&mut patience).await,
            Err(error) => Err(error),
        };
        match kept {
            Ok(never) => match never {},
            // Somebody has acknowledged an alert in the meantime: look at what there is now.
            Err(port::Error::Conflict { .. }) => {}
            Err(error) => {
                if !patience.wait("the lookout for alerts", &error).await {
                    return;
                }
            }
        }
    }
}

enum Never {}

/// What the ledger has told so far.
#[derive(Default, Serialize, Deserialize)]
struct Told {
    place: u64,
    matters: Matters,
}

struct Lookout<'a> {
    watch: &'a Watch,
    tenant: &'a TenantId,
    plans: Plans,
    told: Told,
    /// The place that is written down, and whether what else is written down is out of date.
    mark: u64,
    is_stale: bool,
    alerts: BTreeMap<String, Alert>,
    versions: BTreeMap<String, u64>,
    sightings: Sightings,
    silent: (Timestamp, Vec<Matter>),
    verified: Option<Verified>,
    /// Commands that are being started: alert and name.
    ringing: BTreeSet<(String, String)>,
}

impl<'a> Lookout<'a> {
    async fn load(watch: &'a Watch, tenant: &'a TenantId) -> Result<Lookout<'a>, port::Error> {
        let told = match watch.ports.register.find(tenant, Kind::Mark, MARK).await? {
            Some(note) => serde_json::from_value((*note.value).clone())
                .map_err(|error| port::Error::Corrupt(format!("the mark of the lookout: {error}")))?,
            None => Told::default(),
        };
        let mut lookout = Lookout {
            watch,
            tenant,
            plans: Plans::new(Arc::clone(&watch.ports.query), tenant.clone()),
            mark: told.place,
            told,
            is_stale: true,
            alerts: BTreeMap::new(),
            versions: BTreeMap::new(),
            sightings: Sightings::default(),
            silent: (Timestamp(i64::MIN), Vec::new()),
            verified: watch.verified(tenant).await?,
            ringing: BTreeSet::new(),
        };
        lookout.reload().await?;
        // What was raised and settled while nobody looked is told to nobody.
        let size = watch.ports.feed.size(tenant).await?;
        let mut before = None;
        while lookout.told.place < size && before != Some(lookout.told.place) {
            before = Some(lookout.told.place);
            lookout.read().await?;
        }
        Ok(lookout)
    }

    /// Reads the alerts anew: somebody may have acknowledged one.
    async fn reload(&mut self) -> Result<(), port::Error> {
        let notes = self.watch.notes(self.tenant, Kind::Alert).await?;
        self.versions = notes.iter().map(|note| (note.id.clone(), note.version)).collect();
        let alerts: Result<BTreeMap<String, Alert>, port::Error> =
            notes.iter().map(|note| Ok((note.id.clone(), Alert::read(note)?))).collect();
        self.alerts = alerts?;
        Ok(())
    }

    async fn keep(mut self, patience: &mut Patience) -> Result<Never, port::Error> {
        let watch = self.watch;
        let mut asked = watch.look_again.subscribe();
        let mut tick = tokio::time::interval(watch.options.tick);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut ringing, mut verifying) = (FuturesUnordered::new(), FuturesUnordered::new());
        let mut verify_at =
            self.verified.as_ref().map_or(Timestamp(i64::MIN), |it| it.at.0.plus(VERIFY_EVERY));
        loop {
            let is_time = tokio::select! {
                _ = tick.tick() => true,
                _ = asked.changed() => {
                    self.reload().await?;
                    true
                }
                grown = watch.ports.feed.beyond(self.tenant, self.told.place) => {
                    grown?;
                    self.read().await?
                }
                Some(rung) = ringing.next() => {
                    self.rung(rung).await?;
                    false
                }
                Some(checked) = verifying.next() => {
                    let checked: Result<Checked, port::Error> = checked;
                    if let Err(error) = &checked {
                        tracing::warn!(error.code = error.code(), %error, "the ledger could not be checked");
                    }
                    let pause = if checked.is_ok() { VERIFY_EVERY } else { VERIFY_AGAIN_AFTER };
                    verify_at = watch.now().plus(pause);
                    true
                }
            };
            if is_time {
                self.look().await?;
            }
            if verifying.is_empty() && watch.now() >= verify_at {
                verifying.push(watch.verify(self.tenant));
            }
            for (alert, command) in self.rings_due() {
                ringing.push(notice::ring(watch, self.tenant, alert, command));
            }
            patience.calm();
        }
    }

    /// Reads on in the ledger; true when something else is the matter than before.
    async fn read(&mut self) -> Result<bool, port::Error> {
        let stretch = self.watch.ports.feed.after(self.tenant, self.told.place, STRETCH).await?;
        let mut is_other = false;
        for placed in &stretch.items {
            for effect in effects(&placed.stored) {
                let plan = match effect {
                    Effect::Raise(_) => self.plans.of(&placed.stored).await?,
                    Effect::Settle(..) | Effect::Leave(..) | Effect::Forget(_) => None,
                };
                is_other |= self.told.matters.take(effect, plan.as_ref());
            }
        }
        self.told.place = stretch.until.max(self.told.place);
        self.is_stale |= is_other || self.told.place - self.mark > PASSED_MAX;
        if stretch.items.len() < STRETCH as usize {
            tokio::time::sleep(self.watch.options.gather).await;
        }
        Ok(self.is_stale)
    }

    /// Decides what somebody is told, puts it into the outbox, and writes it down.
    async fn look(&mut self) -> Result<(), port::Error> {
        let watch = self.watch;
        let now = watch.now();
        self.is_stale |= self.told.matters.age(now);
        let rules = watch.all_rules(self.tenant).await?;
        let silences = watch.all_silences(self.tenant).await?;
        let seen = self.around(now).await?;
        let matters: Vec<&Matter> = self.told.matters.iter().chain(&seen).collect();
        let case = Case { rules: &rules, silences: &silences, matters: &matters, alerts: &self.alerts, now };
        let mut rulings = case.rule();
        rulings.truncate(CHANGED_MAX);
        let told: Vec<&Alert> =
            rulings.iter().filter(|ruling| ruling.is_told).map(|ruling| &ruling.alert).collect();
        notice::put(watch, self.tenant, &told, &rules).await?;
        let over = silences.iter().filter(|silence| silence.until.0 <= now).map(|silence| &silence.id);
        let over: Vec<Change> = over.map(|id| Change::remove(Kind::Silence, id)).collect();
        self.write(&rulings, over, now).await?;
        told.into_iter().for_each(notice::log);
        watch.show_firing(
            self.tenant,
            self.alerts.values().filter(|alert| alert.is_firing()).cloned().collect(),
        );
        Ok(())
    }

    /// What can only be seen by looking.
    async fn around(&mut self, now: Timestamp) -> Result<Vec<Matter>, port::Error> {
        let (watch, tenant) = (self.watch, self.tenant);
        let mut seen = look::waiting(watch, tenant, now).await?;
        seen.extend(look::breakers(watch));
        seen.extend(look::dead_letters(watch, tenant, now).await?);
        self.verified = watch.verified(tenant).await?;
        if let Some(verified) = self.verified.as_ref().filter(|verified| !verified.clean) {
            let text = format!("the ledger is not what was written: {}", verified.findings.join("; "));
            let text = crate::words::cut(&text, 500);
            seen.push(look::thing(Concern::VerifyFailed, "ledger", verified.at.0, text, 0));
        }
        self.sightings.date(&mut seen);
        // How much is free is always to be said; since when it is too little only the rules know.
        seen.push(look::disk(watch, now).await?);
        if now >= self.silent.0.plus(SILENCE_EVERY) {
            self.silent = (now, look::silent(watch, tenant, now).await?);
        }
        seen.extend(self.silent.1.iter().cloned());
        Ok(seen)
    }

    async fn write(
        &mut self,
        rulings: &[Ruling],
        over: Vec<Change>,
        now: Timestamp,
    ) -> Result<(), port::Error> {
        if rulings.is_empty() && over.is_empty() && !self.is_stale {
            return Ok(());
        }
        let mut changes = over;
        let mut alerts = self.alerts.clone();
        for Ruling { alert, .. } in rulings {
            let version = self.versions.get(&alert.id).copied().unwrap_or(0);
            changes.push(Change::put(Kind::Alert, &alert.id, alert.value()).expecting(version));
            alerts.insert(alert.id.clone(), alert.clone());
        }
        let history: Vec<String> =
            alerts.values().filter(|alert| !alert.is_firing()).map(|alert| alert.id.clone()).collect();
        for id in history.iter().take(history.len().saturating_sub(HISTORY_MAX).min(CHANGED_MAX)) {
            // One that ends now and is the oldest all the same is not written at all.
            changes.retain(|change| change.kind != Kind::Alert || change.id != *id);
            changes.push(Change::remove(Kind::Alert, id));
            alerts.remove(id);
        }
        let told =
            serde_json::to_value(&self.told).expect("what was told has only text keys and whole numbers");
        changes.push(Change::put(Kind::Mark, MARK, told));
        let changes = Changes { tenant: self.tenant.clone(), at: now, changes, record: None };
        self.watch.ports.register.write(changes).await?;
        for Ruling { alert, .. } in rulings {
            *self.versions.entry(alert.id.clone()).or_insert(0) += 1;
        }
        self.versions.retain(|id, _| alerts.contains_key(id));
        (self.alerts, self.mark, self.is_stale) = (alerts, self.told.place, false);
        Ok(())
    }

    /// Commands that are to be started and are not under way.
    fn rings_due(&mut self) -> Vec<(Alert, String)> {
        let mut found = Vec::new();
        for alert in self.alerts.values() {
            for command in &alert.to_ring {
                if self.ringing.insert((alert.id.clone(), command.clone())) {
                    found.push((alert.clone(), command.clone()));
                }
            }
        }
        found
    }

    /// Writes down that a command has run, so that it is not started again.
    async fn rung(&mut self, Rung { alert, command }: Rung) -> Result<(), port::Error> {
        self.ringing.remove(&(alert.clone(), command.clone()));
        let Some(there) = self.alerts.get(&alert) else { return Ok(()) };
        let mut changed = there.clone();
        changed.to_ring.retain(|name| *name != command);
        let rulings = [Ruling { alert: changed, is_told: false }];
        self.write(&rulings, Vec::new(), self.watch.now()).await
    }
}
