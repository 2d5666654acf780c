//! What a large database costs: bytes for each step, verifying it, opening it.

use super::fleet::{self, Ship};
use super::{Measured, Target, open};
use anyhow::ensure;
use rutter_core::id::{TenantId, WorkerId};
use rutter_core::journal::verify::Trust;
use rutter_core::port::journal::{Claim, Journal};
use rutter_core::time::Timestamp;
use rutter_store::{Archive, Store};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Executions that are open when a database is opened again.
const OPEN_EXECUTIONS: u64 = 10_000;
/// Tables and indexes that hold payloads; the rest is the journal.
const PAYLOAD_TABLES: [&str; 2] = ["payload", "blob"];

pub(super) async fn measure(
    scratch: &Path,
    entries: u64,
    say: &dyn Fn(&str),
) -> anyhow::Result<Vec<Measured>> {
    let mut measured = Vec::new();
    say(&format!("a database of {entries} entries"));
    let directory = scratch.join("large");
    let store = Arc::new(open(&directory)?);
    let written = fill(&store, entries).await?;
    drop(store);

    let mut archive = Archive::open(&directory)?;
    let tables = archive.table_bytes()?;
    let journal = tables.iter().filter(|(name, _)| !PAYLOAD_TABLES.contains(&name.as_str()));
    let bytes = journal.map(|(_, bytes)| bytes).sum::<u64>() as f64 / (written as f64 / 2.0);
    let ratio = Some((bytes, "bytes", Target::AtMost(600.0)));
    measured.push(Measured { what: "journal of one step".into(), value: bytes, unit: "bytes", ratio });

    say("verify");
    let trust = Trust { keys: archive.public_key()?.into_iter().collect(), ..Trust::default() };
    let start = Instant::now();
    let checked = archive.verify(&TenantId::new(fleet::TENANT), trust, false, &mut |_| {})?;
    let rate = checked.verdict.entries as f64 / start.elapsed().as_secs_f64();
    ensure!(checked.is_clean(), "the database does not verify: {checked:?}");
    let ratio = Some((rate / 1_000.0, "thousand entries/s", Target::AtLeast(500.0)));
    measured.push(Measured { what: "verify".into(), value: rate, unit: "entries/s", ratio });
    drop(archive);
    std::fs::remove_dir_all(&directory)?;

    say(&format!("opening with {OPEN_EXECUTIONS} open executions"));
    let directory = scratch.join("many");
    let store = open(&directory)?;
    let plan = fleet::save_plan(&store).await?;
    for number in 0..OPEN_EXECUTIONS {
        Ship::launch(&store, &plan, number).await?;
    }
    drop(store);
    let start = Instant::now();
    let store = open(&directory)?;
    let worker = WorkerId::new("another");
    store.renew(&worker, Timestamp(i64::MAX)).await?;
    let limit = u32::try_from(OPEN_EXECUTIONS)?;
    let leases = store.claim(Claim { worker, now: Timestamp(i64::MAX), limit }).await?;
    let claimed = start.elapsed().as_secs_f64();
    ensure!(leases.len() as u64 == OPEN_EXECUTIONS, "only {} executions are due", leases.len());
    for lease in &leases {
        store.load(&lease.identity).await?;
    }
    let loaded = start.elapsed().as_secs_f64();
    let what = "open the database and claim 10,000 executions";
    let ratio = Some((claimed, "s", Target::AtMost(2.0)));
    measured.push(Measured { what: what.into(), value: claimed, unit: "s", ratio });
    measured.push(Measured {
        what: "and load them, one by one".into(),
        value: loaded,
        unit: "s",
        ratio: None,
    });
    Ok(measured)
}

/// Writes at least so many entries with many writers; returns how many.
async fn fill(store: &Arc<Store>, entries: u64) -> anyhow::Result<u64> {
    const SHIPS: u64 = 500;
    let plan = fleet::save_plan(store).await?;
    let steps = entries / SHIPS / 2;
    let mut sailing = Vec::new();
    for number in 0..SHIPS {
        let mut ship = Ship::launch(store, &plan, number).await?;
        let store = Arc::clone(store);
        sailing.push(tokio::spawn(async move {
            for _ in 0..steps {
                ship.sail(&store).await?;
            }
            Ok::<_, rutter_core::port::Error>(())
        }));
    }
    for ship in sailing {
        ship.await??;
    }
    Ok(SHIPS * (1 + steps * 2))
}
