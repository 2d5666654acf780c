//! Analytics: counts and durations by plan, tool, day or driver, as JSON and as CSV.

use crate::reply::ApiReply;
use crate::request::ApiRequest;
use crate::route::{ApiRoute, RouteSpec};
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use rutter_app::error::AppError;
use rutter_core::insight::day::CalendarDate;
use rutter_observe::insight::report::{HourlyCounts, InsightReport, ReportGrouping};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The default length of a report in days, including today.
const DAYS_DEFAULT: i64 = 30;
const HOURS_DEFAULT: u32 = 24;
/// As many as are in memory.
const HOURS_MAX: u32 = 24 * 7;
const CSV: &str = "text/csv";

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::new(
            RouteSpec::get("/analytics", "getAnalytics", "Counts and durations from the journals").refuses(&[422]),
            report,
        ),
        ApiRoute::other(
            RouteSpec::get("/analytics.csv", "getAnalyticsTable", "The same as CSV").tag("analytics").refuses(&[422]),
            CSV,
            table,
        ),
        ApiRoute::new(RouteSpec::get("/analytics/hours", "getHours", "Executions started and ended, by hour"), hours),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnalyticsQuery {
    /// The first day, such as 2026-11-01, in UTC; default 30 days ago.
    from: Option<String>,
    /// The last day; default today.
    until: Option<String>,
    /// plan, tool, day or driver; default plan.
    by: Option<String>,
}

async fn read(call: &ApiRequest, query: AnalyticsQuery) -> Result<InsightReport, AppError> {
    let today = CalendarDate::of(call.app().now());
    let day = |name: &str, text: Option<String>| -> Result<Option<CalendarDate>, AppError> {
        let Some(text) = text else { return Ok(None) };
        let wrong = || format!("{name} is a day such as 2026-11-16, this is {text:?}");
        CalendarDate::parse(&text).map(Some).ok_or_else(|| AppError::new("server.arguments", wrong()))
    };
    let until = day("until", query.until)?.unwrap_or(today);
    let from = day("from", query.from)?.unwrap_or(until.plus(1 - DAYS_DEFAULT));
    let by = match query.by.as_deref() {
        None => ReportGrouping::default(),
        Some(text) => {
            let wrong = || AppError::new("server.arguments", "by is plan, tool, day or driver");
            ReportGrouping::ALL.into_iter().find(|by| by.as_str() == text).ok_or_else(wrong)?
        }
    };
    Ok(call.app().insight.report(from, until, by).await?)
}

async fn report(call: ApiRequest, query: AnalyticsQuery) -> Result<ApiReply<InsightReport>, AppError> {
    Ok(ApiReply::ok(read(&call, query).await?))
}

async fn table(call: ApiRequest, query: AnalyticsQuery) -> Result<Response<Body>, AppError> {
    let mut response = Response::new(Body::from(read(&call, query).await?.csv()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let attachment = HeaderValue::from_static("attachment; filename=\"analytics.csv\"");
    headers.insert(header::CONTENT_DISPOSITION, attachment);
    Ok(response)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HoursQuery {
    /// Default 24.
    #[schemars(range(min = 1, max = 168))]
    count: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct HourListJson {
    /// Oldest first, the current hour last.
    items: Vec<HourlyCounts>,
}

async fn hours(call: ApiRequest, query: HoursQuery) -> Result<ApiReply<HourListJson>, AppError> {
    match query.count.unwrap_or(HOURS_DEFAULT) {
        count @ 1..=HOURS_MAX => Ok(ApiReply::ok(HourListJson { items: call.app().insight.hours(count) })),
        count => Err(AppError::new("server.arguments", format!("count is 1 to {HOURS_MAX}, this is {count}"))),
    }
}
