//! Escapes text for HTML and for URLs.

use rutter_core::encoding::percent_encoded;

pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            character => safe.push(character),
        }
    }
    safe
}

/// Encodes a query value.
pub fn encoded(text: &str) -> String {
    percent_encoded(text, "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_values_round_trip() {
        assert_eq!(encoded("/a?b=c&d=%20#e"), "/a%3Fb%3Dc%26d%3D%2520%23e");
    }
}
