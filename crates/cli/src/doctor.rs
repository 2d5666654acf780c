//! `rutter doctor`: checks everything that has to work, and suggests fixes.

mod client;
mod data;
mod server;
mod tools;

use crate::args::begin::DoctorArgs;
use crate::config::Config;
use crate::config::sources::{ConfigSources, unknown_variables};
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::table::{CellColor, wrapped};
use crate::terminal::Terminal;
use serde_json::{Value, json};

/// The result of one check.
struct DoctorCheck {
    name: String,
    state: CheckState,
    message: String,
    /// How to fix it.
    fix: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CheckState {
    Fine,
    /// It works, with a warning.
    Doubtful,
    Failed,
}

impl DoctorCheck {
    fn fine(name: &str, statement: impl Into<String>) -> DoctorCheck {
        DoctorCheck { name: name.to_owned(), state: CheckState::Fine, message: statement.into(), fix: None }
    }

    fn doubtful(name: &str, message: impl Into<String>, fix: impl Into<String>) -> DoctorCheck {
        DoctorCheck { state: CheckState::Doubtful, fix: Some(fix.into()), ..DoctorCheck::fine(name, message) }
    }

    fn failed(name: &str, message: impl Into<String>, fix: impl Into<String>) -> DoctorCheck {
        DoctorCheck { state: CheckState::Failed, fix: Some(fix.into()), ..DoctorCheck::fine(name, message) }
    }

    fn json(&self) -> Value {
        let state = match self.state {
            CheckState::Fine => "fine",
            CheckState::Doubtful => "doubtful",
            CheckState::Failed => "failed",
        };
        json!({ "check": self.name, "state": state, "said": self.message, "fix": self.fix })
    }

    fn text(&self, terminal: &Terminal) -> String {
        let sign = match self.state {
            CheckState::Fine => CellColor::Green.on(terminal.signs.done),
            CheckState::Doubtful => CellColor::Yellow.on("!"),
            CheckState::Failed => CellColor::Red.on(terminal.signs.failed),
        };
        let line = wrapped(&format!("  {}: {}", self.name, printable(&self.message)), 4);
        let mut text = format!("{sign} {}\n", line.trim_start());
        if let Some(fix) = &self.fix {
            text += &format!("    {}\n", wrapped(&printable(fix), 4));
        }
        text
    }
}

pub(crate) fn run(args: &DoctorArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let mut checks = Vec::new();
    match settings(args, &mut checks) {
        Some(config) => {
            let who = server::who(&config, &mut checks);
            data::look(&config, who.as_ref(), &mut checks);
            server::look(&config, who.as_ref(), &mut checks);
            tools::look(&config, &mut checks);
        }
        None => checks.push(DoctorCheck::doubtful("the rest", "was not checked", "correct the settings first")),
    }
    client::look(&mut checks);
    let is_well = checks.iter().all(|check| check.state != CheckState::Failed);
    if args.store.json {
        let values: Vec<Value> = checks.iter().map(DoctorCheck::json).collect();
        terminal.answer(&format!("{}\n", json!({ "ok": is_well, "checks": values })))?;
    } else {
        let text: String = checks.iter().map(|check| check.text(terminal)).collect();
        let count = |state| checks.iter().filter(|check| check.state == state).count();
        let (failed, doubtful) = (count(CheckState::Failed), count(CheckState::Doubtful));
        let verdict = match (failed, doubtful) {
            (0, 0) => "everything is fine".to_owned(),
            (0, doubtful) => format!("it works, with {doubtful} warnings"),
            (failed, doubtful) => format!("{failed} failed, {doubtful} warnings"),
        };
        terminal.answer(&format!("{text}\n{verdict}\n"))?;
    }
    Ok(if is_well { CommandExit::Done } else { CommandExit::Differs })
}

/// The settings, if they are valid.
fn settings(args: &DoctorArgs, checks: &mut Vec<DoctorCheck>) -> Option<Config> {
    for name in unknown_variables() {
        checks.push(DoctorCheck::doubtful(
            "environment",
            format!("the variable {name} is unknown"),
            "`rutter config check` suggests the right name",
        ));
    }
    let read = ConfigSources::read(&args.store, &args.tools);
    let read = read.and_then(|sources| sources.config().map(|config| (sources, config)));
    let (sources, config) = match read {
        Ok(read) => read,
        Err(refusal) => {
            let fix = refusal.hint().unwrap_or("correct the file; docs/cli.md lists all settings").to_owned();
            checks.push(DoctorCheck::failed("settings", refusal.to_string(), fix));
            return None;
        }
    };
    let files: Vec<String> = sources.files().map(|path| path.display().to_string()).collect();
    checks.push(match files.as_slice() {
        [] => DoctorCheck::doubtful(
            "settings",
            "there is no rutter.toml here; all settings have their defaults",
            "`rutter init` creates one",
        ),
        files => DoctorCheck::fine("settings", files.join(", ")),
    });
    Some(config)
}
