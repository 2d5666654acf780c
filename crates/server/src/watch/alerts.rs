//! What can be done with alerts, rules and silences. Changes of rules and silences stand in the ledger's own journal.

use super::alert::{Acknowledgement, Alert, AlertState};
use super::rule::{NewRule, Rule, RuleChange, built_in};
use super::silence::{NewSilence, Silence};
use super::webhook::{check_count, check_length, invalid};
use super::{Watch, trail};
use crate::fault::Fault;
use crate::limits::{RULES_MAX, SILENCES_MAX};
use rutter_core::actor::Actor;
use rutter_core::id::TenantId;
use rutter_core::limits::PAGE_MAX;
use rutter_core::port;
use rutter_core::port::query::Page;
use rutter_core::port::register::{Change, Changes, Kind, Note};
use rutter_engine::name;
use std::sync::{Arc, PoisonError};

/// Between looking at an alert and writing it, the lookout may write it too.
const ATTEMPTS_MAX: u32 = 5;

impl Watch {
    /// The newest first; those of one state, or all.
    pub async fn alerts(&self, tenant: &TenantId, state: Option<AlertState>) -> Result<Vec<Alert>, Fault> {
        let notes = self.notes(tenant, Kind::Alert).await?;
        let alerts: Result<Vec<Alert>, _> = notes.iter().map(Alert::read).collect();
        let mut alerts = alerts?;
        alerts.retain(|alert| state.is_none_or(|state| alert.state == state));
        alerts.sort_by(|a, b| b.fired_at.cmp(&a.fired_at).then_with(|| b.id.cmp(&a.id)));
        Ok(alerts)
    }

    /// Those that fire, as of the last look; asks nobody.
    pub fn firing(&self, tenant: &TenantId) -> Arc<[Alert]> {
        let firing = self.firing.lock().unwrap_or_else(PoisonError::into_inner);
        firing.get(tenant).cloned().unwrap_or_else(|| Vec::new().into())
    }

    pub(super) fn show_firing(&self, tenant: &TenantId, alerts: Vec<Alert>) {
        let mut firing = self.firing.lock().unwrap_or_else(PoisonError::into_inner);
        firing.insert(tenant.clone(), alerts.into());
    }

    /// Says that somebody knows: it is not repeated.
    pub async fn acknowledge_alert(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        id: &str,
        note: &str,
    ) -> Result<Alert, Fault> {
        check_length("a note", note, 300)?;
        let mut attempts = 0;
        loop {
            let found = self.ports.register.find(tenant, Kind::Alert, id).await?;
            let found = found.ok_or_else(|| Fault::missing("alert", id))?;
            let mut alert = Alert::read(&found)?;
            let (by, at, note) = (actor.to_string(), self.now().into(), note.to_owned());
            alert.acknowledged = Some(Acknowledgement { by, at, note });
            let change = Change::put(Kind::Alert, id, alert.value()).expecting(found.version);
            let changes = vec![change];
            let record = trail::changed(actor, self.now(), "alert", id, "acknowledged");
            let changes = Changes { tenant: tenant.clone(), at: self.now(), changes, record };
            attempts += 1;
            match self.ports.register.write(changes).await {
                Err(port::Error::Conflict { .. }) if attempts < ATTEMPTS_MAX => {}
                written => {
                    written?;
                    self.look_again.send_replace(());
                    return Ok(alert);
                }
            }
        }
    }

    /// Those that come with Rutter, as they are now, and then those that operators added.
    pub async fn rules(&self, tenant: &TenantId) -> Result<Vec<Rule>, Fault> {
        Ok(self.all_rules(tenant).await?)
    }

    pub async fn create_rule(&self, tenant: &TenantId, actor: &Actor, new: NewRule) -> Result<Rule, Fault> {
        let NewRule { description, condition, severity, plans, webhooks, commands } = new;
        let id = name::fresh("rule", self.now());
        let rule = Rule {
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
        let there = self.notes(tenant, Kind::Rule).await?.len();
        check_count("the number of rules", there + 1, RULES_MAX)?;
        let change = Change::put(Kind::Rule, &rule.id, rule.value()).expecting(0);
        self.change_alerts(tenant, actor, change, "created").await?;
        Ok(rule)
    }

    /// `expected` is the version that was seen, if it matters; 0 for a rule that is as it came.
    pub async fn update_rule(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        id: &str,
        change: RuleChange,
        expected: Option<u64>,
    ) -> Result<Rule, Fault> {
        let rules = self.all_rules(tenant).await?;
        let rule = rules.into_iter().find(|rule| rule.id == id).ok_or_else(|| Fault::missing("rule", id))?;
        let was = rule.clone();
        let RuleChange { description, condition, severity, enabled, plans, webhooks, commands } = change;
        let rule = Rule {
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
            return Err(invalid("a rule keeps its kind; make another one and remove this"));
        }
        rule.check(&self.commands())?;
        let seen = expected.unwrap_or(rule.version);
        let told = match (was.enabled, rule.enabled) {
            (true, false) => "switched off",
            (false, true) => "switched on",
            _ => "changed",
        };
        let change = Change::put(Kind::Rule, id, rule.value()).expecting(seen);
        self.change_alerts(tenant, actor, change, told).await?;
        Ok(Rule { version: seen + 1, ..rule })
    }

    /// A rule that comes with Rutter is then as it came.
    pub async fn delete_rule(&self, tenant: &TenantId, actor: &Actor, id: &str) -> Result<(), Fault> {
        if self.ports.register.find(tenant, Kind::Rule, id).await?.is_none() {
            let came = built_in().iter().any(|rule| rule.id == id);
            return if came { Ok(()) } else { Err(Fault::missing("rule", id)) };
        }
        self.change_alerts(tenant, actor, Change::remove(Kind::Rule, id), "removed").await
    }

    /// Those that are not over, the oldest first.
    pub async fn silences(&self, tenant: &TenantId) -> Result<Vec<Silence>, Fault> {
        let now = self.now();
        let mut silences = self.all_silences(tenant).await?;
        silences.retain(|silence| silence.until.0 > now);
        Ok(silences)
    }

    pub async fn silence(&self, tenant: &TenantId, actor: &Actor, new: NewSilence) -> Result<Silence, Fault> {
        let now = self.now();
        new.check(now)?;
        check_count("the number of silences", self.silences(tenant).await?.len() + 1, SILENCES_MAX)?;
        let NewSilence { rule, plan, subject, until, reason } = new;
        let (id, by) = (name::fresh("si", now), actor.to_string());
        let silence = Silence { id, rule, plan, subject, until, reason, by, created_at: now.into() };
        let value = serde_json::to_value(&silence).expect("a silence has only texts");
        let change = Change::put(Kind::Silence, &silence.id, value).expecting(0);
        self.change_alerts(tenant, actor, change, "created").await?;
        Ok(silence)
    }

    pub async fn delete_silence(&self, tenant: &TenantId, actor: &Actor, id: &str) -> Result<(), Fault> {
        let found = self.ports.register.find(tenant, Kind::Silence, id).await?;
        found.ok_or_else(|| Fault::missing("silence", id))?;
        self.change_alerts(tenant, actor, Change::remove(Kind::Silence, id), "removed").await
    }

    pub(super) async fn all_rules(&self, tenant: &TenantId) -> Result<Vec<Rule>, port::Error> {
        let kept: Result<Vec<Rule>, _> =
            self.notes(tenant, Kind::Rule).await?.iter().map(Rule::read).collect();
        let mut rules = built_in();
        for rule in kept? {
            match rules.iter_mut().find(|it| it.id == rule.id) {
                Some(as_it_came) => *as_it_came = rule,
                None => rules.push(rule),
            }
        }
        Ok(rules)
    }

    pub(super) async fn all_silences(&self, tenant: &TenantId) -> Result<Vec<Silence>, port::Error> {
        self.notes(tenant, Kind::Silence).await?.iter().map(Silence::read).collect()
    }

    pub(super) async fn notes(&self, tenant: &TenantId, kind: Kind) -> Result<Vec<Note>, port::Error> {
        let mut notes = Vec::new();
        let mut page = Page::first(PAGE_MAX);
        loop {
            let listing = self.ports.register.list(tenant, kind, page).await?;
            notes.extend(listing.items);
            match listing.next {
                Some(after) => page = Page { limit: PAGE_MAX, after: Some(after) },
                None => return Ok(notes),
            }
        }
    }

    async fn change_alerts(
        &self,
        tenant: &TenantId,
        actor: &Actor,
        change: Change,
        told: &str,
    ) -> Result<(), Fault> {
        let at = self.now();
        let record = trail::changed(actor, at, change.kind.as_str(), &change.id, told);
        let changes = Changes { tenant: tenant.clone(), at, changes: vec![change], record };
        self.ports.register.write(changes).await?;
        self.look_again.send_replace(());
        Ok(())
    }
}
