//! How much of a step's effect its compensation takes back.

use crate::plan::{Cancellable, Step};
use crate::tool::Safety;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Undo {
    pub coverage: Coverage,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Coverage {
    Undoable,
    Partly,
    NotUndoable,
    NothingToUndo,
}

impl Coverage {
    /// Whether something stays after all that can be undone has been.
    pub fn leaves_something(self) -> bool {
        matches!(self, Coverage::Partly | Coverage::NotUndoable)
    }

    /// Whether there is a compensation to call.
    pub fn can_be_undone(self) -> bool {
        matches!(self, Coverage::Undoable | Coverage::Partly)
    }
}

pub(super) fn of(step: &Step) -> Undo {
    let has_effect = |safety: Safety| safety != Safety::ReadOnly;
    let fallback = step.fallback.as_ref().filter(|fallback| has_effect(fallback.call.safety));
    if !has_effect(step.call.safety) && fallback.is_none() {
        return undo(Coverage::NothingToUndo, format!("{} only reads", step.call.tool));
    }
    let Some(compensation) = &step.compensation else {
        return match fallback {
            Some(fallback) if !has_effect(step.call.safety) && fallback.compensation.is_some() => undo(
                Coverage::Undoable,
                "the step itself only reads, and its fallback has a compensation".to_owned(),
            ),
            _ if step.cancellable == Cancellable::Irreversible => {
                undo(Coverage::NotUndoable, "it is irreversible".to_owned())
            }
            _ => undo(Coverage::NotUndoable, "nothing says how to undo it".to_owned()),
        };
    };
    if fallback.is_some_and(|fallback| fallback.compensation.is_none()) {
        return undo(Coverage::Partly, "its fallback has no compensation".to_owned());
    }
    let tool = &compensation.call.tool;
    match step.cancellable {
        Cancellable::Reversible => undo(Coverage::Undoable, format!("{tool} undoes it")),
        Cancellable::PartiallyReversible => undo(Coverage::Partly, format!("{tool} undoes part of it")),
        Cancellable::Irreversible => {
            undo(Coverage::Partly, format!("it is called irreversible, yet {tool} offsets it"))
        }
    }
}

fn undo(coverage: Coverage, reason: String) -> Undo {
    Undo { coverage, reason }
}
