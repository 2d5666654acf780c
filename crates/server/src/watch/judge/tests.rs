//! Rulings by tables: bounds, order, and that nothing is decided twice.

use super::*;
use crate::watch::matter::Concern;
use crate::watch::rule::{Condition, Severity, built_in};

fn matter(concern: Concern, subject: &str, since: i64) -> Matter {
    Matter {
        concern,
        subject: subject.to_owned(),
        since: Timestamp(since).into(),
        execution: None,
        plan: None,
        text: format!("{subject} is the matter"),
        measure: 0,
        members: Vec::new(),
    }
}

/// Alerts as they are kept between one look and the next.
#[derive(Default)]
struct Kept {
    alerts: BTreeMap<String, Alert>,
    silences: Vec<Silence>,
}

impl Kept {
    fn look(&mut self, rules: &[Rule], matters: &[Matter], now: i64) -> Vec<Ruling> {
        let matters: Vec<&Matter> = matters.iter().collect();
        let (alerts, silences) = (&self.alerts, &self.silences);
        let rulings = Case { rules, silences, matters: &matters, alerts, now: Timestamp(now) }.rule();
        self.alerts.extend(rulings.iter().map(|it| (it.alert.id.clone(), it.alert.clone())));
        rulings
    }

    fn firing(&self) -> usize {
        self.alerts.values().filter(|alert| alert.is_firing()).count()
    }
}

#[test]
fn what_has_not_changed_is_not_ruled_on_again() {
    let (rules, mut kept) = (built_in(), Kept::default());
    let matters = [matter(Concern::Budget, "exec_1", 5), matter(Concern::ExecutionFailed, "exec_1", 5)];
    assert_eq!(kept.look(&rules, &matters, 10).iter().filter(|it| it.is_told).count(), 2);
    assert!(kept.look(&rules, &matters, 20).is_empty());
    assert_eq!(kept.look(&rules, &matters[..1], 30).len(), 1);
    assert_eq!(kept.firing(), 1);
    // The same again is another alert, with another id.
    assert_eq!(kept.look(&rules, &matters, 40).len(), 1);
    assert_eq!(kept.alerts.len(), 3);
}

#[test]
fn the_same_beginning_has_the_same_id_so_that_a_crash_tells_nobody_twice() {
    let rules = built_in();
    let matters = [matter(Concern::Budget, "exec_1", 5)];
    let ids = [10, 99].map(|now| Kept::default().look(&rules, &matters, now)[0].alert.id.clone());
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn thresholds_hold_from_the_moment_they_are_reached() {
    let rules = built_in();
    let stuck = [matter(Concern::ExecutionStuck, "exec_1", 0)];
    assert!(Kept::default().look(&rules, &stuck, 15 * 60_000 - 1).is_empty());
    assert_eq!(Kept::default().look(&rules, &stuck, 15 * 60_000).len(), 1);
    let disk = |free: u64| [Matter { measure: free, ..matter(Concern::DiskLow, "disk", 0) }];
    for (free, severities) in [
        (1 << 30, &[][..]),
        ((1 << 30) - 1, &[Severity::Warning]),
        (128 << 20, &[Severity::Warning]),
        ((128 << 20) - 1, &[Severity::Warning, Severity::Critical]),
    ] {
        let rulings = Kept::default().look(&rules, &disk(free), 0);
        let found: Vec<Severity> = rulings.iter().map(|it| it.alert.severity).collect();
        assert_eq!(found, severities, "{free}");
    }
}

#[test]
fn no_more_than_a_thousand_fire_and_the_least_severe_make_room() {
    let rules = built_in();
    let mut matters: Vec<Matter> =
        (0..FIRING_MAX).map(|at| matter(Concern::Budget, &format!("exec_{at}"), at as i64)).collect();
    let mut kept = Kept::default();
    kept.look(&rules, &matters, 2_000);
    assert_eq!(kept.firing(), FIRING_MAX);
    matters.push(matter(Concern::CompensationFailed, "exec_0/pay", 3_000));
    kept.look(&rules, &matters, 3_000);
    assert_eq!(kept.firing(), FIRING_MAX);
    let critical =
        kept.alerts.values().filter(|it| it.is_firing() && it.severity == Severity::Critical).count();
    assert_eq!(critical, 1);
}

#[test]
fn a_repetition_comes_after_four_hours_unless_somebody_knows() {
    let rules = built_in();
    let matters = [matter(Concern::Budget, "exec_1", 0)];
    let mut kept = Kept::default();
    kept.look(&rules, &matters, 0);
    let span = REPEAT_EVERY.0 as i64;
    assert!(kept.look(&rules, &matters, span - 1).is_empty());
    assert!(kept.look(&rules, &matters, span)[0].is_told);
    let alert = kept.alerts.values_mut().next().unwrap();
    let at = Timestamp(span).into();
    alert.acknowledged =
        Some(crate::watch::alert::Acknowledgement { by: "operator".to_owned(), at, note: String::new() });
    assert!(kept.look(&rules, &matters, span * 9).is_empty());
    let ended = kept.look(&rules, &[], span * 10);
    assert!(ended[0].is_told && !ended[0].alert.is_firing());
}

#[test]
fn a_rule_that_is_switched_off_ends_its_alerts() {
    let mut rules = built_in();
    let matters = [matter(Concern::ToolChanged, "shop.buy", 0)];
    let mut kept = Kept::default();
    kept.look(&rules, &matters, 1);
    let rule = rules.iter_mut().find(|rule| rule.condition == Condition::ToolChanged {}).unwrap();
    rule.enabled = false;
    assert!(!kept.look(&rules, &matters, 2)[0].alert.is_firing());
    assert_eq!(kept.firing(), 0);
}
