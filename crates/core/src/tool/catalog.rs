//! Reads a catalogue file: the tools, their input and output schemas, and how safe each is to repeat.
//!
//! Fields of MCP are spelled as in MCP, so that a `tools/list` result with a `server` field added is a
//! catalogue already. As for a plan, all mistakes are reported at once.

mod write;

use super::attempts::AttemptSettings;
use super::{Safety, SafetySource, Tool, ToolCatalog};
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::hash::Hash;
use crate::id::ToolName;
use crate::limits;
use crate::pointer::{field, item};
use crate::time::Millis;
use crate::wording::{SpellingGuess, choices, guess, named, quoted};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Every code this reader reports; each has its paragraph in docs/errors.md.
pub const CODES: &[&str] = &[
    "catalog.duplicate_tool",
    "catalog.incomplete",
    "catalog.key_parameter",
    "catalog.limit",
    "catalog.missing_field",
    "catalog.tool_name",
    "catalog.unknown_field",
    "catalog.unknown_server",
    "catalog.unknown_value",
    "catalog.wrong_type",
];

impl ToolCatalog {
    /// Reads `{"tools": […], "trusted_servers": […]}`, or a `tools/list` result with a `server` field.
    pub fn from_json(value: &Value) -> Result<ToolCatalog, Vec<Diagnostic>> {
        let mut reading = CatalogReader::default();
        let catalog = reading.catalog(value);
        if reading.diagnostics.is_empty() { Ok(catalog) } else { Err(reading.diagnostics) }
    }
}

/// Fields of the file itself. `unreachable` comes with a catalogue written by [`mod@write`], the last four with a
/// `tools/list` result.
const CATALOG_FIELDS: &[&str] =
    &["tools", "trusted_servers", "server", "$schema", "unreachable", "nextCursor", "ttlMs", "cacheScope", "_meta"];

/// Fields of a tool. `safety_source` and `definition` come with a catalogue written by [`mod@write`]. `title`, `icons`,
/// `execution` and `_meta` are MCP's and are ignored here.
const TOOL_FIELDS: &[&str] = &[
    "name",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "safety",
    "key_parameter",
    "sends_key",
    "grace",
    "key_window",
    "attempts",
    "safety_source",
    "definition",
    "title",
    "icons",
    "execution",
    "_meta",
];

const HINT_FIELDS: &[&str] = &["readOnlyHint", "idempotentHint", "destructiveHint", "openWorldHint", "title"];

/// The fields that make up a definition. A change of any other field is not a change of the tool.
const DEFINITION_FIELDS: &[&str] = &["description", "inputSchema", "outputSchema", "annotations"];

/// Other names people use for a field.
const ALIASES: &[(&str, &str)] = &[
    ("input_schema", "inputSchema"),
    ("input", "inputSchema"),
    ("parameters", "inputSchema"),
    ("schema", "inputSchema"),
    ("output_schema", "outputSchema"),
    ("output", "outputSchema"),
    ("hints", "annotations"),
    ("idempotency_key", "key_parameter"),
    ("keyParameter", "key_parameter"),
    ("sendsKey", "sends_key"),
    ("keyWindow", "key_window"),
    ("trustedServers", "trusted_servers"),
    ("trusted", "trusted_servers"),
];

#[derive(Default)]
struct CatalogReader {
    diagnostics: Vec<Diagnostic>,
}

impl CatalogReader {
    fn catalog(&mut self, value: &Value) -> ToolCatalog {
        let mut catalog = ToolCatalog::default();
        if is_deeper_than(value, limits::DEPTH_MAX) {
            let message = format!("a catalogue may be nested {} levels deep, this one is deeper", limits::DEPTH_MAX);
            self.error("catalog.limit", "", message);
            return catalog;
        }
        let Some(fields) = self.object(value, "") else { return catalog };
        self.refuse_unknown(fields, "", CATALOG_FIELDS);
        let server = self.server(fields);
        if fields.get("nextCursor").is_some_and(|cursor| !cursor.is_null()) {
            let message = "this is one page of a longer list of tools";
            let hint = "ask the server for the remaining pages and put all tools into one list";
            self.diagnostics.push(Diagnostic::error("catalog.incomplete", "/nextCursor", message).hint(hint));
        }
        let Some(tools) = fields.get("tools") else {
            self.error("catalog.missing_field", "", "a catalogue needs `tools`, a list".to_owned());
            return catalog;
        };
        let Some(tools) = self.array(tools, "/tools") else { return catalog };
        if tools.len() > limits::CATALOG_TOOLS_MAX {
            let message =
                format!("a catalogue may hold {} tools, this one has {}", limits::CATALOG_TOOLS_MAX, tools.len());
            self.error("catalog.limit", "/tools", message);
            return catalog;
        }

        let names: Vec<_> = tools
            .iter()
            .enumerate()
            .map(|(at, tool)| self.name(tool, &item("/tools", at), server.as_deref()))
            .collect();
        let trusted = self.trusted_servers(fields, &names);
        let mut first_seen = BTreeMap::new();
        for (at, (value, name)) in tools.iter().zip(names).enumerate() {
            let pointer = item("/tools", at);
            let Some(name) = name else { continue };
            if let Some(first) = first_seen.insert(name.clone(), at) {
                let message = format!("tool \"{name}\" is listed twice, first as /tools/{first}");
                self.error("catalog.duplicate_tool", format!("{pointer}/name"), message);
            }
            let is_trusted = trusted.contains(server_of(&name));
            if let Some(tool) = self.tool(value, &pointer, name, is_trusted) {
                catalog.tools.insert(tool.name.clone(), Arc::new(tool));
            }
        }
        catalog.unreachable = self.unreachable(fields);
        catalog
    }

    /// Servers that did not list their tools, and why.
    fn unreachable(&mut self, fields: &Map<String, Value>) -> BTreeMap<String, String> {
        let Some(servers) = fields.get("unreachable").and_then(|servers| self.object(servers, "/unreachable")) else {
            return BTreeMap::new();
        };
        let why = |(server, why): (&String, &Value)| Some((server.clone(), why.as_str()?.to_owned()));
        servers.iter().filter_map(why).collect()
    }

    fn server(&mut self, fields: &Map<String, Value>) -> Option<String> {
        let server = self.text(fields, "server", "")?;
        if server.is_empty() || !server.chars().all(is_name_char) || server.contains('.') {
            let message = format!("server {} must be made of letters, digits, `_`, `-` and `/`", quoted(server));
            self.error("catalog.tool_name", "/server", message);
            return None;
        }
        Some(server.to_owned())
    }

    fn trusted_servers(&mut self, fields: &Map<String, Value>, names: &[Option<ToolName>]) -> BTreeSet<String> {
        let known: BTreeSet<&str> = names.iter().flatten().map(server_of).collect();
        let mut trusted = BTreeSet::new();
        let Some(list) = fields.get("trusted_servers") else { return trusted };
        for (at, name) in self.array(list, "/trusted_servers").unwrap_or_default().iter().enumerate() {
            let pointer = item("/trusted_servers", at);
            let Some(server) = name.as_str() else {
                self.wrong_type(&pointer, "a text", name);
                continue;
            };
            if !known.contains(server) {
                let message = format!("trusted server {} has no tool in this catalogue", quoted(server));
                self.suggest("catalog.unknown_server", pointer, message, server, known.iter().copied());
            }
            trusted.insert(server.to_owned());
        }
        trusted
    }

    /// The full name of a tool: `server.tool`.
    fn name(&mut self, tool: &Value, pointer: &str, server: Option<&str>) -> Option<ToolName> {
        let fields = self.object(tool, pointer)?;
        if !fields.contains_key("name") {
            self.error("catalog.missing_field", pointer, "a tool needs `name`".to_owned());
            return None;
        }
        let name = self.text(fields, "name", pointer)?;
        let full = server.map_or_else(|| name.to_owned(), |server| format!("{server}.{name}"));
        let pointer = format!("{pointer}/name");
        if let Some(bad) = full.chars().find(|&c| !is_name_char(c)) {
            let message =
                format!("tool {} contains {bad:?}; a name is letters, digits, `_`, `-`, `/` and `.`", quoted(&full));
            let hint = "rename the tool on its server, or give it an alias there: plans could not name it";
            self.diagnostics.push(Diagnostic::error("catalog.tool_name", pointer, message).hint(hint));
            return None;
        }
        if full.len() > limits::NAME_CHARS_MAX {
            let message = format!(
                "the name of a tool may have {} characters, {} has {}",
                limits::NAME_CHARS_MAX,
                quoted(&full),
                full.len()
            );
            self.error("catalog.limit", pointer, message);
            return None;
        }
        let halves = full.split_once('.').filter(|(server, tool)| !server.is_empty() && !tool.is_empty());
        if halves.is_none() || full.ends_with('.') {
            let message = format!("tool {} must be named `server.tool`", quoted(&full));
            let hint = "write the server before the dot, or name it once for all tools with `server`";
            self.diagnostics.push(Diagnostic::error("catalog.tool_name", pointer, message).hint(hint));
            return None;
        }
        Some(ToolName::new(&full))
    }

    fn tool(&mut self, value: &Value, pointer: &str, name: ToolName, is_trusted: bool) -> Option<Tool> {
        let fields = self.object(value, pointer)?;
        self.refuse_unknown(fields, pointer, TOOL_FIELDS);
        let description = self.text(fields, "description", pointer).unwrap_or_default().to_owned();
        let input = self.schema(fields, "inputSchema", pointer);
        let output = self.schema(fields, "outputSchema", pointer);
        let hints = self.hints(fields, pointer);
        let (safety, safety_source) = match self.safety(fields, pointer) {
            Some(safety) => (safety, SafetySource::Configured),
            // Hints of an untrusted server are ignored: `once` is the strictest safety already.
            None if is_trusted => match hints.safety() {
                Some(safety) => (safety, SafetySource::TrustedHint),
                None => (Safety::Once, SafetySource::Unknown),
            },
            None => (Safety::Once, SafetySource::Unknown),
        };
        let safety_source = self.read(fields, "safety_source", pointer).unwrap_or(safety_source);
        let attempts: AttemptSettings = self.read(fields, "attempts", pointer).unwrap_or_default();
        if let Some(problem) = attempts.problem() {
            self.error("catalog.limit", format!("{pointer}/attempts"), problem);
        }
        let key_parameter = self.key_parameter(fields, pointer, input.as_ref());
        Some(Tool {
            definition: self.read(fields, "definition", pointer).unwrap_or_else(|| definition(&name, fields)),
            name,
            description,
            input: Arc::new(input.unwrap_or(Value::Bool(true))),
            output: output.map(Arc::new),
            safety,
            safety_source,
            key_parameter,
            sends_key: self.read(fields, "sends_key", pointer).unwrap_or(false),
            grace: self.span(fields, "grace", pointer),
            key_window: self.key_window(fields, pointer),
            attempts,
        })
    }

    /// A field that has its own type.
    fn read<T: DeserializeOwned>(&mut self, fields: &Map<String, Value>, key: &str, pointer: &str) -> Option<T> {
        let value = fields.get(key).filter(|value| !value.is_null())?;
        match T::deserialize(value) {
            Ok(read) => Some(read),
            Err(error) => {
                self.error("catalog.wrong_type", field(pointer, key), error.to_string());
                None
            }
        }
    }

    fn schema(&mut self, fields: &Map<String, Value>, key: &str, pointer: &str) -> Option<Value> {
        match fields.get(key)? {
            Value::Null => None,
            schema @ Value::Object(_) => Some(schema.clone()),
            other => {
                self.wrong_type(&field(pointer, key), "a JSON Schema object", other);
                None
            }
        }
    }

    fn safety(&mut self, fields: &Map<String, Value>, pointer: &str) -> Option<Safety> {
        let text = self.text(fields, "safety", pointer)?;
        let known = [Safety::ReadOnly, Safety::Idempotent, Safety::Once];
        let found = known.into_iter().find(|safety| safety.as_str() == text);
        if found.is_none() {
            let names = known.map(Safety::as_str);
            let message = format!("expected {}, got {}", choices(&names), quoted(text));
            self.suggest("catalog.unknown_value", format!("{pointer}/safety"), message, text, names.into_iter());
        }
        found
    }

    fn hints(&mut self, fields: &Map<String, Value>, pointer: &str) -> ToolHints {
        let pointer = format!("{pointer}/annotations");
        let annotations = match fields.get("annotations") {
            None | Some(Value::Null) => return ToolHints::default(),
            Some(value) => self.object(value, &pointer),
        };
        let Some(annotations) = annotations else { return ToolHints::default() };
        self.refuse_unknown(annotations, &pointer, HINT_FIELDS);
        let mut hint = |key: &str| match annotations.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(hint)) => Some(*hint),
            Some(other) => {
                self.wrong_type(&field(&pointer, key), "true or false", other);
                None
            }
        };
        hint("openWorldHint");
        ToolHints {
            read_only: hint("readOnlyHint"),
            idempotent: hint("idempotentHint"),
            destructive: hint("destructiveHint"),
        }
    }

    fn key_parameter(&mut self, fields: &Map<String, Value>, pointer: &str, input: Option<&Value>) -> Option<String> {
        let key = self.text(fields, "key_parameter", pointer)?;
        let properties = input.and_then(|input| input.get("properties")).and_then(Value::as_object);
        if let Some(properties) = properties.filter(|properties| !properties.contains_key(key)) {
            let message = format!("key_parameter {} is not among the properties of inputSchema", quoted(key));
            let names = properties.keys().map(String::as_str);
            self.suggest("catalog.key_parameter", format!("{pointer}/key_parameter"), message, key, names);
            return None;
        }
        Some(key.to_owned())
    }

    fn key_window(&mut self, fields: &Map<String, Value>, pointer: &str) -> Option<Millis> {
        let window = self.span(fields, "key_window", pointer)?;
        if window > limits::KEY_WINDOW_MAX {
            let message = format!("a key window may be {}, this one is {window}", limits::KEY_WINDOW_MAX);
            self.error("catalog.limit", format!("{pointer}/key_window"), message);
            return None;
        }
        Some(window)
    }

    /// A span of more than nothing.
    fn span(&mut self, fields: &Map<String, Value>, key: &str, pointer: &str) -> Option<Millis> {
        let text = self.text(fields, key, pointer)?;
        let span = Millis::parse(text).filter(|span| *span > Millis(0));
        if span.is_none() {
            let message = format!("expected a span such as `24h`, got {}", quoted(text));
            self.error("catalog.unknown_value", field(pointer, key), message);
        }
        span
    }

    fn refuse_unknown(&mut self, fields: &Map<String, Value>, pointer: &str, known: &[&'static str]) {
        for (key, value) in fields {
            if known.contains(&key.as_str()) {
                continue;
            }
            let alias = ALIASES.iter().find(|(alias, name)| alias == key && known.contains(name));
            let guessed = match alias {
                Some((_, name)) => Some(SpellingGuess::Clear(name)),
                None => guess(key, known.iter().copied()),
            };
            let here = field(pointer, key);
            let found = Diagnostic::error("catalog.unknown_field", &here, format!("unknown field {}", quoted(key)));
            self.diagnostics.push(match guessed {
                Some(SpellingGuess::Clear(name)) if !fields.contains_key(name) => {
                    let path = field(pointer, name);
                    found.hint(format!("did you mean {}?", quoted(name))).fix(vec![
                        PatchOperation::Remove { path: here },
                        PatchOperation::Add { path, value: value.clone() },
                    ])
                }
                Some(SpellingGuess::Clear(name) | SpellingGuess::Vague(name)) => {
                    found.hint(format!("did you mean {}?", quoted(name)))
                }
                None => found.hint(format!("known fields: {}", known.join(", "))),
            });
        }
    }

    fn text<'a>(&mut self, fields: &'a Map<String, Value>, key: &str, pointer: &str) -> Option<&'a str> {
        match fields.get(key)? {
            Value::String(text) => Some(text),
            other => {
                self.wrong_type(&field(pointer, key), "a text", other);
                None
            }
        }
    }

    fn object<'a>(&mut self, value: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.wrong_type(pointer, "an object", value);
        }
        object
    }

    fn array<'a>(&mut self, value: &'a Value, pointer: &str) -> Option<&'a [Value]> {
        let array = value.as_array().map(Vec::as_slice);
        if array.is_none() {
            self.wrong_type(pointer, "a list", value);
        }
        array
    }

    fn wrong_type(&mut self, pointer: &str, expected: &str, got: &Value) {
        self.error("catalog.wrong_type", pointer, format!("expected {expected}, got {}", named(got)));
    }

    /// Reports an unknown value and suggests the one that was probably meant.
    fn suggest<'a>(
        &mut self,
        code: &'static str,
        pointer: String,
        message: String,
        typed: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) {
        let found = Diagnostic::error(code, &pointer, message);
        self.diagnostics.push(match guess(typed, known) {
            Some(SpellingGuess::Clear(name)) => found
                .hint(format!("did you mean {}?", quoted(name)))
                .fix(vec![PatchOperation::Replace { path: pointer, value: name.into() }]),
            Some(SpellingGuess::Vague(name)) => found.hint(format!("did you mean {}?", quoted(name))),
            None => found,
        });
    }

    fn error(&mut self, code: &'static str, pointer: impl Into<String>, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, pointer, message));
    }
}

/// What a server declares about its own tool.
#[derive(Default)]
struct ToolHints {
    read_only: Option<bool>,
    idempotent: Option<bool>,
    destructive: Option<bool>,
}

impl ToolHints {
    fn safety(&self) -> Option<Safety> {
        match (self.read_only, self.idempotent, self.destructive) {
            // A tool that claims to be read-only and destructive contradicts itself.
            (Some(true), _, Some(true)) => None,
            (Some(true), _, _) => Some(Safety::ReadOnly),
            (_, Some(true), _) => Some(Safety::Idempotent),
            _ => None,
        }
    }
}

/// The part of a tool's name before the first dot.
fn server_of(name: &ToolName) -> &str {
    name.as_str().split('.').next().unwrap_or_default()
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/' | '.')
}

/// Hash of the definition with its keys sorted, so that formatting does not change it.
fn definition(name: &ToolName, fields: &Map<String, Value>) -> Hash {
    let mut definition = Map::from_iter([("name".to_owned(), Value::from(name.as_str()))]);
    for &key in DEFINITION_FIELDS {
        if let Some(value) = fields.get(key).filter(|value| !value.is_null()) {
            definition.insert(key.to_owned(), value.clone());
        }
    }
    let mut definition = Value::Object(definition);
    definition.sort_all_objects();
    Hash::of(&[definition.to_string().as_bytes()])
}

/// Whether a value is nested more than `depth` levels deep. Uses a list instead of recursion.
fn is_deeper_than(value: &Value, depth: usize) -> bool {
    let mut open = vec![(value, 0)];
    while let Some((value, level)) = open.pop() {
        if level > depth {
            return true;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|field| (field, level + 1))),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> ToolCatalog {
        ToolCatalog::from_json(&value).unwrap()
    }

    fn mistakes(value: &Value) -> Vec<(&'static str, String)> {
        let diagnostics = ToolCatalog::from_json(value).unwrap_err();
        diagnostics.into_iter().map(|found| (found.code, found.pointer)).collect()
    }

    fn reserve() -> Value {
        json!({
            "name": "inventory.reserve",
            "description": "Reserves an article",
            "inputSchema": {"type": "object", "properties": {"sku": {"type": "string"}, "request_key": {"type": "string"}}},
            "outputSchema": {"type": "object"},
        })
    }

    #[test]
    fn what_was_written_is_read_as_the_same_tools() {
        let mut tool = with(with(reserve(), "safety", json!("idempotent")), "key_parameter", json!("request_key"));
        tool["key_window"] = json!("2h");
        tool["attempts"] = json!({"timeout": "10s", "timeout_max": "5m", "retry": {"max_attempts": 2}});
        let hinted = json!({"name": "b.look", "annotations": {"readOnlyHint": true}});
        let mut catalog = read(json!({"tools": [tool, hinted, {"name": "c.any"}], "trusted_servers": ["b"]}));
        assert_eq!(read(catalog.to_json()), catalog);
        catalog.unreachable.insert("d".to_owned(), "it has not listed its tools so far".to_owned());
        assert_eq!(read(catalog.to_json()), catalog);
    }

    #[test]
    fn settings_of_attempts_are_checked() {
        for (attempts, code) in [
            (json!({"timeout": "10m", "timeout_max": "5m"}), "catalog.limit"),
            (json!({"timeout": 5}), "catalog.wrong_type"),
            (json!({"retry": {"max_attempts": 0}}), "catalog.wrong_type"),
        ] {
            let file = json!({"tools": [with(reserve(), "attempts", attempts)]});
            assert_eq!(mistakes(&file), [(code, "/tools/0/attempts".to_owned())], "{file}");
        }
    }

    fn with(mut tool: Value, key: &str, value: Value) -> Value {
        tool[key] = value;
        tool
    }

    #[test]
    fn a_tool_is_read_with_all_it_declares() {
        let tool = with(with(reserve(), "safety", json!("once")), "key_parameter", json!("request_key"));
        let catalog = read(json!({"tools": [tool]}));
        let tool = &catalog.tools["inventory.reserve"];
        assert_eq!(tool.description, "Reserves an article");
        assert_eq!(tool.input["properties"]["sku"], json!({"type": "string"}));
        assert_eq!(tool.output.as_deref(), Some(&json!({"type": "object"})));
        assert_eq!((tool.safety, tool.safety_source), (Safety::Once, SafetySource::Configured));
        assert_eq!(tool.key_parameter.as_deref(), Some("request_key"));
    }

    #[test]
    fn a_key_window_is_a_span_within_its_limit() {
        let window = |text: &str| json!({"tools": [{"name": "a.b", "key_window": text}]});
        let read = |text: &str| read(window(text)).tools["a.b"].key_window;
        assert_eq!(read("1ms"), Some(Millis(1)));
        assert_eq!(read("12h"), Some(Millis::hours(12)));
        assert_eq!(read(&limits::KEY_WINDOW_MAX.to_string()), Some(limits::KEY_WINDOW_MAX));
        let pointer = || "/tools/0/key_window".to_owned();
        let above = Millis(limits::KEY_WINDOW_MAX.0 + 1).to_string();
        assert_eq!(mistakes(&window(&above)), [("catalog.limit", pointer())]);
        for wrong in ["0s", "soon", ""] {
            assert_eq!(mistakes(&window(wrong)), [("catalog.unknown_value", pointer())], "{wrong}");
        }
    }

    #[test]
    fn a_tool_that_declares_no_schema_takes_anything() {
        let catalog = read(json!({"tools": [{"name": "a.b"}]}));
        assert_eq!((catalog.tools["a.b"].input.as_ref(), &catalog.tools["a.b"].output), (&json!(true), &None));
    }

    #[test]
    fn configured_safety_beats_trusted_hints_and_untrusted_hints_count_for_nothing() {
        let read_only = json!({"readOnlyHint": true});
        let idempotent = json!({"readOnlyHint": false, "idempotentHint": true});
        let contradiction = json!({"readOnlyHint": true, "destructiveHint": true});
        let table = [
            (json!({}), None, true, Safety::Once, SafetySource::Unknown),
            (read_only.clone(), None, false, Safety::Once, SafetySource::Unknown),
            (idempotent.clone(), None, false, Safety::Once, SafetySource::Unknown),
            (read_only.clone(), None, true, Safety::ReadOnly, SafetySource::TrustedHint),
            (idempotent.clone(), None, true, Safety::Idempotent, SafetySource::TrustedHint),
            (contradiction, None, true, Safety::Once, SafetySource::Unknown),
            (read_only, Some("once"), true, Safety::Once, SafetySource::Configured),
            (idempotent, Some("read_only"), false, Safety::ReadOnly, SafetySource::Configured),
        ];
        for (hints, configured, is_trusted, safety, source) in table {
            let mut tool = with(reserve(), "annotations", hints);
            if let Some(configured) = configured {
                tool["safety"] = json!(configured);
            }
            let trusted = if is_trusted { json!(["inventory"]) } else { json!([]) };
            let file = json!({"tools": [tool], "trusted_servers": trusted});
            let catalog = read(file.clone());
            let tool = &catalog.tools["inventory.reserve"];
            assert_eq!((tool.safety, tool.safety_source), (safety, source), "{file}");
        }
    }

    #[test]
    fn a_tools_list_result_with_a_server_is_a_catalogue() {
        let catalog = read(json!({
            "server": "crm",
            "tools": [{"name": "update"}, {"name": "contact.find", "title": "Find", "annotations": {"openWorldHint": false}}],
            "nextCursor": null, "ttlMs": 300_000, "cacheScope": "private",
        }));
        let names: Vec<_> = catalog.tools.keys().map(ToolName::as_str).collect();
        assert_eq!(names, ["crm.contact.find", "crm.update"]);
    }

    #[test]
    fn the_definition_hash_sees_changes_and_not_formatting_or_configuration() {
        let hash = |tool: Value| read(json!({"tools": [tool]})).tools["inventory.reserve"].definition;
        let original = hash(reserve());
        let mut reordered = Map::new();
        for (key, value) in reserve().as_object().unwrap().iter().rev() {
            reordered.insert(key.clone(), value.clone());
        }
        assert_eq!(hash(Value::Object(reordered)), original);
        assert_eq!(hash(with(reserve(), "safety", json!("idempotent"))), original);
        assert_eq!(hash(with(reserve(), "title", json!("Reserve"))), original);
        assert_eq!(hash(with(reserve(), "annotations", Value::Null)), original);
        for (key, value) in [
            ("description", json!("Reserves two articles")),
            ("inputSchema", json!({"type": "object"})),
            ("outputSchema", json!({"type": "object", "required": ["id"]})),
            ("annotations", json!({"readOnlyHint": true})),
        ] {
            assert_ne!(hash(with(reserve(), key, value)), original, "{key}");
        }
    }

    #[test]
    fn every_mistake_is_reported_with_its_pointer() {
        let long = format!("a.{}", "b".repeat(127));
        let keyed = with(reserve(), "key_parameter", json!("requestkey"));
        let table = [
            (json!([]), "catalog.wrong_type", ""),
            (json!({}), "catalog.missing_field", ""),
            (json!({"tools": {}}), "catalog.wrong_type", "/tools"),
            (json!({"tools": [1]}), "catalog.wrong_type", "/tools/0"),
            (json!({"tools": [{}]}), "catalog.missing_field", "/tools/0"),
            (json!({"tools": [{"name": 1}]}), "catalog.wrong_type", "/tools/0/name"),
            (json!({"tools": [{"name": "reserve"}]}), "catalog.tool_name", "/tools/0/name"),
            (json!({"tools": [{"name": ".reserve"}]}), "catalog.tool_name", "/tools/0/name"),
            (json!({"tools": [{"name": "inventory."}]}), "catalog.tool_name", "/tools/0/name"),
            (json!({"tools": [{"name": "inventory.réserve"}]}), "catalog.tool_name", "/tools/0/name"),
            (json!({"tools": [{"name": "inventory.re serve"}]}), "catalog.tool_name", "/tools/0/name"),
            (json!({"tools": [{"name": long}]}), "catalog.limit", "/tools/0/name"),
            (json!({"server": "a.b", "tools": []}), "catalog.tool_name", "/server"),
            (json!({"tools": [{"name": "a.b"}, {"name": "a.b"}]}), "catalog.duplicate_tool", "/tools/1/name"),
            (json!({"tools": [{"name": "a.b", "inputSchema": true}]}), "catalog.wrong_type", "/tools/0/inputSchema"),
            (json!({"tools": [{"name": "a.b", "safety": "twice"}]}), "catalog.unknown_value", "/tools/0/safety"),
            (json!({"tools": [{"name": "a.b", "annotations": []}]}), "catalog.wrong_type", "/tools/0/annotations"),
            (
                json!({"tools": [{"name": "a.b", "annotations": {"readOnlyHint": "yes"}}]}),
                "catalog.wrong_type",
                "/tools/0/annotations/readOnlyHint",
            ),
            (json!({"tools": [keyed]}), "catalog.key_parameter", "/tools/0/key_parameter"),
            (json!({"tools": [], "trusted_servers": ["a"]}), "catalog.unknown_server", "/trusted_servers/0"),
            (json!({"tools": [], "trusted_servers": [1]}), "catalog.wrong_type", "/trusted_servers/0"),
            (json!({"tools": [], "trusted_servers": "a"}), "catalog.wrong_type", "/trusted_servers"),
            (json!({"tools": [], "nextCursor": "2"}), "catalog.incomplete", "/nextCursor"),
            (json!({"tools": [], "colour/of": 1}), "catalog.unknown_field", "/colour~1of"),
        ];
        for (file, code, pointer) in &table {
            assert_eq!(mistakes(file), [(*code, (*pointer).to_owned())], "{file}");
        }
        let given: BTreeSet<_> = table.iter().map(|(_, code, _)| *code).collect();
        assert_eq!(given.into_iter().collect::<Vec<_>>(), CODES, "every code has a case");
    }

    #[test]
    fn all_mistakes_are_reported_at_once_with_fixes() {
        let file = json!({"tools": [
            {"name": "a.b", "input_schema": {"type": "object"}, "safety": "idempotant"},
            {"name": "nodot"},
        ]});
        let found = ToolCatalog::from_json(&file).unwrap_err();
        let codes: Vec<_> = found.iter().map(|found| found.code).collect();
        assert_eq!(codes, ["catalog.tool_name", "catalog.unknown_field", "catalog.unknown_value"]);
        assert_eq!(found[1].hint.as_deref(), Some("did you mean \"inputSchema\"?"));
        assert_eq!(
            found[1].fix.as_deref(),
            Some(
                &[
                    PatchOperation::Remove { path: "/tools/0/input_schema".into() },
                    PatchOperation::Add { path: "/tools/0/inputSchema".into(), value: json!({"type": "object"}) },
                ][..]
            )
        );
        assert_eq!(
            found[2].fix.as_deref(),
            Some(&[PatchOperation::Replace { path: "/tools/0/safety".into(), value: json!("idempotent") }][..])
        );
    }

    #[test]
    fn a_catalogue_nested_too_deep_or_too_long_is_refused_by_name() {
        let mut deep = json!(1);
        for _ in 0..=limits::DEPTH_MAX {
            deep = json!([deep]);
        }
        assert_eq!(mistakes(&json!({"tools": deep})), [("catalog.limit", String::new())]);
        let many = vec![json!(1); limits::CATALOG_TOOLS_MAX + 1];
        assert_eq!(mistakes(&json!({"tools": many})), [("catalog.limit", "/tools".to_owned())]);
    }
}
