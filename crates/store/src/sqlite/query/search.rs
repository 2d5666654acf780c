//! Search text: words that must all occur. None of them is read as an operator.

use super::cursor::{CursorKey, ListPaging};
use super::select::SelectStatement;
use rusqlite::Connection;
use rusqlite::types::Value;
use rutter_core::port::Error;
use std::collections::BTreeSet;

/// The most matches that a search sorts.
const SEARCH_MAX: usize = 10_000;
const SEARCH_BYTES_MAX: usize = 1 << 10;

/// The words of a search, each quoted for `match`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SearchWords(Vec<String>);

impl SearchWords {
    /// An expression for `match`: whole words.
    pub fn value(&self) -> Value {
        Value::Text(self.0.join(" "))
    }

    /// The same for words that begin like these.
    pub fn prefixes(&self) -> Value {
        let prefixes: Vec<String> = self.0.iter().map(|word| format!("{word}*")).collect();
        Value::Text(prefixes.join(" "))
    }

    /// A pattern for `like` per word, with `!` as the escape character.
    pub fn patterns(&self) -> impl Iterator<Item = Value> {
        // Quotation marks and the characters special to `like` are never part of a word.
        self.0.iter().map(|word| Value::Text(format!("%{}%", word.trim_matches('"'))))
    }
}

/// Parses a search text; no text is no search.
pub(super) fn read(text: Option<&str>) -> Result<Option<SearchWords>, Error> {
    let Some(text) = text else { return Ok(None) };
    let (max, found) = (SEARCH_BYTES_MAX as u64, text.len() as u64);
    if found > max {
        return Err(Error::Limit { limit: "search_bytes_max", max, found });
    }
    // ASCII punctuation separates words; for other scripts the tokenizer of the index decides.
    let is_between = |c: char| c.is_whitespace() || c.is_control() || (c.is_ascii() && !c.is_alphanumeric());
    let words = text.split(is_between).filter(|word| word.contains(char::is_alphanumeric));
    let quoted: Vec<String> = words.map(|word| format!("\"{word}\"")).collect();
    match quoted.is_empty() {
        true => Err(Error::Invalid("a search needs at least one word".to_owned())),
        false => Ok(Some(SearchWords(quoted))),
    }
}

/// Finds all matches and sorts them newest first: the text index has an order of its own.
pub(super) fn newest(
    connection: &Connection,
    selects: &[SelectStatement],
    paging: &ListPaging,
) -> Result<Vec<CursorKey>, Error> {
    let mut found: BTreeSet<CursorKey> = BTreeSet::new();
    for select in selects {
        select.for_each_key(connection, &mut |key| {
            found.insert(key);
            match found.len() > SEARCH_MAX {
                true => Err(Error::TooBroad(format!(
                    "more than {SEARCH_MAX} match these words; add a word or narrow the time range"
                ))),
                false => Ok(()),
            }
        })?;
    }
    Ok(found.into_iter().rev().take(paging.limit + 1).collect())
}

#[test]
fn every_search_text_is_read_as_words() {
    let read = |text: &str| read(Some(text)).map(|words| words.expect("there was text").0.join(" "));
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
