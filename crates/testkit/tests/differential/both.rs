//! Asking two stores at once.

use rutter_core::port::query::{Listing, Page};
use rutter_core::port::{Answer, Error};
use rutter_store::wait;
use rutter_testkit::conformance::Store;
use std::fmt::Debug;

pub struct Both<'a> {
    stores: [&'a dyn Store; 2],
    seed: u64,
    pub asked: u64,
    /// How often they did not refuse.
    pub answered: u64,
}

impl<'a> Both<'a> {
    pub fn new(one: &'a dyn Store, other: &'a dyn Store, seed: u64) -> Both<'a> {
        Both { stores: [one, other], seed, asked: 0, answered: 0 }
    }

    /// Asks both the same; what they answer must be the same too. `None` when both refuse.
    pub fn ask<T: PartialEq + Debug>(
        &mut self,
        what: &dyn Debug,
        ask: impl for<'s> Fn(&'s dyn Store) -> Answer<'s, T>,
    ) -> Option<T> {
        self.compare(what, |store| wait(ask(store)))
    }

    /// Reads a list to its end from both, by pages of this size.
    pub fn list<T: PartialEq + Debug>(
        &mut self,
        what: &dyn Debug,
        limit: u32,
        list: impl for<'s> Fn(&'s dyn Store, Page) -> Answer<'s, Listing<T>>,
    ) {
        self.compare(what, |store| {
            let (mut items, mut page) = (Vec::new(), Page::first(limit));
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
        ask: impl Fn(&dyn Store) -> Result<T, Error>,
    ) -> Option<T> {
        self.asked += 1;
        let [one, other] = self.stores.map(|store| ask(store).map_err(|error| told(&error)));
        let (seed, asked) = (self.seed, self.asked);
        assert_eq!(one, other, "seed {seed}, request {asked}: {what:?}");
        self.answered += u64::from(one.is_ok());
        one.ok()
    }
}

/// What callers can rely on in an error; the words are each store's own.
fn told(error: &Error) -> (&'static str, String) {
    let details = match error {
        Error::Fenced { execution, epoch } => format!("{execution} {epoch}"),
        Error::Conflict { expected, found, .. } => format!("{expected} {found}"),
        Error::NotFound { what, .. } => (*what).to_owned(),
        Error::KeyReused { key } => key.clone(),
        Error::Limit { limit, max, found } => format!("{limit} {max} {found}"),
        Error::Invalid(_) => String::new(),
        other => panic!("a store in good health answered {other}"),
    };
    (error.code(), details)
}
