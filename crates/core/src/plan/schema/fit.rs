//! Whether a template can fit a schema: what is known is checked fully, a hole by the type it will have.
//!
//! The template is validated as it is written, and of the errors only those are kept that no value in the
//! holes could remove. The holes themselves are then compared by type.

use super::{Schema, VIOLATIONS_MAX, Violation, lookup};
use crate::plan::expression::Expression;
use crate::plan::schema::{Lookup, Types};
use crate::plan::template::{Hole, Template};
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

pub(super) fn validate(
    schema: &Schema,
    template: &Template,
    known: &dyn Fn(&[String]) -> Option<Value>,
) -> Vec<Violation> {
    let holes = Holes::of(template);
    let mut violations: Vec<Violation> = Vec::new();
    if schema.can_explain(template.source()) {
        let errors = schema.validator.iter_errors(template.source()).take(VIOLATIONS_MAX);
        let sure = errors.filter(|error| holes.cannot_remove(error));
        violations.extend(sure.flat_map(|error| schema.violations(&error)));
    }
    for (pointer, hole) in template.holes() {
        let given = match hole {
            Hole::Text(_) => Given { types: Types::STRING, what: "text".to_owned() },
            Hole::Whole(expression) => match given(expression, known) {
                Some(given) => given,
                None => continue,
            },
        };
        violations.extend(mismatch(schema, pointer, given));
    }
    for (pointer, _) in template.secrets() {
        let given = Given { types: Types::STRING, what: "a secret".to_owned() };
        violations.extend(mismatch(schema, pointer, given));
    }
    violations.truncate(VIOLATIONS_MAX);
    violations
}

/// What a hole will hold.
struct Given {
    types: Types,
    what: String,
}

fn given(expression: &Expression, known: &dyn Fn(&[String]) -> Option<Value>) -> Option<Given> {
    let Some(path) = expression.path() else {
        let types = expression.types()?;
        return Some(Given { types, what: format!("`{}`", expression.source) });
    };
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let types = match names.as_slice() {
        ["key"] | ["steps", _, "status"] => Types::STRING,
        ["index"] => Types::INTEGER,
        _ => lookup::types(&known(path)?),
    };
    Some(Given { types, what: path.join(".") })
}

fn mismatch(schema: &Schema, pointer: &str, given: Given) -> Option<Violation> {
    let path: Vec<String> =
        pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~")).collect();
    let Lookup::Known(expected) = lookup::schema_at(&schema.value, &path) else { return None };
    let expected = lookup::types(&expected);
    let is_clear = !expected.is_empty() && !given.types.is_empty();
    (is_clear && expected.and(given.types).is_empty()).then(|| Violation {
        pointer: pointer.to_owned(),
        message: format!("expected {expected}, but {} is {}", given.what, given.types),
    })
}

/// Where values are not known yet.
struct Holes<'t> {
    pointers: Vec<&'t str>,
}

impl<'t> Holes<'t> {
    fn of(template: &'t Template) -> Holes<'t> {
        let holes = template.holes().iter().map(|(pointer, _)| pointer.as_str());
        Holes {
            pointers: holes.chain(template.secrets().iter().map(|(pointer, _)| pointer.as_str())).collect(),
        }
    }

    /// A hole here, or above: what stands here is not what will stand here.
    fn covers(&self, pointer: &str) -> bool {
        self.pointers.iter().any(|hole| is_within(pointer, hole))
    }

    fn has_below(&self, pointer: &str) -> bool {
        self.pointers.iter().any(|hole| is_within(hole, pointer))
    }

    /// Whether the error stays, whatever the holes will hold.
    fn cannot_remove(&self, error: &ValidationError<'_>) -> bool {
        let pointer = error.instance_path().as_str();
        if self.covers(pointer) || is_conditional(error) {
            return false;
        }
        match error.kind() {
            // These ask for the type, the number and the names of what is there; holes change none of it.
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

/// Below `then` or `else` an error depends on a condition, which a hole may decide otherwise.
fn is_conditional(error: &ValidationError<'_>) -> bool {
    error.evaluation_path().as_str().split('/').any(|segment| segment == "then" || segment == "else")
}

fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
