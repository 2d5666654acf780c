//! Progress of an execution, one line per event as it happens. Goes to stderr: stdout is for the result.

use crate::printable::printable;
use crate::table::CellColor;
use crate::terminal::{Terminal, TerminalSymbols};
use rutter_core::id::PartId;
use rutter_core::journal::attempts::{AttemptChange, OpenAttempts};
use rutter_core::journal::describe::{EventTone, EventTopic};
use rutter_core::journal::event::{AttemptFollowUp, Event, EventRecord};
use rutter_core::port::tools;
use rutter_core::time::Timestamp;
use std::collections::BTreeMap;

/// The length of each quotation in a line.
const QUOTE_CHARS_MAX: usize = 300;

/// Prints records as short lines.
#[derive(Debug)]
pub(crate) struct ProgressPrinter {
    terminal: Terminal,
    is_quiet: bool,
    /// The last entry that was printed, or skipped at the start.
    last: u64,
    attempts: OpenAttempts,
    /// Parts that wait for their next attempt, with its time.
    pub(crate) backing_off: BTreeMap<PartId, Timestamp>,
}

impl ProgressPrinter {
    pub(crate) fn new(terminal: &Terminal, is_quiet: bool) -> ProgressPrinter {
        ProgressPrinter {
            terminal: *terminal,
            is_quiet,
            last: 0,
            attempts: OpenAttempts::default(),
            backing_off: BTreeMap::new(),
        }
    }

    /// Skips the entries up to this one.
    pub(crate) fn after(mut self, last: u64) -> ProgressPrinter {
        self.last = last;
        self
    }

    /// Prints entries, the first of which has the number `first`, each only once.
    pub(crate) fn print_all(&mut self, first: u64, records: &[EventRecord]) {
        for line in self.lines(first, records) {
            if !self.is_quiet {
                self.terminal.progress("");
                self.terminal.remark(&format!("{line}\n"));
            }
        }
    }

    /// The lines of entries that were not printed yet.
    pub(crate) fn lines(&mut self, first: u64, records: &[EventRecord]) -> Vec<String> {
        let mut lines = Vec::new();
        for (seq, record) in (first..).zip(records) {
            if seq > self.last {
                self.last = seq;
                lines.extend(self.line(seq, record));
            }
        }
        lines
    }

    /// Shows a tool's progress on the last line of the terminal.
    pub(crate) fn hint(&self, part: &PartId, progress: &tools::ToolProgress) {
        if self.is_quiet {
            return;
        }
        let of = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = progress.message.as_deref().map(printable).unwrap_or_default();
        self.terminal.progress(&format!("  {part}: {}{of} {message}", progress.done));
    }

    /// Shows the countdown to the next attempt.
    pub(crate) fn count_down(&self, now: Timestamp) {
        let next = self.backing_off.iter().min_by_key(|(_, when)| **when);
        if let Some((part, when)) = next.filter(|(_, when)| **when > now && !self.is_quiet) {
            let seconds = when.since(now).0.div_ceil(1_000);
            self.terminal.progress(&format!("  {part}: retry in {seconds} s"));
        }
    }

    fn line(&mut self, seq: u64, record: &EventRecord) -> Option<String> {
        let change = self.attempts.apply(seq, record.at, &record.event);
        let took = self.follow(change);
        let description = record.describe();
        match &record.event {
            // The question that follows, or the next line, says the same.
            Event::ExecutionStarted {} | Event::ApprovalRequested { .. } | Event::ContextSaved { .. } => None,
            Event::ExecutionOpened { plan, .. } => {
                let name = plan.plan.as_ref().map_or("", |plan| plan.name.as_str());
                Some(format!("{} {}", CellColor::Bold.on(&printable(name)), plan.hash.short()))
            }
            Event::ExecutionEnded { .. } => {
                let paint = if description.tone == EventTone::Good { CellColor::Green } else { CellColor::Red };
                Some(paint.on(&printable(&description.sentence_within(QUOTE_CHARS_MAX))))
            }
            _ => {
                let sign = sign(self.terminal.signs, description.topic, description.tone);
                let words = printable(&description.compact(QUOTE_CHARS_MAX));
                Some(format!("  {sign} {words}{took}"))
            }
        }
    }

    /// Tracks which parts wait for a retry; returns how long a successful attempt took.
    fn follow(&mut self, change: Option<AttemptChange>) -> String {
        match change {
            Some(AttemptChange::Started(key)) => {
                self.backing_off.remove(&key.part);
            }
            Some(AttemptChange::Closed(closed)) => match closed.end.then() {
                Some(AttemptFollowUp::RetryAt(due)) => {
                    self.backing_off.insert(closed.key.part, due);
                }
                Some(_) => {}
                None => return closed.took().map(|took| format!(" ({took})")).unwrap_or_default(),
            },
            Some(AttemptChange::Abandoned(_) | AttemptChange::AnsweredLate { .. }) | None => {}
        }
        String::new()
    }
}

fn sign(signs: TerminalSymbols, topic: EventTopic, tone: EventTone) -> String {
    match (topic, tone) {
        (EventTopic::Compensation, EventTone::Good) => CellColor::Green.on(signs.undone),
        (EventTopic::Compensation, EventTone::Neutral) => signs.undone.to_owned(),
        (_, EventTone::Good) => CellColor::Green.on(signs.done),
        (_, EventTone::Bad) => CellColor::Red.on(signs.failed),
        (_, EventTone::Attention) => CellColor::Yellow.on(signs.partly),
        (_, EventTone::Neutral) => signs.nothing.to_owned(),
    }
}
