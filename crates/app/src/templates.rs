//! Templates: plans with parameters, among them the names of tools. An instance of one is an ordinary plan.
//!
//! A template is a document with a `description`, a JSON Schema of its `parameters`, and a `plan` in which `${name}`
//! stands for a parameter. A text that is nothing but `${name}` becomes the value with its type, and is left out where
//! the parameter was not given. `$${` stands for `${`. `{{ }}` stays: it is evaluated when the plan is executed.

use crate::error::AppError;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::schema::{CompiledSchema, SchemaViolation};
use rutter_core::wording::guess;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The templates that come with the program.
pub const SHIPPED: &[(&str, &str)] = &[
    ("deploy-with-rollback", include_str!("../templates/deploy-with-rollback.yaml")),
    ("file-change-with-backup", include_str!("../templates/file-change-with-backup.yaml")),
    ("guarded-change", include_str!("../templates/guarded-change.yaml")),
    ("order-saga", include_str!("../templates/order-saga.yaml")),
    ("remember", include_str!("../templates/remember.yaml")),
    ("update-each", include_str!("../templates/update-each.yaml")),
];

/// The files of own templates, by name. Only files of this directory: a name is never a path.
fn own_files(directory: Option<&Path>) -> BTreeMap<String, PathBuf> {
    let files = directory.and_then(|directory| std::fs::read_dir(directory).ok());
    let path = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.ok()?.path();
        let is_template = path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json");
        let name = path.file_stem()?.to_str()?.to_owned();
        is_template.then_some((name, path))
    };
    files.into_iter().flatten().take(OWN_MAX).filter_map(path).collect()
}

/// The most files looked at in the directory of own templates.
const OWN_MAX: usize = 1_000;

/// A template, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Template")]
pub struct PlanTemplate {
    pub name: String,
    pub description: String,
    /// JSON Schema of the parameters.
    pub parameters: Value,
    #[serde(skip)]
    plan: Value,
}

impl PlanTemplate {
    /// Every template, by name: those of the directory `own`, and those that come with the program. An own one that
    /// cannot be read is left out; [`PlanTemplate::find`] says why.
    pub fn all(own: Option<&Path>) -> Vec<PlanTemplate> {
        let names: BTreeSet<String> =
            own_files(own).into_keys().chain(SHIPPED.iter().map(|(name, _)| (*name).to_owned())).collect();
        names.iter().filter_map(|name| PlanTemplate::find(name, own).ok()).collect()
    }

    /// The template with this name; an own one comes first.
    pub fn find(name: &str, own: Option<&Path>) -> Result<PlanTemplate, AppError> {
        let own = own_files(own);
        if let Some(path) = own.get(name) {
            let unreadable = |error: std::io::Error| {
                AppError::new("server.arguments", format!("template {name:?} cannot be read: {error}"))
            };
            return PlanTemplate::read(name, &std::fs::read(path).map_err(unreadable)?);
        }
        match SHIPPED.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => PlanTemplate::read(name, text.as_bytes()),
            None => {
                let error = AppError::missing("template", name);
                let known = SHIPPED.iter().map(|(known, _)| *known).chain(own.keys().map(String::as_str));
                Err(match guess(name, known) {
                    Some(near) => error.hint(format!("did you mean {:?}?", near.word())),
                    None => error.hint("`rutter plan templates` and GET /api/v1/templates list them"),
                })
            }
        }
    }

    /// The template as its author wrote it, with its name.
    pub fn document(&self) -> Value {
        let mut document = json!(self);
        document["plan"] = self.plan.clone();
        document
    }

    /// Reads a template as strictly as a plan.
    pub fn read(name: &str, bytes: &[u8]) -> Result<PlanTemplate, AppError> {
        let wrong = |what: &str| AppError::new("server.arguments", format!("template {name:?}: {what}"));
        let document = PlanDocument::read(bytes, DocumentFormat::guess(bytes))
            .map_err(|found| wrong(found.first().map_or("it cannot be read", |found| &found.message)))?;
        let Value::Object(fields) = &*document.value else { return Err(wrong("expected an object")) };
        if let Some(other) = fields.keys().find(|key| !["description", "parameters", "plan"].contains(&key.as_str())) {
            return Err(wrong(&format!("unknown field {other:?}; it has description, parameters and plan")));
        }
        let plan = fields.get("plan").filter(|plan| plan.is_object());
        let plan = plan.ok_or_else(|| wrong("it needs a plan, as an object"))?.clone();
        let mut parameters = fields.get("parameters").cloned().unwrap_or_else(|| json!({ "type": "object" }));
        if !parameters.is_object() {
            return Err(wrong("parameters is a JSON Schema of an object"));
        }
        // A mistyped parameter must not be ignored.
        parameters["additionalProperties"] = json!(false);
        CompiledSchema::compile(&parameters).map_err(|error| wrong(&format!("parameters: {error}")))?;
        let description = fields.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        let template = PlanTemplate { name: name.to_owned(), description, parameters, plan };
        match template.unknown(&template.plan) {
            Some(unknown) => Err(wrong(&format!("${{{unknown}}} is not one of its parameters"))),
            None => Ok(template),
        }
    }

    /// The plan with these parameters, or every parameter that is wrong.
    pub fn instantiate(&self, mut given: Map<String, Value>) -> Result<Value, AppError> {
        let known = self.parameters["properties"].as_object().cloned().unwrap_or_default();
        for (name, property) in &known {
            if let (false, Some(default)) = (given.contains_key(name), property.get("default")) {
                given.insert(name.clone(), default.clone());
            }
        }
        let schema = CompiledSchema::compile(&self.parameters)
            .map_err(|error| AppError::new("server.internal", error.to_string()))?;
        let given = Value::Object(given);
        let wrong: Vec<String> = schema.validate(&given).into_iter().map(violation).collect();
        if !wrong.is_empty() {
            let names: Vec<&str> = known.keys().map(String::as_str).collect();
            let message = format!("parameters of template {:?}: {}", self.name, wrong.join("; "));
            return Err(AppError::new("server.arguments", message).hint(format!("it has: {}", names.join(", "))));
        }
        Ok(filled(&self.plan, &given).unwrap_or_default())
    }

    /// A name in `${}` that is no parameter.
    fn unknown(&self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => {
                let unknown = |piece| match piece {
                    TextPiece::Parameter(name) if self.parameters["properties"].get(name).is_none() => Some(name),
                    _ => None,
                };
                pieces(text).into_iter().find_map(unknown).map(str::to_owned)
            }
            Value::Array(items) => items.iter().find_map(|item| self.unknown(item)),
            Value::Object(fields) => fields.values().find_map(|value| self.unknown(value)),
            _ => None,
        }
    }
}

fn violation(found: SchemaViolation) -> String {
    match found.pointer.trim_start_matches('/') {
        "" => found.message,
        name => format!("{name} {}", found.message),
    }
}

/// Replaces every `${name}`; what is nothing but a parameter that was not given is left out. The depth is bounded by the
/// reader of the template.
fn filled(value: &Value, given: &Value) -> Option<Value> {
    Some(match value {
        Value::String(text) => return filled_text(text, given),
        Value::Array(items) => items.iter().filter_map(|item| filled(item, given)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(name, value)| Some((name.clone(), filled(value, given)?)));
            Value::Object(fields.collect())
        }
        plain => plain.clone(),
    })
}

fn filled_text(text: &str, given: &Value) -> Option<Value> {
    let pieces = pieces(text);
    if let [TextPiece::Parameter(name)] = pieces[..] {
        return given.get(name).cloned();
    }
    let mut whole = String::new();
    for piece in pieces {
        match piece {
            TextPiece::Text(text) => whole.push_str(text),
            TextPiece::Parameter(name) => match given.get(name) {
                Some(Value::String(text)) => whole.push_str(text),
                Some(value) => whole.push_str(&value.to_string()),
                None => {}
            },
        }
    }
    Some(Value::String(whole))
}

/// A part of a text of a template.
enum TextPiece<'a> {
    Text(&'a str),
    Parameter(&'a str),
}

/// The parts of a text: `${name}` is a parameter, `$${` stands for `${` itself.
fn pieces(text: &str) -> Vec<TextPiece<'_>> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find("${") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            found.extend([TextPiece::Text(before), TextPiece::Text("${")]);
            rest = after;
        } else if let Some((name, after)) = after.split_once('}') {
            found.extend((!before.is_empty()).then_some(TextPiece::Text(before)));
            found.push(TextPiece::Parameter(name));
            rest = after;
        } else {
            break;
        }
    }
    found.extend((!rest.is_empty()).then_some(TextPiece::Text(rest)));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::plan::Driver;
    use rutter_core::plan::check::check_document;
    use rutter_core::tool::ToolCatalog;

    /// An example for every required parameter.
    fn examples(template: &PlanTemplate) -> Map<String, Value> {
        let required = template.parameters["required"].as_array().into_iter().flatten();
        let names = required.map(|name| name.as_str().unwrap());
        names.map(|name| (name.to_owned(), json!(format!("shop.{}", name.trim_end_matches("_tool"))))).collect()
    }

    #[test]
    fn every_shipped_template_gives_a_plan_without_mistakes() {
        assert_eq!(PlanTemplate::all(None).len(), SHIPPED.len());
        for (name, text) in SHIPPED {
            let template = PlanTemplate::read(name, text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
            assert!(!template.description.is_empty(), "{name}");
            let plan = template.instantiate(examples(&template)).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!plan.to_string().contains("${"), "{name}: {plan}");
            let document = PlanDocument::read(plan.to_string().as_bytes(), DocumentFormat::Json).unwrap();
            let checked = check_document(&document, &ToolCatalog::default(), Driver::Agent, None);
            assert!(checked.plan.is_some(), "{name}: {:#?}", checked.diagnostics);
        }
    }

    /// The definitions of @modelcontextprotocol/server-filesystem 2026.8.31, which the defaults of a template name.
    #[test]
    fn a_shipped_template_fits_the_server_that_its_defaults_name() {
        let path = json!({ "type": "string" });
        let read = json!({ "type": "object", "properties": { "path": path, "tail": { "type": "number" } },
            "required": ["path"] });
        let write = json!({ "type": "object", "properties": { "path": path, "content": path },
            "required": ["path", "content"] });
        let text = json!({ "type": "object", "properties": { "content": path }, "required": ["content"],
            "additionalProperties": false });
        let tools = json!({ "tools": [
            { "name": "files.read_text_file", "inputSchema": read, "outputSchema": text, "safety": "read_only" },
            { "name": "files.write_file", "inputSchema": write, "outputSchema": text, "safety": "idempotent" } ] });
        let catalog = ToolCatalog::from_json(&tools).unwrap();
        let template = PlanTemplate::find("file-change-with-backup", None).unwrap();
        let plan = template.instantiate(examples(&template)).unwrap();
        let document = PlanDocument::read(plan.to_string().as_bytes(), DocumentFormat::Json).unwrap();
        let checked = check_document(&document, &catalog, Driver::Server, None);
        assert!(checked.plan.is_some(), "{:#?}", checked.diagnostics);
        // Every other default is no tool, and a tool that is built in is checked where the built-in tools are.
        for template in PlanTemplate::all(None) {
            let names = template.parameters["properties"].as_object().unwrap();
            let with_default = |name: &String| name.ends_with("_tool") && names[name].get("default").is_some();
            let is_checked = template.name == "file-change-with-backup";
            assert!(is_checked || !names.keys().any(with_default), "{}", template.name);
        }
    }

    #[test]
    fn parameters_keep_their_type_and_are_checked() {
        let text = r#"{ "parameters": { "type": "object", "required": ["n"], "properties": {
            "n": { "type": "integer", "maximum": 5 }, "t": { "type": "string", "default": "x" } } },
            "plan": { "max_parallel": "${n}", "name": "a ${t} ${n}", "goal": "{{ inputs.t }}" } }"#;
        let template = PlanTemplate::read("own", text.as_bytes()).unwrap();
        let of = |given: Value| template.instantiate(given.as_object().unwrap().clone());
        let plan = json!({ "max_parallel": 5, "name": "a x 5", "goal": "{{ inputs.t }}" });
        assert_eq!(of(json!({ "n": 5 })).unwrap(), plan);
        for wrong in [json!({}), json!({ "n": 6 }), json!({ "n": "5" }), json!({ "n": 1, "m": 1 })] {
            let error = of(wrong.clone()).unwrap_err();
            assert_eq!(
                (error.code.as_ref(), error.hint.as_deref()),
                ("server.arguments", Some("it has: n, t")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn the_documented_template_gives_a_plan_without_mistakes() {
        let page = include_str!("../../../docs/templates.md");
        let text = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let template = PlanTemplate::read("documented", text.as_bytes()).unwrap();
        let given = json!({ "name": "report", "fetch_tool": "web.fetch" }).as_object().unwrap().clone();
        let plan = template.instantiate(given).unwrap();
        let step = &plan["steps"][0];
        assert_eq!(step["parameters"]["note"], "by report, not ${name}");
        assert_eq!((plan.get("goal"), &step["retry"]["max_attempts"]), (None, &json!(3)));
        let document = PlanDocument::read(plan.to_string().as_bytes(), DocumentFormat::Json).unwrap();
        let checked = check_document(&document, &ToolCatalog::default(), Driver::Agent, None);
        assert!(checked.plan.is_some(), "{:#?}", checked.diagnostics);
    }

    #[test]
    fn a_parameter_that_was_not_given_leaves_its_field_out() {
        let text = r#"{ "parameters": { "type": "object", "properties": { "goal": { "type": "string" } } },
            "plan": { "name": "n", "goal": "${goal}", "tags": ["a", "${goal}"], "request": "for $${goal}: ${goal}." } }"#;
        let template = PlanTemplate::read("own", text.as_bytes()).unwrap();
        let without = json!({ "name": "n", "tags": ["a"], "request": "for ${goal}: ." });
        assert_eq!(template.instantiate(Map::new()).unwrap(), without);
        let given = json!({ "goal": "x" }).as_object().unwrap().clone();
        let with = json!({ "name": "n", "goal": "x", "tags": ["a", "x"], "request": "for ${goal}: x." });
        assert_eq!(template.instantiate(given).unwrap(), with);
    }

    #[test]
    fn the_limits_of_shipped_parameters_are_those_of_plans() {
        let template = PlanTemplate::find("deploy-with-rollback", None).unwrap();
        let attempts = &template.parameters["properties"]["attempts"]["maximum"];
        assert_eq!(*attempts, json!(rutter_core::limits::ATTEMPTS_MAX));
    }

    #[test]
    fn a_template_with_a_mistake_is_refused() {
        for text in [
            "[]",
            "{}",
            r#"{ "plan": {}, "plan": {} }"#,
            r#"{ "plan": [] }"#,
            r#"{ "plan": {}, "stesp": 1 }"#,
            r#"{ "plan": { "name": "${nothing}" } }"#,
            r#"{ "plan": {}, "parameters": 7 }"#,
        ] {
            let error = PlanTemplate::read("own", text.as_bytes()).unwrap_err();
            assert_eq!(error.code, "server.arguments", "{text}");
        }
        let unknown = PlanTemplate::find("order-sga", None).unwrap_err();
        assert_eq!(unknown.hint.as_deref(), Some("did you mean \"order-saga\"?"));
    }

    #[test]
    fn own_templates_are_listed_beside_the_shipped_ones_and_come_first() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("mine.yaml", "description: my own\nplan: { name: mine }\n");
        write("remember.json", r#"{ "description": "another", "plan": {} }"#);
        write("broken.yaml", "plan: 7\n");
        write("notes.txt", "no template");
        let own = Some(directory.path());
        let all = PlanTemplate::all(own);
        assert_eq!(all.len(), SHIPPED.len() + 1);
        let about = |name: &str| all.iter().find(|one| one.name == name).map(|one| one.description.as_str());
        assert_eq!((about("mine"), about("remember"), about("broken")), (Some("my own"), Some("another"), None));
        assert!(PlanTemplate::find("broken", own).unwrap_err().message.contains("it needs a plan"));
        assert!(PlanTemplate::find("../mine", own).is_err() && PlanTemplate::find("notes", own).is_err());
    }
}
