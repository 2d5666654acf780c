//! Searching texts by their words.

use super::state::StoreResult;
use rutter_core::port::Error;

/// Refuses an empty search.
pub(super) fn check(wanted: Option<&String>) -> StoreResult<()> {
    match wanted.is_none_or(|wanted| words(wanted).next().is_some()) {
        true => Ok(()),
        false => Err(Error::Invalid("a search needs at least one word".into())),
    }
}

/// Whether every word of `wanted` is a word of `text`, whatever the case.
pub(super) fn all_in(wanted: &str, text: &str) -> bool {
    let there: Vec<String> = words(text).collect();
    words(wanted).all(|word| there.contains(&word))
}

/// Whether every word of `wanted` is the beginning of a word of `text`.
pub(super) fn all_begin(wanted: &str, text: &str) -> bool {
    let there: Vec<String> = words(text).collect();
    words(wanted).all(|word| there.iter().any(|known| known.starts_with(&word)))
}

/// Whether every word of `wanted` is a part of `text`.
pub(super) fn all_within(wanted: &str, text: &str) -> bool {
    let text = text.to_lowercase();
    words(wanted).all(|word| text.contains(&word))
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_lowercase)
}

#[test]
fn words_are_compared_as_wholes_and_in_any_order() {
    assert!(all_in("LOST parcel", "The parcel was lost, twice"));
    assert!(all_in("no-luck", "luck? no"));
    for wanted in ["parc", "parcels", "lost found"] {
        assert!(!all_in(wanted, "the parcel was lost"), "{wanted}");
    }
}
