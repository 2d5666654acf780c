//! A lost response and a killed server: the charge is looked up and not repeated.

use super::{ORDER, SceneContext, order};
use crate::demo::ending::SceneEnding;
use crate::demo::tools::DemoFault;
use anyhow::{Context, bail};
use rutter_core::execution::view::ExecutionStatus;
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);
const CHARGE: &str = "payments.charge";

pub(super) fn play(theatre: &SceneContext<'_>) -> anyhow::Result<SceneEnding> {
    let SceneContext { directory: place, output: teller, .. } = theatre;
    let before = place.call_log()?.len();
    place.set_fault(CHARGE, Some(DemoFault::FallsSilent))?;
    let mut watch = theatre.watch(place.carry_out(ORDER, order("4712", 129))?);
    let is_charged = || anyhow::Ok(place.call_log()?.since(before).effects_of(CHARGE) > 0);
    let deadline = Instant::now() + PATIENCE;
    while !is_charged()? {
        if Instant::now() > deadline {
            bail!("the card was not charged within {PATIENCE:?}{}", place.log());
        }
        thread::sleep(POLL);
    }
    let killed = place.server.get();
    place.processes.kill(killed)?;
    // Everything written before the kill is in the journal.
    watch.until(|_| true)?;
    teller.note(&format!("the card is charged, and the server (process {killed}) is dead"))?;
    place.set_fault(CHARGE, None)?;
    let server = place.start().context("after the kill")?;
    let entries = watch.entries_printed;
    teller.note(&format!("a new server (process {server}) has only the journal, with {entries} entries"))?;
    let execution = watch.until_rest()?;

    let mut ending = SceneEnding::new("charges made: 1. The probe found it, and the order continued");
    ending.check("it completed", execution.status() == ExecutionStatus::Completed);
    let lines = place.call_log()?.since(before);
    ending.check("one charge", lines.effects_of(CHARGE) == 1);
    ending.check("another process finished it", killed != server);
    ending.count(&lines, &[]);
    Ok(ending)
}
