//! What happened when: a row for every step, a bar for every attempt, and the time nobody worked on it.

mod axis;
mod critical;
mod fold;
mod line;
mod paint;

pub use axis::span_in_words;
pub use fold::from_records;
pub use paint::svg;

use rutter_core::time::Timestamp;

/// So many rows are drawn at once.
pub const ROWS_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    pub title: String,
    pub from: Timestamp,
    pub to: Timestamp,
    /// While it is not over: the line up to which everything is known.
    pub now: Option<Timestamp>,
    /// When nothing was begun because somebody had said so.
    pub pauses: Vec<(Timestamp, Timestamp)>,
    /// What was decided about the execution as a whole.
    pub marks: Vec<Diamond>,
    /// In the order in which they began; those that have not come last.
    pub rows: Vec<Row>,
    /// Rows on pages before this one, and on all pages.
    pub rows_before: usize,
    pub rows_total: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub step: String,
    pub label: String,
    /// A row of its own for taking back what the step did.
    pub undo: bool,
    pub status: &'static str,
    /// On the chain of steps that took the longest, one after the other.
    pub critical: bool,
    pub spans: Vec<Span>,
    pub diamonds: Vec<Diamond>,
    pub href: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub from: Timestamp,
    pub to: Timestamp,
    pub kind: SpanKind,
    /// In a step with many items, which one.
    pub item: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SpanKind {
    Attempt {
        number: u32,
        outcome: AttemptOutcome,
    },
    /// It could have begun and there was no room.
    Queued,
    /// For somebody to say something.
    Waiting(&'static str),
    BackOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    Running,
    Succeeded,
    Failed,
    /// Nobody knows whether it took effect.
    Unknown,
}

/// Something said or decided at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Diamond {
    pub at: Timestamp,
    pub text: String,
}

impl Timeline {
    /// The rows of one page of [`ROWS_MAX`]; the first is 0.
    pub fn page(&self, page: usize) -> Timeline {
        let before = page.saturating_mul(ROWS_MAX).min(self.rows.len());
        let rows = self.rows[before..].iter().take(ROWS_MAX).cloned().collect();
        Timeline { rows, rows_before: before, ..self.clone() }
    }
}
