//! What the process says about itself, on stderr: warnings unless RUTTER_LOG asks for more. Journals tell about
//! executions; this tells about the program.

use std::io;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub(crate) const VARIABLE: &str = "RUTTER_LOG";

/// Starts listening. A filter that cannot be read says so and counts as none.
pub(crate) fn start() {
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let (filter, wrong) = match wanted.parse::<Targets>() {
        Ok(targets) if !wanted.is_empty() => (targets, None),
        Ok(_) => (Targets::new().with_default(LevelFilter::WARN), None),
        Err(error) => (Targets::new().with_default(LevelFilter::WARN), Some(error)),
    };
    // At finer levels the protocol library repeats what clients sent, and parameters, which hold secrets by then.
    let filter = filter.with_target("rmcp", LevelFilter::ERROR).with_target("hyper", LevelFilter::WARN);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        .with_ansi(false)
        .with_target(false)
        .without_time()
        .compact();
    tracing_subscriber::registry().with(filter).with(lines).init();
    if let Some(error) = wrong {
        tracing::warn!("{VARIABLE} is no filter such as `info` or `rutter_engine=debug`: {error}");
    }
}
