//! Analytics, metrics and traces of real executions with a real database and real tools.

mod counting;
mod metrics;
mod stage;
mod traces;
