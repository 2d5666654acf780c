//! Statistics of a ledger: counts and times per day, plan, tool and driver, updated entry by entry.
//!
//! [`projection::LedgerProjection`] reads every entry once, in ledger order. Its state is a [`day::DailyTally`] for
//! each day and the open executions ([`open`]); both can be stored and resumed at any entry. Numbers are added, never
//! averaged: the days of a year add up to the year ([`tally::ActivityTally::add`]).

mod apply;
pub mod day;
pub mod figures;
pub mod forecast;
pub mod histogram;
pub mod open;
pub mod projection;
pub mod steps;
pub mod tally;
