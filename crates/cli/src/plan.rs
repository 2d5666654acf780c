//! Shared by the `plan` commands: reads a file, checks it, and prints the findings.

pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod diff;
pub(crate) mod export;
mod fix;
pub(crate) mod graph;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod named;
pub(crate) mod optimize;
pub(crate) mod preview;
pub(crate) mod save;
pub(crate) mod show;
pub(crate) mod template;

use crate::args::DatabaseArgs;
use crate::args::plan::PlanCommonArgs;
use crate::args::run::ToolSourceArgs;
use crate::clock;
use crate::config::Config;
use crate::config::sources::ConfigSources;
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::report::{FindingSource, plural};
use crate::store;
use crate::table::{CellColor, TableCell};
use crate::terminal::{Terminal, TerminalSymbols};
use named::{RunnablePlan, bytes_of};
use rutter_app::view::{StepRulesView, UnreachableServerView};
use rutter_core::diagnostic::{Diagnostic, DiagnosticSeverity, SourceLocation, count};
use rutter_core::id::TenantId;
use rutter_core::plan::check::check;
use rutter_core::plan::codes::CODES;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::draft::PlanDraft;
use rutter_core::plan::{Driver, Plan};
use rutter_core::policy::OperatorPolicy;
use rutter_core::policy::expect::{ExpectedRule, PlanCaller, StepRules};
use rutter_core::port::tools::ServerSelection;
use rutter_core::preview::UndoCoverage;
use rutter_core::time::Timestamp;
use rutter_core::tool::ToolCatalog;
use rutter_core::wording::quoted;
use rutter_engine::submit::servers_named;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Checks plans against a catalogue.
#[derive(Debug)]
struct PlanChecker {
    catalog: ToolCatalog,
    driver: Driver,
    now: Timestamp,
    policy: OperatorPolicy,
    /// Where saved plans are.
    store: DatabaseArgs,
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
    /// The rules that will or may apply to its steps.
    policy: Vec<StepRules>,
    /// It is a saved plan, not a file.
    is_saved: bool,
}

impl PlanChecker {
    /// Finds the catalogue and says which it is; prints the errors if it is invalid.
    fn new(args: &PlanCommonArgs, files: &[PathBuf], terminal: &Terminal) -> anyhow::Result<Option<PlanChecker>> {
        let now = clock::now();
        let policy = Config::policy(args.config.clone())?;
        let store = DatabaseArgs { dir: None, config: args.config.clone(), json: false };
        let Some(path) = &args.tools else {
            let catalog = if args.uses_settings() { configured(args, files, terminal)? } else { None };
            return Ok(Some(match catalog {
                Some(catalog) => PlanChecker { catalog, driver: args.driver(true), now, policy, store },
                None => {
                    let driver = args.driver(false);
                    if driver == Driver::Agent {
                        let why = if args.no_tools { "--no-tools" } else { "neither --tools nor settings" };
                        terminal.remark(&format!("note: {why}, so tools and their parameters are not checked\n"));
                    }
                    PlanChecker { catalog: ToolCatalog::default(), driver, now, policy, store }
                }
            }));
        };
        let mut file = CheckedPlanFile::read(path);
        if let Some(document) = &file.document {
            match ToolCatalog::from_json(&document.value) {
                Ok(catalog) => {
                    return Ok(Some(PlanChecker { catalog, driver: args.driver(true), now, policy, store }));
                }
                Err(diagnostics) => file.diagnostics = diagnostics,
            }
        }
        terminal.remark(&file.findings());
        terminal.remark(&format!("error: catalogue {} cannot be used\n", file.name));
        Ok(None)
    }

    /// Checks without a catalogue, so that no server is started.
    fn without_tools(policy: OperatorPolicy, store: DatabaseArgs) -> PlanChecker {
        PlanChecker { catalog: ToolCatalog::default(), driver: Driver::Agent, now: clock::now(), policy, store }
    }

    fn check(&self, path: &Path) -> CheckedPlanFile {
        self.check_file(CheckedPlanFile::named(path, &self.store))
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
        file.policy =
            (file.plan.as_deref()).map(|plan| self.policy.expect(plan, PlanCaller::default())).unwrap_or_default();
        file
    }
}

impl CheckedPlanFile {
    /// A file whose findings were made elsewhere.
    pub(crate) fn found(path: &Path, bytes: &[u8], diagnostics: Vec<Diagnostic>) -> CheckedPlanFile {
        let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
        CheckedPlanFile { diagnostics, ..CheckedPlanFile::from_bytes(name, bytes, DocumentFormat::guess(bytes)) }
    }

    /// A file with the findings of the strict reader.
    pub(crate) fn unread(path: &Path, bytes: &[u8]) -> CheckedPlanFile {
        let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
        CheckedPlanFile::from_bytes(name, bytes, DocumentFormat::guess(bytes))
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

    /// Reads a file, or else the saved plan of that name or id, as `rutter run` does.
    fn named(path: &Path, store: &DatabaseArgs) -> CheckedPlanFile {
        let name = match RunnablePlan::at(path) {
            Ok(RunnablePlan::File(bytes)) => return CheckedPlanFile::unread(path, &bytes),
            Ok(RunnablePlan::Saved(name)) => name,
            Err(_) => return CheckedPlanFile::read(path),
        };
        match named::saved(&name, store, &TenantId::new("default")) {
            Ok(saved) => {
                let file = CheckedPlanFile::from_bytes(name, &saved.plan.source, saved.plan.format);
                CheckedPlanFile { is_saved: true, ..file }
            }
            Err(refusal) => CheckedPlanFile::unreadable(name, refusal.to_string()),
        }
    }

    /// Reads and parses a file, or stdin for `-`.
    fn read(path: &Path) -> CheckedPlanFile {
        let name = if path == Path::new("-") { "<stdin>".to_owned() } else { path.display().to_string() };
        match bytes_of(path) {
            Ok(bytes) => CheckedPlanFile::from_bytes(name, &bytes, DocumentFormat::guess(&bytes)),
            Err(error) => {
                let why = format!("cannot read {name}: {error}");
                CheckedPlanFile::unreadable(name, why)
            }
        }
    }

    fn unreadable(name: String, why: String) -> CheckedPlanFile {
        let diagnostics = vec![Diagnostic::error("file.unreadable", "", why)];
        CheckedPlanFile { diagnostics, ..CheckedPlanFile::from_bytes(name, b"", DocumentFormat::Yaml) }
    }

    fn from_bytes(name: String, bytes: &[u8], format: DocumentFormat) -> CheckedPlanFile {
        let (document, diagnostics) = match PlanDocument::read(bytes, format) {
            Ok(document) => (Some(document), Vec::new()),
            Err(diagnostics) => (None, diagnostics),
        };
        let text = String::from_utf8_lossy(bytes).into_owned();
        CheckedPlanFile { name, text, document, plan: None, diagnostics, policy: Vec::new(), is_saved: false }
    }

    fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(|found| found.severity == DiagnosticSeverity::Error)
    }

    /// Whether something is found that is no error, or a step is certainly forbidden by the policy.
    fn has_warnings(&self) -> bool {
        !self.diagnostics.is_empty() || self.policy.iter().any(|step| step.denial().is_some())
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
        let mut answer = json!({
            "file": self.name,
            "ok": plan.is_some(),
            "plan": plan,
            "diagnostics": self.diagnostics.iter().map(|found| subject.json(found)).collect::<Vec<_>>(),
        });
        if !self.policy.is_empty() {
            answer["policy"] = json!(StepRulesView::all(&self.policy));
        }
        answer
    }

    /// The rules that will or may apply to its steps, one per line; a step that is certainly forbidden is a warning.
    fn policy_lines(&self) -> String {
        let of_step = |step: &StepRules| {
            let denial = step.denial();
            let line = |rule: &ExpectedRule| match denial == Some(rule) {
                true => format!("warning: step {} will be refused by the policy, {rule}\n", quoted(step.step.as_str())),
                false => format!("policy: step {}, {rule}\n", quoted(step.step.as_str())),
            };
            step.rules.iter().map(line).collect::<String>()
        };
        self.policy.iter().map(of_step).map(|lines| printable_lines(&lines)).collect()
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

/// The tools of the servers that the plans name, as `rutter run` would find them; `None` without settings.
fn configured(args: &PlanCommonArgs, files: &[PathBuf], terminal: &Terminal) -> anyhow::Result<Option<ToolCatalog>> {
    let store = DatabaseArgs { dir: None, config: args.config.clone(), json: false };
    let sources = ConfigSources::read(&store, &ToolSourceArgs::default())?;
    let settings: Vec<String> = sources.files().map(|path| path.display().to_string()).collect();
    if settings.is_empty() {
        return Ok(None);
    }
    let config = sources.config_without_data()?;
    let known = sources.config().map(|config| store::known_definitions(&config)).unwrap_or_default();
    // Stdin can be read only once, so all servers are asked.
    let selection = match files.iter().any(|path| path == Path::new("-")) {
        true => ServerSelection::All,
        false => {
            let documents = files.iter().filter_map(|path| CheckedPlanFile::named(path, &store).document);
            ServerSelection::Named(documents.flat_map(|document| servers_named(&document.value)).collect())
        }
    };
    let catalog = crate::tools::with_known_tools(config, known, async |registry| {
        Ok(crate::tools::listed(&registry, &selection).await)
    })?;
    let count = plural(catalog.tools.tools.len(), "tool");
    terminal
        .remark(&format!("note: checked against {count} of {}; --no-tools checks without\n", settings.join(" and ")));
    for (server, failure) in &catalog.absent {
        terminal.remark(&format!("{}\n", printable(&format!("server {server} could not be asked: {failure}"))));
    }
    Ok(Some(catalog.tools))
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
    let Some(checker) = PlanChecker::new(args, files, terminal)? else { return Ok(CommandExit::Refused) };
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

/// Prints which rules will or may apply to the steps of a plan. Tools are not looked up.
pub(crate) fn explain_policy(
    path: &Path,
    policy: OperatorPolicy,
    caller: PlanCaller<'_>,
    store: DatabaseArgs,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let is_json = store.json;
    let checker = PlanChecker::without_tools(policy, store);
    let mut file = checker.check(path);
    file.policy = file.plan.as_deref().map(|plan| checker.policy.expect(plan, caller)).unwrap_or_default();
    if is_json {
        let mut answer = file.json();
        answer["policy"] = json!(StepRulesView::all(&file.policy));
        terminal.answer(&format!("{answer}\n"))?;
    } else if let Some(plan) = file.plan_or_remark(terminal) {
        let verdict = match file.policy.len() {
            0 => format!("{}: no rule is about its steps\n", file.name),
            some => format!("{}: rules for {some} of {}\n", file.name, plural(plan.steps.len(), "step")),
        };
        terminal.answer(&format!("{}{}", file.policy_lines(), printable_lines(&verdict)))?;
    }
    Ok(if file.plan.is_some() { CommandExit::Done } else { CommandExit::Refused })
}

/// Every line without characters that a terminal would obey.
fn printable_lines(text: &str) -> String {
    text.lines().map(|line| printable(line) + "\n").collect()
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
