//! The timeline as SVG.

use super::axis::{TimeAxis, span_in_words};
use super::{AttemptOutcome, ROWS_MAX, Timeline, TimelineMarker, TimelineRow, TimelineSpan, TimelineSpanKind};
use crate::drawing::status::StatusMark;
use crate::drawing::svg_text::{count, fit, id, length, number, text};
use rutter_core::time::calendar::utc;
use rutter_core::time::{Millis, Timestamp};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const LABEL_LEFT: f64 = 34.0;
const LABEL_SIZE: f64 = 12.0;
const SMALL_SIZE: f64 = 10.5;
const CHART_LEFT: f64 = 216.0;
const CHART_WIDTH: f64 = 780.0;
/// Space right of the chart for texts next to the last bars.
const CHART_RIGHT: f64 = 132.0;
const TOP: f64 = 30.0;
const ROW: f64 = 26.0;
const BAR: f64 = 14.0;
const BAR_MIN: f64 = 3.0;
const BOTTOM: f64 = 24.0;
const HATCH: f64 = 6.0;
/// Overlapping items of one step share the height of its row in at most this many lanes.
const LANES_MAX: usize = 4;

/// Draws the rows, at most [`ROWS_MAX`].
pub fn svg(timeline: &Timeline) -> String {
    let rows = &timeline.rows[..timeline.rows.len().min(ROWS_MAX)];
    let heading = usize::from(!timeline.marks.is_empty());
    let lines = (rows.len() + heading) as f64;
    let bottom = TOP + lines * ROW;
    let (width, height) = (CHART_LEFT + CHART_WIDTH + CHART_RIGHT, bottom + BOTTOM);
    let axis = TimeAxis::new(timeline.from, timeline.to, CHART_LEFT, CHART_WIDTH);
    let mut svg = format!(
        "<svg class=\"timeline\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" \
         height=\"{1}\" role=\"group\" aria-label=\"{2}\"><desc>{3}</desc>",
        number(width),
        number(height),
        text(&format!("Timeline of {}", timeline.title)),
        text(&summary(timeline)),
    );
    paint_axis(&mut svg, &axis, bottom);
    for &(from, to) in &timeline.pauses {
        paint_pause(&mut svg, axis.x(from), axis.x(to), bottom);
    }
    if heading == 1 {
        let _ = write!(
            svg,
            "<g class=\"whole\"><text class=\"label\" x=\"{}\" y=\"{}\">whole execution</text>",
            number(LABEL_LEFT),
            number(TOP + 17.0)
        );
        timeline.marks.iter().for_each(|mark| paint_diamond(&mut svg, &axis, mark, TOP));
        svg.push_str("</g>");
    }
    for (place, row) in rows.iter().enumerate() {
        paint_row(&mut svg, &axis, row, TOP + (place + heading) as f64 * ROW);
    }
    if let Some(now) = timeline.now {
        paint_now(&mut svg, axis.x(now), bottom);
    }
    if timeline.rows_total > rows.len() {
        let (first, last) = (timeline.rows_before + 1, timeline.rows_before + rows.len());
        let _ = write!(
            svg,
            "<text class=\"note\" x=\"{}\" y=\"{}\">rows {first} to {last} of {}</text>",
            number(LABEL_LEFT),
            number(bottom + 17.0),
            timeline.rows_total
        );
    }
    svg.push_str("</svg>");
    svg
}

/// The text description of the timeline.
fn summary(timeline: &Timeline) -> String {
    let steps: Vec<&TimelineRow> = timeline.rows.iter().filter(|row| !row.undo).collect();
    let mut tally: BTreeMap<&str, usize> = BTreeMap::new();
    steps.iter().for_each(|row| *tally.entry(StatusMark::of(row.status).word).or_default() += 1);
    let counts: String = tally.iter().map(|(word, count)| format!(", {count} {word}")).collect();
    let length = span_in_words(timeline.to.since(timeline.from));
    let mut words = format!(
        "{}{counts}; {}, started {}",
        count(timeline.rows_total.min(steps.len()), "step"),
        if timeline.now.is_some() { format!("{length} so far") } else { length },
        utc(timeline.from)
    );
    let critical: Vec<&str> = steps.iter().filter(|row| row.critical).map(|row| row.label.as_str()).collect();
    if !critical.is_empty() {
        let _ = write!(words, "; critical path: {}", critical.join(", "));
    }
    words
}

fn paint_axis(svg: &mut String, axis: &TimeAxis, bottom: f64) {
    svg.push_str("<g class=\"axis\" aria-hidden=\"true\">");
    for (x, label) in axis.ticks() {
        let _ = write!(
            svg,
            "<path d=\"M{x} {}V{}\"/><text x=\"{x}\" y=\"16\">{label}</text>",
            number(TOP - 6.0),
            number(bottom),
            x = number(x)
        );
    }
    svg.push_str("</g>");
}

fn paint_pause(svg: &mut String, from: f64, to: f64, bottom: f64) {
    let _ = write!(
        svg,
        "<rect class=\"pause\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>paused</title></rect>",
        number(from),
        number(TOP),
        number((to - from).max(BAR_MIN)),
        number(bottom - TOP)
    );
}

fn paint_now(svg: &mut String, x: f64, bottom: f64) {
    let _ = write!(
        svg,
        "<g class=\"now\" aria-hidden=\"true\"><path d=\"M{x} {}V{}\"/><text x=\"{x}\" y=\"{}\">now</text></g>",
        number(TOP - 6.0),
        number(bottom + 4.0),
        number(bottom + 17.0),
        x = number(x)
    );
}

fn paint_row(svg: &mut String, axis: &TimeAxis, row: &TimelineRow, y: f64) {
    let mark = StatusMark::of(row.status);
    let class = if row.critical { " critical" } else { "" };
    let (kind, arrow) = if row.undo { ("undo", "↩ ") } else { ("row", "") };
    let name = text(&name(row));
    let label = fit(&format!("{arrow}{}", row.label), LABEL_SIZE, CHART_LEFT - LABEL_LEFT - 12.0);
    let _ = write!(
        svg,
        "<a class=\"row{class} {}\" id=\"{kind}-{}\" href=\"{}\" data-step=\"{}\">\
         <title>{name}</title><g aria-hidden=\"true\"><rect class=\"ground\" x=\"0\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"4\"/>{}\
         <text class=\"label\" x=\"{}\" y=\"{}\">{}</text>",
        mark.tone.class(),
        id(&row.step),
        text(&row.href),
        text(&row.step),
        number(y + 1.0),
        number(CHART_LEFT + CHART_WIDTH + CHART_RIGHT),
        number(ROW - 2.0),
        mark.sign(10.0, y + 5.0),
        number(LABEL_LEFT),
        number(y + 17.0),
        text(&label)
    );
    let lanes = lanes(&row.spans);
    let height = BAR / lanes.iter().max().map_or(1, |last| last + 1) as f64;
    let mut spans: Vec<(&TimelineSpan, usize)> = row.spans.iter().zip(lanes).collect();
    // Where items overlap, a failed one must not be covered by others.
    spans.sort_by_key(|(span, _)| span.item.is_some() && has_failed(span));
    for (span, lane) in spans {
        paint_span(svg, axis, span, y + (ROW - BAR) / 2.0 + height * lane as f64, height);
    }
    row.diamonds.iter().for_each(|diamond| paint_diamond(svg, axis, diamond, y));
    paint_words(svg, axis, row, y);
    svg.push_str("</g></a>");
}

/// The text behind the last bar: the duration, or the status.
fn paint_words(svg: &mut String, axis: &TimeAxis, row: &TimelineRow, y: f64) {
    let last = row.spans.iter().map(|span| span.to).chain(row.diamonds.iter().map(|diamond| diamond.at)).max();
    let words = match work(row) {
        Some(took) if matches!(row.status, "completed" | "compensated") => span_in_words(took),
        _ => StatusMark::of(row.status).word.to_owned(),
    };
    let words = fit(&words, SMALL_SIZE, CHART_RIGHT - 12.0);
    let x = last.map_or(CHART_LEFT, |last| axis.x(last).max(CHART_LEFT + BAR_MIN)) + 8.0;
    let _ = write!(svg, "<text class=\"words\" x=\"{}\" y=\"{}\">{}</text>", number(x), number(y + 17.0), text(&words));
}

/// From the first attempt or wait to the end of the last.
fn work(row: &TimelineRow) -> Option<Millis> {
    let spans = || row.spans.iter().filter(|span| span.kind != TimelineSpanKind::Queued);
    Some(spans().map(|span| span.to).max()?.since(spans().map(|span| span.from).min()?))
}

/// `Score fraud risk: completed, 3 attempts, 2.1 s, on the critical path`.
fn name(row: &TimelineRow) -> String {
    let mut name = if row.undo { format!("Undo {}", row.label) } else { row.label.clone() };
    let _ = write!(name, ": {}", StatusMark::of(row.status).word);
    let attempts = row.spans.iter().filter(|span| matches!(span.kind, TimelineSpanKind::Attempt { .. })).count();
    if attempts > 0 {
        let _ = write!(name, ", {}", count(attempts, "attempt"));
    }
    if let Some(took) = work(row) {
        let _ = write!(name, ", {}", span_in_words(took));
    }
    for (waited, reason) in waits(row) {
        let _ = write!(name, ", waited {} for {reason}", span_in_words(waited));
    }
    if row.critical {
        name.push_str(", on the critical path");
    }
    name
}

fn waits(row: &TimelineRow) -> Vec<(Millis, &'static str)> {
    let wait = |span: &TimelineSpan| match span.kind {
        TimelineSpanKind::Waiting(reason) => Some((span.to.since(span.from), reason)),
        _ => None,
    };
    row.spans.iter().filter_map(wait).collect()
}

/// The lane of each span in its row: overlapping items are drawn below each other.
fn lanes(spans: &[TimelineSpan]) -> Vec<usize> {
    let mut free_at: Vec<(Option<u32>, Timestamp)> = Vec::new();
    let place = |span: &TimelineSpan| {
        let Some(item) = span.item else { return 0 };
        let fits = |lane: &(Option<u32>, Timestamp)| lane.0 == Some(item) || lane.1 <= span.from;
        let lane = free_at.iter().position(fits).unwrap_or(free_at.len()).min(LANES_MAX - 1);
        if lane == free_at.len() {
            free_at.push((Some(item), span.to));
        } else {
            free_at[lane] = (Some(item), free_at[lane].1.max(span.to));
        }
        lane
    };
    spans.iter().map(place).collect()
}

fn has_failed(span: &TimelineSpan) -> bool {
    matches!(span.kind, TimelineSpanKind::Attempt { outcome: AttemptOutcome::Failed | AttemptOutcome::Unknown, .. })
}

fn paint_span(svg: &mut String, axis: &TimeAxis, span: &TimelineSpan, y: f64, height: f64) {
    let (x, width) = (axis.x(span.from), axis.x(span.to) - axis.x(span.from));
    let title = text(&title(span));
    match &span.kind {
        TimelineSpanKind::Attempt { number: attempt, outcome } => {
            let (tone, unknown) = match outcome {
                AttemptOutcome::Running => ("tone-run", ""),
                AttemptOutcome::Succeeded => ("tone-ok", ""),
                AttemptOutcome::Failed => ("tone-bad", ""),
                AttemptOutcome::Unknown => ("tone-bad", " unknown"),
            };
            let item = if height < BAR { " item" } else { "" };
            paint_bar(svg, &format!("attempt{unknown}{item} {tone}"), x, y, width, height, &title);
            let written = attempt.to_string();
            let has_label = *attempt > 1 || *outcome != AttemptOutcome::Succeeded;
            if has_label && height >= BAR && width > length(&written, SMALL_SIZE) + 5.0 {
                let (x, y) = (number(x + 4.0), number(y + 10.8));
                let _ = write!(svg, "<text class=\"number{unknown}\" x=\"{x}\" y=\"{y}\">{written}</text>");
            }
        }
        TimelineSpanKind::Queued => paint_bar(svg, "queued", x, y + height / 2.0 - 1.5, width, 3.0, &title),
        TimelineSpanKind::Waiting(_) => {
            paint_bar(svg, "waiting", x, y, width, height, &title);
            paint_hatch(svg, x, y, width, height);
        }
        TimelineSpanKind::BackOff => {
            let (from, to, y) = (number(x), number(x + width), number(y + height / 2.0));
            let _ = write!(svg, "<path class=\"back-off\" d=\"M{from} {y}H{to}\"><title>{title}</title></path>");
        }
    }
}

fn title(span: &TimelineSpan) -> String {
    let took = span_in_words(span.to.since(span.from));
    let item = span.item.map(|item| format!("item {item}, ")).unwrap_or_default();
    match &span.kind {
        TimelineSpanKind::Attempt { number, outcome } => {
            let outcome = match outcome {
                AttemptOutcome::Running => "running",
                AttemptOutcome::Succeeded => "succeeded",
                AttemptOutcome::Failed => "failed",
                AttemptOutcome::Unknown => "whether it took effect is unknown",
            };
            format!("{item}attempt {number}, {outcome}, {took}")
        }
        TimelineSpanKind::Queued => format!("{item}in the queue, {took}"),
        TimelineSpanKind::Waiting(reason) => format!("{item}waiting for {reason}, {took}"),
        TimelineSpanKind::BackOff => format!("{item}backing off, {took}"),
    }
}

fn paint_bar(svg: &mut String, class: &str, x: f64, y: f64, width: f64, height: f64, title: &str) {
    let _ = write!(
        svg,
        "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"><title>{title}</title></rect>",
        number(x),
        number(y),
        number(width.max(BAR_MIN)),
        number(height),
        number((height / 4.0).min(3.0))
    );
}

/// Slanted lines in a bar. Drawn as lines instead of a pattern: a pattern needs an id, and vanishes when the first
/// drawing on the page that defines it is hidden.
fn paint_hatch(svg: &mut String, x: f64, y: f64, width: f64, height: f64) {
    let slant = height.min(width);
    let lines = ((width - slant) / HATCH).max(0.0) as usize;
    let mut path = String::new();
    for line in 0..=lines {
        let _ = write!(path, "M{} {}l{s} -{s}", number(x + line as f64 * HATCH), number(y + height), s = number(slant));
    }
    let _ = write!(svg, "<path class=\"hatch\" d=\"{path}\"/>");
}

fn paint_diamond(svg: &mut String, axis: &TimeAxis, diamond: &TimelineMarker, y: f64) {
    let _ = write!(
        svg,
        "<path class=\"diamond\" d=\"M{} {}l5 5l-5 5l-5 -5z\"><title>{}</title></path>",
        number(axis.x(diamond.at)),
        number(y + ROW / 2.0 - 5.0),
        text(&diamond.text)
    );
}
