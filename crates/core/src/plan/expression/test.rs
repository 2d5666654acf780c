//! The tests after `is`, and comparison.

use super::EvaluationError;
use super::arithmetic;
use super::evaluate::{EvaluationResult, Evaluator, kind, unfit};
use super::node::Comparison;
use serde_json::Value;
use std::cmp::Ordering;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct TestDefinition {
    pub(super) name: &'static str,
    pub(super) takes_argument: bool,
    pub(super) accepts_missing: bool,
    rule: TestRule,
}

#[derive(Debug)]
enum TestRule {
    Defined(bool),
    /// Depends on the value alone.
    Shape(fn(&Value) -> bool),
    /// `even` is 0, `odd` is 1.
    Parity(u64),
    Compare(Comparison),
    Affix(fn(&str, &str) -> bool),
}

const fn shape(name: &'static str, rule: fn(&Value) -> bool) -> TestDefinition {
    TestDefinition { name, takes_argument: false, accepts_missing: false, rule: TestRule::Shape(rule) }
}

const fn comparing(name: &'static str, comparison: Comparison) -> TestDefinition {
    TestDefinition { name, takes_argument: true, accepts_missing: false, rule: TestRule::Compare(comparison) }
}

const fn defined(name: &'static str, expected: bool) -> TestDefinition {
    TestDefinition { name, takes_argument: false, accepts_missing: true, rule: TestRule::Defined(expected) }
}

/// Every test. None of them allocates, so none counts bytes.
static TESTS: [TestDefinition; 28] = [
    defined("defined", true),
    defined("undefined", false),
    shape("none", Value::is_null),
    shape("null", Value::is_null),
    shape("string", Value::is_string),
    shape("number", Value::is_number),
    shape("integer", |value| value.is_i64() || value.is_u64()),
    shape("float", Value::is_f64),
    shape("boolean", Value::is_boolean),
    shape("sequence", Value::is_array),
    shape("mapping", Value::is_object),
    shape("true", |value| *value == Value::Bool(true)),
    shape("false", |value| *value == Value::Bool(false)),
    TestDefinition { name: "even", takes_argument: false, accepts_missing: false, rule: TestRule::Parity(0) },
    TestDefinition { name: "odd", takes_argument: false, accepts_missing: false, rule: TestRule::Parity(1) },
    comparing("in", Comparison::In),
    comparing("eq", Comparison::Equal),
    comparing("equalto", Comparison::Equal),
    comparing("ne", Comparison::NotEqual),
    comparing("lt", Comparison::Less),
    comparing("lessthan", Comparison::Less),
    comparing("le", Comparison::LessOrEqual),
    comparing("gt", Comparison::Greater),
    comparing("greaterthan", Comparison::Greater),
    comparing("ge", Comparison::GreaterOrEqual),
    TestDefinition {
        name: "startingwith",
        takes_argument: true,
        accepts_missing: false,
        rule: TestRule::Affix(|text, affix| text.starts_with(affix)),
    },
    TestDefinition {
        name: "endingwith",
        takes_argument: true,
        accepts_missing: false,
        rule: TestRule::Affix(|text, affix| text.ends_with(affix)),
    },
    shape("empty", |value| match value {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }),
];

pub(super) fn find(name: &str) -> Option<&'static TestDefinition> {
    TESTS.iter().find(|test| test.name == name)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    TESTS.iter().map(|test| test.name)
}

/// Whether the value passes. A missing value reaches only tests that accept that.
pub(super) fn holds(
    evaluator: &mut Evaluator<'_>,
    test: &TestDefinition,
    value: Option<&Value>,
    argument: Option<&Value>,
    at: &Range<usize>,
) -> EvaluationResult<bool> {
    if let TestRule::Defined(expected) = test.rule {
        return Ok(value.is_some() == expected);
    }
    let value = value.ok_or_else(|| evaluator.missing(at))?;
    match (&test.rule, argument) {
        (TestRule::Shape(rule), _) => Ok(rule(value)),
        (TestRule::Parity(odd), _) => match arithmetic::parity(value) {
            Some(parity) => Ok(parity == *odd),
            None => Err(unfit(format!("expected an integer, found {}", kind(value)), at)),
        },
        (TestRule::Compare(comparison), Some(other)) => compare(evaluator, *comparison, value, other, at),
        (TestRule::Affix(rule), Some(Value::String(affix))) => match value {
            Value::String(text) => Ok(rule(text, affix)),
            other => Err(unfit(format!("expected text, found {}", kind(other)), at)),
        },
        (TestRule::Affix(_), Some(other)) => Err(unfit(format!("expected text, found {}", kind(other)), at)),
        _ => Err(unfit(format!("test \"{}\" needs an argument", test.name), at)),
    }
}

pub(super) fn compare(
    evaluator: &mut Evaluator<'_>,
    comparison: Comparison,
    left: &Value,
    right: &Value,
    at: &Range<usize>,
) -> EvaluationResult<bool> {
    Ok(match comparison {
        Comparison::Equal => equal(evaluator, left, right)?,
        Comparison::NotEqual => !equal(evaluator, left, right)?,
        Comparison::Less => order(left, right, at)?.is_lt(),
        Comparison::LessOrEqual => order(left, right, at)?.is_le(),
        Comparison::Greater => order(left, right, at)?.is_gt(),
        Comparison::GreaterOrEqual => order(left, right, at)?.is_ge(),
        Comparison::In => contains(evaluator, right, left, at)?,
        Comparison::NotIn => !contains(evaluator, right, left, at)?,
    })
}

/// Numbers are ordered by value, text by its characters; nothing else has an order.
pub(super) fn order(left: &Value, right: &Value, at: &Range<usize>) -> Result<Ordering, EvaluationError> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => Ok(arithmetic::compare(a, b)),
        (Value::String(a), Value::String(b)) => Ok(a.cmp(b)),
        (a, b) => Err(unfit(format!("{} and {} have no order", kind(a), kind(b)), at)),
    }
}

/// Equal by value: 1 and 1.0 are, 1 and true are not. Every compared pair is a step.
pub(super) fn equal(evaluator: &mut Evaluator<'_>, left: &Value, right: &Value) -> EvaluationResult<bool> {
    let mut open = vec![(left, right)];
    while let Some(pair) = open.pop() {
        evaluator.burn(1)?;
        let same = match pair {
            (Value::Number(a), Value::Number(b)) => arithmetic::compare(a, b).is_eq(),
            (Value::Array(a), Value::Array(b)) => {
                open.extend(a.iter().zip(b));
                a.len() == b.len()
            }
            (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
                let pairs = open.len();
                open.extend(a.iter().filter_map(|(key, value)| Some((value, b.get(key)?))));
                open.len() - pairs == a.len()
            }
            (Value::Object(_), Value::Object(_)) => false,
            (a, b) => a == b,
        };
        if !same {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains(evaluator: &mut Evaluator<'_>, whole: &Value, part: &Value, at: &Range<usize>) -> EvaluationResult<bool> {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => Ok(whole.contains(part.as_str())),
        (Value::Object(map), Value::String(key)) => Ok(map.contains_key(key)),
        (Value::Array(list), part) => {
            for item in list {
                if equal(evaluator, item, part)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        (whole, part) => Err(unfit(format!("{} cannot be in {}", kind(part), kind(whole)), at)),
    }
}
