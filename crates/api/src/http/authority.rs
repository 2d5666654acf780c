//! A host and an optional port, as in `Host` and `Origin`. Anything unusual is rejected.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostAuthority<'a> {
    /// An IPv6 address includes its brackets.
    pub(super) name: &'a str,
    pub(super) port: Option<u16>,
}

impl<'a> HostAuthority<'a> {
    pub(super) fn parse(text: &'a str) -> Option<HostAuthority<'a>> {
        let end = match text.strip_prefix('[') {
            Some(rest) => rest.find(']')? + 2,
            None => text.find(':').unwrap_or(text.len()),
        };
        let (name, rest) = text.split_at(end);
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            // `parse` would accept a sign.
            Some(digits) if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            _ => return None,
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
        (!name.is_empty() && name.bytes().all(is_plain)).then_some(HostAuthority { name, port })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_exactly_or_not_at_all() {
        for (text, name, port) in [
            ("localhost", "localhost", None),
            ("127.0.0.1:7411", "127.0.0.1", Some(7411)),
            ("[::1]", "[::1]", None),
            ("[::1]:80", "[::1]", Some(80)),
            ("localhost.", "localhost.", None),
        ] {
            assert_eq!(HostAuthority::parse(text), Some(HostAuthority { name, port }), "{text}");
        }
        for text in [
            "",
            ":80",
            "localhost:",
            "localhost:x",
            "localhost:+1",
            "localhost:80:80",
            "localhost:99999",
            "::1",
            "a@localhost",
            "localhost/a",
            "localhost#",
            "localhost\\a",
            "[::1",
            "[::1]a",
            "[]x:1",
            "local host",
            "l\u{f6}calhost",
        ] {
            assert_eq!(HostAuthority::parse(text), None, "{text}");
        }
    }
}
