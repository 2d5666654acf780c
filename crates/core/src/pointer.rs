//! JSON Pointers (RFC 6901), with which findings refer to parts of a document.

/// Returns the pointer to a field of the object at `pointer`.
pub fn field(pointer: &str, name: &str) -> String {
    let mut field = String::with_capacity(pointer.len() + name.len() + 1);
    field.push_str(pointer);
    push(&mut field, name);
    field
}

/// Returns the pointer to an item of the list at `pointer`.
pub fn item(pointer: &str, index: usize) -> String {
    format!("{pointer}/{index}")
}

/// Appends one name to a pointer, escaped.
pub fn push(pointer: &mut String, name: &str) {
    pointer.push('/');
    for c in name.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            _ => pointer.push(c),
        }
    }
}

/// Splits a pointer into its names, unescaped; `None` when it is not a pointer.
pub fn names(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    pointer.strip_prefix('/')?.split('/').map(unescaped).collect()
}

/// Parses a name as a position in a list: digits without leading zeros.
pub fn index(name: &str) -> Option<usize> {
    let canonical = name == "0" || (!name.starts_with('0') && name.bytes().all(|b| b.is_ascii_digit()));
    name.parse().ok().filter(|_| canonical)
}

fn unescaped(name: &str) -> Option<String> {
    let mut plain = String::with_capacity(name.len());
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        match c {
            '~' => plain.push(match chars.next()? {
                '0' => '~',
                '1' => '/',
                _ => return None,
            }),
            _ => plain.push(c),
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_in_and_come_out_again() {
        let pointer = field(&item(&field("", "a/b~c"), 3), "");
        assert_eq!(pointer, "/a~1b~0c/3/");
        assert_eq!(names(&pointer).unwrap(), ["a/b~c", "3", ""]);
        assert_eq!(names("").unwrap(), Vec::<String>::new());
        for wrong in ["a", "/~", "/~2"] {
            assert_eq!(names(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn positions_have_one_spelling() {
        for (name, expected) in [("0", Some(0)), ("12", Some(12)), ("012", None), ("+1", None), ("-", None), ("", None)]
        {
            assert_eq!(index(name), expected, "{name}");
        }
    }
}
