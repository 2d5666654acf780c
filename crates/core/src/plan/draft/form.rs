//! The document of a plan as a JSON Schema: editors complete by it, and the reference is made of it.
//!
//! It says what the reader says, field by field. What needs more than one field to judge (a cycle, a reference that
//! leads nowhere, parameters that do not fit their tool) only the check of the plan can tell.

mod field;
#[cfg(test)]
mod tests;

use super::native::{ACTIONS, BACKOFF, CANCELLABLE, COST_MAX, SAFETY};
use crate::limits::*;
use crate::plan::Retry;
use crate::tool::Category;
use field::{
    any_object, count, described, either, expression, filled, flag, list, name, object, reference, span,
    step_id, steps, text, tool, unbounded, whole, words,
};
use serde_json::{Value, json};

/// The schema of a plan, in JSON Schema 2020-12. Each object is under `$defs`; the root tells the shapes apart.
pub fn schema() -> Value {
    let has_numbers = json!({ "anyOf": [
        { "required": ["selected_tools"] },
        { "required": ["steps"], "properties": { "steps": {
            "type": "array", "contains": { "type": "object", "required": ["step_number"] } } } },
    ] });
    let has_cancellation = json!({ "required": ["steps"], "properties": { "steps": {
        "type": "array", "contains": { "type": "object", "required": ["cancellation"] } } } });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Rutter plan",
        "type": "object",
        "if": {
            "required": ["plan"],
            "properties": { "plan": { "type": "object" } },
            "not": { "required": ["steps"] },
        },
        "then": { "properties": { "plan": { "$ref": "#/$defs/any_shape" } }, "additionalProperties": false },
        "else": { "$ref": "#/$defs/any_shape" },
        "$defs": {
            "any_shape": {
                "if": has_numbers,
                "then": { "$ref": "#/$defs/numbered_plan" },
                "else": {
                    "if": has_cancellation,
                    "then": { "$ref": "#/$defs/flat_plan" },
                    "else": { "$ref": "#/$defs/plan" },
                },
            },
            "plan": object("The whole document.", &["name", "steps"], plan()),
            "step": object("A node of the plan.", &["id", "tool"], step()),
            "retry": object("When and how often a failed attempt is tried again.", &[], retry()),
            "for_each": object("One call per item of a list.", &["items"], for_each()),
            "compensation": object("The call that offsets a step's effect.", &["tool"], compensation()),
            "probe": object("The read that finds out whether an effect happened.", &["tool", "happened"], probe()),
            "fallback": object(
                "Another call, tried when the first has failed for good and certainly had no effect.",
                &["tool"],
                fallback(),
            ),
            "approval": object("A person's yes to this exact call, before it is made.", &[], approval()),
            "failure_policy": object("What happens when the step has failed for good.", &["action"], policy()),
            "budget": object("What the execution may spend at the most.", &[], budget()),
            "defaults": object("What holds for steps that say nothing else.", &[], defaults()),
            "flat_plan": object(
                "A list of steps in which nothing speaks of order: each comes after the one before.",
                &["name", "steps"],
                flat_plan(),
            ),
            "flat_step": object("A step of such a list.", &["id", "tool"], flat_step()),
            "numbered_plan": object(
                "A plan whose steps have numbers, known by `selected_tools` or a `step_number`.",
                &["request", "steps"],
                numbered_plan(),
            ),
            "numbered_step": object(
                "A step of it; expressions call it `step_1`.",
                &["step_number", "tool_name"],
                numbered_step(),
            ),
        },
    })
}

type Fields = Vec<(&'static str, Value)>;

fn plan() -> Fields {
    vec![
        ("$schema", text("For editors; says nothing about the plan.")),
        ("name", name("What the plan is called.")),
        ("goal", text("What is to be reached.")),
        ("description", text("More about it, for people.")),
        ("request", text("What the user asked for, in their words.")),
        ("reasoning", text("Why the plan is as it is.")),
        ("tags", list("To find it by.", name("A tag."), TAGS_MAX)),
        ("metadata", any_object("Whatever the author wants to keep with it; nothing is decided by it.")),
        ("inputs", any_object("JSON Schema of the inputs an execution is given; read as `{{ inputs.x }}`.")),
        ("max_parallel", count("Steps under way at the same time.", 1, PARALLEL_MAX)),
        ("deadline", span("For the whole execution.", DEADLINE_MAX, Some(DEADLINE_DEFAULT))),
        ("budget", reference("Limits of calls, cost and time.", "budget")),
        ("on_failure", words("The failure policy of steps that have none.", ACTIONS, "manual_decision")),
        ("defaults", reference("Retry and timeout of steps that have none.", "defaults")),
        ("steps", steps("step")),
    ]
}

fn step() -> Fields {
    let mut fields = vec![
        ("id", step_id("Unique in the plan; expressions read `{{ steps.ID.result }}`.")),
        ("name", name("A short title, for people.")),
        ("description", text("What the step is for.")),
    ];
    fields.extend(call("tool"));
    fields.extend(after_call());
    fields
}

/// What a step has beside its call.
fn after_call() -> Fields {
    vec![
        (
            "depends_on",
            unbounded(
                "Steps that come before. Steps whose result is read come before by themselves.",
                filled("A step id."),
            ),
        ),
        ("when", expression("Skips the step unless this is true.")),
        (
            "for_each",
            either(
                "Makes one call per item: the list, or an object with more.",
                expression("The list."),
                "for_each",
            ),
        ),
        ("fallback", reference("Another call for when this one fails for good.", "fallback")),
        (
            "cancellable",
            words(
                "What undoing can achieve. By default: reversible with a compensation, else irreversible unless it only reads.",
                CANCELLABLE,
                "",
            ),
        ),
        (
            "compensation",
            reference("How to undo it. Reads `{{ result }}` and `{{ parameters }}`.", "compensation"),
        ),
        ("probe", reference("How to find out whether it happened, when an answer was lost.", "probe")),
        (
            "approval",
            either("Whether a person must say yes first.", json!({ "type": "boolean" }), "approval"),
        ),
        (
            "failure_policy",
            either(
                "What happens when it fails for good.",
                words("The action alone.", ACTIONS, ""),
                "failure_policy",
            ),
        ),
        (
            "total_timeout",
            span("From the first attempt to the last, pauses included.", STEP_TIMEOUT_MAX, None),
        ),
        (
            "priority",
            whole(
                "Among steps that could begin, the highest goes first.",
                -i64::from(PRIORITY_MAX),
                i64::from(PRIORITY_MAX),
                Some(0),
            ),
        ),
        ("output", any_object("JSON Schema the result must satisfy, beside the tool's own.")),
    ]
}

/// What a step, a compensation, a probe and a fallback have in common.
fn call(tool_key: &'static str) -> Fields {
    vec![
        (tool_key, tool("The tool to call, `server.tool`.")),
        (
            "parameters",
            any_object(
                "What it is called with: values, expressions in `{{ }}`, and `{\"secret\": \"name\"}`.",
            ),
        ),
        (
            "safety",
            words(
                "What repeating the call does; may only be stricter than what the tool is known to be.",
                SAFETY,
                "",
            ),
        ),
        ("timeout", span("For one attempt.", TIMEOUT_MAX, Some(ATTEMPT_TIMEOUT_DEFAULT))),
        ("retry", reference("When it is tried again.", "retry")),
    ]
}

fn retry() -> Fields {
    let attempts = format!(
        "The first included; a compensation has {COMPENSATION_ATTEMPTS_DEFAULT} when not given. A call that must not be \
         repeated has one."
    );
    let categories = Category::ALL.map(Category::as_str);
    let standard = Retry::standard();
    let on = json!({
        "type": "array", "items": { "type": "string", "enum": categories }, "default": standard.on,
    });
    let factor = json!({
        "type": "number", "minimum": 1, "maximum": BACKOFF_FACTOR_MAX, "default": standard.factor,
    });
    vec![
        ("max_attempts", count(&attempts, ATTEMPTS_DEFAULT, ATTEMPTS_MAX)),
        ("backoff", words("How pauses grow.", BACKOFF, "exponential")),
        ("initial", span("The first pause.", BACKOFF_MAX, Some(BACKOFF_INITIAL_DEFAULT))),
        ("factor", described(factor, "How much longer each pause is than the one before, when exponential.")),
        ("max", span("The longest pause.", BACKOFF_MAX, Some(BACKOFF_CAP_DEFAULT))),
        ("jitter", flag("Pauses vary by chance, so that not all come back at once.", standard.jitter)),
        ("on", described(on, "Failures after which it is tried again.")),
    ]
}

fn for_each() -> Fields {
    vec![
        ("items", expression("The list. Parameters read `{{ item }}` and `{{ index }}`.")),
        (
            "max_parallel",
            whole(
                "Items under way at the same time; as many as the plan says when not given.",
                1,
                i64::from(PARALLEL_MAX),
                None,
            ),
        ),
        ("max_items", count("A longer list fails the step before any call.", FAN_OUT_DEFAULT, FAN_OUT_MAX)),
    ]
}

fn compensation() -> Fields {
    let mut fields = call("tool");
    fields.push(("probe", reference("How to find out whether the undoing happened.", "probe")));
    fields
}

fn probe() -> Fields {
    let mut fields = call("tool");
    fields.push((
        "happened",
        expression("True: it happened. False: it did not. Reads the probe's own `result`."),
    ));
    fields.push((
        "result",
        expression("What the step's result is then; the probe's whole result when not given."),
    ));
    fields
}

fn fallback() -> Fields {
    let mut fields = call("tool");
    fields.push(("compensation", reference("How to undo the fallback.", "compensation")));
    fields
}

fn approval() -> Fields {
    vec![
        ("required", flag("Whether it is needed.", true)),
        (
            "expires",
            span(
                "How long the question stands; it is never answered by itself.",
                APPROVAL_EXPIRES_MAX,
                Some(APPROVAL_EXPIRES_DEFAULT),
            ),
        ),
    ]
}

fn policy() -> Fields {
    let mut reason = text("Why, for people.");
    reason["maxLength"] = json!(REASON_BYTES_MAX);
    vec![
        ("action", words("What to do.", ACTIONS, "")),
        ("propagate_to", unbounded("Steps to cancel beside the dependents.", filled("A step id."))),
        ("reason", reason),
    ]
}

fn budget() -> Fields {
    let cost = json!({ "type": "number", "minimum": 0, "maximum": COST_MAX });
    vec![
        ("calls", whole("Attempts, all together.", 1, INTEGER_MAX, None)),
        ("cost", described(cost, "What the calls cost, as far as tools say.")),
        ("time", span("From start to end.", DEADLINE_MAX, None)),
    ]
}

fn defaults() -> Fields {
    vec![
        ("retry", reference("When a call is tried again.", "retry")),
        ("timeout", span("For one attempt.", TIMEOUT_MAX, Some(ATTEMPT_TIMEOUT_DEFAULT))),
    ]
}

fn flat_plan() -> Fields {
    let kept = ["$schema", "name", "description"];
    let mut fields: Fields = plan().into_iter().filter(|(name, _)| kept.contains(name)).collect();
    fields.push(("steps", steps("flat_step")));
    fields
}

fn flat_step() -> Fields {
    let kept = ["id", "name", "tool", "parameters", "cancellable", "failure_policy"];
    let mut fields: Fields = step().into_iter().filter(|(name, _)| kept.contains(name)).collect();
    fields.push((
        "cancellation",
        reference("How to undo it; called `compensation` elsewhere.", "compensation"),
    ));
    fields
}

fn numbered_plan() -> Fields {
    let time = |what: &str| described(json!({ "type": ["number", "null"] }), what);
    let said = |what: &str| {
        let mut said = text(what);
        said["pattern"] = json!(r"\S");
        said
    };
    let mut fields: Fields = plan();
    fields.retain(|(name, _)| !["name", "request", "reasoning", "steps"].contains(name));
    fields.extend([
        ("name", name("What the plan is called; the beginning of the request when not given.")),
        ("request", said("What the user asked for, in their words.")),
        ("reasoning", said("Why the plan is as it is.")),
        ("plan_id", name("Kept in the metadata; Rutter gives plans ids of its own.")),
        ("created_at", time("Seconds since 1970; not in the future.")),
        ("updated_at", time("Seconds since 1970; not in the future.")),
        ("status", json!({ "description": "Not read: an execution begins at the beginning." })),
        ("selected_tools", {
            let mut tools = unbounded("The tools the steps may use.", tool("A tool."));
            tools["minItems"] = json!(1);
            tools
        }),
        ("steps", steps("numbered_step")),
    ]);
    fields
}

fn numbered_step() -> Fields {
    let ignored = || json!({ "description": "Not read: an execution begins at the beginning." });
    let mut fields = vec![
        ("step_number", whole("From 1, without gaps.", 1, INTEGER_MAX, None)),
        ("name", name("A short title, for people.")),
        ("description", text("What the step is for.")),
        ("status", ignored()),
        ("result", ignored()),
        ("error", ignored()),
    ];
    fields.extend(call("tool_name"));
    fields.extend(after_call().into_iter().filter(|(name, _)| *name != "depends_on"));
    let number = json!({ "type": "integer", "minimum": 1 });
    fields.push(("depends_on", unbounded("Numbers of the steps that come before.", number)));
    fields
}
