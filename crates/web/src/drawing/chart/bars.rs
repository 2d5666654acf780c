//! Bar charts: stacked over time, histograms, and horizontal bars by size.

use super::{ceiling, open, short};
use crate::drawing::status::StatusTone;
use crate::drawing::svg_text::{count, fit, length, number, text};
use std::fmt::Write as _;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 12.0;
/// Space below the bars for labels and, with several series, the legend.
const LABELS: f64 = 22.0;
const LEGEND: f64 = 24.0;
const TEXT_SIZE: f64 = 11.0;
/// The space between labels; where it is too small, some are omitted.
const LABEL_GAP: f64 = 12.0;
const HATCH: f64 = 5.0;

/// Counts over time, each bar made of the same series.
#[derive(Clone, Debug)]
pub struct StackedChart<'a> {
    pub title: &'a str,
    /// What is counted, in the singular: `execution`.
    pub unit: &'a str,
    pub series: &'a [ChartSeries<'a>],
    pub bars: &'a [ChartBar],
}

#[derive(Clone, Copy, Debug)]
pub struct ChartSeries<'a> {
    pub name: &'a str,
    pub tone: StatusTone,
}

#[derive(Clone, Debug)]
pub struct ChartBar {
    pub label: String,
    /// One value per series, in order.
    pub values: Vec<u64>,
}

/// Draws vertical bars of several series. Bad values are hatched, not only red.
pub fn stacked(chart: &StackedChart<'_>) -> String {
    let legend = if chart.series.len() > 1 { LEGEND } else { 0.0 };
    let mut svg = open("stacked", WIDTH, HEIGHT + legend, chart.title, &describe(chart));
    let total = |bar: &ChartBar| bar.values.iter().sum::<u64>();
    let top = ceiling(chart.bars.iter().map(total).max().unwrap_or(0));
    let bottom = HEIGHT - LABELS;
    paint_scale(&mut svg, top, bottom);
    let step = (WIDTH - LEFT) / chart.bars.len().max(1) as f64;
    let gap = (step * 0.18).min(6.0);
    for (place, bar) in chart.bars.iter().enumerate() {
        let x = LEFT + place as f64 * step + gap / 2.0;
        let mut below = 0;
        for (series, &value) in chart.series.iter().zip(&bar.values) {
            let height = |value: u64| value as f64 / top as f64 * (bottom - TOP);
            let y = bottom - height(below + value);
            if value > 0 {
                let title = format!("{}: {value} {}", bar.label, series.name);
                paint_piece(&mut svg, series.tone, (x, y), (step - gap, height(value)), &title);
            }
            below += value;
        }
    }
    paint_labels(&mut svg, chart.bars.iter().map(|bar| bar.label.as_str()), step);
    if legend > 0.0 {
        paint_legend(&mut svg, chart.series);
    }
    svg + "</svg>"
}

/// Draws the counts of buckets, in order.
pub fn histogram(title: &str, unit: &str, buckets: &[(String, u64)]) -> String {
    let bar = |(label, value): &(String, u64)| ChartBar { label: label.clone(), values: vec![*value] };
    let bars: Vec<ChartBar> = buckets.iter().map(bar).collect();
    stacked(&StackedChart { title, unit, series: &[ChartSeries { name: unit, tone: StatusTone::Run }], bars: &bars })
}

/// One horizontal bar.
#[derive(Clone, Debug)]
pub struct RankedBar {
    pub label: String,
    pub value: f64,
    /// The value as text behind the bar.
    pub words: String,
    pub tone: StatusTone,
}

/// Narrow enough for two charts in a row.
const RANKED_WIDTH: f64 = 520.0;
const RANKED_ROW: f64 = 26.0;
const RANKED_LEFT: f64 = 160.0;
const RANKED_RIGHT: f64 = 130.0;

/// Draws horizontal bars from top to bottom in the given order.
pub fn ranked(title: &str, rows: &[RankedBar]) -> String {
    let named = |row: &RankedBar| format!("{} {}", row.label, row.words);
    let description = match rows {
        [] => "no values".to_owned(),
        rows => rows.iter().take(10).map(named).collect::<Vec<_>>().join(", "),
    };
    let height = rows.len().max(1) as f64 * RANKED_ROW + 4.0;
    let mut svg = open("ranked", RANKED_WIDTH, height, title, &description);
    let highest = rows.iter().map(|row| row.value).filter(|value| value.is_finite()).fold(0.0, f64::max);
    for (place, row) in rows.iter().enumerate() {
        let y = place as f64 * RANKED_ROW + 2.0;
        let part = if highest > 0.0 && row.value.is_finite() { row.value.max(0.0) / highest } else { 0.0 };
        let width = (part * (RANKED_WIDTH - RANKED_LEFT - RANKED_RIGHT)).max(1.0);
        let label = text(&fit(&row.label, TEXT_SIZE, RANKED_LEFT - 12.0));
        let baseline = number(y + 16.0);
        let _ = write!(svg, "<text class=\"name\" x=\"0\" y=\"{baseline}\">{label}</text>");
        paint_piece(&mut svg, row.tone, (RANKED_LEFT, y + 4.0), (width, RANKED_ROW - 10.0), &named(row));
        let (x, words) = (number(RANKED_LEFT + width + 8.0), fit(&row.words, TEXT_SIZE, RANKED_RIGHT - 10.0));
        let _ = write!(svg, "<text class=\"value\" x=\"{x}\" y=\"{baseline}\">{}</text>", text(&words));
    }
    svg + "</svg>"
}

/// `310 executions: 290 completed, 20 failed; most at 13:00 with 42`.
fn describe(chart: &StackedChart<'_>) -> String {
    let total: u64 = chart.bars.iter().flat_map(|bar| &bar.values).sum();
    let mut words = count(usize::try_from(total).unwrap_or(usize::MAX), chart.unit);
    if chart.series.len() > 1 {
        let sum = |at: usize| chart.bars.iter().filter_map(|bar| bar.values.get(at)).sum::<u64>();
        let sums = chart.series.iter().enumerate().map(|(at, series)| format!("{} {}", sum(at), series.name));
        let _ = write!(words, ": {}", sums.collect::<Vec<_>>().join(", "));
    }
    let most = chart.bars.iter().map(|bar| (bar.values.iter().sum::<u64>(), &bar.label)).rev().max();
    if let Some((most, label)) = most.filter(|(most, _)| *most > 0) {
        let _ = write!(words, "; most at {label} with {most}");
    }
    words
}

fn paint_scale(svg: &mut String, top: u64, bottom: f64) {
    svg.push_str("<g class=\"axis\" aria-hidden=\"true\">");
    let half = (top >= 2 && top.is_multiple_of(2)).then_some(top / 2);
    for value in [Some(0), half, Some(top)].into_iter().flatten() {
        let y = bottom - value as f64 / top as f64 * (bottom - TOP);
        let _ = write!(
            svg,
            "<path d=\"M{} {y}H{}\"/><text class=\"scale\" x=\"{}\" y=\"{}\">{}</text>",
            number(LEFT),
            number(WIDTH),
            number(LEFT - 8.0),
            number(y + 4.0),
            short(value),
            y = number(y),
        );
    }
    svg.push_str("</g>");
}

fn paint_labels<'a>(svg: &mut String, labels: impl Iterator<Item = &'a str> + Clone, step: f64) {
    let longest = labels.clone().map(|label| length(label, TEXT_SIZE)).fold(0.0, f64::max) + LABEL_GAP;
    let every = (longest / step).ceil().max(1.0) as usize;
    svg.push_str("<g class=\"axis\" aria-hidden=\"true\">");
    for (place, label) in labels.enumerate().step_by(every) {
        let half = length(label, TEXT_SIZE) / 2.0;
        let x = (LEFT + (place as f64 + 0.5) * step).min(WIDTH - half);
        let _ = write!(svg, "<text x=\"{}\" y=\"{}\">{}</text>", number(x), number(HEIGHT - 6.0), text(label));
    }
    svg.push_str("</g>");
}

fn paint_legend(svg: &mut String, series: &[ChartSeries<'_>]) {
    let mut x = LEFT;
    for series in series {
        paint_piece(svg, series.tone, (x, HEIGHT + 6.0), (12.0, 12.0), series.name);
        let (left, y) = (number(x + 18.0), number(HEIGHT + 16.0));
        let _ = write!(svg, "<text class=\"name\" x=\"{left}\" y=\"{y}\">{}</text>", text(series.name));
        x += 18.0 + length(series.name, TEXT_SIZE) + 18.0;
    }
}

fn paint_piece(svg: &mut String, tone: StatusTone, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
    let _ = write!(
        svg,
        "<rect class=\"piece {}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>{}</title></rect>",
        tone.class(),
        number(x),
        number(y),
        number(width.max(1.0)),
        number(height.max(1.0)),
        text(title)
    );
    if tone == StatusTone::Bad {
        paint_hatch(svg, (x, y), (width, height));
    }
}

/// Slanted lines clipped to a rectangle.
fn paint_hatch(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let mut path = String::new();
    let lines = ((width + height) / HATCH) as usize;
    for line in 1..=lines {
        // The line x + y = sum, clipped to the rectangle.
        let sum = line as f64 * HATCH;
        let (right, up) = (sum.min(width), sum.min(height));
        let from = (x + sum - up, y + height - up);
        let to = (x + right, y + height - (sum - right));
        let _ = write!(path, "M{} {}L{} {}", number(from.0), number(from.1), number(to.0), number(to.1));
    }
    if !path.is_empty() {
        let _ = write!(svg, "<path class=\"hatch\" d=\"{path}\"/>");
    }
}
