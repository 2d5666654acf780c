//! From rules and what is the matter to alerts: which begin, which are over, and of which somebody is told now.

use super::alert::{Alert, AlertState};
use super::matter::Matter;
use super::moment::Moment;
use super::rule::Rule;
use super::silence::Silence;
use rutter_core::time::{Millis, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// Alerts that fire at the same time; the oldest of the least severe gives way.
const FIRING_MAX: usize = 1_000;
/// While it is so and nobody has said that they know.
const REPEAT_EVERY: Millis = Millis::hours(4);

/// An alert as it is from now on, and whether somebody is told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ruling {
    pub alert: Alert,
    pub is_told: bool,
}

pub(super) struct Case<'a> {
    pub rules: &'a [Rule],
    pub silences: &'a [Silence],
    pub matters: &'a [&'a Matter],
    /// Those that fire and those that did, by id.
    pub alerts: &'a BTreeMap<String, Alert>,
    pub now: Timestamp,
}

impl Case<'_> {
    /// Everything that changes.
    pub fn rule(&self) -> Vec<Ruling> {
        let mut rulings = Vec::new();
        let mut wanted = BTreeSet::new();
        let firing: BTreeMap<(&str, &str), &Alert> =
            self.firing().map(|alert| ((alert.rule.as_str(), alert.subject.as_str()), alert)).collect();
        for rule in self.rules {
            for matter in self.matters.iter().filter(|matter| rule.applies(matter, self.now)) {
                let key = (rule.id.as_str(), matter.subject.as_str());
                wanted.insert(key);
                let is = match firing.get(&key) {
                    Some(alert) => {
                        Alert { text: matter.text.clone(), severity: rule.severity, ..(*alert).clone() }
                    }
                    None => self.begin(rule, matter),
                };
                rulings.push(self.tell(is, rule));
            }
        }
        for (key, alert) in &firing {
            if !wanted.contains(key) {
                rulings.push(self.end(alert, "it is no longer so"));
            }
        }
        self.make_room(&mut rulings);
        rulings.retain(|ruling| self.alerts.get(&ruling.alert.id) != Some(&ruling.alert));
        rulings
    }

    fn firing(&self) -> impl Iterator<Item = &Alert> {
        self.alerts.values().filter(|alert| alert.is_firing())
    }

    fn begin(&self, rule: &Rule, matter: &Matter) -> Alert {
        // The same id after a crash, so that nobody is told twice; another one if it has been over in between.
        let id = Alert::id(&rule.id, &matter.subject, matter.since.0);
        let is_known = self.alerts.contains_key(&id);
        Alert {
            id: if is_known { Alert::id(&rule.id, &matter.subject, self.now) } else { id },
            rule: rule.id.clone(),
            kind: matter.concern,
            severity: rule.severity,
            subject: matter.subject.clone(),
            text: matter.text.clone(),
            state: AlertState::Firing,
            execution: matter.execution.clone(),
            plan: matter.plan.clone(),
            since: matter.since,
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

    /// Tells somebody of an alert that fires, if it is time and nobody wants quiet.
    fn tell(&self, mut alert: Alert, rule: &Rule) -> Ruling {
        alert.silenced_by = self.silence(&alert);
        let is_due = match alert.last_notice_at {
            None => true,
            Some(Moment(last)) => alert.acknowledged.is_none() && self.now >= last.plus(REPEAT_EVERY),
        };
        let is_told = is_due && alert.silenced_by.is_none();
        if is_told {
            alert.notices += 1;
            alert.last_notice_at = Some(self.now.into());
            alert.to_ring.clone_from(&rule.commands);
        }
        Ruling { alert, is_told }
    }

    /// Whoever was told that it began is told that it is over.
    fn end(&self, alert: &Alert, because: &str) -> Ruling {
        let mut alert = alert.clone();
        alert.state = AlertState::Resolved;
        alert.resolved_at = Some(self.now.into());
        alert.resolved_because = Some(because.to_owned());
        alert.silenced_by = self.silence(&alert);
        let is_told = alert.notices > 0 && alert.silenced_by.is_none();
        alert.to_ring.clear();
        if is_told && let Some(rule) = self.rules.iter().find(|rule| rule.id == alert.rule) {
            alert.to_ring.clone_from(&rule.commands);
        }
        Ruling { alert, is_told }
    }

    fn silence(&self, alert: &Alert) -> Option<String> {
        let found = self.silences.iter().find(|silence| silence.covers(alert, self.now));
        found.map(|silence| silence.id.clone())
    }

    fn make_room(&self, rulings: &mut [Ruling]) {
        let mut firing: Vec<&mut Ruling> = rulings.iter_mut().filter(|it| it.alert.is_firing()).collect();
        let excess = firing.len().saturating_sub(FIRING_MAX);
        if excess == 0 {
            return;
        }
        firing.sort_by_key(|it| (it.alert.severity, it.alert.fired_at));
        for ruling in firing.into_iter().take(excess) {
            let ended = self.end(&ruling.alert, "too much was the matter at once; it made room for others");
            *ruling = Ruling { is_told: false, ..ended };
            ruling.alert.to_ring.clear();
        }
    }
}

#[cfg(test)]
mod tests;
