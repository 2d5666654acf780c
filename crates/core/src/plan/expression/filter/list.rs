//! Filters on lists and objects.

use super::{EvaluatedValue, EvaluationResult, FilterCall};
use crate::plan::expression::EvaluationError;
use crate::plan::expression::arithmetic::calculate;
use crate::plan::expression::evaluate::{VALUE_BYTES, inside, is_true, keys_of, unfit};
use crate::plan::expression::node::{BinaryOperator, PathSegment};
use crate::plan::expression::test;
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;

pub(super) fn first<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    work.list(&input)?;
    inside(input, &PathSegment::Position(0)).ok_or_else(|| work.evaluator.missing(work.at))
}

pub(super) fn last<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let length = work.list(&input)?.len() as u64;
    let key = length.checked_sub(1).map(PathSegment::Position);
    key.and_then(|key| inside(input, &key)).ok_or_else(|| work.evaluator.missing(work.at))
}

pub(super) fn min<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    extreme(work, input, Ordering::Less)
}

pub(super) fn max<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    extreme(work, input, Ordering::Greater)
}

fn extreme<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
    wanted: Ordering,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let attribute = work.attribute(0)?;
    let mut best: Option<(u64, &Value)> = None;
    for (position, item) in work.list(&input)?.iter().enumerate() {
        let value = work.at_attribute(item, attribute.as_deref())?;
        let better = match best {
            None => true,
            Some((_, so_far)) => test::order(value, so_far, work.at)? == wanted,
        };
        if better {
            best = Some((position as u64, value));
        }
    }
    let key = best.map(|(position, _)| PathSegment::Position(position));
    key.and_then(|key| inside(input, &key)).ok_or_else(|| work.evaluator.missing(work.at))
}

pub(super) fn sum<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let attribute = work.attribute(0)?;
    let mut total = Number::from(0);
    for item in work.list(&input)? {
        match work.at_attribute(item, attribute.as_deref())? {
            Value::Number(number) => {
                total = calculate(BinaryOperator::Add, &total, number).map_err(|message| unfit(message, work.at))?;
            }
            other => return Err(work.wants("numbers to add up", other)),
        }
    }
    Ok(Cow::Owned(Value::Number(total)))
}

pub(super) fn sort<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let descending = work.take(0).is_some_and(|flag| is_true(&flag));
    let attribute = work.attribute(1)?;
    let mut keyed = Vec::new();
    for item in work.list(&input)? {
        keyed.push((work.at_attribute(item, attribute.as_deref())?, item));
    }
    work.evaluator.burn(keyed.len().saturating_mul(keyed.len().checked_ilog2().unwrap_or(0) as usize / 4))?;
    let mut unordered: Option<EvaluationError> = None;
    keyed.sort_by(|(left, _), (right, _)| match test::order(left, right, work.at) {
        Ok(order) if descending => order.reverse(),
        Ok(order) => order,
        Err(error) => {
            unordered.get_or_insert(error);
            Ordering::Equal
        }
    });
    match unordered {
        Some(error) => Err(error),
        None => work.collect(keyed.into_iter().map(|(_, item)| item)),
    }
}

pub(super) fn unique<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let attribute = work.attribute(0)?;
    let mut seen = HashSet::new();
    let mut stored = Vec::new();
    for item in work.list(&input)? {
        let value = work.at_attribute(item, attribute.as_deref())?;
        work.evaluator.build_json(value)?;
        // 1 and 1.0 are equal and must get the same key.
        let look = match value.as_f64() {
            Some(float) if value.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => (float as i64).to_string(),
            _ => value.to_string(),
        };
        if seen.insert(look) {
            stored.push(item);
        }
    }
    work.collect(stored)
}

pub(super) fn reverse<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    if let Value::String(text) = &*input {
        work.evaluator.build(text.len())?;
        return Ok(Cow::Owned(Value::String(text.chars().rev().collect())));
    }
    let list = work.list(&input)?;
    work.collect(list.iter().rev())
}

pub(super) fn map<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let attribute = work.attribute(0)?;
    let default = work.take(1);
    let mut values = Vec::new();
    for item in work.list(&input)? {
        let value = match (work.at_attribute(item, attribute.as_deref()), &default) {
            (Err(EvaluationError::Missing { .. }), Some(default)) => &**default,
            (found, _) => found?,
        };
        values.push(value);
    }
    work.collect(values)
}

pub(super) fn select<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    keep(work, &input, None, 0, true)
}

pub(super) fn reject<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    keep(work, &input, None, 0, false)
}

pub(super) fn selectattr<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let attribute = work.attribute(0)?;
    keep(work, &input, attribute.as_deref(), 1, true)
}

pub(super) fn rejectattr<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let attribute = work.attribute(0)?;
    keep(work, &input, attribute.as_deref(), 1, false)
}

/// Items that pass (or fail) the test named at `test_at`; without a test, items that are truthy.
fn keep<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: &Value,
    attribute: Option<&[PathSegment]>,
    test_at: usize,
    wanted: bool,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let test = match work.text_argument(test_at)? {
        None => None,
        Some(name) => Some(test::find(&name).ok_or_else(|| unfit(format!("unknown test \"{name}\""), work.at))?),
    };
    let argument = work.take(test_at + 1);
    let mut stored = Vec::new();
    for item in work.list(input)? {
        let value = match work.at_attribute(item, attribute) {
            Ok(value) => Some(value),
            Err(EvaluationError::Missing { .. }) if test.is_none_or(|test| test.accepts_missing) => None,
            Err(error) => return Err(error),
        };
        let holds = match test {
            Some(test) => test::holds(work.evaluator, test, value, argument.as_deref(), work.at)?,
            None => value.is_some_and(is_true),
        };
        if holds == wanted {
            stored.push(item);
        }
    }
    work.collect(stored)
}

pub(super) fn items<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let Value::Object(map) = &*input else { return Err(work.wants("an object", &input)) };
    let mut pairs = Vec::new();
    for (key, value) in map {
        work.evaluator.burn(1)?;
        work.evaluator.build(key.len() + 2 * VALUE_BYTES)?;
        let value = work.evaluator.own(Cow::Borrowed(value))?;
        pairs.push(Value::Array(vec![Value::from(key.as_str()), value]));
    }
    Ok(Cow::Owned(Value::Array(pairs)))
}

pub(super) fn keys<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let Value::Object(map) = &*input else { return Err(work.wants("an object", &input)) };
    let mut keys = Vec::new();
    for key in map.keys() {
        work.evaluator.burn(1)?;
        work.evaluator.build(key.len() + VALUE_BYTES)?;
        keys.push(Value::from(key.as_str()));
    }
    Ok(Cow::Owned(Value::Array(keys)))
}

pub(super) fn values<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let Value::Object(map) = &*input else { return Err(work.wants("an object", &input)) };
    work.evaluator.burn(map.len())?;
    work.collect(map.values())
}

impl FilterCall<'_, '_> {
    /// The items of a list, each counted as a step.
    pub(super) fn list<'v>(&mut self, value: &'v Value) -> EvaluationResult<&'v [Value]> {
        match value {
            Value::Array(list) => {
                self.evaluator.burn(list.len())?;
                Ok(list)
            }
            other => Err(self.wants("a list", other)),
        }
    }

    /// The dotted attribute that an argument names.
    pub(super) fn attribute(&mut self, position: usize) -> EvaluationResult<Option<Vec<PathSegment>>> {
        Ok(self.text_argument(position)?.map(|text| text.split('.').map(key).collect()))
    }

    pub(super) fn at_attribute<'v>(
        &self,
        item: &'v Value,
        attribute: Option<&[PathSegment]>,
    ) -> EvaluationResult<&'v Value> {
        let mut value = item;
        for key in attribute.unwrap_or_default() {
            let found = match (value, key) {
                (Value::Object(map), PathSegment::Name(name)) => map.get(name),
                (Value::Object(map), PathSegment::Position(position)) => map.get(&position.to_string()),
                (Value::Array(list), PathSegment::Position(position)) => {
                    usize::try_from(*position).ok().and_then(|position| list.get(position))
                }
                _ => None,
            };
            value = found.ok_or_else(|| EvaluationError::Missing {
                path: format!("\"{key}\" of an item"),
                range: self.at.clone(),
                step: None,
                keys: keys_of(value),
            })?;
        }
        Ok(value)
    }

    /// A list of copies.
    fn collect<'v, 'a>(&mut self, items: impl IntoIterator<Item = &'v Value>) -> EvaluationResult<EvaluatedValue<'a>> {
        let mut list = Vec::new();
        for item in items {
            list.push(self.evaluator.own(Cow::Borrowed(item))?);
        }
        Ok(Cow::Owned(Value::Array(list)))
    }
}

fn key(text: &str) -> PathSegment {
    match text.parse() {
        Ok(position) => PathSegment::Position(position),
        Err(_) => PathSegment::Name(text.to_owned()),
    }
}
