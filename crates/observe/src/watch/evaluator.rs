//! The alert evaluator: follows the ledger, inspects the rest periodically, and sends notices.
//!
//! The position, the active conditions and the alerts are saved in one write, so after a crash the evaluator resumes
//! where it was and repeats no notice.

use super::alert::AlertRecord;
use super::condition::{ActiveCondition, ActiveConditions, AlertKind, ConditionChange, ConditionSightings, effects};
use super::evaluation::{AlertDecision, AlertEvaluation};
use super::execution_state::ExecutionState;
use super::notice::{self, CommandEnded};
use super::plans::PlanNameCache;
use super::rule::{AlertRule, AlertSeverity};
use super::verify::LedgerVerification;
use super::{StoreBackoff, WatchService, inspection};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::port;
use rutter_core::port::proof::LedgerCheck;
use rutter_core::port::register::{RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::text::cut;
use rutter_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const MARK: &str = "lookout";
/// Entries read at once.
const STRETCH: u32 = 500;
/// Irrelevant entries that may be skipped before the position is saved.
const PASSED_MAX: u64 = 5_000;
/// Alerts changed in one evaluation, the most severe first; the next one follows at once.
const CHANGED_MAX: usize = 400;
/// Commands run at once; those of the most severe alerts are started first.
const COMMANDS_MAX: usize = 16;
/// Resolved alerts that are retained.
const HISTORY_MAX: usize = 1_000;
/// Looking for stuck executions costs more than the other inspections.
const SILENCE_EVERY: Millis = Millis::seconds(60);
const VERIFY_EVERY: Millis = Millis::hours(24);
const VERIFY_AGAIN_AFTER: Millis = Millis::hours(1);

pub async fn run(watch: &WatchService, tenant: &TenantId) {
    let mut patience = StoreBackoff::default();
    loop {
        let stored = match AlertEvaluator::load(watch, tenant).await {
            Ok(evaluator) => evaluator.run(&mut patience).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(never) => match never {},
            // An alert was acknowledged in the meantime: reload and evaluate again.
            Err(port::Error::Conflict { .. }) => {}
            Err(error) => {
                if !patience.wait("the alert evaluator", &error).await {
                    return;
                }
            }
        }
    }
}

enum EvaluatorNever {}

/// What was derived from the ledger up to a position.
#[derive(Default, Serialize, Deserialize)]
struct LedgerConditions {
    place: u64,
    #[serde(flatten)]
    conditions: ActiveConditions,
}

struct AlertEvaluator<'a> {
    watch: &'a WatchService,
    tenant: &'a TenantId,
    plans: PlanNameCache,
    ledger: LedgerConditions,
    /// The saved position, and whether the saved conditions are out of date.
    mark: u64,
    is_stale: bool,
    alerts: BTreeMap<String, AlertRecord>,
    versions: BTreeMap<String, u64>,
    sightings: ConditionSightings,
    silent: (Timestamp, Vec<ActiveCondition>),
    verified: Option<LedgerVerification>,
    /// Commands being run: alert and name.
    running_commands: BTreeSet<(String, String)>,
}

impl<'a> AlertEvaluator<'a> {
    async fn load(watch: &'a WatchService, tenant: &'a TenantId) -> Result<AlertEvaluator<'a>, port::Error> {
        let ledger_conditions = match watch.ports.register.find(tenant, RegisterKind::Mark, MARK).await? {
            Some(note) => serde_json::from_value((*note.value).clone())
                .map_err(|error| port::Error::Corrupt(format!("the position of the alert evaluator: {error}")))?,
            None => LedgerConditions::default(),
        };
        let mut evaluator = AlertEvaluator {
            watch,
            tenant,
            plans: PlanNameCache::new(Arc::clone(&watch.ports.query), tenant.clone()),
            mark: ledger_conditions.place,
            ledger: ledger_conditions,
            is_stale: true,
            alerts: BTreeMap::new(),
            versions: BTreeMap::new(),
            sightings: ConditionSightings::default(),
            silent: (Timestamp(i64::MIN), Vec::new()),
            verified: watch.verified(tenant).await?,
            running_commands: BTreeSet::new(),
        };
        evaluator.reload().await?;
        // Catch up before evaluating: conditions raised and settled during the downtime raise no alert.
        let size = watch.ports.feed.size(tenant).await?;
        let mut before = None;
        while evaluator.ledger.place < size && before != Some(evaluator.ledger.place) {
            before = Some(evaluator.ledger.place);
            evaluator.read().await?;
        }
        Ok(evaluator)
    }

    /// Reloads the alerts: one may have been acknowledged.
    async fn reload(&mut self) -> Result<(), port::Error> {
        let notes = self.watch.notes(self.tenant, RegisterKind::Alert).await?;
        self.versions = notes.iter().map(|note| (note.id.clone(), note.version)).collect();
        let alerts: Result<BTreeMap<String, AlertRecord>, port::Error> =
            notes.iter().map(|note| Ok((note.id.clone(), AlertRecord::read(note)?))).collect();
        self.alerts = alerts?;
        Ok(())
    }

    async fn run(mut self, patience: &mut StoreBackoff) -> Result<EvaluatorNever, port::Error> {
        let watch = self.watch;
        let mut asked = watch.alerts_changed.subscribe();
        let mut tick = tokio::time::interval(watch.options.tick);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let (mut ringing, mut verifying) = (FuturesUnordered::new(), FuturesUnordered::new());
        let mut verify_at = self.verified.as_ref().map_or(Timestamp(i64::MIN), |it| it.at.0.plus(VERIFY_EVERY));
        loop {
            let is_time = tokio::select! {
                _ = tick.tick() => true,
                _ = asked.changed() => {
                    self.reload().await?;
                    true
                }
                grown = watch.ports.feed.wait_beyond(self.tenant, self.ledger.place) => {
                    grown?;
                    self.read().await?
                }
                Some(rung) = ringing.next() => {
                    self.on_command_ended(rung).await?;
                    false
                }
                Some(checked) = verifying.next() => {
                    let checked: Result<LedgerCheck, port::Error> = checked;
                    if let Err(error) = &checked {
                        tracing::warn!(error.code = error.code(), %error, "the ledger could not be checked");
                    }
                    let pause = if checked.is_ok() { VERIFY_EVERY } else { VERIFY_AGAIN_AFTER };
                    verify_at = watch.now().plus(pause);
                    true
                }
            };
            if is_time && !self.look().await? {
                tick.reset_immediately();
            }
            if verifying.is_empty() && watch.now() >= verify_at {
                verifying.push(watch.verify(self.tenant));
            }
            for (alert, command) in self.commands_due() {
                ringing.push(notice::run_command(watch, self.tenant, alert, command));
            }
            patience.reset();
        }
    }

    /// Reads the next entries; true when conditions changed.
    async fn read(&mut self) -> Result<bool, port::Error> {
        let stretch = self.watch.ports.feed.entries_after(self.tenant, self.ledger.place, STRETCH).await?;
        let mut is_other = false;
        for placed in &stretch.items {
            for effect in effects(&placed.stored) {
                let plan = match effect {
                    ConditionChange::Raise(_) => self.plans.of(&placed.stored).await?,
                    ConditionChange::Settle(..)
                    | ConditionChange::Hear(..)
                    | ConditionChange::Leave(..)
                    | ConditionChange::Forget(_) => None,
                };
                is_other |= self.ledger.conditions.take(effect, plan.as_ref());
            }
        }
        if self.ledger.conditions.are_too_many() {
            let rules = self.watch.all_rules(self.tenant).await?;
            let severity = |condition: &ActiveCondition| {
                rules.iter().filter(|rule| rule.concerns(condition)).map(|rule| rule.severity).max()
            };
            self.ledger.conditions.limit(severity, self.watch.now());
        }
        self.ledger.place = stretch.until.max(self.ledger.place);
        self.is_stale |= is_other || self.ledger.place - self.mark > PASSED_MAX;
        if stretch.items.len() < STRETCH as usize {
            tokio::time::sleep(self.watch.options.gather).await;
        }
        Ok(self.is_stale)
    }

    /// Evaluates the rules, puts notices into the outbox, and saves the result; false if more is to be done.
    async fn look(&mut self) -> Result<bool, port::Error> {
        let watch = self.watch;
        let now = watch.now();
        self.is_stale |= self.ledger.conditions.age(now);
        let rules = watch.all_rules(self.tenant).await?;
        let silences = watch.all_silences(self.tenant).await?;
        let seen = self.inspect(now).await?;
        let actives: Vec<&ActiveCondition> = self.ledger.conditions.iter().chain(&seen).collect();
        let evaluation = AlertEvaluation {
            rules: &rules,
            silences: &silences,
            conditions: &actives,
            left_out: self.ledger.conditions.left_out(),
            alerts: &self.alerts,
            now,
        };
        let mut decisions = evaluation.evaluate();
        let is_done = decisions.len() <= CHANGED_MAX;
        decisions.truncate(CHANGED_MAX);
        // What is critical is sent before the executions of all the others are read.
        let others = decisions.split_off(decisions.partition_point(|it| it.alert.severity == AlertSeverity::Critical));
        let over = silences.iter().filter(|silence| silence.until.0 <= now).map(|silence| &silence.id);
        let over: Vec<RegisterChange> = over.map(|id| RegisterChange::remove(RegisterKind::Silence, id)).collect();
        self.send(decisions, over, &rules, now).await?;
        self.send(others, Vec::new(), &rules, now).await?;
        let firing = self.alerts.values().filter(|alert| alert.is_firing()).map(AlertRecord::with_cause);
        watch.publish_firing(self.tenant, firing.collect());
        Ok(is_done)
    }

    /// Puts the notices of some decisions into the outbox, and saves them.
    async fn send(
        &mut self,
        mut decisions: Vec<AlertDecision>,
        over: Vec<RegisterChange>,
        rules: &[AlertRule],
        now: Timestamp,
    ) -> Result<(), port::Error> {
        for AlertDecision { alert, is_notified } in &mut decisions {
            if let (true, Some(execution)) = (*is_notified, &alert.execution) {
                let execution = ExecutionId::new(execution);
                alert.execution_state = ExecutionState::after(self.watch, self.tenant, &execution, None).await?;
            }
        }
        let notified = decisions.iter().filter(|decision| decision.is_notified);
        let told: Vec<AlertRecord> = notified.map(|decision| decision.alert.with_cause()).collect();
        let alert_records: Vec<&AlertRecord> = told.iter().collect();
        notice::enqueue_notices(self.watch, self.tenant, &alert_records, rules).await?;
        self.write(&decisions, over, now).await?;
        alert_records.into_iter().for_each(notice::log);
        Ok(())
    }

    /// Conditions that no ledger entry shows.
    async fn inspect(&mut self, now: Timestamp) -> Result<Vec<ActiveCondition>, port::Error> {
        let (watch, tenant) = (self.watch, self.tenant);
        let mut seen = inspection::waiting(watch, tenant, now).await?;
        seen.extend(inspection::breakers(watch));
        seen.extend(inspection::dead_letters(watch, tenant, now).await?);
        self.verified = watch.verified(tenant).await?;
        if let Some(verified) = self.verified.as_ref().filter(|verified| !verified.clean) {
            let text = format!("ledger verification failed: {}", verified.findings.join("; "));
            let text = cut(&text, 500);
            seen.push(inspection::condition(AlertKind::VerifyFailed, "ledger", verified.at.0, text, 0));
        }
        self.sightings.date(&mut seen);
        // Free space is always reported; only the rules know when it is too little.
        seen.push(inspection::disk(watch, now).await?);
        if now >= self.silent.0.plus(SILENCE_EVERY) {
            self.silent = (now, inspection::silent(watch, tenant, now).await?);
        }
        seen.extend(self.silent.1.iter().cloned());
        Ok(seen)
    }

    async fn write(
        &mut self,
        decisions: &[AlertDecision],
        over: Vec<RegisterChange>,
        now: Timestamp,
    ) -> Result<(), port::Error> {
        if decisions.is_empty() && over.is_empty() && !self.is_stale {
            return Ok(());
        }
        let mut changes = over;
        let mut alerts = self.alerts.clone();
        for AlertDecision { alert, .. } in decisions {
            let version = self.versions.get(&alert.id).copied().unwrap_or(0);
            changes.push(RegisterChange::put(RegisterKind::Alert, &alert.id, alert.value()).expecting(version));
            alerts.insert(alert.id.clone(), alert.clone());
        }
        let history: Vec<String> =
            alerts.values().filter(|alert| !alert.is_firing()).map(|alert| alert.id.clone()).collect();
        for id in history.iter().take(history.len().saturating_sub(HISTORY_MAX).min(CHANGED_MAX)) {
            // An alert that is resolved now but is the oldest anyway is not written at all.
            changes.retain(|change| change.kind != RegisterKind::Alert || change.id != *id);
            changes.push(RegisterChange::remove(RegisterKind::Alert, id));
            alerts.remove(id);
        }
        let json = serde_json::to_value(&self.ledger).expect("conditions have only text keys and whole numbers");
        changes.push(RegisterChange::put(RegisterKind::Mark, MARK, json));
        let changes = RegisterWrite { tenant: self.tenant.clone(), at: now, changes, record: None };
        self.watch.ports.register.write(changes).await?;
        for AlertDecision { alert, .. } in decisions {
            *self.versions.entry(alert.id.clone()).or_insert(0) += 1;
        }
        self.versions.retain(|id, _| alerts.contains_key(id));
        (self.alerts, self.mark, self.is_stale) = (alerts, self.ledger.place, false);
        Ok(())
    }

    /// Commands to be run that are not running yet, those of the most severe alerts first.
    fn commands_due(&mut self) -> Vec<(AlertRecord, String)> {
        let mut ringing: Vec<&AlertRecord> = self.alerts.values().filter(|alert| !alert.to_ring.is_empty()).collect();
        ringing.sort_by_key(|alert| Reverse(alert.severity));
        let mut found = Vec::new();
        for (alert, command) in ringing.iter().flat_map(|alert| alert.to_ring.iter().map(move |name| (alert, name))) {
            if self.running_commands.len() >= COMMANDS_MAX {
                break;
            }
            if self.running_commands.insert((alert.id.clone(), command.clone())) {
                found.push(((*alert).clone(), command.clone()));
            }
        }
        found
    }

    /// Records that a command has run, so that it does not run again.
    async fn on_command_ended(&mut self, CommandEnded { alert, command }: CommandEnded) -> Result<(), port::Error> {
        self.running_commands.remove(&(alert.id.clone(), command.clone()));
        let Some(there) = self.alerts.get(&alert.id) else { return Ok(()) };
        // There has been another notice in the meantime, and the command runs again for it.
        if (there.state, there.notices) != (alert.state, alert.notices) {
            return Ok(());
        }
        let mut changed = there.clone();
        changed.to_ring.retain(|name| *name != command);
        let decisions = [AlertDecision { alert: changed, is_notified: false }];
        self.write(&decisions, Vec::new(), self.watch.now()).await
    }
}
