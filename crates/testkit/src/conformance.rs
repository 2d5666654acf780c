//! What every store must do, case by case. Where a port's documentation leaves something open, these cases decide it.
//!
//! A case gets an empty store, and panics if something is wrong.

mod fixture;

mod appending;
mod claiming;
mod cleaning;
mod commands;
mod entries;
mod erasing;
mod executions;
mod feed;
mod limits;
mod loading;
mod opening;
mod outbox;
mod paging;
mod plans;
mod register;
mod together;

pub use fixture::{ConformanceFixture, ConformanceWriter, plan_with, request, worker};

use crate::panic::caught;
use rutter_core::port::feed::LedgerFeed;
use rutter_core::port::journal::Journal;
use rutter_core::port::outbox::DeliveryOutbox;
use rutter_core::port::query::StoreQuery;
use rutter_core::port::register::Register;
use rutter_core::port::upkeep::StoreMaintenance;

/// All ports of a store.
pub trait ConformingStore: Journal + StoreQuery + StoreMaintenance + LedgerFeed + Register + DeliveryOutbox {}

impl<T: Journal + StoreQuery + StoreMaintenance + LedgerFeed + Register + DeliveryOutbox + ?Sized> ConformingStore
    for T
{
}

pub type ConformanceCase = fn(&dyn ConformingStore);

/// Every case by name, grouped by subject.
pub const CASES: &[&[(&str, ConformanceCase)]] = &[
    plans::CASES,
    opening::CASES,
    claiming::CASES,
    loading::CASES,
    appending::CASES,
    commands::CASES,
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

/// Runs every case and returns those that failed, with their messages.
pub fn failures(stage: &dyn Fn(ConformanceCase)) -> Vec<String> {
    let all = CASES.iter().copied().flatten();
    let failed = all.filter_map(|(name, case)| Some(format!("{name}: {}", caught(|| stage(*case)).err()?)));
    failed.collect()
}

/// A list of cases, each under the name of its function.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        &[$((stringify!($case), $case as $crate::conformance::ConformanceCase)),+]
    };
}
use cases;
