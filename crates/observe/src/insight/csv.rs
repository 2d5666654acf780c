//! A report as CSV, for spreadsheets.

use super::report::{DurationStats, InsightReport, ReportRow};
use rutter_core::insight::tally::WaitCause;
use rutter_core::tool::FailureCategory;
use std::fmt::Write;

impl InsightReport {
    /// A header, one line per row, and a line of totals.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        let header: Vec<String> = columns(&self.total).into_iter().map(|(name, _)| name).collect();
        let key = self.by.as_str();
        // Writing to a string cannot fail.
        let _ = write!(text, "{key},{}\r\n", header.join(","));
        for row in self.rows.iter().chain([&self.total]) {
            let values: Vec<String> = columns(row).into_iter().map(|(_, value)| value).collect();
            let _ = write!(text, "{},{}\r\n", quoted(&row.key), values.join(","));
        }
        text
    }
}

/// The columns are the same for every row; a missing value is an empty field.
fn columns(row: &ReportRow) -> Vec<(String, String)> {
    let mut columns: Vec<(String, String)> = Vec::new();
    let mut put = |name: &str, value: String| columns.push((name.to_owned(), value));
    let ended = row.ended;
    put("opened", row.opened.to_string());
    put("ended", ended.all.to_string());
    put("completed", ended.completed.to_string());
    put("partial", ended.partial.to_string());
    put("failed", ended.failed.to_string());
    put("cancelled", ended.cancelled.to_string());
    put("compensated", ended.compensated.to_string());
    put("ended_again", row.ended_again.to_string());
    put("completion_rate_percent", optional(row.completion_rate));
    put("steps_per_execution", optional(row.steps_per_execution));
    for (name, times) in [("duration", row.duration), ("step_time", row.step_time), ("attempt_time", row.attempt_time)]
    {
        put(&format!("{name}_mean_ms"), time(times, |times| times.mean_ms));
        put(&format!("{name}_p50_ms"), time(times, |times| times.p50_ms));
        put(&format!("{name}_p95_ms"), time(times, |times| times.p95_ms));
        put(&format!("{name}_p99_ms"), time(times, |times| times.p99_ms));
    }
    for (name, count) in [
        ("calls", row.calls),
        ("retries", row.retries),
        ("probes", row.probes),
        ("undo_calls", row.undo_calls),
        ("attempts_succeeded", row.succeeded),
        ("attempts_failed", row.failed),
        ("attempts_lost", row.lost),
    ] {
        put(name, count.to_string());
    }
    put("error_rate_percent", optional(row.error_rate));
    for category in FailureCategory::ALL {
        let count = row.failures.get(category.as_str()).copied().unwrap_or(0);
        put(&format!("failures_{}", category.as_str()), count.to_string());
    }
    for (name, count) in [
        ("steps_failed", row.steps_failed),
        ("steps_skipped", row.steps_skipped),
        ("doubts", row.doubts),
        ("late_answers", row.late_answers),
        ("compensations", row.compensations),
        ("parts_compensated", row.compensated),
        ("parts_not_compensated", row.compensations_failed),
        ("replans", row.replans),
        ("handovers", row.handovers),
        ("approvals_asked", row.approvals.asked),
        ("approvals_granted", row.approvals.granted),
        ("approvals_denied", row.approvals.denied),
        ("approvals_expired", row.approvals.expired),
    ] {
        put(name, count.to_string());
    }
    for cause in WaitCause::ALL {
        let times = row.waits.get(cause.as_str()).copied();
        put(&format!("waited_for_{}_ms", cause.as_str()), times.map_or(0, |times| times.sum_ms).to_string());
    }
    put("cost_micros", row.cost_micros.to_string());
    put("cost_micros_per_execution", optional(row.cost_micros_per_execution));
    put("limits_reached", row.limits_reached.to_string());
    put("drifts", row.drifts.to_string());
    put("deviations", row.deviations.values().sum::<u64>().to_string());
    put("decisions", row.decisions.to_string());
    put("actions", row.actions.to_string());
    put("plans_saved", row.plans_saved.map_or(String::new(), |saved| saved.to_string()));
    put("plans_per_hour", optional(row.plans_per_hour));
    columns
}

fn optional(number: Option<f64>) -> String {
    number.map_or(String::new(), |number| number.to_string())
}

fn time(times: Option<DurationStats>, of: impl Fn(DurationStats) -> u64) -> String {
    times.map_or(String::new(), |times| of(times).to_string())
}

/// A name that a spreadsheet would take for a formula gets a leading apostrophe, which spreadsheets do not show.
fn quoted(name: &str) -> String {
    let is_formula = name.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let apostrophe = if is_formula { "'" } else { "" };
    if is_formula || name.contains([',', '"', '\n', '\r']) {
        return format!("\"{apostrophe}{}\"", name.replace('"', "\"\""));
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_formulas_or_columns() {
        for (name, field) in [
            ("order", "order"),
            ("a,b", "\"a,b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=HYPERLINK(1)", "\"'=HYPERLINK(1)\""),
            ("@x", "\"'@x\""),
            ("a\nb", "\"a\nb\""),
        ] {
            assert_eq!(quoted(name), field);
        }
    }
}
