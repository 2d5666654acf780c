//! Operations on alerts, rules and silences. Changes of rules and silences are recorded in the ledger's own journal.

use super::alert::{Acknowledgement, AlertRecord, AlertState};
use super::rule::{AlertRule, AlertRuleChange, NewAlertRule, built_in};
use super::silence::{AlertSilence, NewSilence};
use super::webhook::{check_count, check_length, invalid};
use super::{WatchService, audit};
use crate::Error;
use crate::limits::{RULES_MAX, SILENCES_MAX};
use rutter_core::actor::Actor;
use rutter_core::id::TenantId;
use rutter_core::port;
use rutter_core::port::register::{RegisterChange, RegisterItem, RegisterKind, RegisterWrite};
use rutter_engine::all_pages;
use rutter_engine::name;
use std::sync::{Arc, PoisonError};

/// Retries of an acknowledgement, because the evaluator may write the same alert concurrently.
const ATTEMPTS_MAX: u32 = 5;

impl WatchService {
    /// Newest first; those in one state, or all.
    pub async fn alerts(&self, tenant: &TenantId, state: Option<AlertState>) -> Result<Vec<AlertRecord>, Error> {
        let notes = self.notes(tenant, RegisterKind::Alert).await?;
        let alerts: Result<Vec<AlertRecord>, _> = notes.iter().map(AlertRecord::read).collect();
        let mut alerts: Vec<AlertRecord> = alerts?.iter().map(AlertRecord::with_cause).collect();
        alerts.retain(|alert| state.is_none_or(|state| alert.state == state));
        alerts.sort_by(|a, b| b.fired_at.cmp(&a.fired_at).then_with(|| b.id.cmp(&a.id)));
        Ok(alerts)
    }

    /// Firing alerts as of the last evaluation; reads no store.
    pub fn firing(&self, tenant: &TenantId) -> Arc<[AlertRecord]> {
        let firing = self.firing.lock().unwrap_or_else(PoisonError::into_inner);
        firing.get(tenant).cloned().unwrap_or_else(|| Vec::new().into())
    }

    pub fn publish_firing(&self, tenant: &TenantId, alerts: Vec<AlertRecord>) {
        let mut firing = self.firing.lock().unwrap_or_else(PoisonError::into_inner);
        firing.insert(tenant.clone(), alerts.into());
    }

    /// Acknowledges an alert: its notices are not repeated.
    pub async fn acknowledge_alert(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        id: &str,
        note: &str,
    ) -> Result<AlertRecord, Error> {
        check_length("a note", note, 300)?;
        let mut attempts = 0;
        loop {
            let found = self.ports.register.find(tenant, RegisterKind::Alert, id).await?;
            let found = found.ok_or_else(|| Error::missing("alert", id))?;
            let mut alert = AlertRecord::read(&found)?;
            let (by, at, note) = (actor.to_string(), self.now().into(), note.to_owned());
            alert.acknowledged = Some(Acknowledgement { by, at, note });
            let change = RegisterChange::put(RegisterKind::Alert, id, alert.value()).expecting(found.version);
            let changes = vec![change];
            let record = audit::changed(actor, self.now(), "alert", id, "acknowledged");
            let changes = RegisterWrite { tenant: tenant.clone(), at: self.now(), changes, record };
            attempts += 1;
            match self.ports.register.write(changes).await {
                Err(port::Error::Conflict { .. }) if attempts < ATTEMPTS_MAX => {}
                written => {
                    written?;
                    self.alerts_changed.send_replace(());
                    return Ok(alert.with_cause());
                }
            }
        }
    }

    /// Built-in rules with their present settings, then those operators added.
    pub async fn rules(&self, tenant: &TenantId) -> Result<Vec<AlertRule>, Error> {
        Ok(self.all_rules(tenant).await?)
    }

    pub async fn create_rule(&self, tenant: &TenantId, actor: &Actor, new: NewAlertRule) -> Result<AlertRule, Error> {
        let NewAlertRule { description, condition, severity, plans, webhooks, commands } = new;
        let id = name::fresh("rule", self.now());
        let rule = AlertRule {
            id,
            built_in: false,
            description,
            condition,
            severity,
            enabled: true,
            plans,
            webhooks,
            commands,
            version: 1,
        };
        rule.check(&self.commands())?;
        let there = self.notes(tenant, RegisterKind::Rule).await?.len();
        check_count("the number of rules", there + 1, RULES_MAX)?;
        let change = RegisterChange::put(RegisterKind::Rule, &rule.id, rule.value()).expecting(0);
        self.write_setting(tenant, actor, change, "created").await?;
        Ok(rule)
    }

    /// `expected` is the version the caller read, if any; 0 for an unchanged built-in rule.
    pub async fn update_rule(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        id: &str,
        change: AlertRuleChange,
        expected: Option<u64>,
    ) -> Result<AlertRule, Error> {
        let rules = self.all_rules(tenant).await?;
        let rule = rules.into_iter().find(|rule| rule.id == id).ok_or_else(|| Error::missing("rule", id))?;
        let was = rule.clone();
        let AlertRuleChange { description, condition, severity, enabled, plans, webhooks, commands } = change;
        let rule = AlertRule {
            description: description.unwrap_or(rule.description),
            condition: condition.unwrap_or(rule.condition),
            severity: severity.unwrap_or(rule.severity),
            enabled: enabled.unwrap_or(rule.enabled),
            plans: plans.unwrap_or(rule.plans),
            webhooks: webhooks.unwrap_or(rule.webhooks),
            commands: commands.unwrap_or(rule.commands),
            ..rule
        };
        if was.condition.concern() != rule.condition.concern() {
            return Err(invalid("the kind of a rule cannot change; create another rule and remove this one"));
        }
        rule.check(&self.commands())?;
        let seen = expected.unwrap_or(rule.version);
        let answer = match (was.enabled, rule.enabled) {
            (true, false) => "switched off",
            (false, true) => "switched on",
            _ => "changed",
        };
        let change = RegisterChange::put(RegisterKind::Rule, id, rule.value()).expecting(seen);
        self.write_setting(tenant, actor, change, answer).await?;
        Ok(AlertRule { version: seen + 1, ..rule })
    }

    /// Removing a built-in rule restores its defaults.
    pub async fn delete_rule(&self, tenant: &TenantId, actor: &Actor, id: &str) -> Result<(), Error> {
        if self.ports.register.find(tenant, RegisterKind::Rule, id).await?.is_none() {
            let came = built_in().iter().any(|rule| rule.id == id);
            return if came { Ok(()) } else { Err(Error::missing("rule", id)) };
        }
        self.write_setting(tenant, actor, RegisterChange::remove(RegisterKind::Rule, id), "removed").await
    }

    /// Silences that have not expired, oldest first.
    pub async fn silences(&self, tenant: &TenantId) -> Result<Vec<AlertSilence>, Error> {
        let now = self.now();
        let mut silences = self.all_silences(tenant).await?;
        silences.retain(|silence| silence.until.0 > now);
        Ok(silences)
    }

    pub async fn silence(&self, tenant: &TenantId, actor: &Actor, new: NewSilence) -> Result<AlertSilence, Error> {
        let now = self.now();
        new.check(now)?;
        check_count("the number of silences", self.silences(tenant).await?.len() + 1, SILENCES_MAX)?;
        let NewSilence { rule, plan, subject, until, reason } = new;
        let (id, by) = (name::fresh("si", now), actor.to_string());
        let silence = AlertSilence { id, rule, plan, subject, until, reason, by, created_at: now.into() };
        let value = serde_json::to_value(&silence).expect("a silence has only texts");
        let change = RegisterChange::put(RegisterKind::Silence, &silence.id, value).expecting(0);
        self.write_setting(tenant, actor, change, "created").await?;
        Ok(silence)
    }

    pub async fn delete_silence(&self, tenant: &TenantId, actor: &Actor, id: &str) -> Result<(), Error> {
        let found = self.ports.register.find(tenant, RegisterKind::Silence, id).await?;
        found.ok_or_else(|| Error::missing("silence", id))?;
        self.write_setting(tenant, actor, RegisterChange::remove(RegisterKind::Silence, id), "removed").await
    }

    pub async fn all_rules(&self, tenant: &TenantId) -> Result<Vec<AlertRule>, port::Error> {
        let stored: Result<Vec<AlertRule>, _> =
            self.notes(tenant, RegisterKind::Rule).await?.iter().map(AlertRule::read).collect();
        let mut rules = built_in();
        for rule in stored? {
            match rules.iter_mut().find(|it| it.id == rule.id) {
                Some(as_it_came) => *as_it_came = rule,
                None => rules.push(rule),
            }
        }
        Ok(rules)
    }

    pub async fn all_silences(&self, tenant: &TenantId) -> Result<Vec<AlertSilence>, port::Error> {
        self.notes(tenant, RegisterKind::Silence).await?.iter().map(AlertSilence::read).collect()
    }

    pub async fn notes(&self, tenant: &TenantId, kind: RegisterKind) -> Result<Vec<RegisterItem>, port::Error> {
        let read = |page| self.ports.register.list(tenant, kind, page);
        all_pages(usize::MAX, read).await.map(|(notes, _)| notes)
    }

    /// Writes a setting, with its record in the ledger's own journal, and wakes what depends on it.
    pub(super) async fn write_setting(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        change: RegisterChange,
        answer: &str,
    ) -> Result<(), Error> {
        let at = self.now();
        let record = audit::changed(actor, at, change.kind.as_str(), &change.id, answer);
        let is_webhook = change.kind == RegisterKind::Webhook;
        let changes = RegisterWrite { tenant: tenant.clone(), at, changes: vec![change], record };
        self.ports.register.write(changes).await?;
        if is_webhook { &self.webhooks_changed } else { &self.alerts_changed }.send_replace(());
        Ok(())
    }
}
