//! Derives spans from entries. Attempts that started before this process are looked up in the journal.

use super::span::{SpanAttribute, SpanStatus, TraceSpan};
use super::{TraceOptions, ids, names};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::attempts::{AttemptChange, AttemptEnd, AttemptKey, ClosedAttempt, OpenAttempt, OpenAttempts};
use rutter_core::journal::codec::StoredRecord;
use rutter_core::journal::event::{Event, EventRecord, ExecutionEnding};
use rutter_core::journal::payload::EventPayload;
use rutter_core::port::Error;
use rutter_core::port::feed::FeedEntry;
use rutter_core::port::query::{EntryFilter, EntrySummary, StoreQuery};
use rutter_core::time::Timestamp;
use rutter_engine::all_pages;
use std::collections::HashMap;
use std::sync::Arc;

/// Open attempts held in memory; others are looked up.
const ATTEMPTS_MAX: usize = 50_000;
/// Longer executions are exported without arguments, because finding them would take too long.
const ENTRIES_SEARCHED_MAX: usize = 3_000;

pub struct SpanDeriver {
    tenant: TenantId,
    query: Arc<dyn StoreQuery>,
    options: TraceOptions,
    attempts: HashMap<ExecutionId, OpenAttempts>,
}

impl SpanDeriver {
    pub fn new(tenant: TenantId, query: Arc<dyn StoreQuery>, options: TraceOptions) -> SpanDeriver {
        SpanDeriver { tenant, query, options, attempts: HashMap::new() }
    }

    /// The span that an entry ends, if any.
    pub async fn spans(&mut self, placed: &FeedEntry) -> Result<Option<TraceSpan>, Error> {
        let stored = &placed.stored;
        let (execution, at) = (&stored.execution, stored.at);
        if let Some(AttemptChange::Closed(closed)) = self.pair(stored) {
            return self.attempt(execution, closed).await;
        }
        match &stored.event {
            Event::Replanned { revision, .. } => {
                let attributes = vec![
                    (names::OPERATION, SpanAttribute::text(names::PLAN)),
                    (names::REVISION, SpanAttribute::Number(u64::from(*revision))),
                ];
                Ok(Some(self.moment(execution, stored.seq, at, names::PLAN, attributes)))
            }
            Event::HandedOver { to, .. } => {
                let attributes = vec![(names::DRIVER, SpanAttribute::text(to.as_str()))];
                Ok(Some(self.moment(execution, stored.seq, at, names::HAND_OVER, attributes)))
            }
            Event::ExecutionEnded { outcome, .. } => self.whole(execution, at, stored.seq, *outcome).await,
            _ => Ok(None),
        }
    }

    /// Tracks open attempts, up to the limit.
    fn pair(&mut self, stored: &StoredRecord) -> Option<AttemptChange> {
        let is_start = matches!(stored.event, Event::AttemptStarted { .. });
        if is_start && self.attempts.values().map(OpenAttempts::len).sum::<usize>() >= ATTEMPTS_MAX {
            self.attempts.clear();
        }
        let open = self.attempts.entry(stored.execution.clone()).or_default();
        let change = open.apply(stored.seq, stored.at, &stored.event);
        if open.is_empty() {
            self.attempts.remove(&stored.execution);
        }
        change
    }

    async fn attempt(&self, execution: &ExecutionId, closed: ClosedAttempt) -> Result<Option<TraceSpan>, Error> {
        let ClosedAttempt { key, start, ended_at: until, ended_seq: seq, end } = closed;
        let start = match start {
            Some(start) => Some(start),
            None => self.look_up(execution, &key, seq).await?,
        };
        // The start is missing if the execution was removed meanwhile.
        let Some(OpenAttempt { seq: from_seq, started_at: from, tool, by, .. }) = start else {
            return Ok(None);
        };
        let AttemptKey { part, side, number } = key;
        let mut attributes = self.attributes(execution);
        attributes.extend([
            (names::OPERATION, SpanAttribute::text(names::EXECUTE_TOOL)),
            (names::TOOL_NAME, SpanAttribute::text(tool.as_str())),
            (names::TOOL_CALL_ID, SpanAttribute::text(format!("{execution}/{from_seq}"))),
            (names::STEP, SpanAttribute::text(part.step.as_str())),
            (names::PART, SpanAttribute::text(part.to_string())),
            (names::SIDE, SpanAttribute::text(side.as_str())),
            (names::ATTEMPT, SpanAttribute::Number(u64::from(number))),
            (names::DRIVER, SpanAttribute::text(by.as_str())),
            (names::OUTCOME, SpanAttribute::text(end.as_str())),
        ]);
        let server = tool.as_str().split_once('.').map_or(tool.as_str(), |(server, _)| server);
        if self.options.mcp_servers.contains(server) {
            attributes.push((names::MCP_METHOD, SpanAttribute::text(names::MCP_CALL)));
        }
        let status = match &end {
            AttemptEnd::Succeeded { cost_micros } => {
                if *cost_micros > 0 {
                    attributes.push((names::COST_MICROS, SpanAttribute::Number(*cost_micros)));
                }
                SpanStatus::Ok
            }
            AttemptEnd::Failed { .. } | AttemptEnd::Lost { .. } | AttemptEnd::Abandoned => {
                let failure = end.failure();
                let kind = failure.map_or(end.as_str(), |failure| failure.category.as_str());
                attributes.push((names::ERROR_TYPE, SpanAttribute::text(kind)));
                // A tool's error message may repeat its arguments.
                let answer = failure.filter(|_| self.options.include_arguments);
                SpanStatus::Error(answer.map_or_else(|| kind.to_owned(), |failure| failure.message.clone()))
            }
        };
        if self.options.include_arguments {
            attributes.extend(self.payloads(execution, from_seq, seq).await?);
        }
        Ok(Some(TraceSpan {
            trace: ids::trace(&self.tenant, execution),
            id: ids::span(&self.tenant, execution, from_seq),
            parent: Some(ids::root(&self.tenant, execution)),
            name: format!("{} {tool}", names::EXECUTE_TOOL),
            from,
            until,
            attributes,
            links: Vec::new(),
            status,
        }))
    }

    /// The span of the whole execution, or of a compensation after it had ended.
    async fn whole(
        &self,
        execution: &ExecutionId,
        until: Timestamp,
        seq: u64,
        outcome: ExecutionEnding,
    ) -> Result<Option<TraceSpan>, Error> {
        let identity = ExecutionIdentity { tenant: self.tenant.clone(), execution: execution.clone() };
        let Some(summary) = self.query.execution(&identity).await? else { return Ok(None) };
        let kinds = ["execution_opened", "replanned", "handed_over", "compensation_started", "execution_ended"];
        let entries = self.entries(execution, &kinds, usize::MAX).await?;
        let before = || entries.iter().filter(|entry| entry.seq < seq);
        let ended_before =
            before().filter(|entry| matches!(entry.record.event, Event::ExecutionEnded { .. })).map(|e| e.seq).max();
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
            (names::OPERATION, SpanAttribute::text(names::INVOKE)),
            (names::INVOKED, SpanAttribute::text(summary.name.as_str())),
            (names::REVISION, SpanAttribute::Number(u64::from(summary.row.revision))),
            (names::DRIVER, SpanAttribute::text(summary.row.driver.as_str())),
            (names::OUTCOME, SpanAttribute::text(outcome.as_str())),
        ]);
        if ended_before.is_some() {
            attributes.push((names::AFTER_THE_END, SpanAttribute::Flag(true)));
        }
        let status = match outcome {
            ExecutionEnding::Completed => SpanStatus::Ok,
            ExecutionEnding::Cancelled | ExecutionEnding::Compensated => SpanStatus::Unset,
            ExecutionEnding::Partial | ExecutionEnding::Failed => {
                attributes.push((names::ERROR_TYPE, SpanAttribute::text(outcome.as_str())));
                SpanStatus::Error(outcome.as_str().to_owned())
            }
        };
        Ok(Some(TraceSpan {
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

    /// A span without duration.
    fn moment(
        &self,
        execution: &ExecutionId,
        seq: u64,
        at: Timestamp,
        name: &str,
        more: Vec<(&'static str, SpanAttribute)>,
    ) -> TraceSpan {
        let mut attributes = self.attributes(execution);
        attributes.extend(more);
        TraceSpan {
            trace: ids::trace(&self.tenant, execution),
            id: ids::span(&self.tenant, execution, seq),
            parent: Some(ids::root(&self.tenant, execution)),
            name: name.to_owned(),
            from: at,
            until: at,
            attributes,
            links: Vec::new(),
            status: SpanStatus::Ok,
        }
    }

    fn attributes(&self, execution: &ExecutionId) -> Vec<(&'static str, SpanAttribute)> {
        vec![
            (names::TENANT, SpanAttribute::text(self.tenant.as_str())),
            (names::EXECUTION, SpanAttribute::text(execution.as_str())),
        ]
    }

    /// Looks up the start of an attempt in the journal.
    async fn look_up(&self, execution: &ExecutionId, key: &AttemptKey, seq: u64) -> Result<Option<OpenAttempt>, Error> {
        let entries = self.entries(execution, &["attempt_started"], usize::MAX).await?;
        let mut started = OpenAttempts::default();
        for EntrySummary { seq, record, .. } in entries.iter().filter(|entry| entry.seq < seq) {
            started.apply(*seq, record.at, &record.event);
        }
        Ok(started.remove(key))
    }

    async fn payloads(
        &self,
        execution: &ExecutionId,
        from_seq: u64,
        until_seq: u64,
    ) -> Result<Vec<(&'static str, SpanAttribute)>, Error> {
        let kinds = ["attempt_started", "attempt_succeeded"];
        let entries = self.entries(execution, &kinds, ENTRIES_SEARCHED_MAX).await?;
        let of = |seq: u64| entries.iter().find(|entry| entry.seq == seq).map(|entry| &entry.record);
        let text = |payload: &EventPayload| payload.value().map(|value| SpanAttribute::text(value.to_string()));
        let arguments = match of(from_seq) {
            Some(EventRecord { event: Event::AttemptStarted { parameters, .. }, .. }) => text(parameters),
            _ => None,
        };
        let result = match of(until_seq) {
            Some(EventRecord { event: Event::AttemptSucceeded { result, .. }, .. }) => text(result),
            _ => None,
        };
        let both = [(names::TOOL_ARGUMENTS, arguments), (names::TOOL_RESULT, result)];
        Ok(both.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    }

    /// Entries of an execution, oldest first, about `max` of them.
    async fn entries(&self, execution: &ExecutionId, kinds: &[&str], max: usize) -> Result<Vec<EntrySummary>, Error> {
        let filter = EntryFilter {
            execution: Some(execution.clone()),
            kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            ..EntryFilter::default()
        };
        let read = |page| self.query.entries(&self.tenant, filter.clone(), page);
        all_pages(max, read).await.map(|(entries, _)| entries)
    }
}
