//! The questions that an execution waits on, and their answers.

use super::ExecutionLimit;
use crate::id::{PartId, StepId};
use serde::{Deserialize, Serialize};

/// A question an execution waits on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// A step failed for good under `manual_decision`.
    Failure(StepId),
    /// A compensation failed for good.
    Compensation(PartId),
    Limit(ExecutionLimit),
    /// A part took effect more than once.
    SecondEffect(PartId),
    /// One item of a fan-out failed for good.
    Item(PartId),
    /// The agent that drives is silent.
    Silence,
}

impl Question {
    pub const FAILURE_ANSWERS: &[QuestionAnswer] = &[
        QuestionAnswer::Retry,
        QuestionAnswer::Skip,
        QuestionAnswer::Resolve,
        QuestionAnswer::Stop,
        QuestionAnswer::Continue,
        QuestionAnswer::Compensate,
        QuestionAnswer::Replan,
    ];
    pub const COMPENSATION_ANSWERS: &[QuestionAnswer] =
        &[QuestionAnswer::Retry, QuestionAnswer::Resolve, QuestionAnswer::Skip];
    /// It stands, or it is undone.
    /// `skip` says that it is the effect that is known already.
    pub const SECOND_EFFECT_ANSWERS: &[QuestionAnswer] =
        &[QuestionAnswer::Continue, QuestionAnswer::Skip, QuestionAnswer::Compensate];
    /// While it cannot be undone by itself.
    pub const SECOND_EFFECT_WITHOUT_UNDO: &[QuestionAnswer] = &[QuestionAnswer::Continue, QuestionAnswer::Skip];
    /// It stands: the only effect of a failed step that came to light late, or a result that its tool contradicts.
    pub const LATE_EFFECT_ANSWERS: &[QuestionAnswer] = &[QuestionAnswer::Continue, QuestionAnswer::Compensate];
    pub const OTHER_RESULT_ANSWERS: &[QuestionAnswer] = &[QuestionAnswer::Continue];
    pub const ITEM_ANSWERS: &[QuestionAnswer] = &[QuestionAnswer::Retry, QuestionAnswer::Skip, QuestionAnswer::Resolve];
    pub const LIMIT_ANSWERS: &[QuestionAnswer] =
        &[QuestionAnswer::Continue, QuestionAnswer::Stop, QuestionAnswer::Compensate, QuestionAnswer::Replan];
    /// To continue is to keep waiting. The execution can also be handed to Rutter, or taken over by an agent.
    pub const SILENCE_ANSWERS: &[QuestionAnswer] =
        &[QuestionAnswer::Continue, QuestionAnswer::Stop, QuestionAnswer::Compensate];
    /// Of an execution that is being undone already.
    pub const SILENCE_ANSWERS_UNDOING: &[QuestionAnswer] = &[QuestionAnswer::Continue];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionAnswer {
    Retry,
    Skip,
    /// Done by hand, with evidence.
    Resolve,
    Stop,
    Continue,
    Compensate,
    Replan,
}
