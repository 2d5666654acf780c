//! Ways around a no, a rule or a yes: as a probe, by way of the key, by a claim, over a change of the rules.

use rutter_core::actor::Actor;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::journal::event::{Event, Question, QuestionAnswer};
use rutter_core::limits;
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory;
use rutter_testkit::scene::*;
use serde_json::{Value, json};
use std::sync::Arc;

fn started_with(rules: Value, fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::of(fields);
    scene.policy = policy(rules);
    scene.start();
    scene
}

fn by_agent_with(rules: Value, fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::by_agent(fields);
    scene.policy = policy(rules);
    scene.start();
    scene
}

fn retry(scene: &mut ExecutionScenario, actor: &Actor) {
    scene.give(actor, answering(Question::Failure(step("a")), QuestionAnswer::Retry, None));
}

fn record_started(scene: &mut ExecutionScenario, name: &str, call: Option<&str>, parameters: Option<Value>) {
    let (tool, parameters) = (call.map(tool), parameters.map(Arc::new));
    scene.give(&agent(), ExecutionInput::RecordStarted { part: part(name), tool, parameters });
}

fn undone_by_hand(scene: &mut ExecutionScenario, actor: &Actor, name: &str) {
    let (description, evidence) = ("undone".into(), None);
    scene.give(actor, ExecutionInput::RecordCompensation { part: part(name), description, evidence });
}

// As a probe.

const LOOKS: &str = "{id: a, tool: t.find, parameters: {who: boss}, approval: {expires: 1h}}";

fn probing(settle: &str) -> String {
    format!(
        "{{id: b, tool: t.once, probe: {{tool: t.find, parameters: {{who: boss}}, happened: result.found, settle: {settle}}}}}"
    )
}

#[test]
fn a_denied_call_is_not_made_as_the_probe_of_another_step() {
    let both = format!("max_parallel: 3\nsteps: [{LOOKS}, {}]", probing("0s"));
    let mut scene = ExecutionScenario::started(&both);
    scene.deny("a");
    scene.returns("b", maybe(FailureCategory::Timeout));
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["doubt b".to_owned(), "failure a".to_owned()]));
    scene.crash();
    assert_eq!(scene.calls(), [""; 0]);
    // What a person approved after all is asked.
    let mut scene = ExecutionScenario::started(&both);
    scene.deny("a");
    retry(&mut scene, &agent());
    scene.approve("a");
    scene.returns("b", maybe(FailureCategory::Timeout));
    assert_eq!(scene.calls(), ["probe b"]);
}

#[test]
fn a_tool_that_needs_approval_does_not_become_a_probe_without_a_person() {
    let mut scene = ExecutionScenario::started(&format!("steps: [{LOOKS}]"));
    scene.replan(&format!("steps: [{LOOKS}, {}]", probing("0s")));
    assert_eq!((scene.count("Replanned"), scene.asks()), (0, vec!["approval a".to_owned(), "replan 2".to_owned()]));
    let undo = "{id: b, tool: t.set, compensation: {tool: t.undo, probe: {tool: t.find, happened: result.found}}}";
    scene.replan(&format!("steps: [{LOOKS}, {undo}]"));
    assert_eq!(scene.count("Replanned"), 0);
    // A probe that was there from the start may stay.
    let mut scene = ExecutionScenario::started(&format!("steps: [{LOOKS}, {}]", probing("0s")));
    scene.replan(&format!("steps: [{LOOKS}, {}, {{id: c, tool: t.read}}]", probing("0s")));
    assert_eq!(scene.count("Replanned"), 1);
}

// By way of the key.

#[test]
fn a_no_is_not_lifted_by_what_an_expression_makes_of_the_key() {
    let written = |id: &str, key: &str| {
        format!("{{id: {id}, tool: t.once, parameters: {{n: 1, key: {key:?}}}, approval: {{expires: 1h}}}}")
    };
    for key in
        ["{{ key }}", "{{ key | upper }}", "no-{{ key }}", "{{ 'no' ~ key }}", "{{ key[:40] }}", "{{ key | reverse }}"]
    {
        let mut scene = ExecutionScenario::started(&format!("steps: [{}]", written("a", key)));
        scene.deny("a");
        let mut asked = 0;
        for round in 0..10 {
            let id = format!("b{round}");
            scene.replan_as(&person(), &format!("steps: [{}]", written(&id, key)));
            if scene.asks() == [format!("approval {id}")] {
                asked += 1;
                scene.deny(&id);
            }
        }
        assert_eq!(asked, limits::ASK_AGAIN_DEFAULT, "{key}");
    }
}

#[test]
fn a_no_is_not_lifted_by_a_key_as_a_literal_in_either_case() {
    let asked = "{id: a, tool: t.once, parameters: {n: 1, key: '{{ key }}'}, approval: {expires: 1h}}";
    let mut scene = ExecutionScenario::started(&format!("steps: [{asked}]"));
    let key = scene.execution.questions().into_iter().find_map(|ask| match ask {
        rutter_core::execution::view::PendingQuestion::Approval { parameters, .. } => Some(parameters?["key"].clone()),
        _ => None,
    });
    let key = key.and_then(|key| key.as_str().map(str::to_owned)).expect("the question shows the call");
    scene.deny("a");
    for (id, key) in [("b", key.clone()), ("c", key.to_uppercase()), ("d", "anything".to_owned())] {
        let other = format!("{{id: {id}, tool: t.once, parameters: {{n: 1, key: {key:?}}}}}");
        scene.replan_as(&person(), &format!("steps: [{other}]"));
        assert_eq!((scene.calls(), scene.asks()), (vec![], vec![format!("approval {id}")]));
        scene.crash();
        scene.deny(id);
    }
    // Without the key, the call is the same as well.
    scene.replan_as(&person(), "steps: [{id: e, tool: t.once, parameters: {n: 1}}]");
    assert_eq!((scene.calls(), scene.count("CallForbidden")), (vec![], 1));
    scene.replan_as(&person(), "steps: [{id: f, tool: t.once, parameters: {n: 2, key: '{{ key }}'}}]");
    assert_eq!(scene.calls(), ["f"], "another call was not denied");
}

#[test]
fn a_no_is_not_lifted_by_adding_the_key() {
    let mut scene =
        ExecutionScenario::started("steps: [{id: a, tool: t.once, parameters: {n: 1}, approval: {expires: 1h}}]");
    scene.deny("a");
    scene.replan_as(&person(), "steps: [{id: b, tool: t.once, parameters: {n: 1, key: '{{ key | upper }}'}}]");
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval b".to_owned()]));
    scene.approve("b");
    assert_eq!(scene.calls(), ["b"]);
}

#[test]
fn a_no_that_an_earlier_version_recorded_still_holds() {
    let written = |id: &str| {
        format!("{{id: {id}, tool: t.once, parameters: {{n: 1, key: '{{{{ key }}}}'}}, approval: {{expires: 1h}}}}")
    };
    let mut scene = ExecutionScenario::started(&format!("steps: [{}]", written("a")));
    // As it was recorded: the digest of the parameters with the key left out of the text.
    let old = rutter_core::hash::Hash::of_fields("rutter/denied/v1", &[b"t.once", br#"{"key":"","n":1}"#]);
    for record in &mut scene.journal {
        if let Event::ApprovalRequested { basis: Some(basis), .. } = &mut record.event {
            basis.digest = old;
            basis.keyed.clear();
        }
    }
    let call = scene.asked("a");
    let mut scene = ExecutionScenario::of_journal(scene.journal);
    scene.give(&person(), ExecutionInput::Deny { part: part("a"), call, reason: "no".into() });
    scene.replan_as(&person(), "steps: [{id: b, tool: t.once, parameters: {n: 1, key: '{{ key }}'}}]");
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval b".to_owned()]));
}

#[test]
fn a_yes_to_the_same_call_with_another_key_does_not_outlive_a_no() {
    let two = "max_parallel: 2\nsteps:
  - {id: a, tool: t.once, parameters: {n: 1, key: mine}, approval: {expires: 1h}}
  - {id: b, tool: t.once, parameters: {n: 1, key: '{{ key }}'}, approval: {expires: 1h},
     failure_policy: continue_others}";
    let mut scene = ExecutionScenario::started(two);
    scene.pause();
    scene.approve("a");
    scene.deny("b");
    scene.resume();
    assert_eq!((scene.count("AttemptStarted"), scene.asks()), (0, vec!["approval a".to_owned()]));
}

// By a claim.

const UNKNOWN: &str = "steps:
  - {id: z, tool: t.set}
  - {id: a, tool: t.once, parameters: {n: '{{ steps.z.result.gone }}'}}
  - {id: b, tool: t.other, depends_on: [a]}";

#[test]
fn a_claimed_call_that_cannot_be_evaluated_counts_as_what_a_rule_is_about() {
    let deny = json!([{"tools": ["t.once"], "when": "parameters.n is defined and parameters.n > 5", "deny": "no"}]);
    let approval =
        json!([{"tools": ["t.once"], "when": "parameters.n is defined and parameters.n > 5", "approval": {}}]);
    for (rules, deviation) in [(deny, "Forbidden a"), (approval, "Unapproved a")] {
        let mut scene = by_agent_with(rules, UNKNOWN);
        scene.record_started("z");
        scene.record_finished("z", json!({}));
        scene.record_started("a");
        scene.record_finished("a", json!({"id": "invented"}));
        assert_eq!(scene.deviations(), [deviation]);
        let back = ExecutionInput::HandOver { to: Driver::Server, reason: "yours".into() };
        assert_eq!(scene.refused(&agent(), back), "execution.not_a_person");
    }
    // What was not known at the first attempt is not known at the next one.
    let deny = json!([{"tools": ["t.once"], "when": "parameters.n is defined and parameters.n > 5", "deny": "no"}]);
    let retried = UNKNOWN.replace("gone }}'}", "gone }}'}, retry: {max_attempts: 2, on: [unavailable], jitter: false}");
    let mut scene = by_agent_with(deny, &retried);
    scene.record_started("z");
    scene.record_finished("z", json!({}));
    for times in 1..=2 {
        scene.record_started("a");
        assert_eq!(scene.deviations(), vec!["Forbidden a"; times]);
        scene.record_failed("a", FailureCategory::Unavailable, false);
    }
    let harmless = json!([{"tools": ["t.other"], "deny": "no"}]);
    let mut scene = by_agent_with(harmless, UNKNOWN);
    scene.record_started("z");
    scene.record_finished("z", json!({}));
    scene.record_started("a");
    assert!(scene.deviations().is_empty(), "{:?}", scene.deviations());
}

#[test]
fn an_agent_does_not_invent_the_result_of_a_call_that_could_not_be_judged() {
    let list = "steps:
  - {id: z, tool: t.set}
  - {id: a, tool: t.once, for_each: 'steps.z.result.gone', parameters: {n: '{{ item }}'}}
  - {id: b, tool: t.other, depends_on: [a]}";
    let resolve = || answering(Question::Failure(step("a")), QuestionAnswer::Resolve, Some(json!({"id": "invented"})));
    for rule in [json!({"deny": "no"}), json!({"approval": {}})] {
        for (fields, result) in [(UNKNOWN, json!({})), (list, json!({"gone": 5}))] {
            let rule = json!({"tools": ["t.once"], "when": "parameters.n > 5",
                "deny": rule.get("deny"), "approval": rule.get("approval")});
            let mut scene = started_with(json!([rule]), fields);
            scene.returns("z", done(result));
            assert_eq!(scene.asks(), ["failure a"]);
            assert_eq!(scene.refused(&agent(), resolve()), "execution.not_a_person");
            scene.crash();
            assert_eq!(scene.refused(&agent(), resolve()), "execution.not_a_person");
            scene.give(&person(), answering(Question::Failure(step("a")), QuestionAnswer::Skip, None));
            assert_eq!(scene.calls(), ["b"]);
        }
    }
    // Nobody minds this call.
    let mut scene = started_with(json!([{"tools": ["t.other"], "approval": {}}]), UNKNOWN);
    scene.returns("z", done(json!({})));
    scene.give(&agent(), resolve());
    assert_eq!(scene.asks(), ["approval b"]);
}

#[test]
fn an_agent_may_repair_a_call_that_could_not_be_judged() {
    let mut scene = started_with(json!([{"tools": ["t.once"], "approval": {}}]), UNKNOWN);
    scene.returns("z", done(json!({})));
    scene.replan(&UNKNOWN.replace("'{{ steps.z.result.gone }}'", "1"));
    assert_eq!(scene.asks(), ["approval a"]);
}

#[test]
fn undoing_by_hand_stands_for_a_call_that_is_judged() {
    let fields = "steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo, parameters: {n: 500}}}
  - {id: b, tool: t.set, depends_on: [a]}";
    let deny = json!([{"tools": ["t.undo"], "when": "parameters.n > 100", "deny": "keep it"}]);
    let approval = json!([{"tools": ["t.undo"], "when": "parameters.n > 100", "approval": {}}]);
    for (rules, deviation) in [(deny, "Forbidden a"), (approval, "Unapproved a")] {
        // While an agent drives, and while Rutter does: nobody was asked yet.
        let mut scene = by_agent_with(rules.clone(), fields);
        scene.record_started("a");
        scene.record_finished("a", json!({}));
        undone_by_hand(&mut scene, &agent(), "a");
        assert_eq!(scene.deviations(), [deviation]);
        let back = ExecutionInput::HandOver { to: Driver::Server, reason: "yours".into() };
        assert_eq!(scene.refused(&agent(), back), "execution.not_a_person");
        let mut scene = started_with(rules.clone(), fields);
        scene.returns("a", done(json!({})));
        undone_by_hand(&mut scene, &agent(), "a");
        assert_eq!(scene.deviations(), [deviation]);
        let mut scene = started_with(rules, fields);
        scene.returns("a", done(json!({})));
        undone_by_hand(&mut scene, &person(), "a");
        assert!(scene.deviations().is_empty(), "a person may");
    }
}

#[test]
fn the_approval_of_an_undoing_is_asked_for_while_an_agent_drives() {
    let fields = "steps: [{id: a, tool: t.once, compensation: {tool: t.undo, parameters: {n: 500}}}]";
    let mut scene = by_agent_with(json!([{"tools": ["t.undo"], "approval": {}}]), fields);
    scene.record_started("a");
    scene.record_finished("a", json!({}));
    scene.compensate(None);
    assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval a".to_owned()]));
    scene.approve("a");
    undone_by_hand(&mut scene, &agent(), "a");
    assert!(scene.deviations().is_empty(), "{:?}", scene.deviations());
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn a_claim_about_a_step_that_is_unknown_or_over_is_judged_too() {
    let rules = json!([
        {"tools": ["t.once"], "when": "parameters.n > 100", "deny": "no"},
        {"tools": ["t.other"], "approval": {}},
    ]);
    let fields = "steps: [{id: a, tool: t.once, parameters: {n: 1}}, {id: z, tool: t.set}]";
    let mut scene = by_agent_with(rules.clone(), fields);
    record_started(&mut scene, "nowhere", Some("t.once"), Some(json!({"n": 500})));
    assert_eq!(scene.deviations(), ["Undeclared nowhere", "Forbidden nowhere"]);
    record_started(&mut scene, "nowhere", Some("t.other"), None);
    assert_eq!(scene.deviations()[2..], ["Undeclared nowhere", "Unapproved nowhere"]);
    let mut scene = by_agent_with(rules.clone(), fields);
    scene.record_started("a");
    scene.record_finished("a", json!({}));
    record_started(&mut scene, "a", Some("t.once"), Some(json!({"n": 500})));
    assert_eq!(scene.deviations(), ["Duplicate a", "Forbidden a"]);
    let back = ExecutionInput::HandOver { to: Driver::Server, reason: "yours".into() };
    assert_eq!(scene.refused(&agent(), back), "execution.not_a_person");
    // A claim by itself: what is said with the end of a call that no attempt takes over.
    for (name, deviations) in
        [("nowhere", vec!["Forbidden nowhere"]), ("a", vec!["Forbidden a"]), ("a[7]", vec!["Forbidden a"])]
    {
        let mut scene = by_agent_with(rules.clone(), fields);
        let (tool, parameters) = (Some(tool("t.once")), Some(std::sync::Arc::new(json!({"n": 500}))));
        scene.give(&agent(), ExecutionInput::RecordClaim { part: part(name), tool, parameters });
        assert_eq!(scene.deviations(), deviations, "{name}");
        assert_eq!(scene.count("AttemptStarted"), 0);
    }
    // What was said before is nothing new.
    let mut scene = by_agent_with(rules, fields);
    scene.record_started("a");
    scene.record_started("a");
    assert_eq!(scene.deviations(), ["Duplicate a"]);
}

// Over a change of the rules.

#[test]
fn a_yes_counts_only_if_it_is_enough_for_the_rules_when_the_call_is_sent() {
    let rule = |approval: Value| json!([{"name": "money", "tools": ["t.once"], "approval": approval}]);
    let fields = "steps: [{id: a, tool: t.once, parameters: {n: 1}}, {id: b, tool: t.other, depends_on: [a]}]";
    for stricter in [json!({"by": ["ada"]}), json!({"proof": "credential"})] {
        let mut scene = started_with(rule(json!({})), fields);
        scene.pause();
        let approve = ExecutionInput::Approve { part: part("a"), call: scene.asked("a"), reason: "fine".into() };
        scene.give(&person().unproven(), approve);
        scene.policy = policy(rule(stricter.clone()));
        scene.crash();
        scene.resume();
        assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval a".to_owned()]), "{stricter}");
        let approve = ExecutionInput::Approve { part: part("a"), call: scene.asked("a"), reason: "fine".into() };
        scene.give(&Actor::person("ada"), approve);
        assert_eq!(scene.calls(), ["a"]);
        // A repeat under a rule that is stricter again.
        let retried = fields.replace("{n: 1}}", "{n: 1}, retry: {max_attempts: 3, on: [tool_error]}}");
        let mut scene = started_with(rule(json!({})), &retried);
        scene.approve("a");
        scene.policy = policy(rule(json!({"by": ["ada"]})));
        scene.returns("a", fails(FailureCategory::ToolError));
        scene.wait();
        assert_eq!((scene.calls(), scene.asks()), (vec![], vec!["approval a".to_owned()]));
    }
    let mut scene = started_with(rule(json!({})), fields);
    scene.give(&agent(), ExecutionInput::HandOver { to: Driver::Agent, reason: "mine".into() });
    scene.approve("a");
    scene.policy = policy(rule(json!({"by": ["ada"]})));
    scene.record_started("a");
    assert_eq!(scene.deviations(), ["Unapproved a"]);
}

// By asking until somebody says yes.

#[test]
fn an_approval_that_nobody_answers_is_not_asked_for_without_end() {
    let asked = "steps: [{id: a, tool: t.once, parameters: {n: 1}, approval: {expires: 1h}}]";
    let mut scene = ExecutionScenario::started(asked);
    for _ in 0..10 {
        if scene.asks() == ["approval a"] {
            scene.later(3_600_000);
        }
        retry(&mut scene, &agent());
    }
    assert_eq!((scene.asks(), scene.count("ApprovalRequested")), (vec!["failure a".to_owned()], 4));
    assert!(scene.execution.questions()[0].to_string().contains("nobody approved it in time"));
    retry(&mut scene, &person());
    assert_eq!(scene.asks(), ["approval a"]);
    // An answer is the end of the count.
    scene.deny("a");
    retry(&mut scene, &agent());
    assert_eq!(scene.asks(), ["approval a"]);
    scene.approve("a");
    assert_eq!(scene.calls(), ["a"]);
}
