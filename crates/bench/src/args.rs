//! The command line of the benchmarks.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Parser)]
#[command(name = "rutter-bench", about = "Measure Rutter, as ratios of numbers from one run")]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    /// Write, verify and query journals on a temporary database, compared with the disk and SQLite alone
    Store(StoreArgs),
    /// Execute plans of ten steps that do nothing, one and many at a time, compared with the bare store
    Engine(EngineArgs),
    /// Send requests over 1, 16 and 128 connections to the HTTP API, compared with the same without HTTP
    Http(HttpArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Where the temporary database is created and removed; its disk is the one that is measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) dir: PathBuf,
    /// Seconds for each measurement
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    pub(crate) seconds: u64,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct StoreArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Entries in the large database
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(10_000..=100_000_000))]
    pub(crate) entries: u64,
}

#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Only execute this many at once, and print the memory in bytes
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) memory_of: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct HttpArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// Executions in the database beforehand
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) executions: u64,
}
