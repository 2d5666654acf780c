//! The word that was probably meant.

/// The candidate closest to `word`, if one is close enough to be a slip of the hand.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const WORD_CHARS_MAX: usize = 64;
    let word: Vec<char> = word.chars().take(WORD_CHARS_MAX + 1).flat_map(char::to_lowercase).collect();
    let allowed = ((word.len() + 1) / 3).clamp(1, 3);
    if word.len() > WORD_CHARS_MAX {
        return None;
    }
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= WORD_CHARS_MAX * 4)
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and replacements between the two.
fn distance(word: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (i, c) in candidate.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, w) in word.iter().enumerate() {
            let replaced = diagonal + usize::from(*w != c);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[word.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let names = ["inputs", "steps", "key", "result"];
        for (word, expected) in [
            ("input", Some("inputs")),
            ("Stpes", Some("steps")),
            ("results", Some("result")),
            ("kee", Some("key")),
            ("customer", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), expected, "{word}");
        }
    }
}
