//! Sails many seeds and says whether a promise was broken; or makes a mistake on purpose and says whether it was seen.

use rutter_core::port::journal::Journal;
use rutter_testkit::memory::Memory;
use rutter_testkit::on_disk::on_sqlite;
use rutter_testkit::simulator::{self, Lend, Report, mutation};
use std::process::ExitCode;

const USAGE: &str =
    "usage: simulate [--seeds N] [--seed S] [--store KIND] [--mutation NAME] [--list-mutations]

  --seeds N           sail seeds 0 to N-1 (default 1000)
  --seed S            sail one seed, and say what happened
  --store KIND        keep the journals in memory (default) or in sqlite, which is slower
  --mutation NAME     make this mistake on purpose; exit 0 only if it is caught
  --list-mutations    print the name of every mistake
";

#[derive(Default)]
struct Args {
    seeds: Option<u64>,
    seed: Option<u64>,
    sqlite: bool,
    mutation: Option<String>,
    list: bool,
}

fn main() -> ExitCode {
    let args = match read(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(wrong) => {
            eprintln!("{wrong}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // A panic is reported with its seed; the text of the default hook would drown it.
    std::panic::set_hook(Box::new(|_| {}));
    if args.list {
        for (name, _) in mutation::all() {
            println!("{name}");
        }
        return ExitCode::SUCCESS;
    }
    let seeds = match args.seed {
        Some(seed) => {
            let told = simulator::voyage::tell(seed, &simulator::plans::catalog(), &Memory::default());
            eprint!("{}", told.unwrap_or_else(|why| format!("{why}\n")));
            seed..seed + 1
        }
        None => 0..args.seeds.unwrap_or(1_000),
    };
    let lend: &Lend = if args.sqlite { &in_sqlite } else { &simulator::in_memory };
    match args.mutation {
        None => clean(&simulator::simulate_on(lend, seeds, None, 10)),
        Some(name) => {
            let Some((_, mistake)) = mutation::all().into_iter().find(|(known, _)| *known == name) else {
                eprintln!("no mutation is called {name:?}; --list-mutations prints them");
                return ExitCode::from(2);
            };
            caught(&name, &simulator::simulate_on(lend, seeds, Some(mistake), 1))
        }
    }
}

fn in_sqlite(voyage: &mut dyn FnMut(&dyn Journal)) {
    on_sqlite(|store| voyage(store));
}

fn read(mut words: impl Iterator<Item = String>) -> Result<Args, String> {
    let mut args = Args::default();
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().unwrap_or_default();
            value.parse::<u64>().map_err(|_| format!("{word} expects a whole number, got {value:?}"))
        };
        match word.as_str() {
            "--seeds" => args.seeds = Some(number()?),
            "--seed" => args.seed = Some(number()?),
            "--mutation" => args.mutation = Some(words.next().ok_or("--mutation expects a name")?),
            "--store" => match words.next().as_deref() {
                Some("memory") => args.sqlite = false,
                Some("sqlite") => args.sqlite = true,
                _ => return Err("--store expects memory or sqlite".to_owned()),
            },
            "--list-mutations" => args.list = true,
            other => return Err(format!("unknown option {other:?}")),
        }
    }
    Ok(args)
}

fn clean(report: &Report) -> ExitCode {
    let tally = &report.tally;
    let [completed, partial, failed, cancelled, compensated] = tally.ended;
    println!("voyages        {:>10}", tally.voyages);
    println!("entries        {:>10}", tally.entries);
    println!("calls          {:>10}", tally.calls);
    println!("steps          {:>10} begun, {} completed", tally.steps_begun, tally.steps_completed);
    println!("crashes        {:>10}", tally.crashes);
    println!("fenced         {:>10}", tally.fenced);
    println!("doubts         {:>10}", tally.doubts);
    println!("late answers   {:>10}", tally.late_answers);
    println!("approvals      {:>10}", tally.approvals);
    println!("replans        {:>10}", tally.replans);
    println!("compensations  {:>10}", tally.compensations);
    println!("hand-overs     {:>10}", tally.handovers);
    println!("tickets        {:>10} given, {} gone on with after a crash", tally.tickets, tally.resumed);
    println!("tools asked    {:>10} times, {} answered", tally.tool_asks, tally.tool_answers);
    println!("deviations     {:>10}", tally.deviations);
    println!("refusals       {:>10}", tally.refusals);
    println!("prefixes       {:>10}", tally.prefixes);
    println!(
        "ends           {completed:>10} completed, {partial} partial, {failed} failed, {cancelled} cancelled, {compensated} compensated, {} left waiting",
        tally.waiting
    );
    println!("violations     {:>10}", report.violations.len());
    for violation in &report.violations {
        println!("  seed {}: {}", violation.seed, violation.what);
    }
    let half = tally.steps_completed * 2 >= tally.steps_begun;
    if !half {
        println!("fewer than half of the steps begun were completed: this proves too little");
    }
    if report.violations.is_empty() && half { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn caught(name: &str, report: &Report) -> ExitCode {
    match report.violations.first() {
        Some(violation) => {
            println!("{name}: caught by seed {}: {}", violation.seed, violation.what);
            ExitCode::SUCCESS
        }
        None => {
            println!("{name}: NOT caught in {} voyages", report.tally.voyages);
            ExitCode::FAILURE
        }
    }
}
