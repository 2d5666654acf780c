//! The filters after `|`. Each counts its steps and bytes before it uses them.

mod list;
mod text;

use super::arithmetic::NumericValue;
use super::evaluate::{EvaluatedValue, EvaluationResult, Evaluator, is_true, kind, unfit};
use super::node::ExpressionNode;
use crate::plan::schema::JsonTypeSet;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct FilterDefinition {
    pub(super) name: &'static str,
    /// Names of the arguments, in order.
    pub(super) parameters: &'static [&'static str],
    /// How many of them are required.
    pub(super) required: usize,
    /// The argument that is the name of a test.
    pub(super) test_at: Option<usize>,
    pub(super) accepts_missing: bool,
    /// The type of its result, if always the same.
    pub(super) gives: Option<JsonTypeSet>,
    /// What it does, for the documentation.
    #[cfg_attr(not(test), expect(dead_code, reason = "the documentation is checked against it"))]
    pub(super) about: &'static str,
    rule: for<'a> fn(&mut FilterCall<'_, 'a>, EvaluatedValue<'a>) -> EvaluationResult<EvaluatedValue<'a>>,
}

/// One use of a filter.
struct FilterCall<'e, 'a> {
    evaluator: &'e mut Evaluator<'a>,
    arguments: Vec<Option<EvaluatedValue<'a>>>,
    at: &'e Range<usize>,
}

type FilterRule = for<'a> fn(&mut FilterCall<'_, 'a>, EvaluatedValue<'a>) -> EvaluationResult<EvaluatedValue<'a>>;

const fn plain(name: &'static str, about: &'static str, rule: FilterRule) -> FilterDefinition {
    with(name, &[], 0, about, rule)
}

const fn giving(types: JsonTypeSet, filter: FilterDefinition) -> FilterDefinition {
    FilterDefinition { gives: Some(types), ..filter }
}

const fn with(
    name: &'static str,
    parameters: &'static [&'static str],
    required: usize,
    about: &'static str,
    rule: FilterRule,
) -> FilterDefinition {
    FilterDefinition { name, parameters, required, test_at: None, accepts_missing: false, gives: None, about, rule }
}

const fn testing(filter: FilterDefinition, test_at: usize) -> FilterDefinition {
    FilterDefinition { test_at: Some(test_at), ..filter }
}

/// Every filter.
static FILTERS: [FilterDefinition; 33] = [
    FilterDefinition {
        accepts_missing: true,
        ..with("default", &["value", "boolean"], 1, "replaces a missing value", default)
    },
    FilterDefinition { accepts_missing: true, ..with("d", &["value", "boolean"], 1, "short for default", default) },
    giving(JsonTypeSet::INTEGER, plain("length", "characters, items or keys", length)),
    giving(JsonTypeSet::INTEGER, plain("count", "the same as length", length)),
    giving(JsonTypeSet::INTEGER, plain("int", "a whole number from a number or text", int)),
    giving(JsonTypeSet::NUMBER, plain("float", "a float from a number or text", float)),
    giving(JsonTypeSet::NUMBER, plain("abs", "without the sign", abs)),
    giving(JsonTypeSet::NUMBER, with("round", &["precision"], 0, "to so many decimals, 0 by itself", round)),
    giving(JsonTypeSet::BOOLEAN, plain("bool", "true for what counts as true", bool)),
    giving(JsonTypeSet::STRING, plain("string", "as text", text::string)),
    giving(JsonTypeSet::STRING, plain("tojson", "as compact JSON text", text::tojson)),
    giving(JsonTypeSet::STRING, plain("upper", "in capitals", text::upper)),
    giving(JsonTypeSet::STRING, plain("lower", "in small letters", text::lower)),
    giving(
        JsonTypeSet::STRING,
        with("trim", &["chars"], 0, "without blanks (or these characters) at both ends", text::trim),
    ),
    giving(
        JsonTypeSet::ARRAY,
        with("split", &["separator"], 0, "a list of the parts between separators or blanks", text::split),
    ),
    giving(JsonTypeSet::STRING, with("replace", &["old", "new"], 2, "with every old replaced", text::replace)),
    giving(JsonTypeSet::STRING, with("join", &["separator", "attribute"], 0, "one text of all items", text::join)),
    plain("first", "the first item; missing if there is none", list::first),
    plain("last", "the last item; missing if there is none", list::last),
    with("min", &["attribute"], 0, "the smallest item; missing if there is none", list::min),
    with("max", &["attribute"], 0, "the largest item; missing if there is none", list::max),
    giving(JsonTypeSet::NUMBER, with("sum", &["attribute"], 0, "all items added up", list::sum)),
    giving(JsonTypeSet::ARRAY, with("sort", &["reverse", "attribute"], 0, "numbers or texts in order", list::sort)),
    giving(JsonTypeSet::ARRAY, with("unique", &["attribute"], 0, "without repetitions", list::unique)),
    plain("reverse", "back to front", list::reverse),
    giving(JsonTypeSet::ARRAY, with("map", &["attribute", "default"], 1, "one attribute of every item", list::map)),
    testing(with("select", &["test", "value"], 0, "items that pass a test", list::select), 0),
    testing(with("reject", &["test", "value"], 0, "items that fail a test", list::reject), 0),
    testing(
        with("selectattr", &["attribute", "test", "value"], 1, "items whose attribute passes", list::selectattr),
        1,
    ),
    testing(with("rejectattr", &["attribute", "test", "value"], 1, "items whose attribute fails", list::rejectattr), 1),
    giving(JsonTypeSet::ARRAY, plain("items", "an object as a list of [key, value]", list::items)),
    giving(JsonTypeSet::ARRAY, plain("keys", "the keys of an object", list::keys)),
    giving(JsonTypeSet::ARRAY, plain("values", "the values of an object", list::values)),
];

pub(super) fn find(name: &str) -> Option<&'static FilterDefinition> {
    FILTERS.iter().find(|filter| filter.name == name)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FILTERS.iter().map(|filter| filter.name)
}

#[cfg(test)]
pub(super) fn abouts() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILTERS.iter().map(|filter| (filter.name, filter.about))
}

/// Evaluates the arguments. The argument of `default` is not evaluated when it is not needed, so that it
/// may itself be missing.
pub(super) fn arguments<'a>(
    evaluator: &mut Evaluator<'a>,
    filter: &FilterDefinition,
    has_input: bool,
    nodes: &'a [Option<ExpressionNode>],
) -> EvaluationResult<Vec<Option<EvaluatedValue<'a>>>> {
    if filter.accepts_missing && has_input && nodes.get(1).is_none_or(Option::is_none) {
        return Ok(Vec::new());
    }
    nodes.iter().map(|node| node.as_ref().map(|node| evaluator.value(node)).transpose()).collect()
}

/// Applies the filter. A missing input reaches only filters that accept that.
pub(super) fn apply<'a>(
    evaluator: &mut Evaluator<'a>,
    filter: &FilterDefinition,
    input: Option<EvaluatedValue<'a>>,
    arguments: Vec<Option<EvaluatedValue<'a>>>,
    at: &Range<usize>,
) -> EvaluationResult<EvaluatedValue<'a>> {
    evaluator.burn(1)?;
    let mut work = FilterCall { evaluator, arguments, at };
    match input {
        Some(input) => (filter.rule)(&mut work, input),
        None => work.take(0).ok_or_else(|| work.evaluator.missing(at)),
    }
}

impl<'a> FilterCall<'_, 'a> {
    fn take(&mut self, position: usize) -> Option<EvaluatedValue<'a>> {
        self.arguments.get_mut(position).and_then(Option::take)
    }

    fn text_argument(&mut self, position: usize) -> EvaluationResult<Option<String>> {
        match self.take(position).map(Cow::into_owned) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.wants("text as its argument", &other)),
        }
    }

    fn wants(&self, expected: &str, found: &Value) -> super::EvaluationError {
        unfit(format!("expected {expected}, found {}", kind(found)), self.at)
    }
}

fn default<'a>(work: &mut FilterCall<'_, 'a>, input: EvaluatedValue<'a>) -> EvaluationResult<EvaluatedValue<'a>> {
    let also_false = work.take(1).is_some_and(|flag| is_true(&flag));
    match work.take(0) {
        Some(other) if also_false && !is_true(&input) => Ok(other),
        _ => Ok(input),
    }
}

fn length<'a>(work: &mut FilterCall<'_, 'a>, input: EvaluatedValue<'a>) -> EvaluationResult<EvaluatedValue<'a>> {
    let length = match &*input {
        Value::String(text) => text.chars().count(),
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        other => return Err(work.wants("text, a list or an object", other)),
    };
    Ok(Cow::Owned(Value::from(length)))
}

fn int<'a>(work: &mut FilterCall<'_, 'a>, input: EvaluatedValue<'a>) -> EvaluationResult<EvaluatedValue<'a>> {
    let number = match &*input {
        Value::Bool(answer) => NumericValue::Integer(i128::from(*answer)),
        Value::Number(number) => truncated(NumericValue::of(number)),
        Value::String(text) => match (text.trim().parse::<i128>(), text.trim().parse::<f64>()) {
            (Ok(integer), _) => NumericValue::Integer(integer),
            (_, Ok(float)) if float.is_finite() => truncated(NumericValue::Float(float)),
            _ => return Err(unfit("the text is not a number", work.at)),
        },
        other => return Err(work.wants("a number or text", other)),
    };
    work.number(number)
}

fn truncated(number: NumericValue) -> NumericValue {
    match number {
        NumericValue::Float(float) => NumericValue::Integer(float.trunc() as i128),
        integer => integer,
    }
}

fn float<'a>(work: &mut FilterCall<'_, 'a>, input: EvaluatedValue<'a>) -> EvaluationResult<EvaluatedValue<'a>> {
    let number = match &*input {
        Value::Bool(answer) => f64::from(u8::from(*answer)),
        Value::Number(number) => NumericValue::of(number).as_float(),
        Value::String(text) => match text.trim().parse() {
            Ok(float) => float,
            Err(_) => return Err(unfit("the text is not a number", work.at)),
        },
        other => return Err(work.wants("a number or text", other)),
    };
    work.number(NumericValue::Float(number))
}

fn abs<'a>(work: &mut FilterCall<'_, 'a>, input: EvaluatedValue<'a>) -> EvaluationResult<EvaluatedValue<'a>> {
    let Value::Number(number) = &*input else { return Err(work.wants("a number", &input)) };
    let number = match NumericValue::of(number) {
        NumericValue::Integer(integer) => NumericValue::Integer(integer.abs()),
        NumericValue::Float(float) => NumericValue::Float(float.abs()),
    };
    work.number(number)
}

fn round<'a>(work: &mut FilterCall<'_, 'a>, input: EvaluatedValue<'a>) -> EvaluationResult<EvaluatedValue<'a>> {
    let precision = match work.take(0) {
        None => 0,
        Some(value) => match value.as_i64() {
            Some(precision) => precision.clamp(0, 15) as i32,
            None => return Err(work.wants("an integer as its argument", &value)),
        },
    };
    let Value::Number(number) = &*input else { return Err(work.wants("a number", &input)) };
    match NumericValue::of(number) {
        NumericValue::Integer(_) => Ok(input),
        NumericValue::Float(float) => {
            let factor = 10_f64.powi(precision);
            let rounded = (float * factor).round_ties_even() / factor;
            // Beyond the range of decimals, the number is already round.
            work.number(NumericValue::Float(if rounded.is_finite() { rounded } else { float }))
        }
    }
}

fn bool<'a>(_: &mut FilterCall<'_, 'a>, input: EvaluatedValue<'a>) -> EvaluationResult<EvaluatedValue<'a>> {
    Ok(Cow::Owned(Value::Bool(is_true(&input))))
}

impl FilterCall<'_, '_> {
    fn number<'a>(&self, number: NumericValue) -> EvaluationResult<EvaluatedValue<'a>> {
        let number = number.to_number().map_err(|message| unfit(message, self.at))?;
        Ok(Cow::Owned(Value::Number(number)))
    }
}
