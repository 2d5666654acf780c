//! The log of the process, on stderr: warnings unless RUTTER_LOG asks for more, as text for people or, with
//! RUTTER_LOG_FORMAT, as JSON for programs. Journals are about executions; the log is about the program.

mod json;

use json::JsonLines;
use std::io;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub(crate) const VARIABLE: &str = "RUTTER_LOG";
const FORMAT_VARIABLE: &str = "RUTTER_LOG_FORMAT";

/// Starts logging. An invalid filter is reported and ignored.
pub(crate) fn start() {
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let (filter, wrong) = match wanted.parse::<Targets>() {
        Ok(targets) if !wanted.is_empty() => (targets, None),
        Ok(_) => (Targets::new().with_default(LevelFilter::WARN), None),
        Err(error) => (Targets::new().with_default(LevelFilter::WARN), Some(error)),
    };
    // At finer levels the protocol library logs the clients' messages, and parameters, which contain resolved secrets.
    let filter = filter.with_target("rmcp", LevelFilter::ERROR).with_target("hyper", LevelFilter::WARN);
    let format = std::env::var(FORMAT_VARIABLE).unwrap_or_default();
    let lines = match format.as_str() {
        "json" => JsonLines::new(io::stderr).boxed(),
        _ => tracing_subscriber::fmt::layer()
            .with_writer(io::stderr)
            .with_ansi(false)
            .with_target(false)
            .without_time()
            .compact()
            .boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines).init();
    if let Some(error) = wrong {
        tracing::warn!("{VARIABLE} must be a filter such as `info` or `rutter_engine=debug`: {error}");
    }
    if !["", "text", "json"].contains(&format.as_str()) {
        tracing::warn!("{FORMAT_VARIABLE} must be text or json, not {format:?}");
    }
}
