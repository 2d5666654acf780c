//! One row while it is being written: what is open, what is closed, and how the step stands.

use super::{AttemptOutcome, Diamond, Span, SpanKind};
use rutter_core::journal::event::Side;
use rutter_core::time::{Millis, Timestamp};

/// What a step can wait for, as it is told.
pub(super) const APPROVAL: &str = "approval";
pub(super) const DECISION: &str = "a decision";
pub(super) const DOUBT: &str = "word on what happened";
pub(super) const REPLY: &str = "an answer for the tool";

pub(super) struct Line {
    pub(super) status: &'static str,
    pub(super) spans: Vec<Span>,
    pub(super) diamonds: Vec<Diamond>,
    /// Not closed yet; `to` of a back-off is when the next attempt is due.
    open: Vec<Span>,
    began: Option<Timestamp>,
    rested: Option<Timestamp>,
}

impl Line {
    pub(super) fn new(status: &'static str) -> Line {
        Line { status, spans: Vec::new(), diamonds: Vec::new(), open: Vec::new(), began: None, rested: None }
    }

    pub(super) fn began(&self) -> Option<Timestamp> {
        self.began
    }

    pub(super) fn rested(&self) -> Option<Timestamp> {
        self.rested
    }

    /// From the first sign of work to the last, what stood in the queue not counted.
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

    /// Done, unless other items of the step are still under way.
    pub(super) fn finish(&mut self, at: Timestamp, status: &'static str) {
        if self.open.is_empty() {
            self.status = status;
        }
        self.rested = Some(at);
    }

    pub(super) fn announce(&mut self, at: Timestamp) {
        self.began.get_or_insert(at);
    }

    pub(super) fn diamond(&mut self, at: Timestamp, text: String) {
        self.announce(at);
        self.diamonds.push(Diamond { at, text });
    }

    pub(super) fn begin(&mut self, at: Timestamp, item: Option<u32>, number: u32, side: Side) {
        self.announce(at);
        self.close(at, item, |kind| *kind == SpanKind::BackOff);
        let kind = SpanKind::Attempt { number, outcome: AttemptOutcome::Running };
        self.open.push(Span { from: at, to: at, kind, item });
        match side {
            Side::Do | Side::Fallback => self.status = "running",
            Side::Undo => self.status = "compensating",
            Side::Probe => {}
        }
    }

    pub(super) fn end_attempt(&mut self, at: Timestamp, item: Option<u32>, outcome: AttemptOutcome) {
        self.close(at, item, |kind| *kind == SpanKind::Waiting(REPLY));
        let running = |span: &Span| span.item == item && matches!(span.kind, SpanKind::Attempt { .. });
        if let Some(place) = self.open.iter().rposition(running) {
            let mut span = self.open.remove(place);
            if let SpanKind::Attempt { outcome: open, .. } = &mut span.kind {
                *open = outcome;
            }
            self.spans.push(Span { to: at.max(span.from), ..span });
        }
    }

    pub(super) fn back_off(&mut self, at: Timestamp, due: Timestamp, item: Option<u32>, side: Side) {
        self.open.push(Span { from: at, to: due.max(at), kind: SpanKind::BackOff, item });
        self.status = if side == Side::Undo { "compensating" } else { "retrying" };
    }

    pub(super) fn wait(
        &mut self,
        at: Timestamp,
        item: Option<u32>,
        reason: &'static str,
        status: &'static str,
    ) {
        self.announce(at);
        self.open.push(Span { from: at, to: at, kind: SpanKind::Waiting(reason), item });
        self.status = status;
    }

    pub(super) fn waits_for(&self, reason: &str) -> bool {
        self.open.iter().any(|span| matches!(span.kind, SpanKind::Waiting(open) if open == reason))
    }

    pub(super) fn end_wait(&mut self, at: Timestamp, item: Option<u32>, reason: &'static str) {
        self.close(at, item, |kind| *kind == SpanKind::Waiting(reason));
    }

    /// Ends whatever is not an attempt: the step is over, or goes another way.
    pub(super) fn end_waits(&mut self, at: Timestamp, item: Option<u32>) {
        self.close(at, item, |kind| !matches!(kind, SpanKind::Attempt { .. }));
    }

    /// Ends everything. An attempt that is open when the execution is over stays unknown for ever, and what has not
    /// begun by then never does.
    pub(super) fn end_all(&mut self, at: Timestamp, is_over: bool) {
        if is_over && self.status == "pending" {
            self.status = "cancelled";
        }
        for mut span in std::mem::take(&mut self.open) {
            if let SpanKind::Attempt { outcome, .. } = &mut span.kind
                && is_over
            {
                *outcome = AttemptOutcome::Unknown;
            }
            self.shut(span, at);
        }
    }

    /// Adds the time in the queue before it began.
    pub(super) fn queue(&mut self, ready: Timestamp) {
        if let Some(began) = self.began.filter(|began| *began > ready && !self.spans.is_empty()) {
            let first = self.spans.iter().map(|span| span.from).min().unwrap_or(began);
            self.spans.push(Span { from: ready, to: first.max(ready), kind: SpanKind::Queued, item: None });
        }
    }

    /// Closes what is open of this kind. Without an item, that of every item.
    fn close(&mut self, at: Timestamp, item: Option<u32>, is_meant: impl Fn(&SpanKind) -> bool) {
        let (closed, open): (Vec<Span>, Vec<Span>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|span| is_meant(&span.kind) && (item.is_none() || span.item == item));
        self.open = open;
        closed.into_iter().for_each(|span| self.shut(span, at));
    }

    fn shut(&mut self, span: Span, at: Timestamp) {
        if span.kind != SpanKind::BackOff {
            return self.spans.push(Span { to: at.max(span.from), ..span });
        }
        // Past its due time, a retry stands in the queue.
        let due = span.to;
        self.spans.push(Span { to: due.min(at), ..span });
        if at > due {
            self.spans.push(Span { from: due, to: at, kind: SpanKind::Queued, item: span.item });
        }
    }
}
