//! Prints the progress of an execution from its journal while it runs.

use super::directory::DemoDirectory;
use super::output::DemoOutput;
use crate::progress::ProgressPrinter;
use anyhow::bail;
use rutter_core::execution::view::{ExecutionStatus, PendingQuestion};
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::hash::Hash;
use rutter_core::id::PartId;
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(15);
/// More than any scene needs, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct DemoWatch<'a> {
    directory: &'a DemoDirectory,
    output: &'a DemoOutput,
    pub(crate) identity: ExecutionIdentity,
    progress: ProgressPrinter,
    pub(crate) entries_printed: usize,
}

impl<'a> DemoWatch<'a> {
    pub(crate) fn of(place: &'a DemoDirectory, teller: &'a DemoOutput, identity: ExecutionIdentity) -> DemoWatch<'a> {
        let progress = ProgressPrinter::new(&teller.terminal, false);
        DemoWatch { directory: place, output: teller, identity, progress, entries_printed: 0 }
    }

    /// Until it has ended or waits for a person.
    pub(crate) fn until_rest(&mut self) -> anyhow::Result<Execution> {
        self.until(|execution| execution.status().has_ended() || execution.status() == ExecutionStatus::Waiting)
    }

    pub(crate) fn until_end(&mut self) -> anyhow::Result<Execution> {
        self.until(|execution| execution.status().has_ended())
    }

    pub(crate) fn until(&mut self, is_so: impl Fn(&Execution) -> bool) -> anyhow::Result<Execution> {
        let deadline = Instant::now() + PATIENCE;
        let mut archive = self.directory.archive()?;
        loop {
            let loaded = archive.load(&self.identity)?;
            for record in loaded.records.iter().skip(self.entries_printed) {
                self.output.record(record);
            }
            for line in self.progress.lines(1, &loaded.records) {
                self.output.progress(&line)?;
            }
            self.entries_printed = loaded.records.len();
            let execution = Execution::replay(self.identity.clone(), &loaded.records)?;
            if is_so(&execution) {
                return Ok(execution);
            }
            if Instant::now() > deadline {
                let status = execution.status().as_str();
                bail!("it is still {status} after {PATIENCE:?}{}", self.directory.log());
            }
            thread::sleep(POLL);
        }
    }
}

/// The call that waits for a person's approval.
pub(crate) fn asked(execution: &Execution) -> Option<(PartId, Hash)> {
    execution.questions().into_iter().find_map(|ask| match ask {
        PendingQuestion::Approval { part, call, .. } => Some((part, call)),
        _ => None,
    })
}
