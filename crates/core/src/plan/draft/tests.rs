//! Reading drafts, by tables.

use super::*;
use crate::diagnostic::DiagnosticSeverity;
use crate::limits::*;
use crate::plan::document::DocumentFormat;
use crate::plan::patch::apply_patch;
use serde_json::json;

fn read(plan: &Value) -> (PlanDraft, Vec<Diagnostic>) {
    let document = PlanDocument::read(plan.to_string().as_bytes(), DocumentFormat::Json).unwrap();
    let (draft, findings) = PlanDraft::read(&document, Some(Timestamp(1_000_000_000_000)));
    (draft.unwrap(), findings)
}

fn codes(plan: &Value) -> Vec<(&'static str, String)> {
    read(plan).1.into_iter().map(|found| (found.code, found.pointer)).collect()
}

/// A plan of one step with one more field in it, at a pointer.
fn with(path: &str, value: Value) -> Value {
    let mut plan = json!({
        "name": "p", "max_parallel": 1, "budget": {}, "defaults": {"retry": {}},
        "steps": [{
            "id": "a", "tool": "s.t", "retry": {}, "approval": {}, "for_each": {"items": "inputs.x"},
            "failure_policy": {"action": "cancel_all"}, "probe": {"tool": "s.t", "happened": "true"},
            "compensation": {"tool": "s.t"}, "fallback": {"tool": "s.t"},
        }],
    });
    let (parent, name) = path.rsplit_once('/').unwrap();
    plan.pointer_mut(parent).unwrap()[name] = value;
    plan
}

#[test]
fn every_field_of_the_documented_form_is_read() {
    let text = r#"
name: order-4711
goal: Reserve, charge and ship
description: d
request: r
reasoning: because
tags: [a, b]
metadata: { team: x }
inputs: { type: object }
max_parallel: 2
deadline: 2h
budget: { calls: 10, cost: 1.5, time: 1h }
on_failure: compensate
defaults: { timeout: 10s, retry: { max_attempts: 2 } }
$schema: https://example.com/plan.json
steps:
  - id: charge
    name: Charge
    description: take the money
    tool: payments.charge
    parameters: { amount: "{{ inputs.amount }}" }
    depends_on: [reserve]
    cancellable: partially-reversible
    compensation:
      tool: payments.refund
      parameters: { id: "{{ result.id }}" }
      timeout: 5s
      retry: { max_attempts: 4 }
      safety: idempotent
      probe: { tool: payments.find, happened: "{{ result.refunded }}" }
    probe:
      tool: payments.find
      parameters: { key: "{{ key }}" }
      happened: result.found
      result: "{{ result.charge }}"
      timeout: 1s
      safety: read_only
      retry: { max_attempts: 1 }
    timeout: 30s
    total_timeout: 10m
    retry: { max_attempts: 3, backoff: linear, initial: 1s, factor: 2, max: 60s, jitter: false, on: [unavailable, timeout] }
    approval: { required: true, expires: 24h }
    when: "{{ steps.reserve.result.ok }}"
    for_each: { items: "{{ inputs.orders }}", max_parallel: 3, max_items: 50 }
    fallback: { tool: bank.charge, parameters: { a: 1 }, timeout: 2s, retry: { max_attempts: 1 }, safety: once, compensation: { tool: bank.refund } }
    failure_policy: { action: cancel_dependent, propagate_to: [mail], reason: no money }
    safety: once
    priority: -5
    output: { type: object }
"#;
    let document = PlanDocument::read(text.as_bytes(), DocumentFormat::Yaml).unwrap();
    let (draft, findings) = PlanDraft::read(&document, None);
    assert_eq!(findings, []);
    insta::assert_debug_snapshot!(
        (draft.as_ref().map(|draft| PlanDraft {
            source: Arc::from([]),
            document: Arc::new(Value::Null),
            ..draft.clone()
        }))
    );
    assert_eq!(&*draft.unwrap().source, text.as_bytes());
}

#[test]
fn shapes_are_distinguished() {
    let step = json!({"id": "a", "tool": "s.t"});
    let steps = |extra: Value| {
        let mut step = step.clone();
        step.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({"name": "p", "steps": [{"id": "z", "name": "Z", "tool": "s.t", "parameters": {}}, step]})
    };
    let full = json!({"name": "A", "cancellable": "reversible", "cancellation": {"tool": "s.u"},
        "failure_policy": {"action": "cancel_all", "propagate_to": ["z"], "reason": "r"}});
    for (plan, shape, pointer) in [
        (steps(json!({})), DraftShape::Flat, "/steps/1"),
        (steps(full), DraftShape::Flat, "/steps/1"),
        (json!({"plan": steps(json!({}))}), DraftShape::Flat, "/plan/steps/1"),
        (steps(json!({"parameters": {"a": "{{ inputs.steps_wanted }} steps"}})), DraftShape::Native, "/steps/1"),
        (steps(json!({"parameters": {"a": ["{{ steps.z.result }}"]}})), DraftShape::Native, "/steps/1"),
        (steps(json!({"parameters": {"a": "{{ variable }}"}})), DraftShape::Flat, "/steps/1"),
        (steps(json!({"depends_on": ["z"]})), DraftShape::Native, "/steps/1"),
        (steps(json!({"timeout": "3s"})), DraftShape::Native, "/steps/1"),
        (json!({"plan": steps(json!({"when": "true"}))}), DraftShape::Native, "/plan/steps/1"),
        (json!({"name": "p", "goal": "g", "steps": [step, step]}), DraftShape::Native, "/steps/1"),
    ] {
        let (draft, findings) = read(&plan);
        assert_eq!(findings, [], "{plan}");
        assert_eq!((draft.shape, draft.steps[1].pointer.as_str()), (shape, pointer), "{plan}");
    }
    let (draft, _) = read(&steps(json!({"cancellation": {"tool": "s.u", "parameters": {"x": 1}}})));
    let call = &draft.steps[1].compensation.as_ref().unwrap().call;
    assert_eq!((call.tool.as_str(), call.pointer.as_str()), ("s.u", "/steps/1/cancellation"));
}

fn numbered() -> Value {
    json!({
        "plan_id": "plan_abc", "request": format!("Tell me {}", "more ".repeat(40)), "reasoning": "because",
        "selected_tools": ["weather.get", "timer.set"], "created_at": 999_999_999.5, "updated_at": null,
        "status": "pending", "metadata": {"user": "u"},
        "steps": [
            {"step_number": 2, "tool_name": "timer.set", "description": "Set", "parameters": {"s": 1},
             "depends_on": [1], "status": "pending", "result": null, "error": null},
            {"step_number": 1, "tool_name": "weather.get", "description": "Get"},
        ],
    })
}

#[test]
fn numbered_steps_get_ids() {
    let (draft, findings) = read(&numbered());
    assert_eq!(findings, []);
    assert_eq!(draft.shape, DraftShape::Numbered);
    assert_eq!((draft.name.chars().count(), draft.goal.len()), (80, draft.request.len()));
    assert_eq!(draft.metadata["plan_id"], "plan_abc");
    let step = &draft.steps[0];
    assert_eq!(
        (step.id.as_str(), step.number, step.id_key, step.tool_key),
        ("step_2", Some(2), "step_number", "tool_name")
    );
    assert_eq!(step.depends_on, [("step_1".to_owned(), "/steps/0/depends_on/0".to_owned())]);
    assert_eq!((step.call.tool.as_str(), step.description.as_str()), ("timer.set", "Set"));
}

#[test]
fn numbered_plans_are_held_to_their_own_rules() {
    let with = |path: &str, value: Value| {
        let mut plan = numbered();
        let (parent, name) = path.rsplit_once('/').unwrap();
        plan.pointer_mut(parent).unwrap()[name] = value;
        plan
    };
    let future = 1_000_000_061;
    for (path, value, code, pointer) in [
        ("/steps/0/step_number", json!(3), "plan.step_numbers", "/steps"),
        ("/steps/0/step_number", json!(0), "plan.limit", "/steps/0/step_number"),
        ("/steps/0/step_number", json!("2"), "plan.wrong_type", "/steps/0/step_number"),
        ("/steps/0/depends_on", json!(["step_1"]), "plan.wrong_type", "/steps/0/depends_on/0"),
        ("/steps/0/depends_on", json!([0]), "plan.wrong_type", "/steps/0/depends_on/0"),
        ("/steps/0/depends_on", json!(1), "plan.wrong_type", "/steps/0/depends_on"),
        ("/steps/0/status", json!("completed"), "plan.ignored_field", "/steps/0/status"),
        ("/steps/0/result", json!({}), "plan.ignored_field", "/steps/0/result"),
        ("/steps/0/error", json!("e"), "plan.ignored_field", "/steps/0/error"),
        ("/steps/0/tool_name", json!("timer"), "plan.tool_name", "/steps/0/tool_name"),
        ("/steps/0/tool_name", json!("timer.stop"), "plan.unselected_tool", "/steps/0/tool_name"),
        ("/status", json!("running"), "plan.ignored_field", "/status"),
        ("/created_at", json!(future), "plan.future_timestamp", "/created_at"),
        ("/updated_at", json!(future), "plan.future_timestamp", "/updated_at"),
        ("/created_at", json!("2026-01-01"), "plan.wrong_type", "/created_at"),
        ("/selected_tools", json!(["weather.get", "timer.set", "x"]), "plan.tool_name", "/selected_tools/2"),
        ("/selected_tools", json!([]), "plan.empty_field", "/selected_tools"),
        ("/reasoning", json!(" "), "plan.empty_field", "/reasoning"),
        ("/plan_id", json!(""), "plan.empty_field", "/plan_id"),
    ] {
        let found: Vec<_> =
            codes(&with(path, value.clone())).into_iter().filter(|(code, _)| !code.is_empty()).collect();
        // A tool with a bad name is not among the selected ones either.
        assert!(found.contains(&(code, pointer.to_owned())), "{path} {value}: {found:?}");
        let expected = if (code, path) == ("plan.tool_name", "/steps/0/tool_name") { 2 } else { 1 };
        assert_eq!(found.len(), expected, "{path} {value}: {found:?}");
    }
    assert_eq!(codes(&with("/created_at", json!(future - 1))), []);
    let document =
        PlanDocument::read(with("/created_at", json!(9e15)).to_string().as_bytes(), DocumentFormat::Json).unwrap();
    assert_eq!(PlanDraft::read(&document, None).1, []);
}

#[test]
fn limits_hold_at_their_edge() {
    let chars = |count: usize| json!("é".repeat(count));
    let bytes = |count: usize| json!("x".repeat(count));
    let list = |count: usize| json!(vec!["t"; count]);
    let span = |span: Millis| json!(span.to_string());
    let after = |span: Millis| json!(Millis(span.0 + 1).to_string());
    let id = |count: usize| json!(format!("a{}", "b".repeat(count - 1)));
    let tool = |count: usize| json!(format!("s.{}", "b".repeat(count - 2)));
    let mut edges: Vec<(&str, Value, Value)> = vec![
        ("/name", chars(NAME_CHARS_MAX), chars(NAME_CHARS_MAX + 1)),
        ("/goal", bytes(TEXT_BYTES_MAX), bytes(TEXT_BYTES_MAX + 1)),
        ("/description", bytes(TEXT_BYTES_MAX), bytes(TEXT_BYTES_MAX + 1)),
        ("/request", bytes(TEXT_BYTES_MAX), bytes(TEXT_BYTES_MAX + 1)),
        ("/reasoning", bytes(TEXT_BYTES_MAX), bytes(TEXT_BYTES_MAX + 1)),
        ("/tags", list(TAGS_MAX), list(TAGS_MAX + 1)),
        ("/deadline", span(DEADLINE_MAX), after(DEADLINE_MAX)),
        ("/deadline", json!("1ms"), json!("0s")),
        ("/budget/calls", json!(1), json!(0)),
        ("/budget/cost", json!(0), json!(-0.5)),
        ("/budget/cost", json!(9_007_199_254i64), json!(9_007_199_255i64)),
        ("/budget/time", span(DEADLINE_MAX), after(DEADLINE_MAX)),
        ("/defaults/timeout", span(TIMEOUT_MAX), after(TIMEOUT_MAX)),
        ("/steps/0/id", id(NAME_CHARS_MAX), id(NAME_CHARS_MAX + 1)),
        ("/steps/0/name", chars(NAME_CHARS_MAX), chars(NAME_CHARS_MAX + 1)),
        ("/steps/0/description", bytes(TEXT_BYTES_MAX), bytes(TEXT_BYTES_MAX + 1)),
        ("/steps/0/tool", tool(NAME_CHARS_MAX), tool(NAME_CHARS_MAX + 1)),
        ("/steps/0/probe/tool", tool(NAME_CHARS_MAX), tool(NAME_CHARS_MAX + 1)),
        ("/steps/0/timeout", span(TIMEOUT_MAX), after(TIMEOUT_MAX)),
        ("/steps/0/timeout", json!("1ms"), json!("0ms")),
        ("/steps/0/compensation/timeout", span(TIMEOUT_MAX), after(TIMEOUT_MAX)),
        ("/steps/0/fallback/timeout", span(TIMEOUT_MAX), after(TIMEOUT_MAX)),
        ("/steps/0/total_timeout", span(STEP_TIMEOUT_MAX), after(STEP_TIMEOUT_MAX)),
        ("/steps/0/retry/initial", span(BACKOFF_MAX), after(BACKOFF_MAX)),
        ("/steps/0/retry/max", span(BACKOFF_MAX), after(BACKOFF_MAX)),
        ("/steps/0/retry/factor", json!(BACKOFF_FACTOR_MAX), json!(BACKOFF_FACTOR_MAX + 0.5)),
        ("/steps/0/retry/factor", json!(1), json!(0.9)),
        ("/steps/0/approval/expires", span(APPROVAL_EXPIRES_MAX), after(APPROVAL_EXPIRES_MAX)),
        ("/steps/0/priority", json!(-PRIORITY_MAX), json!(-PRIORITY_MAX - 1)),
        ("/steps/0/failure_policy/reason", bytes(REASON_BYTES_MAX), bytes(REASON_BYTES_MAX + 1)),
    ];
    for (path, max) in [
        ("/max_parallel", PARALLEL_MAX),
        ("/defaults/retry/max_attempts", ATTEMPTS_MAX),
        ("/steps/0/retry/max_attempts", ATTEMPTS_MAX),
        ("/steps/0/for_each/max_parallel", PARALLEL_MAX),
        ("/steps/0/for_each/max_items", FAN_OUT_MAX),
        ("/steps/0/priority", PRIORITY_MAX.unsigned_abs()),
    ] {
        edges.push((path, json!(max - 1), json!(max + 1)));
        edges.push((path, json!(max), json!(i64::from(max) + (1 << 40))));
        if !path.ends_with("priority") {
            edges.push((path, json!(1), json!(0)));
        }
    }
    for (path, at, above) in edges {
        assert_eq!(codes(&with(path, at)), [], "{path}");
        assert_eq!(codes(&with(path, above)), [("plan.limit", path.to_owned())], "{path}");
    }
    let tag = |count| with("/tags", json!(["ok", "x".repeat(count)]));
    assert_eq!(codes(&tag(NAME_CHARS_MAX)), []);
    assert_eq!(codes(&tag(NAME_CHARS_MAX + 1)), [("plan.limit", "/tags/1".to_owned())]);
    let steps = |count: usize| {
        let steps: Vec<Value> = (0..count).map(|at| json!({"id": format!("s{at}"), "tool": "s.t"})).collect();
        json!({"name": "p", "steps": steps})
    };
    assert_eq!(codes(&steps(PLAN_STEPS_MAX)), []);
    assert_eq!(codes(&steps(PLAN_STEPS_MAX + 1)), [("plan.limit", "/steps".to_owned())]);
    assert_eq!(codes(&steps(0)), [("plan.empty_field", "/steps".to_owned())]);
}

#[test]
fn mistyped_fields_are_recognised_and_their_fix_applies() {
    for (step, wrong, right) in [
        (json!({"args": {"a": 1}}), "args", "parameters"),
        (json!({"arguments": {}}), "arguments", "parameters"),
        (json!({"params": {}}), "params", "parameters"),
        (json!({"input": {}}), "input", "parameters"),
        (json!({"dependsOn": ["z"]}), "dependsOn", "depends_on"),
        (json!({"needs": ["z"]}), "needs", "depends_on"),
        (json!({"after": ["z"]}), "after", "depends_on"),
        (json!({"depends": ["z"]}), "depends", "depends_on"),
        (json!({"undo": {"tool": "s.t"}}), "undo", "compensation"),
        (json!({"rollback": {"tool": "s.t"}}), "rollback", "compensation"),
        (json!({"cancellation": {"tool": "s.t"}}), "cancellation", "compensation"),
        (json!({"condition": "true"}), "condition", "when"),
        (json!({"if": "true"}), "if", "when"),
        (json!({"retries": {"max_attempts": 2}}), "retries", "retry"),
        (json!({"tool_name": "s.t"}), "tool_name", "tool"),
        (json!({"timout": "3s"}), "timout", "timeout"),
        (json!({"timeout_total": "3s"}), "timeout_total", "total_timeout"),
        (json!({"forEach": "inputs.x"}), "forEach", "for_each"),
        (json!({"cancelable": "reversible"}), "cancelable", "cancellable"),
    ] {
        let mut plan = json!({"name": "p", "goal": "g", "steps": [{"id": "a", "tool": "s.t"}]});
        let fields = plan["steps"][0].as_object_mut().unwrap();
        fields.extend(step.as_object().unwrap().clone());
        if right == "tool" {
            fields.shift_remove("tool");
        }
        let (_, findings) = read(&plan);
        assert_eq!(findings.len(), 1, "{wrong}: {findings:?}");
        let found = &findings[0];
        assert_eq!((found.code, &*found.pointer), ("plan.unknown_field", &*format!("/steps/0/{wrong}")));
        assert_eq!(found.hint, Some(format!("did you mean \"{right}\"?")), "{wrong}");
        let fixed = apply_patch(&plan, found.fix.as_ref().expect(wrong)).unwrap();
        assert_eq!(fixed["steps"][0][right], plan["steps"][0][wrong]);
        assert_eq!(codes(&fixed), [], "{wrong}");
    }
}

#[test]
fn fixes_are_offered_only_where_they_are_clear() {
    for (path, value, hint) in [
        ("/steps/0/retries", json!(3), Some("did you mean \"retry\"?")),
        ("/steps/0/descr", json!("x"), Some("did you mean \"description\"?")),
        ("/steps/0/colour", json!("x"), None),
        ("/steps/0/approval/by", json!("me"), Some("expected required or expires")),
        ("/steps/0/Tool", json!("s.t"), Some("did you mean \"tool\"?")),
        ("/version", json!(1), None),
    ] {
        let (_, findings) = read(&with(path, value));
        assert_eq!(findings.len(), 1, "{path}");
        let found = &findings[0];
        assert_eq!((found.code, &*found.pointer, found.hint.as_deref()), ("plan.unknown_field", path, hint));
        assert_eq!(found.fix, None, "{path}");
    }
}

#[test]
fn clear_mistakes_have_a_fix() {
    for (path, wrong, code, meant) in [
        ("/steps/0/cancellable", json!("partially_reversible"), "plan.unknown_value", json!("partially-reversible")),
        ("/steps/0/cancellable", json!("Reversable"), "plan.unknown_value", json!("reversible")),
        ("/steps/0/safety", json!("readonly"), "plan.unknown_value", json!("read_only")),
        ("/steps/0/retry/backoff", json!("exponentail"), "plan.unknown_value", json!("exponential")),
        ("/steps/0/failure_policy/action", json!("cancelAll"), "plan.unknown_value", json!("cancel_all")),
        ("/on_failure", json!("compensat"), "plan.unknown_value", json!("compensate")),
        ("/steps/0/retry/jitter", json!("yes"), "plan.wrong_type", json!(true)),
        ("/steps/0/retry/jitter", json!("off"), "plan.wrong_type", json!(false)),
        ("/steps/0/depends_on", json!("z"), "plan.wrong_type", json!(["z"])),
        ("/steps/0/for_each", json!([1, "a"]), "plan.wrong_type", json!("[1,\"a\"]")),
        ("/steps/0/name", json!(3), "plan.wrong_type", json!("3")),
        ("/max_parallel", json!("4"), "plan.wrong_type", json!(4)),
        ("/max_parallel", json!(4.0), "plan.wrong_type", json!(4)),
        ("/goal", json!(true), "plan.wrong_type", json!("true")),
        ("/goal", json!(null), "plan.wrong_type", json!(null)),
        ("/steps/0/timeout", json!(null), "plan.wrong_type", json!(null)),
    ] {
        let plan = with(path, wrong.clone());
        let (_, findings) = read(&plan);
        assert_eq!(findings.len(), 1, "{path} {wrong}: {findings:?}");
        let found = &findings[0];
        assert_eq!((found.code, &*found.pointer), (code, path));
        let fixed = apply_patch(&plan, found.fix.as_ref().expect(path)).unwrap();
        assert_eq!(fixed.pointer(path).unwrap_or(&Value::Null), &meant, "{path}");
        assert_eq!(codes(&fixed), [], "{path} {wrong}");
    }
}

#[test]
fn durations_are_written_with_their_unit() {
    for (value, hint) in [
        (json!(30), "write \"30s\" for seconds, \"30ms\" for milliseconds"),
        (json!("30"), "write \"250ms\", \"30s\", \"5m\", \"24h\", \"7d\" or a sum of them"),
        (json!(1.5), "write \"250ms\", \"30s\", \"5m\", \"24h\", \"7d\" or a sum of them"),
    ] {
        let (_, findings) = read(&with("/steps/0/timeout", value));
        assert_eq!((findings.len(), findings[0].code, findings[0].hint.as_deref()), (1, "plan.duration", Some(hint)));
        assert_eq!(findings[0].fix, None);
    }
}

#[test]
fn ids_are_renamed_wherever_they_are_used() {
    let plan = json!({"name": "p", "goal": "g", "steps": [
        {"id": "send mail!", "tool": "s.t"},
        {"id": "send_mail", "tool": "s.t", "depends_on": ["send mail!"]},
        {"id": "1st", "tool": "s.t", "failure_policy": {"action": "cancel_all", "propagate_to": ["send mail!"]}},
        {"id": "ümläut", "tool": "s.t"},
        {"id": "ok-id_2", "tool": "s.t"},
        {"id": "?", "tool": "s.t"},
    ]});
    let (_, findings) = read(&plan);
    let mut fixed = plan.clone();
    for found in &findings {
        assert_eq!(found.code, "plan.bad_id");
        fixed = apply_patch(&fixed, found.fix.as_ref().unwrap()).unwrap();
    }
    let ids: Vec<_> = fixed["steps"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["send_mail_2", "send_mail", "step_1st", "ml_ut", "ok-id_2", "step"]);
    assert_eq!(fixed["steps"][1]["depends_on"][0], "send_mail_2");
    assert_eq!(fixed["steps"][2]["failure_policy"]["propagate_to"][0], "send_mail_2");
    assert_eq!(codes(&fixed), []);
}

#[test]
fn tool_names_have_a_server_and_a_tool() {
    for (tool, good) in [
        ("s.t", true),
        ("my-server.ns/tool_2", true),
        ("s.group.tool", true),
        ("tool", false),
        (".tool", false),
        ("server.", false),
        ("a..b", false),
        ("a b.c", false),
        ("a.é", false),
        ("{{ x }}.y", false),
    ] {
        let expected: &[_] = if good { &[] } else { &[("plan.tool_name", "/steps/0/tool".to_owned())] };
        assert_eq!(codes(&with("/steps/0/tool", json!(tool))), expected, "{tool}");
    }
}

#[test]
fn braces_around_a_whole_expression_are_taken_off() {
    for (typed, read_as) in [
        ("steps.a.result.ok", "steps.a.result.ok"),
        ("{{ inputs.ok }}", "inputs.ok"),
        ("  {{inputs.ok}} ", "inputs.ok"),
        ("{{ a }} and {{ b }}", "{{ a }} and {{ b }}"),
    ] {
        let (draft, findings) = read(&with("/steps/0/when", json!(typed)));
        assert_eq!(findings, []);
        assert_eq!(draft.steps[0].when.as_deref(), Some(read_as));
    }
}

#[test]
fn short_forms_mean_the_same() {
    let (draft, _) = read(&with("/steps/0/approval", json!(true)));
    assert!(draft.steps[0].approval.as_ref().unwrap().required);
    let (draft, _) = read(&with("/steps/0/approval", json!(false)));
    assert!(!draft.steps[0].approval.as_ref().unwrap().required);
    let (draft, _) = read(&with("/steps/0/approval", json!({})));
    assert!(draft.steps[0].approval.as_ref().unwrap().required);
    let (draft, _) = read(&with("/steps/0/failure_policy", json!("compensate")));
    assert_eq!(draft.steps[0].failure_policy.as_ref().unwrap().action, Some(PolicyAction::Compensate));
    let (draft, _) = read(&with("/steps/0/for_each", json!("{{ inputs.x }}")));
    let for_each = draft.steps[0].for_each.as_ref().unwrap();
    assert_eq!((for_each.items.as_str(), for_each.items_pointer.as_str()), ("inputs.x", "/steps/0/for_each"));
}

#[test]
fn a_mistake_does_not_hide_the_next() {
    let plan = json!({"name": "", "max_parallel": "many", "deadline": 5, "steps": [
        3,
        {"id": "a", "tool": 5, "timeout": "soon", "retry": {"max_attempts": 0, "on": ["often"], "until": 1}},
        {"tool": "s.t", "approval": "yes", "compensation": {"parameters": []}},
        {"id": "c", "tool": "s.t", "probe": {"tool": "s.t"}, "for_each": {"max_items": 1}},
    ]});
    let (draft, findings) = read(&plan);
    let found: Vec<_> = findings.iter().map(|found| (found.code, &*found.pointer)).collect();
    assert_eq!(
        found,
        [
            ("plan.empty_field", "/name"),
            ("plan.wrong_type", "/max_parallel"),
            ("plan.duration", "/deadline"),
            ("plan.wrong_type", "/steps/0"),
            ("plan.wrong_type", "/steps/1/tool"),
            ("plan.duration", "/steps/1/timeout"),
            ("plan.limit", "/steps/1/retry/max_attempts"),
            ("plan.unknown_value", "/steps/1/retry/on/0"),
            ("plan.unknown_field", "/steps/1/retry/until"),
            ("plan.wrong_type", "/steps/2/compensation/parameters"),
            ("plan.missing_field", "/steps/2/compensation"),
            ("plan.wrong_type", "/steps/2/approval"),
            ("plan.missing_field", "/steps/2"),
            ("plan.missing_field", "/steps/3/for_each"),
            ("plan.missing_field", "/steps/3/probe"),
        ]
    );
    assert!(findings.iter().all(|found| found.severity == DiagnosticSeverity::Error));
    let pointers: Vec<_> = draft.steps.iter().map(|step| &*step.pointer).collect();
    assert_eq!(pointers, ["/steps/1", "/steps/2", "/steps/3"]);
}

#[test]
fn only_an_object_makes_a_draft() {
    for (text, pointer) in [("[]", ""), ("\"plan\"", ""), ("null", ""), ("3", "")] {
        let document = PlanDocument::read(text.as_bytes(), DocumentFormat::Json).unwrap();
        let (draft, findings) = PlanDraft::read(&document, None);
        assert!(draft.is_none());
        assert_eq!((findings.len(), findings[0].code, &*findings[0].pointer), (1, "plan.wrong_type", pointer));
    }
    assert_eq!(codes(&json!({})), [("plan.missing_field", String::new()), ("plan.missing_field", String::new())]);
    let wrapped = json!({"plan": {"name": "p", "steps": []}, "dry_run": true});
    assert_eq!(
        codes(&wrapped),
        [("plan.empty_field", "/plan/steps".to_owned()), ("plan.unknown_field", "/dry_run".to_owned())]
    );
}
