//! Wording of findings: quotes values and guesses what was meant.

use serde_json::Value;

const QUOTED_CHARS_MAX: usize = 60;
/// Longer words are not compared: they cannot be a typo of one of ours.
const GUESSED_CHARS_MAX: usize = 40;

/// Quotes a text for a message: on one line, without control characters, shortened.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    let mut chars = text.chars();
    for c in chars.by_ref().take(QUOTED_CHARS_MAX) {
        match c {
            '\'' => quoted.push(c),
            _ => quoted.extend(c.escape_debug()),
        }
    }
    if chars.next().is_some() {
        quoted.push('…');
    }
    quoted.push('"');
    quoted
}

/// Names a value for a message: `the text "a"`, `the number 3`, `a list`.
pub fn named(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {}", quoted(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Lists choices for a message: `a, b or c`.
pub fn choices(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

/// The probable meaning of a mistyped word, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpellingGuess<'a> {
    /// The same word in another spelling, or at most two letters off with no other candidate as close.
    Clear(&'a str),
    /// Begins alike; worth a hint, but not a fix.
    Vague(&'a str),
}

impl<'a> SpellingGuess<'a> {
    /// The word, for a hint that does not distinguish.
    pub fn word(self) -> &'a str {
        let (SpellingGuess::Clear(word) | SpellingGuess::Vague(word)) = self;
        word
    }
}

/// Guesses which of the known words was meant.
pub fn guess<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<SpellingGuess<'a>> {
    if word.chars().nth(GUESSED_CHARS_MAX).is_some() {
        return None;
    }
    let plain = spelled_plainly(word);
    // Known words can come from a foreign schema and have any length.
    let known = known.filter(|known| known.chars().nth(2 * GUESSED_CHARS_MAX).is_none());
    let known: Vec<(&str, String)> = known.map(|known| (known, spelled_plainly(known))).collect();
    if let Some((same, _)) = known.iter().find(|(_, known)| *known == plain) {
        return Some(SpellingGuess::Clear(same));
    }
    // One letter in three may be wrong: `to` is not a mistyped `on`.
    let allowed = (plain.chars().count() / 3).min(2);
    let mut near: Vec<(usize, &str)> =
        known.iter().map(|(known, spelled)| (distance(&plain, spelled), *known)).collect();
    near.retain(|(distance, _)| *distance <= allowed);
    near.sort_by_key(|(distance, _)| *distance);
    match near[..] {
        [(nearest, word), (next, _), ..] if nearest == next => return Some(SpellingGuess::Vague(word)),
        [(_, word), ..] => return Some(SpellingGuess::Clear(word)),
        [] => {}
    }
    known
        .iter()
        .map(|(known, spelled)| (common_prefix(&plain, spelled), *known))
        .filter(|(length, _)| *length >= 4)
        .max_by_key(|(length, _)| *length)
        .map(|(_, known)| SpellingGuess::Vague(known))
}

/// Normalises `dependsOn`, `depends-on` and `DEPENDS ON`: lower-case letters and digits only.
pub fn spelled_plainly(word: &str) -> String {
    word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The edit distance: letters to insert, remove, change or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_stay_on_one_short_line() {
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted("a\nb\u{0}\""), "\"a\\nb\\0\\\"\"");
        assert_eq!(quoted(&"x".repeat(61)), format!("\"{}…\"", "x".repeat(60)));
    }

    #[test]
    fn mistyped_words_are_recognised() {
        let known = ["depends_on", "description", "timeout", "total_timeout", "tool", "on"];
        for (word, expected) in [
            ("dependsOn", Some(SpellingGuess::Clear("depends_on"))),
            ("Depends-On", Some(SpellingGuess::Clear("depends_on"))),
            ("depnds_on", Some(SpellingGuess::Clear("depends_on"))),
            ("tiemout", Some(SpellingGuess::Clear("timeout"))),
            ("tools", Some(SpellingGuess::Clear("tool"))),
            ("timeout_ms", Some(SpellingGuess::Clear("timeout"))),
            ("descr", Some(SpellingGuess::Vague("description"))),
            ("to", None),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(guess(word, known.iter().copied()), expected, "{word}");
        }
        assert_eq!(guess("caat", ["cat", "coat"].into_iter()), Some(SpellingGuess::Vague("cat")));
        assert_eq!(guess(&"t".repeat(100_000), known.iter().copied()), None);
        assert_eq!(guess("timeout", ["timeout".repeat(100_000).as_str()].into_iter()), None);
        let names = ["inputs", "steps", "key", "result"];
        for (word, expected) in
            [("input", Some("inputs")), ("Stpes", Some("steps")), ("kee", Some("key")), ("customer", None)]
        {
            assert_eq!(guess(word, names.into_iter()).map(SpellingGuess::word), expected, "{word}");
        }
    }
}
