//! Shared by the `plan` commands: reads a file, checks it, and prints the findings.

pub(crate) mod check;
pub(crate) mod diff;
mod fix;
pub(crate) mod graph;
pub(crate) mod list;
pub(crate) mod preview;
pub(crate) mod save;
pub(crate) mod show;

use crate::args::plan::PlanCommonArgs;
use crate::clock;
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::report::{FindingSource, count, plural};
use crate::table::{CellColor, TableCell};
use crate::terminal::{Terminal, TerminalSymbols};
use rutter_app::view::UnreachableServerView;
use rutter_core::diagnostic::{Diagnostic, DiagnosticSeverity, SourceLocation};
use rutter_core::limits;
use rutter_core::plan::check::check;
use rutter_core::plan::codes::CODES;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::draft::PlanDraft;
use rutter_core::plan::preview::UndoCoverage;
use rutter_core::plan::{Driver, Plan};
use rutter_core::time::Timestamp;
use rutter_core::tool::ToolCatalog;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Checks plans against a catalogue.
#[derive(Debug)]
struct PlanChecker {
    catalog: ToolCatalog,
    driver: Driver,
    now: Timestamp,
}

/// A file that was read and checked.
#[derive(Debug)]
pub(crate) struct CheckedPlanFile {
    name: String,
    text: String,
    document: Option<PlanDocument>,
    /// Present exactly if no error was found.
    plan: Option<Arc<Plan>>,
    diagnostics: Vec<Diagnostic>,
}

impl PlanChecker {
    /// Reads the catalogue; prints the errors if it is invalid.
    fn new(args: &PlanCommonArgs, terminal: &Terminal) -> Option<PlanChecker> {
        let now = clock::now();
        let driver = args.driver();
        let Some(path) = &args.tools else {
            if driver == Driver::Agent {
                terminal.remark("note: no --tools given, so tools and their parameters are not checked\n");
            }
            return Some(PlanChecker { catalog: ToolCatalog::default(), driver, now });
        };
        let mut file = CheckedPlanFile::read(path);
        if let Some(document) = &file.document {
            match ToolCatalog::from_json(&document.value) {
                Ok(catalog) => return Some(PlanChecker { catalog, driver, now }),
                Err(diagnostics) => file.diagnostics = diagnostics,
            }
        }
        terminal.remark(&file.findings());
        terminal.remark(&format!("error: catalogue {} cannot be used\n", file.name));
        None
    }

    fn check(&self, path: &Path) -> CheckedPlanFile {
        self.check_file(CheckedPlanFile::read(path))
    }

    fn check_file(&self, mut file: CheckedPlanFile) -> CheckedPlanFile {
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

impl CheckedPlanFile {
    /// A file whose findings were made elsewhere.
    pub(crate) fn found(path: &Path, bytes: &[u8], diagnostics: Vec<Diagnostic>) -> CheckedPlanFile {
        let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
        CheckedPlanFile { diagnostics, ..CheckedPlanFile::from_bytes(name, bytes, DocumentFormat::guess(bytes)) }
    }

    /// The same from another process's reply; none if the reply has no findings.
    pub(crate) fn from_answer(
        path: &Path,
        bytes: &[u8],
        answer: &Value,
    ) -> Option<(CheckedPlanFile, Vec<UnreachableServerView>)> {
        let details = &answer["error"]["details"];
        let found = details["diagnostics"].as_array()?.iter().map(diagnostic).collect();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let absent = details["servers_not_reached"].as_array().into_iter().flatten();
        let absent =
            absent.map(|absent| UnreachableServerView { server: text(&absent["server"]), why: text(&absent["why"]) });
        Some((CheckedPlanFile::found(path, bytes, found), absent.collect()))
    }

    /// Prints the findings, and the servers whose tools could not be listed.
    pub(crate) fn refuse(
        &self,
        absent: &[UnreachableServerView],
        is_json: bool,
        terminal: &Terminal,
    ) -> anyhow::Result<CommandExit> {
        let servers: Vec<String> = absent
            .iter()
            .map(|absent| format!("server {} could not be asked: {}", absent.server, absent.why))
            .collect();
        if is_json {
            let mut json = self.json();
            json["servers_not_reached"] = json!(absent);
            terminal.answer(&format!("{json}\n"))?;
        }
        terminal.remark(&self.findings());
        servers.iter().for_each(|line| terminal.remark(&format!("{}\n", printable(line))));
        Ok(CommandExit::Refused)
    }

    /// Reads and parses a file, or stdin for `-`.
    fn read(path: &Path) -> CheckedPlanFile {
        let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
        match bytes_of(path) {
            Ok(bytes) => CheckedPlanFile::from_bytes(name, &bytes, DocumentFormat::guess(&bytes)),
            Err(error) => {
                let found = Diagnostic::error("file.unreadable", "", format!("cannot read {name}: {error}"));
                CheckedPlanFile { name, text: String::new(), document: None, plan: None, diagnostics: vec![found] }
            }
        }
    }

    fn from_bytes(name: String, bytes: &[u8], format: DocumentFormat) -> CheckedPlanFile {
        let (document, diagnostics) = match PlanDocument::read(bytes, format) {
            Ok(document) => (Some(document), Vec::new()),
            Err(diagnostics) => (None, diagnostics),
        };
        let text = String::from_utf8_lossy(bytes).into_owned();
        CheckedPlanFile { name, text, document, plan: None, diagnostics }
    }

    fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|found| found.severity == DiagnosticSeverity::Error)
    }

    fn subject<'a>(&'a self, name: &'a str) -> FindingSource<'a> {
        FindingSource::new(name, &self.text, self.document.as_ref().map(|document| &document.spans))
    }

    /// Every finding for the terminal.
    fn findings(&self) -> String {
        self.findings_in(&self.name)
    }

    /// The same under another file name.
    fn findings_in(&self, name: &str) -> String {
        let subject = self.subject(name);
        self.diagnostics.iter().map(|found| subject.render(found)).collect()
    }

    /// The fields every result of a `plan` command begins with.
    fn json(&self) -> Value {
        let subject = self.subject(&self.name);
        let plan =
            self.plan.as_ref().map(|plan| json!({ "name": plan.name, "hash": plan.hash, "steps": plan.steps.len() }));
        json!({
            "file": self.name,
            "ok": plan.is_some(),
            "plan": plan,
            "diagnostics": self.diagnostics.iter().map(|found| subject.json(found)).collect::<Vec<_>>(),
        })
    }

    /// The plan, for commands that need a valid one; otherwise its errors are printed to stderr.
    fn plan_or_remark(&self, terminal: &Terminal) -> Option<&Plan> {
        if self.plan.is_none() {
            terminal.remark(&self.findings());
            let count = count(&self.diagnostics).unwrap_or_default();
            terminal.remark(&format!("error: {} has {count}\n", self.name));
        }
        self.plan.as_deref()
    }
}

/// A finding from another process's JSON.
fn diagnostic(answer: &Value) -> Diagnostic {
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    let code = CODES.iter().find(|code| answer["code"] == **code).copied().unwrap_or("command.wire");
    let number = |name: &str| Some(usize::try_from(answer["place"][name].as_u64()?).unwrap_or(usize::MAX));
    let place = || {
        let (line, column) = (number("line")?, number("column")?);
        Some(SourceLocation { line, column, start: number("start")?, end: number("end")? })
    };
    let severity =
        if answer["severity"] == "warning" { DiagnosticSeverity::Warning } else { DiagnosticSeverity::Error };
    Diagnostic {
        severity,
        place: place(),
        hint: text("hint"),
        fix: serde_json::from_value(answer["fix"].clone()).ok(),
        ..Diagnostic::error(code, text("pointer").unwrap_or_default(), text("message").unwrap_or_default())
    }
}

/// Prints a result for each file: as JSON under `key`, or as text.
fn each_plan(
    files: &[PathBuf],
    args: &PlanCommonArgs,
    terminal: &Terminal,
    key: &str,
    json: impl Fn(&Plan) -> Value,
    text: impl Fn(&Plan) -> String,
) -> anyhow::Result<CommandExit> {
    let Some(checker) = PlanChecker::new(args, terminal) else { return Ok(CommandExit::Refused) };
    let mut exit = CommandExit::Done;
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
            exit = CommandExit::Refused;
        }
    }
    Ok(exit)
}

/// The first line of a result about a plan.
fn heading(plan: &Plan) -> String {
    let parallel = match plan.max_parallel {
        1 => "one at a time".to_owned(),
        many => format!("up to {many} at a time"),
    };
    let steps = plural(plan.steps.len(), "step");
    format!("{}: {steps}, {parallel}, within {}\n", CellColor::Bold.on(&printable(&plan.name)), plan.deadline)
}

/// The symbol for the undo coverage.
pub(crate) fn undo_sign(coverage: UndoCoverage, signs: TerminalSymbols) -> TableCell {
    match coverage {
        UndoCoverage::Undoable => TableCell::new(signs.undoable, CellColor::Green),
        UndoCoverage::Partly => TableCell::new(signs.partly, CellColor::Yellow),
        UndoCoverage::NotUndoable => TableCell::new(signs.not_undoable, CellColor::Red),
        UndoCoverage::NothingToUndo => TableCell::new(signs.nothing, CellColor::Dim),
    }
}

/// Reads at most one byte more than a document may have, so that a longer one is noticed.
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
