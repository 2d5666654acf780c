//! From drafts to plans: defaults, edges, safety, and the rules of the drivers.

use super::*;
use crate::hash::Hash;
use crate::limits;
use crate::plan::graph::NeedKind;
use crate::plan::stored;
use crate::plan::{Cancellable, PolicyAction};
use crate::time::Millis;
use crate::tool::{Safety, SafetySource};
use serde_json::{Value, json};

fn tool(name: &str, safety: Safety, key_parameter: Option<&str>) -> Tool {
    Tool {
        name: ToolName::new(name),
        description: String::new(),
        input: Arc::new(Value::Bool(true)),
        output: None,
        safety,
        safety_source: SafetySource::Configured,
        key_parameter: key_parameter.map(str::to_owned),
        sends_key: false,
        grace: None,
        key_window: None,
        attempts: Default::default(),
        definition: Hash::ZERO,
    }
}

fn catalog() -> ToolCatalog {
    let tools = [
        tool("a.read", Safety::ReadOnly, None),
        tool("a.put", Safety::Idempotent, None),
        tool("a.send", Safety::Once, None),
        tool("a.pay", Safety::Once, Some("key")),
        Tool { sends_key: true, ..tool("a.post", Safety::Once, None) },
    ];
    ToolCatalog {
        tools: tools.into_iter().map(|tool| (tool.name.clone(), Arc::new(tool))).collect(),
        ..ToolCatalog::default()
    }
}

fn checked(plan: &Value, driver: Driver) -> PlanCheck {
    read_and_check(plan.to_string().as_bytes(), DocumentFormat::Json, &catalog(), driver, None)
}

#[track_caller]
fn plan(plan: &Value) -> Arc<Plan> {
    let checked = checked(plan, Driver::Server);
    checked.plan.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics))
}

fn codes(checked: &PlanCheck) -> Vec<&'static str> {
    checked.diagnostics.iter().map(|found| found.code).collect()
}

#[test]
fn missing_fields_have_the_documented_defaults() {
    let plan = plan(&json!({"name": "p", "goal": "g", "steps": [{"id": "s", "tool": "a.read", "depends_on": []}]}));
    let step = &plan.steps[0];
    assert_eq!((plan.max_parallel, plan.deadline), (1, limits::DEADLINE_DEFAULT));
    assert_eq!(plan.on_failure, PolicyAction::ManualDecision);
    assert_eq!(step.policy.action, PolicyAction::ManualDecision);
    assert_eq!(step.call.timeout, limits::ATTEMPT_TIMEOUT_DEFAULT);
    assert_eq!(step.call.retry, crate::plan::RetryPolicy::standard());
    assert_eq!((step.approval, step.timeout_total, step.priority), (None, None, 0));
    assert_eq!(plan.tools.keys().map(ToolName::as_str).collect::<Vec<_>>(), ["a.read"]);
}

#[test]
fn the_nearest_setting_wins() {
    let plan = plan(&json!({
        "name": "p", "on_failure": "cancel_all", "max_parallel": 3,
        "defaults": {"timeout": "5s", "retry": {"max_attempts": 4, "initial": "2s"}},
        "steps": [
            {"id": "a", "tool": "a.put", "depends_on": [], "for_each": "[1]", "retry": {"max_attempts": 2},
             "compensation": {"tool": "a.put", "timeout": "9s"}, "approval": true},
            {"id": "b", "tool": "a.put", "depends_on": ["a"], "failure_policy": "compensate",
             "compensation": {"tool": "a.put", "retry": {"max_attempts": 7}},
             "for_each": {"items": "[1]", "max_parallel": 1, "max_items": 5}},
        ],
    }));
    let [a, b] = [&plan.steps[0], &plan.steps[1]];
    assert_eq!((a.call.retry.max_attempts, a.call.retry.initial), (2, Millis::seconds(2)));
    assert_eq!((b.call.retry.max_attempts, b.call.timeout), (4, Millis::seconds(5)));
    assert_eq!((a.policy.action, b.policy.action), (PolicyAction::CancelAll, PolicyAction::Compensate));
    assert_eq!(a.approval.unwrap().expires, limits::APPROVAL_EXPIRES_DEFAULT);
    let undo = |step: &crate::plan::Step| step.compensation.as_ref().unwrap().call.retry.max_attempts;
    assert_eq!((undo(a), undo(b)), (limits::COMPENSATION_ATTEMPTS_DEFAULT, 7));
    assert_eq!(a.compensation.as_ref().unwrap().call.timeout, Millis::seconds(9));
    let fan_out = |step: &crate::plan::Step| {
        let fan_out = step.for_each.as_ref().unwrap();
        (fan_out.max_parallel, fan_out.max_items)
    };
    assert_eq!((fan_out(a), fan_out(b)), ((3, limits::FAN_OUT_DEFAULT), (1, 5)));
}

#[test]
fn reversibility_follows_from_effect_and_compensation() {
    use Cancellable::*;
    for (step, expected) in [
        (json!({"tool": "a.read"}), Reversible),
        (json!({"tool": "a.send"}), Irreversible),
        (json!({"tool": "a.send", "compensation": {"tool": "a.put"}}), Reversible),
        (json!({"tool": "a.send", "cancellable": "partially-reversible"}), PartiallyReversible),
        (json!({"tool": "a.read", "safety": "once"}), Irreversible),
    ] {
        let mut step = step;
        step["id"] = "s".into();
        step["depends_on"] = json!([]);
        let plan = plan(&json!({"name": "p", "steps": [step]}));
        assert_eq!(plan.steps[0].cancellable, expected, "{step}");
    }
}

#[test]
fn safety_is_the_stricter_and_a_key_counts_only_as_itself() {
    for (tool, message, parameters, safety, keyed) in [
        ("a.read", None, json!({}), Safety::ReadOnly, false),
        ("a.read", Some("once"), json!({}), Safety::Once, false),
        ("a.put", Some("once"), json!({}), Safety::Once, false),
        ("a.pay", None, json!({"key": "{{ key }}"}), Safety::Once, true),
        ("a.pay", None, json!({"key": "{{key}}"}), Safety::Once, true),
        ("a.pay", None, json!({"key": "k-{{ key }}"}), Safety::Once, false),
        ("a.pay", None, json!({"other": "{{ key }}"}), Safety::Once, false),
        ("a.send", None, json!({"key": "{{ key }}"}), Safety::Once, false),
        ("a.post", None, json!({}), Safety::Once, true),
    ] {
        let mut step = json!({"id": "s", "tool": tool, "depends_on": [], "parameters": parameters});
        if let Some(statement) = message {
            step["safety"] = statement.into();
        }
        let plan = plan(&json!({"name": "p", "steps": [step]}));
        let call = &plan.steps[0].call;
        assert_eq!((call.safety, call.keyed), (safety, keyed), "{step}");
    }
}

#[test]
fn reads_decide_the_kind_of_need() {
    use NeedKind::*;
    for (fields, expected) in [
        (json!({"depends_on": ["a"]}), Some(Order)),
        (json!({"when": "steps.a.status == 'completed'"}), Some(Order)),
        (json!({"parameters": {"x": "{{ steps.a.result.x }}"}}), Some(Data)),
        (json!({"parameters": {"x": "text {{ steps.a.result }}"}}), Some(Data)),
        (json!({"when": "steps.a.result.x > 1", "depends_on": ["a"]}), Some(Data)),
        (json!({"for_each": "steps.a.result"}), Some(Data)),
        (
            json!({"parameters": {"x": "{{ steps.a.result.x if steps.a.status == 'completed' else 0 }}"}}),
            Some(SoftData),
        ),
        (json!({"when": "steps.a.status == 'completed'", "parameters": {"x": "{{ steps.a.result.x }}"}}), Some(Data)),
        (json!({"fallback": {"tool": "a.put", "parameters": {"x": "{{ steps.a.result }}"}}}), Some(SoftData)),
        (json!({"compensation": {"tool": "a.put", "parameters": {"x": "{{ steps.a.result }}"}}}), Some(SoftData)),
        (json!({"probe": {"tool": "a.read", "happened": "result == steps.a.result"}}), Some(SoftData)),
        (json!({"parameters": {"x": "{{ steps.a.result.x | default(1) }}"}}), Some(SoftData)),
        (json!({"when": "steps.a.result is defined and steps.a.result.x"}), Some(SoftData)),
        (json!({"when": "steps.a.result.x and steps.a.result is defined"}), Some(Data)),
        (json!({"parameters": {"x": "{{ steps.a.result.x | default(1) ~ steps.a.result.y }}"}}), Some(Data)),
        (json!({"parameters": {"x": "steps.a.result"}}), None),
    ] {
        let mut step = fields.clone();
        step["id"] = "b".into();
        step["tool"] = "a.send".into();
        let plan = plan(&json!({"name": "p", "max_parallel": 1, "steps": [{"id": "a", "tool": "a.read"}, step]}));
        assert_eq!(plan.graph.needs[1].first().map(|need| need.kind), expected, "{fields}");
    }
}

#[test]
fn a_flat_list_is_ordered_only_by_its_order() {
    let step =
        |id: &str| json!({"id": id, "name": id, "tool": "a.read", "parameters": {}, "cancellable": "reversible"});
    let plan = plan(&json!({"name": "p", "description": "d", "steps": [step("a"), step("b"), step("c")]}));
    assert_eq!(plan.graph.topological, [0, 1, 2]);
    assert!(plan.graph.needs.iter().flatten().all(|need| need.kind == NeedKind::Sequence));
}

#[test]
fn only_a_plan_for_the_agent_may_name_unregistered_tools() {
    let text =
        json!({"name": "p", "goal": "g", "steps": [{"id": "s", "tool": "web.search", "parameters": {"q": "x"}}]});
    let agent = checked(&text, Driver::Agent);
    assert_eq!(codes(&agent), [""; 0]);
    let step = &agent.plan.unwrap().steps[0];
    assert_eq!((step.call.safety, step.cancellable), (Safety::Once, Cancellable::Irreversible));
    let server = checked(&text, Driver::Server);
    assert!(server.plan.is_none());
    assert_eq!(codes(&server), ["plan.unknown_tool"]);
}

#[test]
fn an_accepted_plan_is_built_again_where_a_check_would_now_refuse_it() {
    let text = json!({"name": "p", "steps": [
        {"id": "a", "tool": "gone.tool", "timeout": "30s", "total_timeout": "1s", "depends_on": []},
        {"id": "b", "tool": "a.read", "parameters": {"x": "{{ inputs.x }}"}, "depends_on": ["a"]},
    ]});
    let document = PlanDocument::read(text.to_string().as_bytes(), DocumentFormat::Json).unwrap();
    let draft = PlanDraft::read(&document, None).0.unwrap();
    assert!(check(&draft, &catalog(), Driver::Server).plan.is_none());
    let plan = assemble(&draft, &catalog().tools).unwrap();
    let pinned = stored::pinned(&plan.tools);
    let rebuilt = stored::rebuild(plan.hash, &plan.source, plan.format, &pinned).unwrap();
    assert_eq!(rebuilt.tools, plan.tools);
    let other = stored::rebuild(plan.hash, &plan.source, plan.format, b"{}").unwrap_err();
    assert!(matches!(other, stored::Error::OtherPlan { .. }), "{other}");
    assert_eq!((plan.find("b"), plan.find("c")), (Some(1), None));
}

#[test]
fn an_impossible_plan_is_refused_even_when_accepted_before() {
    for (steps, code) in [
        (json!([{"id": "a", "tool": "a.read"}, {"id": "a", "tool": "a.read"}]), "plan.duplicate_id"),
        (json!([{"id": "a", "tool": "a.read", "depends_on": ["x"]}]), "plan.unknown_step"),
        (json!([{"id": "a", "tool": "a.read", "when": "steps.x.result"}]), "plan.unknown_step"),
        (json!([{"id": "a", "tool": "a.read", "when": "1 +"}]), "expression.invalid"),
        (
            json!([{"id": "a", "tool": "a.read", "depends_on": ["b"]}, {"id": "b", "tool": "a.read", "depends_on": ["a"]}]),
            "plan.cycle",
        ),
    ] {
        let text = json!({"name": "p", "steps": steps}).to_string();
        let document = PlanDocument::read(text.as_bytes(), DocumentFormat::Json).unwrap();
        let draft = PlanDraft::read(&document, None).0.unwrap();
        let refused = assemble(&draft, &catalog().tools).unwrap_err();
        assert_eq!(refused.iter().map(|found| found.code).collect::<Vec<_>>(), [code], "{text}");
    }
}

#[test]
fn more_dependencies_than_a_plan_may_have_are_refused_by_number() {
    let steps = |dependents: usize, needed: usize| {
        let first = (0..needed).map(|i| json!({"id": format!("n{i}"), "tool": "a.read", "depends_on": []}));
        let all: Vec<String> = (0..needed).map(|i| format!("n{i}")).collect();
        let rest = (0..dependents).map(|i| json!({"id": format!("d{i}"), "tool": "a.read", "depends_on": all}));
        json!({"name": "p", "max_parallel": 1, "steps": first.chain(rest).collect::<Vec<_>>()})
    };
    assert_eq!(codes(&checked(&steps(100, 100), Driver::Server)), [""; 0]);
    assert_eq!(codes(&checked(&steps(101, 100), Driver::Server)), ["plan.limit"]);
}

#[test]
fn findings_are_sorted_as_people_count_and_never_without_end() {
    let places = ["/steps/10", "/steps/9/x", "/steps/9", "/steps/5x", "", "/inputs"];
    let found = places.iter().map(|place| Diagnostic::error("plan.x", *place, "")).collect();
    let places: Vec<String> = sorted(found).into_iter().map(|found| found.pointer).collect();
    assert_eq!(places, ["", "/inputs", "/steps/9", "/steps/9/x", "/steps/10", "/steps/5x"]);
    let many = (0..=FINDINGS_MAX).map(|i| Diagnostic::warning("plan.x", i.to_string(), "")).collect();
    let many = sorted(many);
    assert_eq!((many.len(), many[FINDINGS_MAX].code), (FINDINGS_MAX + 1, "plan.too_many_findings"));
    assert_eq!(many[FINDINGS_MAX].severity, DiagnosticSeverity::Warning);
}

/// `b` is the else of `a`, or of something that cannot be.
#[test]
fn else_of_names_another_step_with_a_condition() {
    for (other, code) in [
        ("a", None),
        ("c", Some("plan.else_without_when")),
        ("b", Some("plan.self_dependency")),
        ("aa", Some("plan.unknown_step")),
    ] {
        let (a, c) = (json!({"id": "a", "tool": "a.read", "when": "1 < 2"}), json!({"id": "c", "tool": "a.read"}));
        let plan = json!({"name": "p", "steps": [a, {"id": "b", "tool": "a.read", "else_of": other}, c]});
        let found = codes(&checked(&plan, Driver::Server));
        assert_eq!(found.iter().find(|found| found.starts_with("plan.")).copied(), code, "{other}");
    }
}

/// `b` reads the result of `a`, which may have none.
#[test]
fn an_unguarded_reference_to_a_step_without_a_result_is_a_warning() {
    let warned = "lint.unguarded_reference";
    for (a, b, expected) in [
        (json!({}), json!({"parameters": {"x": "{{ steps.a.result.x }}"}}), false),
        (json!({"when": "inputs.go"}), json!({"parameters": {"x": "{{ steps.a.result.x }}"}}), false),
        (
            json!({"when": "inputs.go"}),
            json!({"parameters": {"x": "{{ steps.a.result.x }}", "y": "{{ steps.z.result }}"}}),
            true,
        ),
        (
            json!({"failure_policy": "continue_others"}),
            json!({"for_each": "steps.a.result", "parameters": {"y": "{{ steps.z.result }}"}}),
            true,
        ),
        (json!({"when": "inputs.go"}), json!({"parameters": {"x": "{{ steps.a.result.x | default(1) }}"}}), false),
        (
            json!({"when": "inputs.go"}),
            json!({"when": "steps.a.status == 'completed'", "parameters": {"x": "{{ steps.a.result.x }}"}}),
            false,
        ),
    ] {
        let (mut first, mut second) = (a.clone(), b.clone());
        (first["id"], first["tool"], second["id"], second["tool"]) =
            ("a".into(), "a.read".into(), "b".into(), "a.read".into());
        let inputs = json!({"type": "object", "properties": {"go": {"type": "boolean"}}, "required": ["go"]});
        let plan = json!({"name": "p", "inputs": inputs, "steps": [{"id": "z", "tool": "a.read"}, first, second]});
        assert_eq!(codes(&checked(&plan, Driver::Server)).contains(&warned), expected, "{a} {b}");
    }
}

#[test]
fn a_tool_of_a_server_that_cannot_be_reached_is_not_called_unknown() {
    let mut catalog = catalog();
    catalog.unreachable = [("a".to_owned(), "it died".to_owned()), ("mail".to_owned(), "it died".to_owned())].into();
    let codes = |name: &str, driver| {
        let text = format!("name: p\nsteps: [{{ id: a, tool: {name} }}]\n");
        let check = read_and_check(text.as_bytes(), DocumentFormat::Yaml, &catalog, driver, None);
        let found = check.diagnostics.into_iter().filter(|found| !found.code.starts_with("lint"));
        (check.plan.is_some(), found.map(|found| (found.severity, found.code)).collect::<Vec<_>>())
    };
    let (error, warning) = (DiagnosticSeverity::Error, DiagnosticSeverity::Warning);
    // Known from before: checked, with a warning. Never known: an error that says so. Of a server that answers: unknown.
    assert_eq!(codes("a.put", Driver::Server), (true, vec![(warning, "tool.unreachable")]));
    assert_eq!(codes("mail.send", Driver::Server), (false, vec![(error, "tool.unreachable")]));
    assert_eq!(codes("shop.order", Driver::Server), (false, vec![(error, "plan.unknown_tool")]));
    assert_eq!(codes("mail.send", Driver::Agent), (true, vec![]));
    // Misspelt, as far as is known: a tool of the same server is suggested, and it may be there by now.
    assert_eq!(codes("a.putt", Driver::Server), (false, vec![(error, "tool.unreachable")]));
    let check = read_and_check(
        b"name: p\nsteps: [{ id: a, tool: a.putt }]\n",
        DocumentFormat::Yaml,
        &catalog,
        Driver::Server,
        None,
    );
    let found = check.diagnostics.iter().find(|found| found.code == "tool.unreachable").unwrap();
    assert!(found.message.starts_with("there was no tool \"a.putt\" when server \"a\""), "{}", found.message);
    assert!(found.hint.as_deref().unwrap_or_default().starts_with("did you mean \"a.put\"?"), "{:?}", found.hint);
}

#[test]
fn a_name_that_could_be_read_as_something_else_is_refused_and_mended_where_it_can_be() {
    let named = |name: &str| {
        let found = checked(&json!({"name": name, "steps": [{"id": "s", "tool": "a.read"}]}), Driver::Server);
        let found = found.diagnostics.into_iter().find(|found| found.code == "plan.bad_name")?;
        Some((found.hint.is_some(), json!(found.fix)))
    };
    assert_eq!(named("monthly report"), None);
    assert_eq!(named("victim@1"), Some((true, Value::Null)));
    assert_eq!(named("plan_ca689401537e79ed9de73dd25f"), Some((true, Value::Null)));
    let fix = |name: &str| json!([{ "op": "replace", "path": "/name", "value": name }]);
    assert_eq!(named("report "), Some((true, fix("report"))));
    assert_eq!(named("cafe\u{301}"), Some((true, fix("caf\u{e9}"))));
    // Nobody chose the beginning of a request.
    let numbered = json!({"request": "write to me@1", "reasoning": "r", "steps": [{"step_number": 1,
        "description": "d", "tool_name": "a.read", "parameters": {}, "depends_on": []}]});
    assert!(!codes(&checked(&numbered, Driver::Server)).contains(&"plan.bad_name"));
}
