//! `rutter doctor`: looks at everything that has to work, and says what to do about what does not.

mod client;
mod data;
mod server;
mod tools;

use crate::Exit;
use crate::args::begin::DoctorArgs;
use crate::config::Config;
use crate::config::sources::{Sources, unknown_variables};
use crate::table::{Paint, wrapped};
use crate::terminal::{Terminal, printable};
use serde_json::{Value, json};

/// One thing that was looked at.
struct Check {
    name: String,
    state: State,
    said: String,
    /// What to do about it.
    fix: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Fine,
    /// It works; somebody may want to know.
    Doubtful,
    Failed,
}

impl Check {
    fn fine(name: &str, said: impl Into<String>) -> Check {
        Check { name: name.to_owned(), state: State::Fine, said: said.into(), fix: None }
    }

    fn doubtful(name: &str, said: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { state: State::Doubtful, fix: Some(fix.into()), ..Check::fine(name, said) }
    }

    fn failed(name: &str, said: impl Into<String>, fix: impl Into<String>) -> Check {
        Check { state: State::Failed, fix: Some(fix.into()), ..Check::fine(name, said) }
    }

    fn json(&self) -> Value {
        let state = match self.state {
            State::Fine => "fine",
            State::Doubtful => "doubtful",
            State::Failed => "failed",
        };
        json!({ "check": self.name, "state": state, "said": self.said, "fix": self.fix })
    }

    fn text(&self, terminal: &Terminal) -> String {
        let sign = match self.state {
            State::Fine => Paint::Green.on(terminal.signs.done),
            State::Doubtful => Paint::Yellow.on("!"),
            State::Failed => Paint::Red.on(terminal.signs.failed),
        };
        let line = wrapped(&format!("  {}: {}", self.name, printable(&self.said)), 4);
        let mut text = format!("{sign} {}\n", line.trim_start());
        if let Some(fix) = &self.fix {
            text += &format!("    {}\n", wrapped(&printable(fix), 4));
        }
        text
    }
}

pub(crate) fn run(args: &DoctorArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let mut checks = Vec::new();
    match settings(args, &mut checks) {
        Some(config) => {
            let who = server::who(&config, &mut checks);
            data::look(&config, who.as_ref(), &mut checks);
            server::look(&config, who.as_ref(), &mut checks);
            tools::look(&config, &mut checks);
        }
        None => checks.push(Check::doubtful("the rest", "was not looked at", "correct the settings first")),
    }
    client::look(&mut checks);
    let is_well = checks.iter().all(|check| check.state != State::Failed);
    if args.store.json {
        let told: Vec<Value> = checks.iter().map(Check::json).collect();
        terminal.answer(&format!("{}\n", json!({ "ok": is_well, "checks": told })))?;
    } else {
        let text: String = checks.iter().map(|check| check.text(terminal)).collect();
        let count = |state| checks.iter().filter(|check| check.state == state).count();
        let (failed, doubtful) = (count(State::Failed), count(State::Doubtful));
        let verdict = match (failed, doubtful) {
            (0, 0) => "everything is fine".to_owned(),
            (0, doubtful) => format!("it works; {doubtful} to look at"),
            (failed, doubtful) => format!("{failed} failed, {doubtful} to look at"),
        };
        terminal.answer(&format!("{text}\n{verdict}\n"))?;
    }
    Ok(if is_well { Exit::Done } else { Exit::Differs })
}

/// The settings, where they can be used at all.
fn settings(args: &DoctorArgs, checks: &mut Vec<Check>) -> Option<Config> {
    for name in unknown_variables() {
        checks.push(Check::doubtful(
            "environment",
            format!("the variable {name} means nothing here"),
            "`rutter config check` says what was probably meant",
        ));
    }
    let read = Sources::read(&args.store, &args.tools);
    let read = read.and_then(|sources| sources.config().map(|config| (sources, config)));
    let (sources, config) = match read {
        Ok(read) => read,
        Err(refusal) => {
            let fix = refusal.hint().unwrap_or("correct the file; docs/cli.md lists all settings").to_owned();
            checks.push(Check::failed("settings", refusal.to_string(), fix));
            return None;
        }
    };
    let files: Vec<String> = sources.files().map(|path| path.display().to_string()).collect();
    checks.push(match files.as_slice() {
        [] => Check::doubtful(
            "settings",
            "there is no rutter.toml here, so everything is as by default",
            "`rutter init` writes one",
        ),
        files => Check::fine("settings", files.join(", ")),
    });
    Some(config)
}
