//! Reads the lists of MCP servers of other programs: `mcpServers` (`.mcp.json`) and `servers` (VS Code).
//!
//! Such files have comments, trailing commas and `${VARIABLES}`, and keys that mean something only to the program
//! they were written for. Unknown keys are ignored with a note; misleading entries are refused.

use super::{McpServerConfig, McpTransport, child, http};
use jsonc_parser::ParseOptions;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Looks up an environment variable.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Returns the servers of such a file, and notes about what was ignored.
pub fn import(
    text: &str,
    lookup: VariableLookup<'_>,
) -> Result<(BTreeMap<String, McpServerConfig>, Vec<String>), Error> {
    let file: Value =
        jsonc_parser::parse_to_serde_value(text, &reading()).map_err(|error| Error::Unreadable(error.to_string()))?;
    let Some(Value::Object(entries)) = file.get("mcpServers").or(file.get("servers")) else {
        return Err(Error::NoServers);
    };
    let mut servers = BTreeMap::new();
    let mut notes = Vec::new();
    for (name, entry) in entries {
        check_name(name)?;
        let server = read(entry, lookup, |note| notes.push(format!("server `{name}`: {note}")))
            .map_err(|reason| Error::Server { name: name.clone(), reason })?;
        servers.insert(name.clone(), server);
    }
    Ok((servers, notes))
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the file cannot be read as JSON: {0}")]
    Unreadable(String),
    #[error("the file has neither `mcpServers` nor `servers`; expected an object with one of them")]
    NoServers,
    #[error(
        "`{name}` cannot be the name of a server, which has letters, digits, `_` and `-`; rename it, to `{better}` for example"
    )]
    Name { name: String, better: String },
    #[error("server `{name}`: {reason}")]
    Server { name: String, reason: String },
}

/// Comments and trailing commas, as editors allow them; nothing else that JSON does not have.
fn reading() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(fits) {
        return Ok(());
    }
    let mapped: String = name.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    let better: Vec<&str> = mapped.split('-').filter(|part| !part.is_empty()).collect();
    let better = if better.is_empty() { "server".to_owned() } else { better.join("-") };
    Err(Error::Name { name: name.to_owned(), better })
}

const KNOWN: &[&str] =
    &["type", "transport", "command", "args", "env", "cwd", "url", "serverUrl", "headers", "disabled", "enabled"];

fn read(entry: &Value, lookup: VariableLookup<'_>, mut note: impl FnMut(String)) -> Result<McpServerConfig, String> {
    let Value::Object(entry) = entry else {
        return Err("expected an object with `command` or `url`".to_owned());
    };
    let fields = ImportedEntry { entry, lookup };
    let kind = fields.text("type")?.or(fields.text("transport")?);
    let command = fields.text("command")?;
    let url = fields.text("url")?.or(fields.text("serverUrl")?);
    let reach = match (kind.as_deref(), command, url) {
        (Some("sse"), ..) => {
            return Err("`sse` is the transport of 2024, which is not supported; \
                        ask for the address of the server's streamable HTTP"
                .to_owned());
        }
        (_, Some(_), Some(_)) => return Err("expected one of `command` and `url`, got both".to_owned()),
        (None | Some("stdio"), Some(command), None) => {
            let cwd = fields.text("cwd")?.map(PathBuf::from);
            McpTransport::Child(child(command, fields.list("args")?, fields.table("env")?, cwd)?)
        }
        (None | Some("http" | "streamable-http" | "streamableHttp"), None, Some(url)) => {
            McpTransport::Http(http(&url, fields.table("headers")?)?)
        }
        (None, None, None) => return Err("expected `command` or `url`, got neither".to_owned()),
        (Some("stdio"), None, _) => return Err("expected `command`, which type stdio needs".to_owned()),
        (Some("http" | "streamable-http" | "streamableHttp"), ..) => {
            return Err("expected `url`, which type http needs".to_owned());
        }
        (Some(other), ..) => {
            return Err(format!("`type` is {other:?}; expected stdio, http or streamable-http"));
        }
    };
    let mut server = McpServerConfig::new(reach);
    server.disabled = matches!(entry.get("disabled"), Some(Value::Bool(true)))
        || matches!(entry.get("enabled"), Some(Value::Bool(false)));
    for key in entry.keys().filter(|key| !KNOWN.contains(&key.as_str())) {
        note(format!("`{key}` is unknown and was ignored"));
    }
    Ok(server)
}

/// One entry, whose texts are expanded as they are read.
struct ImportedEntry<'a> {
    entry: &'a Map<String, Value>,
    lookup: VariableLookup<'a>,
}

impl ImportedEntry<'_> {
    fn text(&self, key: &str) -> Result<Option<String>, String> {
        match self.entry.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => self.expand(key, text).map(Some),
            Some(_) => Err(format!("`{key}` must be a text")),
        }
    }

    fn list(&self, key: &str) -> Result<Vec<String>, String> {
        let items = match self.entry.get(key) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return Err(format!("`{key}` must be a list of texts")),
        };
        let text = |item: &Value| item.as_str().map(|text| self.expand(key, text));
        items.iter().map(|item| text(item).unwrap_or_else(|| Err(format!("`{key}` must be a list of texts")))).collect()
    }

    fn table(&self, key: &str) -> Result<BTreeMap<String, String>, String> {
        let table = match self.entry.get(key) {
            None | Some(Value::Null) => return Ok(BTreeMap::new()),
            Some(Value::Object(table)) => table,
            Some(_) => return Err(format!("`{key}` must be an object of texts")),
        };
        let mut texts = BTreeMap::new();
        for (name, value) in table {
            let text = match value {
                Value::String(text) => self.expand(name, text)?,
                // Often written without quotes, but meant as text.
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => return Err(format!("`{name}` in `{key}` must be a text")),
            };
            texts.insert(name.clone(), text);
        }
        Ok(texts)
    }

    /// Fills in `${VAR}`, `${env:VAR}` and `${VAR:-default}`. The value of a variable is not expanded again.
    fn expand(&self, key: &str, text: &str) -> Result<String, String> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            expanded.push_str(&rest[..start]);
            let inner = &rest[start + 2..];
            let end = inner
                .find('}')
                .ok_or_else(|| format!("`{key}` has a `${{` without its `}}`; close it or write the text out"))?;
            expanded.push_str(&self.value(key, &inner[..end])?);
            rest = &inner[end + 1..];
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn value(&self, key: &str, inner: &str) -> Result<String, String> {
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        if name.contains(':') {
            return Err(format!(
                "`{key}` has `${{{inner}}}`, which only the program it was written for can fill in; write the value out"
            ));
        }
        (self.lookup)(name).or_else(|| default.map(str::to_owned)).ok_or_else(|| {
            format!(
                "`{key}` needs the variable `{name}`, which is not set; set it or write a default: `${{{name}:-…}}`"
            )
        })
    }
}
