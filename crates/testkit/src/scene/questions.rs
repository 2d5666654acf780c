//! The open questions of a scenario, in short.

use super::ExecutionScenario;
use rutter_core::execution::view::{PendingQuestion, SurpriseKind};

impl ExecutionScenario {
    /// Open questions: `approval a`, `doubt a`, `tool a`, `failure a`, `compensation a`,
    /// `second effect a`, `late effect a`, `other result a`, `limit Calls`, `drift x.y`.
    pub fn asks(&self) -> Vec<String> {
        let describe = |ask: PendingQuestion| match ask {
            PendingQuestion::Approval { part, .. } => format!("approval {part}"),
            PendingQuestion::Doubt { part, .. } => format!("doubt {part}"),
            PendingQuestion::Tool { part, .. } => format!("tool {part}"),
            PendingQuestion::Failure { step, .. } => format!("failure {step}"),
            PendingQuestion::Compensation { part, .. } => format!("compensation {part}"),
            PendingQuestion::SecondEffect { part, surprise, .. } => match surprise {
                SurpriseKind::Second => format!("second effect {part}"),
                SurpriseKind::Only => format!("late effect {part}"),
                SurpriseKind::OtherResult => format!("other result {part}"),
            },
            PendingQuestion::Limit { limit, .. } => format!("limit {limit:?}"),
            PendingQuestion::Replan { revision, .. } => format!("replan {revision}"),
            PendingQuestion::Drift { tool, .. } => format!("drift {tool}"),
            PendingQuestion::Hold { .. } => "hold".to_owned(),
            PendingQuestion::Silence { .. } => "silence".to_owned(),
        };
        self.execution.questions().into_iter().map(describe).collect()
    }
}
