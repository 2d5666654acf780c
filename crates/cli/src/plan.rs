//! What the `plan` commands share: reading a file, checking it, saying what is wrong with it.

pub(crate) mod check;
pub(crate) mod diff;
mod fix;
pub(crate) mod graph;
pub(crate) mod list;
pub(crate) mod preview;
pub(crate) mod save;
pub(crate) mod show;

use crate::Exit;
use crate::args::plan::CommonArgs;
use crate::clock;
use crate::report::{Subject, count, plural};
use crate::table::{Cell, Paint};
use crate::terminal::{Signs, Terminal, printable};
use rutter_core::limits;
use rutter_core::plan::check::check;
use rutter_core::plan::codes::CODES;
use rutter_core::plan::diagnostic::{Diagnostic, Place, Severity};
use rutter_core::plan::document::{Document, Format};
use rutter_core::plan::draft::PlanDraft;
use rutter_core::plan::preview::Coverage;
use rutter_core::plan::{Driver, Plan};
use rutter_core::time::Timestamp;
use rutter_core::tool::{Failure, ToolCatalog};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What plans are checked against.
#[derive(Debug)]
struct Checker {
    catalog: ToolCatalog,
    driver: Driver,
    now: Timestamp,
}

/// A file that was read and checked.
#[derive(Debug)]
pub(crate) struct PlanFile {
    name: String,
    text: String,
    document: Option<Document>,
    /// There is one exactly when no error was found.
    plan: Option<Arc<Plan>>,
    diagnostics: Vec<Diagnostic>,
}

/// A server that could not be asked for its tools.
#[derive(Debug)]
pub(crate) struct Absent {
    server: String,
    why: String,
}

impl Absent {
    pub(crate) fn all(absent: &[(String, Failure)]) -> Vec<Absent> {
        let one = |(server, failure): &(String, Failure)| Absent {
            server: server.clone(),
            why: failure.to_string(),
        };
        absent.iter().map(one).collect()
    }
}

impl Checker {
    /// Reads the catalogue; what is wrong with it has been said when there is none.
    fn new(args: &CommonArgs, terminal: &Terminal) -> Option<Checker> {
        let now = clock::now();
        let driver = args.driver();
        let Some(path) = &args.tools else {
            if driver == Driver::Agent {
                terminal.remark("note: no --tools given, so tools and their parameters are not looked up\n");
            }
            return Some(Checker { catalog: ToolCatalog::default(), driver, now });
        };
        let mut file = PlanFile::read(path);
        if let Some(document) = &file.document {
            match ToolCatalog::from_json(&document.value) {
                Ok(catalog) => return Some(Checker { catalog, driver, now }),
                Err(diagnostics) => file.diagnostics = diagnostics,
            }
        }
        terminal.remark(&file.findings());
        terminal.remark(&format!("error: catalogue {} cannot be used\n", file.name));
        None
    }

    fn check(&self, path: &Path) -> PlanFile {
        self.check_file(PlanFile::read(path))
    }

    fn check_file(&self, mut file: PlanFile) -> PlanFile {
        let Some(document) = &file.document else { return file };
        let (draft, diagnostics) = PlanDraft::read(document, Some(self.now));
        file.diagnostics = diagnostics;
        if let Some(draft) = draft {
            let checked = check(&draft, &self.catalog, self.driver);
            file.plan = checked.plan;
            file.diagnostics.extend(checked.diagnostics);
        }
        if file.has_errors() {
            file.plan = None;
        }
        let mut diagnostics = std::mem::take(&mut file.diagnostics);
        let subject = file.subject(&file.name);
        diagnostics.sort_by_cached_key(|found| subject.start(found));
        file.diagnostics = diagnostics;
        file
    }
}

impl PlanFile {
    /// A file that was found wanting elsewhere.
    pub(crate) fn found(path: &Path, bytes: &[u8], diagnostics: Vec<Diagnostic>) -> PlanFile {
        let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
        PlanFile { diagnostics, ..PlanFile::from_bytes(name, bytes, Format::guess(bytes)) }
    }

    /// The same as another process told it; none when that is not what it told.
    pub(crate) fn told(path: &Path, bytes: &[u8], answer: &Value) -> Option<(PlanFile, Vec<Absent>)> {
        let details = &answer["error"]["details"];
        let found = details["diagnostics"].as_array()?.iter().map(diagnostic).collect();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let absent = details["servers_not_reached"].as_array().into_iter().flatten();
        let absent =
            absent.map(|absent| Absent { server: text(&absent["server"]), why: text(&absent["why"]) });
        Some((PlanFile::found(path, bytes, found), absent.collect()))
    }

    /// Says what is wrong with it, and which servers could not be asked for their tools.
    pub(crate) fn refuse(
        &self,
        absent: &[Absent],
        is_json: bool,
        terminal: &Terminal,
    ) -> anyhow::Result<Exit> {
        let servers: Vec<String> = absent
            .iter()
            .map(|absent| format!("server {} could not be asked: {}", absent.server, absent.why))
            .collect();
        if is_json {
            let mut told = self.json();
            told["absent"] = json!(servers);
            terminal.answer(&format!("{told}\n"))?;
        }
        terminal.remark(&self.findings());
        servers.iter().for_each(|line| terminal.remark(&format!("{}\n", printable(line))));
        Ok(Exit::Refused)
    }

    /// Reads a file, or stdin for `-`, as far as it is a document at all.
    fn read(path: &Path) -> PlanFile {
        let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
        match bytes_of(path) {
            Ok(bytes) => PlanFile::from_bytes(name, &bytes, Format::guess(&bytes)),
            Err(error) => {
                let found = Diagnostic::error("file.unreadable", "", format!("cannot read {name}: {error}"));
                PlanFile { name, text: String::new(), document: None, plan: None, diagnostics: vec![found] }
            }
        }
    }

    fn from_bytes(name: String, bytes: &[u8], format: Format) -> PlanFile {
        let (document, diagnostics) = match Document::read(bytes, format) {
            Ok(document) => (Some(document), Vec::new()),
            Err(diagnostics) => (None, diagnostics),
        };
        let text = String::from_utf8_lossy(bytes).into_owned();
        PlanFile { name, text, document, plan: None, diagnostics }
    }

    fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|found| found.severity == Severity::Error)
    }

    fn subject<'a>(&'a self, name: &'a str) -> Subject<'a> {
        Subject::new(name, &self.text, self.document.as_ref().map(|document| &document.spans))
    }

    /// Every finding for the terminal.
    fn findings(&self) -> String {
        self.findings_in(&self.name)
    }

    /// The same when the text is found under another name.
    fn findings_in(&self, name: &str) -> String {
        let subject = self.subject(name);
        self.diagnostics.iter().map(|found| subject.render(found)).collect()
    }

    /// The fields every answer of a `plan` command begins with.
    fn json(&self) -> Value {
        let subject = self.subject(&self.name);
        let plan = self
            .plan
            .as_ref()
            .map(|plan| json!({ "name": plan.name, "hash": plan.hash, "steps": plan.steps.len() }));
        json!({
            "file": self.name,
            "ok": plan.is_some(),
            "plan": plan,
            "diagnostics": self.diagnostics.iter().map(|found| subject.json(found)).collect::<Vec<_>>(),
        })
    }

    /// The plan, for commands that can say nothing about one with errors: those have been told on stderr.
    fn plan_or_remark(&self, terminal: &Terminal) -> Option<&Plan> {
        if self.plan.is_none() {
            terminal.remark(&self.findings());
            let count = count(&self.diagnostics).unwrap_or_default();
            terminal.remark(&format!("error: {} has {count}\n", self.name));
        }
        self.plan.as_deref()
    }
}

/// A finding as it was written for another process.
fn diagnostic(told: &Value) -> Diagnostic {
    let text = |name: &str| told[name].as_str().map(str::to_owned);
    let code = CODES.iter().find(|code| told["code"] == **code).copied().unwrap_or("command.wire");
    let number = |name: &str| Some(usize::try_from(told["place"][name].as_u64()?).unwrap_or(usize::MAX));
    let place = || {
        let (line, column) = (number("line")?, number("column")?);
        Some(Place { line, column, start: number("start")?, end: number("end")? })
    };
    let severity = if told["severity"] == "warning" { Severity::Warning } else { Severity::Error };
    Diagnostic {
        severity,
        place: place(),
        hint: text("hint"),
        fix: serde_json::from_value(told["fix"].clone()).ok(),
        ..Diagnostic::error(code, text("pointer").unwrap_or_default(), text("message").unwrap_or_default())
    }
}

/// Answers about each file in turn: as JSON under `key`, or as text.
fn each_plan(
    files: &[PathBuf],
    args: &CommonArgs,
    terminal: &Terminal,
    key: &str,
    json: impl Fn(&Plan) -> Value,
    text: impl Fn(&Plan) -> String,
) -> anyhow::Result<Exit> {
    let Some(checker) = Checker::new(args, terminal) else { return Ok(Exit::Refused) };
    let mut exit = Exit::Done;
    let mut gap = "";
    for path in files {
        let file = checker.check(path);
        if args.json {
            let mut answer = file.json();
            answer[key] = file.plan.as_deref().map(&json).into();
            terminal.answer(&format!("{answer}\n"))?;
        } else if let Some(plan) = file.plan_or_remark(terminal) {
            terminal.answer(&format!("{gap}{}", text(plan)))?;
            gap = "\n";
        }
        if file.plan.is_none() {
            exit = Exit::Refused;
        }
    }
    Ok(exit)
}

/// The line an answer about a plan begins with.
fn heading(plan: &Plan) -> String {
    let parallel = match plan.max_parallel {
        1 => "one at a time".to_owned(),
        many => format!("up to {many} at a time"),
    };
    let steps = plural(plan.steps.len(), "step");
    format!("{}: {steps}, {parallel}, within {}\n", Paint::Bold.on(&printable(&plan.name)), plan.deadline)
}

/// The sign for what undoing can achieve.
pub(crate) fn undo_sign(coverage: Coverage, signs: Signs) -> Cell {
    match coverage {
        Coverage::Undoable => Cell::new(signs.undoable, Paint::Green),
        Coverage::Partly => Cell::new(signs.partly, Paint::Yellow),
        Coverage::NotUndoable => Cell::new(signs.not_undoable, Paint::Red),
        Coverage::NothingToUndo => Cell::new(signs.nothing, Paint::Dim),
    }
}

/// Reads one byte more than a document may have, so that too much is noticed and no more is held.
pub(crate) fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let limit = limits::PLAN_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
