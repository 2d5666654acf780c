//! Builds a copy of the simulator with every deliberate mistake in it, and shows that each is detected.

use rutter_testkit::mutants::{Mutation, SWITCH, SWITCH_MODULE, mutate, mutations};
use std::error::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

const USAGE: &str = "usage: mutants [--seeds N] [NAME...]

  --seeds N    how many seeds may pass before a mistake is noticed (default 25000)
  NAME         only these mistakes

Exit status: 0 every mistake was detected, 1 one was not, 2 the test could not run.
";

/// The members of the workspace. Only those the simulator needs are built; the others are listed so that the features
/// of the dependencies are the same as in the workspace, and their builds are shared.
const CRATES: [&str; 13] = [
    "core",
    "store",
    "testkit",
    "tools",
    "engine",
    "observe",
    "app",
    "mcp",
    "api",
    "web",
    "cli",
    "conformance",
    "bench",
];

/// The simulator with the mistakes.
const SIMULATOR: &str = "simulate_mutants";

/// Seeds that the copy must pass while no mistake is active.
const CLEAN_SEEDS: u64 = 500;

/// The exit statuses of the simulator.
const CLEAN: i32 = 0;
const VIOLATION: i32 = 1;
const TOO_LITTLE: i32 = 3;

fn main() -> ExitCode {
    let mutations = mutations();
    let mut seeds = 25_000;
    let mut names = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seeds" => match words.next().and_then(|number| number.parse().ok()) {
                Some(number) => seeds = number,
                None => return wrong(&mutations, "--seeds expects a whole number"),
            },
            name if mutations.iter().any(|mutation| mutation.name == name) => names.push(name.to_owned()),
            other => return wrong(&mutations, &format!("unknown option or mistake {other:?}")),
        }
    }
    match run(&mutations, seeds, &names) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn wrong(mutations: &[Mutation], what: &str) -> ExitCode {
    eprintln!("{what}\n\n{USAGE}");
    for mutation in mutations {
        eprintln!("  {}", mutation.name);
    }
    ExitCode::from(2)
}

/// Whether every mistake was detected.
fn run(mutations: &[Mutation], seeds: u64, names: &[String]) -> Result<bool, Box<dyn Error>> {
    let begun = Instant::now();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    // Beside this program, so that the copy shares the dependencies built there.
    let program = std::env::current_exe()?;
    let target = program.ancestors().nth(2).ok_or("this program is not in a target directory")?;
    let copy = target.join("mutants");
    copy_workspace(mutations, &root, &copy)?;
    let simulate = build(&copy, target)?;
    println!("{} mistakes built in {} s", mutations.len(), begun.elapsed().as_secs());
    let (status, message) = simulated(&simulate, None, 0..CLEAN_SEEDS)?;
    if status != CLEAN {
        return Err(format!("without a mistake the copy is not clean:\n{message}").into());
    }
    let mut missed = Vec::new();
    for (number, mutation) in mutations.iter().enumerate() {
        if !names.is_empty() && !names.iter().any(|name| name == mutation.name) {
            continue;
        }
        let (status, text) = simulated(&simulate, Some(number), 0..seeds)?;
        let violation = text.lines().find(|line| line.starts_with("  seed "));
        match (status, violation) {
            (VIOLATION, Some(violation)) => {
                is_its_own(&simulate, mutation, violation)?;
                println!("{}:{}", mutation.name, &violation[1..]);
            }
            (CLEAN, _) => {
                println!("{}: NOT detected in {seeds} seeds", mutation.name);
                missed.push(mutation.name);
            }
            _ => return Err(format!("{}: the simulator ended with {status}:\n{text}", mutation.name).into()),
        }
    }
    println!("{} not detected, {} s", missed.len(), begun.elapsed().as_secs());
    Ok(missed.is_empty())
}

/// A violation counts for a mistake only if the same seed is clean without it.
fn is_its_own(simulate: &Path, mutation: &Mutation, violation: &str) -> Result<(), Box<dyn Error>> {
    let seed = violation.trim_start().strip_prefix("seed ").and_then(|rest| rest.split(':').next()?.parse().ok());
    let seed: u64 = seed.ok_or_else(|| format!("not a seed: {violation}"))?;
    let (status, text) = simulated(simulate, None, seed..seed + 1)?;
    match status {
        CLEAN | TOO_LITTLE => Ok(()),
        _ => Err(format!("{}: seed {seed} is a violation without it too:\n{text}", mutation.name).into()),
    }
}

/// Simulates seeds until one is a violation; returns the exit status and the output.
fn simulated(simulate: &Path, mistake: Option<usize>, seeds: Range<u64>) -> Result<(i32, String), Box<dyn Error>> {
    let mut command = Command::new(simulate);
    let (first, count) = (seeds.start.to_string(), (seeds.end - seeds.start).to_string());
    command.args(["--violations", "1", "--first", &first, "--seeds", &count]).env_remove(SWITCH);
    if let Some(number) = mistake {
        command.env(SWITCH, number.to_string());
    }
    let output = command.stderr(Stdio::inherit()).output()?;
    Ok((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stdout).into_owned()))
}

/// Copies the crates, with the mistakes built in and the switch that activates them.
fn copy_workspace(mutations: &[Mutation], root: &Path, copy: &Path) -> Result<(), Box<dyn Error>> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    let members = CRATES.map(|name| format!("\"crates/{name}\"")).join(", ");
    let lines = manifest.lines().map(|line| match line.split_once('=').map(|(key, _)| key.trim()) {
        Some("members") => format!("members = [{members}]\n"),
        Some("default-members") => String::new(),
        _ => format!("{line}\n"),
    });
    write(&copy.join("Cargo.toml"), lines.collect::<String>().as_bytes())?;
    // Cargo removes from the copy what the copied crates do not need.
    let (lock, origin) = (std::fs::read(root.join("Cargo.lock"))?, copy.join("Cargo.lock.origin"));
    if !std::fs::read(&origin).is_ok_and(|found| found == lock) {
        write(&copy.join("Cargo.lock"), &lock)?;
        write(&origin, &lock)?;
    }
    for name in CRATES {
        copy_directory(mutations, root, copy, &Path::new("crates").join(name))?;
    }
    write(&copy.join("crates/core/src/mutant.rs"), SWITCH_MODULE.as_bytes())
}

fn copy_directory(mutations: &[Mutation], root: &Path, copy: &Path, directory: &Path) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let path = directory.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            // Tests are not built; benches are named by the manifest.
            if entry.file_name() != "tests" || directory.ends_with("src") {
                copy_directory(mutations, root, copy, &path)?;
            }
            continue;
        }
        let bytes = std::fs::read(root.join(&path))?;
        let name = path.to_str().ok_or("a path of the repository is not UTF-8")?;
        let path = match name.strip_prefix("crates/testkit/src/bin/") {
            // Under another name, so that the simulator without mistakes stays as it is.
            Some("simulate.rs") => directory.join(SIMULATOR).with_extension("rs"),
            Some(_) => continue,
            None => path.clone(),
        };
        let bytes = match std::str::from_utf8(&bytes) {
            Ok(source) if name.ends_with(".rs") => {
                let switch = if name == "crates/core/src/lib.rs" { "\npub mod mutant;\n" } else { "" };
                (mutate(mutations, name, source)? + switch).into_bytes()
            }
            _ => bytes,
        };
        write(&copy.join(&path), &bytes)?;
    }
    Ok(())
}

/// Leaves an unchanged file alone, so that it is not built again.
fn write(path: &Path, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    if std::fs::read(path).is_ok_and(|found| found == bytes) {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    Ok(std::fs::write(path, bytes)?)
}

fn build(copy: &Path, target: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["build", "--workspace", "--bin", SIMULATOR])
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", target)
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the copy with the mistakes does not build:\n{why}").into());
    }
    Ok(target.join("debug").join(SIMULATOR))
}
