//! JSON Schema: validates values and templates, and looks up the schema of a path.

mod bound;
mod fit;
mod lookup;
mod pattern;
#[cfg(test)]
mod tests;

use super::template::ParameterTemplate;
use crate::text::cut;
use crate::wording::guess;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

pub use lookup::{JsonTypeSet, SchemaLookup, schema_at, types};

/// A compiled schema. Cloning it is cheap.
#[derive(Clone)]
pub struct CompiledSchema {
    value: Arc<Value>,
    validator: Arc<Validator>,
    /// The number of its recursive references.
    recursions: usize,
}

/// Why a value is not a usable schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    /// JSON Pointer within the schema.
    pub pointer: String,
    pub message: String,
}

/// A violation of a schema: where, and what was expected. Names types, never the data itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaViolation {
    /// JSON Pointer within the value.
    pub pointer: String,
    pub message: String,
}

/// The most violations that are reported.
const VIOLATIONS_MAX: usize = 100;

impl CompiledSchema {
    /// Compiles a schema that is within the limits and has no external references.
    pub fn compile(schema: &Value) -> Result<CompiledSchema, SchemaError> {
        let recursions = bound::check(schema)?;
        let validator = build(schema).or_else(|error| match pattern::without_unsupported(schema) {
            Some(rest) => build(&rest),
            None => Err(error),
        })?;
        Ok(CompiledSchema { value: Arc::new(schema.clone()), validator: Arc::new(validator), recursions })
    }

    /// All violations, at most a hundred.
    pub fn validate(&self, value: &Value) -> Vec<SchemaViolation> {
        // Validation is always fast; explaining the violations may not be.
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        if !self.can_explain(value) {
            return vec![SchemaViolation { pointer: String::new(), message: "does not fit the schema".to_owned() }];
        }
        self.validator
            .iter_errors(value)
            .take(VIOLATIONS_MAX)
            .flat_map(|error| self.violations(&error))
            .take(VIOLATIONS_MAX)
            .collect()
    }

    /// Violations that no result of the expressions can avoid. `known` returns the schema of a path, if any.
    pub fn validate_template(
        &self,
        template: &ParameterTemplate,
        known: &dyn Fn(&[String]) -> Option<Value>,
    ) -> Vec<SchemaViolation> {
        match template.constant() {
            Some(value) if template.secrets().is_empty() => self.validate(value),
            _ => fit::validate(self, template, known),
        }
    }

    /// Whether all errors can be listed quickly: each level of the value may multiply the paths to evaluate.
    fn can_explain(&self, value: &Value) -> bool {
        const WAYS_MAX: usize = 100_000;
        let ways = (0..bound::depth(value))
            .try_fold(1, |ways: usize, _| ways.checked_mul(self.recursions.max(1)).filter(|ways| *ways <= WAYS_MAX));
        ways.is_some()
    }

    /// The violations of an error, one for each unknown key.
    fn violations(&self, error: &ValidationError<'_>) -> Vec<SchemaViolation> {
        let pointer = error.instance_path().as_str();
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                let expected = self.siblings(error);
                let expected = expected.iter().map(String::as_str);
                unexpected
                    .iter()
                    .map(|key| SchemaViolation {
                        pointer: format!("{pointer}/{}", escape(key)),
                        message: unknown_key(key, expected.clone()),
                    })
                    .collect()
            }
            _ => vec![SchemaViolation { pointer: pointer.to_owned(), message: describe(error) }],
        }
    }

    /// The properties declared beside the keyword that failed.
    fn siblings(&self, error: &ValidationError<'_>) -> Vec<String> {
        let keyword = error.schema_path().as_str();
        let parent = keyword.rsplit_once('/').map_or("", |(parent, _)| parent);
        match self.value.pointer(parent).and_then(|schema| schema.get("properties")) {
            Some(Value::Object(properties)) => properties.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Debug for CompiledSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CompiledSchema").field(&self.value).finish()
    }
}

fn build(schema: &Value) -> Result<Validator, SchemaError> {
    let patterns =
        PatternOptions::regex().size_limit(bound::PATTERN_BYTES_MAX).dfa_size_limit(bound::PATTERN_BYTES_MAX);
    jsonschema::options()
        .offline()
        .with_pattern_options(patterns)
        .should_validate_formats(true)
        .should_ignore_unknown_formats(true)
        .build(schema)
        .map_err(|error| SchemaError { pointer: error.instance_path().as_str().to_owned(), message: describe(&error) })
}

fn unknown_key<'a>(key: &str, expected: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut known: Vec<&str> = expected.clone().take(20).collect();
    known.sort_unstable();
    match guess(key, expected) {
        Some(meant) => format!("unknown key \"{key}\", did you mean \"{}\"?", meant.word()),
        None if known.is_empty() => format!("unknown key \"{key}\""),
        None => format!("unknown key \"{key}\", expected one of {}", known.join(", ")),
    }
}

/// The message of an error: what was expected, and the type that was found.
fn describe(error: &ValidationError<'_>) -> String {
    use ValidationErrorKind as Kind;
    let found = kind(error.instance());
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(expected) } => format!("expected {expected}, found {found}"),
        Kind::Type { kind: TypeKind::Multiple(expected) } => {
            let expected: Vec<String> = expected.iter().map(|kind| kind.to_string()).collect();
            format!("expected {}, found {found}", expected.join(" or "))
        }
        Kind::Required { property } => format!("{property} is required"),
        Kind::Enum { options } => format!("expected one of {}, found {found}", short(options)),
        Kind::Constant { expected_value } => format!("expected {}, found {found}", short(expected_value)),
        Kind::Minimum { limit } => format!("expected at least {limit}"),
        Kind::Maximum { limit } => format!("expected at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("expected more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("expected less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("expected a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("expected at least {limit} characters"),
        Kind::MaxLength { limit } => format!("expected at most {limit} characters"),
        Kind::MinItems { limit } => format!("expected at least {limit} items"),
        Kind::MaxItems { limit } => format!("expected at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("expected at most {limit} items"),
        Kind::UnevaluatedItems { .. } => "expected fewer items".to_owned(),
        Kind::MinProperties { limit } => format!("expected at least {limit} keys"),
        Kind::MaxProperties { limit } => format!("expected at most {limit} keys"),
        Kind::UniqueItems => "expected no item twice".to_owned(),
        Kind::Contains => "expected an item of another kind among these".to_owned(),
        Kind::Pattern { pattern } => format!("expected text that matches {pattern:?}"),
        Kind::Format { format } => format!("expected text in the format \"{format}\""),
        Kind::ContentEncoding { content_encoding } => format!("expected text encoded as {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => {
            format!("expected text of type {content_media_type}")
        }
        Kind::FalseSchema => "nothing is allowed here".to_owned(),
        Kind::Not { .. } => format!("this {found} is excluded"),
        Kind::OneOfMultipleValid { .. } => "expected to fit one alternative, fits several".to_owned(),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => alternatives(context, found),
        Kind::PropertyNames { error } => format!("a key does not fit: {}", describe(error)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().take(5).map(|key| unknown_key(key, [].into_iter())).collect::<Vec<_>>().join(", ")
        }
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "the pattern takes too long to match".to_owned()
        }
        Kind::Referencing(error) => format!("the reference does not resolve: {error}"),
        Kind::FromUtf8 { .. } => "expected text in UTF-8".to_owned(),
        Kind::Custom { message, .. } => message.clone(),
    }
}

/// The first violation of each alternative.
fn alternatives(context: &[Vec<ValidationError<'static>>], found: &str) -> String {
    const LISTED_MAX: usize = 4;
    let mut reasons: Vec<String> = Vec::new();
    for error in context.iter().filter_map(|branch| branch.first()).take(LISTED_MAX) {
        // Nested alternatives would repeat the same message.
        let reason = match error.kind() {
            ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => continue,
            _ => describe(error),
        };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    match reasons.is_empty() {
        true => format!("this {found} fits no alternative"),
        false => format!("fits no alternative: {}", reasons.join("; or ")),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Part of a schema as text, shortened.
fn short(value: &Value) -> String {
    const CHARS_MAX: usize = 200;
    cut(&value.to_string(), CHARS_MAX)
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
