//! Finds the id of a message that is too long to buffer, while its bytes are dropped.

use serde_json::Value;

/// Longer ids are ignored.
const ID_BYTES_MAX: usize = 1024;

/// Scans every byte once. If the input is not JSON, the result is meaningless but harmless.
#[derive(Debug, Default)]
pub(super) struct MessageIdScanner {
    depth: usize,
    in_text: bool,
    is_escaped: bool,
    /// A name is expected next, not a value.
    wants_name: bool,
    /// The current string or number, if it is a member of the message itself.
    word: Vec<u8>,
    name: Vec<u8>,
    id: Option<Value>,
}

impl MessageIdScanner {
    pub(super) fn scan(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match self.in_text {
                true => self.text(*byte),
                false => self.structure(*byte),
            }
        }
    }

    pub(super) fn id(self) -> Option<Value> {
        self.id
    }

    fn text(&mut self, byte: u8) {
        self.keep(byte);
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' => self.is_escaped = true,
            b'"' => self.in_text = false,
            _ => {}
        }
    }

    fn structure(&mut self, byte: u8) {
        match byte {
            b'"' => {
                self.in_text = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.wants_name = self.depth == 1;
                self.word.clear();
            }
            b'}' | b']' => {
                self.end_of_value();
                self.depth = self.depth.saturating_sub(1);
            }
            b',' => {
                self.end_of_value();
                self.wants_name = true;
            }
            b':' if self.depth == 1 && self.wants_name => {
                self.name = std::mem::take(&mut self.word);
                self.wants_name = false;
            }
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    fn end_of_value(&mut self) {
        if self.depth == 1 {
            let word = std::mem::take(&mut self.word);
            let id = serde_json::from_slice(&word).ok().filter(|id: &Value| id.is_string() || id.is_i64());
            if self.name == b"\"id\"" && id.is_some() {
                self.id = id;
            }
            self.name.clear();
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.word.len() < ID_BYTES_MAX {
            self.word.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(text: &str) -> Option<Value> {
        let mut passing = MessageIdScanner::default();
        // In pieces, as a reader delivers them.
        text.as_bytes().chunks(3).for_each(|piece| passing.scan(piece));
        passing.id()
    }

    #[test]
    fn the_id_is_found_anywhere_in_the_message_but_not_in_nested_values() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"x"}"#, json!(7)),
            (r#"{"method":"x","params":{"id":1,"a":["id",2]},"id" : -8 }"#, json!(-8)),
            (r#"{"params":{"a":"\"id\":9,}{"},"id":"a\"b,}"}"#, json!("a\"b,}")),
            (r#"{ "id": "first", "id": 2, "rest": [[{}]] }"#, json!(2)),
        ] {
            assert_eq!(found(text), Some(id), "{text}");
        }
        let long = format!(r#"{{"id":"{}"}}"#, "x".repeat(2_000));
        let none = [r#"{"params":{"id":1}}"#, r#"["id",1]"#, r#"{"id":1.5}"#, r#"{"id":null}"#, "id:1", "}}]]", &long];
        for text in none {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
