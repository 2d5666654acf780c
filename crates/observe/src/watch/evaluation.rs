//! Evaluates rules against conditions: which alerts fire, which are resolved, and which notices are sent now.

use super::alert::{AlertRecord, AlertState};
use super::condition::ActiveCondition;
use super::rfc3339::Rfc3339Timestamp;
use super::rule::AlertRule;
use super::silence::AlertSilence;
use rutter_core::time::{Millis, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Alerts that fire at the same time; beyond it the oldest of the least severe are resolved.
const FIRING_MAX: usize = 1_000;
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
    /// Firing and resolved alerts, by id.
    pub alerts: &'a BTreeMap<String, AlertRecord>,
    pub now: Timestamp,
}

impl AlertEvaluation<'_> {
    /// Every alert that changes.
    pub fn evaluate(&self) -> Vec<AlertDecision> {
        let mut decisions = Vec::new();
        let mut wanted = BTreeSet::new();
        let firing: BTreeMap<(&str, &str), &AlertRecord> =
            self.firing().map(|alert| ((alert.rule.as_str(), alert.subject.as_str()), alert)).collect();
        for rule in self.rules {
            for condition in self.conditions.iter().filter(|active| rule.applies(active, self.now)) {
                let key = (rule.id.as_str(), condition.subject.as_str());
                wanted.insert(key);
                let is = match firing.get(&key) {
                    Some(alert) => {
                        AlertRecord { text: condition.text.clone(), severity: rule.severity, ..(*alert).clone() }
                    }
                    None => self.begin(rule, condition),
                };
                decisions.push(self.notify_if_due(is, rule));
            }
        }
        for (key, alert) in &firing {
            if !wanted.contains(key) {
                decisions.push(self.end(alert, "the condition no longer holds"));
            }
        }
        self.make_room(&mut decisions);
        decisions.retain(|decision| self.alerts.get(&decision.alert.id) != Some(&decision.alert));
        decisions
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

    fn make_room(&self, decisions: &mut [AlertDecision]) {
        let mut firing: Vec<&mut AlertDecision> = decisions.iter_mut().filter(|it| it.alert.is_firing()).collect();
        let excess = firing.len().saturating_sub(FIRING_MAX);
        if excess == 0 {
            return;
        }
        firing.sort_by_key(|it| (it.alert.severity, it.alert.fired_at));
        for decision in firing.into_iter().take(excess) {
            let ended = self.end(&decision.alert, "too many alerts at once; dropped in favour of others");
            *decision = AlertDecision { is_notified: false, ..ended };
            decision.alert.to_ring.clear();
        }
    }
}

#[cfg(test)]
mod tests;
