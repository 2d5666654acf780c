//! What undoing an execution now would do: which effects, in which order, with which tools, and what stays.

use rutter_core::execution::Execution;
use rutter_core::id::{PartId, ToolName};
use rutter_core::journal::event::Side;

/// What undoing an execution now would do.
pub(crate) struct Rollback {
    /// In the order they would be undone, each with the tool that does it.
    pub(crate) parts: Vec<(PartId, Option<ToolName>)>,
    /// With an effect, and nothing to undo it with.
    pub(crate) stays: Vec<PartId>,
    /// Come to rest first, and are then undone if they can be.
    pub(crate) under_way: Vec<PartId>,
}

impl Rollback {
    pub(crate) fn of(execution: &Execution) -> Rollback {
        let scope = execution.undo_scope(None);
        let under_way: Vec<PartId> =
            execution.parts().filter(|(_, part)| part.is_active()).map(|(id, _)| id).collect();
        let stays = execution
            .parts()
            .filter(|(id, part)| part.effect.is_some() && !scope.contains(id) && !under_way.contains(id));
        let stays = stays.map(|(id, _)| id).collect();
        let tool = |id: &PartId| {
            let step = &execution.plan().steps[execution.plan().find(id.step.as_str())?];
            let compensation = match execution.part(id)?.effect?.side {
                Side::Fallback => step.fallback.as_ref()?.compensation.as_ref(),
                _ => step.compensation.as_ref(),
            };
            compensation.map(|compensation| compensation.call.tool.clone())
        };
        let parts = scope.into_iter().map(|id| (id.clone(), tool(&id))).collect();
        Rollback { parts, stays, under_way }
    }
}
