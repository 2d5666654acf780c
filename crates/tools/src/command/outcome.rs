//! The outcome of a call from the end of its program. A failed program may have done half of its work; only an exit
//! code declared for that, or that it never ran, proves that nothing happened.

use super::run::{CutReason, ProgramBounds, ProgramRun};
use crate::child::ProgramExit;
use crate::config::command::{ExitMeaning, ResultFormat};
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

const STDERR_LINES_MAX: usize = 10;
const STDERR_LINE_CHARACTERS_MAX: usize = 300;

pub(super) fn of(
    ran: ProgramRun,
    bounds: &ProgramBounds,
    form: ResultFormat,
    exits: &BTreeMap<i32, ExitMeaning>,
) -> CallOutcome {
    let (ended, stdout, stderr, cut) = match ran {
        ProgramRun::Never(why) => {
            return CallOutcome::NotDone(ToolFailure::new(FailureCategory::Unavailable, why));
        }
        ProgramRun::Ended { ended, stdout, stderr, cut } => (ended, stdout, stderr, cut),
    };
    let code = ended.0.and_then(|status| status.code());
    let text = last_lines(&stderr);
    let exit = match code {
        Some(0) => Some(ExitMeaning::Done),
        Some(code) => exits.get(&code).copied(),
        None => None,
    };
    match (exit, cut) {
        (Some(ExitMeaning::NotDone(category)), _) => {
            CallOutcome::NotDone(ToolFailure::new(category, last_words(ended, &stderr)))
        }
        (Some(ExitMeaning::Maybe(category)), _) => {
            CallOutcome::Maybe(ToolFailure::new(category, last_words(ended, &stderr)))
        }
        (Some(ExitMeaning::Done), None | Some(CutReason::Timeout | CutReason::Cancelled)) => {
            match read(&stdout, form) {
                Ok(result) => CallOutcome::Done { result: Arc::new(result), cost_micros: 0 },
                Err(problem) => {
                    CallOutcome::Maybe(ToolFailure::new(FailureCategory::Protocol, format!("{problem}{text}")))
                }
            }
        }
        (Some(ExitMeaning::Done) | None, Some(cut)) => {
            let (category, message) = why(cut, bounds);
            CallOutcome::Maybe(ToolFailure::new(category, format!("{message}{text}")))
        }
        (None, None) => CallOutcome::Maybe(ToolFailure::new(FailureCategory::ToolError, last_words(ended, &stderr))),
    }
}

fn why(cut: CutReason, bounds: &ProgramBounds) -> (FailureCategory, String) {
    match cut {
        CutReason::Timeout => {
            (FailureCategory::Timeout, format!("the program did not end within {} s", bounds.timeout.as_secs_f32()))
        }
        CutReason::Cancelled => {
            (FailureCategory::Cancelled, "the program was ended because the call was cancelled".to_owned())
        }
        CutReason::Output => {
            (FailureCategory::Protocol, format!("the program wrote more than {} KiB", bounds.output_kib))
        }
        CutReason::Processes => {
            (FailureCategory::ToolError, format!("the program started more than {} processes", bounds.processes))
        }
    }
}

/// How a program ended, with its last lines on standard error.
pub(crate) fn last_words(ended: ProgramExit, stderr: &[u8]) -> String {
    format!("{}{}", end(ended.0), last_lines(stderr))
}

fn end(status: Option<ExitStatus>) -> String {
    let Some(status) = status else { return "the program ended in an unknown way".to_owned() };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("the program ended with exit code {code}"),
        (None, Some(24)) => "the program used more processor time than it may".to_owned(),
        (None, Some(signal)) => format!("the program was killed by signal {signal}"),
        (None, None) => "the program ended in an unknown way".to_owned(),
    }
}

/// The last lines of standard error, on one line, without control characters.
fn last_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(STDERR_LINES_MAX)..];
    let escaped = last.iter().map(|line| {
        let line: String = line.chars().take(STDERR_LINE_CHARACTERS_MAX).collect();
        line.replace(|c: char| c.is_control(), "\u{fffd}")
    });
    let joined = escaped.collect::<Vec<_>>().join(" | ");
    if joined.is_empty() { joined } else { format!("; it last wrote: {joined}") }
}

fn read(stdout: &[u8], form: ResultFormat) -> Result<Value, String> {
    if form == ResultFormat::Json {
        return serde_json::from_slice(stdout).map_err(|error| format!("the program did not write JSON ({error})"));
    }
    let text = str::from_utf8(stdout).map_err(|_| "the program did not write UTF-8".to_owned())?;
    Ok(match form {
        ResultFormat::Lines => text.lines().collect(),
        ResultFormat::Json | ResultFormat::Text => text.strip_suffix('\n').unwrap_or(text).into(),
    })
}
