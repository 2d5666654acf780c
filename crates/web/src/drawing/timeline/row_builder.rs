//! One row under construction: open spans, closed spans and the status of the step.

use super::{AttemptOutcome, TimelineMarker, TimelineSpan, TimelineSpanKind};
use rutter_core::journal::attempts::{AttemptKey, OpenAttempt};
use rutter_core::journal::event::CallSide;
use rutter_core::time::{Millis, Timestamp};

/// What a step can wait for.
pub(super) const APPROVAL: &str = "approval";
pub(super) const DECISION: &str = "a decision";
pub(super) const DOUBT: &str = "the doubt to be settled";
pub(super) const REPLY: &str = "an answer for the tool";

pub(super) struct TimelineRowBuilder {
    pub(super) status: &'static str,
    pub(super) spans: Vec<TimelineSpan>,
    pub(super) diamonds: Vec<TimelineMarker>,
    /// Open waits and backoffs; `to` of a backoff is when the next attempt is due.
    open: Vec<TimelineSpan>,
    /// Attempts in flight.
    running: usize,
    began: Option<Timestamp>,
    rested: Option<Timestamp>,
}

impl TimelineRowBuilder {
    pub(super) fn new(status: &'static str) -> TimelineRowBuilder {
        TimelineRowBuilder {
            status,
            spans: Vec::new(),
            diamonds: Vec::new(),
            open: Vec::new(),
            running: 0,
            began: None,
            rested: None,
        }
    }

    pub(super) fn began(&self) -> Option<Timestamp> {
        self.began
    }

    pub(super) fn rested(&self) -> Option<Timestamp> {
        self.rested
    }

    /// From the first to the last activity, without time in the queue.
    pub(super) fn took(&self) -> Millis {
        let last = self.spans.iter().map(|span| span.to).max();
        self.began.zip(last).map_or(Millis(0), |(began, last)| last.since(began))
    }

    pub(super) fn stands(&mut self, status: &'static str) {
        self.status = status;
    }

    pub(super) fn rest(&mut self, at: Timestamp) {
        self.rested = Some(at);
    }

    /// Ends the step, unless other items of it are still running.
    pub(super) fn finish(&mut self, at: Timestamp, status: &'static str) {
        if self.open.is_empty() && self.running == 0 {
            self.status = status;
        }
        self.rested = Some(at);
    }

    pub(super) fn announce(&mut self, at: Timestamp) {
        self.began.get_or_insert(at);
    }

    pub(super) fn diamond(&mut self, at: Timestamp, text: String) {
        self.announce(at);
        self.diamonds.push(TimelineMarker { at, text });
    }

    pub(super) fn begin(&mut self, at: Timestamp, item: Option<u32>, side: CallSide) {
        self.announce(at);
        self.close(at, item, |kind| *kind == TimelineSpanKind::BackOff);
        self.running += 1;
        match side {
            CallSide::Do | CallSide::Fallback => self.status = "running",
            CallSide::Undo => self.status = "compensating",
            CallSide::Probe => {}
        }
    }

    /// Adds an attempt up to `at`, where it ended or the drawing does.
    pub(super) fn end_attempt(&mut self, at: Timestamp, attempt: &OpenAttempt, outcome: AttemptOutcome) {
        let OpenAttempt { key: AttemptKey { part, number, .. }, started_at: from, .. } = attempt;
        self.close(at, part.item, |kind| *kind == TimelineSpanKind::Waiting(REPLY));
        self.running = self.running.saturating_sub(1);
        let kind = TimelineSpanKind::Attempt { number: *number, outcome };
        self.spans.push(TimelineSpan { from: *from, to: at.max(*from), kind, item: part.item });
    }

    pub(super) fn back_off(&mut self, at: Timestamp, due: Timestamp, item: Option<u32>, side: CallSide) {
        self.open.push(TimelineSpan { from: at, to: due.max(at), kind: TimelineSpanKind::BackOff, item });
        self.status = if side == CallSide::Undo { "compensating" } else { "retrying" };
    }

    pub(super) fn wait(&mut self, at: Timestamp, item: Option<u32>, reason: &'static str, status: &'static str) {
        self.announce(at);
        self.open.push(TimelineSpan { from: at, to: at, kind: TimelineSpanKind::Waiting(reason), item });
        self.status = status;
    }

    pub(super) fn waits_for(&self, reason: &str) -> bool {
        self.open.iter().any(|span| matches!(span.kind, TimelineSpanKind::Waiting(open) if open == reason))
    }

    pub(super) fn end_wait(&mut self, at: Timestamp, item: Option<u32>, reason: &'static str) {
        self.close(at, item, |kind| *kind == TimelineSpanKind::Waiting(reason));
    }

    /// Ends every wait of an item: it ended or continues another way.
    pub(super) fn end_waits(&mut self, at: Timestamp, item: Option<u32>) {
        self.close(at, item, |_| true);
    }

    /// Ends every wait of every item. A step that has not started when the execution ends never does.
    pub(super) fn end_all(&mut self, at: Timestamp, is_over: bool) {
        if is_over && self.status == "pending" {
            self.status = "cancelled";
        }
        self.end_waits(at, None);
    }

    /// Adds the time in the queue before the start.
    pub(super) fn queue(&mut self, ready: Timestamp) {
        if let Some(began) = self.began.filter(|began| *began > ready && !self.spans.is_empty()) {
            let first = self.spans.iter().map(|span| span.from).min().unwrap_or(began);
            self.spans.push(TimelineSpan {
                from: ready,
                to: first.max(ready),
                kind: TimelineSpanKind::Queued,
                item: None,
            });
        }
    }

    /// Closes open spans of this kind. Without an item, those of every item.
    fn close(&mut self, at: Timestamp, item: Option<u32>, is_meant: impl Fn(&TimelineSpanKind) -> bool) {
        let (closed, open): (Vec<TimelineSpan>, Vec<TimelineSpan>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|span| is_meant(&span.kind) && (item.is_none() || span.item == item));
        self.open = open;
        closed.into_iter().for_each(|span| self.shut(span, at));
    }

    fn shut(&mut self, span: TimelineSpan, at: Timestamp) {
        if span.kind != TimelineSpanKind::BackOff {
            return self.spans.push(TimelineSpan { to: at.max(span.from), ..span });
        }
        // A retry that is overdue is in the queue.
        let due = span.to;
        self.spans.push(TimelineSpan { to: due.min(at), ..span });
        if at > due {
            self.spans.push(TimelineSpan { from: due, to: at, kind: TimelineSpanKind::Queued, item: span.item });
        }
    }
}
