//! Tells what happens to an execution while it happens, by its journal.

use super::narrate::Narrator;
use super::place::Place;
use super::teller::Teller;
use anyhow::bail;
use rutter_core::execution::view::{Ask, Status};
use rutter_core::execution::{Execution, Identity};
use rutter_core::hash::Hash;
use rutter_core::id::PartId;
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(15);
/// No scene needs as long, not even where much else is going on.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Watch<'a> {
    place: &'a Place,
    teller: &'a Teller,
    pub(crate) identity: Identity,
    narrator: Narrator,
    pub(crate) told: usize,
}

impl<'a> Watch<'a> {
    pub(crate) fn of(place: &'a Place, teller: &'a Teller, identity: Identity) -> Watch<'a> {
        Watch { place, teller, identity, narrator: Narrator::default(), told: 0 }
    }

    /// Until it has ended or needs somebody.
    pub(crate) fn until_rest(&mut self) -> anyhow::Result<Execution> {
        self.until(|execution| execution.status().has_ended() || execution.status() == Status::Waiting)
    }

    pub(crate) fn until_end(&mut self) -> anyhow::Result<Execution> {
        self.until(|execution| execution.status().has_ended())
    }

    pub(crate) fn until(&mut self, is_so: impl Fn(&Execution) -> bool) -> anyhow::Result<Execution> {
        let deadline = Instant::now() + PATIENCE;
        let mut archive = self.place.archive()?;
        loop {
            let loaded = archive.load(&self.identity)?;
            for record in loaded.records.iter().skip(self.told) {
                if let Some(progress) = self.narrator.line(record) {
                    self.teller.progress(&progress)?;
                }
            }
            self.told = loaded.records.len();
            let execution = Execution::replay(self.identity.clone(), &loaded.records)?;
            if is_so(&execution) {
                return Ok(execution);
            }
            if Instant::now() > deadline {
                let status = execution.status().as_str();
                bail!("it did not get on: {status} after {PATIENCE:?}{}", self.place.log());
            }
            thread::sleep(POLL);
        }
    }
}

/// The call that waits for a person's yes.
pub(crate) fn asked(execution: &Execution) -> Option<(PartId, Hash)> {
    execution.questions().into_iter().find_map(|ask| match ask {
        Ask::Approval { part, call, .. } => Some((part, call)),
        _ => None,
    })
}
