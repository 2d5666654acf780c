//! Holds: after a long gap time stands still until a person has looked.

use rutter_core::execution::hold::WorkerGap;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::journal::event::{CallSide, DueKind, Event, OverdueTimer};
use rutter_core::limits;
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory::Unavailable;
use rutter_testkit::scene::*;
use serde_json::json;

const DAY: i64 = 86_400_000;

/// What the hold lists: `Approval a`, `Deadline`.
fn due(scene: &ExecutionScenario) -> Vec<String> {
    let found = scene.execution.questions().into_iter().find_map(|ask| match ask {
        PendingQuestion::Hold { due, .. } => Some(due),
        _ => None,
    });
    let describe = |what: DueKind, part: Option<_>| match part {
        Some(part) => format!("{what:?} {part}"),
        None => format!("{what:?}"),
    };
    found.expect("it is held").into_iter().map(|timer| describe(timer.what, timer.part)).collect()
}

/// Everything that can come due, before a gap of two days; what is listed; and what `resume` and `resume --expire` lead
/// to at once.
#[test]
fn nothing_that_came_due_happens_before_a_person_has_looked() {
    type Prepare = fn(&mut ExecutionScenario);
    type Case<'a> = (&'a str, String, Prepare, &'a [&'a str], &'a str, &'a str);
    let retry = "retry: {max_attempts: 3, initial: 10s, jitter: false}";
    let nothing: Prepare = |_| {};
    let fails: Prepare = |scene| scene.returns("a", maybe(Unavailable));
    let table: [Case<'_>; 6] = [
        (
            "an approval",
            "on_failure: cancel_all\nsteps: [{id: a, tool: t.once, approval: true}]".into(),
            nothing,
            &["Approval a", "Deadline"],
            "waiting",
            "failed",
        ),
        (
            "a deadline with compensation",
            "on_failure: compensate\nsteps: [{id: b, tool: t.set, compensation: {tool: t.undo}}, {id: a, tool: t.once, approval: {required: true, expires: 7d}, depends_on: [b]}]".into(),
            |scene| scene.returns("b", done(json!({}))),
            &["Deadline"],
            "waiting",
            "compensating",
        ),
        ("a retry", format!("deadline: 10d\nsteps: [{{id: a, tool: t.set, {retry}}}]"), fails, &["Retry a"], "running", "running"),
        (
            "a step's time",
            format!("deadline: 10d\nsteps: [{{id: a, tool: t.set, total_timeout: 2m, {retry}}}]"),
            fails,
            &["Retry a", "Step a"],
            "running",
            "waiting",
        ),
        (
            "an attempt in flight",
            "deadline: 10d\nsteps: [{id: a, tool: t.once, probe: {tool: t.find, happened: result.found}}]".into(),
            nothing,
            &["Attempt a"],
            "running",
            "running",
        ),
        ("a budget", "deadline: 10d\nbudget: {time: 1h}\nsteps: [{id: a, tool: t.once, approval: {required: true, expires: 7d}}]".into(), nothing, &["Time"], "waiting", "waiting"),
    ];
    for (name, plan, prepare, listed, resumed, expired) in table {
        for (expire, status) in [(false, resumed), (true, expired)] {
            let mut scene = ExecutionScenario::started(&plan);
            prepare(&mut scene);
            let before = scene.journal.len();
            scene.gap(2 * DAY);
            assert_eq!((scene.status(), scene.wakes_in()), ("paused", None), "{name}");
            assert_eq!(due(&scene), listed, "{name}");
            scene.later(DAY);
            scene.wake();
            let since: Vec<String> = scene.journal[before..].iter().map(|record| event_name(&record.event)).collect();
            assert!(since.iter().all(|event| ["Held", "AttemptLost"].contains(&event.as_str())), "{name}: {since:?}");
            match expire {
                true => scene.resume_expired(),
                false => scene.resume(),
            }
            assert_eq!(scene.status(), status, "{name}, expire {expire}");
        }
    }
}

/// Two approvals, a retry and a deadline came due: those that are named happen, all others have the time they had left.
#[test]
fn of_what_came_due_a_person_names_what_happens() {
    let plan = "deadline: 2h\nmax_parallel: 4\nsteps:
  - {id: a, tool: t.once, approval: {expires: 1h}, failure_policy: {action: continue_others}}
  - {id: b, tool: t.once, approval: {expires: 1h}}
  - {id: c, tool: t.set, retry: {max_attempts: 9, initial: 30m, max: 30m, backoff: fixed, jitter: false}}";
    let held = || {
        let mut scene = ExecutionScenario::started(plan);
        scene.returns("c", fails(Unavailable));
        scene.later(60_000);
        scene.gap(2 * DAY);
        assert_eq!(due(&scene), ["Retry c", "Approval a", "Approval b", "Deadline"]);
        scene.later(5_000);
        scene
    };
    let minutes = |count: i64| Some(count * 60_000);
    for (only, steps, asks, wakes_in) in [
        (&["a"][..], ["failed", "waiting", "retrying"], &["approval b"][..], minutes(29)),
        (&["c"], ["waiting", "waiting", "running"], &["approval a", "approval b"], minutes(1)),
        (&["a", "c"], ["failed", "waiting", "running"], &["approval b"], minutes(1)),
        (
            &["deadline"],
            ["waiting", "waiting", "retrying"],
            &["approval a", "approval b", "limit Deadline"],
            minutes(59),
        ),
    ] {
        let mut scene = held();
        scene.resume_expiring(only);
        assert_eq!(scene.steps(), steps, "{only:?}");
        let mut asked = scene.asks();
        asked.sort();
        assert_eq!((asked, scene.wakes_in()), (asks.iter().map(ToString::to_string).collect(), wakes_in), "{only:?}");
        let expired = scene.journal.iter().find_map(|record| match &record.event {
            Event::HoldEnded { frozen: Some(_), expired, .. } => Some(expired.iter().map(OverdueTimer::name).collect()),
            _ => None,
        });
        let mut named: Vec<String> = only.iter().map(ToString::to_string).collect();
        named.sort_by_key(|name| *name != "c");
        assert_eq!(expired, Some(named), "the entry says what expired");
        let replayed = ExecutionScenario::of_journal(scene.journal.clone());
        assert!(replayed.execution == scene.execution, "{only:?}");
    }
}

#[test]
fn only_what_the_hold_lists_can_be_named() {
    let mut scene =
        ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: {expires: 1h}}, {id: b, tool: t.set}]");
    let expiring = |name: &str| ExecutionInput::ResumeExpired { reason: String::new(), only: vec![name.to_owned()] };
    scene.pause();
    assert_eq!(scene.refused(&person(), expiring("a")), "execution.not_due", "a pause has nothing that came due");
    scene.resume();
    scene.gap(2 * DAY);
    for name in ["b", "deadlin", "time", "agent", "", "a[0]"] {
        assert_eq!(scene.refused(&person(), expiring(name)), "execution.not_due", "{name:?}");
    }
    scene.resume_expiring(&["a"]);
    assert_eq!(scene.asks(), ["failure a"]);
}

/// The lease of the agent, and a step whose total time is over.
#[test]
fn leases_and_total_times_expire_by_name() {
    let fields = "agent_timeout: 1h\nsteps: [{id: a, tool: t.once, total_timeout: 3h}]";
    for (only, asks) in [("agent", "silence"), ("a", "doubt a")] {
        let mut scene = ExecutionScenario::by_agent(fields);
        scene.start();
        scene.record_started("a");
        scene.later(60_000);
        scene.gap(2 * DAY);
        scene.resume_expiring(&[only]);
        assert_eq!(scene.asks(), [asks], "{only}");
    }
}

/// The span of the hold is left out of every timer, once.
#[test]
fn after_resuming_every_timer_has_the_time_it_had_left() {
    let approval = "{id: a, tool: t.once, approval: {required: true, expires: 2h}}";
    let retry = "{id: b, tool: t.set, retry: {max_attempts: 9, initial: 30m, max: 30m, backoff: fixed, jitter: false}}";
    for (plan, left) in [
        (format!("deadline: 10h\nsteps: [{approval}]"), 2 * 3_600_000),
        (format!("deadline: 1h\nsteps: [{approval}]"), 3_600_000),
        (format!("budget: {{time: 90m}}\nsteps: [{approval}]"), 5_400_000),
        (format!("steps: [{retry}]"), 1_800_000),
    ] {
        let mut scene = ExecutionScenario::started(&plan);
        if scene.calls() == ["b"] {
            scene.returns("b", fails(Unavailable));
        }
        scene.later(60_000);
        let expected = left - 60_000;
        assert_eq!(scene.wakes_in(), Some(expected), "{plan}");
        scene.gap(3 * DAY);
        scene.later(5_000);
        scene.resume();
        assert_eq!(scene.wakes_in(), Some(expected), "{plan}");
        // A second gap does not change that.
        scene.gap(2 * DAY);
        scene.resume();
        assert_eq!(scene.wakes_in(), Some(expected), "{plan}");
        let spans = scene.journal.iter().filter_map(|record| match &record.event {
            Event::HoldEnded { frozen, .. } => frozen.map(|span| span.0),
            _ => None,
        });
        assert_eq!(spans.collect::<Vec<_>>(), [3 * DAY as u64 + 5_000, 2 * DAY as u64]);
    }
}

#[test]
fn a_timer_set_while_held_runs_from_the_end_of_the_hold() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set, total_timeout: 90s}]");
    scene.later(20_000);
    scene.gap(2 * DAY);
    assert_eq!(scene.step("a"), "retrying", "the lost attempt is on record, its retry waits");
    scene.later(DAY);
    scene.resume();
    assert_eq!(scene.calls(), ["a#2"], "at once, and not after another three days");
    assert_eq!(scene.call("a").deadline.since(scene.now).0, 60_000);
    scene.later(50_000);
    scene.returns("a", fails(Unavailable));
    scene.wait();
    assert_eq!(scene.call("a").deadline.since(scene.part("a").began_at.unwrap()).0, 90_000 + 3 * DAY as u64);
}

#[test]
fn only_a_person_ends_a_hold() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]");
    scene.gap(2 * DAY);
    let expired = |only| ExecutionInput::ResumeExpired { reason: String::new(), only };
    let resume = ExecutionInput::Resume { reason: String::new() };
    for input in [resume, expired(Vec::new()), expired(vec!["a".to_owned()])] {
        assert_eq!(scene.refused(&agent(), input), "execution.not_a_person");
    }
    let again = ExecutionInput::Hold { reason: String::new(), since: scene.now };
    assert_eq!(scene.refused(&rutter_core::actor::Actor::rutter(), again), "execution.paused");
    scene.resume();
    scene.pause();
    scene.give(&agent(), ExecutionInput::Resume { reason: "an ordinary pause".into() });
    scene.pause();
    scene.resume_expired();
    assert_eq!(scene.status(), "waiting", "after an ordinary pause there is nothing to expire");
}

/// A pause does not stop the clock; a gap during the pause does.
#[test]
fn a_paused_execution_is_held_too() {
    let mut scene = ExecutionScenario::started("deadline: 1h\nsteps: [{id: a, tool: t.once, approval: true}]");
    scene.pause();
    assert_eq!(scene.wakes_in(), Some(3_600_000));
    scene.gap(2 * DAY);
    assert_eq!(scene.asks(), ["hold", "approval a"]);
    scene.resume();
    assert_eq!((scene.asks(), scene.wakes_in()), (vec!["approval a".to_owned()], Some(3_600_000)));
}

#[test]
fn what_a_gap_did_not_catch_is_not_held() {
    let open = "deadline: 10d\nsteps: [{id: a, tool: t.once, approval: {required: true, expires: 7d}}]";
    let mut scene = ExecutionScenario::started(open);
    scene.gap(2 * DAY);
    assert_eq!((scene.status(), scene.wakes_in()), ("waiting", Some(5 * DAY)));
    let mut scene = ExecutionScenario::by_agent(open);
    scene.start();
    scene.hand_over(Driver::Server);
    scene.gap(2 * DAY);
    assert_eq!(scene.status(), "waiting");
}

/// A person who cancels has looked; undoing waits for the end of the hold all the same.
#[test]
fn a_held_execution_can_be_stopped() {
    let plan = "steps: [{id: b, tool: t.set, compensation: {tool: t.undo}}, {id: a, tool: t.once, approval: true, depends_on: [b]}]";
    let held = || {
        let mut scene = ExecutionScenario::started(plan);
        scene.returns("b", done(json!({})));
        scene.gap(2 * DAY);
        scene
    };
    let mut scene = held();
    scene.cancel(Some(false));
    assert_eq!(scene.status(), "cancelled");
    let mut scene = held();
    scene.kill();
    assert_eq!(scene.status(), "cancelled");
    let mut scene = held();
    scene.cancel(Some(true));
    assert_eq!((scene.status(), scene.calls().len()), ("paused", 0));
    scene.resume();
    assert_eq!(scene.calls(), ["undo b"]);
}

/// The tool works on in the background: it is asked again once a person has looked.
#[test]
fn a_call_with_a_ticket_is_resumed_when_the_hold_ends() {
    for expire in [false, true] {
        let mut scene =
            ExecutionScenario::started("deadline: 10d\nsteps: [{id: a, tool: t.set, retry: {max_attempts: 1}}]");
        scene.accepts("a", "T1");
        scene.gap(2 * DAY);
        assert_eq!((scene.calls().len(), due(&scene)), (0, vec!["Attempt a".to_owned()]));
        match expire {
            true => {
                scene.resume_expired();
                assert_eq!(scene.asks(), ["failure a"]);
            }
            false => {
                scene.resume();
                assert_eq!(scene.running("a"), (CallSide::Do, 1));
                assert_eq!(scene.call("a").deadline.since(scene.now).0, 60_000);
            }
        }
    }
}

#[test]
fn a_hold_lists_the_first_that_came_due() {
    // Two timers per attempt: its own deadline, and the one of its step.
    for (deadline, items, listed, more) in [("10d", 49, 98, 0), ("10d", 50, 100, 0), ("1d", 50, 100, 1)] {
        let step = "tool: t.once, total_timeout: 1h, for_each: {items: inputs.list, max_parallel: 64}";
        let plan = format!(
            "inputs: {{properties: {{list: {{}}}}}}\ndeadline: {deadline}\nmax_parallel: 64\nsteps: [{{id: a, {step}}}]"
        );
        let list: Vec<u32> = (0..items).collect();
        let mut scene = ExecutionScenario::with(&plan, json!({ "list": list }));
        scene.start();
        scene.gap(2 * DAY);
        let found = scene.execution.hold().expect("it is held");
        assert_eq!((found.due.len(), found.more), (listed, more), "{items} of {}", limits::HOLD_DUE_MAX);
    }
}

/// A step in doubt has no timer of its own; its time stands still all the same.
#[test]
fn the_time_of_a_step_in_doubt_stands_still_too() {
    let step = "{id: a, tool: t.once, total_timeout: 2m, timeout: 10s}";
    let mut scene = ExecutionScenario::started(&format!("deadline: 10d\nsteps: [{step}]"));
    scene.wait();
    assert_eq!(scene.step("a"), "in_doubt");
    scene.hold(2 * DAY);
    scene.resume();
    scene.settle("a", false, json!({}));
    assert_eq!((scene.step("a"), scene.calls()), ("running", vec!["a#2".to_owned()]));
}

/// What is held waits for a person: an agent can neither stop it nor take it away.
#[test]
fn an_agent_decides_nothing_about_an_execution_that_is_held() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]");
    scene.gap(2 * DAY);
    let reason = String::new;
    for input in [
        ExecutionInput::Cancel { reason: reason(), undo: None },
        ExecutionInput::Kill { reason: reason() },
        ExecutionInput::HandOver { to: Driver::Agent, reason: reason() },
    ] {
        assert_eq!(scene.refused(&agent(), input), "execution.not_a_person");
    }
    scene.hand_over(Driver::Agent);
    assert_eq!(scene.status(), "paused");
}

/// The lease of the agent came due during the hold, and is among what is to happen.
#[test]
fn the_lease_of_an_agent_expires_when_a_hold_ends_so() {
    for (expire, asks) in [(true, vec!["silence".to_owned()]), (false, vec![])] {
        let mut scene = ExecutionScenario::by_agent("deadline: 10d\nsteps: [{id: a, tool: t.once}]");
        scene.start();
        scene.gap(2 * DAY);
        assert_eq!(due(&scene), ["Agent"]);
        match expire {
            true => scene.resume_expired(),
            false => scene.resume(),
        }
        assert_eq!(scene.asks(), asks, "expire {expire}");
    }
}

/// Such a gap has no length: nothing came due in it, and nobody knows what did.
#[test]
fn a_clock_that_went_back_catches_whatever_waits_for_a_timer() {
    let asking = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]");
    let mut retrying = ExecutionScenario::started(
        "steps: [{id: a, tool: t.set, retry: {max_attempts: 3, initial: 10s, jitter: false}}]",
    );
    retrying.returns("a", fails(Unavailable));
    let mut by_agent = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once}]");
    by_agent.start();
    let mut ended = ExecutionScenario::started("steps: [{id: a, tool: t.set}]");
    ended.returns("a", done(json!({})));
    for (scene, is_caught) in [(asking, true), (retrying, true), (by_agent, true), (ended, false)] {
        let last = scene.execution.view().last_at;
        let gap = WorkerGap { reason: "the clock went back".into(), since: last, until: last };
        assert_eq!(scene.execution.is_caught_by(&gap), is_caught, "{}", scene.status());
    }
}
