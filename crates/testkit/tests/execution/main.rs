//! Executions by tables: one file per theme, one binary so that it is linked once.

mod answers;
mod approvals;
mod conditions;
mod control;
mod doubts;
mod fan_out;
mod forward;
mod found;
mod policies;
mod retries;
