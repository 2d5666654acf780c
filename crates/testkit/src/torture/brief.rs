//! What an agent that knows nothing of an execution learns from its brief.

use super::agent_call::DueCall;
use serde_json::Value;

#[derive(Clone, Debug, Default)]
pub(super) struct ExecutionBrief {
    status: String,
    /// Whether an agent drives.
    pub(super) is_agents: bool,
    /// The call to make next.
    pub(super) due: Option<DueCall>,
    /// The compensation to carry out next.
    pub(super) undo: Option<DueCall>,
    pub(super) questions: Vec<Value>,
    pub(super) under_way: Vec<String>,
    pub(super) failed: Vec<String>,
    /// All steps that are not pending.
    pub(super) begun: Vec<String>,
}

impl ExecutionBrief {
    /// Reads an answer of `status` with `brief`.
    pub(super) fn read(answer: &Value) -> ExecutionBrief {
        let text = |name: &str| answer[name].as_str().unwrap_or_default();
        let line = |label: &str| text("brief").lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(": "));
        let list = |label: &str| -> Vec<String> {
            line(label).into_iter().flat_map(|steps| steps.split(", ")).map(str::to_owned).collect()
        };
        let next = text("next");
        let undo = DueCall::read(next).filter(|_| next.contains(" to undo step ") && next.starts_with("call "));
        let begun = ["Done", "Failed", "Under way", "Skipped or cancelled", "Undone", "Undoing failed"];
        ExecutionBrief {
            status: text("status").to_owned(),
            is_agents: line("Status").is_some_and(|line| line.ends_with("driven by an agent")),
            due: line("Next").and_then(DueCall::read),
            undo,
            questions: answer["questions"].as_array().cloned().unwrap_or_default(),
            under_way: list("Under way"),
            failed: list("Failed"),
            begun: begun.into_iter().flat_map(list).collect(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        super::operator_actions::ENDED.contains(&self.status.as_str())
    }

    /// Whether a part of this step is under way.
    pub(super) fn is_under_way(&self, part: &str) -> bool {
        let step = part.split('[').next().unwrap_or_default();
        self.under_way.iter().any(|under_way| under_way == step)
    }
}
