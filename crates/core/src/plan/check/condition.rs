//! Checks the types of conditions and lists: a condition is true or false, and `for_each` is a list.

use super::expression_site::{ExpressionRole, ExpressionSite, places};
use super::scope::lookup;
use super::sketch::PlanSketch;
use crate::diagnostic::Diagnostic;
use crate::plan::schema::{JsonTypeSet, SchemaLookup};

pub(super) fn check(sketch: &PlanSketch<'_>, found: &mut Vec<Diagnostic>) {
    for (draft, step) in sketch.draft.steps.iter().zip(&sketch.steps) {
        for place in places(draft, step) {
            let expected = match place.role {
                ExpressionRole::Items => JsonTypeSet::ARRAY,
                _ if place.is_condition() => JsonTypeSet::BOOLEAN,
                _ => continue,
            };
            let known = |path: &[String]| match lookup(sketch, step, place.role, &place.site, path) {
                SchemaLookup::Known(schema) => Some(schema),
                SchemaLookup::Unknown | SchemaLookup::Undeclared { .. } | SchemaLookup::Missing { .. } => None,
            };
            let Some(types) = place.expression.types_within(&known) else { continue };
            // A schema without any type contradicts itself, which is not the expression's fault.
            if !types.is_empty() && types.and(expected).is_empty() {
                found.push(unfit(&place, expected, types));
            }
        }
    }
}

fn unfit(place: &ExpressionSite<'_>, expected: JsonTypeSet, types: JsonTypeSet) -> Diagnostic {
    let source = match place.expression.path() {
        Some(_) => &*place.expression.source,
        None => "…",
    };
    if expected == JsonTypeSet::ARRAY {
        let message = format!("`for_each` needs a list, and this is {types}");
        return Diagnostic::error("plan.not_a_list", place.pointer(), message)
            .hint(format!("put one value in a list, as in `[{source}]`, or split a text: `{source} | split(',')`"));
    }
    let message = format!("a condition must be true or false, and this is {types}");
    let hint = if JsonTypeSet::NUMBER.contains(types) {
        format!("compare it, as in `{source} > 0`")
    } else if types == JsonTypeSet::STRING {
        format!("compare it, as in `{source} == 'paid'`")
    } else if types == JsonTypeSet::ARRAY {
        format!("count the items, as in `{source} | length > 0`")
    } else {
        format!("compare it, or ask whether it is there: `{source} is defined`")
    };
    Diagnostic::error("plan.not_boolean", place.pointer(), message).hint(hint)
}
