//! Evaluates an expression over borrowed JSON. Steps and bytes are counted before they are used.

mod items;

use super::arithmetic::{NumericValue, calculate};
use super::node::{
    BinaryOperator, Comparison, ExpressionKind, ExpressionNode, MemberAccess, PathRoot, PathSegment, PipeStage,
    ReferencePath,
};
use super::{EvaluationError, ExpressionScope, filter, test};
use crate::limits;
use crate::text::cut_bytes;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;

/// An intermediate value: borrowed from the scope as long as it is unchanged.
pub(super) type EvaluatedValue<'a> = Cow<'a, Value>;
pub(super) type EvaluationResult<T> = Result<T, EvaluationError>;

/// The value and its bytes as JSON. What was only picked from the scope may be as large as any parameters; what was
/// computed may not.
pub(super) fn evaluate<'a>(
    root: &'a ExpressionNode,
    source: &'a str,
    scope: &'a dyn ExpressionScope,
) -> EvaluationResult<(EvaluatedValue<'a>, usize)> {
    let datum = Evaluator::new(source, scope).value(root)?;
    let is_picked = matches!(datum, Cow::Borrowed(_)) || root.only_picks();
    let bytes = match is_picked {
        true => json_bytes(&datum, limits::PARAMETERS_BYTES_MAX).ok_or_else(EvaluationError::parameters_too_large)?,
        false => json_bytes(&datum, limits::COMPUTED_BYTES_MAX).ok_or_else(EvaluationError::too_large)?,
    };
    Ok((datum, bytes))
}

pub(super) fn evaluate_bool(
    root: &ExpressionNode,
    source: &str,
    scope: &dyn ExpressionScope,
) -> EvaluationResult<bool> {
    match *Evaluator::new(source, scope).value(root)? {
        Value::Bool(answer) => Ok(answer),
        ref other => Err(unfit(format!("expected true or false, found {}", kind(other)), &root.at)),
    }
}

/// The size of the value as compact JSON; `None` if it is more than `max` bytes.
pub(crate) fn json_bytes(value: &Value, max: usize) -> Option<usize> {
    struct ByteCounter {
        bytes: usize,
        max: usize,
    }
    impl std::io::Write for ByteCounter {
        fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
            self.bytes = self.bytes.saturating_add(piece.len());
            match self.bytes > self.max {
                true => Err(std::io::Error::other("too large")),
                false => Ok(piece.len()),
            }
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteCounter { bytes: 0, max };
    serde_json::to_writer(&mut count, value).ok()?;
    Some(count.bytes)
}

/// Writes a value as text: text as it is, everything else as compact JSON. Null has no text.
pub(crate) fn write_text(value: &Value, text: &mut String) -> Result<(), &'static str> {
    match value {
        Value::Null => return Err("null cannot become text; give a replacement with `| default(…, true)`"),
        Value::String(string) => text.push_str(string),
        other => text.push_str(&other.to_string()),
    }
    Ok(())
}

/// Bytes that one evaluation may build in all, intermediate values included.
const WORK_BYTES_MAX: usize = 16 * limits::COMPUTED_BYTES_MAX;

pub(super) struct Evaluator<'a> {
    source: &'a str,
    scope: &'a dyn ExpressionScope,
    fuel: u64,
    bytes: usize,
    /// Bytes of JSON that lists of items may still have.
    item_bytes: usize,
}

impl<'a> Evaluator<'a> {
    fn new(source: &'a str, scope: &'a dyn ExpressionScope) -> Evaluator<'a> {
        let (fuel, item_bytes) = (limits::EXPRESSION_FUEL, limits::PARAMETERS_BYTES_MAX);
        Evaluator { source, scope, fuel, bytes: WORK_BYTES_MAX, item_bytes }
    }

    /// Counts steps: one for each node, and one for each item that a filter visits.
    pub(super) fn burn(&mut self, steps: usize) -> EvaluationResult<()> {
        match self.fuel.checked_sub(steps as u64) {
            Some(left) => self.fuel = left,
            None => {
                return Err(EvaluationError::Limit { limit: "EXPRESSION_FUEL", max: limits::EXPRESSION_FUEL });
            }
        }
        Ok(())
    }

    /// Counts bytes about to be built.
    pub(super) fn build(&mut self, bytes: usize) -> EvaluationResult<()> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(EvaluationError::too_large)?;
        Ok(())
    }

    /// Makes the value owned, counting the copy.
    pub(super) fn own(&mut self, datum: EvaluatedValue<'_>) -> EvaluationResult<Value> {
        if let Cow::Borrowed(value) = &datum {
            let bytes = memory_bytes(value, self.bytes);
            self.build(bytes)?;
        }
        Ok(datum.into_owned())
    }

    /// Counts the bytes the value has as JSON.
    pub(super) fn build_json(&mut self, value: &Value) -> EvaluationResult<()> {
        let bytes = json_bytes(value, self.bytes).ok_or_else(EvaluationError::too_large)?;
        self.build(bytes)
    }

    pub(super) fn text(&mut self, value: &Value, at: &Range<usize>) -> EvaluationResult<String> {
        self.build_json(value)?;
        let mut text = String::new();
        write_text(value, &mut text).map_err(|message| unfit(message, at))?;
        Ok(text)
    }

    pub(super) fn value(&mut self, node: &'a ExpressionNode) -> EvaluationResult<EvaluatedValue<'a>> {
        self.burn(1)?;
        match &node.kind {
            ExpressionKind::Literal(value) => Ok(Cow::Borrowed(value)),
            ExpressionKind::Path(path) => self.path(path, &node.at),
            ExpressionKind::List(items) => self.list(items),
            ExpressionKind::Map(pairs) => self.map(pairs),
            ExpressionKind::Member(base, accesses) => self.member(base, accesses, &node.at),
            ExpressionKind::Piped(base, stages) => self.piped(base, stages),
            ExpressionKind::Negative(operand) => self.negative(operand),
            ExpressionKind::Not(operand) => Ok(boolean(!is_true(&*self.value(operand)?))),
            ExpressionKind::All(nodes) => self.first_where(nodes, false),
            ExpressionKind::Any(nodes) => self.first_where(nodes, true),
            ExpressionKind::Chain(first, rest) => self.chain(first, rest, &node.at),
            ExpressionKind::Compare(first, rest) => self.compare(first, rest),
            ExpressionKind::Choose(choice) => match is_true(&*self.value(&choice.condition)?) {
                true => self.value(&choice.yes),
                false => self.value(&choice.no),
            },
        }
    }

    fn path(&mut self, path: &'a ReferencePath, at: &Range<usize>) -> EvaluationResult<EvaluatedValue<'a>> {
        let scope = self.scope;
        let base = match &path.root {
            PathRoot::Inputs => scope.inputs().map(Cow::Borrowed),
            PathRoot::StepResult(step) => scope.step_result(step).map(Cow::Borrowed),
            PathRoot::StepItems(step) => return self.items(step, path, at),
            PathRoot::StepStatus(step) => scope.step_status(step).map(|status| Cow::Owned(Value::from(status))),
            PathRoot::Key => scope.key().map(|key| Cow::Owned(Value::from(key))),
            PathRoot::Result => scope.result().map(Cow::Borrowed),
            PathRoot::Parameters => scope.parameters().map(Cow::Borrowed),
            PathRoot::Item => scope.item().map(|(item, _)| Cow::Borrowed(item)),
            PathRoot::Index => scope.item().map(|(_, index)| Cow::Owned(Value::from(index))),
        };
        let missing = |known: usize, step: Option<String>, keys: Vec<String>| EvaluationError::Missing {
            path: path.text(known),
            range: at.clone(),
            step,
            keys,
        };
        let mut datum = base.ok_or_else(|| missing(0, path.root.step().map(str::to_owned), Vec::new()))?;
        for (position, key) in path.keys.iter().enumerate() {
            datum = match datum {
                Cow::Borrowed(value) => {
                    inside(Cow::Borrowed(value), key).ok_or_else(|| missing(position + 1, None, keys_of(value)))?
                }
                owned => inside(owned, key).ok_or_else(|| missing(position + 1, None, Vec::new()))?,
            };
        }
        Ok(datum)
    }

    fn list(&mut self, items: &'a [ExpressionNode]) -> EvaluationResult<EvaluatedValue<'a>> {
        let mut list = Vec::with_capacity(items.len());
        for item in items {
            let datum = self.value(item)?;
            list.push(self.own(datum)?);
        }
        self.build(list.len() * VALUE_BYTES)?;
        Ok(Cow::Owned(Value::Array(list)))
    }

    fn map(&mut self, pairs: &'a [(ExpressionNode, ExpressionNode)]) -> EvaluationResult<EvaluatedValue<'a>> {
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

    fn member(
        &mut self,
        base: &'a ExpressionNode,
        accesses: &'a [MemberAccess],
        at: &Range<usize>,
    ) -> EvaluationResult<EvaluatedValue<'a>> {
        let mut datum = self.value(base)?;
        for access in accesses {
            datum = match access {
                MemberAccess::Key(key) => inside(datum, key),
                MemberAccess::Index(node) => match &*self.value(node)? {
                    Value::String(name) => inside(datum, &PathSegment::Name(name.clone())),
                    Value::Number(number) => {
                        position(number.as_i64(), &datum).and_then(|at| inside(datum, &PathSegment::Position(at)))
                    }
                    other => {
                        let message = format!("expected a name or a position, found {}", kind(other));
                        return Err(unfit(message, &node.at));
                    }
                },
                MemberAccess::Slice(start, stop) => Some(self.slice(datum, start.as_ref(), stop.as_ref(), at)?),
            }
            .ok_or_else(|| self.missing(at))?;
        }
        Ok(datum)
    }

    /// From start up to, not including, stop; a negative bound counts from the end.
    fn slice(
        &mut self,
        datum: EvaluatedValue<'a>,
        start: Option<&'a ExpressionNode>,
        stop: Option<&'a ExpressionNode>,
        at: &Range<usize>,
    ) -> EvaluationResult<EvaluatedValue<'a>> {
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
                let taken: usize = text.chars().skip(start).take(count).map(char::len_utf8).sum();
                self.build(taken)?;
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

    fn bound(&mut self, node: Option<&'a ExpressionNode>, length: usize, otherwise: usize) -> EvaluationResult<usize> {
        let Some(node) = node else { return Ok(otherwise) };
        let datum = self.value(node)?;
        let Some(bound) = datum.as_i64() else {
            return Err(unfit(format!("expected an integer, found {}", kind(&datum)), &node.at));
        };
        let length = length as i64;
        let from_start = if bound < 0 { length.saturating_add(bound) } else { bound };
        Ok(from_start.clamp(0, length) as usize)
    }

    fn piped(&mut self, base: &'a ExpressionNode, stages: &'a [PipeStage]) -> EvaluationResult<EvaluatedValue<'a>> {
        // Only a path, or a filter such as `first`, can be missing a value that a later stage then replaces.
        let mut may_lack = matches!(base.kind, ExpressionKind::Path(_) | ExpressionKind::Member(..));
        let mut current = self.value(base);
        for stage in stages {
            let input = match current {
                Ok(datum) => Some(datum),
                Err(EvaluationError::Missing { .. }) if may_lack && stage.accepts_missing() => None,
                Err(error) => return Err(error),
            };
            current = match stage {
                PipeStage::Filter { filter, arguments, at } => {
                    match filter::arguments(self, filter, input.is_some(), arguments) {
                        Err(error) if !filter.accepts_missing => return Err(error),
                        Err(error) => Err(error),
                        Ok(arguments) => filter::apply(self, filter, input, arguments, at),
                    }
                }
                PipeStage::Test { test, argument, negated, at } => {
                    let argument = argument.as_ref().map(|node| self.value(node)).transpose()?;
                    let holds = test::holds(self, test, input.as_deref(), argument.as_deref(), at)?;
                    Ok(boolean(holds != *negated))
                }
            };
            may_lack = true;
        }
        current
    }

    fn negative(&mut self, operand: &'a ExpressionNode) -> EvaluationResult<EvaluatedValue<'a>> {
        let datum = self.value(operand)?;
        let Value::Number(number) = &*datum else {
            return Err(unfit(format!("expected a number after `-`, found {}", kind(&datum)), &operand.at));
        };
        let negative = match NumericValue::of(number) {
            NumericValue::Integer(integer) => NumericValue::Integer(-integer),
            NumericValue::Float(float) => NumericValue::Float(-float),
        };
        let number = negative.to_number().map_err(|message| unfit(message, &operand.at))?;
        Ok(Cow::Owned(Value::Number(number)))
    }

    /// The first operand that decides `and` or `or`; the last if none does.
    fn first_where(&mut self, nodes: &'a [ExpressionNode], truth: bool) -> EvaluationResult<EvaluatedValue<'a>> {
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
        first: &'a ExpressionNode,
        rest: &'a [(BinaryOperator, ExpressionNode)],
        at: &Range<usize>,
    ) -> EvaluationResult<EvaluatedValue<'a>> {
        let mut left = self.value(first)?;
        for (operator, node) in rest {
            let right = self.value(node)?;
            left = Cow::Owned(self.operate(*operator, left, &right, at)?);
        }
        Ok(left)
    }

    fn operate(
        &mut self,
        operator: BinaryOperator,
        left: EvaluatedValue<'a>,
        right: &Value,
        at: &Range<usize>,
    ) -> EvaluationResult<Value> {
        match (operator, &*left, right) {
            (BinaryOperator::Concatenate, _, _) => {
                let mut text = self.text(&left, at)?;
                text.push_str(&self.text(right, at)?);
                Ok(Value::String(text))
            }
            (_, Value::Number(a), Value::Number(b)) => {
                calculate(operator, a, b).map(Value::Number).map_err(|message| unfit(message, at))
            }
            (BinaryOperator::Add, Value::String(a), Value::String(b)) => {
                self.build(a.len() + b.len())?;
                Ok(Value::String([a.as_str(), b.as_str()].concat()))
            }
            (BinaryOperator::Add, Value::Array(_), Value::Array(more)) => {
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

    fn compare(
        &mut self,
        first: &'a ExpressionNode,
        rest: &'a [(Comparison, ExpressionNode)],
    ) -> EvaluationResult<EvaluatedValue<'a>> {
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
        EvaluationError::Missing { path, range: at.clone(), step: None, keys: Vec::new() }
    }
}

pub(super) fn inside<'a>(datum: EvaluatedValue<'a>, key: &PathSegment) -> Option<EvaluatedValue<'a>> {
    match (datum, key) {
        (Cow::Borrowed(Value::Object(map)), PathSegment::Name(name)) => map.get(name).map(Cow::Borrowed),
        (Cow::Borrowed(Value::Array(list)), PathSegment::Position(at)) => {
            list.get(usize::try_from(*at).ok()?).map(Cow::Borrowed)
        }
        (Cow::Owned(Value::Object(mut map)), PathSegment::Name(name)) => map.swap_remove(name).map(Cow::Owned),
        (Cow::Owned(Value::Array(mut list)), PathSegment::Position(at)) => {
            let at = usize::try_from(*at).ok()?;
            (at < list.len()).then(|| Cow::Owned(list.swap_remove(at)))
        }
        _ => None,
    }
}

/// The first keys of an object, for a message.
pub(super) fn keys_of(value: &Value) -> Vec<String> {
    const KEYS_LISTED_MAX: usize = 20;
    const KEY_BYTES_MAX: usize = 64;
    let keys = value.as_object().into_iter().flat_map(Map::keys).take(KEYS_LISTED_MAX);
    keys.map(|key| cut_bytes(key, KEY_BYTES_MAX).escape_debug().to_string()).collect()
}

/// A position counted from the start; negative ones count from the end.
fn position(index: Option<i64>, datum: &Value) -> Option<u64> {
    let index = index?;
    let length = datum.as_array()?.len() as i64;
    u64::try_from(if index < 0 { length.checked_add(index)? } else { index }).ok()
}

pub(super) fn boolean(answer: bool) -> EvaluatedValue<'static> {
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

/// The memory of a value without its text and its children.
pub(super) const VALUE_BYTES: usize = size_of::<Value>();

/// The approximate memory of a value; stops counting above `max`.
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
