//! Programs of the operator that are run to deliver alerts.

use super::tools::PortFuture;

pub trait AlertCommands: Send + Sync {
    /// The configured names; nothing else can be run.
    fn names(&self) -> Vec<String>;

    /// Runs a command with this standard input and waits for its end. The error says why it failed.
    fn run(&self, name: &str, input: Vec<u8>) -> PortFuture<'_, Result<(), String>>;
}

/// For an operator who has configured no alert commands.
#[derive(Clone, Copy, Debug)]
pub struct NoAlertCommands;

impl AlertCommands for NoAlertCommands {
    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn run(&self, name: &str, _input: Vec<u8>) -> PortFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Err(format!("there is no command {name:?}"))))
    }
}
