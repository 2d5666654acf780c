//! A lost answer and a dead server: the charge is looked up and not repeated.

use super::{ORDER, Theatre, order};
use crate::demo::ending::Ending;
use crate::demo::tools::Fault;
use anyhow::{Context, bail};
use rutter_core::execution::view::Status;
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);
const CHARGE: &str = "payments.charge";

pub(super) fn play(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let Theatre { place, teller, .. } = theatre;
    let before = place.book()?.len();
    place.set_fault(CHARGE, Some(Fault::FallsSilent))?;
    let mut watch = theatre.watch(place.carry_out(ORDER, order("4712", 129))?);
    let is_charged = || anyhow::Ok(place.book()?.since(before).effects_of(CHARGE) > 0);
    let deadline = Instant::now() + PATIENCE;
    while !is_charged()? {
        if Instant::now() > deadline {
            bail!("the card was not charged within {PATIENCE:?}{}", place.log());
        }
        thread::sleep(POLL);
    }
    let killed = place.server.get();
    place.crew.kill(killed)?;
    // All that was written before is there, whoever reads it now.
    watch.until(|_| true)?;
    teller.note("charge", format!("the card is charged, and the server (process {killed}) is dead"))?;
    place.set_fault(CHARGE, None)?;
    let server = place.start().context("after the kill")?;
    let entries = watch.told;
    teller
        .note("", format!("a new server (process {server}) has only the journal, with {entries} entries"))?;
    let execution = watch.until_rest()?;

    let mut ending = Ending::new("charges made: 1. The probe found it, and the order went on");
    ending.check("it completed", execution.status() == Status::Completed);
    let lines = place.book()?.since(before);
    ending.check("one charge", lines.effects_of(CHARGE) == 1);
    ending.check("another process finished it", killed != server);
    ending.count(&lines, &[]);
    Ok(ending)
}
