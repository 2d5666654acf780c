//! Charts have text descriptions.

use super::xml;
use rutter_web::drawing::chart::{ChartBar, ChartSeries, RankedBar, StackedChart, histogram, ranked, spark, stacked};
use rutter_web::drawing::status::StatusTone;

const SERIES: &[ChartSeries<'_>] = &[
    ChartSeries { name: "completed", tone: StatusTone::Ok },
    ChartSeries { name: "partial", tone: StatusTone::Warn },
    ChartSeries { name: "failed", tone: StatusTone::Bad },
];

fn golden(name: &str, svg: &str) {
    xml::check(svg);
    insta::assert_snapshot!(name, svg.replace("><", ">\n<"));
}

#[test]
fn executions_per_hour_by_outcome() {
    let bar = |hour: u64| ChartBar {
        label: format!("{hour:02}:00"),
        values: vec![20 + (hour * 13) % 17, hour % 4, if hour.is_multiple_of(5) { 6 } else { 0 }],
    };
    let bars: Vec<ChartBar> = (0..24).map(bar).collect();
    let drawn = stacked(&StackedChart { title: "Executions per hour", unit: "execution", series: SERIES, bars: &bars });
    assert!(drawn.contains("completed, 36 partial, 30 failed; most at"), "{drawn}");
    golden("chart_stacked", &drawn);
}

#[test]
fn an_empty_chart_says_so() {
    let nothing = StackedChart { title: "Executions per hour", unit: "execution", series: SERIES, bars: &[] };
    for drawn in [
        stacked(&nothing),
        histogram("Durations", "execution", &[]),
        ranked("Slowest tools", &[]),
        spark("p95", &[], |value| value.to_string()),
        spark("p95", &[None, Some(f64::NAN)], |value| value.to_string()),
    ] {
        xml::check(&drawn);
        assert!(drawn.contains("0 executions") || drawn.contains("no values"), "{drawn}");
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }
}

#[test]
fn durations_as_a_histogram() {
    let buckets = [("≤ 100 ms", 4), ("≤ 1 s", 38), ("≤ 10 s", 112), ("≤ 1 m", 61), ("≤ 10 m", 9), ("longer", 1)];
    let buckets: Vec<(String, u64)> = buckets.map(|(label, value)| (label.to_owned(), value)).into();
    golden("chart_histogram", &histogram("Durations", "execution", &buckets));
}

#[test]
fn tools_by_time() {
    let row = |label: &str, value: f64, words: &str, tone: StatusTone| RankedBar {
        label: label.to_owned(),
        value,
        words: words.to_owned(),
        tone,
    };
    let rows = [
        row("payments.charge_with_a_long_name_indeed", 8_200.0, "8.2 s", StatusTone::Bad),
        row("inventory.reserve", 1_900.0, "1.9 s", StatusTone::Run),
        row("<mail>.send", 0.0, "0 ms", StatusTone::Run),
    ];
    golden("chart_ranked", &ranked("Slowest tools", &rows));
}

#[test]
fn a_sparkline_has_gaps_for_missing_values() {
    let values = [Some(3.0), Some(5.0), None, Some(4.0), Some(9.0)];
    let drawn = spark("p95 of the last days", &values, |value| format!("{value} s"));
    assert!(drawn.contains("4 values, from 3 s to 9 s, the last 9 s"));
    assert_eq!(drawn.split("class=\"way\"").nth(1).unwrap().matches('M').count(), 2);
    golden("chart_spark", &drawn);
}
