//! What every store must do, case by case. Where a port's own words leave something open, these cases decide it.
//!
//! A case gets a store with nothing in it, and panics with what is wrong.

mod stage;

mod appending;
mod claiming;
mod cleaning;
mod entries;
mod erasing;
mod executions;
mod feed;
mod letters;
mod limits;
mod loading;
mod opening;
mod outbox;
mod paging;
mod plans;
mod register;
mod together;

pub use stage::{Pen, Stage, plan_with, request, worker};

use crate::panic::caught;
use rutter_core::port::feed::Feed;
use rutter_core::port::journal::Journal;
use rutter_core::port::outbox::Outbox;
use rutter_core::port::query::Query;
use rutter_core::port::register::Register;
use rutter_core::port::upkeep::Upkeep;

/// All that a store offers.
pub trait Store: Journal + Query + Upkeep + Feed + Register + Outbox {}

impl<T: Journal + Query + Upkeep + Feed + Register + Outbox + ?Sized> Store for T {}

pub type Case = fn(&dyn Store);

/// Every case by name, grouped by what it is about.
pub const CASES: &[&[(&str, Case)]] = &[
    plans::CASES,
    opening::CASES,
    claiming::CASES,
    loading::CASES,
    appending::CASES,
    letters::CASES,
    limits::CASES,
    executions::CASES,
    entries::CASES,
    paging::CASES,
    erasing::CASES,
    cleaning::CASES,
    feed::CASES,
    register::CASES,
    outbox::CASES,
    together::CASES,
];

/// Stages every case and returns those that failed, with what they said.
pub fn failures(stage: &dyn Fn(Case)) -> Vec<String> {
    let all = CASES.iter().copied().flatten();
    let failed = all.filter_map(|(name, case)| Some(format!("{name}: {}", caught(|| stage(*case)).err()?)));
    failed.collect()
}

/// A list of cases, each under the name of its function.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        &[$((stringify!($case), $case as $crate::conformance::Case)),+]
    };
}
use cases;
