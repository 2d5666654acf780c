//! The timeline: a row per step, a bar per attempt, and waits between them.

mod axis;
mod critical;
mod fold;
mod paint;
mod row_builder;

pub use axis::span_in_words;
pub use fold::from_records;
pub use paint::svg;

use rutter_core::time::Timestamp;

/// Rows per page.
pub const ROWS_MAX: usize = 200;

#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    pub title: String,
    pub from: Timestamp,
    pub to: Timestamp,
    /// While it has not ended: the time up to which everything is known.
    pub now: Option<Timestamp>,
    /// When the execution was paused.
    pub pauses: Vec<(Timestamp, Timestamp)>,
    /// Decisions about the execution as a whole.
    pub marks: Vec<TimelineMarker>,
    /// By start time; steps that have not started come last.
    pub rows: Vec<TimelineRow>,
    /// Rows on earlier pages, and on all pages.
    pub rows_before: usize,
    pub rows_total: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TimelineRow {
    pub step: String,
    pub label: String,
    /// A separate row for the compensation of a step.
    pub undo: bool,
    pub status: &'static str,
    /// On the critical path.
    pub critical: bool,
    pub spans: Vec<TimelineSpan>,
    pub diamonds: Vec<TimelineMarker>,
    pub href: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TimelineSpan {
    pub from: Timestamp,
    pub to: Timestamp,
    pub kind: TimelineSpanKind,
    /// The item, in a step with items.
    pub item: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TimelineSpanKind {
    Attempt {
        number: u32,
        outcome: AttemptOutcome,
    },
    /// Ready, but without a permit.
    Queued,
    /// For a person's answer.
    Waiting(&'static str),
    BackOff,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    Running,
    Succeeded,
    Failed,
    /// It is unknown whether it took effect.
    Unknown,
}

/// A decision or comment at one time.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineMarker {
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
