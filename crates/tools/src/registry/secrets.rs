//! Where the values of secrets come from.

use rutter_core::port::tools::PortFuture;
use rutter_core::redact::Redactor;
use rutter_core::tool::ToolFailure;
use serde_json::Value;

pub trait SecretResolver: Send + Sync {
    /// The value with every reference to a secret replaced by the secret.
    fn fill(&self, value: &Value) -> PortFuture<'_, Result<Value, ToolFailure>>;

    /// Knows every secret that was filled in so far.
    fn redactor(&self) -> Redactor;
}
