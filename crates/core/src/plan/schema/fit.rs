//! Whether a template can satisfy a schema: known values are validated fully, holes by their type.
//!
//! The template is validated as written, and errors that some value in a hole could remove are dropped.
//! The holes themselves are then compared by type.

use super::{CompiledSchema, SchemaViolation, VIOLATIONS_MAX, lookup};
use crate::plan::expression::Expression;
use crate::plan::schema::{JsonTypeSet, SchemaLookup};
use crate::plan::template::{ParameterTemplate, TemplateHole};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

pub(super) fn validate(
    schema: &CompiledSchema,
    template: &ParameterTemplate,
    known: &dyn Fn(&[String]) -> Option<Value>,
) -> Vec<SchemaViolation> {
    let holes = HolePointers::of(template);
    let mut violations: Vec<SchemaViolation> = Vec::new();
    if schema.can_explain(template.source()) {
        let errors = schema.validator.iter_errors(template.source()).take(VIOLATIONS_MAX);
        let sure = errors.filter(|error| holes.cannot_remove(error));
        violations.extend(sure.flat_map(|error| schema.violations(&error)));
    }
    for (pointer, hole) in template.holes() {
        let given = match hole {
            TemplateHole::Text(_) => HoleContent { types: JsonTypeSet::STRING, what: "text".to_owned() },
            TemplateHole::Whole(expression) => match given(expression, known) {
                Some(given) => given,
                None => continue,
            },
        };
        violations.extend(mismatch(schema, pointer, given));
    }
    for (pointer, _) in template.secrets() {
        let given = HoleContent { types: JsonTypeSet::STRING, what: "a secret".to_owned() };
        violations.extend(mismatch(schema, pointer, given));
    }
    violations.truncate(VIOLATIONS_MAX);
    violations
}

/// The future content of a hole.
struct HoleContent {
    types: JsonTypeSet,
    what: String,
}

fn given(expression: &Expression, known: &dyn Fn(&[String]) -> Option<Value>) -> Option<HoleContent> {
    let Some(path) = expression.path() else {
        let types = expression.types()?;
        return Some(HoleContent { types, what: format!("`{}`", expression.source) });
    };
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let types = match names.as_slice() {
        ["key"] | ["steps", _, "status"] => JsonTypeSet::STRING,
        ["index"] => JsonTypeSet::INTEGER,
        _ => lookup::types(&known(path)?),
    };
    Some(HoleContent { types, what: path.join(".") })
}

fn mismatch(schema: &CompiledSchema, pointer: &str, given: HoleContent) -> Option<SchemaViolation> {
    let path: Vec<String> =
        pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect();
    let SchemaLookup::Known(expected) = lookup::schema_at(&schema.value, &path) else { return None };
    let expected = lookup::types(&expected);
    let is_clear = !expected.is_empty() && !given.types.is_empty();
    (is_clear && expected.and(given.types).is_empty()).then(|| SchemaViolation {
        pointer: pointer.to_owned(),
        message: format!("expected {expected}, but {} is {}", given.what, given.types),
    })
}

/// The pointers of the holes.
struct HolePointers<'t> {
    pointers: Vec<&'t str>,
}

impl<'t> HolePointers<'t> {
    fn of(template: &'t ParameterTemplate) -> HolePointers<'t> {
        let holes = template.holes().iter().map(|(pointer, _)| pointer.as_str());
        HolePointers { pointers: holes.chain(template.secrets().iter().map(|(pointer, _)| pointer.as_str())).collect() }
    }

    /// Whether there is a hole here or above, so that the value here is not final.
    fn covers(&self, pointer: &str) -> bool {
        self.pointers.iter().any(|hole| is_within(pointer, hole))
    }

    fn has_below(&self, pointer: &str) -> bool {
        self.pointers.iter().any(|hole| is_within(hole, pointer))
    }

    /// Whether the error remains for any content of the holes.
    fn cannot_remove(&self, error: &ValidationError<'_>) -> bool {
        let pointer = error.instance_path().as_str();
        if self.covers(pointer) || is_conditional(error) {
            return false;
        }
        match error.kind() {
            // These depend on the type, the number and the names of values, which holes do not change.
            Kind::Type { .. }
            | Kind::Required { .. }
            | Kind::AdditionalProperties { .. }
            | Kind::AdditionalItems { .. }
            | Kind::PropertyNames { .. }
            | Kind::MinItems { .. }
            | Kind::MaxItems { .. }
            | Kind::MinProperties { .. }
            | Kind::MaxProperties { .. }
            | Kind::FalseSchema => true,
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                context.iter().all(|branch| branch.iter().any(|error| self.cannot_remove(error)))
            }
            _ => !self.has_below(pointer),
        }
    }
}

/// Below `then` or `else` an error depends on a condition, which the content of a hole may change.
fn is_conditional(error: &ValidationError<'_>) -> bool {
    error.evaluation_path().as_str().split('/').any(|segment| segment == "then" || segment == "else")
}

fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
