//! What happens to an execution, told line by line while it happens. Goes to stderr: stdout is for the answer.

use crate::table::Paint;
use crate::terminal::{Signs, Terminal, printable};
use rutter_core::id::PartId;
use rutter_core::journal::event::{EndedAs, Event, Record, Side, Then};
use rutter_core::port::tools;
use rutter_core::time::Timestamp;
use std::collections::BTreeMap;

/// Retells records as short lines.
#[derive(Debug)]
pub(crate) struct Progress {
    terminal: Terminal,
    is_quiet: bool,
    /// Entries that were told, or were there before anybody listened.
    told: u64,
    began: BTreeMap<(PartId, &'static str), Timestamp>,
    /// Waits for another attempt, until then.
    pub(crate) backing_off: BTreeMap<PartId, Timestamp>,
}

impl Progress {
    pub(crate) fn new(terminal: &Terminal, is_quiet: bool) -> Progress {
        Progress {
            terminal: *terminal,
            is_quiet,
            told: 0,
            began: BTreeMap::new(),
            backing_off: BTreeMap::new(),
        }
    }

    /// Leaves out what is older than this.
    pub(crate) fn after(mut self, told: u64) -> Progress {
        self.told = told;
        self
    }

    /// Tells entries, of which the first has this number, each only once.
    pub(crate) fn tell_all(&mut self, first: u64, records: &[Record]) {
        for (seq, record) in (first..).zip(records) {
            if seq > self.told {
                self.told = seq;
                self.tell(record);
            }
        }
    }

    fn tell(&mut self, record: &Record) {
        let line = self.line(record);
        if let Some(line) = line.filter(|_| !self.is_quiet) {
            self.terminal.progress("");
            self.terminal.remark(&format!("{line}\n"));
        }
    }

    /// How far a tool says it has come, and what is waited for, on the last line of the terminal.
    pub(crate) fn hint(&self, part: &PartId, progress: &tools::Progress) {
        if self.is_quiet {
            return;
        }
        let of = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = progress.message.as_deref().map(printable).unwrap_or_default();
        self.terminal.progress(&format!("  {part}: {}{of} {message}", progress.done));
    }

    /// Counts down to the next attempt.
    pub(crate) fn count_down(&self, now: Timestamp) {
        let next = self.backing_off.iter().min_by_key(|(_, when)| **when);
        if let Some((part, when)) = next.filter(|(_, when)| **when > now && !self.is_quiet) {
            let seconds = when.since(now).0.div_ceil(1_000);
            self.terminal.progress(&format!("  {part}: tried again in {seconds} s"));
        }
    }

    fn line(&mut self, record: &Record) -> Option<String> {
        let signs = self.terminal.signs;
        Some(match &record.event {
            Event::ExecutionOpened { plan, .. } => {
                let name = plan.plan.as_ref().map_or("", |plan| plan.name.as_str());
                format!("{} {}", Paint::Bold.on(&printable(name)), plan.hash.short())
            }
            Event::AttemptStarted { part, side, attempt, tool, .. } => {
                self.began.insert((part.clone(), name(*side)), record.at);
                self.backing_off.remove(part);
                let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
                format!("  {} {}{}{again}", signs.nothing, sided(part, *side), format_args!(" {tool}"))
            }
            Event::AttemptSucceeded { part, side, .. } => {
                let took = self.took(part, *side, record.at);
                let sign = match side {
                    Side::Undo => signs.undone,
                    Side::Do | Side::Fallback | Side::Probe => signs.done,
                };
                format!("  {} {}{took}", Paint::Green.on(sign), sided(part, *side))
            }
            Event::AttemptFailed { part, side, failure, maybe, then, .. } => {
                let what = if *maybe { "no answer that counts" } else { "failed" };
                let next = self.next(part, *then, record.at);
                let message = printable(&failure.to_string());
                format!("  {} {} {what}: {message}{next}", failed(signs), sided(part, *side))
            }
            Event::AttemptLost { part, side, then, .. } => {
                let next = self.next(part, *then, record.at);
                format!("  {} {} nobody knows how it ended{next}", failed(signs), sided(part, *side))
            }
            Event::PreparationFailed { part, side, failure }
            | Event::RetryAbandoned { part, side, failure } => {
                let message = printable(&failure.to_string());
                format!("  {} {} {message}", failed(signs), sided(part, *side))
            }
            Event::DoubtSettled { part, happened, reason, .. } => {
                let what = if *happened { "it happened" } else { "it did not happen" };
                format!("  {} {part} {what}: {}", signs.partly, printable(reason))
            }
            Event::CompensationStarted { parts, .. } => format!("  {} undoing {}", signs.undone, parts.len()),
            Event::ExecutionEnded { outcome, .. } => {
                let word = crate::journal::word(outcome);
                match outcome {
                    EndedAs::Completed => Paint::Green.on(&word),
                    _ => Paint::Red.on(&word),
                }
            }
            Event::ExecutionStarted {} | Event::ApprovalRequested { .. } | Event::ContextSaved { .. } => {
                return None;
            }
            event => format!("  {} {}", signs.nothing, printable(&crate::journal::happened(event))),
        })
    }

    fn took(&mut self, part: &PartId, side: Side, at: Timestamp) -> String {
        let began = self.began.remove(&(part.clone(), name(side)));
        began.map(|began| format!(" {}", at.since(began))).unwrap_or_default()
    }

    fn next(&mut self, part: &PartId, then: Then, now: Timestamp) -> String {
        match then {
            Then::RetryAt(when) => {
                self.backing_off.insert(part.clone(), when);
                format!("; again in {}", when.since(now))
            }
            Then::FallBack => "; falls back".to_owned(),
            Then::InDoubt => "; in doubt".to_owned(),
            Then::GiveUp => String::new(),
        }
    }
}

fn failed(signs: Signs) -> String {
    Paint::Red.on(signs.failed)
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Do => "",
        Side::Fallback => "fallback",
        Side::Undo => "undo",
        Side::Probe => "probe",
    }
}

fn sided(part: &PartId, side: Side) -> String {
    match side {
        Side::Do => part.to_string(),
        side => format!("{part} ({})", name(side)),
    }
}
