//! Background readers of the ledger: analytics and forecasts, metrics, traces, webhooks and alerts, and a live feed.

pub mod error;
pub mod insight;
pub mod limits;
pub mod live;
pub mod metrics;
pub mod trace;
pub mod watch;

pub use error::Error;
