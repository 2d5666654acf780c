//! Metrics after real executions, checked line by line against the rules of the format.

use crate::insight::stage::{Stage, tenant, until};
use rutter_observe::metrics::{DeliveryOutcome, MetricSources, ServerMetrics};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

async fn page(stage: &Stage, metrics: &ServerMetrics) -> String {
    let (tenant, store) = (tenant(), &*stage.store);
    let sources = MetricSources {
        tenant: &tenant,
        engine: &stage.engine,
        query: store,
        proof: store,
        outbox: store,
        tools: &*stage.tools,
        insight: None,
    };
    metrics.render(sources).await
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_count_what_was_executed() {
    let stage = Stage::new().await;
    let metrics = ServerMetrics::new("1.2.3", stage.clock.now());
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(Arc::clone(&metrics).run(stage.engine.clone(), shutdown.clone()));
    // Updates sent before the subscription are lost.
    tokio::task::yield_now().await;
    until("the metrics are subscribed", async || {
        stage.execute("first").await;
        !page(&stage, &metrics).await.contains("rutter_executions_total{status=\"completed\"} 0\n")
    })
    .await;
    let before = samples(&page(&stage, &metrics).await);
    stage.execute("keep").await;
    stage.fail("look").await;
    let count = |page: &Samples, name: &str| page.get(name).copied().unwrap_or(0.0);
    let completed = "rutter_executions_total{status=\"completed\"}";
    let failed = "rutter_executions_total{status=\"failed\"}";
    until("both are counted", async || {
        let now = samples(&page(&stage, &metrics).await);
        count(&now, completed) == count(&before, completed) + 1.0 && count(&now, failed) == 1.0
    })
    .await;
    let now = samples(&page(&stage, &metrics).await);
    let steps = "rutter_steps_total{tool=\"memory.store\",status=\"completed\"}";
    assert_eq!(count(&now, steps), count(&before, steps) + 2.0);
    assert_eq!(count(&now, "rutter_steps_total{tool=\"journal.plan\",status=\"failed\"}"), 1.0);
    let timed = "rutter_step_duration_seconds_count{tool=\"memory.store\"}";
    assert_eq!(count(&now, timed), count(&now, steps));
    assert_eq!(count(&now, "rutter_executions{status=\"failed\"}"), 1.0);
    assert_eq!(count(&now, "rutter_build_info{version=\"1.2.3\"}"), 1.0);
    assert_eq!(count(&now, "rutter_scrape_errors"), 0.0);
    assert!(count(&now, "rutter_journal_append_seconds_count") > 0.0);
    assert!(count(&now, "rutter_ledger_entries") > 10.0);
    assert!(count(&now, "rutter_disk_free_bytes") > 0.0);
    assert_eq!(count(&now, "rutter_breaker_state{server=\"memory\"}"), 0.0);
    shutdown.cancel();
    running.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn surfaces_count_their_requests() {
    let stage = Stage::new().await;
    let metrics = ServerMetrics::new("1.2.3", stage.clock.now());
    metrics.request("/api/v1/executions/{id}", 200);
    metrics.request("/api/v1/executions/{id}", 200);
    metrics.request("/api/v1/executions/{id}", 404);
    metrics.delivery(DeliveryOutcome::Dead);
    let readers = [metrics.reader(), metrics.reader()];
    let now = samples(&page(&stage, &metrics).await);
    assert_eq!(now["rutter_http_requests_total{route=\"/api/v1/executions/{id}\",code=\"200\"}"], 2.0);
    assert_eq!(now["rutter_http_requests_total{route=\"/api/v1/executions/{id}\",code=\"404\"}"], 1.0);
    assert_eq!(now["rutter_webhook_deliveries_total{result=\"dead\"}"], 1.0);
    assert_eq!(now["rutter_event_stream_readers"], 2.0);
    drop(readers);
    assert_eq!(samples(&page(&stage, &metrics).await)["rutter_event_stream_readers"], 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_label_names_an_execution() {
    let stage = Stage::new().await;
    let metrics = ServerMetrics::new("1.2.3", stage.clock.now());
    let execution = stage.execute("keep").await;
    let plan = json!({ "name": "wait", "goal": "Wait", "steps": [
        { "id": "one", "tool": "memory.store", "cancellable": "irreversible", "parameters": { "text": "x" },
          "approval": { "required": true } } ] });
    stage.run(&plan, json!({})).await;
    assert!(!page(&stage, &metrics).await.contains(execution.as_str()));
    assert!(!page(&stage, &metrics).await.contains("exec_"));
}

/// The present value of one sample.
pub async fn value(stage: &Stage, metrics: &ServerMetrics, sample: &str) -> f64 {
    samples(&page(stage, metrics).await).get(sample).copied().unwrap_or(0.0)
}

type Samples = BTreeMap<String, f64>;

/// Parses a scrape as strictly as Prometheus does: names, types, order, labels, histograms.
fn samples(page: &str) -> Samples {
    let (mut samples, mut types) = (Samples::new(), BTreeMap::<String, String>::new());
    let (mut closed, mut family) = (BTreeSet::new(), String::new());
    assert!(page.ends_with('\n'), "the last line ends too");
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').expect("a help has a text");
            assert!(is_name(name) && !text.is_empty(), "{line}");
            closed.insert(std::mem::replace(&mut family, name.to_owned()));
            assert!(!closed.contains(name), "{name} comes twice");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').unwrap();
            assert_eq!(name, family, "the type follows the help");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            types.insert(name.to_owned(), kind.to_owned());
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a sample has a value");
            let name = series.split('{').next().unwrap();
            assert!(is_name(name), "{line}");
            let suffixes = ["_bucket", "_sum", "_count"];
            let stem = suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
            let stem = if types[&family] == "histogram" { stem } else { name };
            assert_eq!(stem, family, "a sample follows its own type");
            check_labels(&series[name.len()..]);
            let value: f64 = value.parse().expect("a value is a number");
            assert!(samples.insert(series.to_owned(), value).is_none(), "{series} comes twice");
        }
    }
    check_histograms(&samples, &types);
    samples
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn check_labels(text: &str) {
    if text.is_empty() {
        return;
    }
    let mut rest = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).expect("labels are in braces");
    let mut names = BTreeSet::new();
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").expect("a label has a value");
        assert!(is_name(name) && names.insert(name), "{text}");
        let mut end = None;
        let mut is_escaped = false;
        for (at, character) in after.char_indices() {
            match character {
                _ if is_escaped => {
                    assert!(['\\', '"', 'n'].contains(&character), "{text}");
                    is_escaped = false;
                }
                '\\' => is_escaped = true,
                '"' => {
                    end = Some(at);
                    break;
                }
                _ => {}
            }
        }
        rest = &after[end.expect("a value ends") + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
    }
}

/// Buckets are cumulative, and the last one has everything.
fn check_histograms(samples: &Samples, types: &BTreeMap<String, String>) {
    for name in types.iter().filter(|(_, kind)| *kind == "histogram").map(|(name, _)| name) {
        let mut series: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        let bucket = format!("{name}_bucket{{");
        for (sample, value) in samples.iter().filter(|(sample, _)| sample.starts_with(&bucket)) {
            let labels = sample[bucket.len()..].trim_end_matches('}');
            let (others, bound) = labels.rsplit_once("le=\"").unwrap();
            let bound = bound.trim_end_matches('"').parse().unwrap();
            series.entry(others.trim_end_matches(',').to_owned()).or_default().push((bound, *value));
        }
        for (labels, mut buckets) in series {
            buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
            assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{name} {labels}");
            let (bound, all) = *buckets.last().unwrap();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            assert_eq!((bound, all), (f64::INFINITY, samples[&format!("{name}_count{labels}")]), "{name}");
            assert!(samples.contains_key(&format!("{name}_sum{labels}")), "{name}");
        }
    }
}

/// Runs Prometheus' own checker, where it is installed.
#[tokio::test(flavor = "multi_thread")]
async fn promtool_has_no_complaints() {
    let stage = Stage::new().await;
    let metrics = ServerMetrics::new("1.2.3", stage.clock.now());
    metrics.request("/metrics", 200);
    let page = page(&stage, &metrics).await;
    samples(&page);
    let checker = std::process::Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let Ok(mut checker) = checker else { return };
    std::io::Write::write_all(&mut checker.stdin.take().unwrap(), page.as_bytes()).unwrap();
    let output = checker.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}\n{page}");
}
