//! A tool in this process that does nothing.

use rutter_core::hash::Hash;
use rutter_core::id::ToolName;
use rutter_core::port::tools::{
    Admission, Applicant, Berth, Call, CallId, Catalog, Reply, Return, Servers, Tools,
};
use rutter_core::redact::Redactor;
use rutter_core::tool::report::ServerReport;
use rutter_core::tool::{Outcome, ToolCatalog};
use serde_json::{Value, json};
use std::sync::Arc;

pub(in crate::bench) struct Idle {
    tools: ToolCatalog,
    result: Arc<Value>,
    redactor: Redactor,
    hangs: bool,
}

impl Idle {
    pub(in crate::bench) fn new() -> Idle {
        let tools = json!({ "tools": [{ "name": "bench.idle", "safety": "once" }] });
        let tools = ToolCatalog::from_json(&tools).expect("the catalogue is ours");
        Idle { tools, result: Arc::new(json!({ "ok": true })), redactor: Redactor::standard(), hangs: false }
    }

    /// One that takes calls and never answers.
    pub(super) fn that_hangs() -> Idle {
        Idle { hangs: true, ..Idle::new() }
    }
}

impl Tools for Idle {
    fn catalog(&self, _servers: Servers) -> Reply<'_, Catalog> {
        let tools = self.tools.clone();
        Box::pin(async move { Catalog { tools, absent: Vec::new() } })
    }

    fn search(&self, _words: &str, _limit: usize) -> Vec<ToolName> {
        Vec::new()
    }

    fn definition(&self, tool: &ToolName) -> Option<Hash> {
        self.tools.tools.get(tool).map(|tool| tool.definition)
    }

    fn admit(&self, _tool: &ToolName, _applicant: &Arc<dyn Applicant>) -> Admission {
        Admission::Granted(Berth::free())
    }

    fn call(&self, _call: Call, _berth: Berth) -> Reply<'_, Return> {
        let (result, hangs) = (Arc::clone(&self.result), self.hangs);
        Box::pin(async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Return::Outcome(Outcome::Done { result, cost_micros: 0 })
        })
    }

    fn cancel(&self, _call: &CallId) {}

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
