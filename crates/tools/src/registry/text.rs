//! Text that servers wrote: cut where it gets long, without characters nobody can see.

use std::borrow::Cow;

/// The text as people see it, at most `bytes_max` long.
pub(crate) fn visible(text: &str, bytes_max: usize) -> Cow<'_, str> {
    let cut = &text[..text.floor_char_boundary(bytes_max)];
    match has_hidden(cut) {
        true => Cow::Owned(cut.chars().filter(|c| !is_hidden(*c)).collect()),
        false => Cow::Borrowed(cut),
    }
}

pub(crate) fn has_hidden(text: &str) -> bool {
    text.chars().any(is_hidden)
}

/// Takes no room, turns the direction of the text around it, or belongs to no script: an agent would read what a
/// person cannot see. What joins and colours emoji is left alone.
fn is_hidden(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        '\u{200D}' | '\u{FE0F}' => false,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}' => true,
        '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}' => true,
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' => true,
        '\u{FE00}'..='\u{FE0E}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' => true,
        '\u{E0000}'..='\u{E0FFF}' => true,
        c => c.is_control(),
    }
}

/// What a name looks like at a glance: two names with the same look are easily taken for each other.
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
    fn what_nobody_can_see_is_taken_out_and_what_everybody_sees_is_kept() {
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
        for (one, other) in
            [("git.commit", "git.cornmit"), ("mail.send", "MAlL.send"), ("a.get_o", "a.get-0")]
        {
            assert_eq!(look(one), look(other));
        }
        assert_ne!(look("git.commit"), look("git.comment"));
    }
}
