//! Text from elsewhere, made safe for a terminal.

use rutter_core::text::is_hidden;

/// Makes a text from a plan safe to print: no control characters, so no escape sequences, and nothing that a reader cannot
/// see or that turns the direction of the text.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || is_hidden(c) { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_cannot_send_escape_sequences() {
        assert_eq!(printable("a\x1b[31mred\u{7}\u{9b}\n"), "a\u{fffd}[31mred\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(printable("a\u{202e}b\u{200b}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(printable("Überprüfung ✓ 👩\u{200d}💻"), "Überprüfung ✓ 👩\u{200d}💻");
    }
}
