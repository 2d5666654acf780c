//! Executions by tables: one file per theme, one binary so that it is linked once.

mod forward;
mod found;
