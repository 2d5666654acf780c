//! A tool in this process that does nothing.

use rutter_core::hash::Hash;
use rutter_core::id::ToolName;
use rutter_core::port::tools::{
    Admission, CallPermit, CallReturn, CatalogSnapshot, PermitWaiter, PortFuture, ServerSelection, ToolCallId,
    ToolCallRequest, ToolGateway,
};
use rutter_core::redact::Redactor;
use rutter_core::tool::report::ServerReport;
use rutter_core::tool::{CallOutcome, ToolCatalog};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) struct IdleTools {
    tools: ToolCatalog,
    result: Arc<Value>,
    redactor: Redactor,
    hangs: bool,
}

impl IdleTools {
    pub(crate) fn new() -> IdleTools {
        let tools = json!({ "tools": [{ "name": "bench.idle", "safety": "once" }] });
        let tools = ToolCatalog::from_json(&tools).expect("the catalogue is valid");
        IdleTools { tools, result: Arc::new(json!({ "ok": true })), redactor: Redactor::standard(), hangs: false }
    }

    /// A tool that accepts calls and never responds.
    pub(super) fn that_hangs() -> IdleTools {
        IdleTools { hangs: true, ..IdleTools::new() }
    }
}

impl ToolGateway for IdleTools {
    fn catalog(&self, _servers: ServerSelection) -> PortFuture<'_, CatalogSnapshot> {
        let tools = self.tools.clone();
        Box::pin(async move { CatalogSnapshot { tools, absent: Vec::new() } })
    }

    fn search(&self, _words: &str, _limit: usize) -> Vec<ToolName> {
        Vec::new()
    }

    fn definition(&self, tool: &ToolName) -> Option<Hash> {
        self.tools.tools.get(tool).map(|tool| tool.definition)
    }

    fn admit(&self, _tool: &ToolName, _applicant: &Arc<dyn PermitWaiter>) -> Admission {
        Admission::Granted(CallPermit::unlimited())
    }

    fn call(&self, _call: ToolCallRequest, _permit: CallPermit) -> PortFuture<'_, CallReturn> {
        let (result, hangs) = (Arc::clone(&self.result), self.hangs);
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            CallReturn::Outcome(CallOutcome::Done { result, cost_micros: 0 })
        })
    }

    fn cancel(&self, _call: &ToolCallId) {}

    fn report(&self) -> Vec<ServerReport> {
        Vec::new()
    }

    fn reset(&self, _server: &str) -> bool {
        false
    }

    fn redactor(&self) -> Redactor {
        self.redactor.clone()
    }
}
