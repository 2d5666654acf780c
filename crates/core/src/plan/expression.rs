//! Expressions: what they may say, what they read, what they give. Data is never evaluated a second time.
//!
//! The language is the expression part of Jinja, without functions and statements. [`token`] reads words,
//! [`parse`] builds a [`node`] tree of bounded depth and notes every path it reads, [`evaluate`] walks the tree over
//! borrowed JSON while counting steps and bytes. [`filter`] and [`mod@test`] list all names there are.

mod arithmetic;
mod evaluate;
mod filter;
mod node;
mod parse;
mod test;
#[cfg(test)]
mod tests;
mod token;

use super::schema::Types;
use crate::limits;
use serde_json::Value;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub(crate) use evaluate::{json_bytes, write_text};
pub(crate) use token::find_close;

/// What an expression can see. Only what it reads is looked up.
pub trait Scope {
    fn inputs(&self) -> Option<&Value>;
    /// The result of a completed step.
    fn step_result(&self, step: &str) -> Option<&Value>;
    fn step_status(&self, step: &str) -> Option<&'static str>;
    /// The idempotency key of this call.
    fn key(&self) -> Option<&str>;
    /// In compensations and probes: the result of the step; in `happened`: the result of the probe.
    fn result(&self) -> Option<&Value>;
    /// In compensations and probes: the parameters the step was called with.
    fn parameters(&self) -> Option<&Value>;
    /// In a fan-out: the item and its position.
    fn item(&self) -> Option<(&Value, u32)>;
}

/// The names an expression can begin a path with. Which of them have a value depends on the place.
pub const ROOTS: [&str; 7] = ["inputs", "steps", "key", "result", "parameters", "item", "index"];

/// A compiled expression. Cloning it is cheap.
#[derive(Clone)]
pub struct Expression {
    pub source: Arc<str>,
    /// What it reads, as dotted paths: `["steps", "charge", "result", "id"]`. Each path once, in source order.
    pub reads: Arc<[Vec<String>]>,
    root: Arc<node::Node>,
}

impl Expression {
    pub fn compile(source: &str) -> Result<Expression, ExpressionError> {
        if source.len() > limits::EXPRESSION_BYTES_MAX {
            let message = format!(
                "the expression has {} bytes, more than {}",
                source.len(),
                limits::EXPRESSION_BYTES_MAX
            );
            return Err(ExpressionError { message, range: None, hint: None });
        }
        let (root, reads) = parse::parse(source)?;
        Ok(Expression { source: source.into(), reads: reads.into(), root: Arc::new(root) })
    }

    /// What the expression gives in this scope. A missing value is an error, never null.
    pub fn evaluate(&self, scope: &dyn Scope) -> Result<Value, EvaluationError> {
        evaluate::evaluate(&self.root, &self.source, scope)
    }

    /// Like [`Expression::evaluate`], and anything but true or false is an error.
    pub fn evaluate_bool(&self, scope: &dyn Scope) -> Result<bool, EvaluationError> {
        evaluate::evaluate_bool(&self.root, &self.source, scope)
    }

    /// The path, if the expression is nothing but one: `inputs.sku`.
    pub fn path(&self) -> Option<&[String]> {
        match self.root.kind {
            node::Kind::Path(_) => self.reads.first().map(Vec::as_slice),
            _ => None,
        }
    }

    /// The types its value can have, where that is plain from how it is written.
    pub fn types(&self) -> Option<Types> {
        self.root.types()
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

/// Why a text is not an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    pub message: String,
    /// The bytes of the source to underline.
    pub range: Option<Range<usize>>,
    /// What to write instead.
    pub hint: Option<String>,
}

/// Why an expression gives no value. Messages name types and paths, never the data itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvaluationError {
    /// Something it reads is not there.
    #[error("{path} is missing")]
    Missing { path: String, range: Range<usize> },
    /// What it reads is there and does not fit.
    #[error("{message}")]
    Unfit { message: String, range: Range<usize> },
    /// It would take too many steps or grow too large.
    #[error("the expression exceeds {limit}, which is {max}")]
    Limit { limit: &'static str, max: u64 },
}
