//! `rutter journal tail`: what happened last, and with `--follow` what happens next.

use super::entry::Manner;
use crate::Exit;
use crate::args::journal::TailArgs;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use rutter_core::port::query::{EntryFilter, EntrySummary, Page};
use rutter_store::Archive;
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

const POLL: Duration = Duration::from_secs(1);
/// More new entries than this between two looks are told from the newest of them on.
const NEW_MAX: u32 = 1_000;

pub(crate) fn run(args: &TailArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let tenant = args.tenant.id();
    let mut archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &tenant)?;
    let filter = EntryFilter {
        kinds: args.kinds.clone(),
        actor: args.actor.as_deref().map(read_actor),
        ..EntryFilter::default()
    };
    let manner = Manner { is_json: args.store.json, payloads: args.payloads, executions: true };
    let mut newest = newest(&mut archive, &tenant, &filter, args.count, &BTreeSet::new())?;
    let mut seen = BTreeSet::new();
    loop {
        terminal.answer(&newest.iter().rev().map(|entry| manner.tell(entry)).collect::<String>())?;
        if !args.follow {
            return Ok(Exit::Done);
        }
        if !newest.is_empty() {
            seen = newest.iter().map(|entry| entry.hash).collect();
        }
        thread::sleep(POLL);
        newest = self::newest(&mut archive, &tenant, &filter, NEW_MAX, &seen)?;
    }
}

/// The newest entries, newest first, down to one that was seen before.
fn newest(
    archive: &mut Archive,
    tenant: &TenantId,
    filter: &EntryFilter,
    count: u32,
    seen: &BTreeSet<Hash>,
) -> anyhow::Result<Vec<EntrySummary>> {
    let mut newest = Vec::new();
    let mut page = Page::first(count);
    loop {
        let listing = archive.entries(tenant, filter.clone(), page.clone())?;
        for entry in listing.items {
            if seen.contains(&entry.hash) {
                return Ok(newest);
            }
            newest.push(entry);
        }
        // A page may be shorter than asked for.
        let missing = count.saturating_sub(u32::try_from(newest.len()).unwrap_or(u32::MAX));
        match listing.next {
            Some(next) if missing > 0 => page = Page { limit: missing, after: Some(next) },
            _ => return Ok(newest),
        }
    }
}

/// A party as journals print it.
fn read_actor(text: &str) -> Actor {
    match text.split_once(' ') {
        Some(("agent", name)) => Actor::agent(name),
        _ if text == "rutter" => Actor::rutter(),
        _ => Actor::person(text),
    }
}
