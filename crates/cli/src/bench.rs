//! `rutter bench store`: how fast journals are written, verified and queried, beside what the disk allows.
//!
//! Machines differ and are noisy, so what counts is the ratio of two numbers from one run.

pub(crate) mod engine;
mod find;
mod fleet;
pub(crate) mod http;
mod read;
mod write;

use crate::Exit;
use crate::args::BenchStoreArgs;
use crate::clock;
use crate::table::{Cell, columns};
use crate::terminal::Terminal;
use anyhow::Context;
use rutter_store::sqlite::baseline;
use rutter_store::{Options, Store};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A number, what it is compared with, and what it should be.
struct Measured {
    what: String,
    value: f64,
    unit: &'static str,
    /// The ratio that counts, and the least (or most) it should be.
    ratio: Option<(f64, &'static str, Target)>,
}

#[derive(Clone, Copy)]
enum Target {
    AtLeast(f64),
    AtMost(f64),
    None,
}

/// About what an entry of a step takes, for the bare table beside us.
const ROW_BYTES: usize = 256;

pub(crate) fn run(args: &BenchStoreArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let scratch = tempfile::Builder::new().prefix("rutter-bench-").tempdir_in(&args.dir);
    let scratch = scratch.with_context(|| format!("no scratch directory in {}", args.dir.display()))?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let say = |text: &str| terminal.remark(&format!("{text}\n"));
    let during = Duration::from_secs(args.seconds);

    say("the disk alone, SQLite alone");
    let syncs = baseline::syncs_per_second(scratch.path(), during)?;
    let commits = baseline::commits_per_second(scratch.path(), ROW_BYTES, during)?;
    let mut measured = vec![
        Measured { what: "page + fdatasync".into(), value: syncs, unit: "/s", ratio: None },
        Measured {
            what: "bare SQLite commit, FULL".into(),
            value: commits,
            unit: "/s",
            ratio: Some((commits / syncs, "x fdatasync", Target::None)),
        },
    ];
    measured.extend(runtime.block_on(write::measure(scratch.path(), during, syncs, commits, &say))?);
    measured.extend(runtime.block_on(read::measure(scratch.path(), args.entries, &say))?);

    match args.json {
        true => terminal.answer(&format!("{:#}\n", as_json(&measured)))?,
        false => terminal.answer(&as_table(&measured))?,
    }
    Ok(Exit::Done)
}

/// A store in a directory of its own.
fn open(directory: &Path) -> anyhow::Result<Store> {
    Ok(Store::open(Options::new(directory, Arc::new(clock::now)))?)
}

fn as_json(measured: &[Measured]) -> Value {
    let one = |measured: &Measured| {
        let mut object =
            json!({"what": measured.what, "value": rounded(measured.value), "unit": measured.unit});
        if let Some((ratio, of, target)) = measured.ratio {
            object["ratio"] = json!((ratio * 1_000.0).round() / 1_000.0);
            object["ratio_of"] = json!(of);
            match target {
                Target::AtLeast(least) => object["at_least"] = json!(least),
                Target::AtMost(most) => object["at_most"] = json!(most),
                Target::None => {}
            }
        }
        object
    };
    json!({"measured": measured.iter().map(one).collect::<Vec<_>>()})
}

fn as_table(measured: &[Measured]) -> String {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for line in measured {
        let (ratio, target) = match line.ratio {
            None => (String::new(), String::new()),
            Some((ratio, of, target)) => {
                let told = match target {
                    Target::AtLeast(least) if ratio >= least => format!("wanted {least}: met"),
                    Target::AtLeast(least) => format!("wanted {least}: missed"),
                    Target::AtMost(most) if ratio <= most => format!("at most {most}: met"),
                    Target::AtMost(most) => format!("at most {most}: missed"),
                    Target::None => String::new(),
                };
                (format!("{ratio:.2} {of}"), told)
            }
        };
        let value = format!("{} {}", grouped(line.value), line.unit);
        rows.push(vec![line.what.as_str().into(), value.into(), ratio.into(), target.into()]);
    }
    columns(&rows).into_iter().map(|line| line.trim_end().to_owned() + "\n").collect()
}

fn rounded(value: f64) -> f64 {
    if value >= 100.0 { value.round() } else { (value * 100.0).round() / 100.0 }
}

/// Thousands apart, so that large numbers can be read.
fn grouped(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for group in digits.as_bytes()[first..].chunks(3) {
        if !text.is_empty() {
            text.push(',');
        }
        text.extend(group.iter().map(|digit| char::from(*digit)));
    }
    text
}
