//! Text from servers: cut to a limit, without invisible characters.

use rutter_core::text::{cut_bytes, is_hidden};
use std::borrow::Cow;

/// The text as people see it, at most `bytes_max` long.
pub(crate) fn visible(text: &str, bytes_max: usize) -> Cow<'_, str> {
    let cut = cut_bytes(text, bytes_max);
    match has_hidden(cut) {
        true => Cow::Owned(cut.chars().filter(|c| !is_hidden(*c)).collect()),
        false => Cow::Borrowed(cut),
    }
}

pub(crate) fn has_hidden(text: &str) -> bool {
    text.chars().any(is_hidden)
}

/// What a name looks like at a glance: two names with the same look are easily confused.
pub(crate) fn look(name: &str) -> String {
    let plain = name.to_ascii_lowercase().replace("rn", "m").replace("vv", "w");
    let alike = |c: char| match c {
        '0' => Some('o'),
        '1' | 'i' => Some('l'),
        '5' => Some('s'),
        '_' | '-' | '/' => None,
        c => Some(c),
    };
    plain.chars().filter_map(alike).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_removed_and_visible_ones_remain() {
        let table = [
            ("plain text\nwith lines", "plain text\nwith lines"),
            ("pay\u{200B}ments", "payments"),
            ("\u{202E}evil\u{202C}", "evil"),
            ("tag\u{E0041}\u{E0042}", "tag"),
            ("bell\u{7}\u{1B}[31m", "bell[31m"),
            ("größe 漢字 👩\u{200D}💻 ❤\u{FE0F}", "größe 漢字 👩\u{200D}💻 ❤\u{FE0F}"),
        ];
        for (text, seen) in table {
            assert_eq!(visible(text, 1_000), seen);
            assert_eq!(has_hidden(text), text != seen, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for (bytes_max, seen) in [(6, "aää"), (5, "aää"), (4, "aä"), (3, "aä"), (2, "a"), (0, "")] {
            assert_eq!(visible("aää", bytes_max), seen);
        }
    }

    #[test]
    fn names_that_look_alike_have_one_look() {
        for (one, other) in [("git.commit", "git.cornmit"), ("mail.send", "MAlL.send"), ("a.get_o", "a.get-0")] {
            assert_eq!(look(one), look(other));
        }
        assert_ne!(look("git.commit"), look("git.comment"));
    }
}
