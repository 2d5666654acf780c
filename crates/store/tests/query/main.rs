//! Finding and removing what was kept.

mod cleaning;
mod entries;
mod erasing;
mod executions;
mod paging;
mod plans;
mod stage;
