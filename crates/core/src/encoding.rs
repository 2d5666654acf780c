//! Bytes as text: hex and the percent-encoding of URLs.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Returns the bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| hex_digits(*byte)).map(char::from).collect()
}

/// Decodes lower-case hex; `None` unless it is exactly `N` bytes.
pub fn unhex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let hex = hex.as_bytes();
    if hex.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = lower_case_value(pair[0])? << 4 | lower_case_value(pair[1])?;
    }
    Some(bytes)
}

/// Returns the two digits of a byte as ASCII.
pub fn hex_digits(byte: u8) -> [u8; 2] {
    [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]
}

/// Percent-encodes text for a URL, except letters, digits, `-._~` and the characters in `plain`.
pub fn percent_encoded(text: &str, plain: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            byte if plain.as_bytes().contains(&byte) => encoded.push(char::from(byte)),
            byte => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// Decodes percent-encoded bytes; a percent sign without two hex digits is left as it is.
pub fn percent_decoded(encoded: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded;
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        rest = match (*first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).expect("two hex digits are one byte"));
                &after[2..]
            }
            (byte, _, _) => {
                bytes.push(byte);
                after
            }
        };
    }
    bytes
}

fn lower_case_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_as_it_is_written() {
        let bytes: Vec<u8> = (0..=255).collect();
        let text = hex(&bytes);
        assert_eq!((&text[..8], &text[508..]), ("00010203", "feff"));
        assert_eq!(unhex::<256>(&text).as_ref().map(|bytes| &bytes[..]), Some(&bytes[..]));
        for wrong in ["", "0", "000", "0g", "0A", "é", "00 "] {
            assert_eq!(unhex::<1>(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn percent_encoding_carries_everything() {
        assert_eq!(percent_encoded("x&y=<ü>/@~", ""), "x%26y%3D%3C%C3%BC%3E%2F%40~");
        assert_eq!(percent_encoded("/a?b@", "/@"), "/a%3Fb@");
        let bytes: Vec<u8> = (1..128).collect();
        let text = String::from_utf8(bytes).unwrap() + "größe";
        assert_eq!(percent_decoded(percent_encoded(&text, "").as_bytes()), text.as_bytes());
        for (encoded, decoded) in [("%zz", "%zz"), ("%", "%"), ("%4", "%4"), ("%41%4a%4A", "AJJ"), ("+", "+")] {
            assert_eq!(percent_decoded(encoded.as_bytes()), decoded.as_bytes(), "{encoded}");
        }
    }
}
