//! What somebody searches for: words, all of which must be there. Nothing in them is an operator.

use super::cursor::{Key, Paging};
use super::select::Select;
use rusqlite::Connection;
use rusqlite::types::Value;
use rutter_core::port::Error;
use std::collections::BTreeSet;

/// What a search may find and bring into order.
const SEARCH_MAX: usize = 10_000;
const SEARCH_BYTES_MAX: usize = 1 << 10;

/// An expression for `match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words(String);

impl Words {
    pub fn value(&self) -> Value {
        Value::Text(self.0.clone())
    }
}

/// Reads what somebody wrote; no text is no search.
pub(super) fn read(text: Option<&str>) -> Result<Option<Words>, Error> {
    let Some(text) = text else { return Ok(None) };
    let (max, found) = (SEARCH_BYTES_MAX as u64, text.len() as u64);
    if found > max {
        return Err(Error::Limit { limit: "search_bytes_max", max, found });
    }
    // What is between words of plain letters is not looked for; of other scripts the index knows more than we do.
    let is_between = |c: char| c.is_whitespace() || c.is_control() || (c.is_ascii() && !c.is_alphanumeric());
    let words = text.split(is_between).filter(|word| word.contains(char::is_alphanumeric));
    let quoted: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    match quoted.is_empty() {
        true => Err(Error::Invalid("a search needs at least one word".to_owned())),
        false => Ok(Some(Words(quoted.join(" ")))),
    }
}

/// Finds all, and brings them into the order of the list: words have an order of their own.
pub(super) fn newest(
    connection: &Connection,
    selects: &[Select],
    paging: &Paging,
) -> Result<Vec<Key>, Error> {
    let mut found: BTreeSet<Key> = BTreeSet::new();
    for select in selects {
        select.for_each_key(connection, &mut |key| {
            found.insert(key);
            match found.len() > SEARCH_MAX {
                true => Err(Error::TooBroad(format!(
                    "more than {SEARCH_MAX} have these words; add a word, or ask for a shorter time"
                ))),
                false => Ok(()),
            }
        })?;
    }
    Ok(found.into_iter().rev().take(paging.limit + 1).collect())
}

#[test]
fn whatever_is_written_is_words() {
    let read = |text: &str| read(Some(text)).map(|words| words.expect("there was text").0);
    for (text, words) in [
        ("card", "\"card\""),
        (" two  words\n", "\"two\" \"words\""),
        ("a OR b* NOT(c) col:d -e", "\"a\" \"OR\" \"b\" \"NOT\" \"c\" \"col\" \"d\" \"e\""),
        ("say \"hi\" + \0 —", "\"say\" \"hi\""),
        ("Größe u\u{308}ber", "\"Größe\" \"u\u{308}ber\""),
    ] {
        assert_eq!(read(text), Ok(words.to_owned()), "{text}");
    }
    for text in ["", "  \n", "?!", "\"\"", "*", "—"] {
        assert_eq!(read(text).unwrap_err().code(), "store.invalid", "{text}");
    }
    assert!(read(&"x".repeat(SEARCH_BYTES_MAX)).is_ok());
    assert_eq!(read(&"x".repeat(SEARCH_BYTES_MAX + 1)).unwrap_err().code(), "store.limit");
}
