//! How much of a step's effect its compensation undoes.

use crate::plan::{Cancellable, Step};
use crate::tool::Safety;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UndoPreview {
    pub coverage: UndoCoverage,
    pub reason: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UndoCoverage {
    Undoable,
    Partly,
    NotUndoable,
    NothingToUndo,
}

impl UndoCoverage {
    /// Whether some effect remains after undoing.
    pub fn leaves_something(self) -> bool {
        matches!(self, UndoCoverage::Partly | UndoCoverage::NotUndoable)
    }

    /// Whether there is a compensation to call.
    pub fn can_be_undone(self) -> bool {
        matches!(self, UndoCoverage::Undoable | UndoCoverage::Partly)
    }
}

pub(super) fn of(step: &Step) -> UndoPreview {
    let has_effect = |safety: Safety| safety != Safety::ReadOnly;
    let fallback = step.fallback.as_ref().filter(|fallback| has_effect(fallback.call.safety));
    if !has_effect(step.call.safety) && fallback.is_none() {
        return undo(UndoCoverage::NothingToUndo, format!("{} only reads", step.call.tool));
    }
    let Some(compensation) = &step.compensation else {
        return match fallback {
            Some(fallback) if !has_effect(step.call.safety) && fallback.compensation.is_some() => undo(
                UndoCoverage::Undoable,
                "the step itself only reads, and its fallback has a compensation".to_owned(),
            ),
            _ if step.cancellable == Cancellable::Irreversible => {
                undo(UndoCoverage::NotUndoable, "it is irreversible".to_owned())
            }
            _ => undo(UndoCoverage::NotUndoable, "nothing says how to undo it".to_owned()),
        };
    };
    if fallback.is_some_and(|fallback| fallback.compensation.is_none()) {
        return undo(UndoCoverage::Partly, "its fallback has no compensation".to_owned());
    }
    let tool = &compensation.call.tool;
    match step.cancellable {
        Cancellable::Reversible => undo(UndoCoverage::Undoable, format!("{tool} undoes it")),
        Cancellable::PartiallyReversible => undo(UndoCoverage::Partly, format!("{tool} undoes part of it")),
        Cancellable::Irreversible => {
            undo(UndoCoverage::Partly, format!("it is marked irreversible, but {tool} undoes part of it"))
        }
    }
}

fn undo(coverage: UndoCoverage, reason: String) -> UndoPreview {
    UndoPreview { coverage, reason }
}
