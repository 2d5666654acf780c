//! Finds the value of one parameter: the idempotency key, the context, an earlier result, or the schema itself.

use rutter_core::plan::schema::{CompiledSchema, JsonTypeSet, SchemaLookup, schema_at, types};
use rutter_core::text::{cut, one_line};
use rutter_core::tool::Tool;
use rutter_core::wording::spelled_plainly;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How deep references and `allOf` of a schema are followed for its properties.
const DEPTH_MAX: usize = 8;
/// Descriptions of tools are cut to this length.
const DESCRIPTION_CHARS_MAX: usize = 160;

/// A parameter of a tool, as its input schema declares it.
pub struct ToolParameter {
    pub name: String,
    /// Self-contained.
    pub schema: Value,
    pub required: bool,
}

impl ToolParameter {
    pub fn kind(&self) -> String {
        types(&self.schema).to_string()
    }

    /// The tool's own description, on one line and cut.
    pub fn description(&self) -> String {
        let text = self.schema.get("description").and_then(Value::as_str).unwrap_or_default();
        cut(&one_line(text), DESCRIPTION_CHARS_MAX)
    }

    fn takes(&self, value: &Value) -> bool {
        match CompiledSchema::compile(&self.schema) {
            Ok(schema) => schema.validate(value).is_empty(),
            Err(_) => types(&self.schema).contains(JsonTypeSet::of(value)),
        }
    }
}

/// The properties of an object schema, in its order.
pub fn properties(schema: &Value) -> Vec<ToolParameter> {
    let (mut names, mut required) = (Vec::new(), BTreeSet::new());
    collect(schema, schema, 0, &mut names, &mut required);
    // Some properties are required without being declared.
    names.extend(required.iter().filter(|name| !names.contains(name)).cloned().collect::<Vec<_>>());
    let property = |name: String| {
        let schema = match schema_at(schema, std::slice::from_ref(&name)) {
            SchemaLookup::Known(schema) => schema,
            _ => json!({}),
        };
        ToolParameter { required: required.contains(&name), schema, name }
    };
    names.into_iter().map(property).collect()
}

fn collect(root: &Value, schema: &Value, depth: usize, names: &mut Vec<String>, required: &mut BTreeSet<String>) {
    if depth > DEPTH_MAX {
        return;
    }
    let declared = schema.get("properties").and_then(Value::as_object);
    for name in declared.into_iter().flat_map(Map::keys) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let listed = schema.get("required").and_then(Value::as_array);
    required.extend(listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned));
    let reference = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
    let referred = reference.and_then(|path| root.pointer(path));
    let parts = schema.get("allOf").and_then(Value::as_array);
    for part in referred.into_iter().chain(parts.into_iter().flatten()) {
        collect(root, part, depth + 1, names, required);
    }
}

pub struct DraftContext<'a>(pub &'a Map<String, Value>);

pub struct ParameterFiller<'a> {
    pub id: &'a str,
    pub tool: &'a Tool,
    pub context: &'a DraftContext<'a>,
    /// The earlier steps, and the tools they call.
    pub before: &'a [(String, Arc<Tool>)],
}

pub enum ParameterSource {
    /// Optional, and without a value.
    Left,
    Value {
        value: Value,
        from: String,
    },
    /// Required, and without a value or with one that a plan would read as an expression.
    Input {
        given: Option<Value>,
    },
}

impl ParameterFiller<'_> {
    pub fn source(&self, property: &ToolParameter) -> ParameterSource {
        let is_key = self.tool.key_parameter.as_deref() == Some(property.name.as_str());
        if is_key && types(&property.schema).contains(JsonTypeSet::STRING) {
            return ParameterSource::Value { value: json!("{{ key }}"), from: "key".to_owned() };
        }
        if let Some((value, from)) = self.context.find(self, property) {
            return match is_plain(value) {
                true => ParameterSource::Value { value: value.clone(), from },
                false => ParameterSource::Input { given: Some(value.clone()) },
            };
        }
        if !property.required {
            return ParameterSource::Left;
        }
        let itself = own_value(&property.schema);
        if let Some(value) = itself.filter(|value| property.takes(value) && is_plain(value)) {
            return ParameterSource::Value { value, from: "schema".to_owned() };
        }
        match self.earlier(property) {
            Some(path) => ParameterSource::Value { value: json!(format!("{{{{ {path} }}}}")), from: path },
            None => ParameterSource::Input { given: None },
        }
    }

    /// The path to a result of the same name and a type that always fits; the nearest step wins.
    fn earlier(&self, property: &ToolParameter) -> Option<String> {
        let expected = types(&property.schema);
        let is_choice = ["enum", "const"].iter().any(|word| property.schema.get(word).is_some());
        if is_choice {
            return None;
        }
        let plain = spelled_plainly(&property.name);
        self.before.iter().rev().find_map(|(id, tool)| {
            let output = tool.output.as_deref()?;
            let result = properties(output).into_iter().find(|result| spelled_plainly(&result.name) == plain)?;
            let given = types(&result.schema);
            let fits = given != JsonTypeSet::ALL && !given.is_empty() && expected.contains(given);
            (fits && is_name(&result.name)).then(|| format!("steps.{id}.result.{}", result.name))
        })
    }
}

impl<'a> DraftContext<'a> {
    /// A value of this name that fits, and its path. A key that names the step, the tool or the server wins.
    fn find(&self, filling: &ParameterFiller<'_>, property: &ToolParameter) -> Option<(&'a Value, String)> {
        let fields = self.0;
        let plain = spelled_plainly(&property.name);
        let whole = filling.tool.name.as_str();
        let (server, tool) = whole.split_once('.').unwrap_or(("", whole));
        let owners = [filling.id, whole, tool, server].map(spelled_plainly);
        for owner in owners.iter().filter(|owner| !owner.is_empty()) {
            let dotted = fields.iter().filter_map(|(key, value)| {
                let (of, name) = key.rsplit_once('.')?;
                let is_it = spelled_plainly(of) == *owner && spelled_plainly(name) == plain;
                is_it.then(|| (value, key.clone()))
            });
            let inside = nested(fields, &plain).filter(|(of, ..)| spelled_plainly(of) == *owner);
            let inside = inside.map(|(of, name, value)| (value, format!("{of}.{name}")));
            if let Some((value, key)) = dotted.chain(inside).find(|(value, _)| property.takes(value)) {
                return Some((value, format!("context.{key}")));
            }
        }
        let same = fields.iter().filter(|(key, _)| spelled_plainly(key) == plain);
        if let Some((key, value)) = same.clone().find(|(_, value)| property.takes(value)) {
            return Some((value, format!("context.{key}")));
        }
        let mut inside = nested(fields, &plain).filter(|(_, _, value)| property.takes(value));
        let (of, name, value) = inside.next()?;
        // Two different values are ambiguous.
        let is_clear = inside.all(|(_, _, other)| other == value);
        is_clear.then(|| (value, format!("context.{of}.{name}")))
    }
}

/// Values of this name one level down: in which object, under which key.
fn nested<'a>(
    fields: &'a Map<String, Value>,
    plain: &str,
) -> impl Iterator<Item = (&'a String, &'a String, &'a Value)> {
    let objects = fields.iter().filter_map(|(of, value)| Some((of, value.as_object()?)));
    let all = objects.flat_map(|(of, inner)| inner.iter().map(move |(name, value)| (of, name, value)));
    all.filter(move |(_, name, _)| spelled_plainly(name) == plain)
}

/// The only possible value, or the tool's default.
fn own_value(schema: &Value) -> Option<Value> {
    let only = schema.get("enum").and_then(Value::as_array).filter(|choices| choices.len() == 1);
    let only = only.and_then(|choices| choices.first());
    schema.get("const").or(only).or_else(|| schema.get("default")).cloned()
}

/// Whether a plan reads the value literally: no expression in a text, no reference to a secret.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::String(text) => !["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(fields) => !fields.contains_key("secret") && fields.values().all(is_plain),
        _ => true,
    }
}

/// Whether an expression can read it after a dot.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
