//! `rutter journal show`: one execution from its first entry to its last.

use super::entry::Manner;
use crate::Exit;
use crate::args::journal::ShowArgs;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::id::ExecutionId;
use rutter_core::port::Error;
use rutter_core::port::query::{EntryFilter, Page};

/// Entries looked up at once.
const PAGE: u32 = 200;

pub(crate) fn run(args: &ShowArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let tenant = args.tenant.id();
    let mut archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &tenant)?;
    let execution = ExecutionId::new(&args.execution);
    let filter = EntryFilter { execution: Some(execution), ..EntryFilter::default() };
    let manner = Manner { is_json: args.store.json, payloads: args.payloads, executions: false };
    let mut page = Page::first(PAGE);
    loop {
        let listing = archive.entries(&tenant, filter.clone(), &page)?;
        if listing.items.is_empty() && page.after.is_none() {
            return Err(Error::NotFound { what: "execution", id: args.execution.clone() }.into());
        }
        terminal.answer(&listing.items.iter().map(|entry| manner.tell(entry)).collect::<String>())?;
        match listing.next {
            Some(next) => page.after = Some(next),
            None => return Ok(Exit::Done),
        }
    }
}
