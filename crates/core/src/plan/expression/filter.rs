//! The filters behind `|`. Each counts what it looks at and what it builds before it does so.

mod list;
mod text;

use super::arithmetic::Numeric;
use super::evaluate::{Datum, Evaluated, Evaluator, is_true, kind, unfit};
use super::node::Node;
use crate::plan::schema::Types;
use serde_json::Value;
use std::borrow::Cow;
use std::ops::Range;

#[derive(Debug)]
pub(super) struct Filter {
    pub(super) name: &'static str,
    /// Names of the arguments, in order.
    pub(super) parameters: &'static [&'static str],
    /// So many of them must be given.
    pub(super) required: usize,
    /// Which argument is the name of a test.
    pub(super) test_at: Option<usize>,
    pub(super) accepts_missing: bool,
    /// What its result always is.
    pub(super) gives: Option<Types>,
    /// Why it is here, for the documentation.
    #[cfg_attr(not(test), expect(dead_code, reason = "the documentation is checked against it"))]
    pub(super) about: &'static str,
    rule: for<'a> fn(&mut Work<'_, 'a>, Datum<'a>) -> Evaluated<Datum<'a>>,
}

/// One use of a filter.
struct Work<'e, 'a> {
    evaluator: &'e mut Evaluator<'a>,
    arguments: Vec<Option<Datum<'a>>>,
    at: &'e Range<usize>,
}

type Rule = for<'a> fn(&mut Work<'_, 'a>, Datum<'a>) -> Evaluated<Datum<'a>>;

const fn plain(name: &'static str, about: &'static str, rule: Rule) -> Filter {
    with(name, &[], 0, about, rule)
}

const fn giving(types: Types, filter: Filter) -> Filter {
    Filter { gives: Some(types), ..filter }
}

const fn with(
    name: &'static str,
    parameters: &'static [&'static str],
    required: usize,
    about: &'static str,
    rule: Rule,
) -> Filter {
    Filter { name, parameters, required, test_at: None, accepts_missing: false, gives: None, about, rule }
}

const fn testing(filter: Filter, test_at: usize) -> Filter {
    Filter { test_at: Some(test_at), ..filter }
}

/// Every filter there is.
static FILTERS: [Filter; 33] = [
    Filter {
        accepts_missing: true,
        ..with("default", &["value", "boolean"], 1, "stands in for what is missing", default)
    },
    Filter { accepts_missing: true, ..with("d", &["value", "boolean"], 1, "short for default", default) },
    giving(Types::INTEGER, plain("length", "characters, items or keys", length)),
    giving(Types::INTEGER, plain("count", "the same as length", length)),
    giving(Types::INTEGER, plain("int", "a whole number from a number or text", int)),
    giving(Types::NUMBER, plain("float", "a float from a number or text", float)),
    giving(Types::NUMBER, plain("abs", "without the sign", abs)),
    giving(Types::NUMBER, with("round", &["precision"], 0, "to so many decimals, 0 by itself", round)),
    giving(Types::BOOLEAN, plain("bool", "true for what counts as true", bool)),
    giving(Types::STRING, plain("string", "as text", text::string)),
    giving(Types::STRING, plain("tojson", "as compact JSON text", text::tojson)),
    giving(Types::STRING, plain("upper", "in capitals", text::upper)),
    giving(Types::STRING, plain("lower", "in small letters", text::lower)),
    giving(
        Types::STRING,
        with("trim", &["chars"], 0, "without blanks (or these characters) at both ends", text::trim),
    ),
    giving(
        Types::ARRAY,
        with("split", &["separator"], 0, "a list of the parts between separators or blanks", text::split),
    ),
    giving(Types::STRING, with("replace", &["old", "new"], 2, "with every old replaced", text::replace)),
    giving(Types::STRING, with("join", &["separator", "attribute"], 0, "one text of all items", text::join)),
    plain("first", "the first item; missing if there is none", list::first),
    plain("last", "the last item; missing if there is none", list::last),
    with("min", &["attribute"], 0, "the smallest item; missing if there is none", list::min),
    with("max", &["attribute"], 0, "the largest item; missing if there is none", list::max),
    giving(Types::NUMBER, with("sum", &["attribute"], 0, "all items added up", list::sum)),
    giving(Types::ARRAY, with("sort", &["reverse", "attribute"], 0, "numbers or texts in order", list::sort)),
    giving(Types::ARRAY, with("unique", &["attribute"], 0, "without repetitions", list::unique)),
    plain("reverse", "back to front", list::reverse),
    giving(Types::ARRAY, with("map", &["attribute", "default"], 1, "one attribute of every item", list::map)),
    testing(with("select", &["test", "value"], 0, "items that pass a test", list::select), 0),
    testing(with("reject", &["test", "value"], 0, "items that fail a test", list::reject), 0),
    testing(
        with(
            "selectattr",
            &["attribute", "test", "value"],
            1,
            "items whose attribute passes",
            list::selectattr,
        ),
        1,
    ),
    testing(
        with(
            "rejectattr",
            &["attribute", "test", "value"],
            1,
            "items whose attribute fails",
            list::rejectattr,
        ),
        1,
    ),
    giving(Types::ARRAY, plain("items", "an object as a list of [key, value]", list::items)),
    giving(Types::ARRAY, plain("keys", "the keys of an object", list::keys)),
    giving(Types::ARRAY, plain("values", "the values of an object", list::values)),
];

pub(super) fn find(name: &str) -> Option<&'static Filter> {
    FILTERS.iter().find(|filter| filter.name == name)
}

pub(super) fn names() -> impl Iterator<Item = &'static str> {
    FILTERS.iter().map(|filter| filter.name)
}

#[cfg(test)]
pub(super) fn abouts() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILTERS.iter().map(|filter| (filter.name, filter.about))
}

/// The values of the arguments. What `default` would say is not asked for when it is not needed, so that
/// it may itself be missing.
pub(super) fn arguments<'a>(
    evaluator: &mut Evaluator<'a>,
    filter: &Filter,
    has_input: bool,
    nodes: &'a [Option<Node>],
) -> Evaluated<Vec<Option<Datum<'a>>>> {
    if filter.accepts_missing && has_input && nodes.get(1).is_none_or(Option::is_none) {
        return Ok(Vec::new());
    }
    nodes.iter().map(|node| node.as_ref().map(|node| evaluator.value(node)).transpose()).collect()
}

/// What the filter makes of its input. No input at all reaches only filters that accept that.
pub(super) fn apply<'a>(
    evaluator: &mut Evaluator<'a>,
    filter: &Filter,
    input: Option<Datum<'a>>,
    arguments: Vec<Option<Datum<'a>>>,
    at: &Range<usize>,
) -> Evaluated<Datum<'a>> {
    evaluator.burn(1)?;
    let mut work = Work { evaluator, arguments, at };
    match input {
        Some(input) => (filter.rule)(&mut work, input),
        None => work.take(0).ok_or_else(|| work.evaluator.missing(at)),
    }
}

impl<'a> Work<'_, 'a> {
    fn take(&mut self, position: usize) -> Option<Datum<'a>> {
        self.arguments.get_mut(position).and_then(Option::take)
    }

    fn text_argument(&mut self, position: usize) -> Evaluated<Option<String>> {
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

fn default<'a>(work: &mut Work<'_, 'a>, input: Datum<'a>) -> Evaluated<Datum<'a>> {
    let also_false = work.take(1).is_some_and(|flag| is_true(&flag));
    match work.take(0) {
        Some(other) if also_false && !is_true(&input) => Ok(other),
        _ => Ok(input),
    }
}

fn length<'a>(work: &mut Work<'_, 'a>, input: Datum<'a>) -> Evaluated<Datum<'a>> {
    let length = match &*input {
        Value::String(text) => text.chars().count(),
        Value::Array(list) => list.len(),
        Value::Object(map) => map.len(),
        other => return Err(work.wants("text, a list or an object", other)),
    };
    Ok(Cow::Owned(Value::from(length)))
}

fn int<'a>(work: &mut Work<'_, 'a>, input: Datum<'a>) -> Evaluated<Datum<'a>> {
    let number = match &*input {
        Value::Bool(answer) => Numeric::Integer(i128::from(*answer)),
        Value::Number(number) => truncated(Numeric::of(number)),
        Value::String(text) => match (text.trim().parse::<i128>(), text.trim().parse::<f64>()) {
            (Ok(integer), _) => Numeric::Integer(integer),
            (_, Ok(float)) if float.is_finite() => truncated(Numeric::Float(float)),
            _ => return Err(unfit("the text is not a number", work.at)),
        },
        other => return Err(work.wants("a number or text", other)),
    };
    work.number(number)
}

fn truncated(number: Numeric) -> Numeric {
    match number {
        Numeric::Float(float) => Numeric::Integer(float.trunc() as i128),
        integer => integer,
    }
}

fn float<'a>(work: &mut Work<'_, 'a>, input: Datum<'a>) -> Evaluated<Datum<'a>> {
    let number = match &*input {
        Value::Bool(answer) => f64::from(u8::from(*answer)),
        Value::Number(number) => Numeric::of(number).as_float(),
        Value::String(text) => match text.trim().parse() {
            Ok(float) => float,
            Err(_) => return Err(unfit("the text is not a number", work.at)),
        },
        other => return Err(work.wants("a number or text", other)),
    };
    work.number(Numeric::Float(number))
}

fn abs<'a>(work: &mut Work<'_, 'a>, input: Datum<'a>) -> Evaluated<Datum<'a>> {
    let Value::Number(number) = &*input else { return Err(work.wants("a number", &input)) };
    let number = match Numeric::of(number) {
        Numeric::Integer(integer) => Numeric::Integer(integer.abs()),
        Numeric::Float(float) => Numeric::Float(float.abs()),
    };
    work.number(number)
}

fn round<'a>(work: &mut Work<'_, 'a>, input: Datum<'a>) -> Evaluated<Datum<'a>> {
    let precision = match work.take(0) {
        None => 0,
        Some(value) => match value.as_i64() {
            Some(precision) => precision.clamp(0, 15) as i32,
            None => return Err(work.wants("an integer as its argument", &value)),
        },
    };
    let Value::Number(number) = &*input else { return Err(work.wants("a number", &input)) };
    match Numeric::of(number) {
        Numeric::Integer(_) => Ok(input),
        Numeric::Float(float) => {
            let factor = 10_f64.powi(precision);
            let rounded = (float * factor).round_ties_even() / factor;
            // Beyond the range where decimals exist, the number is already round.
            work.number(Numeric::Float(if rounded.is_finite() { rounded } else { float }))
        }
    }
}

fn bool<'a>(_: &mut Work<'_, 'a>, input: Datum<'a>) -> Evaluated<Datum<'a>> {
    Ok(Cow::Owned(Value::Bool(is_true(&input))))
}

impl Work<'_, '_> {
    fn number<'a>(&self, number: Numeric) -> Evaluated<Datum<'a>> {
        let number = number.to_number().map_err(|message| unfit(message, self.at))?;
        Ok(Cow::Owned(Value::Number(number)))
    }
}
