//! Rust source split into code without comments and string literals, and the literals.

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub struct Source {
    /// Everything but comments; a string literal is left as `""`.
    pub code: String,
    pub literals: Vec<String>,
    text: String,
}

impl Source {
    pub fn read(text: &str) -> Source {
        let mut source = Source { text: text.to_owned(), ..Source::default() };
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = source.take(rest, first);
            rest = &rest[length..];
        }
        source
    }

    /// The same without items under `#[cfg(test)]`.
    pub fn without_tests(&self) -> Source {
        let mut stored = String::new();
        let mut lines = self.text.lines();
        while let Some(line) = lines.next() {
            if line != "#[cfg(test)]" {
                stored.push_str(line);
                stored.push('\n');
                continue;
            }
            for line in lines.by_ref() {
                let one_line = !line.starts_with([' ', '#']) && line.ends_with([';', '}']);
                if one_line || line == "}" {
                    break;
                }
            }
        }
        Source::read(&stored)
    }

    pub fn lines(&self) -> usize {
        self.text.lines().count()
    }

    /// Whether this name occurs in the code as a whole identifier.
    pub fn names(&self, name: &str) -> bool {
        self.identifiers().any(|identifier| identifier == name)
    }

    /// The words of the identifiers in the code, in lower case.
    pub fn words(&self) -> BTreeSet<String> {
        self.identifiers().flat_map(words_of).collect()
    }

    fn identifiers(&self) -> impl Iterator<Item = &str> {
        self.code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
    }

    /// Consumes one token from the front, and returns its length.
    fn take(&mut self, rest: &str, first: char) -> usize {
        if rest.starts_with("//") {
            return rest.find('\n').unwrap_or(rest.len());
        }
        if rest.starts_with("/*") {
            return rest.find("*/").map_or(rest.len(), |end| end + 2);
        }
        let hashes = rest[1..].bytes().take_while(|byte| *byte == b'#').count();
        let is_raw = first == 'r' && rest[1 + hashes..].starts_with('"') && !self.ends_in_a_name();
        if is_raw {
            let (open, close) = (hashes + 2, format!("\"{}", "#".repeat(hashes)));
            let length = rest[open..].find(&close).unwrap_or(rest.len() - open);
            self.keep_literal(&rest[open..open + length]);
            return (open + length + close.len()).min(rest.len());
        }
        if first == '"' {
            let length = length_of_text(&rest[1..]);
            self.keep_literal(&rest[1..1 + length]);
            return (length + 2).min(rest.len());
        }
        if let Some(length) = length_of_char(rest) {
            self.code.push_str("' '");
            return length;
        }
        self.code.push(first);
        first.len_utf8()
    }

    fn keep_literal(&mut self, literal: &str) {
        self.code.push_str("\"\"");
        self.literals.push(literal.to_owned());
    }

    fn ends_in_a_name(&self) -> bool {
        self.code.ends_with(|c: char| c.is_alphanumeric() || c == '_')
    }
}

/// Whether a text is a code of a finding, a refusal or an error: `plan.cycle`.
pub fn is_code(text: &str) -> bool {
    const AREAS: &[&str] = &[
        "plan",
        "lint",
        "optimize",
        "tool",
        "document",
        "expression",
        "catalog",
        "file",
        "command",
        "config",
        "store",
        "execution",
        "engine",
        "replan",
        "journal",
        "server",
    ];
    // Names of files and of settings look like codes.
    const OTHERS: &[&str] = &["log", "json", "yaml", "yml", "toml", "md", "rs", "listen", "hosts", "ask_at_client"];
    text.split_once('.').is_some_and(|(area, name)| {
        let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        AREAS.contains(&area) && plain && !OTHERS.contains(&name)
    })
}

/// Bytes up to the quote that ends a string literal.
fn length_of_text(rest: &str) -> usize {
    let mut escaped = false;
    let end = rest.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.unwrap_or(rest.len())
}

/// Bytes of a character literal, if this is one and not a lifetime.
fn length_of_char(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if let Some(escape) = inner.strip_prefix('\\') {
        let skipped = escape.chars().next()?.len_utf8();
        return escape[skipped..].find('\'').map(|end| end + skipped + 3);
    }
    let length = inner.chars().next()?.len_utf8();
    inner[length..].starts_with('\'').then_some(length + 2)
}

/// `StepState` is `step`, `state`; `retry_at` is `retry`, `at`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small_before = false;
    for c in name.chars() {
        let new_word = c == '_' || (c.is_uppercase() && small_before);
        if new_word {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("there is always one").extend(c.to_lowercase());
        }
        small_before = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn comments_and_texts_are_not_code() {
    let source = Source::read(
        "let a = \"x \\\" // y\"; // std::fs\nlet b = r#\"plan.\"q\"\"#; /* std::net */ let c = '\"'; fn f<'a>(x: &'a str) {}",
    );
    assert_eq!(source.literals, ["x \\\" // y", "plan.\"q\""]);
    assert!(!source.code.contains("std"), "{}", source.code);
    assert!(source.code.contains("fn f<'a>(x: &'a str) {}"), "{}", source.code);
}

#[test]
fn code_of_tests_is_left_out() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n#[cfg(test)]\nmod more;\nfn c() {}\n";
    assert_eq!(Source::read(text).without_tests().code, "fn a() {}\nfn c() {}\n");
    let text = "#[cfg(test)]\n#[allow(dead_code)]\nfn b() {\n    1;\n}\nfn c() {}\n";
    assert_eq!(Source::read(text).without_tests().code, "fn c() {}\n");
}

#[test]
fn names_fall_into_words() {
    let words = Source::read("struct TaskList; fn retry_at(jobs2: u8) {} // workflow").words();
    for word in ["task", "list", "retry", "at", "jobs2"] {
        assert!(words.contains(word), "{words:?}");
    }
    assert!(!words.contains("workflow"));
    assert!(Source::read("use serde_json::Value;").names("serde_json"));
    assert!(!Source::read("use serde_json::Value;").names("serde"));
}

#[test]
fn codes_are_distinguished_from_other_texts() {
    assert!(is_code("plan.cycle") && is_code("execution.not_ended"));
    for text in ["plan", "plan.", "plan.json", "plan.Cycle", "plan.a b", "plan.a.b", "steps.x"] {
        assert!(!is_code(text), "{text}");
    }
}
