//! Programs the operator named, to be started when somebody must be told.

use super::tools::Reply;

pub trait Bell: Send + Sync {
    /// The names the operator gave them; nothing else can be started.
    fn names(&self) -> Vec<String>;

    /// Starts one with this on standard input and waits for its end; why it went wrong, if it did.
    fn ring(&self, name: &str, input: Vec<u8>) -> Reply<'_, Result<(), String>>;
}
