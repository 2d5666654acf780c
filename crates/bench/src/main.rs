//! `cargo run --release -p rutter-bench -- store|engine|http`: benchmarks.
//!
//! Machines differ and are noisy, so only the ratio of two numbers from one run counts.

mod engine;
mod http;
mod measurement;
mod store;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use measurement::Measurement;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Parser)]
#[command(name = "rutter-bench", about = "Measure Rutter, as ratios of numbers from one run")]
struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Write, verify and query journals on a temporary database, compared with the disk and SQLite alone
    Store(StoreArgs),
    /// Execute plans of ten steps that do nothing, one and many at a time, compared with the bare store
    Engine(EngineArgs),
    /// Send requests over 1, 16 and 128 connections to the HTTP API, compared with the same without HTTP
    Http(HttpArgs),
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// Where the temporary database is created and removed; its disk is the one that is measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Seconds for each measurement
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct StoreArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Entries in the large database
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..=100_000_000))]
    entries: u64,
}

#[derive(Debug, Args)]
struct EngineArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Only execute this many at once, and print the memory in bytes
    #[arg(long, value_name = "N", hide = true)]
    memory_of: Option<u64>,
}

#[derive(Debug, Args)]
struct HttpArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Executions in the database beforehand
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    executions: u64,
}

fn main() -> anyhow::Result<ExitCode> {
    if std::env::args().nth(1).as_deref() == Some(engine::echo::WORD) {
        return Ok(engine::echo::main());
    }
    let args = BenchArgs::parse();
    let common = match &args.command {
        BenchCommand::Store(args) => &args.common,
        BenchCommand::Engine(args) => &args.common,
        BenchCommand::Http(args) => &args.common,
    };
    let scratch = tempfile::Builder::new().prefix("rutter-bench-").tempdir_in(&common.dir);
    let scratch = scratch.with_context(|| format!("no scratch directory in {}", common.dir.display()))?;
    let measured: Vec<Measurement> = match &args.command {
        BenchCommand::Store(args) => store::run(args, scratch.path())?,
        BenchCommand::Engine(args) => match args.memory_of {
            Some(concurrency) => {
                println!("{}", engine::memory_of(scratch.path(), concurrency, args.common.seconds)?);
                return Ok(ExitCode::SUCCESS);
            }
            None => engine::run(args, scratch.path())?,
        },
        BenchCommand::Http(args) => http::run(args, scratch.path())?,
    };
    match common.json {
        true => println!("{:#}", measurement::as_json(&measured)),
        false => print!("{}", measurement::as_table(&measured)),
    }
    Ok(ExitCode::SUCCESS)
}
