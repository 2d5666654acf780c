//! Filters on text.

use super::{EvaluatedValue, EvaluationResult, FilterCall};
use crate::plan::expression::evaluate::{VALUE_BYTES, unfit};
use serde_json::Value;
use std::borrow::Cow;

pub(super) fn string<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    match &*input {
        Value::String(_) => Ok(input),
        other => Ok(Cow::Owned(Value::String(work.evaluator.text(other, work.at)?))),
    }
}

/// Unlike `string`, quotes text and can write null.
pub(super) fn tojson<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    work.evaluator.build_json(&input)?;
    Ok(Cow::Owned(Value::String(input.to_string())))
}

pub(super) fn upper<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    change(work, &input, |text| text.to_uppercase())
}

pub(super) fn lower<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    change(work, &input, |text| text.to_lowercase())
}

pub(super) fn trim<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    match work.text_argument(0)? {
        None => change(work, &input, |text| text.trim().to_owned()),
        Some(ends) => change(work, &input, |text| text.trim_matches(|c| ends.contains(c)).to_owned()),
    }
}

pub(super) fn split<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let separator = work.text_argument(0)?;
    let Value::String(text) = &*input else { return Err(work.wants("text", &input)) };
    let mut parts = Vec::new();
    let mut add = |part: &str| {
        work.evaluator.burn(1)?;
        work.evaluator.build(part.len() + VALUE_BYTES)?;
        parts.push(Value::from(part));
        Ok(())
    };
    match separator.as_deref() {
        None => text.split_whitespace().try_for_each(&mut add)?,
        Some("") => return Err(unfit("the separator is empty", work.at)),
        Some(separator) => text.split(separator).try_for_each(&mut add)?,
    }
    Ok(Cow::Owned(Value::Array(parts)))
}

pub(super) fn replace<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let (old, new) = (work.text_argument(0)?.unwrap_or_default(), work.text_argument(1)?.unwrap_or_default());
    let Value::String(text) = &*input else { return Err(work.wants("text", &input)) };
    if old.is_empty() {
        return Err(unfit("the text to replace is empty", work.at));
    }
    let found = text.matches(old.as_str()).count();
    work.evaluator.build(text.len().saturating_add(found.saturating_mul(new.len())))?;
    Ok(Cow::Owned(Value::String(text.replace(&old, &new))))
}

pub(super) fn join<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: EvaluatedValue<'a>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let separator = work.text_argument(0)?.unwrap_or_default();
    let attribute = work.attribute(1)?;
    let mut joined = String::new();
    for (position, item) in work.list(&input)?.iter().enumerate() {
        if position > 0 {
            work.evaluator.build(separator.len())?;
            joined.push_str(&separator);
        }
        let value = work.at_attribute(item, attribute.as_deref())?;
        let text = work.evaluator.text(value, work.at)?;
        joined.push_str(&text);
    }
    Ok(Cow::Owned(Value::String(joined)))
}

fn change<'a>(
    work: &mut FilterCall<'_, 'a>,
    input: &Value,
    change: impl FnOnce(&str) -> String,
) -> EvaluationResult<EvaluatedValue<'a>> {
    let Value::String(text) = input else { return Err(work.wants("text", input)) };
    // A change of case turns one character into at most three.
    work.evaluator.build(text.len().saturating_mul(3))?;
    Ok(Cow::Owned(Value::String(change(text))))
}
