//! Every refusal, by its code. The scenario itself checks that a refusal changes nothing.

use rutter_core::execution::input::{CODES, ExecutionInput};
use rutter_core::execution::opening::opening;
use rutter_core::hash::Hash;
use rutter_core::journal::event::{CallSide, Question, QuestionAnswer};
use rutter_core::limits;
use rutter_core::plan::Driver;
use rutter_core::time::Timestamp;
use rutter_core::tool::FailureCategory::{Timeout, ToolError};
use rutter_testkit::scene::*;
use serde_json::{Map, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const ONE: &str = "steps: [{id: a, tool: t.once, parameters: {n: 1}, compensation: {tool: t.undo}}]";
const OTHER: &str = "steps: [{id: a, tool: t.once, parameters: {n: 2}}]";

fn opened() -> ExecutionScenario {
    ExecutionScenario::of(ONE)
}

fn started() -> ExecutionScenario {
    ExecutionScenario::started(ONE)
}

fn after(step: impl Fn(&mut ExecutionScenario)) -> ExecutionScenario {
    let mut scene = started();
    step(&mut scene);
    scene
}

fn ended() -> ExecutionScenario {
    after(|scene| scene.returns("a", done(json!({}))))
}

fn failed() -> ExecutionScenario {
    after(|scene| scene.returns("a", fails(ToolError)))
}

/// The tool said "done" after the step had failed and the execution had ended.
fn failed_and_answered() -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(&format!("on_failure: cancel_all\n{ONE}"));
    scene.returns("a", fails(ToolError));
    scene.answers("a", CallSide::Do, 1, done(json!({})));
    scene
}

fn doubtful() -> ExecutionScenario {
    after(|scene| scene.returns("a", maybe(Timeout)))
}

fn asking() -> ExecutionScenario {
    ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]")
}

fn undone() -> ExecutionScenario {
    let mut scene = ended();
    scene.compensate(None);
    scene.returns("a", done(json!({})));
    scene
}

fn replan(fields: &str) -> ExecutionInput {
    ExecutionInput::Replan { plan: plan(fields, Driver::Server), revision: 2, reason: String::new() }
}

fn approve(name: &str, call: Hash) -> ExecutionInput {
    ExecutionInput::Approve { part: part(name), call, reason: String::new() }
}

fn begin() -> ExecutionInput {
    ExecutionInput::BeginReplan { reason: String::new() }
}

fn hand_over(to: Driver) -> ExecutionInput {
    ExecutionInput::HandOver { to, reason: String::new() }
}

fn returned(name: &str, side: CallSide, attempt: u32) -> ExecutionInput {
    ExecutionInput::Returned { part: part(name), side, attempt, outcome: done(json!({})) }
}

fn ticket() -> ExecutionInput {
    ExecutionInput::Accepted { part: part("a"), side: CallSide::Do, attempt: 1, ticket: "y".into() }
}

fn reopening(steps: &[&str]) -> ExecutionInput {
    ExecutionInput::Reopen { steps: Some(steps.iter().map(|id| step(id)).collect()), reason: String::new() }
}

/// The agent has undone one of two steps by hand, and nothing else is left.
fn undone_in_part() -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}, {id: b, tool: t.once}]",
    );
    scene.returns("a", done(json!({})));
    let (part, description) = (part("a"), "undone".to_owned());
    scene.give(&agent(), ExecutionInput::RecordCompensation { part, description, evidence: None });
    scene.returns("b", done(json!({})));
    scene
}

/// `c` comes after `a`.
fn two_failed() -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(
        "on_failure: cancel_all
max_parallel: 2
steps: [{id: a, tool: t.once, depends_on: []}, {id: b, tool: t.once, depends_on: []}, {id: c, tool: t.once, depends_on: [a]}]",
    );
    scene.returns("a", fails(ToolError));
    scene.returns("b", fails(ToolError));
    scene
}

/// One item failed and waits for a decision; the agent goes on with another.
fn item_under_way() -> ExecutionScenario {
    let mut scene = ExecutionScenario::by_agent("steps: [{id: a, tool: t.once, for_each: '[0, 1]'}]");
    scene.start();
    scene.record_failed("a[0]", ToolError, false);
    scene.record_started("a[1]");
    scene
}

/// A scenario, an input by an agent, and the code of its refusal.
fn table() -> Vec<(&'static str, ExecutionScenario, ExecutionInput)> {
    let failure = || Question::Failure(step("a"));
    let mut refused = vec![
        ("execution.not_started", opened(), ExecutionInput::Pause { reason: String::new() }),
        ("execution.not_started", opened(), begin()),
        ("execution.not_started", opened(), replan(ONE)),
        ("execution.started", started(), ExecutionInput::Start),
        ("execution.ended", ended(), ExecutionInput::Start),
        ("execution.ended", ended(), ExecutionInput::Pause { reason: String::new() }),
        ("execution.ended", ended(), ExecutionInput::Resume { reason: String::new() }),
        ("execution.ended", ended(), ExecutionInput::Cancel { reason: String::new(), undo: None }),
        ("execution.ended", ended(), ExecutionInput::Kill { reason: String::new() }),
        ("execution.ended", ended(), begin()),
        ("execution.ended", ended(), ExecutionInput::AbandonReplan { reason: String::new() }),
        ("execution.ended", ended(), hand_over(Driver::Agent)),
        ("execution.ended", ended(), ExecutionInput::ReportDefinition { tool: tool("t.once"), found: Hash::ZERO }),
        ("execution.completed", ended(), answering(failure(), QuestionAnswer::Retry, None)),
        ("execution.completed", ended(), ExecutionInput::Reopen { steps: None, reason: String::new() }),
        ("execution.nothing_left", undone_in_part(), ExecutionInput::Reopen { steps: None, reason: String::new() }),
        ("execution.after_failure", two_failed(), reopening(&["c"])),
        ("execution.item_under_way", item_under_way(), answering(failure(), QuestionAnswer::Skip, None)),
        ("execution.compensated", undone(), ExecutionInput::Reopen { steps: None, reason: String::new() }),
        ("execution.compensated", undone(), replan(ONE)),
        ("execution.stopping", after(|scene| scene.cancel(None)), begin()),
        (
            "execution.stopping",
            after(|scene| scene.cancel(None)),
            ExecutionInput::Cancel { reason: String::new(), undo: None },
        ),
        ("execution.paused", after(ExecutionScenario::pause), ExecutionInput::Pause { reason: String::new() }),
        ("execution.not_paused", started(), ExecutionInput::Resume { reason: String::new() }),
        (
            "execution.not_due",
            after(ExecutionScenario::pause),
            ExecutionInput::ResumeExpired { reason: String::new(), only: vec!["a".to_owned()] },
        ),
        ("execution.unknown_part", ended(), compensating(Some(&["nobody"]))),
        ("execution.unknown_attempt", started(), returned("a", CallSide::Do, 0)),
        ("execution.unknown_attempt", started(), returned("a", CallSide::Do, 2)),
        ("execution.unknown_attempt", started(), returned("a", CallSide::Undo, 1)),
        ("execution.unknown_attempt", started(), returned("nobody", CallSide::Do, 1)),
        ("execution.unknown_attempt", started(), returned("a[0]", CallSide::Do, 1)),
        ("execution.told_already", after(|scene| scene.accepts("a", "x")), ticket()),
        ("execution.question_invalid", started(), tool_asking("a", CallSide::Do, 1, json!(true))),
        (
            "execution.answer_invalid",
            after(|scene| scene.tool_asks("a", json!({"type": "object"}))),
            answering_tool("a", 1, Some(json!(7))),
        ),
        ("execution.not_a_person", asking(), approve("a", Hash::ZERO)),
        ("execution.not_a_person", doubtful(), settling("a", true, json!({}))),
        ("execution.no_question", started(), answering(failure(), QuestionAnswer::Retry, None)),
        ("execution.evidence_missing", failed(), answering(failure(), QuestionAnswer::Resolve, None)),
        ("execution.in_doubt", after(ExecutionScenario::kill), compensating(None)),
        ("execution.not_ended", started(), compensating(None)),
        ("execution.replanning", after(|scene| scene.give(&agent(), begin())), begin()),
        ("execution.not_replanning", started(), ExecutionInput::AbandonReplan { reason: String::new() }),
        ("execution.driver", started(), ExecutionInput::RecordEnd { reason: String::new() }),
        ("execution.driver", started(), hand_over(Driver::Server)),
        (
            "execution.unknown_tool",
            started(),
            ExecutionInput::ReportDefinition { tool: tool("no.body"), found: Hash::ZERO },
        ),
        (
            "execution.text_too_long",
            started(),
            ExecutionInput::Kill { reason: "x".repeat(limits::REASON_BYTES_MAX + 1) },
        ),
        (
            "execution.inputs",
            started(),
            replan(&format!("inputs: {{type: object, required: [sku], properties: {{sku: {{type: string}}}}}}\n{ONE}")),
        ),
        ("replan.under_way", started(), replan(OTHER)),
        ("replan.in_doubt", doubtful(), replan(OTHER)),
    ];
    let mut values = Map::new();
    values.insert("t".into(), json!("x".repeat(limits::VALUE_BYTES_MAX)));
    refused.push(("execution.too_large", started(), ExecutionInput::SaveContext { values }));
    let by_hand = ExecutionInput::RecordCompensation { part: part("a"), description: String::new(), evidence: None };
    refused.push(("execution.nothing_to_undo", opened(), by_hand));
    let mut over =
        ExecutionScenario::started("budget: {calls: 1}\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
    over.returns("a", done(json!({})));
    let limit = Question::Limit(rutter_core::journal::event::ExecutionLimit::Calls);
    refused.push(("execution.no_such_answer", over, answering(limit, QuestionAnswer::Retry, None)));
    let two =
        |tool: &str| format!("steps: [{{id: a, tool: {tool}, retry: {{max_attempts: 1}}}}, {{id: b, tool: t.once}}]");
    let mut completed = ExecutionScenario::started(&two("t.once"));
    completed.returns("a", done(json!({})));
    completed.returns("b", fails(ToolError));
    refused.push(("replan.completed_changed", completed, replan(OTHER)));
    let mut touched = ExecutionScenario::started(&two("t.set"));
    touched.returns("a", maybe(Timeout));
    refused.push(("replan.may_have_happened", touched, replan(OTHER)));
    let asked = "steps: [{id: a, tool: t.once, approval: true}]";
    let mut often = ExecutionScenario::started(asked);
    for _ in 0..limits::REPLANS_MAX {
        often.replan(asked);
    }
    refused.push(("execution.replan_limit", often, replan(asked)));
    let mut rejected = ExecutionScenario::started(asked);
    for _ in 0..=limits::ASK_AGAIN_DEFAULT {
        rejected.replan(ONE);
        let plan = plan(ONE, Driver::Server).hash;
        rejected.give(&person(), ExecutionInput::RejectReplan { plan, reason: String::new() });
    }
    refused.push(("replan.rejected", rejected, replan(ONE)));
    refused
}

/// The same for inputs by a person.
fn table_of_a_person() -> Vec<(&'static str, ExecutionScenario, ExecutionInput)> {
    let mut probed = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, probe: {tool: t.find, happened: result.found, settle: 0s}}]",
    );
    probed.returns("a", maybe(Timeout));
    let mut ruled = ExecutionScenario::of(ONE);
    ruled.policy = policy(json!([{ "approval": { "by": ["ada"] } }]));
    ruled.start();
    let call = ruled.asked("a");
    let mut held = started();
    held.tool_asks("a", json!({"type": "object"}));
    held.hold(2 * 86_400_000);
    vec![
        ("execution.held", held, answering_tool("a", 1, Some(json!({})))),
        ("execution.not_the_approver", ruled, approve("a", call)),
        ("replan.not_proposed", started(), ExecutionInput::ApproveReplan { plan: Hash::ZERO, reason: String::new() }),
        ("execution.unknown_part", started(), approve("nobody", Hash::ZERO)),
        ("execution.unknown_part", started(), settling("nobody", true, json!({}))),
        ("execution.not_asked", started(), approve("a", Hash::ZERO)),
        ("execution.other_call", asking(), approve("a", Hash::ZERO)),
        ("execution.not_in_doubt", started(), settling("a", true, json!({}))),
        ("execution.not_in_doubt", probed, settling("a", true, json!({}))),
        ("execution.result_invalid", doubtful_with("{id: a, tool: t.once, output: {type: string}}"), settled()),
        ("execution.result_missing", doubtful_with(READ), settled()),
        (
            "execution.answered",
            failed_and_answered(),
            answering(Question::Failure(step("a")), QuestionAnswer::Resolve, Some(json!({}))),
        ),
        ("execution.not_by_hand", ended(), correcting(true)),
        ("execution.nothing_to_correct", settled_and_read(), correcting(true)),
        ("execution.built_upon", settled_and_read(), correcting(false)),
    ]
}

const READ: &str = "{id: a, tool: t.once}, {id: b, tool: t.once, parameters: {n: '{{ steps.a.result.n }}'}}";

fn doubtful_with(steps: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(&format!("steps: [{steps}]"));
    scene.returns("a", maybe(Timeout));
    scene
}

fn settled_and_read() -> ExecutionScenario {
    let mut scene = doubtful_with(READ);
    scene.settle("a", true, json!({"n": 1}));
    scene
}

fn settled() -> ExecutionInput {
    settling("a", true, json!({}))
}

fn correcting(happened: bool) -> ExecutionInput {
    ExecutionInput::Correct { part: part("a"), happened, reason: String::new(), result: None, evidence: None }
}

#[test]
fn every_code_is_used_as_documented() {
    let mut given = BTreeSet::new();
    for (code, mut scene, input) in table() {
        assert_eq!(scene.refused(&agent(), input.clone()), code, "{input:?}");
        given.insert(code);
    }
    for (code, mut scene, input) in table_of_a_person() {
        assert_eq!(scene.refused(&person(), input.clone()), code, "{input:?}");
        given.insert(code);
    }
    let mut scene = ExecutionScenario::of(ONE);
    scene.policy = policy(json!([{ "approval": { "proof": "credential" } }]));
    scene.start();
    let approval = approve("a", scene.asked("a"));
    given.insert("execution.not_proven");
    assert_eq!(scene.refused(&person().unproven(), approval), "execution.not_proven");
    let missing: Vec<_> = CODES.iter().filter(|code| !given.contains(*code)).collect();
    assert!(missing.is_empty(), "unused: {missing:?}");
    let unlisted: Vec<_> = given.iter().filter(|code| !CODES.contains(code)).collect();
    assert!(unlisted.is_empty(), "not in the list: {unlisted:?}");
}

#[test]
fn codes_are_listed_once() {
    let distinct: BTreeSet<_> = CODES.iter().collect();
    assert_eq!(distinct.len(), CODES.len());
}

#[test]
fn messages_are_lower_case_without_a_full_stop() {
    for (code, mut scene, input) in table().into_iter().chain(table_of_a_person()) {
        for actor in [agent(), person()] {
            let Err(refusal) = scene.input(&actor, input.clone()) else { continue };
            assert!(CODES.contains(&refusal.code), "{code}");
            let first = refusal.message.chars().next().unwrap();
            assert!(!first.is_uppercase() || refusal.message.starts_with("Rutter"), "{refusal}");
            assert!(!refusal.message.ends_with('.'), "{refusal}");
            assert_eq!(refusal.to_string(), refusal.message);
        }
    }
}

#[test]
fn evidence_is_enough_where_a_result_is_required() {
    let mut scene = failed();
    let evidence = Some(Arc::new(json!("a photo")));
    let about = Question::Failure(step("a"));
    let (answer, reason) = (QuestionAnswer::Resolve, String::new());
    scene.give(&agent(), ExecutionInput::Answer { about, answer, reason, result: None, evidence });
    assert_eq!(scene.step("a"), "completed");
}

#[test]
fn an_execution_is_opened_only_with_valid_inputs_and_existing_tools() {
    let asks = format!("inputs: {{type: object, required: [sku], properties: {{sku: {{type: string}}}}}}\n{ONE}");
    let open = format!("inputs: {{additionalProperties: true, properties: {{sku: {{type: string}}}}}}\n{ONE}");
    let table = [
        (asks.as_str(), Driver::Server, json!({"sku": "x"}), ""),
        (&asks, Driver::Server, json!({}), "execution.inputs"),
        (&asks, Driver::Agent, json!({"sku": 3}), "execution.inputs"),
        (&asks, Driver::Agent, json!({"sku": "x", "skuu": 3}), "execution.inputs"),
        (&open, Driver::Agent, json!({"sku": "x", "skuu": 3}), ""),
        (ONE, Driver::Server, json!({}), ""),
        (ONE, Driver::Server, json!({"sku": "x"}), "execution.inputs"),
        (ONE, Driver::Server, json!(["sku"]), "execution.inputs"),
        ("steps: [{id: a, tool: no.body}]", Driver::Server, json!({}), "execution.unknown_tool"),
        ("steps: [{id: a, tool: no.body}]", Driver::Agent, json!({}), ""),
    ];
    for (fields, driver, inputs, code) in table {
        let plan = plan(fields, Driver::Agent);
        let lineage = identity().execution;
        let opened = opening(&plan, 1, driver, Arc::new(inputs), &lineage, person(), Timestamp(0));
        assert_eq!(opened.map_or_else(|refusal| refusal.code, |_| ""), code, "{fields} {driver:?}");
    }
}
