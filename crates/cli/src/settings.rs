//! `rutter config`: every setting with its value and origin, and whether they are valid.

use crate::args::begin::{ConfigCheckArgs, ConfigCommand, ConfigShowArgs};
use crate::config::sources::{ConfigSources, EffectiveSetting, SettingOrigin, VARIABLES, unknown_variables};
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::report::plural;
use crate::table::{CellColor, TableCell, columns};
use crate::terminal::Terminal;
use rutter_core::wording::guess;
use serde_json::{Value, json};

pub(crate) fn run(command: &ConfigCommand, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    match command {
        ConfigCommand::Show(args) => show(args, terminal),
        ConfigCommand::Check(args) => check(args, terminal),
    }
}

fn show(args: &ConfigShowArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let all = ConfigSources::read(&args.store, &args.tools)?.effective_settings()?;
    if args.store.json {
        let values: Vec<Value> = all.iter().map(setting_json).collect();
        terminal.answer(&format!("{}\n", json!({ "ok": true, "settings": values })))?;
        return Ok(CommandExit::Done);
    }
    let row = |holds: &EffectiveSetting| {
        let origin = if args.origin { holds.origin.to_string() } else { String::new() };
        vec![
            TableCell::new(holds.key.as_str(), CellColor::Bold),
            printable(&text_of(&holds.value)).into(),
            TableCell::new(printable(&origin), CellColor::Dim),
        ]
    };
    let rows: Vec<Vec<TableCell>> = all.iter().map(row).collect();
    terminal.answer(&columns(&rows).into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(CommandExit::Done)
}

/// Reads all settings and checks that they are consistent; starts nothing.
fn check(args: &ConfigCheckArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let sources = ConfigSources::read(&args.store, &args.tools)?;
    let config = sources.config()?;
    crate::tools::check(&config)?;
    config.server.tokens()?;
    let doubts: Vec<String> = unknown_variables().iter().map(|name| doubt(name)).collect();
    let files: Vec<String> = sources.files().map(|path| path.display().to_string()).collect();
    let servers = config.tools.servers.len() + config.tools.http.len() + config.tools.commands.len();
    if args.store.json {
        let json = json!({ "ok": true, "files": files, "servers": servers, "warnings": doubts });
        terminal.answer(&format!("{json}\n"))?;
        return Ok(CommandExit::Done);
    }
    let read = match files.as_slice() {
        [] => "no settings file; all settings have their defaults".to_owned(),
        files => files.join(", "),
    };
    doubts.iter().for_each(|doubt| terminal.remark(&format!("warning: {doubt}\n")));
    terminal.answer(&format!("ok: {}, {}\n", printable(&read), plural(servers, "server")))?;
    Ok(CommandExit::Done)
}

fn doubt(name: &str) -> String {
    let hint = match guess(name, VARIABLES.iter().copied()) {
        Some(guess) => format!("did you mean {}?", guess.word()),
        None => format!("there are {}", VARIABLES.join(", ")),
    };
    format!("the variable {name} is unknown; {hint}")
}

fn setting_json(holds: &EffectiveSetting) -> Value {
    let origin = match &holds.origin {
        SettingOrigin::Flag(name) => json!({ "kind": "flag", "name": name }),
        SettingOrigin::Variable(name) => json!({ "kind": "variable", "name": name }),
        SettingOrigin::File { path, line } => json!({ "kind": "file", "path": path, "line": line }),
        SettingOrigin::List(path) => json!({ "kind": "list", "path": path }),
        SettingOrigin::Default => json!({ "kind": "default" }),
    };
    json!({ "key": holds.key, "value": holds.value, "origin": origin })
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

impl std::fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SettingOrigin::Flag(name) => f.write_str(name),
            SettingOrigin::Variable(name) => write!(f, "${name}"),
            SettingOrigin::File { path, line } => write!(f, "{}:{line}", path.display()),
            SettingOrigin::List(path) => write!(f, "{} (--mcp-config)", path.display()),
            SettingOrigin::Default => f.write_str("default"),
        }
    }
}
