//! Expressions: parsing, the paths they read, and evaluation. Data is never evaluated as an expression.
//!
//! The language is the expression part of Jinja, without functions and statements. [`token`] splits the source,
//! [`parse`] builds a [`node`] tree of bounded depth and collects the paths it reads, [`evaluate`] walks the tree over
//! borrowed JSON and counts steps and bytes. [`filter`] and [`mod@test`] define all filters and tests.

mod arithmetic;
mod evaluate;
mod filter;
mod node;
mod parse;
mod test;
#[cfg(test)]
mod tests;
mod token;

use super::schema::{JsonTypeSet, types};
use crate::limits;
use crate::tool::ToolFailure;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub(crate) use evaluate::{json_bytes, write_text};
pub(crate) use token::find_close;

/// The values an expression can read. They are looked up only when read.
pub trait ExpressionScope {
    fn inputs(&self) -> Option<&Value>;
    /// The result of a completed step.
    fn step_result(&self, step: &str) -> Option<&Value>;
    fn step_status(&self, step: &str) -> Option<&'static str>;
    /// The number of items of a fan-out that has ended, whatever became of them.
    fn step_items(&self, _step: &str) -> Option<usize> {
        None
    }
    /// How one of them ended.
    fn step_item(&self, _step: &str, _item: usize) -> Option<ItemOutcome<'_>> {
        None
    }
    /// The idempotency key of this call.
    fn key(&self) -> Option<&str> {
        None
    }
    /// In compensations and probes: the result of the step; in `happened`: the result of the probe.
    fn result(&self) -> Option<&Value> {
        None
    }
    /// In compensations and probes: the parameters the step was called with.
    fn parameters(&self) -> Option<&Value> {
        None
    }
    /// In a fan-out: the item and its position.
    fn item(&self) -> Option<(&Value, u32)> {
        None
    }
}

/// How an item of a fan-out ended.
#[derive(Clone, Copy, Debug)]
pub struct ItemOutcome<'a> {
    pub status: &'static str,
    pub result: Option<&'a Value>,
    pub failure: Option<&'a ToolFailure>,
}

/// The roots of paths. Which of them have a value depends on the position of the expression.
pub const ROOTS: [&str; 7] = ["inputs", "steps", "key", "result", "parameters", "item", "index"];

/// A compiled expression. Cloning it is cheap.
#[derive(Clone)]
pub struct Expression {
    pub source: Arc<str>,
    /// The paths it reads, such as `["steps", "charge", "result", "id"]`. Each path once, in source order.
    pub reads: Arc<[Vec<String>]>,
    /// Those among them without which it never has a value. `default`, `is defined`, a branch of `if` and the later
    /// operands of `and` and `or` can do without.
    pub needed: Arc<[Vec<String>]>,
    root: Arc<node::ExpressionNode>,
}

impl Expression {
    pub fn compile(source: &str) -> Result<Expression, ExpressionError> {
        if source.len() > limits::EXPRESSION_BYTES_MAX {
            let message =
                format!("the expression has {} bytes, more than {}", source.len(), limits::EXPRESSION_BYTES_MAX);
            return Err(ExpressionError { message, range: None, hint: None });
        }
        let (root, reads) = parse::parse(source)?;
        let needed: Vec<Vec<String>> = root.needed().iter().map(|path| path.read()).collect();
        Ok(Expression { source: source.into(), reads: reads.into(), needed: needed.into(), root: Arc::new(root) })
    }

    /// Evaluates the expression in this scope. A missing value is an error, never null.
    pub fn evaluate(&self, scope: &dyn ExpressionScope) -> Result<Value, EvaluationError> {
        Ok(self.look_up(scope)?.0.into_owned())
    }

    /// Like [`Expression::evaluate`], with the bytes of the value as JSON. A value that is only picked is not copied.
    pub(crate) fn look_up<'a>(
        &'a self,
        scope: &'a dyn ExpressionScope,
    ) -> Result<(Cow<'a, Value>, usize), EvaluationError> {
        evaluate::evaluate(&self.root, &self.source, scope)
    }

    /// Like [`Expression::evaluate`], and anything but true or false is an error.
    pub fn evaluate_bool(&self, scope: &dyn ExpressionScope) -> Result<bool, EvaluationError> {
        evaluate::evaluate_bool(&self.root, &self.source, scope)
    }

    /// The path, if the expression is only a path: `inputs.sku`.
    pub fn path(&self) -> Option<&[String]> {
        match self.root.kind {
            node::ExpressionKind::Path(_) => self.reads.first().map(Vec::as_slice),
            _ => None,
        }
    }

    /// The types its value can have, if they are clear from the source.
    pub fn types(&self) -> Option<JsonTypeSet> {
        self.root.types(&|_| None)
    }

    /// The same, where `known` returns the schema of a path, if any.
    pub fn types_within(&self, known: &dyn Fn(&[String]) -> Option<Value>) -> Option<JsonTypeSet> {
        self.root.types(&|path| known(path).map(|schema| types(&schema)))
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.source).finish()
    }
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.source == other.source
    }
}

/// Why a text is not a valid expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    pub message: String,
    /// The bytes of the source to underline.
    pub range: Option<Range<usize>>,
    /// What to write instead, if known.
    pub hint: Option<String>,
}

/// Why an expression has no value. Messages name types and paths, never the data itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// A value it reads is missing.
    #[error("{path} is missing{}", known_keys(keys))]
    Missing {
        path: String,
        range: Range<usize>,
        /// The keys that the object it was looked up in has.
        keys: Vec<String>,
        /// The step that has no result at all, if that is why.
        step: Option<String>,
    },
    /// A value it reads has the wrong type.
    #[error("{message}")]
    Unfit { message: String, range: Range<usize> },
    /// It would take too many steps or grow too large.
    #[error("the expression exceeds {limit}, which is {max}")]
    Limit { limit: &'static str, max: u64 },
}

impl EvaluationError {
    /// What an expression computes is too large.
    pub(crate) fn too_large() -> EvaluationError {
        EvaluationError::Limit { limit: "COMPUTED_BYTES_MAX", max: limits::COMPUTED_BYTES_MAX as u64 }
    }

    /// What it picks is too large, or all parameters together are.
    pub(crate) fn parameters_too_large() -> EvaluationError {
        EvaluationError::Limit { limit: "PARAMETERS_BYTES_MAX", max: limits::PARAMETERS_BYTES_MAX as u64 }
    }
}

fn known_keys(keys: &[String]) -> String {
    if keys.is_empty() { String::new() } else { format!("; there are: {}", keys.join(", ")) }
}
