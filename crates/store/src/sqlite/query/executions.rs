//! Listing executions, newest first.

use super::super::executions::{ROW, row_of};
use super::super::fault;
use super::super::position::EntryPosition;
use super::cursor::ListPaging;
use super::search::{self, SearchWords};
use super::select::{SelectStatement, list_of, span};
use super::{number_of, one};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::port::Error;
use rutter_core::port::query::{ExecutionFilter, ExecutionSummary, ListPage};
use std::collections::BTreeSet;
use std::sync::LazyLock;

pub(super) const NUMBER: &str = "select number from execution where tenant = ?1 and id = ?2";

pub(super) fn find(connection: &Connection, identity: &ExecutionIdentity) -> Result<Option<ExecutionSummary>, Error> {
    let Some(tenant) = number_of(connection, &identity.tenant)? else { return Ok(None) };
    match one(connection, NUMBER, params![tenant, identity.execution.as_str()])? {
        Some(number) => summary(connection, number).map(Some),
        None => Ok(None),
    }
}

pub(super) const PLAN_NUMBER: &str = "select number from plan where tenant = ?1 and id = ?2";

pub(super) fn list(
    connection: &Connection,
    tenant: i64,
    filter: &ExecutionFilter,
    words: Option<&SearchWords>,
    paging: ListPaging,
) -> Result<ListPage<ExecutionSummary>, Error> {
    let plan = match &filter.plan {
        None => None,
        Some(id) => match one::<i64>(connection, PLAN_NUMBER, params![tenant, id.as_str()])? {
            Some(number) => Some(number),
            None => return Ok(super::nothing()),
        },
    };
    let wanted = ExecutionSelection { tenant, plan, filter };
    let mut keys = match words {
        Some(words) => search::newest(connection, &wanted.search(words, &paging), &paging)?,
        None => wanted.select(&paging).keys(connection)?,
    };
    let next = paging.cut(&mut keys);
    let items = keys.iter().map(|(_, number)| summary(connection, *number));
    Ok(ListPage { items: items.collect::<Result<_, _>>()?, next })
}

/// A filter with its names looked up.
pub(super) struct ExecutionSelection<'a> {
    pub tenant: i64,
    pub plan: Option<i64>,
    pub filter: &'a ExecutionFilter,
}

const ASKING: &str = "
    select execution.opened_at, execution.number
    from execution indexed by execution_asking
    where execution.tenant = ? and execution.questions > 0";
const PLAN: &str = "
    select execution.opened_at, execution.number
    from execution indexed by execution_plan
    where execution.plan = ?";
const PLAN_STATUS: &str = "
    select execution.opened_at, execution.number
    from execution indexed by execution_plan_status
    where execution.plan = ? and execution.status = ?";
const TAG: &str = "
    select execution_tag.opened_at, execution_tag.execution
    from execution_tag
    cross join execution on execution.number = execution_tag.execution
    where execution_tag.tenant = ? and execution_tag.tag = ?";
const STATUS: &str = "
    select execution.opened_at, execution.number
    from execution indexed by execution_status
    where execution.tenant = ? and execution.status = ?";
const OPENED: &str = "
    select execution.opened_at, execution.number
    from execution indexed by execution_opened
    where execution.tenant = ?";
const MATCHING_ENTRIES: &str = "
    select execution.opened_at, execution.number
    from entry_text
    cross join entry on entry.place = entry_text.rowid
    cross join execution on execution.number = entry.execution
    where entry_text match ? and entry_text.rowid between ? and ?";
const MATCHING_PLANS: &str = "
    select execution.opened_at, execution.number
    from plan_text
    cross join execution indexed by execution_plan on execution.plan = plan_text.rowid - ?
    where plan_text match ? and plan_text.rowid between ? and ?";

const SPAN: &str = "
    and execution.opened_at >= ? and (execution.opened_at, execution.number) < (?, ?)";
const TAG_SPAN: &str = "
    and execution_tag.opened_at >= ? and (execution_tag.opened_at, execution_tag.execution) < (?, ?)";
const AND_ASKING: &str = "
    and execution.questions > 0";
const AND_PLAN: &str = "
    and execution.plan = ?";
const AND_TAG: &str = "
    and exists (
        select 1
        from execution_tag as mark
        where mark.tenant = ? and mark.tag = ? and mark.opened_at = execution.opened_at
            and mark.execution = execution.number)";
const AND_STATUS: &str = "
    and execution.status in (select value from json_each(?))";
const OR: &str = "
    union all";
const NEWEST: &str = "
    order by 1 desc, 2 desc
    limit ?";

impl ExecutionSelection<'_> {
    /// The filter that is likely to match least leads; the others are conditions on its rows.
    pub fn select(&self, paging: &ListPaging) -> SelectStatement {
        let ExecutionSelection { tenant, plan, filter } = self;
        let tenant = Value::from(*tenant);
        let bounds = span(&filter.opened, paging.after);
        let mut select = SelectStatement::default();
        if filter.asking {
            select.add(ASKING, [tenant]);
            select.add(SPAN, bounds);
            select.append(&self.conditions(false, true, true));
        } else if let Some(plan) = plan.filter(|_| !filter.statuses.is_empty()) {
            for (nth, status) in self.statuses().into_iter().enumerate() {
                if nth > 0 {
                    select.add(OR, []);
                }
                select.add(PLAN_STATUS, [plan.into(), status.to_owned().into()]);
                select.add(SPAN, bounds.clone());
                select.append(&self.tagged());
            }
        } else if let Some(plan) = plan {
            select.add(PLAN, [(*plan).into()]);
            select.add(SPAN, bounds);
            select.append(&self.conditions(false, false, true));
        } else if let Some(tag) = &filter.tag {
            select.add(TAG, [tenant, tag.clone().into()]);
            select.add(TAG_SPAN, bounds);
            select.append(&self.conditions(false, false, false));
        } else if !filter.statuses.is_empty() {
            for (nth, status) in self.statuses().into_iter().enumerate() {
                if nth > 0 {
                    select.add(OR, []);
                }
                select.add(STATUS, [tenant.clone(), status.to_owned().into()]);
                select.add(SPAN, bounds.clone());
            }
        } else {
            select.add(OPENED, [tenant]);
            select.add(SPAN, bounds);
        }
        select.add(NEWEST, [paging.look_for().into()]);
        select
    }

    /// Executions with an entry that matches the words, and those whose plan matches them.
    pub fn search(&self, words: &SearchWords, paging: &ListPaging) -> [SelectStatement; 2] {
        let (first, last) = EntryPosition::range(self.tenant);
        let mut select_statement = SelectStatement::default();
        select_statement.add(MATCHING_ENTRIES, [words.value(), first.into(), last.into()]);
        let mut planned = SelectStatement::default();
        planned.add(MATCHING_PLANS, [first.into(), words.value(), first.into(), last.into()]);
        for select in [&mut select_statement, &mut planned] {
            select.add(SPAN, span(&self.filter.opened, paging.after));
            select.append(&self.conditions(true, true, true));
        }
        [select_statement, planned]
    }

    /// The statuses of the filter, without duplicates.
    fn statuses(&self) -> BTreeSet<&'static str> {
        self.filter.statuses.iter().map(|status| status.as_str()).collect()
    }

    fn tagged(&self) -> SelectStatement {
        let mut condition = SelectStatement::default();
        if let Some(name) = &self.filter.tag {
            condition.add(AND_TAG, [self.tenant.into(), name.clone().into()]);
        }
        condition
    }

    fn conditions(&self, asking: bool, plan: bool, tag: bool) -> SelectStatement {
        let mut conditions = SelectStatement::default();
        if self.filter.asking && asking {
            conditions.add(AND_ASKING, []);
        }
        if let Some(number) = self.plan.filter(|_| plan) {
            conditions.add(AND_PLAN, [number.into()]);
        }
        if tag {
            conditions.append(&self.tagged());
        }
        if !self.filter.statuses.is_empty() {
            let statuses: Vec<&str> = self.filter.statuses.iter().map(|status| status.as_str()).collect();
            conditions.add(AND_STATUS, [list_of(&statuses)]);
        }
        conditions
    }
}

/// The name is that of the revision it is carrying out.
pub(super) static SUMMARY: LazyLock<String> = LazyLock::new(|| {
    format!(
        "
    select execution.id, plan.id, execution.seq, execution.commands,
        coalesce((select name from revision where hash = execution.hash limit 1), plan.name), {ROW}
    from execution
    join plan on plan.number = execution.plan
    where execution.number = ?1"
    )
});

fn summary(connection: &Connection, number: i64) -> Result<ExecutionSummary, Error> {
    let mut statement = connection.prepare_cached(&SUMMARY).map_err(fault::of)?;
    let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<_> {
        let (id, plan): (String, String) = (row.get(0)?, row.get(1)?);
        let (entries, commands, name) = (row.get(2)?, row.get(3)?, row.get(4)?);
        let (id, plan) = (ExecutionId::new(&id), PlanId::new(&plan));
        Ok(row_of(row, 5).map(|row| ExecutionSummary { id, plan, name, row, entries, pending_commands: commands }))
    };
    let found = statement.query_row([number], read).optional().map_err(fault::of)?;
    found.unwrap_or_else(|| Err(Error::Corrupt(format!("execution {number} is in an index but not stored"))))
}
