//! Expressions: what they may say, what they read, what they give. Data is never evaluated a second time.

use serde_json::Value;
use std::sync::Arc;

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

/// A compiled expression.
#[derive(Clone, Debug)]
pub struct Expression {
    pub source: Arc<str>,
    /// What it reads, as dotted paths: `["steps", "charge", "result", "id"]`.
    pub reads: Vec<Vec<String>>,
}
