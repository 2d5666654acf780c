//! Listing, searching, erasing and cleaning up.

mod cleaning;
mod entries;
mod erasing;
mod executions;
mod fixture;
mod paging;
mod plans;
