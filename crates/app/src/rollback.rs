//! A preview of undoing an execution now: which effects, in which order, with which tools, and what remains.

use rutter_core::execution::Execution;
use rutter_core::id::{PartId, ToolName};
use rutter_core::journal::event::CallSide;

/// The effect of undoing an execution now.
#[derive(Debug)]
pub struct Rollback {
    /// In the order of their compensation, each with the tool that does it.
    pub parts: Vec<(PartId, Option<ToolName>)>,
    /// Parts with an effect that no tool can undo.
    pub stays: Vec<PartId>,
    /// Parts in progress: they end first, and are then undone if possible.
    pub under_way: Vec<PartId>,
}

impl Rollback {
    pub fn of(execution: &Execution) -> Rollback {
        let scope = execution.undo_scope(None);
        let under_way: Vec<PartId> = execution.parts().filter(|(_, part)| part.is_active()).map(|(id, _)| id).collect();
        let stays = execution
            .parts()
            .filter(|(id, part)| part.effect.is_some() && !scope.contains(id) && !under_way.contains(id));
        let stays = stays.map(|(id, _)| id).collect();
        let tool = |id: &PartId| {
            let step = &execution.plan().steps[execution.plan().find(id.step.as_str())?];
            let compensation = match execution.part(id)?.effect?.side {
                CallSide::Fallback => step.fallback.as_ref()?.compensation.as_ref(),
                _ => step.compensation.as_ref(),
            };
            compensation.map(|compensation| compensation.call.tool.clone())
        };
        let parts = scope.into_iter().map(|id| (id.clone(), tool(&id))).collect();
        Rollback { parts, stays, under_way }
    }
}
