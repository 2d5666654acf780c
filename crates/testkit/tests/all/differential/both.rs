//! Sends requests to two stores.

use rutter_core::port::query::{ListPage, Pagination};
use rutter_core::port::{Error, StoreFuture};
use rutter_store::wait;
use rutter_testkit::conformance::ConformingStore;
use std::fmt::Debug;

pub struct Both<'a> {
    stores: [&'a dyn ConformingStore; 2],
    seed: u64,
    pub asked: u64,
    /// How many requests were not refused.
    pub answered: u64,
}

impl<'a> Both<'a> {
    pub fn new(one: &'a dyn ConformingStore, other: &'a dyn ConformingStore, seed: u64) -> Both<'a> {
        Both { stores: [one, other], seed, asked: 0, answered: 0 }
    }

    /// Sends the same request to both; the replies must be equal. `None` if both refuse.
    pub fn ask<T: PartialEq + Debug>(
        &mut self,
        what: &dyn Debug,
        ask: impl for<'s> Fn(&'s dyn ConformingStore) -> StoreFuture<'s, T>,
    ) -> Option<T> {
        self.compare(what, |store| wait(ask(store)))
    }

    /// Reads a list to its end from both, by pages of this size.
    pub fn list<T: PartialEq + Debug>(
        &mut self,
        what: &dyn Debug,
        limit: u32,
        list: impl for<'s> Fn(&'s dyn ConformingStore, Pagination) -> StoreFuture<'s, ListPage<T>>,
    ) {
        self.compare(what, |store| {
            let (mut items, mut page) = (Vec::new(), Pagination::first(limit));
            loop {
                let listing = wait(list(store, page.clone()))?;
                items.extend(listing.items);
                match listing.next {
                    Some(next) => page.after = Some(next),
                    None => return Ok(items),
                }
            }
        });
    }

    pub fn compare<T: PartialEq + Debug>(
        &mut self,
        what: &dyn Debug,
        ask: impl Fn(&dyn ConformingStore) -> Result<T, Error>,
    ) -> Option<T> {
        self.asked += 1;
        let [one, other] = self.stores.map(|store| ask(store).map_err(|error| guaranteed(&error)));
        let (seed, asked) = (self.seed, self.asked);
        assert_eq!(one, other, "seed {seed}, request {asked}: {what:?}");
        self.answered += u64::from(one.is_ok());
        one.ok()
    }
}

/// What callers can rely on in an error; the message is each store's own.
fn guaranteed(error: &Error) -> (&'static str, String) {
    let details = match error {
        Error::Fenced { execution, epoch } => format!("{execution} {epoch}"),
        Error::Conflict { expected, found, .. } => format!("{expected} {found}"),
        Error::NotFound { what, .. } => (*what).to_owned(),
        Error::KeyReused { key } => key.clone(),
        Error::InUse { what, executions, .. } => format!("{what} {executions}"),
        Error::Limit { limit, max, found } => format!("{limit} {max} {found}"),
        Error::Invalid(_) => String::new(),
        other => panic!("a healthy store returned {other}"),
    };
    (error.code(), details)
}
