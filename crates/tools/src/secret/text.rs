//! `${secret:name}` in configured texts.

use super::SecretValue;
use std::collections::{BTreeMap, BTreeSet};

const OPEN: &str = "${secret:";

/// The secrets that a text names, or what is wrong with it.
pub fn names_in(text: &str) -> Result<BTreeSet<&str>, String> {
    let mut names = BTreeSet::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(OPEN) {
        let Some((name, after)) = after.split_once('}') else {
            return Err(format!("expected `{OPEN}name}}`, got a text that ends before the brace"));
        };
        names.insert(name);
        rest = after;
    }
    Ok(names)
}

/// Takes a text whose secrets are all there.
pub(super) fn filled(text: &str, secrets: &BTreeMap<String, SecretValue>) -> SecretValue {
    let mut filled = String::with_capacity(length(text, secrets));
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPEN)
        && let Some((name, after)) = after.split_once('}')
    {
        filled.push_str(before);
        filled.push_str(secrets[name].text());
        rest = after;
    }
    filled.push_str(rest);
    SecretValue::new(filled)
}

/// At least as long as the result: a string that grows would leave a copy behind that is not wiped.
fn length(text: &str, secrets: &BTreeMap<String, SecretValue>) -> usize {
    let longest = secrets.values().map(|secret| secret.text().len()).max().unwrap_or(0);
    text.len() + text.matches(OPEN).count() * longest
}
