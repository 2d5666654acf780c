//! Walks an expression over borrowed JSON. Steps and bytes are counted before they are spent.

use super::arithmetic::{Numeric, calculate};
use super::node::{Access, Comparison, Key, Kind, Node, Operator, Path, Root, Stage};
use super::{EvaluationError, Scope, filter, test};
use crate::limits;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;

/// A value on its way: borrowed from the scope for as long as nothing changes it.
pub(super) type Datum<'a> = Cow<'a, Value>;
pub(super) type Evaluated<T> = Result<T, EvaluationError>;

pub(super) fn evaluate(root: &Node, source: &str, scope: &dyn Scope) -> Evaluated<Value> {
    let datum = Evaluator::new(source, scope).value(root)?;
    match json_bytes(&datum, limits::VALUE_BYTES_MAX) {
        Some(_) => Ok(datum.into_owned()),
        None => Err(too_large()),
    }
}

pub(super) fn evaluate_bool(root: &Node, source: &str, scope: &dyn Scope) -> Evaluated<bool> {
    match *Evaluator::new(source, scope).value(root)? {
        Value::Bool(answer) => Ok(answer),
        ref other => Err(unfit(format!("expected true or false, found {}", kind(other)), &root.at)),
    }
}

/// The bytes the value has as compact JSON, or nothing once there are more than `max`.
pub(crate) fn json_bytes(value: &Value, max: usize) -> Option<usize> {
    struct Count {
        bytes: usize,
        max: usize,
    }
    impl std::io::Write for Count {
        fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
            self.bytes = self.bytes.saturating_add(piece.len());
            match self.bytes > self.max {
                true => Err(std::io::Error::other("more than may be")),
                false => Ok(piece.len()),
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count { bytes: 0, max };
    serde_json::to_writer(&mut count, value).ok()?;
    Some(count.bytes)
}

/// Writes a value as text: text as it is, everything else as compact JSON. Null has no text.
pub(crate) fn write_text(value: &Value, text: &mut String) -> Result<(), &'static str> {
    match value {
        Value::Null => return Err("null cannot become text; say `| default(…, true)` for what to write"),
        Value::String(string) => text.push_str(string),
        other => text.push_str(&other.to_string()),
    }
    Ok(())
}

/// Bytes that one evaluation may build in all, intermediate values included.
const WORK_BYTES_MAX: usize = 16 * limits::VALUE_BYTES_MAX;

pub(super) struct Evaluator<'a> {
    source: &'a str,
    scope: &'a dyn Scope,
    fuel: u64,
    bytes: usize,
}

impl<'a> Evaluator<'a> {
    fn new(source: &'a str, scope: &'a dyn Scope) -> Evaluator<'a> {
        Evaluator { source, scope, fuel: limits::EXPRESSION_FUEL, bytes: WORK_BYTES_MAX }
    }

    /// Counts steps: one for each node, one for each item that a filter looks at.
    pub(super) fn burn(&mut self, steps: usize) -> Evaluated<()> {
        match self.fuel.checked_sub(steps as u64) {
            Some(left) => self.fuel = left,
            None => {
                return Err(EvaluationError::Limit {
                    limit: "EXPRESSION_FUEL",
                    max: limits::EXPRESSION_FUEL,
                });
            }
        }
        Ok(())
    }

    /// Counts bytes about to be built.
    pub(super) fn build(&mut self, bytes: usize) -> Evaluated<()> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(too_large)?;
        Ok(())
    }

    /// Makes the value our own, counting the copy.
    pub(super) fn own(&mut self, datum: Datum<'_>) -> Evaluated<Value> {
        if let Cow::Borrowed(value) = &datum {
            let bytes = memory_bytes(value, self.bytes);
            self.build(bytes)?;
        }
        Ok(datum.into_owned())
    }

    /// Counts the bytes the value has as JSON.
    pub(super) fn build_json(&mut self, value: &Value) -> Evaluated<()> {
        let bytes = json_bytes(value, self.bytes).ok_or_else(too_large)?;
        self.build(bytes)
    }

    pub(super) fn text(&mut self, value: &Value, at: &Range<usize>) -> Evaluated<String> {
        self.build_json(value)?;
        let mut text = String::new();
        write_text(value, &mut text).map_err(|message| unfit(message, at))?;
        Ok(text)
    }

    pub(super) fn value(&mut self, node: &'a Node) -> Evaluated<Datum<'a>> {
        self.burn(1)?;
        match &node.kind {
            Kind::Literal(value) => Ok(Cow::Borrowed(value)),
            Kind::Path(path) => self.path(path, &node.at),
            Kind::List(items) => self.list(items),
            Kind::Map(pairs) => self.map(pairs),
            Kind::Member(base, accesses) => self.member(base, accesses, &node.at),
            Kind::Piped(base, stages) => self.piped(base, stages),
            Kind::Negative(operand) => self.negative(operand),
            Kind::Not(operand) => Ok(boolean(!is_true(&*self.value(operand)?))),
            Kind::All(nodes) => self.first_where(nodes, false),
            Kind::Any(nodes) => self.first_where(nodes, true),
            Kind::Chain(first, rest) => self.chain(first, rest, &node.at),
            Kind::Compare(first, rest) => self.compare(first, rest),
            Kind::Choose(choice) => match is_true(&*self.value(&choice.condition)?) {
                true => self.value(&choice.yes),
                false => self.value(&choice.no),
            },
        }
    }

    fn path(&mut self, path: &'a Path, at: &Range<usize>) -> Evaluated<Datum<'a>> {
        let scope = self.scope;
        let base = match &path.root {
            Root::Inputs => scope.inputs().map(Cow::Borrowed),
            Root::StepResult(step) => scope.step_result(step).map(Cow::Borrowed),
            Root::StepStatus(step) => scope.step_status(step).map(|status| Cow::Owned(Value::from(status))),
            Root::Key => scope.key().map(|key| Cow::Owned(Value::from(key))),
            Root::Result => scope.result().map(Cow::Borrowed),
            Root::Parameters => scope.parameters().map(Cow::Borrowed),
            Root::Item => scope.item().map(|(item, _)| Cow::Borrowed(item)),
            Root::Index => scope.item().map(|(_, index)| Cow::Owned(Value::from(index))),
        };
        let missing = |known: usize| EvaluationError::Missing { path: path.text(known), range: at.clone() };
        let mut datum = base.ok_or_else(|| missing(0))?;
        for (position, key) in path.keys.iter().enumerate() {
            datum = inside(datum, key).ok_or_else(|| missing(position + 1))?;
        }
        Ok(datum)
    }

    fn list(&mut self, items: &'a [Node]) -> Evaluated<Datum<'a>> {
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            let datum = self.value(item)?;
            list.push(self.own(datum)?);
        }
        self.build(list.len() * VALUE_BYTES)?;
        Ok(Cow::Owned(Value::Array(list)))
    }

    fn map(&mut self, pairs: &'a [(Node, Node)]) -> Evaluated<Datum<'a>> {
        let mut map = Map::new();
        for (key_node, value_node) in pairs {
            let key = self.value(key_node)?;
            let Value::String(key) = self.own(key)? else {
                return Err(unfit("a key must be text", &key_node.at));
            };
            let value = self.value(value_node)?;
            self.build(VALUE_BYTES)?;
            map.insert(key, self.own(value)?);
        }
        Ok(Cow::Owned(Value::Object(map)))
    }

    fn member(&mut self, base: &'a Node, accesses: &'a [Access], at: &Range<usize>) -> Evaluated<Datum<'a>> {
        let mut datum = self.value(base)?;
        for access in accesses {
            datum = match access {
                Access::Key(key) => inside(datum, key),
                Access::Index(node) => match &*self.value(node)? {
                    Value::String(name) => inside(datum, &Key::Name(name.clone())),
                    Value::Number(number) => {
                        position(number.as_i64(), &datum).and_then(|at| inside(datum, &Key::Position(at)))
                    }
                    other => {
                        let message = format!("expected a name or a position, found {}", kind(other));
                        return Err(unfit(message, &node.at));
                    }
                },
                Access::Slice(start, stop) => Some(self.slice(datum, start.as_ref(), stop.as_ref(), at)?),
            }
            .ok_or_else(|| self.missing(at))?;
        }
        Ok(datum)
    }

    /// From start up to, not including, stop; a negative bound counts from the end.
    fn slice(
        &mut self,
        datum: Datum<'a>,
        start: Option<&'a Node>,
        stop: Option<&'a Node>,
        at: &Range<usize>,
    ) -> Evaluated<Datum<'a>> {
        let length = match &*datum {
            Value::String(text) => text.chars().count(),
            Value::Array(list) => list.len(),
            other => {
                return Err(unfit(format!("expected text or a list to slice, found {}", kind(other)), at));
            }
        };
        let start = self.bound(start, length, 0)?;
        let count = self.bound(stop, length, length)?.saturating_sub(start);
        self.burn(count)?;
        let sliced = match &*datum {
            Value::String(text) => {
                self.build(text.len())?;
                Value::String(text.chars().skip(start).take(count).collect())
            }
            Value::Array(list) => {
                let mut items = Vec::new();
                for item in list.iter().skip(start).take(count) {
                    items.push(self.own(Cow::Borrowed(item))?);
                }
                Value::Array(items)
            }
            _ => Value::Null,
        };
        Ok(Cow::Owned(sliced))
    }

    fn bound(&mut self, node: Option<&'a Node>, length: usize, otherwise: usize) -> Evaluated<usize> {
        let Some(node) = node else { return Ok(otherwise) };
        let datum = self.value(node)?;
        let Some(bound) = datum.as_i64() else {
            return Err(unfit(format!("expected an integer, found {}", kind(&datum)), &node.at));
        };
        let length = length as i64;
        let from_start = if bound < 0 { length.saturating_add(bound) } else { bound };
        Ok(from_start.clamp(0, length) as usize)
    }

    fn piped(&mut self, base: &'a Node, stages: &'a [Stage]) -> Evaluated<Datum<'a>> {
        // Only a path, or a filter such as `first`, can lack a value that a later stage then stands in for.
        let mut may_lack = matches!(base.kind, Kind::Path(_) | Kind::Member(..));
        let mut current = self.value(base);
        for stage in stages {
            let input = match current {
                Ok(datum) => Some(datum),
                Err(EvaluationError::Missing { .. }) if may_lack && accepts_missing(stage) => None,
                Err(error) => return Err(error),
            };
            current = match stage {
                Stage::Filter { filter, arguments, at } => {
                    match filter::arguments(self, filter, input.is_some(), arguments) {
                        Err(error) if !filter.accepts_missing => return Err(error),
                        Err(error) => Err(error),
                        Ok(arguments) => filter::apply(self, filter, input, arguments, at),
                    }
                }
                Stage::Test { test, argument, negated, at } => {
                    let argument = argument.as_ref().map(|node| self.value(node)).transpose()?;
                    let holds = test::holds(self, test, input.as_deref(), argument.as_deref(), at)?;
                    Ok(boolean(holds != *negated))
                }
            };
            may_lack = true;
        }
        current
    }

    fn negative(&mut self, operand: &'a Node) -> Evaluated<Datum<'a>> {
        let datum = self.value(operand)?;
        let Value::Number(number) = &*datum else {
            return Err(unfit(format!("expected a number after `-`, found {}", kind(&datum)), &operand.at));
        };
        let negative = match Numeric::of(number) {
            Numeric::Integer(integer) => Numeric::Integer(-integer),
            Numeric::Float(float) => Numeric::Float(-float),
        };
        let number = negative.to_number().map_err(|message| unfit(message, &operand.at))?;
        Ok(Cow::Owned(Value::Number(number)))
    }

    /// The first operand that settles `and` or `or`; the last when none does.
    fn first_where(&mut self, nodes: &'a [Node], truth: bool) -> Evaluated<Datum<'a>> {
        let mut datum = boolean(!truth);
        for node in nodes {
            datum = self.value(node)?;
            if is_true(&datum) == truth {
                break;
            }
        }
        Ok(datum)
    }

    fn chain(
        &mut self,
        first: &'a Node,
        rest: &'a [(Operator, Node)],
        at: &Range<usize>,
    ) -> Evaluated<Datum<'a>> {
        let mut left = self.value(first)?;
        for (operator, node) in rest {
            let right = self.value(node)?;
            left = Cow::Owned(self.operate(*operator, left, &right, at)?);
        }
        Ok(left)
    }

    fn operate(
        &mut self,
        operator: Operator,
        left: Datum<'a>,
        right: &Value,
        at: &Range<usize>,
    ) -> Evaluated<Value> {
        match (operator, &*left, right) {
            (Operator::Concatenate, _, _) => {
                let mut text = self.text(&left, at)?;
                text.push_str(&self.text(right, at)?);
                Ok(Value::String(text))
            }
            (_, Value::Number(a), Value::Number(b)) => {
                calculate(operator, a, b).map(Value::Number).map_err(|message| unfit(message, at))
            }
            (Operator::Add, Value::String(a), Value::String(b)) => {
                self.build(a.len() + b.len())?;
                Ok(Value::String([a.as_str(), b.as_str()].concat()))
            }
            (Operator::Add, Value::Array(_), Value::Array(more)) => {
                let mut list = self.own(left)?;
                let bytes = memory_bytes(right, self.bytes);
                self.build(bytes)?;
                if let Value::Array(list) = &mut list {
                    list.extend(more.iter().cloned());
                }
                Ok(list)
            }
            (_, a, b) => {
                let message = format!("{} does not work on {} and {}", operator.name(), kind(a), kind(b));
                Err(unfit(message, at))
            }
        }
    }

    fn compare(&mut self, first: &'a Node, rest: &'a [(Comparison, Node)]) -> Evaluated<Datum<'a>> {
        let mut left = self.value(first)?;
        for (comparison, node) in rest {
            let right = self.value(node)?;
            if !test::compare(self, *comparison, &left, &right, &node.at)? {
                return Ok(boolean(false));
            }
            left = right;
        }
        Ok(boolean(true))
    }

    pub(super) fn missing(&self, at: &Range<usize>) -> EvaluationError {
        let path = self.source.get(at.clone()).unwrap_or_default().to_owned();
        EvaluationError::Missing { path, range: at.clone() }
    }
}

fn accepts_missing(stage: &Stage) -> bool {
    match stage {
        Stage::Filter { filter, .. } => filter.accepts_missing,
        Stage::Test { test, .. } => test.accepts_missing,
    }
}

pub(super) fn inside<'a>(datum: Datum<'a>, key: &Key) -> Option<Datum<'a>> {
    match (datum, key) {
        (Cow::Borrowed(Value::Object(map)), Key::Name(name)) => map.get(name).map(Cow::Borrowed),
        (Cow::Borrowed(Value::Array(list)), Key::Position(at)) => {
            list.get(usize::try_from(*at).ok()?).map(Cow::Borrowed)
        }
        (Cow::Owned(Value::Object(mut map)), Key::Name(name)) => map.swap_remove(name).map(Cow::Owned),
        (Cow::Owned(Value::Array(mut list)), Key::Position(at)) => {
            let at = usize::try_from(*at).ok()?;
            (at < list.len()).then(|| Cow::Owned(list.swap_remove(at)))
        }
        _ => None,
    }
}

/// A position counted from the start; negative ones count from the end.
fn position(index: Option<i64>, datum: &Value) -> Option<u64> {
    let index = index?;
    let length = datum.as_array()?.len() as i64;
    u64::try_from(if index < 0 { length.checked_add(index)? } else { index }).ok()
}

pub(super) fn boolean(answer: bool) -> Datum<'static> {
    Cow::Owned(Value::Bool(answer))
}

pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(answer) => *answer,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

pub(super) fn unfit(message: impl Into<String>, at: &Range<usize>) -> EvaluationError {
    EvaluationError::Unfit { message: message.into(), range: at.clone() }
}

fn too_large() -> EvaluationError {
    EvaluationError::Limit { limit: "VALUE_BYTES_MAX", max: limits::VALUE_BYTES_MAX as u64 }
}

/// What a value takes beside its text and its children.
pub(super) const VALUE_BYTES: usize = size_of::<Value>();

/// About what the value takes in memory; stops counting above `max`.
fn memory_bytes(value: &Value, max: usize) -> usize {
    let mut bytes = 0_usize;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        bytes += VALUE_BYTES;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(list) => open.extend(list),
            Value::Object(map) => {
                bytes += map.keys().map(|key| key.len() + VALUE_BYTES).sum::<usize>();
                open.extend(map.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        if bytes > max {
            break;
        }
    }
    bytes
}
