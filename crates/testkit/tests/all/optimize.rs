//! Suggestions for plans: each kind on a small plan, and that no fix of a random plan weakens it.

use rutter_core::diagnostic::PatchOperation;
use rutter_core::id::ToolName;
use rutter_core::insight::figures::{ToolFigures, ToolHistory};
use rutter_core::optimize::{PlanSuggestion, PlanSuggestions, improve, optimize};
use rutter_core::plan::patch::apply_patch;
use rutter_core::plan::{Driver, Plan};
use rutter_core::preview::preview;
use rutter_core::time::Millis;
use rutter_testkit::chance::SeededRandom;
use rutter_testkit::simulator::plans::{catalog, compile, document};
use serde_json::{Value, json};

fn suggested(steps: Value, history: &ToolHistory) -> PlanSuggestions {
    suggested_of(json!({ "name": "p", "goal": "g", "steps": steps }), history)
}

fn suggested_of(document: Value, history: &ToolHistory) -> PlanSuggestions {
    let plan = compile(&document, &catalog()).unwrap();
    optimize(&plan, &catalog(), Driver::Server, history)
}

fn of<'a>(found: &'a PlanSuggestions, code: &str) -> Vec<&'a PlanSuggestion> {
    found.suggestions.iter().filter(|suggestion| suggestion.code == code).collect()
}

fn read(id: &str, needs: &[&str]) -> Value {
    json!({ "id": id, "tool": "sim.read", "depends_on": needs })
}

fn figures(answered: u64, p99: u64, passing_failures: u64) -> ToolHistory {
    let figures =
        ToolFigures { answered, p99: Some(Millis(p99)), passing_failures, retries: passing_failures, steps_failed: 0 };
    [(ToolName::new("sim.idempotent"), figures.clone()), (ToolName::new("sim.once"), figures)].into_iter().collect()
}

#[test]
fn independent_reads_may_run_at_the_same_time() {
    let found = suggested(json!([read("a", &[]), read("b", &[]), read("c", &["a", "b"])]), &ToolHistory::new());
    let parallel = of(&found, "optimize.parallel");
    assert_eq!(json!(parallel[0].fix), json!([{ "op": "add", "path": "/max_parallel", "value": 2 }]));
    assert!(parallel[0].reason.contains("a, b") && parallel[0].reason.contains("2 of 3 steps"), "{parallel:?}");
    assert!(!parallel[0].diff.is_empty());
    // A chain has nothing to run at the same time.
    let chain = suggested(json!([read("a", &[]), read("b", &["a"])]), &ToolHistory::new());
    assert!(of(&chain, "optimize.parallel").is_empty(), "{chain:?}");
}

#[test]
fn a_flat_plan_learns_what_keeps_it_from_being_fixed() {
    let step = |id: &str| json!({ "id": id, "tool": "sim.idempotent" });
    let found = suggested_of(json!({ "name": "p", "steps": [step("a"), step("b")] }), &figures(50, 40_000, 0));
    let timeouts = of(&found, "optimize.timeout");
    assert_eq!(timeouts.len(), 2, "{found:?}");
    for timeout in timeouts {
        let doubt = timeout.doubt.as_deref().unwrap_or_default();
        assert!(timeout.fix.is_none() && doubt.contains("give each step its depends_on first"), "{timeout:?}");
    }
    let native = |id: &str, needs: &[&str]| json!({ "id": id, "tool": "sim.idempotent", "depends_on": needs });
    let found = suggested(json!([native("a", &[]), native("b", &["a"])]), &figures(50, 40_000, 0));
    assert!(of(&found, "optimize.timeout").iter().all(|timeout| timeout.fix.is_some()), "{found:?}");
}

#[test]
fn a_list_of_suggestions_that_is_cut_says_so() {
    let cut = "only the first 100 suggestions are listed: apply them, and look again";
    for (steps, is_cut) in [(100, false), (101, true)] {
        let needs = |at: usize| if at == 0 { json!([]) } else { json!([format!("s{}", at - 1)]) };
        let step = |at| json!({ "id": format!("s{at}"), "tool": "sim.idempotent", "depends_on": needs(at) });
        let found = suggested((0..steps).map(step).collect(), &figures(50, 40_000, 0));
        assert_eq!((found.suggestions.len(), found.notes.iter().any(|note| note == cut)), (100, is_cut));
    }
}

#[test]
fn the_order_of_once_steps_is_the_authors_to_decide() {
    let once = |id: &str| json!({ "id": id, "tool": "sim.once", "depends_on": [] });
    let found = suggested(json!([once("a"), once("b")]), &ToolHistory::new());
    let parallel = of(&found, "optimize.parallel");
    assert_eq!(parallel[0].fix, None);
    assert!(parallel[0].doubt.as_ref().unwrap().contains("the order of a may matter"), "{parallel:?}");
}

#[test]
fn a_dependency_that_follows_from_others_is_redundant() {
    let steps = json!([read("a", &[]), read("b", &["a"]), read("c", &["a", "b"])]);
    let found = suggested(steps, &ToolHistory::new());
    let redundant = of(&found, "optimize.redundant_dependency");
    assert_eq!(redundant.len(), 1, "{redundant:?}");
    let fix = json!([{ "op": "test", "path": "/steps/2/depends_on/0", "value": "a" },
        { "op": "remove", "path": "/steps/2/depends_on/0" }]);
    assert_eq!(json!(redundant[0].fix), fix);
    // A condition on the way may let `c` run without `a`.
    let mut conditional = read("b", &["a"]);
    conditional["when"] = json!("steps.a.result.flag");
    let found = suggested(json!([read("a", &[]), conditional, read("c", &["a", "b"])]), &ToolHistory::new());
    let of_c = |found: &&&PlanSuggestion| found.step.as_ref().is_some_and(|step| step.as_str() == "c");
    assert_eq!(of(&found, "optimize.redundant_dependency").iter().filter(of_c).count(), 0, "{found:?}");
}

#[test]
fn the_fixes_of_a_list_are_carried_out_one_after_the_other_in_any_order() {
    let steps = json!([
        read("a", &[]),
        read("b", &["a"]),
        read("c", &["b"]),
        read("other", &[]),
        read("d", &["a", "other", "b", "c"])
    ]);
    let written = json!({ "name": "p", "goal": "g", "steps": steps });
    let found = suggested_of(written.clone(), &ToolHistory::new());
    let fixes: Vec<_> = found.suggestions.iter().filter_map(|suggestion| suggestion.fix.as_ref()).collect();
    let carried_out = |order: &mut dyn Iterator<Item = &&Vec<PatchOperation>>| {
        order.fold(written.clone(), |document, fix| apply_patch(&document, fix).unwrap())
    };
    let (there, back) = (carried_out(&mut fixes.iter()), carried_out(&mut fixes.iter().rev()));
    assert_eq!(there["steps"][4]["depends_on"], json!(["other", "c"]), "{found:?}");
    assert_eq!(there, back);
}

#[test]
fn what_cannot_be_undone_comes_last() {
    let undo = json!({ "tool": "sim.undo_idempotent", "parameters": {} });
    let irreversible = json!({ "id": "send", "tool": "sim.once", "cancellable": "irreversible", "depends_on": [] });
    let mut reversible = json!({ "id": "book", "tool": "sim.idempotent", "compensation": undo, "depends_on": [] });
    let found = suggested(json!([irreversible, reversible]), &ToolHistory::new());
    let last = of(&found, "optimize.irreversible_last");
    assert_eq!(json!(last[0].fix), json!([{ "op": "add", "path": "/steps/0/depends_on/-", "value": "book" }]));
    reversible["failure_policy"] = json!({ "action": "continue_others" });
    let found = suggested(json!([irreversible, reversible]), &ToolHistory::new());
    let last = of(&found, "optimize.irreversible_last");
    assert!(last[0].fix.is_none() && last[0].doubt.as_ref().unwrap().contains("not to stop other steps"), "{last:?}");
}

#[test]
fn a_missing_probe_is_named_and_left_to_the_author() {
    let found = suggested(json!([{ "id": "a", "tool": "sim.once" }]), &ToolHistory::new());
    let probe = of(&found, "optimize.probe");
    assert!(probe[0].reason.contains("sim.find") && probe[0].fix.is_none(), "{probe:?}");
    assert!(of(&suggested(json!([read("a", &[])]), &ToolHistory::new()), "optimize.probe").is_empty());
}

#[test]
fn timeouts_are_learned_from_enough_calls_only() {
    let steps = |timeout: &str| json!([{ "id": "a", "tool": "sim.idempotent", "timeout": timeout }]);
    for (timeout, answered, p99, learned) in [
        ("2s", 20, 5_000, Some("15s")),
        ("2s", 19, 5_000, None),
        ("15s", 20, 5_000, None),
        ("10m", 50, 5_000, Some("15s")),
        ("2m", 50, 5_000, None),
        ("1m", 50, 10, Some("1s")),
    ] {
        let found = suggested(steps(timeout), &figures(answered, p99, 0));
        let fix = of(&found, "optimize.timeout").first().map(|found| found.fix.clone().unwrap());
        let expected =
            learned.map(|learned| json!([{ "op": "replace", "path": "/steps/0/timeout", "value": learned }]));
        assert_eq!(json!(fix), json!(expected), "{timeout} {answered} {p99}");
        assert_eq!(found.notes.is_empty(), answered >= 20);
    }
    let once = json!([{ "id": "a", "tool": "sim.once", "timeout": "10m" }]);
    let found = suggested(once, &figures(50, 5_000, 0));
    assert!(of(&found, "optimize.timeout")[0].doubt.is_some(), "a call given up too early would be in doubt");
}

/// A probe's "no" counts after the timeout, so a shorter timeout alone would send a slow call a second time.
#[test]
fn a_shorter_timeout_leaves_a_doubt_as_old_as_before() {
    let step = |settle: Value| {
        let mut probe = json!({ "tool": "sim.find", "parameters": {}, "happened": "result.found" });
        if !settle.is_null() {
            probe["settle"] = settle;
        }
        json!([{ "id": "a", "tool": "sim.once", "timeout": "10m", "probe": probe }])
    };
    let fix = |steps: Value| json!(of(&suggested(steps, &figures(50, 5_000, 0)), "optimize.timeout")[0].fix);
    let timeout = json!({ "op": "replace", "path": "/steps/0/timeout", "value": "15s" });
    let settle = json!({ "op": "add", "path": "/steps/0/probe/settle", "value": "10m" });
    assert_eq!(fix(step(Value::Null)), json!([timeout, settle]));
    assert_eq!(fix(step(json!("1m"))), json!([timeout]), "the author said how old it must be");
}

#[test]
fn a_retry_is_suggested_where_later_attempts_succeeded() {
    let steps = json!([{ "id": "a", "tool": "sim.idempotent", "retry": { "max_attempts": 1 } }]);
    let found = suggested(steps.clone(), &figures(10, 100, 3));
    let fix = json!([{ "op": "replace", "path": "/steps/0/retry/max_attempts", "value": 3 }]);
    assert_eq!(json!(of(&found, "optimize.retry")[0].fix), fix);
    assert!(of(&suggested(steps, &figures(10, 100, 2)), "optimize.retry").is_empty());
}

#[test]
fn without_history_nothing_is_learned_and_it_says_so() {
    let found = suggested(json!([{ "id": "a", "tool": "sim.idempotent", "timeout": "1s" }]), &ToolHistory::new());
    assert!(of(&found, "optimize.timeout").is_empty() && of(&found, "optimize.retry").is_empty());
    assert!(found.notes[0].contains("sim.idempotent"), "{:?}", found.notes);
}

/// What a plan promises: per step approval, guarantee and undo; every order; the turn of the point of no return.
fn assert_not_weaker(old: &Plan, new: &Plan, why: &dyn std::fmt::Debug) {
    let promises = |plan: &Plan| {
        let preview = preview(plan);
        let mut cards: Vec<Value> = preview
            .steps
            .iter()
            .map(|card| {
                let step = &plan.steps[plan.find(card.step.as_str()).unwrap()];
                json!([card.step, card.undo, card.guarantee, step.approval.map(|approval| approval.expires.0)])
            })
            .collect();
        cards.sort_by_key(|card| card[0].to_string());
        let point = preview.point_of_no_return.map(|point| point.step);
        (cards, preview.steps.iter().position(|step| Some(&step.step) == point.as_ref()).unwrap_or(usize::MAX))
    };
    let ((old_cards, old_turn), (new_cards, new_turn)) = (promises(old), promises(new));
    assert_eq!(old_cards, new_cards, "{why:?}");
    assert!(new_turn >= old_turn, "the point of no return is earlier: {why:?}");
    let (before, after) = (old.graph.ancestors(), new.graph.ancestors());
    for step in 0..old.steps.len() {
        for need in 0..old.steps.len() {
            assert!(!before.has(step, need) || after.has(step, need), "an order is lost: {why:?}");
        }
    }
}

#[test]
fn no_fix_of_a_random_plan_weakens_it() {
    let (tools, mut fixes) = (catalog(), 0);
    for seed in 0..1_500 {
        let mut chance = SeededRandom::new(seed);
        let mut written = document(&mut chance);
        if chance.percent(50) {
            written["max_parallel"] = json!(1);
        }
        let plan = compile(&written, &tools).unwrap();
        let history = figures(10 + chance.below(40), 1 + chance.below(60_000), chance.below(6));
        let found = optimize(&plan, &tools, Driver::Server, &history).suggestions;
        for suggestion in &found {
            let Some(fix) = &suggestion.fix else {
                assert!(suggestion.doubt.is_some(), "neither fix nor doubt: {suggestion:?}");
                continue;
            };
            let fixed = apply_patch(&written, fix).unwrap();
            let fixed = compile(&fixed, &tools).unwrap_or_else(|error| panic!("seed {seed}: {suggestion:?}: {error}"));
            assert_not_weaker(&plan, &fixed, &(seed, &suggestion));
            assert!(
                !suggestion.diff.is_empty() || suggestion.code == "optimize.redundant_dependency",
                "{suggestion:?}"
            );
            fixes += 1;
        }
        // Carried out one after the other, as they are listed and the other way round.
        let fixes: Vec<_> = found.iter().filter_map(|suggestion| suggestion.fix.as_ref()).collect();
        let mut results = Vec::new();
        for order in [fixes.clone(), fixes.into_iter().rev().collect()] {
            let mut document = written.clone();
            for fix in order {
                document = apply_patch(&document, fix).unwrap_or_else(|error| panic!("seed {seed}: {error}: {fix:?}"));
                let fixed = compile(&document, &tools).unwrap_or_else(|error| panic!("seed {seed}: {fix:?}: {error}"));
                assert_not_weaker(&plan, &fixed, &(seed, fix));
            }
            results.push(compile(&document, &tools).unwrap());
        }
        assert!(results[0].has_same_content(&results[1]), "seed {seed}");
        let improved = improve(&plan, &tools, Driver::Server, &history).unwrap();
        let whole = compile(&improved.document, &tools).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_not_weaker(&plan, &whole, &(seed, &improved.applied));
        let again = improve(&whole, &tools, Driver::Server, &history).unwrap();
        assert!(again.applied.is_empty(), "seed {seed}: {:?} after {:?}", again.applied, improved.applied);
    }
    assert!(fixes > 500, "only {fixes} fixes");
}
