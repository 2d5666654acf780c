//! Programs the operator named, to be started when somebody must be told.

use super::tools::Reply;

pub trait Bell: Send + Sync {
    /// The names the operator gave them; nothing else can be started.
    fn names(&self) -> Vec<String>;

    /// Starts one with this on standard input and waits for its end; why it went wrong, if it did.
    fn ring(&self, name: &str, input: Vec<u8>) -> Reply<'_, Result<(), String>>;
}

/// Where the operator named nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silence;

impl Bell for Silence {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn ring(&self, name: &str, _input: Vec<u8>) -> Reply<'_, Result<(), String>> {
        Box::pin(std::future::ready(Err(format!("there is no command {name:?}"))))
    }
}
