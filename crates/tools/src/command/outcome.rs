//! What the end of a program says about its effect. A program that failed may have done half of its work; only what it
//! declared, or that it never ran, says that nothing happened.

use super::run::{Bounds, Cut, Ran};
use crate::child::Ended;
use crate::config::command::{Exit, ResultForm};
use rutter_core::tool::{Category, Failure, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;

const STDERR_LINES_MAX: usize = 10;
const STDERR_LINE_CHARACTERS_MAX: usize = 300;

pub(super) fn of(ran: Ran, bounds: &Bounds, form: ResultForm, exits: &BTreeMap<i32, Exit>) -> Outcome {
    let (ended, stdout, stderr, cut) = match ran {
        Ran::Never(why) => return Outcome::NotDone(Failure::new(Category::Unavailable, why)),
        Ran::Ended { ended, stdout, stderr, cut } => (ended, stdout, stderr, cut),
    };
    let code = ended.0.and_then(|status| status.code());
    let said = last_lines(&stderr);
    let exit = match code {
        Some(0) => Some(Exit::Done),
        Some(code) => exits.get(&code).copied(),
        None => None,
    };
    match (exit, cut) {
        (Some(Exit::NotDone(category)), _) => {
            Outcome::NotDone(Failure::new(category, last_words(ended, &stderr)))
        }
        (Some(Exit::Maybe(category)), _) => {
            Outcome::Maybe(Failure::new(category, last_words(ended, &stderr)))
        }
        (Some(Exit::Done), None | Some(Cut::Timeout | Cut::Cancelled)) => match read(&stdout, form) {
            Ok(result) => Outcome::Done { result: Arc::new(result), cost_micros: 0 },
            Err(problem) => Outcome::Maybe(Failure::new(Category::Protocol, format!("{problem}{said}"))),
        },
        (Some(Exit::Done) | None, Some(cut)) => {
            let (category, message) = why(cut, bounds);
            Outcome::Maybe(Failure::new(category, format!("{message}{said}")))
        }
        (None, None) => Outcome::Maybe(Failure::new(Category::ToolError, last_words(ended, &stderr))),
    }
}

fn why(cut: Cut, bounds: &Bounds) -> (Category, String) {
    match cut {
        Cut::Timeout => {
            (Category::Timeout, format!("the program did not end within {} s", bounds.timeout.as_secs_f32()))
        }
        Cut::Cancelled => {
            (Category::Cancelled, "the program was ended because the call was cancelled".to_owned())
        }
        Cut::Output => (Category::Protocol, format!("the program wrote more than {} KiB", bounds.output_kib)),
        Cut::Processes => {
            (Category::ToolError, format!("the program started more than {} processes", bounds.processes))
        }
    }
}

/// How a program ended and what it said before, in words.
pub(crate) fn last_words(ended: Ended, stderr: &[u8]) -> String {
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

/// The last lines of standard error, on one line, with nothing in them that could move a cursor.
fn last_lines(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(STDERR_LINES_MAX)..];
    let shown = last.iter().map(|line| {
        let line: String = line.chars().take(STDERR_LINE_CHARACTERS_MAX).collect();
        line.replace(|c: char| c.is_control(), "\u{fffd}")
    });
    let joined = shown.collect::<Vec<_>>().join(" | ");
    if joined.is_empty() { joined } else { format!("; it last said: {joined}") }
}

fn read(stdout: &[u8], form: ResultForm) -> Result<Value, String> {
    if form == ResultForm::Json {
        return serde_json::from_slice(stdout)
            .map_err(|error| format!("the program did not write JSON ({error})"));
    }
    let text = str::from_utf8(stdout).map_err(|_| "the program did not write UTF-8".to_owned())?;
    Ok(match form {
        ResultForm::Lines => text.lines().collect(),
        ResultForm::Json | ResultForm::Text => text.strip_suffix('\n').unwrap_or(text).into(),
    })
}
