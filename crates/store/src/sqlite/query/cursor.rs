//! Places in lists: the key of the last item that was seen, as short text.

use rutter_core::limits::PAGE_MAX;
use rutter_core::port::Error;
use rutter_core::port::query::{Cursor, Page};

/// What a list is in order of: a time or a number, and then what no two items share.
pub(in crate::sqlite) type Key = (i64, i64);

/// Each list has cursors of its own, so that one of another list is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum List {
    Executions,
    Plans,
    /// Of one journal, by their numbers.
    Journal,
    /// Of all journals, by time.
    Entries,
    /// Of all journals, those with certain words, by place.
    FoundEntries,
    Deliveries,
    /// By epoch and size.
    Checkpoints,
}

/// How much to list, and from where on.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) struct Paging {
    list: List,
    pub limit: usize,
    pub after: Option<Key>,
}

impl Paging {
    pub fn read(list: List, page: &Page) -> Result<Paging, Error> {
        let limit = size_of_page(page.limit)?;
        let after = page.after.as_ref().map(|cursor| read(list, cursor)).transpose()?;
        Ok(Paging { list, limit, after })
    }

    /// One more than fits on the page: whether there is one says whether the list goes on.
    pub fn look_for(&self) -> i64 {
        self.limit as i64 + 1
    }

    /// Takes what does not fit off the page; returns where the list goes on.
    pub fn cut(&self, keys: &mut Vec<Key>) -> Option<Cursor> {
        let more = keys.len() > self.limit;
        keys.truncate(self.limit);
        keys.last().filter(|_| more).map(|key| self.at(*key))
    }

    /// The cursor behind this key.
    pub fn at(&self, key: Key) -> Cursor {
        Cursor(write(self.list, key))
    }
}

/// How many items may be asked for at once.
pub(in crate::sqlite) fn size_of_page(limit: u32) -> Result<usize, Error> {
    match limit {
        1..=PAGE_MAX => Ok(limit as usize),
        _ => Err(Error::Limit { limit: "page_max", max: PAGE_MAX.into(), found: limit.into() }),
    }
}

fn write(list: List, (first, second): Key) -> String {
    let letter = match list {
        List::Executions => 'x',
        List::Plans => 'p',
        List::Journal => 'j',
        List::Entries => 'e',
        List::FoundEntries => 'f',
        List::Deliveries => 'd',
        List::Checkpoints => 'c',
    };
    format!("{letter}{first}.{second}")
}

fn read(list: List, Cursor(text): &Cursor) -> Result<Key, Error> {
    let key = || {
        let (first, second) = text.get(1..)?.split_once('.')?;
        let key = (first.parse().ok()?, second.parse().ok()?);
        // Only what was written here: no other letter, no signs or zeros that mean nothing.
        (write(list, key) == *text).then_some(key)
    };
    key().ok_or_else(|| Error::Invalid(format!("{text:?} is not a cursor of this list")))
}

#[test]
fn cursors_are_read_as_they_were_written_and_by_their_own_list_only() {
    for key in [(0, 0), (i64::MAX, i64::MIN), (-5, 7)] {
        let cursor = Cursor(write(List::Plans, key));
        assert_eq!(read(List::Plans, &cursor), Ok(key));
        assert_eq!(read(List::Entries, &cursor).unwrap_err().code(), "store.invalid");
    }
    for text in ["", "p", "p1", "p1.", "p1.2.3", "p+1.2", "p01.2", "p1.2 ", "ü1.2", "p9223372036854775808.1"]
    {
        assert!(read(List::Plans, &Cursor(text.to_owned())).is_err(), "{text}");
    }
}
