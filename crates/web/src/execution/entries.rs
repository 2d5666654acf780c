//! The entries of one execution: grouped, one by one, or as JSON.

use super::ExecutionPageUrl;
use crate::journal::EntryRow;
use rutter_app::all_pages;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use rutter_core::port::query::{EntryFilter, EntrySummary};
use rutter_core::time::Timestamp;

/// Entries read for one page.
const ENTRIES_MAX: usize = 10_000;
/// Entries shown on one page.
const ROWS_MAX: usize = 300;

pub(super) struct EntriesTab {
    /// `groups`, `all` or `json`.
    pub(super) zoom: &'static str,
    pub(super) zooms: Vec<(&'static str, String, bool)>,
    pub(super) text: String,
    pub(super) action: String,
    pub(super) step: String,
    pub(super) groups: Vec<EntryGroup>,
    pub(super) rows: Vec<EntryRow>,
    pub(super) note: Option<String>,
    pub(super) more: Option<String>,
    pub(super) export: String,
}

/// Consecutive entries about one step.
pub(super) struct EntryGroup {
    pub(super) title: String,
    pub(super) rows: Vec<EntryRow>,
}

const ZOOMS: [(&str, &str); 3] = [("groups", "Groups"), ("all", "All"), ("json", "JSON")];

impl EntriesTab {
    pub(super) fn of(journal: &PageJournal, address: &ExecutionPageUrl<'_>, now: Timestamp) -> EntriesTab {
        let request = address.request;
        let asked = request.query_value("zoom").unwrap_or("all");
        let (zoom, _) = ZOOMS.iter().find(|(name, _)| *name == asked).copied().unwrap_or(ZOOMS[1]);
        let text = request.query_value("text").unwrap_or_default().to_owned();
        let wanted = EntrySearch::read(&text);
        let from = request.query_value("from").and_then(|from| from.parse::<usize>().ok()).unwrap_or(0);
        let PageJournal { entries: found, is_whole, .. } = journal;
        let step = request.query_value("step");
        let filter = found.iter().filter(|entry| step.is_none_or(|step| entry.record.event.is_about(step)));
        let answer = filter.map(|entry| (entry, EntryRow::of(entry, now)));
        let fitting: Vec<_> = answer.filter(|(entry, report)| wanted.fits(entry, report)).collect();
        let total = fitting.len();
        let rows: Vec<_> = fitting.into_iter().skip(from).take(ROWS_MAX).collect();
        let next = from.saturating_add(rows.len());
        let zooms = ZOOMS.iter().map(|(name, label)| (*label, address.with(&[("zoom", *name)]), *name == zoom));
        let (groups, rows) = match zoom {
            "groups" => (grouped(rows), Vec::new()),
            _ => (Vec::new(), rows.into_iter().map(|(_, entry_row)| entry_row).collect()),
        };
        EntriesTab {
            zoom,
            zooms: zooms.collect(),
            text,
            action: address.base.clone(),
            step: step.unwrap_or_default().to_owned(),
            groups,
            rows,
            note: (!is_whole).then(|| format!("Only the first {ENTRIES_MAX} entries are searched.")),
            more: (next < total).then(|| address.with(&[("from", &next.to_string())])),
            export: format!("/journal/export?execution={}&format=ndjson", journal.execution),
        }
    }
}

/// The parsed filter: `kind:attempt_failed actor:agent`, and words in the text.
struct EntrySearch<'a> {
    kinds: Vec<&'a str>,
    actors: Vec<&'a str>,
    steps: Vec<&'a str>,
    words: Vec<String>,
}

impl EntrySearch<'_> {
    fn read(text: &str) -> EntrySearch<'_> {
        let mut wanted = EntrySearch { kinds: Vec::new(), actors: Vec::new(), steps: Vec::new(), words: Vec::new() };
        for word in text.split_whitespace() {
            match word.split_once(':') {
                Some(("kind", kind)) => wanted.kinds.push(kind),
                Some(("actor", actor)) => wanted.actors.push(actor),
                Some(("step", step)) => wanted.steps.push(step),
                _ => wanted.words.push(word.to_lowercase()),
            }
        }
        wanted
    }

    fn fits(&self, entry: &EntrySummary, answer: &EntryRow) -> bool {
        let text = answer.text.to_lowercase();
        (self.kinds.is_empty() || self.kinds.iter().any(|kind| answer.kind.contains(kind)))
            && self.actors.iter().all(|actor| answer.actor.contains(actor))
            && self.steps.iter().all(|step| entry.record.event.is_about(step))
            && self.words.iter().all(|word| text.contains(word))
    }
}

fn grouped(rows: Vec<(&EntrySummary, EntryRow)>) -> Vec<EntryGroup> {
    let mut groups: Vec<EntryGroup> = Vec::new();
    for (entry, entry_row) in rows {
        let subject = entry.record.event.subject();
        let title = subject.map_or("the execution".to_owned(), |subject| subject.part.step.to_string());
        match groups.last_mut().filter(|group| group.title == title) {
            Some(group) => group.rows.push(entry_row),
            None => groups.push(EntryGroup { title, rows: vec![entry_row] }),
        }
    }
    groups
}

/// The journal of an execution, read once for everything on a page.
pub(super) struct PageJournal {
    execution: ExecutionId,
    pub(super) entries: Vec<EntrySummary>,
    /// Otherwise these are the first entries of a longer journal.
    pub(super) is_whole: bool,
}

pub(super) async fn read_journal(app: &App, identity: &ExecutionIdentity) -> Result<PageJournal, AppError> {
    let filter = EntryFilter { execution: Some(identity.execution.clone()), ..EntryFilter::default() };
    let read = |page| app.query.entries(&identity.tenant, filter.clone(), page);
    let (entries, is_whole) = all_pages(ENTRIES_MAX, read).await?;
    Ok(PageJournal { execution: identity.execution.clone(), entries, is_whole })
}
