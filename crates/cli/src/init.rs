//! `rutter init`: sets up a project with settings, a first plan and the MCP servers of other programs.

pub(crate) mod client;
pub(crate) mod found;
mod template;

use crate::args::begin::InitArgs;
use crate::config::sources::LOCAL;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::import::ImportedServers;
use crate::printable::printable;
use crate::table::{CellColor, wrapped};
use crate::terminal::Terminal;
use crate::tools;
use anyhow::Context;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const PLAN: &str = "plans/first.yaml";
const IGNORED: &str = ".gitignore";
/// What version control should ignore.
const DATA: &str = ".rutter/";

/// A list that was read, and its servers.
struct ImportedList {
    path: PathBuf,
    servers: Vec<String>,
}

pub(crate) fn run(args: &InitArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    check_absent(args)?;
    let project = std::path::absolute(&args.dir).unwrap_or_else(|_| args.dir.clone());
    let project = project.canonicalize().unwrap_or(project);
    let (imported, taken) = lists(args, &project)?;
    let written = write(args, &imported)?;
    match args.json {
        true => terminal.answer(&format!("{}\n", init_json(args, &project, &imported, &taken, &written)))?,
        false => tell(args, &project, &imported, &taken, &written, terminal)?,
    }
    Ok(CommandExit::Done)
}

/// A file of the project, relative to the current directory.
fn beside(args: &InitArgs, name: &str) -> PathBuf {
    if args.dir == Path::new(".") { PathBuf::from(name) } else { args.dir.join(name) }
}

/// Refuses to change anything if a file already exists.
fn check_absent(args: &InitArgs) -> Result<(), CommandRefusal> {
    let there: Vec<String> = [LOCAL, PLAN]
        .iter()
        .map(|name| beside(args, name))
        .filter(|path| path.exists())
        .map(|path| path.display().to_string())
        .collect();
    if there.is_empty() || args.force {
        return Ok(());
    }
    let verb = if there.len() == 1 { "exists" } else { "exist" };
    let message = format!("{} {verb} already; nothing was changed", there.join(" and "));
    Err(CommandRefusal::new("file.exists", message)
        .with_hint("--force overwrites; `rutter tools import FILE` only prints"))
}

/// Files the user named must be readable; lists that were only found need not be.
fn lists(args: &InitArgs, project: &Path) -> anyhow::Result<(ImportedServers, Vec<ImportedList>)> {
    let mut all = ImportedServers::default();
    let mut taken = Vec::new();
    let paths = match (args.no_import, args.import.is_empty()) {
        (true, _) => Vec::new(),
        (false, false) => args.import.clone(),
        (false, true) => found::lists(project),
    };
    for path in paths {
        let name = path.display().to_string();
        let imported = match tools::import::file(&path, Some(project)) {
            Ok(imported) => imported,
            Err(refusal) if args.import.is_empty() => {
                all.notes.push(refusal.to_string());
                continue;
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let servers: Vec<String> =
            imported.servers.keys().filter(|name| !all.servers.contains_key(*name)).cloned().collect();
        all.add(imported, &name);
        taken.push(ImportedList { path, servers });
    }
    Ok((all, taken))
}

/// Writes all files, and returns their paths.
fn write(args: &InitArgs, imported: &ImportedServers) -> anyhow::Result<Vec<PathBuf>> {
    let plan = beside(args, PLAN);
    let folder = plan.parent().expect("the plan is in a folder");
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let ignored = beside(args, IGNORED);
    let before = fs::read_to_string(&ignored).unwrap_or_default();
    let mut texts = vec![(beside(args, LOCAL), template::settings(imported)), (plan, template::PLAN.to_owned())];
    let is_ignored = before.lines().any(|line| line.trim().trim_matches('/') == DATA.trim_matches('/'));
    if !is_ignored {
        let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        texts.push((ignored, format!("{before}{gap}{DATA}\n")));
    }
    for (path, text) in &texts {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(texts.into_iter().map(|(path, _)| path).collect())
}

/// The next commands to type, from within the project.
fn next() -> [String; 2] {
    let program = client::program();
    [format!("{program} run {PLAN}"), format!("{program} doctor")]
}

fn init_json(
    args: &InitArgs,
    project: &Path,
    imported: &ImportedServers,
    taken: &[ImportedList],
    written: &[PathBuf],
) -> Value {
    let lists: Vec<Value> = taken.iter().map(|taken| json!({ "file": taken.path, "servers": taken.servers })).collect();
    let clients: serde_json::Map<String, Value> = client::lines(&project.join(LOCAL))
        .into_iter()
        .map(|line| (line.client.to_owned(), json!({ "where": line.place, "text": line.text })))
        .collect();
    json!({ "ok": true, "directory": args.dir, "files": written, "imported": lists, "secrets": imported.secrets,
        "notes": imported.notes, "next": next(), "clients": clients })
}

fn tell(
    args: &InitArgs,
    project: &Path,
    imported: &ImportedServers,
    taken: &[ImportedList],
    written: &[PathBuf],
    terminal: &Terminal,
) -> anyhow::Result<()> {
    let mut text = String::new();
    for path in written {
        text += &format!("{} {}\n", CellColor::Green.on(terminal.signs.done), printable(&path.display().to_string()));
    }
    for taken in taken {
        let servers = match taken.servers.as_slice() {
            [] => "no server to import".to_owned(),
            servers => servers.join(", "),
        };
        text += &format!("  found {}: {}\n", taken.path.display(), printable(&servers));
    }
    if taken.is_empty() && !args.no_import {
        text += "  no list of MCP servers was found; the built-in tools are available\n";
    }
    for note in &imported.notes {
        text += &format!("  {}\n", wrapped(&printable(&format!("note: {note}")), 4));
    }
    let here = if args.dir == Path::new(".") { String::new() } else { format!("  cd {}\n", args.dir.display()) };
    text += &format!("\nnext:\n{here}");
    text += &next().map(|command| format!("  {}\n", CellColor::Bold.on(&command))).concat();
    text += "\nfor your agent, one of:\n";
    for line in client::lines(&project.join(LOCAL)) {
        text += &format!("  {} {}\n", line.place, CellColor::Dim.on(&format!("({})", line.client)));
        text += &line.text.lines().map(|line| format!("    {line}\n")).collect::<String>();
    }
    terminal.answer(&text)?;
    Ok(())
}
