//! The fields of the numbered shape only: step numbers, and execution state written into the plan.

use super::reader::FieldReader;
use super::{PlanDraft, StepDraft, ids};
use crate::diagnostic::Diagnostic;
use crate::limits::{INTEGER_MAX, NAME_CHARS_MAX};
use crate::time::{Millis, Timestamp};
use crate::wording::{named, quoted};
use serde_json::Value;
use std::collections::HashSet;

/// The tolerated difference between the clocks of two machines.
const CLOCK_GRACE: Millis = Millis::seconds(60);
const NAME_FROM_REQUEST_CHARS: usize = 80;
/// How many missing numbers are listed.
const NUMBERS_NAMED_MAX: usize = 5;

pub(super) fn id(number: u64) -> String {
    format!("step_{number}")
}

/// Reads the fields of the plan that the other shapes do not have.
pub(super) fn read_plan(reader: &mut FieldReader<'_, '_>, draft: &mut PlanDraft, now: Option<Timestamp>) {
    if draft.name.is_empty() {
        draft.name = draft.request.trim().chars().take(NAME_FROM_REQUEST_CHARS).collect();
    }
    if draft.goal.is_empty() {
        draft.goal = draft.request.clone();
    }
    for name in ["request", "reasoning"] {
        if reader.fields().get(name).and_then(Value::as_str).is_some_and(|text| text.trim().is_empty()) {
            let at = reader.at(name);
            let message = format!("{} is empty", quoted(name));
            reader.findings().push(Diagnostic::error("plan.empty_field", at, message));
        }
    }
    if let Some(plan_id) = reader.name("plan_id") {
        // Rutter assigns its own plan ids; the author's is kept in the metadata.
        draft.metadata.entry("plan_id").or_insert_with(|| plan_id.into());
    }
    for name in ["created_at", "updated_at"] {
        read_time(reader, name, now);
    }
    expect_initial(reader, "status");
    check_numbers(reader, &draft.steps);
    check_selected(reader, &draft.steps);
}

/// Reads the fields of a step that the other shapes do not have; returns its number.
pub(super) fn read_step(reader: &mut FieldReader<'_, '_>) -> Option<u64> {
    for name in ["status", "result", "error"] {
        expect_initial(reader, name);
    }
    reader.integer("step_number", 1..=INTEGER_MAX).map(i64::unsigned_abs)
}

/// Reads the numbers of the steps it depends on, as ids.
pub(super) fn depends_on(reader: &mut FieldReader<'_, '_>) -> Vec<(String, String)> {
    let mut needs = Vec::new();
    for (item, at) in reader.list("depends_on", "step numbers").unwrap_or_default() {
        match item.as_u64().filter(|number| *number > 0) {
            Some(number) => needs.push((id(number), at)),
            None => {
                let message = format!("\"depends_on\" must list step numbers from 1, found {}", named(item));
                reader.findings().push(Diagnostic::error("plan.wrong_type", at, message));
            }
        }
    }
    needs
}

fn read_time(reader: &mut FieldReader<'_, '_>, name: &'static str, now: Option<Timestamp>) {
    let Some(value) = reader.raw(name).filter(|value| !value.is_null()) else { return };
    let Some(seconds) = value.as_f64() else {
        return reader.wrong_type(name, "a number of seconds since 1970", value, None);
    };
    let Some(now) = now else { return };
    if seconds * 1_000.0 > now.plus(CLOCK_GRACE).0 as f64 {
        let at = reader.at(name);
        let message = format!("{} is in the future", quoted(name));
        let hint = "expected seconds since 1970, not later than now";
        reader.findings().push(Diagnostic::error("plan.future_timestamp", at, message).hint(hint));
    }
}

/// Warns of execution state in the plan: an execution always starts from the beginning.
fn expect_initial(reader: &mut FieldReader<'_, '_>, name: &'static str) {
    let Some(value) = reader.raw(name) else { return };
    let initial = if name == "status" { value == "pending" } else { value.is_null() };
    if !initial {
        let at = reader.at(name);
        let message = format!("{} is ignored: an execution starts from the beginning", quoted(name));
        reader.findings().push(Diagnostic::warning("plan.ignored_field", at, message));
    }
}

/// Reports gaps. A duplicate number is reported elsewhere, as a duplicate id.
fn check_numbers(reader: &mut FieldReader<'_, '_>, steps: &[StepDraft]) {
    let numbers: HashSet<u64> = steps.iter().filter_map(|step| step.number).collect();
    let complete = steps.iter().all(|step| step.number.is_some());
    if !complete || numbers.len() < steps.len() {
        return;
    }
    let last = steps.len() as u64;
    let gaps: Vec<u64> = (1..=last).filter(|number| !numbers.contains(number)).collect();
    if gaps.is_empty() {
        return;
    }
    let mut named: Vec<String> = gaps.iter().take(NUMBERS_NAMED_MAX).map(u64::to_string).collect();
    if gaps.len() > NUMBERS_NAMED_MAX {
        named.push("…".to_owned());
    }
    let message = format!("steps must be numbered from 1 to {last} without gaps, missing: {}", named.join(", "));
    let at = reader.at("steps");
    reader.findings().push(Diagnostic::error("plan.step_numbers", at, message));
}

fn check_selected(reader: &mut FieldReader<'_, '_>, steps: &[StepDraft]) {
    let Some(selected) = reader.texts("selected_tools", "tool names") else { return };
    if selected.is_empty() {
        let at = reader.at("selected_tools");
        let message = "\"selected_tools\" is empty";
        reader.findings().push(Diagnostic::error("plan.empty_field", at, message));
        return;
    }
    for (tool, at) in &selected {
        let chars = tool.chars().count();
        if chars > NAME_CHARS_MAX {
            let message = format!("a tool name is {chars} characters long, the limit is {NAME_CHARS_MAX} characters");
            reader.findings().push(Diagnostic::error("plan.limit", at, message));
        }
        ids::check_tool_name(tool, || at.clone(), reader.findings());
    }
    let selected: HashSet<&str> = selected.iter().map(|(tool, _)| tool.as_str()).collect();
    for step in steps {
        let tool = step.call.tool.as_str();
        if !tool.is_empty() && !selected.contains(tool) {
            let at = format!("{}/{}", step.pointer, step.tool_key);
            let message = format!("the tool {} is not among the selected tools", quoted(tool));
            reader.findings().push(Diagnostic::warning("plan.unselected_tool", at, message));
        }
    }
}
