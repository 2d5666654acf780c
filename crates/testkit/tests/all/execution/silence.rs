//! Agents that drive and fall silent, and the deadlines of what they do.

use rutter_core::actor::Actor;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::journal::event::{CallSide, Event, EventRecord, Question, QuestionAnswer};
use rutter_core::journal::payload::EventPayload;
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory;
use rutter_testkit::scene::*;
use serde_json::json;

const TWO: &str = "steps: [{id: a, tool: t.once}, {id: b, tool: t.set, depends_on: [a]}]";
const THREE: &str = "steps: [{id: a, tool: t.once}, {id: b, tool: t.set}, {id: c, tool: t.set}]";

fn driven(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::by_agent(fields);
    scene.start();
    scene
}

/// A step that the agent starts and never ends is closed at its timeout and goes by its safety.
#[test]
fn a_step_of_an_agent_has_a_deadline() {
    for (step, after, status) in [
        ("tool: t.once, timeout: 2s", 2_000, "in_doubt"),
        ("tool: t.set, timeout: 2s", 2_000, "retrying"),
        ("tool: t.set, timeout: 2s, retry: {max_attempts: 1}", 2_000, "waiting"),
        ("tool: t.once, total_timeout: 3s", 3_000, "in_doubt"),
    ] {
        let mut scene = driven(&format!("steps: [{{id: a, {step}}}]"));
        scene.record_started("a");
        scene.later(after - 1);
        assert_eq!(scene.step("a"), "running", "{step}");
        scene.later(1);
        assert_eq!(scene.step("a"), status, "{step}");
    }
    let mut scene = driven("defaults: {timeout: 5s}\nsteps: [{id: a, tool: t.once}]");
    scene.record_started("a");
    assert_eq!(scene.wakes_in(), Some(5_000));
}

/// The default timeout is for calls of Rutter: an agent may take longer, until its lease or the deadline ends.
#[test]
fn the_default_timeout_is_not_for_agents() {
    let mut scene = driven(&format!("deadline: 20m\n{TWO}"));
    scene.record_started("a");
    scene.later(20 * 60_000 - 1);
    assert_eq!(scene.step("a"), "running");
    scene.later(1);
    assert_eq!(scene.asks(), ["doubt a", "limit Deadline"]);
    scene.record_finished("a", json!({}));
    assert_eq!(scene.step("a"), "in_doubt", "what an agent says about a doubt settles nothing");
}

#[test]
fn an_agent_that_is_silent_is_asked_about() {
    for (field, timeout) in [("", 30 * 60_000), ("agent_timeout: 10s\n", 10_000)] {
        let mut scene = driven(&format!("{field}{TWO}"));
        scene.record_started("a");
        scene.later(timeout - 1);
        assert_eq!((scene.status(), scene.asks().len()), ("running", 0));
        scene.later(1);
        assert_eq!((scene.status(), scene.asks()), ("waiting", vec!["silence".to_owned()]));
        assert_eq!(scene.count("AgentSilent"), 1);
        // It comes back: the question is settled by what it does.
        scene.record_finished("a", json!({}));
        assert_eq!((scene.asks().len(), scene.wakes_in()), (0, Some(timeout)));
    }
}

#[test]
fn signs_of_life_are_recorded_sparsely() {
    let mut scene = driven(&format!("agent_timeout: 10s\n{TWO}"));
    scene.record_started("a");
    let seen = |scene: &mut ExecutionScenario| {
        scene.give(&agent(), ExecutionInput::AgentSeen { remembered: false });
        scene.count("AgentSeen")
    };
    scene.later(5_000);
    assert_eq!(seen(&mut scene), 0, "half of the time has not passed");
    scene.later(1);
    assert_eq!((seen(&mut scene), seen(&mut scene)), (1, 1));
    assert_eq!(scene.wakes_in(), Some(10_000));
    scene.later(10_000);
    assert_eq!(scene.asks(), ["silence"]);
    assert_eq!((seen(&mut scene), scene.asks().len()), (2, 0));
    assert_eq!(scene.refused(&person(), ExecutionInput::AgentSeen { remembered: false }), "execution.driver");
    let another = Actor::agent("another");
    assert_eq!(scene.refused(&another, ExecutionInput::AgentSeen { remembered: false }), "execution.driver");
    scene.hand_over(Driver::Server);
    assert_eq!(scene.refused(&agent(), ExecutionInput::AgentSeen { remembered: false }), "execution.driver");
}

/// The agent is not silent while it is not its turn.
#[test]
fn who_waits_for_a_person_is_not_silent() {
    let mut scene =
        driven("agent_timeout: 10s\nsteps: [{id: a, tool: t.once, approval: {required: true, expires: 5h}}]");
    assert_eq!((scene.asks(), scene.wakes_in()), (vec!["approval a".to_owned()], Some(5 * 3_600_000)));
    scene.later(3_600_000);
    scene.approve("a");
    assert_eq!(scene.wakes_in(), Some(10_000), "from the answer on it is the agent's turn");
    scene.pause();
    assert_eq!(scene.wakes_in(), Some(4 * 3_600_000));
    scene.resume();
    assert_eq!(scene.wakes_in(), Some(10_000));
}

#[test]
fn each_answer_to_silence_has_its_effect() {
    use QuestionAnswer::*;
    let silent = || {
        let mut scene = driven(&format!("agent_timeout: 10s\n{TWO}"));
        scene.record_started("a");
        scene.later(10_000);
        scene
    };
    let mut scene = silent();
    scene.answer(Question::Silence, Continue);
    assert_eq!((scene.status(), scene.wakes_in()), ("running", Some(10_000)));
    for answer in [Stop, Compensate] {
        let mut scene = silent();
        scene.answer(Question::Silence, answer);
        assert_eq!((scene.step("a"), scene.asks()), ("in_doubt", vec!["doubt a".to_owned()]), "{answer:?}");
        assert_eq!(scene.deviations(), ["Dangling a"], "{answer:?}");
    }
    for answer in [Retry, Skip, Resolve, Replan] {
        let refused = silent().refused(&person(), answering(Question::Silence, answer, Some(json!({}))));
        assert_eq!(refused, "execution.no_such_answer");
    }
    let mut scene = silent();
    scene.hand_over(Driver::Server);
    assert_eq!((scene.asks().len(), scene.step("a")), (1, "in_doubt"), "what it left open goes by its safety");
    let mut scene = silent();
    scene.hand_over(Driver::Agent);
    assert_eq!(scene.asks(), ["doubt a"], "another agent takes over");
    assert_eq!(scene.refused(&person(), answering(Question::Silence, Continue, None)), "execution.no_question");
}

#[test]
fn a_plan_can_hand_over_from_a_silent_agent() {
    for (step, calls, status) in [("t.once", 0, "in_doubt"), ("t.set", 1, "running")] {
        let fields = format!("agent_timeout: 10s\non_agent_silence: hand_over\nsteps: [{{id: a, tool: {step}}}]");
        let mut scene = driven(&fields);
        scene.record_started("a");
        scene.later(10_000);
        assert_eq!((scene.calls().len(), scene.step("a")), (calls, status));
        assert_eq!((scene.count("AgentSilent"), scene.count("HandedOver")), (1, 1));
        assert_eq!(scene.execution.driver(), Driver::Server);
    }
}

/// What a person does is no sign of life of the agent; a sign that came early counts from when it came.
#[test]
fn only_the_agent_renews_its_lease() {
    let mut scene = driven(&format!("agent_timeout: 10s\n{TWO}"));
    scene.later(4_000);
    let values = serde_json::Map::new();
    scene.give(&person(), ExecutionInput::SaveContext { values });
    assert_eq!(scene.wakes_in(), Some(6_000));
    scene.give(&agent(), ExecutionInput::AgentSeen { remembered: true });
    assert_eq!((scene.count("AgentSeen"), scene.wakes_in()), (1, Some(10_000)));
    scene.give(&agent(), ExecutionInput::AgentSeen { remembered: true });
    assert_eq!(scene.count("AgentSeen"), 1, "nothing new");
}

/// Neither looks nor records of another agent are signs of life of the one that drives.
#[test]
fn another_agent_does_not_renew_the_lease() {
    let another = Actor::agent("another");
    let record = |id: &str| ExecutionInput::RecordStarted { part: part(id), tool: None, parameters: None };
    let mut scene = driven(&format!("agent_timeout: 10s\nmax_parallel: 2\n{THREE}"));
    scene.record_started("a");
    scene.later(8_000);
    assert!(!scene.execution.is_sign_of_life(&another) && scene.execution.is_sign_of_life(&agent()));
    scene.give(&another, record("b"));
    assert_eq!(scene.wakes_in(), Some(2_000), "what it records counts as work, not as a sign of life");
    scene.later(2_000);
    assert_eq!(scene.asks(), ["silence"]);
    let silent = scene.journal.iter().find_map(|record| match &record.event {
        Event::AgentSilent { agent, .. } => agent.clone(),
        _ => None,
    });
    assert_eq!(silent, Some(agent()), "the entry says who is silent");
    scene.give(&another, ExecutionInput::SaveContext { values: serde_json::Map::new() });
    assert_eq!(scene.asks(), ["silence"], "another agent does not answer for it");
    // It takes over, and from then on it is the one that counts.
    scene.give(&another, ExecutionInput::HandOver { to: Driver::Agent, reason: "it is gone".into() });
    scene.give(&another, record("c"));
    assert_eq!((scene.count("AgentSilent"), scene.wakes_in()), (1, Some(10_000)));
    scene.later(4_000);
    scene.give(&agent(), ExecutionInput::SaveContext { values: serde_json::Map::new() });
    assert_eq!(scene.wakes_in(), Some(6_000));
    scene.give(&another, ExecutionInput::SaveContext { values: serde_json::Map::new() });
    assert_eq!(scene.wakes_in(), Some(10_000));
}

/// Where a person opened the execution, the agent that begins the first step drives; a look before is no claim.
#[test]
fn the_agent_that_opens_or_begins_drives() {
    let another = Actor::agent("another");
    let mut scene = driven(&format!("agent_timeout: 10s\n{TWO}"));
    scene.later(4_000);
    scene.give(&another, ExecutionInput::AgentSeen { remembered: true });
    assert_eq!(scene.wakes_in(), Some(10_000), "nobody drives yet");
    scene.record_started("a");
    assert!(scene.execution.is_sign_of_life(&agent()) && !scene.execution.is_sign_of_life(&another));

    let mut opened = scene.journal[0].clone();
    opened.actor = another.clone();
    let scene = ExecutionScenario::of_journal(vec![opened]);
    assert!(scene.execution.is_sign_of_life(&another) && !scene.execution.is_sign_of_life(&agent()));
}

/// In journals of earlier versions any agent ended a silence.
#[test]
fn a_journal_in_which_another_agent_ended_a_silence_is_read() {
    let mut scene = driven(&format!("agent_timeout: 10s\n{TWO}"));
    scene.record_started("a");
    scene.later(10_000);
    let mut journal = scene.journal.clone();
    let mut silent = journal.pop().expect("the last entry says that the agent is silent");
    let Event::AgentSilent { agent, .. } = &mut silent.event else { panic!("{silent:?}") };
    *agent = None;
    let event = Event::ContextSaved { values: EventPayload::Present(std::sync::Arc::new(json!({}))) };
    let heard = EventRecord { at: scene.now, actor: Actor::agent("another"), event };
    journal.extend([silent.clone(), heard, silent]);
    assert_eq!(ExecutionScenario::of_journal(journal).asks(), ["silence"]);
}

/// A question about one step is no excuse while another one could begin.
#[test]
fn an_agent_with_work_left_is_silent_although_a_person_is_asked() {
    let fields = "agent_timeout: 10s\nmax_parallel: 2
steps: [{id: a, tool: t.once, approval: {required: true, expires: 5h}}, {id: b, tool: t.set}]";
    let mut scene = driven(fields);
    assert_eq!((scene.asks(), scene.wakes_in()), (vec!["approval a".to_owned()], Some(10_000)));
    let mut other = driven(fields);
    other.record_started("b");
    other.record_finished("b", json!({}));
    assert_eq!(other.wakes_in(), Some(5 * 3_600_000), "all that is left waits for a person");
    scene.later(10_000);
    assert_eq!(scene.asks(), ["silence", "approval a"]);
}

const UNDONE: &str = "agent_timeout: 4s\nsteps: [{id: a, tool: t.once, compensation: {tool: t.undo}},
{id: b, tool: t.set, depends_on: [a], retry: {max_attempts: 1}, failure_policy: {action: compensate}}]";

/// `a` took effect and `b` failed, which the agent is to undo.
fn undoing(fields: &str) -> ExecutionScenario {
    let mut scene = driven(&format!("{fields}{UNDONE}"));
    scene.record_started("a");
    scene.record_finished("a", json!({ "id": 7 }));
    scene.record_started("b");
    scene.record_failed("b", FailureCategory::ToolError, false);
    assert_eq!((scene.status(), scene.asks().len()), ("compensating", 0));
    scene
}

#[test]
fn an_agent_that_does_not_undo_is_asked_about() {
    let mut scene = undoing("");
    assert_eq!(scene.wakes_in(), Some(4_000));
    scene.later(4_000);
    assert_eq!((scene.status(), scene.asks()), ("waiting", vec!["silence".to_owned()]));
    for answer in [QuestionAnswer::Stop, QuestionAnswer::Compensate] {
        assert_eq!(scene.refused(&person(), answering(Question::Silence, answer, None)), "execution.no_such_answer");
    }
    scene.answer(Question::Silence, QuestionAnswer::Continue);
    assert_eq!((scene.status(), scene.wakes_in()), ("compensating", Some(4_000)));
    scene.later(4_000);
    scene.hand_over(Driver::Server);
    assert_eq!(scene.started_calls(CallSide::Undo), ["a"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn what_a_silent_agent_has_to_undo_is_handed_over_if_the_plan_says_so() {
    let mut scene = undoing("on_agent_silence: hand_over\n");
    scene.later(4_000);
    assert_eq!((scene.count("AgentSilent"), scene.count("HandedOver")), (1, 1));
    assert_eq!(scene.started_calls(CallSide::Undo), ["a"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

/// A sign of life, also an undone step, renews the lease of an agent that undoes.
#[test]
fn an_agent_that_undoes_is_not_silent() {
    let mut scene = undoing("");
    scene.later(3_000);
    scene.give(&agent(), ExecutionInput::AgentSeen { remembered: true });
    assert_eq!(scene.wakes_in(), Some(4_000));
    scene.later(3_000);
    let (description, evidence) = ("took it back".to_owned(), None);
    scene.give(&agent(), ExecutionInput::RecordCompensation { part: part("a"), description, evidence });
    assert_eq!((scene.status(), scene.count("AgentSilent")), ("compensated", 0));
}

/// While the execution stops, only the agent's own open attempts are waited for, and no longer than its lease.
#[test]
fn an_execution_that_stops_does_not_wait_for_a_silent_agent() {
    for (tool, step, asks) in [("t.once", "in_doubt", &["doubt a"] as &[&str]), ("t.set", "failed", &[])] {
        for has_fallen_silent in [false, true] {
            let case = format!("{tool}, silent before: {has_fallen_silent}");
            let mut scene = driven(&format!("agent_timeout: 4s\nsteps: [{{id: a, tool: {tool}}}]"));
            scene.record_started("a");
            scene.later(if has_fallen_silent { 4_000 } else { 1_000 });
            scene.cancel(Some(false));
            if !has_fallen_silent {
                assert_eq!((scene.step("a"), scene.wakes_in()), ("running", Some(3_000)), "{case}");
                scene.later(3_000);
            }
            assert_eq!(
                (scene.step("a"), scene.asks()),
                (step, asks.iter().map(ToString::to_string).collect()),
                "{case}"
            );
            assert_eq!(scene.count("AgentSilent"), 1, "{case}");
        }
    }
}

/// It comes back after all: what it did is an answer that came late, and nothing it did without being asked.
#[test]
fn what_a_silent_agent_did_is_recorded_although_the_execution_stops() {
    let mut scene = driven("agent_timeout: 4s\nmax_parallel: 2\nsteps: [{id: a, tool: t.set}, {id: b, tool: t.once}]");
    scene.record_started("a");
    scene.record_started("b");
    scene.later(4_000);
    scene.cancel(Some(false));
    assert_eq!((scene.steps(), scene.asks()), (vec!["failed", "in_doubt"], vec!["doubt b".to_owned()]));
    scene.record_finished("a", json!({ "id": 1 }));
    assert_eq!((scene.count("LateAnswerArrived"), scene.count("ActionRecorded")), (1, 0));
    assert!(scene.deviations().iter().all(|found| !found.starts_with("Undeclared")), "{:?}", scene.deviations());
}

#[test]
fn an_agent_that_undoes_is_told_what_to_call() {
    let fields = "steps: [{id: a, tool: t.once, compensation: {tool: t.undo, parameters: {id: \"{{ result.id }}\"}}}]";
    let mut scene = driven(fields);
    scene.record_started("a");
    scene.record_finished("a", json!({ "id": 7 }));
    scene.compensate(None);
    let due = scene.execution.view().compensation_due.unwrap();
    assert_eq!((due.part.to_string(), due.tool.as_str()), ("a".to_owned(), "t.undo"));
    assert_eq!((due.parameters.as_deref(), due.not_before), (Ok(&json!({ "id": 7 })), None));
    let brief = scene.execution.brief();
    let next = "Next: call t.undo with {\"id\":7} to undo step a, then record_compensation";
    assert!(brief.contains(next), "{brief}");
}
