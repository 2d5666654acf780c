//! How an execution stands: as one JSON object for programs, as lines with what to do next for people.

use crate::Exit;
use crate::journal::word;
use crate::table::{Cell, Paint, columns, wrapped};
use crate::terminal::{Terminal, printable};
use rutter_core::execution::Execution;
use rutter_core::execution::view::{Ask, Status, StepView, View};
use rutter_core::id::{ExecutionId, PartId};
use rutter_core::journal::verify::Receipt;
use rutter_core::time::calendar::utc;
use serde_json::{Map, Value, json};

/// What is told of an execution when a command ends.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) view: View,
    /// By step, where there is one.
    results: Map<String, Value>,
}

impl Outcome {
    pub(crate) fn of(execution: &Execution) -> Outcome {
        let results =
            execution.plan().steps.iter().filter_map(|step| {
                Some((step.id.to_string(), execution.result_of(step.id.as_str())?.clone()))
            });
        Outcome { view: execution.view(), results: results.collect() }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self.view.status {
            Status::Completed => Exit::Done,
            Status::Partial | Status::Failed | Status::Cancelled | Status::Compensated => Exit::Differs,
            Status::Pending
            | Status::Running
            | Status::Paused
            | Status::Waiting
            | Status::Replanning
            | Status::Compensating => Exit::Waiting,
        }
    }

    pub(crate) fn json(&self, receipt: Option<&Receipt>) -> Value {
        let View { execution, status, steps, questions, .. } = &self.view;
        json!({
            "execution_id": execution,
            "status": status,
            "plan": self.view.plan,
            "revision": self.view.revision,
            "driver": self.view.driver,
            "steps": steps.iter().map(|step| self.step(step)).collect::<Vec<_>>(),
            "questions": questions,
            "deviations": self.view.deviations,
            "remains": self.view.remains,
            "receipt": receipt,
        })
    }

    fn step(&self, step: &StepView) -> Value {
        let mut told = json!({ "id": step.id, "status": step.status, "attempts": step.attempts });
        let fields = [
            ("result", self.results.get(step.id.as_str()).cloned()),
            ("error", step.failure.as_ref().map(|failure| json!(failure))),
            ("items", step.items.map(|(settled, total)| json!({ "settled": settled, "total": total }))),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                told[name] = value;
            }
        }
        told
    }

    pub(crate) fn text(&self, terminal: &Terminal) -> String {
        let View { execution, status, steps, questions, .. } = &self.view;
        let paint = match status {
            Status::Completed => Paint::Green,
            Status::Failed | Status::Cancelled | Status::Partial => Paint::Red,
            _ => Paint::Yellow,
        };
        let head = format!(
            "{}  {}  {} of {} steps, {} calls, driven by the {}\n",
            Paint::Bold.on(execution.as_str()),
            paint.on(status.as_str()),
            self.view.settled,
            self.view.total,
            self.view.calls,
            word(&self.view.driver),
        );
        let rows: Vec<Vec<Cell>> = steps.iter().map(|step| self.row(step, terminal)).collect();
        let mut text = head + &columns(&rows).into_iter().map(|line| line + "\n").collect::<String>();
        if !self.view.remains.is_empty() {
            let parts: Vec<String> = self.view.remains.iter().map(ToString::to_string).collect();
            text += &format!("not undone: {}\n", parts.join(", "));
        }
        text + &told(execution, questions)
    }

    fn row(&self, step: &StepView, terminal: &Terminal) -> Vec<Cell> {
        let signs = terminal.signs;
        let (sign, paint) = match step.status {
            "completed" => (signs.done, Paint::Green),
            "compensated" => (signs.undone, Paint::Yellow),
            "failed" | "compensation_failed" => (signs.failed, Paint::Red),
            "in_doubt" | "waiting" | "retrying" => ("?", Paint::Yellow),
            _ => (signs.nothing, Paint::Dim),
        };
        let attempts = if step.attempts > 1 { format!("{} attempts", step.attempts) } else { String::new() };
        let failure =
            step.failure.as_ref().map(|failure| printable(&failure.to_string())).unwrap_or_default();
        vec![
            Cell::new(format!("  {sign}"), paint),
            step.id.as_str().into(),
            Cell::new(step.status.replace('_', " "), paint),
            Cell::new(attempts, Paint::Dim),
            failure.into(),
        ]
    }
}

/// The open questions, each with the command that answers it.
pub(crate) fn told(execution: &ExecutionId, questions: &[Ask]) -> String {
    questions.iter().map(|ask| format!("\n{}", question(execution, ask))).collect()
}

fn question(execution: &ExecutionId, ask: &Ask) -> String {
    let exec = |rest: String| format!("    rutter exec {rest}\n");
    let title = |text: String| {
        format!("{}\n", wrapped(&format!("{} {}", Paint::Yellow.on("?"), printable(&text)), 2))
    };
    match ask {
        Ask::Approval { part, call, tool, parameters, expires_at } => {
            let shown = parameters.as_ref().map(|value| cut(&value.to_string())).unwrap_or_default();
            title(format!("{part} wants to call {tool} with {shown}; until {}", utc(*expires_at)))
                + &exec(format!("approve {execution} --step '{part}' --call {call}"))
                + &exec(format!("reject {execution} --step '{part}' --call {call} --reason '…'"))
        }
        Ask::Doubt { part, reason, .. } => {
            title(format!("{part} may or may not have happened: {reason}. Find out, then say so"))
                + &exec(format!("resolve {execution} --step '{part}' --evidence '…' --result '{{…}}'"))
                + &exec(format!("resolve {execution} --step '{part}' --not-done --evidence '…'"))
        }
        Ask::Failure { step, failures, .. } => {
            let why: Vec<String> =
                failures.iter().take(3).map(|(part, failure)| format!("{part}: {failure}")).collect();
            title(format!("{step} failed for good ({})", why.join("; ")))
                + &exec(format!("retry {execution} --step {step}"))
                + &exec(format!("skip {execution} --step {step}"))
                + &exec(format!("resolve {execution} --step {step} --evidence '…' --result '{{…}}'"))
                + &exec(format!("answer {execution} --step {step} --with stop|continue|compensate|replan"))
        }
        Ask::Compensation { part, failure, .. } => {
            title(format!("{part} could not be undone ({failure})"))
                + &exec(format!("retry {execution} --step '{part}'"))
                + &exec(format!("skip {execution} --step '{part}'"))
                + &exec(format!("resolve {execution} --step '{part}' --evidence '…'"))
        }
        Ask::Limit { limit, .. } => {
            title(format!("the limit of {} is reached", word(limit)))
                + &exec(format!("answer {execution} --with continue|stop|compensate|replan"))
        }
        Ask::Tool { part, message, schema, .. } => {
            let schema = schema.as_ref().map(|schema| cut(&schema.to_string())).unwrap_or_default();
            title(format!("the tool of {part} asks: {message} {schema}"))
                + &exec(format!("reply {execution} --step '{part}' --answer '{{…}}'"))
                + &exec(format!("reply {execution} --step '{part}' --decline"))
        }
        Ask::Drift { tool, pinned, found } => {
            title(format!(
                "{tool} has changed since the plan was checked ({} is now {})",
                pinned.short(),
                found.short()
            )) + &format!("    rutter tools show {tool}\n")
                + &exec(format!("accept-tool {execution} --tool {tool} --reason '…'"))
        }
    }
}

/// The step of a part, where only that can be named.
pub(crate) fn part_of(text: &str) -> Result<PartId, String> {
    PartId::parse(text).ok_or_else(|| format!("expected a step, or step[item], got {text:?}"))
}

fn cut(text: &str) -> String {
    const CHARS_MAX: usize = 300;
    match text.char_indices().nth(CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
