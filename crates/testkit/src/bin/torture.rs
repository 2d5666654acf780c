//! Kills the real program again and again, and checks that it kept its promises.

use rutter_testkit::torture::{TortureOptions, TortureReport, torture};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: torture --kills N [--seed S] [--rutter PATH] [--keep]

  --kills N       the number of processes to kill
  --seed S        fixes the plans, faults and aims (default 1)
  --rutter PATH   the program (default: `rutter` beside this one)
  --keep          keep the directory even without violations
";

fn main() -> ExitCode {
    let options = match read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(wrong) => {
            eprintln!("{wrong}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match torture(&options) {
        Ok(report) => tell(&options, &report),
        Err(why) => {
            eprintln!("the torture could not run: {why}");
            ExitCode::from(4)
        }
    }
}

fn read(mut words: impl Iterator<Item = String>) -> Result<TortureOptions, String> {
    let (mut kills, mut seed, mut rutter, mut keep) = (None, 1, None, false);
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().unwrap_or_default();
            value.parse::<u64>().map_err(|_| format!("{word} expects a whole number, got {value:?}"))
        };
        match word.as_str() {
            "--kills" => kills = Some(number()?),
            "--seed" => seed = number()?,
            "--rutter" => rutter = Some(words.next().map(PathBuf::from).ok_or("--rutter expects a path")?),
            "--keep" => keep = true,
            other => return Err(format!("unknown option {other:?}")),
        }
    }
    let beside = || std::env::current_exe().map(|path| path.with_file_name("rutter"));
    let rutter = rutter.map_or_else(beside, Ok).and_then(std::path::absolute);
    let rutter = rutter.map_err(|error| error.to_string())?;
    Ok(TortureOptions { kills: kills.ok_or("how many kills? --kills N")?, seed, rutter, keep })
}

fn tell(options: &TortureOptions, report: &TortureReport) -> ExitCode {
    let aims: Vec<String> = report.kills.iter().map(|(aim, count)| format!("{count} by {aim}")).collect();
    println!("kills                   {:>8}: {}", report.kills_total(), aims.join(", "));
    for (name, count) in &report.counted {
        println!("{name:<24}{count:>8}");
    }
    println!("violations              {:>8}", report.violations.len());
    for violation in &report.violations {
        println!("  {} {}: {}", violation.lane, violation.invariant, violation.evidence);
    }
    if let Some(directory) = &report.directory {
        println!("kept in {}", directory.display());
    }
    if report.violations.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("again: torture --seed {} --kills {}", options.seed, options.kills);
    ExitCode::FAILURE
}
