//! `rutter journal tail`: the latest entries, and with `--follow` new ones.

use super::entry::EntryFormat;
use crate::args::journal::JournalTailArgs;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::TenantId;
use rutter_core::journal::label::KINDS;
use rutter_core::limits::PAGE_MAX;
use rutter_core::port::Error;
use rutter_core::port::query::{EntryFilter, EntrySummary, PageWalk};
use rutter_core::time::Timestamp;
use rutter_core::wording::{guess, quoted};
use rutter_store::SqliteArchive;
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

const POLL: Duration = Duration::from_secs(1);
/// Entries read per poll. A new entry with an earlier time than all of them is missed.
const LOOKED_AT: usize = 500;
/// If more entries than this are new at once, the older of them are not printed.
const NEW_MAX: usize = 50_000;

pub(crate) fn run(args: &JournalTailArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let tenant = args.tenant.id();
    let archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &tenant)?;
    check_kinds(&args.kinds)?;
    let actor = args.actor.as_deref().map(read_actor);
    let filter = EntryFilter { kinds: args.kinds.clone(), actor, ..EntryFilter::default() };
    let mut end = JournalTail { archive, tenant, filter, seen: BTreeSet::new(), since: Timestamp(i64::MIN) };
    let manner = EntryFormat { is_json: args.store.json, payloads: args.payloads, executions: true };
    let tell = |entries: &[EntrySummary]| {
        terminal.answer(&entries.iter().rev().map(|entry| manner.write(entry)).collect::<String>())
    };
    let count = args.count as usize;
    if !args.follow {
        tell(&end.newest(count)?.0)?;
        return Ok(CommandExit::Done);
    }
    let (newest, more) = end.newest(count.max(LOOKED_AT))?;
    tell(&newest[..count.min(newest.len())])?;
    end.remember(&newest, more);
    loop {
        thread::sleep(POLL);
        tell(&end.news()?)?;
    }
}

/// The end of all journals, with the entries already printed.
struct JournalTail {
    archive: SqliteArchive,
    tenant: TenantId,
    filter: EntryFilter,
    seen: BTreeSet<Hash>,
    /// Older entries are not new, even if they appear because others were removed.
    since: Timestamp,
}

impl JournalTail {
    /// The newest entries, newest first, and whether there are more.
    fn newest(&mut self, count: usize) -> Result<(Vec<EntrySummary>, bool), Error> {
        let mut walk = PageWalk::new(u32::try_from(count).unwrap_or(PAGE_MAX).min(PAGE_MAX));
        let mut newest: Vec<EntrySummary> = Vec::new();
        // A page may be shorter than the limit.
        while newest.len() < count.max(1)
            && let Some(page) = walk.next_page()
        {
            newest.extend(walk.take(self.archive.entries(&self.tenant, self.filter.clone(), &page)?));
        }
        let more = walk.has_more() || newest.len() > count;
        newest.truncate(count);
        Ok((newest, more))
    }

    /// The new entries, newest first.
    fn news(&mut self) -> Result<Vec<EntrySummary>, Error> {
        let mut count = LOOKED_AT;
        let (newest, more) = loop {
            let (newest, more) = self.newest(count)?;
            let all_new = newest.iter().all(|entry| !self.seen.contains(&entry.hash));
            if !all_new || !more || count >= NEW_MAX {
                break (newest, more);
            }
            count *= 10;
        };
        let is_new = |entry: &&EntrySummary| !self.seen.contains(&entry.hash) && entry.record.at >= self.since;
        let news = newest.iter().filter(is_new).cloned().collect();
        self.remember(&newest, more);
        Ok(news)
    }

    fn remember(&mut self, newest: &[EntrySummary], more: bool) {
        self.seen = newest.iter().map(|entry| entry.hash).collect();
        if let Some(oldest) = newest.last().filter(|_| more) {
            self.since = self.since.max(oldest.record.at);
        }
    }
}

/// Refuses an unknown event type, with a suggestion.
fn check_kinds(kinds: &[String]) -> Result<(), CommandRefusal> {
    let Some(unknown) = kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) else { return Ok(()) };
    let refusal = CommandRefusal::new("command.invalid", format!("there is no event type {}", quoted(unknown)));
    Err(match guess(unknown, KINDS.iter().copied()) {
        Some(guess) => refusal.with_hint(format!("did you mean {}?", quoted(guess.word()))),
        None => refusal.with_hint(format!("there are: {}", KINDS.join(", "))),
    })
}

/// An actor as journals print it.
fn read_actor(text: &str) -> Actor {
    match text.split_once(' ') {
        Some(("agent", name)) => Actor::agent(name),
        _ if text == "rutter" => Actor::rutter(),
        _ => Actor::person(text),
    }
}
