//! The JSON Schema of a plan document, for editors and for the generated reference.
//!
//! It agrees with the reader, field by field. Errors that involve more than one field (a cycle, an unknown reference,
//! parameters that do not match their tool) are found only by the check of the plan.

mod field;
#[cfg(test)]
mod tests;

use super::native::{ACTIONS, BACKOFF, CANCELLABLE, COST_MAX, SAFETY, SILENCE_ACTIONS};
use crate::limits::*;
use crate::plan::RetryPolicy;
use crate::tool::FailureCategory;
use field::{
    any_object, count, described, either, expression, filled, flag, list, name, object, reference, span, step_id,
    steps, text, tool, unbounded, whole, words,
};
use serde_json::{Value, json};

/// The schema of a plan, in JSON Schema 2020-12. Each object is under `$defs`; the root distinguishes the shapes.
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
            "retry": object("When and how often a failed attempt is retried.", &[], retry()),
            "for_each": object("One call per item of a list.", &["items"], for_each()),
            "compensation": object("The call that offsets a step's effect.", &["tool"], compensation()),
            "probe": object("A read-only call that tests for the effect.", &["tool", "happened"], probe()),
            "fallback": object(
                "Another call, for when the first has failed for good and certainly had no effect.",
                &["tool"],
                fallback(),
            ),
            "approval": object("A person's approval of this exact call, before it is made.", &[], approval()),
            "failure_policy": object("What happens when the step has failed for good.", &["action"], policy()),
            "budget": object("The most the execution may spend.", &[], budget()),
            "defaults": object("Defaults for the steps.", &[], defaults()),
            "flat_plan": object(
                "A list of steps without any ordering fields: each runs after the one before.",
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

type FormFields = Vec<(&'static str, Value)>;

fn plan() -> FormFields {
    vec![
        ("$schema", text("For editors; ignored.")),
        ("name", name("The name of the plan.")),
        ("goal", text("The goal of the plan.")),
        ("description", text("A longer description, for people.")),
        ("request", text("The user's request, verbatim.")),
        ("reasoning", text("Why the plan was made this way.")),
        ("tags", list("Tags, for searching.", name("A tag."), TAGS_MAX)),
        ("metadata", any_object("Any data of the author; ignored by Rutter.")),
        (
            "inputs",
            any_object(
                "The inputs an execution takes, read as `{{ inputs.x }}`; others are refused. A JSON Schema, or each name \
                 with its own schema: `{amount: {type: number}}`, required unless it has a `default` or says \
                 `required: false`.",
            ),
        ),
        ("max_parallel", count("Steps that run at the same time.", 1, PARALLEL_MAX)),
        ("deadline", span("For the whole execution.", DEADLINE_MAX, Some(DEADLINE_DEFAULT))),
        (
            "agent_timeout",
            span("How long an agent that drives may be silent.", AGENT_TIMEOUT_MAX, Some(AGENT_TIMEOUT_DEFAULT)),
        ),
        (
            "on_agent_silence",
            words(
                "What follows a silent agent: a person is asked, or Rutter takes over if it can.",
                SILENCE_ACTIONS,
                "ask",
            ),
        ),
        ("budget", reference("Limits of calls, cost and time.", "budget")),
        ("on_failure", words("The failure policy of steps that have none.", ACTIONS, "manual_decision")),
        ("defaults", reference("Retry and timeout of steps that have none.", "defaults")),
        ("steps", steps("step")),
    ]
}

fn step() -> FormFields {
    let mut fields = vec![
        ("id", step_id("Unique in the plan; expressions read `{{ steps.ID.result }}`.")),
        ("name", name("A short title, for people.")),
        ("description", text("What the step is for.")),
    ];
    fields.extend(call("tool"));
    fields.extend(after_call());
    fields
}

/// The fields of a step besides its call.
fn after_call() -> FormFields {
    vec![
        (
            "depends_on",
            unbounded(
                "Steps that must end first. Steps whose result is read are added automatically.",
                filled("A step id."),
            ),
        ),
        ("when", expression("Skips the step unless this is true.")),
        (
            "else_of",
            filled("The other branch: runs when this step was skipped because its `when` was false. A step id."),
        ),
        (
            "for_each",
            either(
                "Makes one call per item: the list, or an object with options.",
                expression("The list."),
                "for_each",
            ),
        ),
        ("fallback", reference("Another call for when this one fails for good.", "fallback")),
        (
            "cancellable",
            words(
                "How far it can be undone. By default: reversible with a compensation, else irreversible unless it only reads.",
                CANCELLABLE,
                "",
            ),
        ),
        ("compensation", reference("How to undo it. Reads `{{ result }}` and `{{ parameters }}`.", "compensation")),
        ("probe", reference("How to find out whether it happened, when an answer was lost.", "probe")),
        ("approval", either("Whether a person must approve it first.", json!({ "type": "boolean" }), "approval")),
        (
            "failure_policy",
            either("What happens when it fails for good.", words("The action alone.", ACTIONS, ""), "failure_policy"),
        ),
        (
            "total_timeout",
            span(
                "From the first attempt to the last, pauses included; also while it waits for a server that takes no calls.",
                STEP_TIMEOUT_MAX,
                None,
            ),
        ),
        (
            "priority",
            whole(
                "Among ready steps, the highest starts first.",
                -i64::from(PRIORITY_MAX),
                i64::from(PRIORITY_MAX),
                Some(0),
            ),
        ),
        ("output", any_object("JSON Schema the result must satisfy, in addition to the tool's own.")),
    ]
}

/// The fields that a step, a compensation, a probe and a fallback have in common.
fn call(tool_key: &'static str) -> FormFields {
    vec![
        (tool_key, tool("The tool to call, `server.tool`.")),
        (
            "parameters",
            any_object("The parameters of the call: values, expressions in `{{ }}`, and `{\"secret\": \"name\"}`."),
        ),
        (
            "safety",
            words("What repeating the call does; may only be stricter than what the tool is known to be.", SAFETY, ""),
        ),
        ("timeout", span("For one attempt.", TIMEOUT_MAX, Some(ATTEMPT_TIMEOUT_DEFAULT))),
        ("retry", reference("When it is retried.", "retry")),
    ]
}

fn retry() -> FormFields {
    let attempts = format!(
        "The first included; a compensation has {COMPENSATION_ATTEMPTS_DEFAULT} when not given. A call that must not be \
         repeated has one."
    );
    let categories = FailureCategory::ALL.map(FailureCategory::as_str);
    let standard = RetryPolicy::standard();
    let on = json!({
        "type": "array", "items": { "type": "string", "enum": categories }, "default": standard.on,
    });
    let factor = json!({
        "type": "number", "minimum": 1, "maximum": BACKOFF_FACTOR_MAX, "default": standard.factor,
    });
    vec![
        ("max_attempts", count(&attempts, ATTEMPTS_DEFAULT, ATTEMPTS_MAX)),
        ("backoff", words("How the pauses grow.", BACKOFF, "exponential")),
        ("initial", span("The first pause.", BACKOFF_MAX, Some(BACKOFF_INITIAL_DEFAULT))),
        ("factor", described(factor, "The factor from one pause to the next, when exponential.")),
        ("max", span("The longest pause.", BACKOFF_MAX, Some(BACKOFF_CAP_DEFAULT))),
        ("jitter", flag("Varies the pauses randomly, so that not all retries come at once.", standard.jitter)),
        ("on", described(on, "Failures after which it is retried.")),
    ]
}

fn for_each() -> FormFields {
    vec![
        ("items", expression("The list. Parameters read `{{ item }}` and `{{ index }}`.")),
        (
            "max_parallel",
            whole(
                "Items that run at the same time; by default the plan's `max_parallel`.",
                1,
                i64::from(PARALLEL_MAX),
                None,
            ),
        ),
        ("max_items", count("A longer list fails the step before any call.", FAN_OUT_DEFAULT, FAN_OUT_MAX)),
        (
            "tolerate",
            json!({
                "description": "How many items may fail without failing the step: a number, or a share such as `10%`.",
                "anyOf": [
                    { "type": "integer", "minimum": 0, "maximum": FAN_OUT_MAX },
                    { "type": "string", "pattern": r"^\s*([0-9]{1,2}(\.[0-9]+)?|100(\.0+)?)%\s*$" },
                ],
                "default": 0,
            }),
        ),
    ]
}

fn compensation() -> FormFields {
    let mut fields = call("tool");
    fields.push(("probe", reference("How to find out whether the undoing happened.", "probe")));
    fields
}

const SETTLE: &str = "How old the doubt must be before \"it did not happen\" counts; earlier the probe is asked again. By \
                      default the timeout of the attempt in doubt.";

fn probe() -> FormFields {
    let mut fields = call("tool");
    fields.push(("happened", expression("True: it happened. False: it did not. Reads the probe's own `result`.")));
    fields.push(("result", expression("The step's result in that case; by default the probe's whole result.")));
    fields.push(("settle", span(SETTLE, PROBE_SETTLE_MAX, None)));
    fields
}

fn fallback() -> FormFields {
    let mut fields = call("tool");
    fields.push(("compensation", reference("How to undo the fallback.", "compensation")));
    fields
}

fn approval() -> FormFields {
    vec![
        ("required", flag("Whether it is needed.", true)),
        (
            "expires",
            span(
                "How long the approval can be given; it is never granted by default.",
                APPROVAL_EXPIRES_MAX,
                Some(APPROVAL_EXPIRES_DEFAULT),
            ),
        ),
    ]
}

fn policy() -> FormFields {
    let mut reason = text("Why, for people.");
    reason["maxLength"] = json!(REASON_BYTES_MAX);
    vec![
        ("action", words("What to do.", ACTIONS, "")),
        ("propagate_to", unbounded("Steps to cancel besides the dependents.", filled("A step id."))),
        ("reason", reason),
    ]
}

fn budget() -> FormFields {
    let cost = json!({ "type": "number", "minimum": 0, "maximum": COST_MAX });
    vec![
        ("calls", whole("Attempts in total.", 1, INTEGER_MAX, None)),
        ("cost", described(cost, "The cost of the calls, as reported by the tools.")),
        ("time", span("From start to end.", DEADLINE_MAX, None)),
    ]
}

fn defaults() -> FormFields {
    vec![
        ("retry", reference("When a call is retried.", "retry")),
        ("timeout", span("For one attempt.", TIMEOUT_MAX, Some(ATTEMPT_TIMEOUT_DEFAULT))),
    ]
}

fn flat_plan() -> FormFields {
    let stored = ["$schema", "name", "description"];
    let mut fields: FormFields = plan().into_iter().filter(|(name, _)| stored.contains(name)).collect();
    fields.push(("steps", steps("flat_step")));
    fields
}

fn flat_step() -> FormFields {
    let stored = ["id", "name", "tool", "parameters", "cancellable", "failure_policy"];
    let mut fields: FormFields = step().into_iter().filter(|(name, _)| stored.contains(name)).collect();
    fields.push(("cancellation", reference("How to undo it; called `compensation` elsewhere.", "compensation")));
    fields
}

fn numbered_plan() -> FormFields {
    let time = |what: &str| described(json!({ "type": ["number", "null"] }), what);
    let message = |what: &str| {
        let mut json = text(what);
        json["pattern"] = json!(r"\S");
        json
    };
    let mut fields: FormFields = plan();
    fields.retain(|(name, _)| !["name", "request", "reasoning", "steps"].contains(name));
    fields.extend([
        ("name", name("The name of the plan; by default the beginning of the request.")),
        ("request", message("The user's request, verbatim.")),
        ("reasoning", message("Why the plan was made this way.")),
        ("plan_id", name("Copied into the metadata; Rutter assigns its own plan ids.")),
        ("created_at", time("Seconds since 1970; not in the future.")),
        ("updated_at", time("Seconds since 1970; not in the future.")),
        ("status", json!({ "description": "Ignored: an execution starts from the beginning." })),
        ("selected_tools", {
            let mut tools = unbounded("The tools the steps may use.", tool("A tool."));
            tools["minItems"] = json!(1);
            tools
        }),
        ("steps", steps("numbered_step")),
    ]);
    fields
}

fn numbered_step() -> FormFields {
    let ignored = || json!({ "description": "Ignored: an execution starts from the beginning." });
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
    fields.push(("depends_on", unbounded("Numbers of the steps that must end first.", number)));
    fields
}
