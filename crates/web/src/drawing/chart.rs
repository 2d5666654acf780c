//! Charts. Each has a title and a text description; the page adds the data as a table.

mod bars;
mod spark;

pub use bars::{ChartBar, ChartSeries, RankedBar, StackedChart, histogram, ranked, stacked};
pub use spark::spark;

use super::svg_text::{number, text};

/// The opening of a chart: size, title and description.
fn open(class: &str, width: f64, height: f64, title: &str, description: &str) -> String {
    format!(
        "<svg class=\"chart {class}\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" \
         height=\"{1}\" role=\"img\" aria-label=\"{2}. {3}\"><title>{2}</title><desc>{3}</desc>",
        number(width),
        number(height),
        text(title),
        text(description)
    )
}

/// The next round number, for the top of a scale.
fn ceiling(highest: u64) -> u64 {
    let mut scale: u64 = 1;
    loop {
        for factor in [1, 2, 4, 5, 10] {
            let round = scale.saturating_mul(factor);
            if round >= highest {
                return round.max(1);
            }
        }
        scale = scale.saturating_mul(10);
    }
}

/// `12`, `4.2 k`, `1.5 M`.
fn short(value: u64) -> String {
    let scaled = |unit: u64, name: &str| match value % unit / (unit / 10) {
        0 => format!("{} {name}", value / unit),
        tenth => format!("{}.{tenth} {name}", value / unit),
    };
    match value {
        0..10_000 => value.to_string(),
        10_000..1_000_000 => scaled(1_000, "k"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "M"),
        _ => scaled(1_000_000_000, "G"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_in_round_numbers() {
        for (highest, round) in [(0, 1), (1, 1), (3, 4), (6, 10), (11, 20), (450, 500), (u64::MAX, u64::MAX)] {
            assert_eq!(ceiling(highest), round);
        }
    }

    #[test]
    fn large_numbers_are_shortened() {
        for (value, written) in [(9_999, "9999"), (12_000, "12 k"), (1_540_000, "1.5 M"), (2_000_000_000, "2 G")] {
            assert_eq!(short(value), written);
        }
    }
}
