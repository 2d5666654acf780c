//! The state of an execution: as one JSON object for programs, as lines with what to do next for people.

use crate::exit::CommandExit;
use crate::printable::printable;
use crate::report::{counted, plural};
use crate::table::{CellColor, TableCell, columns, wrapped};
use crate::terminal::Terminal;
use rutter_app::question;
use rutter_app::view::{ExecutionView, ReceiptView, StepView};
use rutter_core::execution::Execution;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus, PendingQuestion, StepSnapshot};
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::journal::verify::EntryReceipt;
use rutter_core::text::{cut, spelled};
use rutter_core::time::calendar::utc;
use serde_json::{Value, json};

/// The length of the parameters or the schema in a question.
const PRINTED_CHARS_MAX: usize = 300;

/// The state of an execution when a command ends.
#[derive(Clone, Debug)]
pub(crate) struct ExecutionReport {
    pub(crate) view: ExecutionSnapshot,
    steps: Vec<StepView>,
}

impl ExecutionReport {
    pub(crate) fn of(execution: &Execution) -> ExecutionReport {
        ExecutionReport { view: execution.view(), steps: StepView::all_with_results(execution) }
    }

    pub(crate) fn exit(&self) -> CommandExit {
        match self.view.status {
            ExecutionStatus::Completed => CommandExit::Done,
            ExecutionStatus::Partial
            | ExecutionStatus::Failed
            | ExecutionStatus::Cancelled
            | ExecutionStatus::Compensated => CommandExit::Differs,
            ExecutionStatus::Pending
            | ExecutionStatus::Running
            | ExecutionStatus::Paused
            | ExecutionStatus::Waiting
            | ExecutionStatus::Replanning
            | ExecutionStatus::Compensating => CommandExit::Waiting,
        }
    }

    /// `base` is the address of the pages, if a server has some.
    pub(crate) fn json(&self, plan: &PlanId, base: Option<&str>, receipt: &EntryReceipt) -> Value {
        json!(ExecutionView {
            steps: Some(self.steps.clone()),
            receipt: Some(ReceiptView::of(receipt)),
            ..ExecutionView::of(Some(plan), &self.view, base)
        })
    }

    pub(crate) fn text(&self, terminal: &Terminal) -> String {
        let ExecutionSnapshot { execution, status, steps, questions, .. } = &self.view;
        let paint = match status {
            ExecutionStatus::Completed => CellColor::Green,
            ExecutionStatus::Failed | ExecutionStatus::Cancelled | ExecutionStatus::Partial => CellColor::Red,
            _ => CellColor::Yellow,
        };
        let head = format!(
            "{}  {}  {} of {}, {}, driven by the {}\n",
            CellColor::Bold.on(execution.as_str()),
            paint.on(status.as_str()),
            self.view.settled,
            plural(self.view.total, "step"),
            counted(self.view.calls, "call", "calls"),
            self.view.driver.as_str(),
        );
        let rows: Vec<Vec<TableCell>> = steps.iter().map(|step| self.row(step, terminal)).collect();
        let mut text = head + &columns(&rows).into_iter().map(|line| line + "\n").collect::<String>();
        // A failed step shows its own failure.
        if let Some(cause) = self.view.cause.as_ref().filter(|_| steps.iter().all(|step| step.failure.is_none())) {
            text += &format!("cause: {}\n", printable(cause));
        }
        if !self.view.remains.is_empty() {
            let parts: Vec<String> = self.view.remains.iter().map(ToString::to_string).collect();
            text += &format!("not undone: {}\n", parts.join(", "));
        }
        if *status == ExecutionStatus::Replanning {
            text += &format!("waits for a new plan:\n    rutter exec replan {execution} --plan FILE --reason '…'\n");
        }
        text + &questions_text(execution, questions)
    }

    fn row(&self, step: &StepSnapshot, terminal: &Terminal) -> Vec<TableCell> {
        let signs = terminal.signs;
        let (sign, paint) = match step.status {
            "completed" => (signs.done, CellColor::Green),
            "compensated" => (signs.undone, CellColor::Yellow),
            "failed" | "compensation_failed" => (signs.failed, CellColor::Red),
            "in_doubt" | "waiting" | "retrying" => ("?", CellColor::Yellow),
            _ => (signs.nothing, CellColor::Dim),
        };
        let attempts = if step.attempts > 1 { format!("{} attempts", step.attempts) } else { String::new() };
        let failure = step.failure.as_ref().map(ToString::to_string).or_else(|| step.skip_reason.clone());
        let failure = failure.as_deref().map(printable).unwrap_or_default();
        vec![
            TableCell::new(format!("  {sign}"), paint),
            step.id.as_str().into(),
            TableCell::new(step.status.replace('_', " "), paint),
            TableCell::new(attempts, CellColor::Dim),
            failure.into(),
        ]
    }
}

/// The open questions, each with the command that answers it.
pub(crate) fn questions_text(execution: &ExecutionId, questions: &[PendingQuestion]) -> String {
    questions.iter().map(|ask| format!("\n{}", question(execution, ask))).collect()
}

fn question(execution: &ExecutionId, ask: &PendingQuestion) -> String {
    let title = match ask {
        PendingQuestion::Approval { part, tool, parameters, expires_at, .. } => {
            let label = parameters.as_ref().map(|value| cut(&value.to_string(), PRINTED_CHARS_MAX)).unwrap_or_default();
            format!("{part} wants to call {tool} with {label}; until {}", utc(*expires_at))
        }
        PendingQuestion::Doubt { part, reason, .. } => {
            format!("{part} may or may not have happened: {reason}. Check, then resolve it")
        }
        PendingQuestion::Failure { step, failures, .. } => {
            let why: Vec<String> =
                failures.iter().take(3).map(|(part, failure)| format!("{part}: {failure}")).collect();
            format!("{step} failed for good ({})", why.join("; "))
        }
        PendingQuestion::Compensation { part, failure, .. } => format!("{part} could not be undone ({failure})"),
        PendingQuestion::Limit { limit, .. } => format!("the limit of {} is reached", spelled(limit)),
        PendingQuestion::Tool { part, message, schema, .. } => {
            let schema = schema.as_ref().map(|schema| cut(&schema.to_string(), PRINTED_CHARS_MAX)).unwrap_or_default();
            format!("the tool of {part} asks: {message} {schema}")
        }
        PendingQuestion::Drift { tool, pinned, found } => {
            let (pinned, found) = (pinned.short(), found.short());
            format!("{tool} has changed since the plan was checked ({pinned} is now {found}): rutter tools show {tool}")
        }
    };
    let title = format!("{}\n", wrapped(&format!("{} {}", CellColor::Yellow.on("?"), printable(&title)), 2));
    question::commands(execution, ask).into_iter().fold(title, |text, command| text + &format!("    {command}\n"))
}
