//! Kills the real program at random moments while it works with tools that have real effects, and lets somebody else
//! say whether a promise was broken.
//!
//! Several lanes go on side by side, each with a directory, plans and tools of its own. At the end of each, a checker in
//! Python compares what the program acknowledged, what its journal says and what the tools saw.

mod hand;
mod interpreter;
mod lane;
mod life;
mod notes;
mod plans;
mod stage;
mod window;

use crate::chance::Chance;
use interpreter::Interpreter;
use lane::Lane;
use notes::Notes;
use serde_json::Value;
use stage::Stage;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

const LANES: u64 = 6;
const CHECKER: &str = include_str!("../servers/check.py");
const PACE: Duration = Duration::from_millis(400);

#[derive(Clone, Debug)]
pub struct Options {
    pub kills: u64,
    /// Fixes the plans, faults and aims, not what the machine makes of them.
    pub seed: u64,
    pub rutter: PathBuf,
    /// Keep the directory also when nothing is wrong.
    pub keep: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Report {
    /// By what the kill was aimed at.
    pub kills: BTreeMap<&'static str, u64>,
    /// What the checker counted, over all lanes.
    pub counted: BTreeMap<String, u64>,
    pub violations: Vec<Violation>,
    /// Where everything is, if it was kept.
    pub directory: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub lane: String,
    /// `I1` to `I14`.
    pub invariant: String,
    pub evidence: String,
}

/// Tortures the program; an error is one of the harness, not of the program.
pub fn torture(options: &Options) -> Result<Report, String> {
    let interpreter = Interpreter::find()?;
    let memory = tempfile::Builder::new().prefix("rutter-torture-").tempdir_in("/dev/shm");
    // A kill loses nothing that was handed to the system, so a directory in memory shows as much and syncs faster.
    let mut home = memory.or_else(|_| tempfile::tempdir()).map_err(|error| error.to_string())?;
    home.disable_cleanup(true);
    let checker = home.path().join("check.py");
    fs::write(&checker, CHECKER).map_err(|error| error.to_string())?;
    let went = thread::scope(|scope| {
        let lanes = (0..LANES.min(options.kills.max(1))).map(|number| {
            let (directory, interpreter) = (home.path().join(format!("l{number}")), &interpreter);
            scope.spawn(move || go(options, number, &directory, interpreter))
        });
        let lanes: Vec<_> = lanes.collect();
        let joined = lanes.into_iter().map(|lane| lane.join().map_err(|_| "a lane panicked".to_owned()));
        joined.collect::<Vec<_>>()
    });
    let mut report = Report::default();
    for (number, went) in went.into_iter().enumerate() {
        for (aim, count) in went.and_then(|went| went)? {
            *report.kills.entry(aim).or_default() += count;
        }
        let lane = format!("l{number}");
        judge(&interpreter, &checker, &home.path().join(&lane), &lane, &mut report)?;
    }
    let is_kept = options.keep || !report.violations.is_empty();
    report.directory = is_kept.then(|| home.path().to_owned());
    home.disable_cleanup(is_kept);
    Ok(report)
}

impl Report {
    pub fn kills_total(&self) -> u64 {
        self.kills.values().sum()
    }
}

fn go(
    options: &Options,
    number: u64,
    directory: &Path,
    interpreter: &Interpreter,
) -> Result<BTreeMap<&'static str, u64>, String> {
    let mut chance = Chance::new(options.seed.wrapping_mul(LANES).wrapping_add(number));
    let stage = Stage::set(directory, interpreter, &mut chance)?;
    let mut notes = Notes::open(&directory.join("notes.jsonl"))?;
    notes.write(&stage::heading());
    let share = options.kills / LANES + u64::from(number < options.kills % LANES);
    let mut lane = Lane {
        name: format!("l{number}"),
        rutter: options.rutter.clone(),
        stage,
        notes,
        chance,
        lives: 0,
        plans: 0,
        pace: PACE,
        kills: BTreeMap::new(),
    };
    lane.go(share)?;
    Ok(lane.kills)
}

/// Has the checker look at one lane.
fn judge(
    interpreter: &Interpreter,
    checker: &Path,
    directory: &Path,
    lane: &str,
    report: &mut Report,
) -> Result<(), String> {
    let mut command = Command::new(&interpreter.program);
    let output = command.arg(checker).arg(directory).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut counted = None;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).map_err(|error| format!("{line:?}: {error}"))?;
        match line["invariant"].as_str() {
            Some(invariant) => report.violations.push(Violation {
                lane: lane.to_owned(),
                invariant: invariant.to_owned(),
                evidence: line["evidence"].as_str().unwrap_or_default().to_owned(),
            }),
            None => counted = line["counted"].as_object().cloned(),
        }
    }
    let counted = counted.ok_or_else(|| {
        format!("the checker did not come to an end: {}", String::from_utf8_lossy(&output.stderr))
    })?;
    for (name, count) in counted {
        *report.counted.entry(name).or_default() += count.as_u64().unwrap_or_default();
    }
    Ok(())
}
