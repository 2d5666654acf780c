//! `rutter config`: every setting with its value and where that comes from, and whether they can be used.

use super::sources::{Holds, Origin, Sources, VARIABLES, unknown_variables};
use crate::Exit;
use crate::args::begin::{ConfigCheckArgs, ConfigCommand, ConfigShowArgs};
use crate::report::plural;
use crate::table::{Cell, Paint, columns};
use crate::terminal::{Terminal, printable};
use rutter_core::plan::wording::guess;
use serde_json::{Value, json};

pub(crate) fn run(command: &ConfigCommand, terminal: &Terminal) -> anyhow::Result<Exit> {
    match command {
        ConfigCommand::Show(args) => show(args, terminal),
        ConfigCommand::Check(args) => check(args, terminal),
    }
}

fn show(args: &ConfigShowArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let all = Sources::read(&args.store, &args.tools)?.holding()?;
    if args.store.json {
        let told: Vec<Value> = all.iter().map(told).collect();
        terminal.answer(&format!("{}\n", json!({ "ok": true, "settings": told })))?;
        return Ok(Exit::Done);
    }
    let row = |holds: &Holds| {
        let origin = if args.origin { holds.origin.to_string() } else { String::new() };
        vec![
            Cell::new(holds.key.as_str(), Paint::Bold),
            printable(&text_of(&holds.value)).into(),
            Cell::new(printable(&origin), Paint::Dim),
        ]
    };
    let rows: Vec<Vec<Cell>> = all.iter().map(row).collect();
    terminal.answer(&columns(&rows).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(Exit::Done)
}

/// Reads everything and looks whether it fits together; starts nothing.
fn check(args: &ConfigCheckArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let sources = Sources::read(&args.store, &args.tools)?;
    let config = sources.config()?;
    crate::tools::check(&config)?;
    config.server.tokens()?;
    let doubts: Vec<String> = unknown_variables().iter().map(|name| doubt(name)).collect();
    let files: Vec<String> = sources.files().map(|path| path.display().to_string()).collect();
    let servers = config.tools.servers.len() + config.tools.http.len() + config.tools.commands.len();
    if args.store.json {
        let told = json!({ "ok": true, "files": files, "servers": servers, "warnings": doubts });
        terminal.answer(&format!("{told}\n"))?;
        return Ok(Exit::Done);
    }
    let read = match files.as_slice() {
        [] => "no file with settings, so everything is as by default".to_owned(),
        files => files.join(", "),
    };
    doubts.iter().for_each(|doubt| terminal.remark(&format!("warning: {doubt}\n")));
    terminal.answer(&format!("ok: {}, {}\n", printable(&read), plural(servers, "server")))?;
    Ok(Exit::Done)
}

fn doubt(name: &str) -> String {
    let hint = match guess(name, VARIABLES.iter().copied()) {
        Some(guess) => format!("did you mean {}?", guess.word()),
        None => format!("there are {}", VARIABLES.join(", ")),
    };
    format!("the variable {name} means nothing here; {hint}")
}

fn told(holds: &Holds) -> Value {
    let origin = match &holds.origin {
        Origin::Flag(name) => json!({ "kind": "flag", "name": name }),
        Origin::Variable(name) => json!({ "kind": "variable", "name": name }),
        Origin::File { path, line } => json!({ "kind": "file", "path": path, "line": line }),
        Origin::List(path) => json!({ "kind": "list", "path": path }),
        Origin::Default => json!({ "kind": "default" }),
    };
    json!({ "key": holds.key, "value": holds.value, "origin": origin })
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Flag(name) => f.write_str(name),
            Origin::Variable(name) => write!(f, "${name}"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::List(path) => write!(f, "{} (--mcp-config)", path.display()),
            Origin::Default => f.write_str("default"),
        }
    }
}
