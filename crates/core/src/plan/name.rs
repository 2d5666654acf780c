//! Which names a plan may have, and what `NAME@REVISION` says: a name must not be read as something else.

use crate::text::is_hidden;
use icu_normalizer::ComposingNormalizer;

/// What is wrong with a name, and a name without the mistake where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameMistake {
    pub message: &'static str,
    pub hint: &'static str,
    pub instead: Option<String>,
}

/// Returns what is wrong with the name that an author gives a plan.
pub fn mistake(name: &str) -> Option<NameMistake> {
    let wrong = |message, hint, instead: Option<&str>| {
        Some(NameMistake { message, hint, instead: instead.map(str::to_owned).filter(|instead| !instead.is_empty()) })
    };
    if name.trim() != name {
        let hint = "two names that differ only in white space look the same";
        return wrong("the name begins or ends with white space", hint, Some(name.trim()));
    }
    let composed = ComposingNormalizer::new_nfc();
    if !composed.is_normalized(name) {
        let hint = "write the name in Unicode's composed form (NFC): other forms of it look the same";
        return wrong("the name has characters that are not composed", hint, Some(&composed.normalize(name)));
    }
    if name.chars().any(is_hidden) {
        return wrong("the name has characters that nobody sees", "two names would look the same", None);
    }
    if split_revision(name).is_some() {
        let hint = "NAME@REVISION is a revision of the plan NAME; end the name otherwise, for example with -2";
        return wrong("the name ends like a revision, with @ and a number", hint, None);
    }
    if is_like_id(name) {
        let hint = "a plan is also found by its id; give the plan a name of its own";
        return wrong("the name has the form of a plan id", hint, None);
    }
    None
}

/// Splits `NAME@REVISION`. The revision of a number that no revision has is 0.
pub fn split_revision(text: &str) -> Option<(&str, u32)> {
    let (name, revision) = text.rsplit_once('@')?;
    let is_number = !revision.is_empty() && revision.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !name.is_empty()).then(|| (name, revision.parse().unwrap_or(0)))
}

/// Whether it is `plan_` and as many characters as an id has.
fn is_like_id(name: &str) -> bool {
    let id = name.strip_prefix("plan_");
    id.is_some_and(|id| id.len() == ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// The characters of an id after its prefix.
const ID_CHARS: usize = 26;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_nothing_else() {
        for (name, instead) in [
            (" a", Some("a")),
            ("a\u{a0}", Some("a")),
            ("cafe\u{301}", Some("caf\u{e9}")),
            ("a\u{200b}b", None),
            ("victim@1", None),
            ("victim@007", None),
            ("victim@99999999999", None),
            ("plan_ca689401537e79ed9de73dd25f", None),
            ("plan_01JCX3ZK7Q4W8V5N2M6T9B1D0F", None),
        ] {
            let found = mistake(name).unwrap_or_else(|| panic!("{name:?} is taken for a good name"));
            assert_eq!(found.instead.as_deref(), instead, "{name:?}: {}", found.message);
        }
        for name in ["a", "caf\u{e9}", "victim@home", "@1", "victim@", "a@-1", "a@+1", "plan_for_march", "a  b", "東京"]
        {
            assert_eq!(mistake(name), None, "{name:?}");
        }
    }
}
