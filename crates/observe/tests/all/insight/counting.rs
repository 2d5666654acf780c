//! Analytics count what happened, however often the process stops.

use crate::insight::stage::{Stage, tenant, until};
use rutter_core::insight::day::CalendarDate;
use rutter_core::port::Error;
use rutter_core::port::query::StoreQuery;
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use rutter_observe::insight::report::{InsightReport, ReportGrouping};
use rutter_observe::insight::{DAYS_MAX, TenantInsight};
use serde_json::json;

async fn report(insight: &TenantInsight, stage: &Stage, by: ReportGrouping) -> InsightReport {
    // Includes yesterday, in case the test runs across midnight.
    let today = CalendarDate::of(stage.clock.now());
    insight.report(today.plus(-1), today, by).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_are_counted_by_plan_tool_driver_and_day() {
    let stage = Stage::new().await;
    let counting = stage.insight().await;
    for _ in 0..3 {
        stage.execute("keep").await;
    }
    stage.fail("look").await;
    counting.caught_up(&stage).await;
    let insight = &counting.insight;

    let plans = report(insight, &stage, ReportGrouping::Plan).await;
    let names: Vec<&str> = plans.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(names, ["keep", "look"]);
    let (keep, look) = (&plans.rows[0], &plans.rows[1]);
    assert_eq!((keep.opened, keep.ended.completed, keep.completion_rate), (3, 3, Some(100.0)));
    assert_eq!((keep.calls, keep.succeeded, keep.steps_per_execution), (6, 6, Some(2.0)));
    assert_eq!((keep.duration.unwrap().count, keep.step_time.unwrap().count), (3, 6));
    assert_eq!((look.ended.failed, look.completion_rate, look.error_rate), (1, Some(0.0), Some(100.0)));
    assert_eq!(look.failures.values().sum::<u64>(), 1);
    assert_eq!((plans.total.opened, plans.total.plans_saved), (4, Some(2)));

    let tools = report(insight, &stage, ReportGrouping::Tool).await;
    let names: Vec<&str> = tools.rows.iter().map(|row| row.key.as_str()).collect();
    assert_eq!(names, ["memory.store", "journal.plan"]);
    assert_eq!((tools.rows[0].calls, tools.rows[1].failed), (6, 1));
    let drivers = report(insight, &stage, ReportGrouping::Driver).await;
    assert_eq!((drivers.rows[0].key.as_str(), drivers.rows[0].opened), ("server", 4));
    let days = report(insight, &stage, ReportGrouping::Day).await;
    assert_eq!((days.rows.len(), days.rows.iter().map(|row| row.opened).sum::<u64>()), (2, 4));

    let hours = insight.hours(24);
    assert_eq!((hours.len(), hours.iter().map(|hour| hour.opened).sum::<u64>()), (24, 4));
    assert!(hours.windows(2).all(|pair| pair[1].start_ms - pair[0].start_ms == 3_600_000));
    assert!(insight.p95(2).is_some());
    counting.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn counting_resumes_after_a_restart() {
    let mut stage = Stage::new().await;
    for round in 1..=3u64 {
        let counting = stage.insight().await;
        stage.execute("keep").await;
        stage.fail("look").await;
        counting.caught_up(&stage).await;
        let insight_report = report(&counting.insight, &stage, ReportGrouping::Plan).await;
        assert_eq!((insight_report.rows[0].opened, insight_report.rows[1].opened), (round, round));
        let totals = stage.store.totals(&tenant()).await.unwrap();
        assert_eq!(insight_report.total.ended.completed, totals.executions["completed"]);
        assert_eq!(insight_report.total.ended.failed, totals.executions["failed"]);
        counting.end().await;
        stage = stage.restarted().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_counts_nothing_twice_and_loses_nothing() {
    let stage = Stage::new().await;
    for round in 1..=6u64 {
        let counting = stage.insight().await;
        stage.execute("keep").await;
        counting.caught_up(&stage).await;
        let insight_report = report(&counting.insight, &stage, ReportGrouping::Plan).await;
        assert_eq!(
            (insight_report.rows[0].opened, insight_report.rows[0].ended.completed, insight_report.rows[0].calls),
            (round, round, 2 * round)
        );
        counting.crash().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_tallies_are_recounted() {
    let stage = Stage::new().await;
    for id in ["open".to_owned(), CalendarDate::of(stage.clock.now()).to_string()] {
        let counting = stage.insight().await;
        stage.execute("keep").await;
        counting.caught_up(&stage).await;
        let before = report(&counting.insight, &stage, ReportGrouping::Tool).await;
        counting.end().await;

        let note = stage.store.find(&tenant(), RegisterKind::Tally, &id).await.unwrap().unwrap();
        let mut value = (*note.value).clone();
        value["text"] = json!("damaged");
        let (changes, at) = (vec![RegisterChange::put(RegisterKind::Tally, &id, value)], stage.clock.now());
        stage.store.write(RegisterWrite { tenant: tenant(), at, changes, record: None }).await.unwrap();
        let counting = stage.insight().await;
        counting.caught_up(&stage).await;
        let after = report(&counting.insight, &stage, ReportGrouping::Tool).await;
        assert_eq!((&after.rows, after.total.opened), (&before.rows, before.total.opened), "{id}");
        counting.end().await;
        let again = stage.insight().await;
        assert!(again.insight.position() > 0, "the new count is used");
        assert_eq!(report(&again.insight, &stage, ReportGrouping::Tool).await.rows, before.rows);
        again.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_that_count_the_same_ledger_agree() {
    let stage = Stage::new().await;
    let (one, other) = (stage.insight().await, stage.insight().await);
    for _ in 0..4 {
        stage.execute("keep").await;
        one.caught_up(&stage).await;
        other.caught_up(&stage).await;
    }
    one.end().await;
    other.end().await;
    let last = stage.insight().await;
    last.caught_up(&stage).await;
    assert_eq!(report(&last.insight, &stage, ReportGrouping::Plan).await.rows[0].opened, 4);
    last.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_has_its_bounds() {
    let stage = Stage::new().await;
    let store = &stage.store;
    let insight =
        TenantInsight::open(tenant(), store.clone(), store.clone(), store.clone(), stage.clock).await.unwrap();
    let today = CalendarDate::of(stage.clock.now());
    let whole = insight.report(today.plus(1 - DAYS_MAX), today, ReportGrouping::Day).await.unwrap();
    assert_eq!(whole.rows.len() as i64, DAYS_MAX);
    let long = insight.report(today.plus(-DAYS_MAX), today, ReportGrouping::Day).await;
    assert!(matches!(long, Err(Error::Limit { limit: "report_days_max", .. })), "{long:?}");
    let backwards = insight.report(today, today.plus(-1), ReportGrouping::Day).await;
    assert!(matches!(backwards, Err(Error::Invalid(_))), "{backwards:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_has_one_value_for_every_column() {
    let stage = Stage::new().await;
    let counting = stage.insight().await;
    stage.execute("=cmd|' /C calc'!A0, \"quoted\"").await;
    stage.fail("look").await;
    counting.caught_up(&stage).await;
    for by in ReportGrouping::ALL {
        let insight_report = report(&counting.insight, &stage, by).await;
        let csv = insight_report.csv();
        let mut lines = csv.split_terminator("\r\n");
        let columns = lines.next().unwrap().split(',').count();
        let keys: Vec<String> = lines
            .map(|line| {
                let (mut quoted, mut commas) = (false, 0);
                for character in line.chars() {
                    quoted ^= character == '"';
                    commas += usize::from(character == ',' && !quoted);
                }
                assert_eq!(commas + 1, columns, "{line}");
                line.chars().take(3).collect()
            })
            .collect();
        assert_eq!(keys.len(), insight_report.rows.len() + 1);
        assert!(keys.iter().all(|key| !key.starts_with('=')), "{csv}");
    }
    counting.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compensation_after_the_end_is_counted_for_its_plan() {
    let stage = Stage::new().await;
    let counting = stage.insight().await;
    let plan = json!({ "name": "borrow", "goal": "Keep and give back", "steps": [
        { "id": "keep", "tool": "memory.store", "cancellable": "reversible", "parameters": { "text": "x" },
          "compensation": { "tool": "memory.store", "parameters": { "text": "given back" } } } ] });
    let (execution, _) = stage.run(&plan, json!({})).await;
    counting.caught_up(&stage).await;
    let control = rutter_engine::control::ControlAction::Undo { steps: None };
    let actor = rutter_core::actor::Actor::person("operator");
    let identity = stage.identity(&execution);
    stage.engine.control(&identity, actor, control, "no longer wanted".into(), None, None).await.unwrap();
    until("it is counted", async || {
        counting.caught_up(&stage).await;
        report(&counting.insight, &stage, ReportGrouping::Plan).await.rows[0].ended_again == 1
    })
    .await;
    let rows = report(&counting.insight, &stage, ReportGrouping::Plan).await.rows;
    let row = &rows[0];
    assert_eq!((rows.len(), row.key.as_str(), row.ended.completed, row.compensated), (1, "borrow", 1, 1));
    counting.end().await;
}
