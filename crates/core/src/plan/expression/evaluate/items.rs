//! The items of a fan-out: status, result and failure of each.

use super::{EvaluatedValue, EvaluationResult, Evaluator, VALUE_BYTES, inside, json_bytes};
use crate::plan::expression::node::{PathSegment, ReferencePath};
use crate::plan::expression::{EvaluationError, ItemOutcome};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::ops::Range;

impl<'a> Evaluator<'a> {
    /// `steps.<id>.items`: one item is looked up where the path names one; only a list that is read as a whole is built.
    pub(super) fn items(
        &mut self,
        step: &str,
        path: &'a ReferencePath,
        at: &Range<usize>,
    ) -> EvaluationResult<EvaluatedValue<'a>> {
        let scope = self.scope;
        let missing = |known: usize, step| EvaluationError::Missing {
            path: path.text(known),
            range: at.clone(),
            step,
            keys: Vec::new(),
        };
        let count = scope.step_items(step).ok_or_else(|| missing(0, Some(step.to_owned())))?;
        let Some((PathSegment::Position(position), keys)) = path.keys.split_first() else {
            let mut list = Vec::new();
            for item in (0..count).filter_map(|item| scope.step_item(step, item)) {
                self.burn(1)?;
                list.push(self.item(item)?);
            }
            let whole = Cow::Owned(Value::Array(list));
            return if path.keys.is_empty() { Ok(whole) } else { Err(missing(1, None)) };
        };
        let item = usize::try_from(*position).ok().and_then(|item| scope.step_item(step, item));
        let item = item.ok_or_else(|| missing(1, None))?;
        // The result may be large, and is not copied to read it.
        let (mut datum, keys, read) = match (keys.split_first(), item.result) {
            (Some((PathSegment::Name(name), keys)), Some(result)) if name == "result" => {
                (Cow::Borrowed(result), keys, 2)
            }
            _ => (Cow::Owned(self.item(item)?), keys, 1),
        };
        for (position, key) in keys.iter().enumerate() {
            datum = inside(datum, key).ok_or_else(|| missing(read + position + 1, None))?;
        }
        Ok(datum)
    }

    fn item(&mut self, item: ItemOutcome<'_>) -> EvaluationResult<Value> {
        let mut fields = Map::new();
        self.build(3 * VALUE_BYTES)?;
        fields.insert("status".into(), item.status.into());
        if let Some(result) = item.result {
            // Picked, not computed: a list of items may be as large as the results are.
            let bytes = json_bytes(result, self.item_bytes).ok_or_else(EvaluationError::parameters_too_large)?;
            self.item_bytes -= bytes;
            fields.insert("result".into(), result.clone());
        }
        if let Some(failure) = item.failure {
            self.build(failure.message.len())?;
            let (category, message) = (failure.category.as_str(), failure.message.as_str());
            fields.insert("failure".into(), json!({ "category": category, "message": message }));
        }
        Ok(Value::Object(fields))
    }
}
