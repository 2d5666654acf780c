//! What a ledger amounts to: counts and times per day, plan, tool and driver, kept up entry by entry.
//!
//! [`fold::Fold`] reads every entry once, in the order of the ledger. What it keeps is a [`day::Day`] for each day and
//! the little it must remember of what is under way ([`open`]); both can be written down and taken up again at any
//! entry. Numbers are added, never averaged: the days of a year make a year ([`tally::Tally::add`]).

mod apply;
pub mod day;
pub mod fold;
pub mod forecast;
pub mod histogram;
pub mod open;
pub mod steps;
pub mod tally;
