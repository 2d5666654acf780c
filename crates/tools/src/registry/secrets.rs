//! Where the values of secrets come from.

use rutter_core::port::tools::Reply;
use rutter_core::redact::Redactor;
use rutter_core::tool::Failure;
use serde_json::Value;

pub trait Secrets: Send + Sync {
    /// The value with every reference to a secret replaced by the secret.
    fn fill(&self, value: &Value) -> Reply<'_, Result<Value, Failure>>;

    /// Knows every secret that was filled in so far.
    fn redactor(&self) -> Redactor;
}
