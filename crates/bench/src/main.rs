//! `cargo run --release -p rutter-bench -- store|engine|http`: benchmarks.
//!
//! Machines differ and are noisy, so only the ratio of two numbers from one run counts.

mod args;
mod baseline;
mod engine;
mod http;
mod measurement;
mod store;

use anyhow::Context;
use args::{BenchArgs, BenchCommand};
use clap::Parser;
use measurement::Measurement;
use std::process::ExitCode;

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
