//! Turns the definitions of a server into offered tools: checked, cut and hashed, each tool by itself.

use super::text::{has_hidden, visible};
use crate::config::ServerSettings;
use crate::connector::ServedTool;
use rutter_core::hash::Hash;
use rutter_core::id::ToolName;
use rutter_core::limits;
use rutter_core::plan::schema::CompiledSchema;
use rutter_core::tool::report::ExcludedTool;
use rutter_core::tool::{Safety, Tool, ToolCatalog};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longer descriptions are cut: they go into prompts.
const DESCRIPTION_BYTES_MAX: usize = 4 << 10;
const DEFINITION_BYTES_MAX: usize = 1 << 20;
/// The most tools that are recorded as left out.
const LEFT_OUT_MAX: usize = 1_000;

const FIELDS: [&str; 4] = ["description", "inputSchema", "outputSchema", "annotations"];
const HINTS: [&str; 5] = ["readOnlyHint", "idempotentHint", "destructiveHint", "openWorldHint", "title"];

/// A tool that can be called.
#[derive(Debug)]
pub(crate) struct OfferedTool {
    pub(crate) tool: Arc<Tool>,
    pub(crate) title: String,
    pub(crate) input: CompiledSchema,
    /// Of the declared schema; there is none for what only the kind of server says.
    pub(crate) output: Option<CompiledSchema>,
    /// It contains invisible characters.
    pub(crate) is_suspicious: bool,
    /// The hash of the whole definition, to recognize an unchanged one.
    print: Hash,
}

/// The tools of one server.
#[derive(Debug, Default)]
pub(crate) struct OfferedTools {
    pub(crate) by_name: BTreeMap<ToolName, Arc<OfferedTool>>,
    pub(crate) hidden: usize,
    pub(crate) left_out: Vec<ExcludedTool>,
}

impl OfferedTools {
    /// Reads the definitions of a server. An invalid tool affects only itself; an unchanged one is reused.
    pub(crate) fn read(
        server: &str,
        common: &ServerSettings,
        served: &[ServedTool],
        before: &OfferedTools,
    ) -> OfferedTools {
        let mut offers = OfferedTools::default();
        for one in served {
            let settings = common.tools.get(&one.name);
            if settings.is_some_and(|settings| settings.hidden) {
                offers.hidden += 1;
                continue;
            }
            if offers.by_name.len() >= limits::CATALOG_TOOLS_MAX {
                offers.leave_out(&one.name, &format!("a server may have {} tools", limits::CATALOG_TOOLS_MAX));
                break;
            }
            match read_one(server, common, one, before) {
                Ok(offer) if offers.by_name.contains_key(&offer.tool.name) => {
                    offers.leave_out(&one.name, "the server lists two tools of this name; the first one counts");
                }
                Ok(offer) => {
                    offers.by_name.insert(offer.tool.name.clone(), offer);
                }
                Err(reason) => offers.leave_out(&one.name, &reason),
            }
        }
        offers
    }

    fn leave_out(&mut self, name: &str, reason: &str) {
        if self.left_out.len() < LEFT_OUT_MAX {
            let name = name.escape_debug().to_string();
            let name = visible(&name, limits::NAME_CHARS_MAX).into_owned();
            let reason = visible(reason, limits::REASON_BYTES_MAX).into_owned();
            self.left_out.push(ExcludedTool { name, reason });
        }
    }
}

fn read_one(
    server: &str,
    common: &ServerSettings,
    served: &ServedTool,
    before: &OfferedTools,
) -> Result<Arc<OfferedTool>, String> {
    let text = serde_json::to_string(&served.definition).map_err(|error| error.to_string())?;
    if text.len() > DEFINITION_BYTES_MAX {
        return Err(format!("a definition may have {DEFINITION_BYTES_MAX} bytes, this one has {}", text.len()));
    }
    let print = Hash::of(&[text.as_bytes()]);
    let name = ToolName::new(&format!("{server}.{}", served.name));
    if let Some(known) = before.by_name.get(&name).filter(|known| known.print == print) {
        return Ok(Arc::clone(known));
    }
    let (definition, ignored) = known_fields(served, common);
    let trusted = if common.trust { vec![server] } else { vec![] };
    let catalog = json!({"server": server, "tools": [definition], "trusted_servers": trusted});
    let catalog = ToolCatalog::from_json(&catalog).map_err(|found| {
        let messages: Vec<String> = found.into_iter().take(3).map(|found| found.message).collect();
        messages.join("; ")
    })?;
    let tool = catalog.tools.into_values().next().ok_or("the catalogue has no such tool")?;
    let mut tool = Arc::unwrap_or_clone(tool);
    tool.description = visible(&tool.description, DESCRIPTION_BYTES_MAX).into_owned();
    if !ignored.is_empty() {
        // Annotations unknown here may matter to the server: a change of them is a change.
        let mut ignored = Value::Object(ignored);
        ignored.sort_all_objects();
        let ignored = ignored.to_string();
        let fields: [&[u8]; 2] = [&tool.definition.0, ignored.as_bytes()];
        tool.definition = Hash::of_fields("definition with more annotations", &fields);
    }
    let compile = |schema: &Value, which: &str| {
        CompiledSchema::compile(schema).map_err(|error| format!("{which} at {:?}: {error}", error.pointer))
    };
    let output = tool.output.as_deref().map(|schema| compile(schema, "outputSchema")).transpose()?;
    if output.is_none() {
        tool.output = served.result.clone().map(Arc::new);
    }
    Ok(Arc::new(OfferedTool {
        input: compile(&tool.input, "inputSchema")?,
        output,
        title: visible(title(served), limits::NAME_CHARS_MAX).into_owned(),
        is_suspicious: names_hidden(&served.definition),
        tool: Arc::new(tool),
        print,
    }))
}

/// The definition with the known fields and the operator's settings, and the annotations left out of it.
fn known_fields(served: &ServedTool, common: &ServerSettings) -> (Value, Map<String, Value>) {
    let mut fields = Map::from_iter([("name".to_owned(), Value::from(served.name.as_str()))]);
    let mut ignored = Map::new();
    for key in FIELDS {
        let Some(value) = served.definition.get(key).filter(|value| !value.is_null()) else { continue };
        let mut value = value.clone();
        if let (Value::Object(hints), "annotations") = (&mut value, key) {
            let known;
            (known, ignored) = std::mem::take(hints).into_iter().partition(|(key, _)| HINTS.contains(&key.as_str()));
            *hints = known;
        }
        fields.insert(key.to_owned(), value);
    }
    let settings = common.tools.get(&served.name);
    // Repeats are dropped by their key, so for no longer than the key is remembered.
    let by_key = settings.filter(|settings| settings.sends_key).map(|_| Safety::Once);
    if let Some(safety) = settings.and_then(|settings| settings.safety).or(common.safety).or(by_key) {
        fields.insert("safety".to_owned(), safety.as_str().into());
    }
    if let Some(key) = settings.and_then(|settings| settings.key_parameter.as_deref()) {
        fields.insert("key_parameter".to_owned(), key.into());
    }
    if let Some(grace) = settings.and_then(|settings| settings.grace) {
        fields.insert("grace".to_owned(), grace.to_string().into());
    }
    if settings.is_some_and(|settings| settings.sends_key) {
        fields.insert("sends_key".to_owned(), true.into());
    }
    if let Some(window) = settings.and_then(|settings| settings.key_window).or(common.key_window) {
        fields.insert("key_window".to_owned(), window.to_string().into());
    }
    let attempts = common.attempts_of(&served.name);
    if !attempts.is_empty() {
        fields.insert("attempts".to_owned(), json!(attempts));
    }
    (Value::Object(fields), ignored)
}

fn title(served: &ServedTool) -> &str {
    let hint = || served.definition.get("annotations")?.get("title");
    served.definition.get("title").or_else(hint).and_then(Value::as_str).unwrap_or_default()
}

/// Whether any text in the definition, keys included, has invisible characters.
fn names_hidden(definition: &Map<String, Value>) -> bool {
    let mut open: Vec<&Value> = Vec::new();
    let mut fields = vec![definition];
    loop {
        if let Some(map) = fields.pop() {
            if map.keys().any(|key| has_hidden(key)) {
                return true;
            }
            open.extend(map.values());
        }
        match open.pop() {
            Some(Value::String(text)) if has_hidden(text) => return true,
            Some(Value::Array(items)) => open.extend(items),
            Some(Value::Object(map)) => fields.push(map),
            Some(_) => {}
            None if fields.is_empty() => return false,
            None => {}
        }
    }
}
