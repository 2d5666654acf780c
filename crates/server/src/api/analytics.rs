//! What the journals amount to: counts and times by plan, tool, day or driver, as JSON and as a table.

use crate::api::call::Call;
use crate::api::reply::Reply;
use crate::api::route::{About, Route};
use crate::fault::Fault;
use crate::insight::report::{By, HourRow, Report};
use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use rutter_core::insight::day::Date;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Days of a report when none are named, today among them.
const DAYS_DEFAULT: i64 = 30;
const HOURS_DEFAULT: u32 = 24;
/// As many as are kept in memory.
const HOURS_MAX: u32 = 24 * 7;
const CSV: &str = "text/csv";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            About::get("/analytics", "getAnalytics", "Counts and times from the journals").refuses(&[422]),
            report,
        ),
        Route::other(
            About::get("/analytics.csv", "getAnalyticsTable", "The same as a table")
                .tag("analytics")
                .refuses(&[422]),
            CSV,
            table,
        ),
        Route::new(About::get("/analytics/hours", "getHours", "What began and ended, hour by hour"), hours),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnalyticsQuery {
    /// The first day, such as 2026-11-01, by UTC; default 30 days ago.
    from: Option<String>,
    /// The last day; default today.
    until: Option<String>,
    /// plan, tool, day or driver; default plan.
    by: Option<String>,
}

async fn read(call: &Call, query: AnalyticsQuery) -> Result<Report, Fault> {
    let today = Date::of(call.desk().engine.now());
    let day = |name: &str, text: Option<String>| -> Result<Option<Date>, Fault> {
        let Some(text) = text else { return Ok(None) };
        let wrong = || format!("{name} is a day such as 2026-11-16, this is {text:?}");
        Date::parse(&text).map(Some).ok_or_else(|| Fault::new("server.arguments", wrong()))
    };
    let until = day("until", query.until)?.unwrap_or(today);
    let from = day("from", query.from)?.unwrap_or(until.plus(1 - DAYS_DEFAULT));
    let by = match query.by.as_deref() {
        None => By::default(),
        Some(text) => {
            let wrong = || Fault::new("server.arguments", "by is plan, tool, day or driver");
            By::ALL.into_iter().find(|by| by.as_str() == text).ok_or_else(wrong)?
        }
    };
    Ok(call.desk().insight.report(from, until, by).await?)
}

async fn report(call: Call, query: AnalyticsQuery) -> Result<Reply<Report>, Fault> {
    Ok(Reply::ok(read(&call, query).await?))
}

async fn table(call: Call, query: AnalyticsQuery) -> Result<Response<Body>, Fault> {
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
struct Hours {
    /// Oldest first, the present one last.
    items: Vec<HourRow>,
}

async fn hours(call: Call, query: HoursQuery) -> Result<Reply<Hours>, Fault> {
    match query.count.unwrap_or(HOURS_DEFAULT) {
        count @ 1..=HOURS_MAX => Ok(Reply::ok(Hours { items: call.desk().insight.hours(count) })),
        count => Err(Fault::new("server.arguments", format!("count is 1 to {HOURS_MAX}, this is {count}"))),
    }
}
