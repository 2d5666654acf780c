//! The state of an execution: as one JSON object for programs, as lines with what to do next for people.

use crate::exit::CommandExit;
use crate::printable::printable;
use crate::report::{counted, plural};
use crate::table::{CellColor, TableCell, columns, wrapped};
use crate::terminal::Terminal;
use rutter_app::question;
use rutter_app::reader::AnswerReader;
use rutter_app::shown_call::shown_call;
use rutter_app::view::{ExecutionView, ReceiptView, StepView};
use rutter_core::execution::Execution;
use rutter_core::execution::call_words::name_of_call;
use rutter_core::execution::summary::PartFailureKind;
use rutter_core::execution::unmet::{UnmetKind, UnmetStep};
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus, PendingQuestion, StepSnapshot, SurpriseKind};
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::journal::event::{CallSide, OverdueTimer, QuestionAnswer};
use rutter_core::journal::verify::EntryReceipt;
use rutter_core::text::{cut, cut_counted, quoted, spelled};
use rutter_core::time::calendar::utc;
use serde_json::{Value, json};

/// Unmet steps that are printed.
const UNMET_MAX: usize = 20;
/// Deviations that are printed, the newest ones.
const DEVIATIONS_MAX: usize = 10;
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
        let has_second = self.view.questions.iter().any(|ask| matches!(ask, PendingQuestion::SecondEffect { .. }));
        match self.view.status {
            // It has ended, and a person is still to decide about an effect of it.
            status if status.has_ended() && has_second => CommandExit::Waiting,
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
            ..ExecutionView::of(Some(plan), &self.view, &AnswerReader::person(base))
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
            self.view.completed,
            plural(self.view.total, "step"),
            counted(self.view.calls, "call", "calls"),
            self.view.driver.as_str(),
        );
        let rows: Vec<Vec<TableCell>> = steps.iter().map(|step| self.row(step, terminal)).collect();
        let mut text = head + &columns(&rows).into_iter().map(|line| line + "\n").collect::<String>();
        // The row of a step has its failure, and a question is printed below with the commands that answer it.
        let elsewhere =
            [questions.first().map(ToString::to_string), self.view.failures.first().map(ToString::to_string)];
        let is_elsewhere = |cause: &str| elsewhere.iter().flatten().any(|it| it == cause);
        if let Some(cause) = self.view.cause.as_ref().filter(|cause| !is_elsewhere(cause)) {
            text += &format!("cause: {}\n", printable(cause));
        }
        // Failed, skipped, cancelled and undone steps are rows above.
        let is_row = |unmet: &&UnmetStep| unmet.kind != UnmetKind::Dropped && unmet.step.item.is_none();
        let unmet: Vec<&UnmetStep> = self.view.unmet.iter().filter(|unmet| !is_row(unmet)).collect();
        for unmet in unmet.iter().take(UNMET_MAX) {
            text += &format!("unmet: {}\n", printable(&unmet.to_string()));
        }
        if unmet.len() > UNMET_MAX {
            text += &format!("unmet: {} more\n", unmet.len() - UNMET_MAX);
        }
        if !self.view.remains.is_empty() {
            let parts: Vec<String> = self.view.remains.iter().map(ToString::to_string).collect();
            text += &format!("not undone: {}\n", parts.join(", "));
        }
        for deviation in self.view.deviations.iter().rev().take(DEVIATIONS_MAX).rev() {
            let step = deviation.step.as_ref().map(|step| format!(" {step}")).unwrap_or_default();
            let (kind, what) = (spelled(&deviation.kind).replace('_', " "), &deviation.description);
            text += &format!("{}\n", wrapped(&printable(&format!("deviation ({kind}{step}): {what}")), 4));
        }
        if self.view.deviations.len() > DEVIATIONS_MAX {
            text += &format!(
                "deviations: {} earlier ones are in the journal\n",
                self.view.deviations.len() - DEVIATIONS_MAX
            );
        }
        if *status == ExecutionStatus::Replanning {
            text += &format!("waits for a new plan:\n    rutter exec replan {execution} --plan FILE --reason '…'\n");
        }
        text + &questions_text(execution, questions)
    }

    /// Which call of the step is in doubt, if it is the one that its row tells of.
    fn doubted_side(&self, step: &StepSnapshot) -> Option<CallSide> {
        let of_step = self.view.failures.iter().find(|failure| failure.part.step == step.id)?;
        match of_step.kind {
            PartFailureKind::InDoubt(side) => Some(side),
            PartFailureKind::Failed | PartFailureKind::NotUndone => None,
        }
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
        let failure = step.failure.as_ref().map(|failure| match self.doubted_side(step) {
            Some(CallSide::Undo) => format!("its compensation: {failure}"),
            Some(CallSide::Fallback) => format!("its fallback: {failure}"),
            _ => failure.to_string(),
        });
        let failure = failure.or_else(|| step.skip_reason.clone());
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

/// Timers that came due before a hold, in words.
const DUE_MAX: usize = 10;

fn due_words(timer: &OverdueTimer) -> String {
    let of = timer.part.as_ref().map(|part| format!(" of {part}")).unwrap_or_default();
    format!("{}{of} at {}", timer.what.words(), utc(timer.at))
}

/// The parameters of a call. Where something is cut, it says where the whole call is.
fn shown(execution: &ExecutionId, parameters: &Value) -> String {
    match shown_call(parameters, PRINTED_CHARS_MAX) {
        Some((parameters, false)) => parameters.to_string(),
        Some((parameters, true)) => {
            format!("{parameters} (cut: the whole call is on its page, or see `rutter journal show {execution}`)")
        }
        None => format!(
            "{}, with too many fields to show here: see its page, or `rutter journal show {execution}`",
            cut_counted(&parameters.to_string(), PRINTED_CHARS_MAX)
        ),
    }
}

fn question(execution: &ExecutionId, ask: &PendingQuestion) -> String {
    let title = match ask {
        PendingQuestion::Replan { revision, weakens, changes, reason, .. } => {
            let (weakens, changes) = (weakens.join("; "), changes.join("; "));
            format!(
                "a person must approve revision {revision} of an agent, which weakens the plan: {weakens}. In all it \
                 changes: {changes}. The agent's reason: {}",
                quoted(reason, PRINTED_CHARS_MAX)
            )
        }
        PendingQuestion::Approval { part, tool, parameters, expires_at, sends, rule, by, denied, .. } => {
            let parameters = parameters.as_ref().map(|value| shown(execution, value));
            let sends = match *sends > 1 {
                true => format!("; it may be sent up to {sends} times, retries included"),
                false => String::new(),
            };
            let names: Vec<&str> = by.iter().map(|name| name.as_str()).collect();
            let by = if names.is_empty() { String::new() } else { format!(" of {}", names.join(" or ")) };
            let rule =
                rule.as_ref().map(|rule| format!(" (rule {rule:?} asks for the approval{by})")).unwrap_or_default();
            format!(
                "{part} wants to call {tool} with {}{rule}{sends}; until {}{}",
                parameters.unwrap_or_default(),
                utc(*expires_at),
                denied.as_ref().map(|denied| format!(". Before, {}", denied.words())).unwrap_or_default()
            )
        }
        PendingQuestion::Doubt { part, side, reason, failure, .. } => {
            let why = failure.as_ref().map(|failure| format!(" ({failure})")).unwrap_or_default();
            let (name, call) = (name_of_call(part, *side), ask.doubtful_call(PRINTED_CHARS_MAX).unwrap_or_default());
            format!("{name} may or may not have happened{why}: {reason}. Check, then resolve it: {call}")
        }
        PendingQuestion::Failure { step, failures, .. } => {
            let why: Vec<String> =
                failures.iter().take(3).map(|(part, failure)| format!("{part}: {failure}")).collect();
            format!("{step} failed for good ({})", why.join("; "))
        }
        PendingQuestion::Compensation { part, failure, .. } => format!("{part} could not be undone ({failure})"),
        PendingQuestion::SecondEffect { surprise, .. } => {
            let what = match surprise {
                SurpriseKind::Second => "Let that stand, say that it is the same effect (skip), or undo it",
                SurpriseKind::Only => "Let that stand, or undo it",
                SurpriseKind::OtherResult => "Keep the result given by hand, or correct it to that of the tool",
            };
            format!("{}. {what}", ask.surprise_words().unwrap_or_default())
        }
        PendingQuestion::Limit { limit, .. } => format!("the limit of {} is reached", spelled(limit)),
        PendingQuestion::Tool { part, message, schema, .. } => {
            let schema = schema.as_ref().map(|schema| cut(&schema.to_string(), PRINTED_CHARS_MAX)).unwrap_or_default();
            format!("the tool of {part} asks: {} {schema}", quoted(message, PRINTED_CHARS_MAX))
        }
        PendingQuestion::Hold { reason, due, more, .. } => {
            let named = due.iter().take(DUE_MAX).map(due_words).collect::<Vec<_>>().join("; ");
            let left = due.len().saturating_sub(DUE_MAX) as u64 + u64::from(*more);
            let rest = if left > 0 { format!("; and {left} more") } else { String::new() };
            let due = if due.is_empty() { String::new() } else { format!(". Came due: {named}{rest}") };
            format!("held, time stands still: {reason}{due}")
        }
        PendingQuestion::Silence { since, answers } => {
            let stop =
                if answers.contains(&QuestionAnswer::Stop) { ", take it over, or stop" } else { ", or take it over" };
            format!("the agent is silent since {}. Keep waiting, hand it to Rutter{stop}", utc(*since))
        }
        PendingQuestion::Drift { tool, pinned, found } => {
            let (pinned, found) = (pinned.short(), found.short());
            format!("{tool} has changed since the plan was checked ({pinned} is now {found}): rutter tools show {tool}")
        }
    };
    let title = format!("{}\n", wrapped(&format!("{} {}", CellColor::Yellow.on("?"), printable(&title)), 2));
    question::commands(execution, ask).into_iter().fold(title, |text, command| text + &format!("    {command}\n"))
}
