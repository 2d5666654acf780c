//! Texts with slots, `/orders/{id}`, and with secrets, `Bearer ${secret:token}`. A brace is written `{{` or `}}`.

use serde_json::Value;

const SECRET: &str = "${secret:";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HttpTemplate {
    pub(super) pieces: Vec<HttpTemplatePiece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HttpTemplatePiece {
    Text(String),
    /// The value of a parameter.
    Slot(String),
    /// The name of a secret.
    Secret(String),
}

impl HttpTemplate {
    pub(super) fn read(text: &str) -> Result<HttpTemplate, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let piece = if let Some(after) = rest.strip_prefix(SECRET) {
                Some((after, true))
            } else if rest.starts_with("{{") || rest.starts_with("}}") {
                plain.push(c);
                rest = &rest[2..];
                continue;
            } else if c == '}' {
                return Err("a `}` without `{` before it; write `}}` for a brace".to_owned());
            } else {
                rest.strip_prefix('{').map(|after| (after, false))
            };
            let Some((after, is_secret)) = piece else {
                plain.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            };
            let (name, after) = after.split_once('}').ok_or("a `{` without `}` after it; write `{{` for a brace")?;
            if name.is_empty() || name.contains('{') {
                return Err(format!("expected a name between the braces, got {name:?}"));
            }
            if !plain.is_empty() {
                pieces.push(HttpTemplatePiece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(if is_secret {
                HttpTemplatePiece::Secret(name.to_owned())
            } else {
                HttpTemplatePiece::Slot(name.to_owned())
            });
            rest = after;
        }
        if !plain.is_empty() {
            pieces.push(HttpTemplatePiece::Text(plain));
        }
        Ok(HttpTemplate { pieces })
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            HttpTemplatePiece::Slot(name) => Some(name.as_str()),
            HttpTemplatePiece::Text(_) | HttpTemplatePiece::Secret(_) => None,
        })
    }

    pub(super) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().filter_map(|piece| match piece {
            HttpTemplatePiece::Secret(name) => Some(name.as_str()),
            HttpTemplatePiece::Text(_) | HttpTemplatePiece::Slot(_) => None,
        })
    }

    /// The slot, when there is nothing else.
    pub(super) fn only_slot(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [HttpTemplatePiece::Slot(name)] => Some(name),
            _ => None,
        }
    }
}

/// How a parameter is written in a slot; `None` for what has no such form.
pub(super) fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
