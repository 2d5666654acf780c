//! The `rutter.toml` of a scenario.

use crate::scenarios::fixture::{Kind, ScenarioFixture, effects_script, python};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

pub fn written(
    fixture: &ScenarioFixture,
    servers: &BTreeMap<String, Kind>,
    ports: &BTreeMap<String, String>,
) -> String {
    let mut text = String::new();
    for (server, kind) in servers {
        let place = match kind {
            Kind::Stdio => format!("servers.{server}"),
            Kind::Http => format!("http.{server}"),
            Kind::Command => format!("commands.{server}"),
        };
        writeln!(text, "[{place}]").unwrap();
        match kind {
            Kind::Stdio => {
                let (python, arguments) = (python().display().to_string(), fixture.arguments("stdio", server));
                writeln!(text, "command = {python:?}\nargs = {}\ntrust = true", toml(&arguments.into())).unwrap();
            }
            Kind::Http => {
                let base = format!("http://127.0.0.1:{}", ports[server]);
                writeln!(text, "base = {base:?}\nallow = [\"127.0.0.1\"]").unwrap();
            }
            Kind::Command => {
                // Files among the arguments are part of a command's definition; these change.
                let env = json!({ "EFFECTS_WORLD": fixture.path("world.json"), "EFFECTS_LOG": fixture.path("log") });
                writeln!(text, "grace = \"2s\"\nenv = {}", toml(&env)).unwrap();
            }
        }
        text += fixture.extra.get(server).map(String::as_str).unwrap_or_default();
        for (name, about) in fixture.world["tools"].as_object().unwrap() {
            if let Some((_, tool)) = name.split_once('.').filter(|(of, _)| of == server) {
                writeln!(text, "\n[{place}.tools.{tool}]").unwrap();
                write_tool(&mut text, fixture, *kind, server, tool, about);
                text += fixture.extra.get(name).map(String::as_str).unwrap_or_default();
            }
        }
        text.push('\n');
    }
    text
}

fn write_tool(text: &mut String, fixture: &ScenarioFixture, kind: Kind, server: &str, tool: &str, about: &Value) {
    match kind {
        Kind::Stdio => {}
        Kind::Http => writeln!(text, "method = \"POST\"\npath = \"/{tool}\"").unwrap(),
        Kind::Command => {
            let python = python().display().to_string();
            let arguments = json!([python, effects_script(), "command", "--server", server, "--tool", tool]);
            let prefix = Path::new(&python).ancestors().nth(2).expect("the interpreter is in a bin directory");
            writeln!(text, "argv = {}\nstdin = \"json\"", toml(&arguments)).unwrap();
            writeln!(text, "read = [{prefix:?}]\nwrite = [{:?}]", fixture.path("")).unwrap();
        }
    }
    if kind != Kind::Stdio {
        definition(text, about);
    }
    // The hints of a trusted server are enough.
    let hint = |hint: &str| about["annotations"][hint] == true && kind != Kind::Stdio;
    let safety = match about["safety"].as_str() {
        Some(safety) => Some(safety),
        None if hint("readOnlyHint") => Some("read_only"),
        None if hint("idempotentHint") => Some("idempotent"),
        None => None,
    };
    for (field, value) in [("safety", safety), ("key_parameter", about["key_parameter"].as_str())] {
        if let Some(value) = value {
            writeln!(text, "{field} = {value:?}").unwrap();
        }
    }
}

fn definition(text: &mut String, about: &Value) {
    let description = about["description"].as_str().unwrap_or("a tool, for tests");
    writeln!(text, "description = {}", toml(&description.into())).unwrap();
    for (field, schema) in [("input", &about["input"]), ("output", &about["output"])] {
        if schema.is_object() {
            writeln!(text, "{field} = {}", toml(schema)).unwrap();
        }
    }
}

fn toml(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{name:?} = {}", toml(value));
            format!("{{ {} }}", list(fields.iter().map(field).collect()))
        }
        Value::Array(items) => format!("[{}]", list(items.iter().map(toml).collect())),
        plain => plain.to_string(),
    }
}
