//! Simulates many random plans and reports broken promises.

use rutter_core::port::journal::Journal;
use rutter_testkit::memory::MemoryStore;
use rutter_testkit::on_disk::on_sqlite;
use rutter_testkit::simulator::{self, JournalLender, SimulationReport};
use std::ops::Range;
use std::process::ExitCode;

const USAGE: &str = "usage: simulate [--first S] [--seeds N] [--seed S] [--store KIND] [--violations N]

  --first S         begin with this seed (default 0)
  --seeds N         carry out so many seeds (default 1000)
  --seed S          simulate one seed, and print its story
  --store KIND      keep the journals in memory (default) or in sqlite, which is slower
  --violations N    stop after so many broken promises (default 10)

Exit status: 0 no promise was broken, 1 one was, 2 wrong usage, 3 too little happened to prove anything.
";

/// Fewer than half of the steps that began were completed.
const TOO_LITTLE: u8 = 3;

struct Args {
    first: u64,
    seeds: u64,
    seed: Option<u64>,
    sqlite: bool,
    violations: usize,
}

fn main() -> ExitCode {
    let args = match read(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(wrong) => {
            eprintln!("{wrong}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // A panic is reported with its seed; the default hook would print too much.
    std::panic::set_hook(Box::new(|_| {}));
    let seeds = match args.seed {
        Some(seed) => {
            let story = simulator::simulated_run::describe(seed, &simulator::plans::catalog(), &MemoryStore::default());
            eprint!("{}", story.unwrap_or_else(|why| format!("{why}\n")));
            seed..seed.saturating_add(1)
        }
        None => args.first..args.first.saturating_add(args.seeds),
    };
    let lend: &JournalLender = if args.sqlite { &in_sqlite } else { &simulator::in_memory };
    let report = simulator::simulate_on(lend, seeds.clone(), args.violations);
    print(&report, &seeds);
    for violation in &report.violations {
        let store = if args.sqlite { " --store sqlite" } else { "" };
        let simulate = "cargo run --release -p rutter-testkit --bin simulate --";
        println!("  seed {}: {}", violation.seed, violation.what);
        println!("    again: {simulate} --seed {}{store}", violation.seed);
    }
    if !report.violations.is_empty() {
        return ExitCode::FAILURE;
    }
    if report.tally.steps_completed * 2 < report.tally.steps_begun {
        println!("fewer than half of the steps begun were completed: this proves too little");
        return ExitCode::from(TOO_LITTLE);
    }
    ExitCode::SUCCESS
}

fn in_sqlite(run: &mut dyn FnMut(&dyn Journal)) {
    on_sqlite(|store| run(store));
}

fn read(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args { first: 0, seeds: 1_000, seed: None, sqlite: false, violations: 10 };
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().unwrap_or_default();
            value.parse::<u64>().map_err(|_| format!("{word} expects a whole number, got {value:?}"))
        };
        match word.as_str() {
            "--first" => args.first = number()?,
            "--seeds" => args.seeds = number()?,
            "--seed" => args.seed = Some(number()?),
            "--violations" => args.violations = usize::try_from(number()?).unwrap_or(usize::MAX).max(1),
            "--store" => match words.next().as_deref() {
                Some("memory") => args.sqlite = false,
                Some("sqlite") => args.sqlite = true,
                _ => return Err("--store expects memory or sqlite".to_owned()),
            },
            other => return Err(format!("unknown option {other:?}")),
        }
    }
    Ok(args)
}

fn print(report: &SimulationReport, seeds: &Range<u64>) {
    let tally = &report.tally;
    let [completed, partial, failed, cancelled, compensated] = tally.ended;
    println!("first seed     {:>10}", seeds.start);
    println!("seeds          {:>10}", seeds.end - seeds.start);
    println!("runs           {:>10}", tally.runs);
    println!("entries        {:>10}", tally.entries);
    println!("calls          {:>10}", tally.calls);
    println!("steps          {:>10} begun, {} completed", tally.steps_begun, tally.steps_completed);
    println!("crashes        {:>10}", tally.crashes);
    println!("fenced         {:>10}", tally.fenced);
    println!("doubts         {:>10}", tally.doubts);
    println!("late answers   {:>10}, {} of them effects", tally.late_answers, tally.late_effects);
    println!("too early      {:>10} probes; {} keys forgotten", tally.early_probes, tally.forgotten_keys);
    println!("second effects {:>10}", tally.second_effects);
    println!("corrections    {:>10}, {} taken up again", tally.corrections, tally.reopened);
    println!("holds          {:>10}, {} silent agents, {} time limits", tally.holds, tally.silences, tally.time_limits);
    println!("approvals      {:>10}", tally.approvals);
    println!("unproven       {:>10} answers counted, {} refused", tally.unproven, tally.unproven_refused);
    println!("replans        {:>10} followed, {} proposed to a person", tally.replans, tally.proposals);
    println!("denials        {:>10}, {} calls forbidden, {} delayed", tally.denials, tally.forbidden, tally.delays);
    println!("compensations  {:>10}", tally.compensations);
    println!("hand-overs     {:>10}", tally.handovers);
    println!("tickets        {:>10} given, {} resumed after a crash", tally.tickets, tally.resumed);
    println!("tools asked    {:>10} times, {} answered", tally.tool_asks, tally.tool_answers);
    println!("deviations     {:>10}", tally.deviations);
    println!("refusals       {:>10}", tally.refusals);
    println!("batches        {:>10} of several decisions, {} calls withdrawn", tally.batches, tally.withdrawn);
    println!("tools drifted  {:>10}", tally.drifts);
    println!("prefixes       {:>10}", tally.prefixes);
    println!(
        "ends           {completed:>10} completed, {partial} partial, {failed} failed, {cancelled} cancelled, {compensated} compensated, {} left waiting",
        tally.waiting
    );
    println!("violations     {:>10}", report.violations.len());
}
