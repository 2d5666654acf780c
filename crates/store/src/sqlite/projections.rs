//! Recomputes every row that is derived from the journals and compares it with the stored one.

use super::executions::{ROW, row_of};
use super::fault;
use super::ledger::LedgerRow;
use super::load;
use super::plans::PlanCache;
use super::verify::DIFFERENCES_MAX;
use rusqlite::Connection;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::ExecutionId;
use rutter_core::journal::chain::HashChain;
use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use std::collections::BTreeMap;

const TOTALS: &str = "select status, count from total where tenant = ?1 and count <> 0";
const COMMANDS: &str = "
    select execution.commands, count(command.number), min(command.at)
    from execution
    left join command on command.execution = execution.number
    where execution.number = ?1";

/// Lists at most ten problems.
const INTEGRITY: &str = "pragma integrity_check(10)";

/// Checks the structure of the file, and every index against its table.
pub(super) fn integrity(connection: &Connection) -> Result<Vec<String>, Error> {
    let rows = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare(INTEGRITY)?;
        let rows = statement.query_map([], |row| row.get(0))?;
        rows.collect()
    };
    let mut found = rows().map_err(fault::of)?;
    found.retain(|found| found != "ok");
    Ok(found)
}

/// Replays every execution of a tenant; returns the differences as text.
pub(super) fn differences(
    connection: &Connection,
    ledger: &LedgerRow,
    plans: &PlanCache,
) -> Result<Vec<String>, Error> {
    let all = format!("select number, id, {ROW} from execution where tenant = ?1 order by number");
    let mut statement = connection.prepare(&all).map_err(fault::of)?;
    let mut rows = statement.query([ledger.number]).map_err(fault::of)?;
    let mut differences = Vec::new();
    let mut totals: BTreeMap<String, u64> = BTreeMap::new();
    while let Some(row) = rows.next().map_err(fault::of)? {
        let (number, id): (i64, String) = (row.get(0).map_err(fault::of)?, row.get(1).map_err(fault::of)?);
        // Words may differ between versions; the state they describe is compared.
        let stored = ExecutionProjection { cause: None, completed: None, ending: None, ..row_of(row, 2)? };
        *totals.entry(stored.status.as_str().to_owned()).or_default() += 1;
        if differences.len() >= DIFFERENCES_MAX {
            continue;
        }
        match derived(connection, ledger, number, &id, plans) {
            Ok(derived) if derived == stored => {}
            // A row of an older version does not say how it deviated.
            Ok(derived)
                if stored.deviations.is_none()
                    && (ExecutionProjection { deviations: None, ..derived.clone() }) == stored => {}
            Ok(derived) => differences.push(format!("{id}: {}", first_difference(&stored, &derived))),
            Err(Error::Corrupt(why)) => differences.push(format!("{id}: {why}")),
            Err(error) => return Err(error),
        }
    }
    let retained = || -> rusqlite::Result<BTreeMap<String, u64>> {
        let mut statement = connection.prepare_cached(TOTALS)?;
        statement.query_map([ledger.number], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let existing: BTreeMap<String, u64> = retained().map_err(fault::of)?;
    let of_executions = existing
        .into_iter()
        .filter(|(status, _)| rutter_core::execution::view::ExecutionStatus::parse(status).is_some());
    let saved: BTreeMap<String, u64> = of_executions.collect();
    if saved != totals {
        differences.push(format!("totals: {saved:?} are stored, {totals:?} were counted"));
    }
    Ok(differences)
}

fn derived(
    connection: &Connection,
    ledger: &LedgerRow,
    number: i64,
    id: &str,
    plans: &PlanCache,
) -> Result<ExecutionProjection, Error> {
    let identity = ExecutionIdentity { tenant: ledger.tenant.clone(), execution: ExecutionId::new(id) };
    let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
    let mut records = Vec::new();
    load::for_each_entry(connection, number, &mut |place, entry| {
        let stored = load::follow(&mut chain, entry)?;
        records.push(load::open(connection, place, stored, plans)?);
        Ok(())
    })?;
    let execution = Execution::replay(identity, &records).map_err(|illegal| Error::Corrupt(illegal.to_string()))?;
    let mut row = ExecutionProjection { cause: None, completed: None, ending: None, ..execution.row() };
    let (retained, commands, oldest): (u64, u64, Option<i64>) = connection
        .prepare_cached(COMMANDS)
        .and_then(|mut statement| statement.query_row([number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))))
        .map_err(fault::of)?;
    if retained != commands {
        return Err(Error::Corrupt(format!("its row counts {retained} commands, {commands} are stored")));
    }
    // A pending command makes an execution due.
    row.due_at = row.due_at.into_iter().chain(oldest.map(Timestamp)).min();
    Ok(row)
}

fn first_difference(stored: &ExecutionProjection, derived: &ExecutionProjection) -> String {
    let (stored, derived) = (serde_json::json!(stored), serde_json::json!(derived));
    let fields = stored.as_object().into_iter().flatten();
    let differing = fields.filter(|(field, value)| derived.get(field.as_str()) != Some(value));
    let answer = differing.map(|(field, value)| {
        let derived = derived.get(field.as_str()).cloned().unwrap_or_default();
        format!("{field} is {value}, its journal says {derived}")
    });
    answer.collect::<Vec<_>>().join("; ")
}
