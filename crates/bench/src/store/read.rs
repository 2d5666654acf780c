//! The cost of a large database: bytes per step, queries, verification, opening.

use super::executions::{self, BenchExecution};
use super::{find, open};
use crate::baseline::table_bytes;
use crate::measurement::{BenchTarget, Measurement};
use anyhow::ensure;
use rutter_core::id::{TenantId, WorkerId};
use rutter_core::journal::verify::TrustAnchors;
use rutter_core::port::journal::{ClaimRequest, Journal};
use rutter_core::port::query::StoreQuery;
use rutter_core::time::Timestamp;
use rutter_store::sqlite::DATABASE;
use rutter_store::{SqliteArchive, SqliteStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The size of the small database, for comparison.
const SMALL: u64 = 10_000;
/// Executions that are open when a database is opened again.
const OPEN_EXECUTIONS: u64 = 10_000;
/// Tables and indexes that hold payloads; the rest is the journal.
const PAYLOAD_TABLES: [&str; 2] = ["payload", "blob"];

pub(super) async fn measure(scratch: &Path, entries: u64, say: &dyn Fn(&str)) -> anyhow::Result<Vec<Measurement>> {
    let mut measured = Vec::new();
    say(&format!("a database of {SMALL} entries, and its queries"));
    let directory = scratch.join("small");
    let store = Arc::new(open(&directory)?);
    fill(&store, SMALL).await?;
    let small = find::medians(&store).await?;
    drop(store);
    std::fs::remove_dir_all(&directory)?;

    say(&format!("a database of {entries} entries, and its queries"));
    let directory = scratch.join("large");
    let store = Arc::new(open(&directory)?);
    let written = fill(&store, entries).await?;
    let large = find::medians(&store).await?;
    drop(store);

    let mut archive = SqliteArchive::open(&directory)?;
    let tables = table_bytes(&directory.join(DATABASE))?;
    let journal = tables.iter().filter(|(name, _)| !PAYLOAD_TABLES.contains(&name.as_str()));
    let bytes = journal.map(|(_, bytes)| bytes).sum::<u64>() as f64 / (written as f64 / 2.0);
    let ratio = Some((bytes, "bytes", BenchTarget::AtMost(600.0)));
    measured.push(Measurement { what: "journal of one step".into(), value: bytes, unit: "bytes", ratio });

    for ((what, small), (_, large)) in small.into_iter().zip(large) {
        let ratio = Some((large / small, "x of 10,000 entries", BenchTarget::AtMost(2.0)));
        measured.push(Measurement { what: format!("query: {what}"), value: large, unit: "ms", ratio });
    }

    say("verify");
    let trust = TrustAnchors { keys: archive.public_key()?.into_iter().collect(), ..TrustAnchors::default() };
    let start = Instant::now();
    let checked = archive.verify(&TenantId::new(executions::TENANT), trust, false, &mut |_| {})?;
    let rate = checked.verdict.entries as f64 / start.elapsed().as_secs_f64();
    ensure!(checked.is_clean(), "the database does not verify: {checked:?}");
    let ratio = Some((rate / 1_000.0, "thousand entries/s", BenchTarget::AtLeast(500.0)));
    measured.push(Measurement { what: "verify".into(), value: rate, unit: "entries/s", ratio });
    drop(archive);
    std::fs::remove_dir_all(&directory)?;

    say(&format!("opening with {OPEN_EXECUTIONS} open executions"));
    let directory = scratch.join("many");
    let store = open(&directory)?;
    let plan = executions::save_plan(&store).await?;
    let store = Arc::new(store);
    let launched: Vec<_> = (0..OPEN_EXECUTIONS)
        .map(|number| {
            let (store, plan) = (Arc::clone(&store), Arc::clone(&plan));
            tokio::spawn(async move { BenchExecution::open_with_retry(&store, &plan, number).await.map(|_| ()) })
        })
        .collect();
    for ship in launched {
        ship.await??;
    }
    drop(store);
    let start = Instant::now();
    let store = open(&directory)?;
    let worker = WorkerId::new("another");
    store.renew(&worker, Timestamp(i64::MAX)).await?;
    let limit = u32::try_from(OPEN_EXECUTIONS)?;
    let leases = store.claim(ClaimRequest { worker, now: Timestamp(i64::MAX), limit }).await?;
    let claimed = start.elapsed().as_secs_f64();
    ensure!(leases.len() as u64 == OPEN_EXECUTIONS, "only {} executions are due", leases.len());
    for lease in &leases {
        store.load(&lease.identity).await?;
    }
    let loaded = start.elapsed().as_secs_f64();
    let what = "open the database and claim 10,000 executions";
    let ratio = Some((claimed, "s", BenchTarget::AtMost(2.0)));
    measured.push(Measurement { what: what.into(), value: claimed, unit: "s", ratio });
    measured.push(Measurement { what: "and load them, one by one".into(), value: loaded, unit: "s", ratio: None });
    Ok(measured)
}

/// Steps of one execution.
const STEPS: u64 = 100;
/// Executions written concurrently.
const ABREAST: u64 = 500;

/// Writes about this many entries with many writers; returns the exact number.
pub(super) async fn fill(store: &Arc<SqliteStore>, entries: u64) -> anyhow::Result<u64> {
    let plan = executions::save_plan(store).await?;
    let ships = entries / (2 * STEPS);
    for first in (0..ships).step_by(ABREAST as usize) {
        let abreast = (first..ships.min(first + ABREAST)).map(|number| {
            let (store, plan) = (Arc::clone(store), Arc::clone(&plan));
            tokio::spawn(async move {
                let mut ship = BenchExecution::open(&store, &plan, number).await?;
                for _ in 0..STEPS {
                    ship.append_step(&store).await?;
                }
                Ok::<_, rutter_core::port::Error>(())
            })
        });
        for ship in abreast.collect::<Vec<_>>() {
            ship.await??;
        }
    }
    Ok(store.totals(&TenantId::new(executions::TENANT)).await?.entries)
}
