//! Searching texts by their words.

/// Whether every word of `wanted` is a word of `text`, whatever the case. Nothing wanted is found everywhere.
pub(super) fn all_in(wanted: &str, text: &str) -> bool {
    let there: Vec<String> = words(text).collect();
    words(wanted).all(|word| there.contains(&word))
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric());
    parts.filter(|part| !part.is_empty()).map(str::to_lowercase)
}

#[test]
fn words_are_compared_as_wholes_and_in_any_order() {
    assert!(all_in("LOST parcel", "The parcel was lost, twice"));
    assert!(all_in("no-luck", "luck? no"));
    assert!(all_in(" ?! ", "anything"));
    for wanted in ["parc", "parcels", "lost found"] {
        assert!(!all_in(wanted, "the parcel was lost"), "{wanted}");
    }
}
