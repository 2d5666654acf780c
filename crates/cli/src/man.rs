//! `rutter man`: the manual, page by page or as one document, generated from the command line definition.

use crate::args;
use crate::args::begin::ManualArgs;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::terminal::Terminal;
use anyhow::Context;
use clap::{Arg, Command};
use clap_mangen::Man;
use serde_json::json;
use std::fs;
use std::path::Path;

pub(crate) fn run(args: &ManualArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let mut rutter = args::command().disable_help_subcommand(true);
    rutter.build();
    if let Some(directory) = &args.dir {
        return write_all(&rutter, directory, args.json, terminal);
    }
    let text = match args.markdown {
        true => markdown(&rutter),
        false => page(found(&rutter, &args.command)?)?.1,
    };
    match args.json {
        true => terminal.answer(&format!("{}\n", json!({ "ok": true, "text": text })))?,
        false => terminal.answer(&text)?,
    }
    Ok(CommandExit::Done)
}

fn write_all(rutter: &Command, directory: &Path, is_json: bool, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let cannot_write = || format!("cannot write to {}", directory.display());
    fs::create_dir_all(directory).with_context(cannot_write)?;
    let mut files = Vec::new();
    for command in all(rutter) {
        let (name, text) = page(command)?;
        let path = directory.join(format!("{name}.1"));
        fs::write(&path, text).with_context(cannot_write)?;
        files.push(path);
    }
    match is_json {
        true => terminal.answer(&format!("{}\n", json!({ "ok": true, "files": files })))?,
        false => terminal.answer(&format!("{} pages in {}\n", files.len(), directory.display()))?,
    }
    Ok(CommandExit::Done)
}

/// The name of a page and its text.
fn page(command: &Command) -> anyhow::Result<(String, String)> {
    let name = full_name(command).replace(' ', "-");
    let mut text = Vec::new();
    Man::new(command.clone()).title(name.to_uppercase()).render(&mut text)?;
    Ok((name, String::from_utf8_lossy(&text).into_owned()))
}

fn found<'a>(rutter: &'a Command, words: &[String]) -> Result<&'a Command, CommandRefusal> {
    let mut command = rutter;
    for word in words.iter().skip_while(|word| *word == "rutter") {
        command = command.find_subcommand(word).ok_or_else(|| {
            let message = format!("{} has no command {word:?}", full_name(command));
            CommandRefusal::new("command.invalid", message).with_hint("`rutter man` lists all commands")
        })?;
    }
    Ok(command)
}

/// A command and its subcommands, without hidden ones.
fn all(command: &Command) -> Vec<&Command> {
    let below = command.get_subcommands().filter(|command| !command.is_hide_set()).flat_map(all);
    std::iter::once(command).chain(below).collect()
}

fn full_name(command: &Command) -> String {
    command.get_bin_name().unwrap_or(command.get_name()).to_owned()
}

/// Options that commands with a database share are listed once.
const SHARED: &str = "### Options of commands with a database";

fn markdown(rutter: &Command) -> String {
    let commands = all(rutter).into_iter().filter(|command| !command.has_subcommands());
    let shared: String = rutter
        .find_subcommand("run")
        .map(|run| run.get_arguments().filter(|arg| is_shared(arg)).map(line).collect())
        .unwrap_or_default();
    format!("{}{SHARED}\n\n{shared}", commands.map(section).collect::<String>())
}

fn section(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage).trim().to_owned();
    let mut text = format!("### {}\n\n{about}.\n\n```text\n{usage}\n```\n\n", full_name(command));
    let (shared, own): (Vec<&Arg>, Vec<&Arg>) =
        command.get_arguments().filter(|arg| is_documented(arg)).partition(|arg| is_shared(arg));
    let mut lines: Vec<String> = own.into_iter().map(line).collect();
    if !shared.is_empty() {
        let names = shared.iter().filter_map(|arg| Some(format!("`--{}`", arg.get_long()?)));
        let names: Vec<String> = names.collect();
        lines.push(format!("- {}: [below](#options-of-commands-with-a-database)\n", names.join(", ")));
    }
    if !lines.is_empty() {
        text += &format!("{}\n", lines.concat());
    }
    text
}

/// Options that every command has are documented elsewhere.
fn is_documented(arg: &Arg) -> bool {
    !arg.is_hide_set() && !matches!(arg.get_id().as_str(), "help" | "version" | "color")
}

/// Options of [`crate::args::DatabaseArgs`] and related ones; other commands have a `--dir` and `--json` of their own.
fn is_shared(arg: &Arg) -> bool {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    match arg.get_id().as_str() {
        "config" | "mcp_config" | "tenant" => true,
        "dir" => arg.get_visible_aliases().is_some_and(|aliases| aliases.contains(&"data")),
        "json" => help == "Print JSON",
        _ => false,
    }
}

fn line(arg: &Arg) -> String {
    let values: Vec<String> = arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let value = match arg.get_action().takes_values() {
        true => values.join(" "),
        false => String::new(),
    };
    let name = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long} {value}"),
        (Some(short), None) => format!("-{short} {value}"),
        (None, Some(long)) => format!("--{long} {value}"),
        (None, None) => value,
    };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let defaults: Vec<String> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    let default = match defaults.iter().all(String::is_empty) || !arg.get_action().takes_values() {
        true => String::new(),
        false => format!(" [default: {}]", defaults.join(", ")),
    };
    let choices: Vec<String> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let choices = match choices.is_empty() || !arg.get_action().takes_values() {
        true => String::new(),
        false => format!(" [one of: {}]", choices.join(", ")),
    };
    let help = if help.is_empty() { String::new() } else { format!(": {help}") };
    format!("- `{}`{help}{default}{choices}\n", name.trim())
}
