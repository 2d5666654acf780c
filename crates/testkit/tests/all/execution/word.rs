//! A person's word and the operator's policy: what they forbid is not called, by whatever way.

use rutter_core::actor::{Actor, RequiredProof};
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::journal::event::{CallSide, Event, Question, QuestionAnswer};
use rutter_core::limits;
use rutter_core::plan::Driver;
use rutter_testkit::scene::*;
use serde_json::json;

const ASKED: &str = "steps: [{id: a, tool: t.once, parameters: {n: 1}, approval: {expires: 1h}}]";
const UNASKED: &str = "steps: [{id: a, tool: t.once, parameters: {n: 1}}]";
const RENAMED: &str = "steps: [{id: b, tool: t.once, parameters: {n: 1}}]";

fn started_with(rules: serde_json::Value, fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::of(fields);
    scene.policy = policy(rules);
    scene.start();
    scene
}

fn retry(scene: &mut ExecutionScenario, actor: &Actor) {
    scene.give(actor, answering(Question::Failure(step("a")), QuestionAnswer::Retry, None));
}

fn proposal(scene: &ExecutionScenario) -> rutter_core::hash::Hash {
    let plan = scene.execution.questions().into_iter().find_map(|ask| match ask {
        PendingQuestion::Replan { plan, .. } => Some(plan),
        _ => None,
    });
    plan.expect("a new plan waits for approval")
}

// A denial holds.

#[test]
fn a_denied_call_is_not_made_after_an_agent_replanned_its_approval_away() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.deny("a");
    scene.replan(UNASKED);
    assert_eq!((scene.count("AttemptStarted"), scene.count("Replanned")), (0, 0));
    assert_eq!(scene.asks(), ["failure a", "replan 2"]);
    // Even if a person lets the plan pass, the call itself stays denied until a person approves it.
    let plan = proposal(&scene);
    scene.give(&person(), ExecutionInput::ApproveReplan { plan, reason: "simpler".into() });
    assert_eq!((scene.count("AttemptStarted"), scene.asks()), (0, vec!["approval a".to_owned()]));
    scene.approve("a");
    assert_eq!(scene.calls(), ["a"]);
}

#[test]
fn a_call_that_waits_for_approval_is_not_made_under_another_name() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.replan(RENAMED);
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval a".to_owned(), "replan 2".to_owned()]));
    let plan = proposal(&scene);
    scene.give(&person(), ExecutionInput::RejectReplan { plan, reason: "no".into() });
    assert_eq!((scene.count("Replanned"), scene.asks()), (0, vec!["approval a".to_owned()]));
}

#[test]
fn a_step_that_needs_approval_does_not_come_back_without_it() {
    const FIRST: &str = "{id: first, tool: t.set}";
    let guarded = format!("steps: [{FIRST}, {{id: a, tool: t.once, depends_on: [first], approval: {{expires: 1h}}}}]");
    let back = format!("steps: [{FIRST}, {{id: b, tool: t.once, depends_on: [first]}}]");
    let mut scene = ExecutionScenario::started(&guarded);
    scene.replan(&format!("steps: [{FIRST}]"));
    assert_eq!((scene.count("Replanned"), scene.asks()), (1, vec![]), "leaving it out weakens nothing");
    scene.replan(&back);
    assert_eq!((scene.count("Replanned"), scene.asks()), (1, vec!["replan 3".to_owned()]));
    scene.crash();
    assert_eq!(scene.asks(), ["replan 3"]);
    // A person's approval is the end of it.
    let plan = proposal(&scene);
    scene.give(&person(), ExecutionInput::ApproveReplan { plan, reason: "it is fine".into() });
    scene.replan(&format!("steps: [{FIRST}, {{id: c, tool: t.once, depends_on: [first]}}]"));
    assert_eq!((scene.count("Replanned"), scene.asks()), (3, vec![]));
}

#[test]
fn a_call_that_waits_for_approval_is_not_made_as_an_undoing() {
    for undo in ["{tool: t.once, parameters: {n: 1}}", "{tool: t.once, parameters: {n: 2}}"] {
        let mut scene = ExecutionScenario::started(ASKED);
        let step = "{id: a, tool: t.once, parameters: {n: 1}, approval: {expires: 1h}}";
        scene.replan(&format!("steps: [{step}, {{id: b, tool: t.set, compensation: {undo}}}]"));
        assert_eq!((scene.count("Replanned"), scene.calls()), (0, vec![]), "{undo}");
        assert_eq!(scene.asks(), ["approval a", "replan 2"]);
    }
}

#[test]
fn a_denied_call_is_asked_for_again_under_any_name_and_after_a_crash() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.deny("a");
    scene.replan_as(&person(), RENAMED);
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval b".to_owned()]));
    scene.crash();
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval b".to_owned()]));
    scene.deny("b");
    scene.replan_as(&person(), "steps: [{id: c, tool: t.set, fallback: {tool: t.once, parameters: {n: 1.0}}}]");
    scene.returns("c", fails(rutter_core::tool::FailureCategory::ToolError));
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval c".to_owned()]));
    scene.replan_as(&person(), "steps: [{id: d, tool: t.once, parameters: {n: 2}}]");
    assert_eq!(scene.calls(), ["d"], "another call was not denied");
}

#[test]
fn an_agent_cannot_resolve_a_step_that_was_denied_or_may_have_happened() {
    let resolve = || answering(Question::Failure(step("a")), QuestionAnswer::Resolve, Some(json!({"paid": true})));
    let mut scene = ExecutionScenario::started(ASKED);
    scene.deny("a");
    assert_eq!(scene.refused(&agent(), resolve()), "execution.not_a_person");
    scene.give(&person(), resolve());
    let mut scene = ExecutionScenario::started(ASKED);
    scene.later(3_600_000);
    assert_eq!(scene.refused(&agent(), resolve()), "execution.not_a_person");
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set, retry: {max_attempts: 1}}]");
    scene.returns("a", maybe(rutter_core::tool::FailureCategory::Timeout));
    assert_eq!(scene.refused(&agent(), resolve()), "execution.not_a_person");
}

#[test]
fn an_agent_may_ask_again_three_times_and_then_only_a_person() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.deny("a");
    for _ in 0..limits::ASK_AGAIN_DEFAULT {
        retry(&mut scene, &agent());
        assert_eq!(scene.asks(), ["approval a"]);
        scene.deny("a");
    }
    for _ in 0..20 {
        retry(&mut scene, &agent());
        assert_eq!(scene.asks(), ["failure a"]);
    }
    assert_eq!(scene.count("ApprovalRequested"), 1 + limits::ASK_AGAIN_DEFAULT as usize);
    retry(&mut scene, &person());
    assert_eq!(scene.asks(), ["approval a"]);
    scene.approve("a");
    assert_eq!(scene.calls(), ["a"]);
}

/// Below, at and above the operator's limit; a person who wants to be asked is asked, also with a limit of 0.
#[test]
fn the_operator_says_how_often_people_may_be_asked_again() {
    for max in [0, 1, 3] {
        let mut scene = ExecutionScenario::of(ASKED);
        scene.policy.ask_again_max = max;
        scene.start();
        scene.deny("a");
        for again in 0..max {
            retry(&mut scene, &agent());
            assert_eq!(scene.asks(), ["approval a"], "{max}: time {again}");
            scene.deny("a");
        }
        retry(&mut scene, &agent());
        assert_eq!(scene.asks(), ["failure a"], "{max}");
        let refused = scene.execution.view().failures[0].failure.message.clone();
        let expected = match max {
            0 => "it was denied, and nobody may be asked again".to_owned(),
            1 => "it was denied, and it was asked for once again".to_owned(),
            more => format!("it was denied, and it was asked for {more} times again"),
        };
        assert!(refused.contains(&expected), "{max}: {refused}");
        retry(&mut scene, &person());
        assert_eq!(scene.asks(), ["approval a"], "{max}: a person wants to be asked");
        scene.deny("a");
        // That was the first time again of as many as are allowed.
        for _ in 1..max {
            retry(&mut scene, &agent());
            scene.deny("a");
        }
        retry(&mut scene, &agent());
        assert_eq!(scene.asks(), ["failure a"], "{max}");
        assert_eq!(scene.count("ApprovalRequested"), 1 + (max + max.max(1)) as usize);
        let replayed = ExecutionScenario::of_journal(scene.journal.clone());
        assert!(replayed.execution == scene.execution, "{max}: a replay under another limit");
    }
}

#[test]
fn a_call_that_nobody_answers_has_the_same_limit() {
    for max in [0, 1, 3] {
        let mut scene = ExecutionScenario::of(ASKED);
        scene.policy.ask_again_max = max;
        scene.start();
        for _ in 0..=max {
            assert_eq!(scene.asks(), ["approval a"], "{max}");
            scene.later(3_600_000);
            retry(&mut scene, &agent());
        }
        assert_eq!((scene.asks(), scene.count("ApprovalRequested")), (vec!["failure a".to_owned()], 1 + max as usize));
    }
}

#[test]
fn a_no_withdraws_an_unused_yes_to_the_same_call() {
    let two = "max_parallel: 2\nsteps:
  - {id: a, tool: t.once, parameters: {n: 1}, approval: {expires: 1h}}
  - {id: b, tool: t.once, parameters: {n: 1}, approval: {expires: 1h}}";
    let mut scene = ExecutionScenario::started(two);
    scene.pause();
    scene.approve("a");
    scene.deny("b");
    scene.resume();
    assert_eq!(scene.count("AttemptStarted"), 0);
}

#[test]
fn an_agent_cannot_hand_back_what_it_did_without_approval() {
    let fields = "steps:
  - {id: a, tool: t.once, parameters: {n: 1}, approval: {expires: 1h}}
  - {id: b, tool: t.once, depends_on: [a]}";
    let mut scene = ExecutionScenario::started(fields);
    scene.deny("a");
    scene.give(&agent(), ExecutionInput::HandOver { to: Driver::Agent, reason: "mine".into() });
    scene.record_started("a");
    scene.record_finished("a", json!({}));
    assert_eq!(scene.deviations(), ["Unapproved a"]);
    let back = || ExecutionInput::HandOver { to: Driver::Server, reason: "yours".into() };
    assert_eq!(scene.refused(&agent(), back()), "execution.not_a_person");
    scene.give(&person(), back());
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["doubt a".to_owned()]));
    scene.settle("a", true, json!({}));
    assert_eq!(scene.calls(), ["b"]);
}

#[test]
fn what_an_agent_was_not_allowed_to_do_is_not_done_by_its_word() {
    let fields = "steps:
  - {id: a, tool: t.once, parameters: {n: 1}}
  - {id: b, tool: t.set, depends_on: [a]}";
    let rules = [json!({"tools": ["t.once"], "approval": {}}), json!({"tools": ["t.once"], "deny": "no"})];
    for rule in rules {
        let mut scene = started_with(json!([rule]), fields);
        if scene.asks() == ["approval a"] {
            scene.deny("a");
        }
        scene.hand_over(Driver::Agent);
        scene.record_finished("a", json!({"id": "invented"}));
        assert_eq!(
            (scene.step("a"), scene.status(), scene.asks()),
            ("in_doubt", "waiting", vec!["doubt a".to_owned()])
        );
        let questions = scene.execution.questions();
        let PendingQuestion::Doubt { reason: said, .. } = &questions[0] else { panic!("{questions:?}") };
        assert!(
            said.contains("the agent that made the call recorded that it was done") && said.contains("invented"),
            "{said}"
        );
        // It does not help to say it again, and no agent settles it.
        scene.record_finished("a", json!({"id": "invented"}));
        assert_eq!(scene.refused(&agent(), settling("a", true, json!({}))), "execution.not_a_person");
        scene.crash();
        assert_eq!(scene.step("a"), "in_doubt");
        scene.settle("a", false, json!(null));
        assert_ne!(scene.step("a"), "completed");
    }
    // What it was allowed to do is done.
    let mut scene = started_with(json!([{"tools": ["t.once"], "approval": {}}]), fields);
    scene.hand_over(Driver::Agent);
    scene.approve("a");
    scene.record_finished("a", json!({}));
    assert_eq!((scene.step("a"), scene.deviations()), ("completed", vec![]));
}

#[test]
fn a_person_who_is_asked_again_is_told_of_the_no_before() {
    let mut scene = ExecutionScenario::started(ASKED);
    let told = |scene: &ExecutionScenario| match &scene.execution.questions()[0] {
        PendingQuestion::Approval { denied, .. } => denied.as_ref().map(|denied| denied.words()),
        other => panic!("{other:?}"),
    };
    assert_eq!(told(&scene), None);
    let call = scene.asked("a");
    let no = ExecutionInput::Deny { part: part("a"), call, reason: "fraud \"and\nmore\"".into() };
    scene.give(&person(), no);
    retry(&mut scene, &agent());
    let words = told(&scene).expect("it was denied before");
    assert!(words.contains("denied this call at ") && words.contains(r#""fraud \"and more\"""#), "{words}");
    assert!(!words.contains("times since"), "{words}");
    scene.deny("a");
    retry(&mut scene, &agent());
    assert!(told(&scene).expect("it was denied twice").ends_with("and it was asked for 2 times since"));
}

#[test]
fn an_agent_cannot_resolve_an_item_that_was_denied_and_a_person_can_let_it_be_asked_for_again() {
    let fields = "max_parallel: 2
steps:
  - {id: a, tool: t.once, for_each: '[1, 2]', parameters: {n: '{{ item }}'}, approval: {expires: 1h}}";
    let about = || Question::Item(part("a[1]"));
    let mut scene = ExecutionScenario::started(fields);
    scene.approve("a[0]");
    scene.returns("a[0]", done(json!({})));
    scene.deny("a[1]");
    let resolve = answering(about(), QuestionAnswer::Resolve, Some(json!({"paid": true})));
    assert_eq!(scene.refused(&agent(), resolve), "execution.not_a_person");
    for _ in 0..limits::ASK_AGAIN_DEFAULT {
        scene.give(&agent(), answering(about(), QuestionAnswer::Retry, None));
        scene.deny("a[1]");
    }
    scene.give(&agent(), answering(about(), QuestionAnswer::Retry, None));
    assert!(!scene.asks().contains(&"approval a[1]".to_owned()), "{:?}", scene.asks());
    scene.give(&person(), answering(about(), QuestionAnswer::Retry, None));
    assert!(scene.asks().contains(&"approval a[1]".to_owned()), "{:?}", scene.asks());
}

#[test]
fn an_agent_cannot_record_an_undoing_that_was_denied() {
    let rule = json!({"tools": ["t.undo"], "approval": {"expires": "1h"}});
    let fields = "steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]";
    let mut scene = started_with(json!([rule]), fields);
    scene.returns("a", done(json!({})));
    scene.compensate(None);
    scene.deny("a");
    let undone =
        || ExecutionInput::RecordCompensation { part: part("a"), description: "by hand".into(), evidence: None };
    assert_eq!(scene.refused(&agent(), undone()), "execution.not_a_person");
    scene.give(&person(), undone());
}

#[test]
fn an_agent_does_not_wash_a_no_away_with_what_it_reports() {
    let fields = "steps:
  - {id: a, tool: t.once, parameters: {n: 500}}
  - {id: b, tool: t.set, depends_on: [a]}";
    let approval = json!({"tools": ["t.once"], "when": "parameters.n > 100", "approval": {}});
    let deny = json!({"tools": ["t.once"], "when": "parameters.n > 100", "deny": "too much"});
    for (rule, deviation) in [(approval, "Unapproved a"), (deny, "Forbidden a")] {
        for (tool_name, parameters) in [(None, Some(json!({"n": 1}))), (Some("t.read"), None)] {
            let mut scene = started_with(json!([rule.clone()]), fields);
            if scene.asks() == ["approval a"] {
                scene.deny("a");
            }
            scene.give(&agent(), ExecutionInput::HandOver { to: Driver::Agent, reason: "mine".into() });
            let (tool, parameters) = (tool_name.map(tool), parameters.map(std::sync::Arc::new));
            scene.give(&agent(), ExecutionInput::RecordStarted { part: part("a"), tool, parameters });
            scene.record_finished("a", json!({"id": "invented"}));
            assert!(scene.deviations().contains(&deviation.to_owned()), "{:?}", scene.deviations());
            let back = ExecutionInput::HandOver { to: Driver::Server, reason: "yours".into() };
            assert_eq!(scene.refused(&agent(), back), "execution.not_a_person");
        }
    }
}

#[test]
fn an_approval_is_for_the_parameters_that_were_seen() {
    let begun = |parameters: Option<serde_json::Value>| {
        let mut scene = ExecutionScenario::started(ASKED);
        scene.give(&agent(), ExecutionInput::HandOver { to: Driver::Agent, reason: "mine".into() });
        scene.approve("a");
        let parameters = parameters.map(std::sync::Arc::new);
        scene.give(&agent(), ExecutionInput::RecordStarted { part: part("a"), tool: None, parameters });
        scene.deviations()
    };
    assert!(begun(None).is_empty());
    assert!(begun(Some(json!({"n": 1.0}))).is_empty());
    assert_eq!(begun(Some(json!({"n": 500_000}))), ["Unapproved a"]);
}

#[test]
fn a_proven_no_is_lifted_only_by_a_proven_yes() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.deny("a");
    retry(&mut scene, &agent());
    let approve = ExecutionInput::Approve { part: part("a"), call: scene.asked("a"), reason: String::new() };
    assert_eq!(scene.refused(&person().unproven(), approve.clone()), "execution.not_proven");
    scene.give(&person(), approve);
    assert_eq!(scene.calls(), ["a"]);
    let mut scene = ExecutionScenario::started(ASKED);
    let call = scene.asked("a");
    scene.give(&person().unproven(), ExecutionInput::Deny { part: part("a"), call, reason: "no".into() });
    retry(&mut scene, &agent());
    let approve = ExecutionInput::Approve { part: part("a"), call: scene.asked("a"), reason: String::new() };
    scene.give(&person().unproven(), approve);
    assert_eq!(scene.calls(), ["a"], "what nobody proved is lifted by the same");
}

/// What only a program says in a person's name does not go past the no of a person with a credential, or past a rule that
/// asks for one.
#[test]
fn an_unproven_word_does_not_go_past_a_proven_no() {
    let fields = "steps:
  - {id: a, tool: t.once, parameters: {n: 1}, approval: {expires: 1h}}
  - {id: b, tool: t.other, depends_on: [a]}";
    let ruled = "steps:
  - {id: a, tool: t.once, parameters: {n: 1}}
  - {id: b, tool: t.other, depends_on: [a]}";
    let answer = |answer, result| answering(Question::Failure(step("a")), answer, result);
    for (rules, fields) in [
        (json!([]), fields),
        (json!([{"tools": ["t.once"], "approval": {"proof": "credential"}}]), ruled),
        (json!([{"tools": ["t.once"], "approval": {"by": ["operator"]}}]), ruled),
    ] {
        // The no of anybody counts, but only a credential proves it.
        let mut scene = started_with(rules, fields);
        scene.deny("a");
        for given in [QuestionAnswer::Skip, QuestionAnswer::Continue, QuestionAnswer::Resolve] {
            let code = scene.refused(&person().unproven(), answer(given, Some(json!({}))));
            assert!(matches!(code, "execution.not_proven" | "execution.no_such_answer"), "{given:?}: {code}");
        }
        let [PendingQuestion::Failure { proof: Some(RequiredProof::Credential), .. }] = &*scene.execution.questions()
        else {
            panic!("{:?}", scene.execution.questions())
        };
        assert_eq!(scene.calls(), [""; 0]);
        scene.give(&person(), answer(QuestionAnswer::Skip, None));
        assert_eq!(scene.calls(), ["b"]);
    }
}

#[test]
fn an_unproven_word_does_not_let_a_call_be_asked_for_again_after_a_proven_no() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.deny("a");
    for _ in 0..20 {
        if scene.asks() == ["approval a"] {
            scene.deny("a");
        }
        retry(&mut scene, &person().unproven());
    }
    assert_eq!((scene.asks(), scene.count("ApprovalRequested")), (vec!["failure a".to_owned()], 4));
    retry(&mut scene, &person());
    assert_eq!(scene.asks(), ["approval a"]);
}

#[test]
fn an_unproven_word_does_not_approve_a_plan_without_what_a_credential_denied() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.deny("a");
    scene.replan(UNASKED);
    let plan = proposal(&scene);
    let approve = ExecutionInput::ApproveReplan { plan, reason: "simpler".into() };
    assert_eq!(scene.refused(&person().unproven(), approve.clone()), "execution.not_proven");
    scene.give(&person().unproven(), ExecutionInput::RejectReplan { plan, reason: "no".into() });
    scene.replan_as(&person().unproven(), UNASKED);
    assert_eq!((scene.count("Replanned"), scene.count("ReplanProposed")), (0, 2), "it is no plan of a person");
    scene.give(&person(), approve);
    assert_eq!(scene.count("Replanned"), 1);
    // Nobody proved anything before.
    let mut scene = ExecutionScenario::started(ASKED);
    scene.replan(UNASKED);
    let plan = proposal(&scene);
    scene.give(&person().unproven(), ExecutionInput::ApproveReplan { plan, reason: "simpler".into() });
    assert_eq!(scene.count("Replanned"), 1);
}

#[test]
fn a_new_plan_is_shown_with_everything_that_it_changes() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.replan("steps: [{id: a, tool: t.once, parameters: {n: 2}}, {id: b, tool: t.read}]");
    let Some(PendingQuestion::Replan { changes, .. }) = scene.execution.questions().pop() else { panic!("not asked") };
    assert_eq!(changes[0], "+ b");
    assert!(changes.iter().any(|line| line.starts_with("~ a: parameter n")), "{changes:?}");
    assert!(changes.iter().any(|line| line.contains("approval")), "{changes:?}");
}

#[test]
fn an_agent_is_told_which_answers_it_may_give() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.deny("a");
    let question = scene.execution.questions()[0].to_string();
    assert!(question.ends_with("; only a person may resolve it"), "{question}");
    let gated = "steps: [{id: a, tool: t.once, approval: {expires: 1h}}, {id: b, tool: t.other, depends_on: [a]}]";
    let mut scene = ExecutionScenario::started(gated);
    scene.deny("a");
    let question = scene.execution.questions()[0].to_string();
    assert!(question.contains("): retry, stop, compensate or replan; only a person may skip, "), "{question}");
}

#[test]
fn a_denial_binds_the_parameters_that_are_sent() {
    let keyed = |id: &str| {
        format!("steps: [{{id: {id}, tool: t.once, parameters: {{n: \"{{{{ 5 if key == '' else 500 }}}}\"}}}}]")
    };
    let mut scene = ExecutionScenario::started(&keyed("a").replace("}}]", "}, approval: {expires: 1h}}]"));
    scene.deny("a");
    scene.replan_as(&person(), "steps: [{id: b, tool: t.once, parameters: {n: 500}}]");
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval b".to_owned()]));
}

// The operator's policy.

#[test]
fn a_rule_about_agents_is_not_evaded_in_the_execution_of_a_person() {
    let rule = || json!([{"tools": ["t.once"], "principals": ["agent:*"], "deny": "agents only read"}]);
    let harmless = "steps: [{id: z, tool: t.set}]";
    let added = "steps: [{id: z, tool: t.set}, {id: a, tool: t.once, depends_on: [z]}]";
    let forbidden = |scene: &mut ExecutionScenario| {
        scene.returns("z", done(json!({})));
        scene.count("CallForbidden")
    };
    let mut scene = started_with(rule(), harmless);
    scene.replan(added);
    assert_eq!(forbidden(&mut scene), 1, "an agent planned it");
    let mut scene = started_with(rule(), harmless);
    scene.replan_as(&person(), added);
    assert_eq!(forbidden(&mut scene), 0, "only people planned it");
    // The approval of a person does not make it the person's plan.
    let mut scene = started_with(rule(), &format!("deadline: 1h\n{harmless}"));
    scene.replan(&format!("deadline: 2h\n{added}"));
    let plan = proposal(&scene);
    scene.give(&person(), ExecutionInput::ApproveReplan { plan, reason: "it may take longer".into() });
    assert_eq!(forbidden(&mut scene), 1, "an agent proposed it");
    let mut scene = started_with(rule(), added);
    scene.give(&agent(), ExecutionInput::HandOver { to: Driver::Agent, reason: "mine".into() });
    scene.give(&agent(), ExecutionInput::HandOver { to: Driver::Server, reason: "yours".into() });
    assert_eq!(forbidden(&mut scene), 1, "an agent drove it");
}

#[test]
fn a_rule_about_safety_is_not_evaded_by_a_stricter_plan() {
    let rule = json!([{"safety": ["idempotent"], "deny": "no"}]);
    for safety in ["", ", safety: once"] {
        let scene = started_with(rule.clone(), &format!("steps: [{{id: a, tool: t.set{safety}}}]"));
        assert_eq!(scene.count("CallForbidden"), 1, "{safety}");
    }
}

#[test]
fn the_operator_can_require_approval_of_a_tool() {
    let rule = json!({"name": "money", "tools": ["t.on*"], "when": "parameters.n > 100",
        "approval": {"by": ["ada"], "expires": "10m"}});
    let mut scene = started_with(json!([rule]), "steps: [{id: a, tool: t.once, parameters: {n: 101}}]");
    assert_eq!((scene.calls(), scene.asks(), scene.wakes_in()), (vec![], vec!["approval a".to_owned()], Some(600_000)));
    let asked = scene.execution.questions();
    assert!(asked[0].to_string().contains("ada must approve a (t.once, by rule money)"), "{}", asked[0]);
    let approve = ExecutionInput::Approve { part: part("a"), call: scene.asked("a"), reason: String::new() };
    assert_eq!(scene.refused(&person(), approve.clone()), "execution.not_the_approver");
    assert_eq!(scene.refused(&Actor::agent("ada"), approve.clone()), "execution.not_a_person");
    // A program that calls its user ada could call anybody so.
    assert_eq!(scene.refused(&Actor::person("ada").unproven(), approve.clone()), "execution.not_the_approver");
    scene.give(&Actor::person("ada"), approve);
    assert_eq!(scene.calls(), ["a"]);
    let below = started_with(json!([rule]), "steps: [{id: a, tool: t.once, parameters: {n: 100}}]");
    assert_eq!(below.calls(), ["a"]);
}

#[test]
fn a_rule_can_refuse_what_only_a_client_vouches_for() {
    let rule = json!({"name": "money", "tools": ["t.once"], "approval": {"proof": "credential"}});
    let mut scene = started_with(json!([rule]), "steps: [{id: a, tool: t.once, parameters: {n: 101}}]");
    let approve = ExecutionInput::Approve { part: part("a"), call: scene.asked("a"), reason: String::new() };
    assert_eq!(scene.refused(&person().unproven(), approve.clone()), "execution.not_proven");
    scene.give(&person(), approve);
    assert_eq!(scene.calls(), ["a"]);
}

#[test]
fn a_rule_and_a_plan_add_up_and_the_shorter_time_holds() {
    let rule = json!({"tools": ["t.once"], "approval": {"expires": "2h"}});
    let scene = started_with(json!([rule]), ASKED);
    assert_eq!((scene.asks(), scene.wakes_in()), (vec!["approval a".to_owned()], Some(3_600_000)));
    let rule = json!({"tools": ["t.once"], "approval": {"expires": "5m"}});
    assert_eq!(started_with(json!([rule]), ASKED).wakes_in(), Some(300_000));
}

#[test]
fn a_forbidden_call_fails_its_step_and_says_which_rule() {
    let rule = json!({"name": "not today", "tools": ["t.once"], "deny": "closed for stock-taking"});
    let mut scene = started_with(json!([rule.clone()]), ASKED);
    assert_eq!((scene.count("AttemptStarted"), scene.count("ApprovalRequested")), (0, 0));
    assert_eq!(scene.asks(), ["failure a"]);
    let question = scene.execution.questions()[0].to_string();
    assert!(question.contains("forbidden by rule not today: closed for stock-taking"), "{question}");
    retry(&mut scene, &person());
    assert_eq!((scene.count("AttemptStarted"), scene.asks()), (0, vec!["failure a".to_owned()]));
    let resolve = answering(Question::Failure(step("a")), QuestionAnswer::Resolve, Some(json!({})));
    assert_eq!(scene.refused(&agent(), resolve), "execution.not_a_person");
    // The rule is gone after a restart with another configuration.
    scene.policy = policy(json!([]));
    retry(&mut scene, &person());
    assert_eq!(scene.asks(), ["approval a"]);
}

#[test]
fn a_condition_that_cannot_be_evaluated_counts_as_true() {
    let rule = json!({"tools": ["t.once"], "when": "parameters.amount > 100", "deny": "too much"});
    let scene = started_with(json!([rule]), UNASKED);
    assert_eq!(scene.count("CallForbidden"), 1);
    let question = scene.execution.questions()[0].to_string();
    assert!(question.contains("could not be evaluated"), "{question}");
}

#[test]
fn fallbacks_compensations_and_probes_are_judged_too() {
    let fields = "steps:
  - {id: a, tool: t.set, fallback: {tool: t.once}, failure_policy: {action: continue_others}}";
    let deny = json!({"tools": ["t.once"], "deny": "no"});
    let mut scene = started_with(json!([deny]), fields);
    scene.returns("a", fails(rutter_core::tool::FailureCategory::ToolError));
    assert_eq!((scene.started_calls(CallSide::Fallback).len(), scene.status()), (0, "failed"));

    let fields = "on_failure: compensate
steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}}";
    let approval = json!({"tools": ["t.undo"], "approval": {"expires": "1h"}});
    let undo = |rule: serde_json::Value| {
        let mut scene = started_with(json!([rule]), fields);
        scene.returns("a", done(json!({})));
        scene.compensate(None);
        scene
    };
    let mut scene = undo(approval.clone());
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval a".to_owned()]));
    scene.crash();
    scene.approve("a");
    assert_eq!(scene.calls(), ["undo a"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
    let mut scene = undo(approval.clone());
    scene.deny("a");
    assert_eq!((scene.asks(), scene.steps()), (vec!["compensation a".to_owned()], vec!["compensation_failed"]));
    let mut scene = undo(approval.clone());
    scene.later(3_600_000);
    assert_eq!(scene.asks(), ["compensation a"]);
    let mut scene = undo(approval);
    scene.kill();
    assert_eq!(scene.status(), "cancelled");
    let scene = undo(json!({"tools": ["t.undo"], "deny": "keep it"}));
    assert_eq!((scene.count("CallForbidden"), scene.asks()), (1, vec!["compensation a".to_owned()]));

    let fields = "steps: [{id: a, tool: t.once, probe: {tool: t.find, happened: result.found}}]";
    let mut scene = started_with(json!([{"tools": ["t.find"], "approval": {}}]), fields);
    scene.returns("a", maybe(rutter_core::tool::FailureCategory::Timeout));
    assert_eq!(scene.calls(), ["probe a"], "a probe only reads, so nobody is asked");
    let mut scene = started_with(json!([{"tools": ["t.find"], "deny": "no"}]), fields);
    scene.returns("a", maybe(rutter_core::tool::FailureCategory::Timeout));
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["doubt a".to_owned()]));
}

#[test]
fn rules_match_by_safety_principal_tenant_and_server() {
    let judged = |rule: serde_json::Value| started_with(json!([rule]), UNASKED).count("CallForbidden") == 1;
    for (expected, rule) in [
        (true, json!({"safety": ["once"], "deny": "x"})),
        (false, json!({"safety": ["read_only", "idempotent"], "deny": "x"})),
        (true, json!({"principals": ["person:operator"], "deny": "x"})),
        (true, json!({"principals": ["oper*"], "deny": "x"})),
        (false, json!({"principals": ["agent:*"], "deny": "x"})),
        (true, json!({"servers": ["t"], "deny": "x"})),
        (false, json!({"servers": ["other"], "deny": "x"})),
        (false, json!({"tenants": ["nobody"], "deny": "x"})),
        (true, json!({"deny": "everything"})),
    ] {
        assert_eq!(judged(rule.clone()), expected, "{rule}");
    }
}

#[test]
fn a_call_of_an_agent_against_the_policy_is_a_deviation() {
    let rules = json!([
        {"tools": ["t.once"], "deny": "no"},
        {"tools": ["t.set"], "approval": {}},
    ]);
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once}, {id: b, tool: t.set}]");
    scene.policy = policy(rules);
    scene.start();
    assert_eq!(scene.asks(), ["approval b"]);
    scene.record_started("a");
    scene.record_finished("a", json!({}));
    scene.record_started("b");
    assert_eq!(scene.deviations(), ["Forbidden a", "Unapproved b"]);
}

// New plans that weaken.

#[test]
fn the_approval_of_a_step_that_is_done_is_not_taken_away_unasked() {
    let fields = |approval: &str| {
        format!(
            "steps:
  - {{id: a, tool: t.once, parameters: {{n: 1}}, compensation: {{tool: t.undo}}{approval}}}
  - {{id: b, tool: t.set, depends_on: [a]}}"
        )
    };
    let mut scene = ExecutionScenario::started(&fields(", approval: {expires: 1h}"));
    scene.approve("a");
    scene.returns("a", done(json!({})));
    scene.replan(&fields(""));
    assert_eq!((scene.count("Replanned"), scene.count("ReplanProposed")), (0, 1));
}

#[test]
fn a_step_under_another_name_is_not_looser() {
    let first = "{id: z, tool: t.set, retry: {max_attempts: 1}}";
    let tight = "{id: a, tool: t.once, depends_on: [z], timeout: 10s, retry: {max_attempts: 1}}";
    let loose = |id: &str| format!("steps: [{first}, {{id: {id}, tool: t.once, depends_on: [z], timeout: 50s}}]");
    let mut scene = ExecutionScenario::started(&format!("steps: [{first}, {tight}]"));
    scene.replan(&loose("b"));
    assert_eq!((scene.count("Replanned"), scene.count("ReplanProposed")), (0, 1));
    let mut scene = ExecutionScenario::started(&format!("steps: [{first}, {tight}]"));
    scene.replan(&format!("steps: [{first}]"));
    scene.replan(&loose("b"));
    assert_eq!((scene.count("Replanned"), scene.count("ReplanProposed")), (1, 1));
}

#[test]
fn the_operator_says_how_often_a_rejected_change_may_be_proposed_again() {
    let asked = "steps: [{id: z, tool: t.set}, {id: a, tool: t.once, depends_on: [z], approval: {expires: 1h}}]";
    let taken = "steps: [{id: z, tool: t.set}, {id: a, tool: t.once, depends_on: [z]}]";
    for max in [0, 1, 3] {
        let mut scene = ExecutionScenario::of(asked);
        scene.policy.ask_again_max = max;
        scene.start();
        for _ in 0..=max {
            scene.replan(taken);
            let plan = proposal(&scene);
            scene.give(&person(), ExecutionInput::RejectReplan { plan, reason: "no".into() });
        }
        let again = ExecutionInput::Replan { plan: plan(taken, Driver::Server), revision: 9, reason: "again".into() };
        assert_eq!(scene.refused(&agent(), again), "replan.rejected", "{max}");
        assert_eq!(scene.count("ReplanProposed"), 1 + max as usize);
    }
}

#[test]
fn rejected_changes_are_counted_however_they_are_written() {
    let fields = |id: &str| format!("steps: [{{id: z, tool: t.set}}, {{id: {id}, tool: t.once, depends_on: [z]}}]");
    let asked = "steps: [{id: z, tool: t.set}, {id: a, tool: t.once, depends_on: [z], approval: {expires: 1h}}]";
    let mut scene = ExecutionScenario::started(asked);
    for attempt in 0..=limits::ASK_AGAIN_DEFAULT {
        scene.replan(&fields(&format!("x{attempt}")));
        let plan = proposal(&scene);
        scene.give(&person(), ExecutionInput::RejectReplan { plan, reason: "no".into() });
    }
    let replan = |id: &str| {
        let plan = plan(&fields(id), Driver::Server);
        ExecutionInput::Replan { plan, revision: 9, reason: "again".into() }
    };
    assert_eq!(scene.refused(&agent(), replan("y")), "replan.rejected");
    // A person's own change begins anew.
    scene.replan_as(&person(), &format!("deadline: 1h\n{asked}"));
    scene.give(&agent(), replan("y"));
    assert_eq!(scene.count("ReplanProposed"), 2 + limits::ASK_AGAIN_DEFAULT as usize);
}

#[test]
fn a_new_plan_that_weakens_waits_for_a_person_and_says_what_it_weakens() {
    let before = "deadline: 1h\nbudget: {calls: 5}\nsteps:
  - {id: z, tool: t.read}
  - {id: a, tool: t.once, depends_on: [z], timeout: 10s, approval: {expires: 1h}}";
    for (after, line) in [
        (before.replace("approval: {expires: 1h}", "priority: 1"), "a: no longer needs approval"),
        (before.replace("expires: 1h", "expires: 2h"), "a: its approval may be used for 2h instead of 1h"),
        (before.replace("timeout: 10s", "timeout: 20s"), "a: a call may take 20s instead of 10s"),
        (before.replace("deadline: 1h", "deadline: 2h"), "the deadline is 2h instead of 1h"),
        (before.replace("budget: {calls: 5}\n", ""), "the budget of calls is raised or removed"),
        (
            format!("{before}\n  - {{id: c, tool: t.once, depends_on: [z], timeout: 10s}}"),
            "c: calls t.once without the approval it needs elsewhere",
        ),
        (
            before.replace("timeout: 10s", "timeout: 10s, retry: {max_attempts: 5}"),
            "a: 5 attempts of a once call instead of 3",
        ),
    ] {
        let mut scene = ExecutionScenario::started(before);
        scene.replan(&after);
        let weakens = scene.journal.iter().find_map(|record| match &record.event {
            Event::ReplanProposed { weakens, .. } => Some(weakens.clone()),
            _ => None,
        });
        assert_eq!(weakens, Some(vec![line.to_owned()]), "{after}");
        let plan = proposal(&scene);
        let approve = || ExecutionInput::ApproveReplan { plan, reason: "fine".into() };
        assert_eq!(scene.refused(&agent(), approve()), "execution.not_a_person");
        scene.crash();
        scene.give(&person(), approve());
        assert_eq!((scene.count("Replanned"), scene.execution.revision()), (1, 2));
        assert_eq!(scene.refused(&person(), approve()), "replan.not_proposed");
        let mut scene = ExecutionScenario::started(before);
        scene.replan_as(&person(), &after);
        assert_eq!((scene.count("Replanned"), scene.count("ReplanProposed")), (1, 0));
    }
}

#[test]
fn a_new_plan_that_tightens_or_adds_is_followed_at_once() {
    let before = "steps: [{id: a, tool: t.read}, {id: b, tool: t.set, depends_on: [a]}]";
    for after in [
        "steps: [{id: a, tool: t.read}, {id: b, tool: t.set, depends_on: [a], approval: {expires: 1h}}]",
        "steps: [{id: a, tool: t.read}, {id: b, tool: t.set, depends_on: [a]}, {id: c, tool: t.once}]",
        "steps: [{id: a, tool: t.read}]",
        "deadline: 1h\nsteps: [{id: a, tool: t.read}, {id: b, tool: t.set, depends_on: [a], timeout: 1s}]",
    ] {
        let mut scene = ExecutionScenario::started(before);
        scene.replan(after);
        assert_eq!((scene.count("Replanned"), scene.count("ReplanProposed")), (1, 0), "{after}");
    }
}

#[test]
fn nothing_starts_while_a_new_plan_waits_and_a_rejected_one_can_be_proposed_three_times_more() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.replan(UNASKED);
    scene.approve("a");
    assert_eq!((scene.calls(), scene.status()), (vec![], "waiting"));
    let reject = |scene: &mut ExecutionScenario| {
        let plan = proposal(scene);
        scene.give(&person(), ExecutionInput::RejectReplan { plan, reason: "no".into() });
    };
    scene.pause();
    for _ in 0..limits::ASK_AGAIN_DEFAULT {
        reject(&mut scene);
        scene.replan(UNASKED);
    }
    reject(&mut scene);
    let again = plan(&format!("description: written in another way\n{UNASKED}"), Driver::Server);
    let replan = ExecutionInput::Replan { plan: again, revision: 2, reason: "please".into() };
    assert_eq!(scene.refused(&agent(), replan.clone()), "replan.rejected");
    scene.give(&person(), replan);
    scene.resume();
    assert_eq!(scene.count("Replanned"), 1);
}

#[test]
fn a_proposal_can_be_withdrawn_replaced_or_lost_with_the_execution() {
    let mut scene = ExecutionScenario::started(ASKED);
    scene.replan(UNASKED);
    let first = proposal(&scene);
    scene.replan("steps: [{id: a, tool: t.once, parameters: {n: 1}, approval: {expires: 2h}}]");
    assert_ne!(proposal(&scene), first);
    let approve = ExecutionInput::ApproveReplan { plan: first, reason: String::new() };
    assert_eq!(scene.refused(&person(), approve), "execution.other_call");
    scene.give(&agent(), ExecutionInput::AbandonReplan { reason: "never mind".into() });
    assert_eq!(scene.asks(), ["approval a"]);
    scene.replan(UNASKED);
    scene.cancel(None);
    assert_eq!((scene.asks(), scene.status()), (vec![], "cancelled"));
}
