//! List cursors: the key of the last item returned, as short text.

use rutter_core::limits::PAGE_MAX;
use rutter_core::port::Error;
use rutter_core::port::query::{ListCursor, Pagination};

/// The sort key of a list: a time or a number, and then a unique number.
pub(in crate::sqlite) type CursorKey = (i64, i64);

/// Each list has cursors of its own, so that one of another list is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::sqlite) enum ListKind {
    Executions,
    Plans,
    /// Entries of one journal, by sequence number.
    Journal,
    /// Entries of all journals, by time.
    Entries,
    /// Entries of all journals that match a search, by position.
    FoundEntries,
    Deliveries,
    /// By epoch and size.
    Checkpoints,
}

/// The size of a page, and after which key it begins.
#[derive(Clone, Copy, Debug)]
pub(in crate::sqlite) struct ListPaging {
    list: ListKind,
    pub limit: usize,
    pub after: Option<CursorKey>,
}

impl ListPaging {
    pub fn read(list: ListKind, page: &Pagination) -> Result<ListPaging, Error> {
        let limit = size_of_page(page.limit)?;
        let after = page.after.as_ref().map(|cursor| read(list, cursor)).transpose()?;
        Ok(ListPaging { list, limit, after })
    }

    /// One more than fits on the page: if it is found, the list continues.
    pub fn look_for(&self) -> i64 {
        self.limit as i64 + 1
    }

    /// Cuts the keys to the page; returns the cursor of the next page, if there is one.
    pub fn cut(&self, keys: &mut Vec<CursorKey>) -> Option<ListCursor> {
        let more = keys.len() > self.limit;
        keys.truncate(self.limit);
        keys.last().filter(|_| more).map(|key| self.at(*key))
    }

    /// The cursor after this key.
    pub fn at(&self, key: CursorKey) -> ListCursor {
        ListCursor(write(self.list, key))
    }
}

/// Checks the requested size of a page.
pub(in crate::sqlite) fn size_of_page(limit: u32) -> Result<usize, Error> {
    match limit {
        1..=PAGE_MAX => Ok(limit as usize),
        _ => Err(Error::Limit { limit: "page_max", max: PAGE_MAX.into(), found: limit.into() }),
    }
}

fn write(list: ListKind, (first, second): CursorKey) -> String {
    let letter = match list {
        ListKind::Executions => 'x',
        ListKind::Plans => 'p',
        ListKind::Journal => 'j',
        ListKind::Entries => 'e',
        ListKind::FoundEntries => 'f',
        ListKind::Deliveries => 'd',
        ListKind::Checkpoints => 'c',
    };
    format!("{letter}{first}.{second}")
}

fn read(list: ListKind, ListCursor(text): &ListCursor) -> Result<CursorKey, Error> {
    let key = || {
        let (first, second) = text.get(1..)?.split_once('.')?;
        let key = (first.parse().ok()?, second.parse().ok()?);
        // Only the canonical form: no other letter, no superfluous signs or zeros.
        (write(list, key) == *text).then_some(key)
    };
    key().ok_or_else(|| Error::Invalid(format!("{text:?} is not a cursor of this list")))
}

#[test]
fn cursors_are_read_as_they_were_written_and_by_their_own_list_only() {
    for key in [(0, 0), (i64::MAX, i64::MIN), (-5, 7)] {
        let cursor = ListCursor(write(ListKind::Plans, key));
        assert_eq!(read(ListKind::Plans, &cursor), Ok(key));
        assert_eq!(read(ListKind::Entries, &cursor).unwrap_err().code(), "store.invalid");
    }
    for text in ["", "p", "p1", "p1.", "p1.2.3", "p+1.2", "p01.2", "p1.2 ", "ü1.2", "p9223372036854775808.1"] {
        assert!(read(ListKind::Plans, &ListCursor(text.to_owned())).is_err(), "{text}");
    }
}
