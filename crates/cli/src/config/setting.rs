//! Single settings of a file, each with its line, to show where a value comes from.

use serde_json::{Map, Value, json};
use std::ops::Range;
use toml_edit::{Item, Key, TableLike};

/// One setting as it is written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FileSetting {
    pub(crate) path: Vec<String>,
    pub(crate) value: Value,
    pub(crate) line: usize,
}

/// Parts of names that credentials usually have.
const SECRET_NAME_PARTS: &[&str] = &["KEY", "TOKEN", "SECRET", "PASSW", "AUTH", "CREDENTIAL"];

/// Whether the name suggests a credential.
pub(crate) fn names_a_secret(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    SECRET_NAME_PARTS.iter().any(|word| upper.contains(word))
}

impl FileSetting {
    /// `servers.git.command`
    pub(crate) fn key(&self) -> String {
        let is_bare =
            |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        let parts: Vec<String> =
            self.path.iter().map(|part| if is_bare(part) { part.clone() } else { json!(part).to_string() }).collect();
        parts.join(".")
    }

    /// The table that is taken as a whole from the nearest file that has it.
    pub(crate) fn group(&self) -> &[String] {
        let parts = match self.path.first().map(String::as_str) {
            Some("limits" | "server") => 1,
            _ => 2,
        };
        &self.path[..parts.min(self.path.len())]
    }

    /// Whether it configures tools.
    pub(crate) fn is_of_tools(&self) -> bool {
        let tables = ["servers", "http", "commands", "secrets", "notify"];
        self.path.first().is_some_and(|table| tables.contains(&table.as_str()))
    }

    /// The value to display: references stay, literal credentials are hidden.
    pub(crate) fn redacted_value(&self) -> Value {
        let is_written_down = |part: &String| part == "env" || part == "headers";
        let is_secret_table = self.path.first().is_some_and(|table| table == "secrets" || table == "server");
        let name = self.path.last().map_or("", String::as_str);
        match &self.value {
            Value::String(text)
                if !is_secret_table
                    && self.path.iter().any(is_written_down)
                    && names_a_secret(name)
                    && !text.contains("${") =>
            {
                json!("(hidden)")
            }
            Value::Array(items) if name == "args" || name == "argv" => {
                let mut is_next = false;
                items.iter().map(|item| hidden(item, &mut is_next)).collect()
            }
            value => value.clone(),
        }
    }
}

/// Hides `--token=…`, and the argument after `--token`.
fn hidden(item: &Value, is_next: &mut bool) -> Value {
    let Some(text) = item.as_str() else { return item.clone() };
    if std::mem::take(is_next) && !text.starts_with('-') {
        return json!("(hidden)");
    }
    match text.split_once('=') {
        Some((name, _)) if names_a_secret(name) => json!(format!("{name}=(hidden)")),
        Some(_) => item.clone(),
        None => {
            *is_next = text.starts_with('-') && names_a_secret(text);
            item.clone()
        }
    }
}

/// All settings of a table, in the order they are written.
pub(super) fn leaves(table: &dyn TableLike, line: &dyn Fn(Option<Range<usize>>) -> usize) -> Vec<FileSetting> {
    let mut all = Vec::new();
    collect(table, &[], line, &mut all);
    all
}

fn collect(
    table: &dyn TableLike,
    path: &[String],
    line: &dyn Fn(Option<Range<usize>>) -> usize,
    all: &mut Vec<FileSetting>,
) {
    for (key, item) in table.iter() {
        let path = [path, &[key.to_owned()]].concat();
        match item.as_table_like().filter(|table| !table.is_empty()) {
            Some(table) => collect(table, &path, line, all),
            None => {
                let place = table.get_key_value(key).and_then(|(key, _)| Key::span(key)).or(item.span());
                all.push(FileSetting { path, value: json_of(item), line: line(place) });
            }
        }
    }
}

fn json_of(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => value_of(value),
        Item::Table(table) => table.iter().map(|(key, item)| (key.to_owned(), json_of(item))).collect(),
        Item::ArrayOfTables(tables) => {
            let object = |table: &toml_edit::Table| -> Map<String, Value> {
                table.iter().map(|(key, item)| (key.to_owned(), json_of(item))).collect()
            };
            tables.iter().map(|table| Value::Object(object(table))).collect()
        }
    }
}

fn value_of(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => json!(text.value()),
        toml_edit::Value::Integer(number) => json!(number.value()),
        toml_edit::Value::Float(number) => json!(number.value()),
        toml_edit::Value::Boolean(flag) => json!(flag.value()),
        toml_edit::Value::Datetime(time) => json!(time.value().to_string()),
        toml_edit::Value::Array(items) => items.iter().map(value_of).collect(),
        toml_edit::Value::InlineTable(table) => {
            table.iter().map(|(key, value)| (key.to_owned(), value_of(value))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(path: &[&str], value: Value) -> FileSetting {
        FileSetting { path: path.iter().map(|part| (*part).to_owned()).collect(), value, line: 1 }
    }

    #[test]
    fn credentials_are_displayed_only_as_references() {
        for (path, value, json) in [
            (&["servers", "a", "env", "API_KEY"][..], json!("abcdef"), json!("(hidden)")),
            (&["servers", "a", "env", "API_KEY"], json!("${secret:a}"), json!("${secret:a}")),
            (&["servers", "a", "env", "LEVEL"], json!("info"), json!("info")),
            (&["servers", "a", "headers", "Authorization"], json!("Bearer x"), json!("(hidden)")),
            (&["servers", "a", "args"], json!(["--token", "x", "y"]), json!(["--token", "(hidden)", "y"])),
            (&["servers", "a", "args"], json!(["--api-key=x"]), json!(["--api-key=(hidden)"])),
            (&["secrets", "token", "env"], json!("TOKEN"), json!("TOKEN")),
            (&["server", "tokens", "ci", "env"], json!("CI_TOKEN"), json!("CI_TOKEN")),
        ] {
            assert_eq!(leaf(path, value).redacted_value(), json, "{path:?}");
        }
    }

    #[test]
    fn keys_are_written_as_toml_writes_them() {
        assert_eq!(leaf(&["servers", "a b", "x"], json!(1)).key(), "servers.\"a b\".x");
    }
}
