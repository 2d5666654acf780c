//! From entries to spans. What began before this process did is looked up in the journal.

use super::span::{Attribute, Span, Status};
use super::{Options, ids, names};
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PartId, TenantId, ToolName};
use rutter_core::journal::event::{EndedAs, Event, Record, Side};
use rutter_core::journal::payload::Payload;
use rutter_core::limits::PAGE_MAX;
use rutter_core::plan::Driver;
use rutter_core::port::Error;
use rutter_core::port::feed::Placed;
use rutter_core::port::query::{EntryFilter, EntrySummary, Page, Query};
use rutter_core::time::Timestamp;
use rutter_core::tool::Failure;
use std::collections::HashMap;
use std::sync::Arc;

/// Attempts under way that are remembered; others are looked up.
const ATTEMPTS_MAX: usize = 50_000;
/// Of an execution with more entries than this no arguments are sent: they would be looked for too long.
const ENTRIES_SEARCHED_MAX: usize = 3_000;

pub(super) struct Deriver {
    tenant: TenantId,
    query: Arc<dyn Query>,
    options: Options,
    begun: HashMap<Key, Begun>,
}

type Key = (ExecutionId, PartId, Side, u32);

/// An attempt under way.
#[derive(Clone, Debug)]
struct Begun {
    /// Of the entry that says so.
    seq: u64,
    at: Timestamp,
    tool: ToolName,
    by: Driver,
}

/// How an attempt ended.
struct End<'a> {
    outcome: &'static str,
    failure: Option<&'a Failure>,
    cost_micros: u64,
}

impl Deriver {
    pub fn new(tenant: TenantId, query: Arc<dyn Query>, options: Options) -> Deriver {
        Deriver { tenant, query, options, begun: HashMap::new() }
    }

    /// The spans that an entry ends.
    pub async fn spans(&mut self, placed: &Placed) -> Result<Option<Span>, Error> {
        let stored = &placed.stored;
        let (execution, at) = (&stored.execution, stored.at);
        match &stored.event {
            Event::AttemptStarted { part, side, attempt, tool, by, .. } => {
                if self.begun.len() >= ATTEMPTS_MAX {
                    self.begun.clear();
                }
                let begun = Begun { seq: stored.seq, at, tool: tool.clone(), by: *by };
                self.begun.insert((execution.clone(), part.clone(), *side, *attempt), begun);
                Ok(None)
            }
            Event::AttemptSucceeded { part, side, attempt, cost_micros, .. } => {
                let end = End { outcome: "succeeded", failure: None, cost_micros: *cost_micros };
                self.attempt((execution.clone(), part.clone(), *side, *attempt), at, stored.seq, end).await
            }
            Event::AttemptFailed { part, side, attempt, failure, .. } => {
                let end = End { outcome: "failed", failure: Some(failure), cost_micros: 0 };
                self.attempt((execution.clone(), part.clone(), *side, *attempt), at, stored.seq, end).await
            }
            Event::AttemptLost { part, side, attempt, .. } => {
                let end = End { outcome: "lost", failure: None, cost_micros: 0 };
                self.attempt((execution.clone(), part.clone(), *side, *attempt), at, stored.seq, end).await
            }
            Event::Replanned { revision, .. } => {
                let attributes = vec![
                    (names::OPERATION, Attribute::text(names::PLAN)),
                    (names::REVISION, Attribute::Number(u64::from(*revision))),
                ];
                Ok(Some(self.moment(execution, stored.seq, at, names::PLAN, attributes)))
            }
            Event::HandedOver { to, .. } => {
                let attributes = vec![(names::DRIVER, Attribute::text(driver(*to)))];
                Ok(Some(self.moment(execution, stored.seq, at, names::HAND_OVER, attributes)))
            }
            Event::ExecutionEnded { outcome, .. } => self.whole(execution, at, stored.seq, *outcome).await,
            _ => Ok(None),
        }
    }

    async fn attempt(
        &mut self,
        key: Key,
        until: Timestamp,
        seq: u64,
        end: End<'_>,
    ) -> Result<Option<Span>, Error> {
        let begun = match self.begun.remove(&key) {
            Some(begun) => Some(begun),
            None => self.look_up(&key, seq).await?,
        };
        // What was cleaned up meanwhile has no beginning any more.
        let Some(Begun { seq: from_seq, at: from, tool, by }) = begun else { return Ok(None) };
        let (execution, part, side, number) = key;
        let mut attributes = self.attributes(&execution);
        attributes.extend([
            (names::OPERATION, Attribute::text(names::EXECUTE_TOOL)),
            (names::TOOL_NAME, Attribute::text(tool.as_str())),
            (names::TOOL_CALL_ID, Attribute::text(format!("{execution}/{from_seq}"))),
            (names::STEP, Attribute::text(part.step.as_str())),
            (names::PART, Attribute::text(part.to_string())),
            (names::SIDE, Attribute::text(side_of(side))),
            (names::ATTEMPT, Attribute::Number(u64::from(number))),
            (names::DRIVER, Attribute::text(driver(by))),
            (names::OUTCOME, Attribute::text(end.outcome)),
        ]);
        let server = tool.as_str().split_once('.').map_or(tool.as_str(), |(server, _)| server);
        if self.options.mcp_servers.contains(server) {
            attributes.push((names::MCP_METHOD, Attribute::text(names::MCP_CALL)));
        }
        if end.cost_micros > 0 {
            attributes.push((names::COST_MICROS, Attribute::Number(end.cost_micros)));
        }
        let status = match (end.outcome, end.failure) {
            ("succeeded", _) => Status::Ok,
            (outcome, failure) => {
                let kind = failure.map_or(outcome, |failure| failure.category.as_str());
                attributes.push((names::ERROR_TYPE, Attribute::text(kind)));
                // What a tool says of its failure may repeat what it was called with.
                let told = failure.filter(|_| self.options.include_arguments);
                Status::Error(told.map_or_else(|| kind.to_owned(), |failure| failure.message.clone()))
            }
        };
        if self.options.include_arguments {
            attributes.extend(self.payloads(&execution, from_seq, seq).await?);
        }
        Ok(Some(Span {
            trace: ids::trace(&self.tenant, &execution),
            id: ids::span(&self.tenant, &execution, from_seq),
            parent: Some(ids::root(&self.tenant, &execution)),
            name: format!("{} {tool}", names::EXECUTE_TOOL),
            from,
            until,
            attributes,
            links: Vec::new(),
            status,
        }))
    }

    /// The whole execution, or what was undone in it after it had ended.
    async fn whole(
        &self,
        execution: &ExecutionId,
        until: Timestamp,
        seq: u64,
        outcome: EndedAs,
    ) -> Result<Option<Span>, Error> {
        let identity = Identity { tenant: self.tenant.clone(), execution: execution.clone() };
        let Some(summary) = self.query.execution(&identity).await? else { return Ok(None) };
        let kinds =
            ["execution_opened", "replanned", "handed_over", "compensation_started", "execution_ended"];
        let entries = self.entries(execution, &kinds, usize::MAX).await?;
        let before = || entries.iter().filter(|entry| entry.seq < seq);
        let ended_before = before()
            .filter(|entry| matches!(entry.record.event, Event::ExecutionEnded { .. }))
            .map(|e| e.seq)
            .max();
        let from = match ended_before {
            None => summary.row.opened_at,
            Some(ended) => before().find(|entry| entry.seq > ended).map_or(until, |entry| entry.record.at),
        };
        let links = before().filter(|entry| {
            matches!(entry.record.event, Event::Replanned { .. } | Event::HandedOver { .. })
                && ended_before.is_none_or(|ended| entry.seq > ended)
        });
        let root = ids::root(&self.tenant, execution);
        let mut attributes = self.attributes(execution);
        attributes.extend([
            (names::OPERATION, Attribute::text(names::INVOKE)),
            (names::INVOKED, Attribute::text(summary.name.as_str())),
            (names::REVISION, Attribute::Number(u64::from(summary.row.revision))),
            (names::DRIVER, Attribute::text(driver(summary.row.driver))),
            (names::OUTCOME, Attribute::text(outcome_of(outcome))),
        ]);
        if ended_before.is_some() {
            attributes.push((names::AFTER_THE_END, Attribute::Flag(true)));
        }
        let status = match outcome {
            EndedAs::Completed => Status::Ok,
            EndedAs::Cancelled | EndedAs::Compensated => Status::Unset,
            EndedAs::Partial | EndedAs::Failed => {
                attributes.push((names::ERROR_TYPE, Attribute::text(outcome_of(outcome))));
                Status::Error(outcome_of(outcome).to_owned())
            }
        };
        Ok(Some(Span {
            trace: ids::trace(&self.tenant, execution),
            id: if ended_before.is_none() { root.clone() } else { ids::span(&self.tenant, execution, seq) },
            parent: ended_before.is_some().then_some(root),
            name: format!("{} {}", names::INVOKE, summary.name),
            from,
            until,
            attributes,
            links: links.map(|entry| ids::span(&self.tenant, execution, entry.seq)).collect(),
            status,
        }))
    }

    /// Something that takes no time.
    fn moment(
        &self,
        execution: &ExecutionId,
        seq: u64,
        at: Timestamp,
        name: &str,
        more: Vec<(&'static str, Attribute)>,
    ) -> Span {
        let mut attributes = self.attributes(execution);
        attributes.extend(more);
        Span {
            trace: ids::trace(&self.tenant, execution),
            id: ids::span(&self.tenant, execution, seq),
            parent: Some(ids::root(&self.tenant, execution)),
            name: name.to_owned(),
            from: at,
            until: at,
            attributes,
            links: Vec::new(),
            status: Status::Ok,
        }
    }

    fn attributes(&self, execution: &ExecutionId) -> Vec<(&'static str, Attribute)> {
        vec![
            (names::TENANT, Attribute::text(self.tenant.as_str())),
            (names::EXECUTION, Attribute::text(execution.as_str())),
        ]
    }

    /// The start of an attempt that another process has read.
    async fn look_up(&self, key: &Key, seq: u64) -> Result<Option<Begun>, Error> {
        let (execution, part, side, attempt) = key;
        let entries = self.entries(execution, &["attempt_started"], usize::MAX).await?;
        let begun = |entry: &EntrySummary| match &entry.record.event {
            Event::AttemptStarted { part: p, side: s, attempt: a, tool, by, .. }
                if (p, s, a) == (part, side, attempt) && entry.seq < seq =>
            {
                Some(Begun { seq: entry.seq, at: entry.record.at, tool: tool.clone(), by: *by })
            }
            _ => None,
        };
        // A new plan may count from one again; the last one is meant.
        Ok(entries.iter().rev().find_map(begun))
    }

    async fn payloads(
        &self,
        execution: &ExecutionId,
        from_seq: u64,
        until_seq: u64,
    ) -> Result<Vec<(&'static str, Attribute)>, Error> {
        let kinds = ["attempt_started", "attempt_succeeded"];
        let entries = self.entries(execution, &kinds, ENTRIES_SEARCHED_MAX).await?;
        let of = |seq: u64| entries.iter().find(|entry| entry.seq == seq).map(|entry| &entry.record);
        let text = |payload: &Payload| payload.value().map(|value| Attribute::text(value.to_string()));
        let arguments = match of(from_seq) {
            Some(Record { event: Event::AttemptStarted { parameters, .. }, .. }) => text(parameters),
            _ => None,
        };
        let result = match of(until_seq) {
            Some(Record { event: Event::AttemptSucceeded { result, .. }, .. }) => text(result),
            _ => None,
        };
        let both = [(names::TOOL_ARGUMENTS, arguments), (names::TOOL_RESULT, result)];
        Ok(both.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }

    /// Entries of an execution, oldest first, about so many.
    async fn entries(
        &self,
        execution: &ExecutionId,
        kinds: &[&str],
        max: usize,
    ) -> Result<Vec<EntrySummary>, Error> {
        let filter = EntryFilter {
            execution: Some(execution.clone()),
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            ..EntryFilter::default()
        };
        let (mut entries, mut page) = (Vec::new(), Page::first(PAGE_MAX));
        loop {
            let listing = self.query.entries(&self.tenant, filter.clone(), page).await?;
            entries.extend(listing.items);
            match listing.next {
                Some(next) if entries.len() < max => page = Page { limit: PAGE_MAX, after: Some(next) },
                Some(_) | None => return Ok(entries),
            }
        }
    }
}

fn driver(driver: Driver) -> &'static str {
    match driver {
        Driver::Server => "server",
        Driver::Agent => "agent",
    }
}

fn side_of(side: Side) -> &'static str {
    match side {
        Side::Do => "do",
        Side::Fallback => "fallback",
        Side::Undo => "undo",
        Side::Probe => "probe",
    }
}

fn outcome_of(outcome: EndedAs) -> &'static str {
    match outcome {
        EndedAs::Completed => "completed",
        EndedAs::Partial => "partial",
        EndedAs::Failed => "failed",
        EndedAs::Cancelled => "cancelled",
        EndedAs::Compensated => "compensated",
    }
}
