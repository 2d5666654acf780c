//! Evaluates rules against conditions: which alerts fire, which are resolved, and which notices are sent now.

use super::alert::{AlertRecord, AlertState};
use super::condition::{ActiveCondition, AlertKind, LeftOutConditions};
use super::inspection;
use super::rfc3339::Rfc3339Timestamp;
use super::rule::{AlertRule, RuleCondition};
use super::silence::AlertSilence;
use rutter_core::text::{listed, spelled};
use rutter_core::time::{Millis, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Alerts that fire at the same time. Beyond it the oldest of the least severe are left out, and one alert says so.
const FIRING_MAX: usize = 1_000;
/// Rules that the alert about alerts names.
const NAMED_MAX: usize = 5;
/// Interval of repeated notices while an alert fires and is not acknowledged.
const REPEAT_EVERY: Millis = Millis::hours(4);

/// The new state of an alert, and whether a notice is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct AlertDecision {
    pub alert: AlertRecord,
    pub is_notified: bool,
}

pub struct AlertEvaluation<'a> {
    pub rules: &'a [AlertRule],
    pub silences: &'a [AlertSilence],
    pub conditions: &'a [&'a ActiveCondition],
    /// Conditions of the ledger that could not be held.
    pub left_out: &'a BTreeMap<AlertKind, LeftOutConditions>,
    /// Firing and resolved alerts, by id.
    pub alerts: &'a BTreeMap<String, AlertRecord>,
    pub now: Timestamp,
}

/// A rule that applies to a condition.
#[derive(Clone, Copy)]
struct WantedAlert<'a> {
    rule: &'a AlertRule,
    condition: &'a ActiveCondition,
}

impl<'a> WantedAlert<'a> {
    fn key(&self) -> (&'a str, &'a str) {
        (&self.rule.id, &self.condition.subject)
    }
}

impl AlertEvaluation<'_> {
    /// Every alert that changes, the most severe first.
    pub fn evaluate(&self) -> Vec<AlertDecision> {
        let mut by_conditions = self.wanted(self.conditions.iter().copied());
        let over = self.split_excess(&mut by_conditions);
        let too_many = self.too_many(&over);
        let mut wanted = self.wanted(too_many.iter());
        wanted.append(&mut by_conditions);

        let firing: BTreeMap<(&str, &str), &AlertRecord> =
            self.firing().map(|alert| ((alert.rule.as_str(), alert.subject.as_str()), alert)).collect();
        let mut decisions: Vec<AlertDecision> = wanted
            .iter()
            .map(|wanted| {
                let WantedAlert { rule, condition } = wanted;
                let alert = match firing.get(&wanted.key()) {
                    Some(alert) => {
                        AlertRecord { text: condition.text.clone(), severity: rule.severity, ..(*alert).clone() }
                    }
                    None => self.begin(rule, condition),
                };
                self.notify_if_due(alert, rule)
            })
            .collect();
        let wanted: BTreeSet<(&str, &str)> = wanted.iter().map(WantedAlert::key).collect();
        let over: BTreeSet<(&str, &str)> = over.iter().map(WantedAlert::key).collect();
        let gone = firing.iter().filter(|(key, _)| !wanted.contains(key));
        decisions.extend(gone.map(|(key, alert)| self.end_or_drop(alert, over.contains(key))));
        decisions.retain(|decision| self.alerts.get(&decision.alert.id) != Some(&decision.alert));
        decisions.sort_by_key(|decision| Reverse(decision.alert.severity));
        decisions
    }

    /// The alerts that rules want, the most severe first, then the newest.
    fn wanted<'a>(&'a self, conditions: impl Iterator<Item = &'a ActiveCondition> + Clone) -> Vec<WantedAlert<'a>> {
        let of_rule = |rule: &'a AlertRule| {
            let applies = conditions.clone().filter(|condition| rule.applies(condition, self.now));
            applies.map(move |condition| WantedAlert { rule, condition })
        };
        let mut wanted: Vec<WantedAlert<'a>> = self.rules.iter().flat_map(of_rule).collect();
        wanted.sort_by_key(|wanted| Reverse((wanted.rule.severity, wanted.condition.since)));
        wanted
    }

    /// Takes off what is more than may fire, with room for the alert that says so.
    fn split_excess<'a>(&self, wanted: &mut Vec<WantedAlert<'a>>) -> Vec<WantedAlert<'a>> {
        if wanted.len() <= FIRING_MAX && self.left_out.is_empty() {
            return Vec::new();
        }
        let is_about_alerts = |rule: &&AlertRule| rule.enabled && rule.condition == RuleCondition::TooManyAlerts {};
        let room = FIRING_MAX.saturating_sub(self.rules.iter().filter(is_about_alerts).count());
        wanted.split_off(room.min(wanted.len()))
    }

    /// The condition that alerts are left out, if there are any: how many, and of which rules.
    fn too_many(&self, over: &[WantedAlert<'_>]) -> Option<ActiveCondition> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for wanted in over {
            *counts.entry(wanted.rule.id.clone()).or_default() += 1;
        }
        for (kind, left_out) in self.left_out {
            *counts.entry(spelled(kind)).or_default() += left_out.count;
        }
        let total: u64 = counts.values().sum();
        if total == 0 {
            return None;
        }
        let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| Reverse(*count));
        let named: Vec<String> = counts.iter().map(|(rule, count)| format!("{count} {rule}")).collect();
        let text = format!(
            "too many alerts at once: at most {FIRING_MAX} fire, and {total} more are left out ({})",
            listed(&named, NAMED_MAX)
        );
        Some(inspection::condition(AlertKind::TooManyAlerts, "alerts", self.now, text, total))
    }

    /// Ends an alert that is not wanted any more, or that there is no room for.
    fn end_or_drop(&self, alert: &AlertRecord, is_over: bool) -> AlertDecision {
        if is_over {
            // Its condition goes on, so nobody is told that it is over.
            let mut dropped = self.end(alert, "too many alerts at once; dropped in favour of others");
            dropped.alert.to_ring.clear();
            return AlertDecision { is_notified: false, ..dropped };
        }
        match self.left_out.contains_key(&alert.kind) {
            true => self.end(alert, "the condition no longer holds, or it is one of too many that are left out"),
            false => self.end(alert, "the condition no longer holds"),
        }
    }

    fn firing(&self) -> impl Iterator<Item = &AlertRecord> {
        self.alerts.values().filter(|alert| alert.is_firing())
    }

    fn begin(&self, rule: &AlertRule, condition: &ActiveCondition) -> AlertRecord {
        // The same id after a crash, so that no notice is sent twice; a new id if it was resolved in between.
        let id = AlertRecord::id(&rule.id, &condition.subject, condition.since.0);
        let is_known = self.alerts.contains_key(&id);
        AlertRecord {
            id: if is_known { AlertRecord::id(&rule.id, &condition.subject, self.now) } else { id },
            rule: rule.id.clone(),
            kind: condition.concern,
            severity: rule.severity,
            subject: condition.subject.clone(),
            text: condition.text.clone(),
            state: AlertState::Firing,
            execution: condition.execution.clone(),
            plan: condition.plan.clone(),
            execution_state: None,
            since: condition.since,
            fired_at: self.now.into(),
            resolved_at: None,
            resolved_because: None,
            acknowledged: None,
            silenced_by: None,
            notices: 0,
            last_notice_at: None,
            to_ring: Vec::new(),
        }
    }

    /// Sends a notice of a firing alert if one is due and no silence covers it.
    fn notify_if_due(&self, mut alert: AlertRecord, rule: &AlertRule) -> AlertDecision {
        alert.silenced_by = self.silence(&alert);
        let is_due = match alert.last_notice_at {
            None => true,
            Some(Rfc3339Timestamp(last)) => alert.acknowledged.is_none() && self.now >= last.plus(REPEAT_EVERY),
        };
        let is_notified = is_due && alert.silenced_by.is_none();
        if is_notified {
            alert.notices += 1;
            alert.last_notice_at = Some(self.now.into());
            alert.to_ring.clone_from(&rule.commands);
        }
        AlertDecision { alert, is_notified }
    }

    /// Resolves an alert; receivers of its notices are notified.
    fn end(&self, alert: &AlertRecord, because: &str) -> AlertDecision {
        let mut alert = alert.clone();
        alert.state = AlertState::Resolved;
        alert.resolved_at = Some(self.now.into());
        alert.resolved_because = Some(because.to_owned());
        alert.silenced_by = self.silence(&alert);
        let is_notified = alert.notices > 0 && alert.silenced_by.is_none();
        alert.to_ring.clear();
        if is_notified && let Some(rule) = self.rules.iter().find(|rule| rule.id == alert.rule) {
            alert.to_ring.clone_from(&rule.commands);
        }
        AlertDecision { alert, is_notified }
    }

    fn silence(&self, alert: &AlertRecord) -> Option<String> {
        let found = self.silences.iter().find(|silence| silence.covers(alert, self.now));
        found.map(|silence| silence.id.clone())
    }
}

#[cfg(test)]
mod tests;
