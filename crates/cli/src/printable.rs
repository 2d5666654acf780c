//! Text from elsewhere, made safe for a terminal.

/// Makes a text from a plan safe to print: no control characters, so no escape sequences.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_cannot_send_escape_sequences() {
        assert_eq!(printable("a\x1b[31mred\u{7}\u{9b}\n"), "a\u{fffd}[31mred\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(printable("Überprüfung ✓"), "Überprüfung ✓");
    }
}
