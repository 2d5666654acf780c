//! A request of an agent, and what the harness notes of its answer.

use super::notes::now_ms;
use super::pipe::ToolReply;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(super) struct AgentRequest {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) purpose: RequestPurpose,
    /// When it was sent first.
    since_ms: u64,
}

/// What a request is for. A mark is a unique text in it, which the journal has if the request was performed.
#[derive(Clone, Debug)]
pub(super) enum RequestPurpose {
    Save,
    Start,
    Record { part: String, status: &'static str, mark: String },
    Replan { mark: String },
    Say { what: &'static str, mark: String },
}

impl AgentRequest {
    pub(super) fn new(tool: &'static str, purpose: RequestPurpose, arguments: Value) -> AgentRequest {
        AgentRequest { tool, arguments, purpose, since_ms: now_ms() }
    }

    pub(super) fn with_key(mut self, key: &str) -> AgentRequest {
        self.arguments["request_id"] = json!(key);
        self
    }

    pub(super) fn concerns_execution(&self) -> bool {
        !matches!(self.purpose, RequestPurpose::Save | RequestPurpose::Start)
    }

    /// What was acknowledged or refused. Other answers say nothing about the journal.
    pub(super) fn note(&self, tag: &str, reply: &ToolReply, now_ms: u64) -> Option<Value> {
        let execution = &self.arguments["execution_id"];
        let about = |what: &str, mark: &str| json!({ "execution": execution, "what": what, "reason": mark });
        let told = match &self.purpose {
            RequestPurpose::Save | RequestPurpose::Start => None,
            RequestPurpose::Record { mark, .. } => Some(about("record_step", mark)),
            RequestPurpose::Replan { mark } => Some(about("replan", mark)),
            RequestPurpose::Say { what, mark } => Some(about(what, mark)),
        };
        match (reply, &self.purpose) {
            (ToolReply::Refused { code, .. }, _) if code.starts_with("execution.") || code.starts_with("replan.") => {
                told.map(|told| json!({ "refused": told, "code": code }))
            }
            // A server of tools that just died is started again later.
            (ToolReply::Refused { code, .. }, _) if code == "tool.unreachable" => {
                Some(json!({ "unreachable": self.tool }))
            }
            (ToolReply::Refused { code, message }, _) => {
                let broken = json!({ "request": self.arguments, "answer": message });
                Some(json!({ "life": self.tool, "code": code, "broken": broken }))
            }
            (ToolReply::Done(_), RequestPurpose::Save) => None,
            (ToolReply::Done(answer), RequestPurpose::Start) => {
                Some(json!({ "started": answer["execution_id"], "tag": tag, "code": null }))
            }
            (ToolReply::Done(_), RequestPurpose::Record { part, status, mark }) => Some(json!({ "recorded": {
                "execution": execution, "tag": tag, "part": part, "status": status, "reason": mark,
                "since": self.since_ms, "at": now_ms,
            } })),
            (ToolReply::Done(_), RequestPurpose::Replan { .. } | RequestPurpose::Say { .. }) => {
                told.map(|told| json!({ "acknowledged": told }))
            }
        }
    }
}
