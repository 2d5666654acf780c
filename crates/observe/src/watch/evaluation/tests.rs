//! Evaluations by tables: limits, order, and that nothing is decided twice.

use super::*;
use crate::watch::condition::{ActiveConditions, AlertKind, ConditionChange};
use crate::watch::rule::{AlertSeverity, RuleCondition, built_in};

fn condition(concern: AlertKind, subject: &str, since: i64) -> ActiveCondition {
    ActiveCondition {
        concern,
        subject: subject.to_owned(),
        since: Timestamp(since).into(),
        execution: None,
        plan: None,
        text: format!("{subject} needs attention"),
        measure: 0,
        members: Vec::new(),
        agent: None,
    }
}

/// Alerts as stored between two evaluations.
#[derive(Default)]
struct StoredAlerts {
    alerts: BTreeMap<String, AlertRecord>,
    silences: Vec<AlertSilence>,
    left_out: BTreeMap<AlertKind, LeftOutConditions>,
}

impl StoredAlerts {
    fn look(&mut self, rules: &[AlertRule], actives: &[ActiveCondition], now: i64) -> Vec<AlertDecision> {
        let matters: Vec<&ActiveCondition> = actives.iter().collect();
        let (alerts, silences, left_out) = (&self.alerts, &self.silences, &self.left_out);
        let decisions =
            AlertEvaluation { rules, silences, conditions: &matters, left_out, alerts, now: Timestamp(now) }.evaluate();
        self.alerts.extend(decisions.iter().map(|it| (it.alert.id.clone(), it.alert.clone())));
        decisions
    }

    fn firing(&self) -> usize {
        self.alerts.values().filter(|alert| alert.is_firing()).count()
    }

    fn summary(&self) -> Option<&AlertRecord> {
        self.alerts.values().find(|alert| alert.rule == "too_many_alerts" && alert.is_firing())
    }
}

#[test]
fn an_unchanged_condition_changes_no_alert() {
    let (rules, mut stored) = (built_in(), StoredAlerts::default());
    let conditions = [condition(AlertKind::Budget, "exec_1", 5), condition(AlertKind::ExecutionFailed, "exec_1", 5)];
    assert_eq!(stored.look(&rules, &conditions, 10).iter().filter(|it| it.is_notified).count(), 2);
    assert!(stored.look(&rules, &conditions, 20).is_empty());
    assert_eq!(stored.look(&rules, &conditions[..1], 30).len(), 1);
    assert_eq!(stored.firing(), 1);
    // The same condition again is another alert, with another id.
    assert_eq!(stored.look(&rules, &conditions, 40).len(), 1);
    assert_eq!(stored.alerts.len(), 3);
}

#[test]
fn the_same_start_has_the_same_id_so_that_a_crash_repeats_no_notice() {
    let rules = built_in();
    let conditions = [condition(AlertKind::Budget, "exec_1", 5)];
    let ids = [10, 99].map(|now| StoredAlerts::default().look(&rules, &conditions, now)[0].alert.id.clone());
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn a_rule_applies_as_soon_as_its_threshold_is_reached() {
    let rules = built_in();
    let stuck = [condition(AlertKind::ExecutionStuck, "exec_1", 0)];
    assert!(StoredAlerts::default().look(&rules, &stuck, 15 * 60_000 - 1).is_empty());
    assert_eq!(StoredAlerts::default().look(&rules, &stuck, 15 * 60_000).len(), 1);
    let disk = |free: u64| [ActiveCondition { measure: free, ..condition(AlertKind::DiskLow, "disk", 0) }];
    for (free, severities) in [
        (1 << 30, &[][..]),
        ((1 << 30) - 1, &[AlertSeverity::Warning]),
        (128 << 20, &[AlertSeverity::Warning]),
        ((128 << 20) - 1, &[AlertSeverity::Critical, AlertSeverity::Warning]),
    ] {
        let decisions = StoredAlerts::default().look(&rules, &disk(free), 0);
        let found: Vec<AlertSeverity> = decisions.iter().map(|it| it.alert.severity).collect();
        assert_eq!(found, severities, "{free}");
    }
}

#[test]
fn at_most_a_thousand_alerts_fire_and_the_least_severe_are_dropped() {
    let rules = built_in();
    let mut conditions: Vec<ActiveCondition> =
        (0..FIRING_MAX).map(|at| condition(AlertKind::Budget, &format!("exec_{at}"), at as i64)).collect();
    let mut stored = StoredAlerts::default();
    stored.look(&rules, &conditions, 2_000);
    assert_eq!((stored.firing(), stored.summary()), (FIRING_MAX, None));
    conditions.push(condition(AlertKind::CompensationFailed, "exec_0/pay", 3_000));
    let decisions = stored.look(&rules, &conditions, 3_000);
    assert_eq!(stored.firing(), FIRING_MAX);
    // The two oldest made room for the critical one and for the summary, and nobody is told that they are over.
    let changes: Vec<(&str, &str, bool)> =
        decisions.iter().map(|it| (it.alert.rule.as_str(), it.alert.subject.as_str(), it.is_notified)).collect();
    let expected = [
        ("too_many_alerts", "alerts", true),
        ("compensation_failed", "exec_0/pay", true),
        ("budget", "exec_0", false),
        ("budget", "exec_1", false),
    ];
    assert_eq!(changes, expected);
    assert!(stored.summary().unwrap().text.ends_with("2 more are left out (2 budget)"), "{:?}", stored.summary());
    assert!(stored.look(&rules, &conditions, 4_000).is_empty(), "what is left out does not come back every time");
    conditions.truncate(10);
    stored.look(&rules, &conditions, 5_000);
    assert_eq!((stored.firing(), stored.summary()), (10, None));
}

#[test]
fn critical_conditions_come_first_however_many_others_want_alerts() {
    let rules = built_in();
    let waits = |at: usize| condition(AlertKind::WaitingForPerson, &format!("exec_{at}"), at as i64);
    let mut conditions: Vec<ActiveCondition> = (0..5_000).map(waits).collect();
    conditions.push(condition(AlertKind::InDoubt, "exec_1/pay", 0));
    let mut stored = StoredAlerts::default();
    let decisions = stored.look(&rules, &conditions, 3_600_000);
    let first: Vec<&str> = decisions.iter().take(3).map(|it| it.alert.rule.as_str()).collect();
    assert_eq!(first, ["too_many_alerts", "in_doubt", "waiting_for_person"]);
    assert_eq!((decisions.len(), stored.firing()), (FIRING_MAX, FIRING_MAX));
    let text = &stored.summary().unwrap().text;
    assert!(text.ends_with("4002 more are left out (4002 waiting_for_person)"), "{text}");
}

#[test]
fn conditions_that_could_not_be_held_are_counted_in_the_summary() {
    let rules = built_in();
    let mut ledger = ActiveConditions::default();
    for at in 0..1_010 {
        ledger.take(ConditionChange::Raise(condition(AlertKind::SecondEffect, &format!("exec_{at}/pay"), at)), None);
    }
    ledger.limit(|_| Some(AlertSeverity::Critical), Timestamp(2_000));
    let mut stored = StoredAlerts { left_out: ledger.left_out().clone(), ..StoredAlerts::default() };
    stored.look(&rules, &[condition(AlertKind::SecondEffect, "exec_9/pay", 0)], 2_000);
    assert!(stored.summary().unwrap().text.contains("10 more are left out (10 second_effect)"));
    let ended = stored.look(&rules, &[], 3_000);
    let because = ended.iter().find_map(|it| it.alert.resolved_because.as_deref());
    assert_eq!(because, Some("the condition no longer holds, or it is one of too many that are left out"));
}

#[test]
fn a_notice_is_repeated_after_four_hours_unless_acknowledged() {
    let rules = built_in();
    let conditions = [condition(AlertKind::Budget, "exec_1", 0)];
    let mut stored = StoredAlerts::default();
    stored.look(&rules, &conditions, 0);
    let span = REPEAT_EVERY.0 as i64;
    assert!(stored.look(&rules, &conditions, span - 1).is_empty());
    assert!(stored.look(&rules, &conditions, span)[0].is_notified);
    let alert = stored.alerts.values_mut().next().unwrap();
    let at = Timestamp(span).into();
    alert.acknowledged =
        Some(crate::watch::alert::Acknowledgement { by: "operator".to_owned(), at, note: String::new() });
    assert!(stored.look(&rules, &conditions, span * 9).is_empty());
    let ended = stored.look(&rules, &[], span * 10);
    assert!(ended[0].is_notified && !ended[0].alert.is_firing());
}

#[test]
fn a_rule_that_is_switched_off_ends_its_alerts() {
    let mut rules = built_in();
    let conditions = [condition(AlertKind::ToolChanged, "shop.buy", 0)];
    let mut stored = StoredAlerts::default();
    stored.look(&rules, &conditions, 1);
    let rule = rules.iter_mut().find(|rule| rule.condition == RuleCondition::ToolChanged {}).unwrap();
    rule.enabled = false;
    assert!(!stored.look(&rules, &conditions, 2)[0].alert.is_firing());
    assert_eq!(stored.firing(), 0);
}
