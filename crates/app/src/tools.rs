//! The tools that plans can call: list them, search them, read the health of their servers.

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::rights::Operation;
use rutter_core::id::ToolName;
use rutter_core::port::tools::{CatalogSnapshot, ServerSelection};
use rutter_core::tool::report::ServerReport;

impl App {
    /// The tools of some servers; those that are not running are started.
    pub async fn catalog(&self, caller: &Principal, servers: ServerSelection) -> Result<CatalogSnapshot, AppError> {
        self.require(caller, Operation::ListTools)?;
        Ok(self.tools.catalog(servers).await)
    }

    /// Known tools that fit some words, best first.
    pub fn search_tools(&self, words: &str, limit: usize) -> Vec<ToolName> {
        self.tools.search(words, limit)
    }

    /// The state of every server, without calling it.
    pub fn servers(&self) -> Vec<ServerReport> {
        self.tools.report()
    }

    /// Closes the circuit breaker of a server.
    pub fn reset_breaker(&self, caller: &Principal, server: &str) -> Result<(), AppError> {
        self.require(caller, Operation::ResetBreaker)?;
        match self.tools.reset(server) {
            true => Ok(()),
            false => Err(AppError::missing("server", server)),
        }
    }
}
