//! `rutter plan templates` and `rutter plan new`: plans from templates.

use super::named::{bytes_of, typed_values};
use crate::args::DatabaseArgs;
use crate::args::plan::{PlanNewArgs, PlanTemplatesArgs};
use crate::args::run::ToolSourceArgs;
use crate::config::sources::ConfigSources;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::table::{CellColor, TableCell, columns};
use crate::terminal::Terminal;
use anyhow::Context;
use rutter_app::error::AppError;
use rutter_app::templates::PlanTemplate;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) fn list(args: &PlanTemplatesArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let templates = PlanTemplate::all(own()?.as_deref());
    if args.json {
        for template in &templates {
            terminal.answer(&format!("{}\n", json!(template)))?;
        }
        return Ok(CommandExit::Done);
    }
    let mut text = String::new();
    for template in &templates {
        text.push_str(&format!("{}: {}\n", CellColor::Bold.on(&template.name), template.description));
        let required: Vec<&str> =
            template.parameters["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let rows = template.parameters["properties"].as_object().into_iter().flatten().map(|(name, property)| {
            let default = match property.get("default") {
                Some(default) => format!("default {default}"),
                None if required.contains(&name.as_str()) => "required".to_owned(),
                None => String::new(),
            };
            let about = property["description"].as_str().unwrap_or_default();
            vec![
                TableCell::new(format!("  {name}"), CellColor::Plain),
                TableCell::new(default, CellColor::Dim),
                about.into(),
            ]
        });
        let rows: Vec<Vec<TableCell>> = rows.collect();
        text.extend(columns(&rows).into_iter().map(|line| line + "\n"));
    }
    terminal.answer(&text)?;
    terminal.remark("`rutter plan new --template NAME --input k=v` makes a plan of one\n");
    Ok(CommandExit::Done)
}

/// The directory of own templates.
fn own() -> Result<Option<PathBuf>, CommandRefusal> {
    let store = DatabaseArgs { dir: None, config: None, json: false };
    Ok(ConfigSources::read(&store, &ToolSourceArgs::default())?.templates())
}

pub(crate) fn new(args: &PlanNewArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let refused = |error: AppError| CommandRefusal::of(error);
    let path = Path::new(&args.template);
    // A file takes precedence, as for `rutter run`.
    let template = match bytes_of(path) {
        Ok(bytes) => PlanTemplate::read(&args.template, &bytes).map_err(refused)?,
        Err(_) => PlanTemplate::find(&args.template, own()?.as_deref()).map_err(refused)?,
    };
    let parameters = typed_values(&args.inputs, &template.parameters)?;
    let plan = template.instantiate(parameters).map_err(refused)?;
    let text = format!("{plan:#}\n");
    match &args.out {
        None => terminal.answer(&text)?,
        Some(path) => {
            if path.exists() {
                let message = format!("{} exists already", path.display());
                return Err(CommandRefusal::new("file.exists", message).into());
            }
            let unwritable = || format!("cannot write {}", path.display());
            let mut file = OpenOptions::new().write(true).create_new(true).open(path).with_context(unwritable)?;
            file.write_all(text.as_bytes()).with_context(unwritable)?;
            terminal.remark(&printable(&format!("{}: check it with `rutter plan check`", path.display())));
            terminal.remark("\n");
        }
    }
    Ok(CommandExit::Done)
}
