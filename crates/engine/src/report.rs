//! What an agent reports of its own calls and decisions, stored as one command: it is recorded as a whole, or refused and
//! then nothing of it is recorded.

use crate::control::{fitting, only};
use rutter_core::execution::Execution;
use rutter_core::execution::input::{ExecutionInput, Refusal};
use rutter_core::execution::part::PartState;
use rutter_core::execution::step::StepStage;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event::{Deviation, Question, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::redact::Redactor;
use rutter_core::text::spelled;
use rutter_core::tool::ToolFailure;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A report of an agent.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentReport {
    Step(StepReport),
    Decision(DecisionReport),
}

/// What an agent did for a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepReport {
    pub part: PartId,
    /// The word of the agent: how the call stands.
    pub status: String,
    /// The tool, if it is not the plan's, and as the agent named it.
    pub tool: Option<ToolName>,
    pub named: Option<String>,
    /// If not the plan's.
    pub parameters: Option<Arc<Value>>,
    /// How the call ended, if it has.
    pub end: Option<ReportedEnd>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReportedEnd {
    Done {
        result: Arc<Value>,
        /// The agent gave no result.
        is_silent: bool,
    },
    Failed {
        failure: ToolFailure,
        maybe: bool,
    },
}

/// What an agent decided, and what follows from it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionReport {
    pub step: Option<StepId>,
    pub action: DecidedAction,
    pub reason: String,
    pub details: Option<Arc<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecidedAction {
    Stop,
    /// Answers the open question, if there is one.
    Continue,
    End,
}

/// The state of the step before its call is recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StepPosition {
    /// The plan has no such step, and the agent drives.
    Unplanned,
    /// It can start now.
    ToBegin,
    Other,
}

impl AgentReport {
    /// The inputs that record it in the present state.
    pub(crate) fn inputs(&self, execution: &Execution) -> Result<Vec<ExecutionInput>, Refusal> {
        match self {
            AgentReport::Step(step) => Ok(step.inputs(execution)),
            AgentReport::Decision(decision) => decision.inputs(execution),
        }
    }

    /// What has to be recorded beside these inputs, from the states before and after them.
    pub(crate) fn rest(&self, before: &Execution, after: &Execution) -> Option<ExecutionInput> {
        match self {
            AgentReport::Step(step) => step.details(before, after),
            AgentReport::Decision(_) => None,
        }
    }

    /// Takes secrets out of everything the agent wrote.
    pub(crate) fn redacted(self, redactor: &Redactor) -> AgentReport {
        match self {
            AgentReport::Step(step) => AgentReport::Step(step.redacted(redactor)),
            AgentReport::Decision(decision) => AgentReport::Decision(decision.redacted(redactor)),
        }
    }
}

impl StepReport {
    fn inputs(&self, execution: &Execution) -> Vec<ExecutionInput> {
        let StepReport { part, tool, parameters, .. } = self;
        let start =
            || ExecutionInput::RecordStarted { part: part.clone(), tool: tool.clone(), parameters: parameters.clone() };
        let claim =
            || ExecutionInput::RecordClaim { part: part.clone(), tool: tool.clone(), parameters: parameters.clone() };
        let is_described = tool.is_some() || parameters.is_some();
        match (position_of(execution, part), self.end()) {
            (StepPosition::Unplanned, _) => vec![self.as_action("undeclared"), claim()],
            (_, None) => vec![start()],
            // The end alone starts the step as planned; a different call must be recorded first.
            (StepPosition::ToBegin, Some(end)) if is_described => vec![start(), end],
            (StepPosition::Other, Some(end)) if is_described && !self.is_under_way(execution) => vec![end, claim()],
            (_, Some(end)) => vec![end],
        }
    }

    /// What has to be recorded beside these inputs: no attempt of the step took over what the agent said, and it must not
    /// be lost.
    fn details(&self, before: &Execution, after: &Execution) -> Option<ExecutionInput> {
        let strays = strays(after, &self.part);
        let kind = *strays.get(self::strays(before, &self.part).len()..)?.last()?;
        // The start of an undeclared call, and a call of a step that the plan does not have, are on record as a whole.
        let is_planned = position_of(before, &self.part) != StepPosition::Unplanned;
        let is_wanted = kind == Deviation::Duplicate || (self.end.is_some() && is_planned);
        is_wanted.then(|| self.as_action(&spelled(&kind)))
    }

    /// Whether the call is the one whose start is on record.
    fn is_under_way(&self, execution: &Execution) -> bool {
        let Some(part) = execution.part(&self.part).filter(|part| matches!(part.state, PartState::Running(_))) else {
            return false;
        };
        let plan = execution.plan();
        let planned = plan.find(self.part.step.as_str()).map(|at| &plan.steps[at].call.tool);
        let sent = part.sent.as_ref().and_then(|(_, parameters)| parameters.value());
        self.tool.as_ref().is_none_or(|tool| Some(tool) == planned)
            && self.parameters.as_ref().is_none_or(|parameters| Some(parameters) == sent)
    }

    fn end(&self) -> Option<ExecutionInput> {
        let part = self.part.clone();
        Some(match self.end.clone()? {
            ReportedEnd::Done { result, .. } => ExecutionInput::RecordFinished { part, result },
            ReportedEnd::Failed { failure, maybe } => ExecutionInput::RecordFailed { part, failure, maybe },
        })
    }

    /// A call that fits no step of the plan, or that its step did not need, as an action with all details.
    fn as_action(&self, kind: &str) -> ExecutionInput {
        let (result, error) = match &self.end {
            Some(ReportedEnd::Done { result, is_silent: false }) => (Some(result), None),
            Some(ReportedEnd::Failed { failure, .. }) => (None, Some(failure)),
            Some(ReportedEnd::Done { is_silent: true, .. }) | None => (None, None),
        };
        let fields = json!({
            "status": self.status,
            "tool": self.named,
            "parameters": self.parameters,
            "result": result,
            "error": error,
        });
        let fields = fields.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let details: Map<String, Value> = fields.map(|(key, value)| (key.clone(), value.clone())).collect();
        let description = match &self.named {
            Some(tool) => format!("{}: called {tool}", self.part),
            None => self.part.to_string(),
        };
        ExecutionInput::RecordAction {
            step: Some(self.part.step.clone()),
            kind: kind.to_owned(),
            description,
            details: Some(Arc::new(Value::Object(details))),
        }
    }

    fn redacted(mut self, redactor: &Redactor) -> StepReport {
        self.named = self.named.map(|named| redactor.text(&named).into_owned());
        self.parameters = self.parameters.map(|parameters| redactor.value(&parameters));
        self.end = self.end.map(|end| match end {
            ReportedEnd::Done { result, is_silent } => ReportedEnd::Done { result: redactor.value(&result), is_silent },
            ReportedEnd::Failed { failure, maybe } => ReportedEnd::Failed { failure: redactor.failure(failure), maybe },
        });
        self
    }
}

impl DecisionReport {
    /// The decision, and what it decides.
    fn inputs(&self, execution: &Execution) -> Result<Vec<ExecutionInput>, Refusal> {
        let DecisionReport { step, action, reason, details } = self.clone();
        let follows = match action {
            DecidedAction::Stop => Some(ExecutionInput::Cancel { reason: reason.clone(), undo: None }),
            DecidedAction::End => Some(ExecutionInput::RecordEnd { reason: reason.clone() }),
            DecidedAction::Continue => self.answer(execution)?,
        };
        let decision = ExecutionInput::RecordDecision { step, decision: spelled(&action), reason, details };
        Ok(std::iter::once(decision).chain(follows).collect())
    }

    /// Going on answers the open question about the step, or the only one.
    fn answer(&self, execution: &Execution) -> Result<Option<ExecutionInput>, Refusal> {
        let about = self.step.clone().map(PartId::whole);
        let mut open = fitting(&execution.questions(), about.as_ref());
        // Whether an effect was undone is not answered by going on.
        open.retain(|question| !matches!(question, Question::Compensation(_) | Question::SecondEffect(_)));
        if open.is_empty() {
            return Ok(None);
        }
        let (about, answer, reason) = (only(open, about.as_ref())?, QuestionAnswer::Continue, self.reason.clone());
        Ok(Some(ExecutionInput::Answer { about, answer, reason, result: None, evidence: None }))
    }

    fn redacted(mut self, redactor: &Redactor) -> DecisionReport {
        self.reason = redactor.text(&self.reason).into_owned();
        self.details = self.details.map(|details| redactor.value(&details));
        self
    }
}

/// The records of the step that no attempt of it took over.
fn strays(execution: &Execution, part: &PartId) -> Vec<Deviation> {
    let deviations = execution.view().deviations.into_iter();
    let kinds = deviations.filter(|found| found.step.as_ref() == Some(&part.step)).map(|found| found.kind);
    kinds.filter(|kind| matches!(kind, Deviation::Duplicate | Deviation::Undeclared)).collect()
}

fn position_of(execution: &Execution, part: &PartId) -> StepPosition {
    let is_agents = execution.driver() == Driver::Agent && execution.outcome().is_none();
    let stage = execution.stages().find(|(step, _)| **step == part.step).map(|(_, stage)| stage);
    match execution.part(part).map(|part| &part.state) {
        _ if is_agents && stage.is_none() => StepPosition::Unplanned,
        // Starting a step that waits for a decision is a decision too.
        Some(PartState::Failed { .. }) if stage == Some(StepStage::Held) => StepPosition::ToBegin,
        Some(
            PartState::Pending | PartState::Asking { .. } | PartState::Approved { .. } | PartState::BackingOff { .. },
        ) => StepPosition::ToBegin,
        _ => StepPosition::Other,
    }
}
