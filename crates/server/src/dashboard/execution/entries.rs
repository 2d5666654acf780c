//! The entries of one execution: as groups, one by one, or as they were written.

use super::Address;
use crate::dashboard::journal::Told;
use crate::desk::Desk;
use crate::fault::Fault;
use rutter_core::execution::Identity;
use rutter_core::id::StepId;
use rutter_core::journal::event::{Event, Question};
use rutter_core::port::query::{Cursor, EntryFilter, EntrySummary, Page};
use rutter_core::time::Timestamp;

/// Entries read for one page at the most, and at once.
const ENTRIES_MAX: usize = 10_000;
const PAGE: u32 = 1_000;
/// Entries shown at once.
const ROWS_MAX: usize = 300;

pub(super) struct Entries {
    /// `groups`, `all` or `json`.
    pub(super) zoom: &'static str,
    pub(super) zooms: Vec<(&'static str, String, bool)>,
    pub(super) text: String,
    pub(super) action: String,
    pub(super) step: String,
    pub(super) groups: Vec<Group>,
    pub(super) rows: Vec<Told>,
    pub(super) note: Option<String>,
    pub(super) more: Option<String>,
    pub(super) export: String,
}

/// Entries about one step that follow each other.
pub(super) struct Group {
    pub(super) title: String,
    pub(super) rows: Vec<Told>,
}

const ZOOMS: [(&str, &str); 3] = [("groups", "Groups"), ("all", "All"), ("json", "JSON")];

impl Entries {
    pub(super) async fn read(
        desk: &Desk,
        identity: &Identity,
        address: &Address<'_>,
        now: Timestamp,
    ) -> Result<Entries, Fault> {
        let visitor = address.visitor;
        let asked = visitor.asked("zoom").unwrap_or("all");
        let (zoom, _) = ZOOMS.iter().find(|(name, _)| *name == asked).copied().unwrap_or(ZOOMS[1]);
        let text = visitor.asked("text").unwrap_or_default().to_owned();
        let wanted = Wanted::read(&text);
        let from = visitor.asked("from").and_then(|from| from.parse::<usize>().ok()).unwrap_or(0);
        let (found, is_whole) = records(desk, identity).await?;
        let step = visitor.asked("step");
        let told = found.iter().filter(|entry| step.is_none_or(|step| is_about(entry, step)));
        let told = told.map(|entry| (entry, Told::of(entry, now)));
        let fitting: Vec<_> = told.filter(|(entry, told)| wanted.fits(entry, told)).collect();
        let total = fitting.len();
        let rows: Vec<_> = fitting.into_iter().skip(from).take(ROWS_MAX).collect();
        let next = from.saturating_add(rows.len());
        let zooms =
            ZOOMS.iter().map(|(name, label)| (*label, address.with(&[("zoom", *name)]), *name == zoom));
        let (groups, rows) = match zoom {
            "groups" => (grouped(rows), Vec::new()),
            _ => (Vec::new(), rows.into_iter().map(|(_, told)| told).collect()),
        };
        Ok(Entries {
            zoom,
            zooms: zooms.collect(),
            text,
            action: address.base.clone(),
            step: step.unwrap_or_default().to_owned(),
            groups,
            rows,
            note: (!is_whole).then(|| format!("Only the first {ENTRIES_MAX} entries are looked through.")),
            more: (next < total).then(|| address.with(&[("from", &next.to_string())])),
            export: format!("/journal/export?execution={}&format=ndjson", identity.execution),
        })
    }
}

/// What the filter box says: `kind:attempt_failed actor:agent` and words that stand in the text.
struct Wanted<'a> {
    kinds: Vec<&'a str>,
    actors: Vec<&'a str>,
    steps: Vec<&'a str>,
    words: Vec<String>,
}

impl Wanted<'_> {
    fn read(text: &str) -> Wanted<'_> {
        let mut wanted =
            Wanted { kinds: Vec::new(), actors: Vec::new(), steps: Vec::new(), words: Vec::new() };
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

    fn fits(&self, entry: &EntrySummary, told: &Told) -> bool {
        let text = told.text.to_lowercase();
        (self.kinds.is_empty() || self.kinds.iter().any(|kind| told.kind.contains(kind)))
            && self.actors.iter().all(|actor| told.actor.contains(actor))
            && self.steps.iter().all(|step| is_about(entry, step))
            && self.words.iter().all(|word| text.contains(word))
    }
}

fn grouped(rows: Vec<(&EntrySummary, Told)>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (entry, told) in rows {
        let title = step_of(&entry.record.event).map_or("the execution", StepId::as_str);
        match groups.last_mut().filter(|group| group.title == title) {
            Some(group) => group.rows.push(told),
            None => groups.push(Group { title: title.to_owned(), rows: vec![told] }),
        }
    }
    groups
}

/// Every entry of an execution up to a bound, and whether that was all.
pub(super) async fn records(desk: &Desk, identity: &Identity) -> Result<(Vec<EntrySummary>, bool), Fault> {
    let mut found: Vec<EntrySummary> = Vec::new();
    let mut after: Option<Cursor> = None;
    loop {
        let filter = EntryFilter { execution: Some(identity.execution.clone()), ..EntryFilter::default() };
        let page = Page { limit: PAGE, after };
        let listing = desk.query.entries(&identity.tenant, filter, page).await?;
        found.extend(listing.items);
        match listing.next {
            None => return Ok((found, true)),
            Some(_) if found.len() >= ENTRIES_MAX => return Ok((found, false)),
            next => after = next,
        }
    }
}

/// Whether an entry names a step, as such or as one of its items.
pub(super) fn is_about(entry: &EntrySummary, step: &str) -> bool {
    match &entry.record.event {
        Event::StepsSkipped { steps, .. } => steps.iter().any(|skipped| skipped.as_str() == step),
        event => step_of(event).is_some_and(|named| named.as_str() == step),
    }
}

/// The one step an event is about.
fn step_of(event: &Event) -> Option<&StepId> {
    match event {
        Event::ApprovalRequested { part, .. }
        | Event::ApprovalGranted { part, .. }
        | Event::ApprovalDenied { part, .. }
        | Event::ApprovalExpired { part, .. }
        | Event::ApprovalVoided { part, .. }
        | Event::AttemptStarted { part, .. }
        | Event::AttemptAccepted { part, .. }
        | Event::ToolAsked { part, .. }
        | Event::ToolAnswered { part, .. }
        | Event::AttemptSucceeded { part, .. }
        | Event::AttemptFailed { part, .. }
        | Event::AttemptLost { part, .. }
        | Event::LateAnswerArrived { part, .. }
        | Event::PreparationFailed { part, .. }
        | Event::RetryAbandoned { part, .. }
        | Event::ProbeInconclusive { part, .. }
        | Event::DoubtSettled { part, .. }
        | Event::CompensationRecorded { part, .. }
        | Event::QuestionAnswered { about: Question::Compensation(part), .. } => Some(&part.step),
        Event::FanOutOpened { step, .. }
        | Event::FailureHandled { step, .. }
        | Event::QuestionAnswered { about: Question::Failure(step), .. } => Some(step),
        Event::DecisionRecorded { step, .. }
        | Event::ActionRecorded { step, .. }
        | Event::DeviationFound { step, .. } => step.as_ref(),
        _ => None,
    }
}
