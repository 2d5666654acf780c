//! Kills the real program at random moments while it works with tools that have real effects, and has another program
//! check the promises.
//!
//! Several lanes run in parallel, each with its own directory, plans and tools. At the end of each, a checker in Python
//! compares what the program acknowledged, what its journal contains and what the tools saw.

mod agent;
mod agent_call;
mod agent_request;
mod brief;
mod errands;
mod interpreter;
mod lane;
mod notes;
mod operator_actions;
mod pipe;
mod plans;
mod process_life;
mod replans;
mod window;
mod workspace;

use crate::chance::SeededRandom;
use interpreter::Interpreter;
use lane::TortureLane;
use notes::TortureLog;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;
use workspace::TortureWorkspace;

const LANES: u64 = 6;
/// The checker, and what it reads the accounts with.
const CHECKER: [(&str, &str); 2] =
    [("check.py", include_str!("../servers/check.py")), ("accounts.py", include_str!("../servers/accounts.py"))];
/// What so many kills must have met at least once; with fewer, it may be missing by chance.
const EXPECTED: [(&str, u64); 9] = [
    ("agent executions", 200),
    ("agent calls", 200),
    ("agent records", 200),
    ("replans", 200),
    ("handed to agents", 200),
    ("handed to the program", 200),
    ("silent agents replaced", 1_000),
    ("late answers", 1_000),
    ("faults freeze", 1_000),
];
const PACE: Duration = Duration::from_millis(400);

#[derive(Clone, Debug)]
pub struct TortureOptions {
    pub kills: u64,
    /// Determines the plans, faults and aims, but not the timing of the machine.
    pub seed: u64,
    pub rutter: PathBuf,
    /// Keep the directory even without violations.
    pub keep: bool,
}

#[derive(Clone, Debug, Default)]
pub struct TortureReport {
    /// By the aim of the kill.
    pub kills: BTreeMap<&'static str, u64>,
    /// The checker's counts, over all lanes.
    pub counted: BTreeMap<String, u64>,
    pub violations: Vec<TortureViolation>,
    /// The directory, if it was kept.
    pub directory: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TortureViolation {
    pub lane: String,
    /// `I1` to `I14`.
    pub invariant: String,
    pub evidence: String,
}

/// Tortures the program; an error is one of the harness, not of the program.
pub fn torture(options: &TortureOptions) -> Result<TortureReport, String> {
    let interpreter = Interpreter::find()?;
    let memory = tempfile::Builder::new().prefix("rutter-torture-").tempdir_in("/dev/shm");
    // A kill loses nothing that was passed to the system, so a directory in memory is as good and syncs faster.
    let mut home = memory.or_else(|_| tempfile::tempdir()).map_err(|error| error.to_string())?;
    home.disable_cleanup(true);
    for (name, text) in CHECKER {
        fs::write(home.path().join(name), text).map_err(|error| error.to_string())?;
    }
    let checker = home.path().join("check.py");
    let went = thread::scope(|scope| {
        let lanes = (0..LANES.min(options.kills.max(1))).map(|number| {
            let (directory, interpreter) = (home.path().join(format!("l{number}")), &interpreter);
            scope.spawn(move || go(options, number, &directory, interpreter))
        });
        let lanes: Vec<_> = lanes.collect();
        let joined = lanes.into_iter().map(|lane| lane.join().map_err(|_| "a lane panicked".to_owned()));
        joined.collect::<Vec<_>>()
    });
    let mut report = TortureReport::default();
    for (number, went) in went.into_iter().enumerate() {
        for (aim, count) in went.and_then(|went| went)? {
            *report.kills.entry(aim).or_default() += count;
        }
        let lane = format!("l{number}");
        check_invariants(&interpreter, &checker, &home.path().join(&lane), &lane, &mut report)?;
    }
    report.violations.extend(report.proves_too_little());
    let is_kept = options.keep || !report.violations.is_empty();
    report.directory = is_kept.then(|| home.path().to_owned());
    home.disable_cleanup(is_kept);
    Ok(report)
}

impl TortureReport {
    pub fn kills_total(&self) -> u64 {
        self.kills.values().sum()
    }

    /// I14: what did not happen at all among enough kills, or that most steps failed.
    pub fn proves_too_little(&self) -> Vec<TortureViolation> {
        let count = |what: &str| self.counted.get(what).copied().unwrap_or(0);
        let missing = EXPECTED.iter().filter(|(what, enough)| self.kills_total() >= *enough && count(what) == 0);
        let mut evidence: Vec<String> =
            missing.map(|(what, enough)| format!("{enough} kills and more without {what}")).collect();
        let (begun, done) = (count("steps begun"), count("steps done"));
        if begun == 0 || done * 2 < begun {
            evidence.push(format!("{done} of {begun} steps that began succeeded"));
        }
        let violation = |why: String| TortureViolation {
            lane: "all".to_owned(),
            invariant: "I14".to_owned(),
            evidence: format!("{why}: this proves too little"),
        };
        evidence.into_iter().map(violation).collect()
    }
}

fn go(
    options: &TortureOptions,
    number: u64,
    directory: &Path,
    interpreter: &Interpreter,
) -> Result<BTreeMap<&'static str, u64>, String> {
    let mut chance = SeededRandom::new(options.seed.wrapping_mul(LANES).wrapping_add(number));
    let stage = TortureWorkspace::set(directory, interpreter, &mut chance)?;
    let mut notes = TortureLog::open(&directory.join("notes.jsonl"))?;
    notes.write(&workspace::heading());
    let share = options.kills / LANES + u64::from(number < options.kills % LANES);
    let mut lane = TortureLane {
        name: format!("l{number}"),
        rutter: options.rutter.clone(),
        stage,
        notes,
        chance,
        lives: 0,
        plans: 0,
        pace: PACE,
        kills: BTreeMap::new(),
        documents: BTreeMap::new(),
        agents: BTreeMap::new(),
    };
    lane.go(share)?;
    Ok(lane.kills)
}

/// Runs the checker on one lane.
fn check_invariants(
    interpreter: &Interpreter,
    checker: &Path,
    directory: &Path,
    lane: &str,
    report: &mut TortureReport,
) -> Result<(), String> {
    let mut command = Command::new(&interpreter.program);
    let output = command.arg(checker).arg(directory).output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut counted = None;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).map_err(|error| format!("{line:?}: {error}"))?;
        match line["invariant"].as_str() {
            Some(invariant) => report.violations.push(TortureViolation {
                lane: lane.to_owned(),
                invariant: invariant.to_owned(),
                evidence: line["evidence"].as_str().unwrap_or_default().to_owned(),
            }),
            None => counted = line["counted"].as_object().cloned(),
        }
    }
    let counted = counted.ok_or_else(|| format!("the checker failed: {}", String::from_utf8_lossy(&output.stderr)))?;
    for (name, count) in counted {
        *report.counted.entry(name).or_default() += count.as_u64().unwrap_or_default();
    }
    Ok(())
}
