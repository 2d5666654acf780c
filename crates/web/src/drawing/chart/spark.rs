//! A sparkline.

use super::open;
use crate::drawing::svg_text::{count, number};
use std::fmt::Write as _;

const WIDTH: f64 = 120.0;
const HEIGHT: f64 = 28.0;
const MARGIN: f64 = 3.0;

/// Draws values as a line; a missing value is a gap.
pub fn spark(title: &str, values: &[Option<f64>], in_words: impl Fn(f64) -> String) -> String {
    let known: Vec<f64> = values.iter().flatten().copied().filter(|value| value.is_finite()).collect();
    let (Some(&last), Some(lowest), Some(highest)) =
        (known.last(), known.iter().copied().reduce(f64::min), known.iter().copied().reduce(f64::max))
    else {
        return open("spark", WIDTH, HEIGHT, title, "no values") + "</svg>";
    };
    let description = format!(
        "{}, from {} to {}, the last {}",
        count(known.len(), "value"),
        in_words(lowest),
        in_words(highest),
        in_words(last)
    );
    let mut svg = open("spark", WIDTH, HEIGHT, title, &description);
    let across = (WIDTH - 2.0 * MARGIN) / values.len().saturating_sub(1).max(1) as f64;
    let y = |value: f64| {
        let part = if highest > lowest { (value - lowest) / (highest - lowest) } else { 0.5 };
        HEIGHT - MARGIN - part * (HEIGHT - 2.0 * MARGIN)
    };
    let (mut path, mut pen_is_up, mut end) = (String::new(), true, (MARGIN, y(last)));
    for (place, value) in values.iter().enumerate() {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            pen_is_up = true;
            continue;
        };
        end = (MARGIN + place as f64 * across, y(value));
        let _ = write!(path, "{}{} {}", if pen_is_up { "M" } else { "L" }, number(end.0), number(end.1));
        pen_is_up = false;
    }
    let _ = write!(
        svg,
        "<path class=\"way\" d=\"{path}\"/><circle class=\"dot\" cx=\"{}\" cy=\"{}\" r=\"2.4\"/></svg>",
        number(end.0),
        number(end.1)
    );
    svg
}
