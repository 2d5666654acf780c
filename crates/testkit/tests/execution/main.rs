//! Executions by tables: one file per theme, one binary so that it is linked once.

mod approvals;
mod conditions;
mod doubts;
mod fan_out;
mod forward;
mod found;
mod policies;
mod retries;
