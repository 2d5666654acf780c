//! A writer for the Prometheus text format: help, type, then the samples.

use std::fmt::Write;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

impl MetricKind {
    fn as_str(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// The text of one scrape.
#[derive(Debug, Default)]
pub struct MetricsText(String);

/// The samples of one metric name.
#[derive(Debug)]
pub struct MetricFamily<'a> {
    page: &'a mut MetricsText,
    name: &'static str,
}

impl MetricsText {
    pub fn family(&mut self, name: &'static str, kind: MetricKind, help: &str) -> MetricFamily<'_> {
        let help = help.replace('\\', r"\\").replace('\n', r"\n");
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {}\n", kind.as_str());
        MetricFamily { page: self, name }
    }

    /// A metric with one value and no labels.
    pub fn single(&mut self, name: &'static str, kind: MetricKind, help: &str, value: f64) {
        self.family(name, kind, help).sample(&[], value);
    }

    pub fn text(self) -> String {
        self.0
    }
}

impl MetricFamily<'_> {
    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        self.line("", labels, value);
    }

    /// Cumulative: each bound with the number of values up to it. The last bound is infinity.
    pub fn histogram(&mut self, labels: &[(&str, &str)], buckets: &[(f64, u64)], count: u64, sum: f64) {
        for (bound, count) in buckets.iter().filter(|(bound, _)| bound.is_finite()) {
            let (bound, mut labels) = (number(*bound), labels.to_vec());
            labels.push(("le", &bound));
            self.line("_bucket", &labels, *count as f64);
        }
        let mut everything = labels.to_vec();
        everything.push(("le", "+Inf"));
        self.line("_bucket", &everything, count as f64);
        self.line("_sum", labels, sum);
        self.line("_count", labels, count as f64);
    }

    fn line(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        let text = &mut self.page.0;
        text.push_str(self.name);
        text.push_str(suffix);
        for (at, (name, value)) in labels.iter().enumerate() {
            text.push(if at == 0 { '{' } else { ',' });
            let _ = write!(text, "{name}=\"{}\"", escaped(value));
        }
        if !labels.is_empty() {
            text.push('}');
        }
        let _ = writeln!(text, " {}", number(value));
    }
}

fn number(value: f64) -> String {
    match value {
        value if value == f64::INFINITY => "+Inf".to_owned(),
        value if value == f64::NEG_INFINITY => "-Inf".to_owned(),
        value if value.is_nan() => "NaN".to_owned(),
        value => value.to_string(),
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_cannot_end_early() {
        let mut page = MetricsText::default();
        page.family("x", MetricKind::Gauge, "a\nb \\").sample(&[("a", "1\"} 2\nevil 1"), ("b", "\\")], 1.5);
        let expected = "# HELP x a\\nb \\\\\n# TYPE x gauge\nx{a=\"1\\\"} 2\\nevil 1\",b=\"\\\\\"} 1.5\n";
        assert_eq!(page.text(), expected);
    }

    #[test]
    fn a_histogram_ends_with_everything() {
        let mut page = MetricsText::default();
        let buckets = [(0.5, 1), (1.0, 2), (f64::INFINITY, 3)];
        page.family("t", MetricKind::Histogram, "T").histogram(&[("tool", "a")], &buckets, 3, 7.25);
        let lines: Vec<String> = page.text().lines().skip(2).map(str::to_owned).collect();
        assert_eq!(
            lines,
            [
                "t_bucket{tool=\"a\",le=\"0.5\"} 1",
                "t_bucket{tool=\"a\",le=\"1\"} 2",
                "t_bucket{tool=\"a\",le=\"+Inf\"} 3",
                "t_sum{tool=\"a\"} 7.25",
                "t_count{tool=\"a\"} 3"
            ]
        );
    }
}
