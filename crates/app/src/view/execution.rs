//! An execution: its state, its open questions, its results.

use super::{FailureView, QuestionView, ReceiptView, StepView};
use crate::reader::AnswerReader;
use crate::terse::{bytes, shortened};
use crate::wording;
use rutter_core::execution::Execution;
use rutter_core::execution::summary::{PartFailure, PartFailureKind};
use rutter_core::execution::unmet::UnmetStep;
use rutter_core::execution::view::ExecutionSnapshot;
use rutter_core::id::PlanId;
use rutter_core::journal::event::Deviation;
use rutter_core::port::query::ExecutionSummary;
use rutter_core::text::{cut, spelled};
use rutter_core::time::calendar::utc;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The length of each text in a short view.
pub(super) const TEXT_CHARS_MAX: usize = 300;

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Execution")]
pub struct ExecutionView {
    pub execution_id: String,
    pub plan: PlanRefView,
    pub goal: String,
    /// Who calls the tools: `server` or `agent`.
    pub driver: String,
    pub status: String,
    /// The state in one line.
    pub summary: String,
    /// Why it did not complete, is being stopped, or what it waits for. Text of others is quoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Settled steps, and all steps.
    pub done: usize,
    pub total: usize,
    /// Steps that are completed and were not undone.
    pub completed: usize,
    pub calls: u64,
    pub cost_micros: u64,
    pub opened_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    pub last_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// When it continues without input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_at: Option<String>,
    pub failed_steps: Vec<FailedStepView>,
    /// Skipped and cancelled steps.
    pub skipped: Vec<SkippedStepView>,
    /// Steps that were compensated.
    pub undone: Vec<String>,
    /// Effects that remain, or may remain, although it did not complete.
    pub remains: Vec<String>,
    /// What the plan and its revisions wanted and the execution did not deliver.
    pub unmet: Vec<UnmetStepView>,
    /// Open questions that a person or an agent must answer.
    pub questions: Vec<QuestionView>,
    /// Where the execution departed from its plan.
    pub deviations: Vec<DeviationView>,
    /// How many items a short answer leaves out of which list.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub more: BTreeMap<String, usize>,
    /// Results by step, once it has ended; long ones are cut to text.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub results: Map<String, Value>,
    /// The page for people, if a server has pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Every step, where the reader asked for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<Vec<StepView>>,
    /// The next call to make, for agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The history in a few hundred words, where the reader asked for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
    /// Proves later that the newest entry existed; from the command line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<ReceiptView>,
}

/// Why an execution is where it is, and what it did not do: the same fields in every answer of a tool. What is empty is
/// left out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DeliveryView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_steps: Vec<FailedStepView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedStepView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remains: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmet: Vec<UnmetStepView>,
}

/// The plan of an execution.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PlanRef")]
pub struct PlanRefView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub name: String,
    pub revision: u32,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "FailedStep")]
pub struct FailedStepView {
    /// A step, or an item of one.
    pub step: String,
    /// Absent of a step that failed; `in_doubt` where it may have happened, `compensation_failed` where undoing it
    /// failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    #[serde(flatten)]
    pub failure: FailureView,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "SkippedStep")]
pub struct SkippedStepView {
    pub step: String,
    pub reason: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "UnmetStep")]
pub struct UnmetStepView {
    /// A step, or an item of one.
    pub step: String,
    /// `dropped`, `failed`, `skipped`, `cancelled`, `undone` or `unfinished`.
    pub kind: String,
    /// Text of tools and people is quoted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The revision that dropped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Deviation")]
pub struct DeviationView {
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    pub description: String,
}

/// The deviations of one kind, in a list of executions.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "DeviationCount")]
pub struct DeviationCountView {
    pub kind: String,
    pub count: u32,
}

/// An execution in a list.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ExecutionListItem")]
pub struct ExecutionListView {
    pub execution_id: String,
    pub plan: PlanRefView,
    pub driver: String,
    pub status: String,
    /// Why it did not complete, is being stopped, or what it waits for. Text of others is quoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The state in one line.
    pub summary: String,
    /// Settled steps, and all steps.
    pub done: u32,
    pub total: u32,
    /// Steps that are completed and were not undone; absent of executions of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<u32>,
    /// How often it departed from its plan, by kind; absent of executions of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviations: Option<Vec<DeviationCountView>>,
    pub questions_count: u32,
    /// Entries of its journal.
    pub entries: u64,
    pub opened_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<String>,
    pub last_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
}

impl ExecutionView {
    pub fn of(plan: Option<&PlanId>, snapshot: &ExecutionSnapshot, reader: &AnswerReader) -> ExecutionView {
        let steps = || snapshot.steps.iter();
        let failed = snapshot.failures.iter().map(FailedStepView::of);
        let skipped = steps().filter(|step| matches!(step.status, "skipped" | "cancelled")).map(|step| {
            // What was cancelled with everything else has the reason of the whole.
            let reason = step.skip_reason.clone().or_else(|| snapshot.cause.clone());
            SkippedStepView { step: step.id.to_string(), reason: reason.unwrap_or_default() }
        });
        let questions =
            snapshot.questions.iter().map(|question| QuestionView::of(&snapshot.execution, question, reader));
        let deviations = snapshot.deviations.iter().map(|deviation| DeviationView {
            kind: spelled(&deviation.kind),
            step: deviation.step.as_ref().map(ToString::to_string),
            description: deviation.description.clone(),
        });
        ExecutionView {
            execution_id: snapshot.execution.to_string(),
            plan: PlanRefView {
                id: plan.map(ToString::to_string),
                name: snapshot.plan.clone(),
                revision: snapshot.revision,
            },
            goal: snapshot.goal.clone(),
            driver: snapshot.driver.as_str().to_owned(),
            status: snapshot.status.as_str().to_owned(),
            summary: wording::summary(snapshot),
            cause: snapshot.cause.clone(),
            done: snapshot.settled,
            total: snapshot.total,
            completed: snapshot.completed,
            calls: snapshot.calls,
            cost_micros: snapshot.cost_micros,
            opened_at: utc(snapshot.opened_at),
            started_at: snapshot.started_at.map(utc),
            last_at: utc(snapshot.last_at),
            ended_at: snapshot.ended_at.map(utc),
            wake_at: snapshot.wake_at.map(utc),
            failed_steps: failed.collect(),
            skipped: skipped.collect(),
            undone: snapshot.undone.iter().map(ToString::to_string).collect(),
            remains: snapshot.remains.iter().map(ToString::to_string).collect(),
            unmet: snapshot.unmet.iter().map(UnmetStepView::of).collect(),
            questions: questions.collect(),
            deviations: deviations.collect(),
            more: BTreeMap::new(),
            results: Map::new(),
            url: reader.page(&snapshot.execution),
            steps: None,
            next: None,
            brief: None,
            receipt: None,
        }
    }

    /// The part of it that says why, and what was not done.
    pub fn delivery(&self) -> DeliveryView {
        DeliveryView {
            cause: self.cause.clone(),
            failed_steps: self.failed_steps.clone(),
            skipped: self.skipped.clone(),
            undone: self.undone.clone(),
            remains: self.remains.clone(),
            unmet: self.unmet.clone(),
        }
    }

    /// The same for a short answer: at most `items_max` items per list, texts are cut.
    pub fn short(mut self, items_max: usize) -> ExecutionView {
        let lists = [
            ("failed_steps", self.failed_steps.len()),
            ("skipped", self.skipped.len()),
            ("undone", self.undone.len()),
            ("remains", self.remains.len()),
            ("unmet", self.unmet.len()),
            ("questions", self.questions.len()),
        ];
        let more = lists.into_iter().map(|(list, items)| (list.to_owned(), items.saturating_sub(items_max)));
        self.more = more.filter(|(_, more)| *more > 0).collect();
        self.failed_steps.truncate(items_max);
        for failed in &mut self.failed_steps {
            failed.failure.message = cut(&failed.failure.message, TEXT_CHARS_MAX);
        }
        self.skipped.truncate(items_max);
        self.undone.truncate(items_max);
        self.remains.truncate(items_max);
        self.unmet.truncate(items_max);
        self.questions.truncate(items_max);
        self.questions = self.questions.into_iter().map(QuestionView::short).collect();
        self.cause = self.cause.map(|cause| cut(&cause, TEXT_CHARS_MAX));
        self
    }
}

impl DeviationCountView {
    fn of((kind, count): (&Deviation, &u32)) -> DeviationCountView {
        DeviationCountView { kind: spelled(kind), count: *count }
    }
}

impl FailedStepView {
    fn of(failed: &PartFailure) -> FailedStepView {
        let state = match failed.kind {
            PartFailureKind::Failed => None,
            PartFailureKind::NotUndone => Some("compensation_failed"),
            PartFailureKind::InDoubt(_) => Some("in_doubt"),
        };
        FailedStepView { step: failed.part.to_string(), state, failure: FailureView::of(&failed.failure) }
    }
}

impl UnmetStepView {
    fn of(unmet: &UnmetStep) -> UnmetStepView {
        let UnmetStep { step, kind, reason, revision } = unmet;
        UnmetStepView { step: step.to_string(), kind: spelled(kind), reason: reason.clone(), revision: *revision }
    }
}

/// The results of an execution that has ended and was not undone, from the last step backwards, as many as fit.
pub fn results(execution: &Execution, bytes_max: usize, each_bytes_max: usize) -> Map<String, Value> {
    let mut left = bytes_max;
    let mut results = Map::new();
    for step in execution.plan().steps.iter().rev() {
        let Some(result) = execution.result_of(step.id.as_str()) else { continue };
        let result = shortened(result, each_bytes_max);
        let Some(rest) = left.checked_sub(bytes(&result) + step.id.as_str().len() + 4) else { break };
        left = rest;
        results.insert(step.id.to_string(), result);
    }
    results
}

impl ExecutionListView {
    pub fn of(summary: &ExecutionSummary) -> ExecutionListView {
        let row = &summary.row;
        ExecutionListView {
            execution_id: summary.id.to_string(),
            plan: PlanRefView {
                id: Some(summary.plan.to_string()),
                name: summary.name.clone(),
                revision: row.revision,
            },
            driver: row.driver.as_str().to_owned(),
            status: row.status.as_str().to_owned(),
            cause: row.cause.clone(),
            summary: row.summary(),
            completed: row.completed,
            deviations: row.deviations.as_ref().map(|counts| counts.iter().map(DeviationCountView::of).collect()),
            done: row.settled,
            total: row.total,
            questions_count: row.questions,
            entries: summary.entries,
            opened_at: utc(row.opened_at),
            started_at: row.started_at.map(utc),
            last_at: utc(row.last_at),
            ended_at: row.status.has_ended().then(|| utc(row.last_at)),
        }
    }
}
