//! Reads a plan field by field. The other shapes differ in a few keys only.

use super::reader::FieldReader;
use super::{
    ApprovalDraft, BudgetDraft, CallDraft, CompensationDraft, DefaultsDraft, DraftShape, FallbackDraft, FanOutDraft,
    PlanDraft, PolicyDraft, ProbeDraft, RetryDraft, StepDraft, ids, numbered,
};
use crate::diagnostic::Diagnostic;
use crate::limits::*;
use crate::plan::document::PlanDocument;
use crate::plan::inputs::InputDeclaration;
use crate::plan::{Cancellable, FailureTolerance, PolicyAction, SilenceAction};
use crate::pointer;
use crate::time::{Millis, Timestamp};
use crate::tool::attempts::BackoffStrategy;
use crate::tool::{FailureCategory, Safety};
use crate::wording::named;
use serde_json::Value;
use std::sync::Arc;

const MILLISECOND: Millis = Millis(1);
/// Costs are stored in millionths, as integers that every JSON parser can hold.
pub(super) const COST_MAX: f64 = (INTEGER_MAX / 1_000_000) as f64;

pub(super) const SILENCE_ACTIONS: &[(&str, SilenceAction)] =
    &[("ask", SilenceAction::Ask), ("hand_over", SilenceAction::HandOver)];

pub(super) const ACTIONS: &[(&str, PolicyAction)] = &[
    ("manual_decision", PolicyAction::ManualDecision),
    ("cancel_all", PolicyAction::CancelAll),
    ("cancel_dependent", PolicyAction::CancelDependent),
    ("continue_others", PolicyAction::ContinueOthers),
    ("compensate", PolicyAction::Compensate),
];
pub(super) const CANCELLABLE: &[(&str, Cancellable)] = &[
    ("reversible", Cancellable::Reversible),
    ("partially-reversible", Cancellable::PartiallyReversible),
    ("irreversible", Cancellable::Irreversible),
];
pub(super) const SAFETY: &[(&str, Safety)] =
    &[("read_only", Safety::ReadOnly), ("idempotent", Safety::Idempotent), ("once", Safety::Once)];
pub(super) const BACKOFF: &[(&str, BackoffStrategy)] = &[
    ("fixed", BackoffStrategy::Fixed),
    ("linear", BackoffStrategy::Linear),
    ("exponential", BackoffStrategy::Exponential),
];

pub(super) fn read(mut reader: FieldReader<'_, '_>, document: &PlanDocument, now: Option<Timestamp>) -> PlanDraft {
    let shape = DraftShape::of(reader.fields());
    reader.require(if shape == DraftShape::Numbered { "request" } else { "name" });
    let mut draft = PlanDraft {
        source: Arc::clone(&document.source),
        format: document.format,
        document: Arc::clone(&document.value),
        shape,
        name: owned(reader.name("name")),
        goal: owned(reader.prose("goal", TEXT_BYTES_MAX)),
        description: owned(reader.prose("description", TEXT_BYTES_MAX)),
        request: owned(reader.prose("request", TEXT_BYTES_MAX)),
        reasoning: owned(reader.prose("reasoning", TEXT_BYTES_MAX)),
        tags: tags(&mut reader),
        metadata: reader.object("metadata").cloned().unwrap_or_default(),
        inputs: reader.object("inputs").map(InputDeclaration::read),
        max_parallel: count(&mut reader, "max_parallel", PARALLEL_MAX),
        deadline: reader.duration("deadline", MILLISECOND..=DEADLINE_MAX),
        agent_timeout: reader.duration("agent_timeout", MILLISECOND..=AGENT_TIMEOUT_MAX),
        on_agent_silence: reader.one_of("on_agent_silence", SILENCE_ACTIONS),
        budget: reader.child("budget").map(budget).unwrap_or_default(),
        on_failure: reader.one_of("on_failure", ACTIONS),
        defaults: reader.child("defaults").map(defaults).unwrap_or_default(),
        steps: Vec::new(),
    };
    // For editors only.
    reader.prose("$schema", TEXT_BYTES_MAX);
    draft.steps = steps(&mut reader, shape);
    if shape == DraftShape::Numbered {
        numbered::read_plan(&mut reader, &mut draft, now);
    } else {
        ids::check(&draft.steps, reader.findings());
    }
    reader.finish();
    draft
}

fn tags(reader: &mut FieldReader<'_, '_>) -> Vec<String> {
    let tags = reader.texts("tags", "texts").unwrap_or_default();
    if tags.len() > TAGS_MAX {
        reader.limit("tags", format!("a list of {} items", tags.len()), format!("{TAGS_MAX} items"));
    }
    for (tag, at) in &tags {
        let chars = tag.chars().count();
        if chars > NAME_CHARS_MAX {
            let message = format!("a tag is {chars} characters long, the limit is {NAME_CHARS_MAX} characters");
            reader.findings().push(Diagnostic::error("plan.limit", at, message));
        }
    }
    tags.into_iter().take(TAGS_MAX).map(|(tag, _)| tag).collect()
}

fn budget(mut reader: FieldReader<'_, '_>) -> BudgetDraft {
    let budget = BudgetDraft {
        calls: reader.integer("calls", 1..=INTEGER_MAX).and_then(|calls| calls.try_into().ok()),
        cost: reader.number("cost", 0.0..=COST_MAX),
        time: reader.duration("time", MILLISECOND..=DEADLINE_MAX),
    };
    reader.finish();
    budget
}

fn defaults(mut reader: FieldReader<'_, '_>) -> DefaultsDraft {
    let defaults =
        DefaultsDraft { retry: retry(&mut reader), timeout: reader.duration("timeout", MILLISECOND..=TIMEOUT_MAX) };
    reader.finish();
    defaults
}

fn steps(reader: &mut FieldReader<'_, '_>, shape: DraftShape) -> Vec<StepDraft> {
    reader.require("steps");
    let Some(list) = reader.list("steps", "steps") else { return Vec::new() };
    if list.is_empty() {
        let at = reader.at("steps");
        reader.findings().push(Diagnostic::error("plan.empty_field", at, "a plan has at least one step"));
    }
    if list.len() > PLAN_STEPS_MAX {
        let message = format!("the plan has {} steps, the limit is {PLAN_STEPS_MAX} steps", list.len());
        let at = reader.at("steps");
        reader.findings().push(Diagnostic::error("plan.limit", at, message));
    }
    let mut steps = Vec::with_capacity(list.len().min(PLAN_STEPS_MAX));
    for (value, at) in list.into_iter().take(PLAN_STEPS_MAX) {
        if let Some(reader) = FieldReader::new(value, at, "a step", reader.findings()) {
            steps.push(step(reader, shape));
        }
    }
    steps
}

fn step(mut reader: FieldReader<'_, '_>, shape: DraftShape) -> StepDraft {
    reader.require(shape.id_key());
    let number = (shape == DraftShape::Numbered).then(|| numbered::read_step(&mut reader)).flatten();
    let id = match shape {
        DraftShape::Numbered => number.map(numbered::id).unwrap_or_default(),
        // Its spelling is checked once all ids are known.
        _ => owned(reader.filled("id")),
    };
    let step = StepDraft {
        pointer: reader.pointer().to_owned(),
        id,
        id_key: shape.id_key(),
        tool_key: shape.tool_key(),
        number,
        name: owned(reader.name("name")),
        description: owned(reader.prose("description", TEXT_BYTES_MAX)),
        call: call(&mut reader, shape.tool_key()),
        depends_on: match shape {
            DraftShape::Numbered => numbered::depends_on(&mut reader),
            _ => reader.texts("depends_on", "step ids").unwrap_or_default(),
        },
        when: reader.expression("when").map(str::to_owned),
        else_of: reader.filled("else_of").map(str::to_owned).map(|id| (id, reader.at("else_of"))),
        for_each: for_each(&mut reader),
        fallback: reader.child("fallback").and_then(fallback),
        cancellable: reader.one_of("cancellable", CANCELLABLE),
        compensation: reader.child(shape.compensation_key()).and_then(compensation),
        probe: reader.child("probe").and_then(probe),
        approval: approval(&mut reader),
        failure_policy: failure_policy(&mut reader),
        timeout_total: reader.duration("total_timeout", MILLISECOND..=STEP_TIMEOUT_MAX),
        priority: reader
            .integer("priority", -i64::from(PRIORITY_MAX)..=i64::from(PRIORITY_MAX))
            .and_then(|priority| priority.try_into().ok()),
        output: reader.object("output").cloned().map(Value::Object),
    };
    reader.finish();
    step
}

/// Reads the fields that a step, a compensation, a probe and a fallback have in common.
fn call(reader: &mut FieldReader<'_, '_>, tool_key: &'static str) -> CallDraft {
    reader.require(tool_key);
    let tool = owned(reader.name(tool_key));
    let pointer = reader.pointer().to_owned();
    if !tool.is_empty() {
        ids::check_tool_name(&tool, || pointer::field(&pointer, tool_key), reader.findings());
    }
    CallDraft {
        pointer,
        tool,
        parameters: Arc::new(Value::Object(reader.object("parameters").cloned().unwrap_or_default())),
        safety: reader.one_of("safety", SAFETY),
        timeout: reader.duration("timeout", MILLISECOND..=TIMEOUT_MAX),
        retry: retry(reader),
    }
}

fn retry(reader: &mut FieldReader<'_, '_>) -> Option<RetryDraft> {
    if let Some(value @ Value::Number(attempts)) = reader.fields().get("retry") {
        reader.raw("retry");
        let at = reader.at("retry");
        let message = format!("\"retry\" must be an object, found {}", named(value));
        // No fix: some count the first attempt, others do not.
        let hint = format!("write {{\"max_attempts\": {attempts}}}, the first attempt included");
        reader.findings().push(Diagnostic::error("plan.wrong_type", at, message).hint(hint));
        return None;
    }
    let mut reader = reader.child("retry")?;
    let retry = RetryDraft {
        pointer: reader.pointer().to_owned(),
        max_attempts: count(&mut reader, "max_attempts", ATTEMPTS_MAX),
        backoff: reader.one_of("backoff", BACKOFF),
        initial: reader.duration("initial", Millis(0)..=BACKOFF_MAX),
        factor: reader.number("factor", 1.0..=BACKOFF_FACTOR_MAX),
        max: reader.duration("max", Millis(0)..=BACKOFF_MAX),
        jitter: reader.flag("jitter"),
        on: reader.list("on", "error categories").map(|items| {
            let words = FailureCategory::ALL.map(|category| (category.as_str(), category));
            items.into_iter().filter_map(|(item, at)| reader.word(item, at, &words)).collect()
        }),
    };
    reader.finish();
    Some(retry)
}

fn for_each(reader: &mut FieldReader<'_, '_>) -> Option<FanOutDraft> {
    match reader.fields().get("for_each") {
        Some(Value::String(_)) => {
            let items = reader.expression("for_each")?.to_owned();
            let pointer = reader.at("for_each");
            let items_pointer = pointer.clone();
            return Some(FanOutDraft {
                pointer,
                items_pointer,
                items,
                max_parallel: None,
                max_items: None,
                tolerate: None,
            });
        }
        Some(value @ Value::Array(_)) => {
            let meant = value.to_string();
            reader.raw("for_each");
            let fits = meant.len() <= EXPRESSION_BYTES_MAX;
            reader.wrong_type("for_each", "an expression", value, fits.then(|| meant.into()));
            return None;
        }
        _ => {}
    }
    let mut reader = reader.child_or("for_each", "an expression or an object")?;
    reader.require("items");
    let fan_out = FanOutDraft {
        pointer: reader.pointer().to_owned(),
        items_pointer: reader.at("items"),
        items: owned(reader.expression("items")),
        max_parallel: count(&mut reader, "max_parallel", PARALLEL_MAX),
        max_items: count(&mut reader, "max_items", FAN_OUT_MAX),
        tolerate: tolerate(&mut reader),
    };
    reader.finish();
    (!fan_out.items.is_empty()).then_some(fan_out)
}

/// A number of items, or a share of them: `"10%"`.
fn tolerate(reader: &mut FieldReader<'_, '_>) -> Option<FailureTolerance> {
    let Some(Value::String(text)) = reader.fields().get("tolerate") else {
        let items = reader.integer("tolerate", 0..=i64::from(FAN_OUT_MAX))?;
        return items.try_into().ok().map(FailureTolerance::Items);
    };
    reader.raw("tolerate");
    let share = text.trim().strip_suffix('%').filter(|digits| digits.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let share = share.and_then(|digits| digits.parse::<f64>().ok()).filter(|share| (0.0..=100.0).contains(share));
    if share.is_none() {
        let message = format!("\"tolerate\" is a number of items or a share such as \"10%\", found {text:?}");
        let at = reader.at("tolerate");
        reader.findings().push(Diagnostic::error("plan.unknown_value", at, message));
    }
    share.map(FailureTolerance::Percent)
}

fn fallback(mut reader: FieldReader<'_, '_>) -> Option<FallbackDraft> {
    let fallback = FallbackDraft {
        call: call(&mut reader, "tool"),
        compensation: reader.child("compensation").and_then(compensation),
    };
    reader.finish();
    Some(fallback).filter(|fallback| !fallback.call.tool.is_empty())
}

fn compensation(mut reader: FieldReader<'_, '_>) -> Option<CompensationDraft> {
    let compensation =
        CompensationDraft { call: call(&mut reader, "tool"), probe: reader.child("probe").and_then(probe) };
    reader.finish();
    Some(compensation).filter(|compensation| !compensation.call.tool.is_empty())
}

fn probe(mut reader: FieldReader<'_, '_>) -> Option<ProbeDraft> {
    reader.require("happened");
    let probe = ProbeDraft {
        call: call(&mut reader, "tool"),
        happened: owned(reader.expression("happened")),
        result: reader.expression("result").map(str::to_owned),
        // Zero is for a probe that sees an effect as soon as the call can have it.
        settle: reader.duration("settle", Millis(0)..=PROBE_SETTLE_MAX),
    };
    reader.finish();
    Some(probe).filter(|probe| !probe.call.tool.is_empty() && !probe.happened.is_empty())
}

fn approval(reader: &mut FieldReader<'_, '_>) -> Option<ApprovalDraft> {
    if let Some(Value::Bool(required)) = reader.fields().get("approval") {
        reader.raw("approval");
        return Some(ApprovalDraft { pointer: reader.at("approval"), required: *required, expires: None });
    }
    let mut reader = reader.child_or("approval", "true, false or an object")?;
    let approval = ApprovalDraft {
        pointer: reader.pointer().to_owned(),
        // An approval object without a valid `required` means yes: a typo must not drop the approval.
        required: reader.flag("required").unwrap_or(true),
        expires: reader.duration("expires", MILLISECOND..=APPROVAL_EXPIRES_MAX),
    };
    reader.finish();
    Some(approval)
}

fn failure_policy(reader: &mut FieldReader<'_, '_>) -> Option<PolicyDraft> {
    if let Some(Value::String(_)) = reader.fields().get("failure_policy") {
        let action = reader.one_of("failure_policy", ACTIONS);
        let pointer = reader.at("failure_policy");
        return Some(PolicyDraft { pointer, action, propagate_to: Vec::new(), reason: String::new() });
    }
    let mut reader = reader.child_or("failure_policy", "an action or an object")?;
    reader.require("action");
    let policy = PolicyDraft {
        pointer: reader.pointer().to_owned(),
        action: reader.one_of("action", ACTIONS),
        propagate_to: reader.texts("propagate_to", "step ids").unwrap_or_default(),
        reason: owned(reader.prose("reason", REASON_BYTES_MAX)),
    };
    reader.finish();
    Some(policy)
}

fn count(reader: &mut FieldReader<'_, '_>, name: &'static str, max: u32) -> Option<u32> {
    reader.integer(name, 1..=i64::from(max)).and_then(|count| count.try_into().ok())
}

fn owned(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}
