//! `rutter journal show`: the journal of one execution.

use super::entry::EntryFormat;
use crate::args::journal::JournalShowArgs;
use crate::exit::CommandExit;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::id::ExecutionId;
use rutter_core::port::Error;
use rutter_core::port::query::{EntryFilter, PageWalk};

/// Entries read at once.
const PAGE: u32 = 200;

pub(crate) fn run(args: &JournalShowArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let tenant = args.tenant.id();
    let mut archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &tenant)?;
    let execution = ExecutionId::new(&args.execution);
    let filter = EntryFilter { execution: Some(execution), ..EntryFilter::default() };
    let manner = EntryFormat { is_json: args.store.json, payloads: args.payloads, executions: false };
    let mut walk = PageWalk::new(PAGE);
    while let Some(page) = walk.next_page() {
        let entries = walk.take(archive.entries(&tenant, filter.clone(), &page)?);
        if entries.is_empty() && page.after.is_none() {
            return Err(Error::NotFound { what: "execution", id: args.execution.clone() }.into());
        }
        terminal.answer(&entries.iter().map(|entry| manner.write(entry)).collect::<String>())?;
    }
    Ok(CommandExit::Done)
}
