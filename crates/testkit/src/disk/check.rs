//! Compares the contents of a store with the account of its requests and replies.

use crate::disk::account::{HandedEntries, StoreAccount, StoreAnswer};
use crate::disk::vfs;
use crate::disk::workload::{TENANT, text_of};
use rusqlite::{Connection, OpenFlags};
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::port::Error;
use rutter_core::port::journal::{Journal, StoredCommand};
use rutter_store::sqlite::DATABASE;
use rutter_store::{SqliteStore, wait};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Checks an open store and returns its contents. An error names the first broken promise.
///
/// Everything acknowledged is present, and nothing that was never sent or was refused; each append is present
/// completely or not at all; each journal can be read, follows its chain and replays to its row.
pub fn check(account: &StoreAccount, store: &SqliteStore, directory: &Path) -> Result<StoreContents, String> {
    let found = StoreContents::read(store, directory)?;
    check_plans(account, &found)?;
    let known: BTreeSet<&String> = found.executions.keys().chain(account.executions.keys()).collect();
    for execution in known {
        let handed = account.executions.get(execution).map_or(&[][..], Vec::as_slice);
        let journal = found.executions.get(execution);
        let answer = |broken: String| format!("{execution}: {broken}");
        check_entries(handed, journal.map_or(&[][..], |journal| &journal.hashes)).map_err(answer)?;
        let form = account.commands.get(execution).map_or(&[][..], Vec::as_slice);
        if let Some(journal) = journal {
            check_commands(handed, form, journal).map_err(answer)?;
            let epoch = account.epochs.get(execution).copied().unwrap_or(0);
            if journal.epoch < epoch {
                return Err(answer(format!("epoch {epoch} was given, and the row has {}", journal.epoch)));
            }
        }
    }
    Ok(found)
}

/// The contents of a store, read from its tables and through its port.
#[derive(Debug, Default)]
pub struct StoreContents {
    pub plans: BTreeSet<(String, Hash)>,
    pub executions: BTreeMap<String, JournalContents>,
}

#[derive(Debug)]
pub struct JournalContents {
    /// The hashes of its entries, from the first on.
    pub hashes: Vec<Hash>,
    pub epoch: u64,
    /// The texts of pending commands.
    pub commands: Vec<String>,
}

impl StoreContents {
    /// Reads everything, and fails if it is inconsistent.
    pub fn read(store: &SqliteStore, directory: &Path) -> Result<StoreContents, String> {
        vfs::register();
        let path = directory.join(DATABASE);
        let connection = Connection::open_with_flags_and_vfs(path, OpenFlags::SQLITE_OPEN_READ_ONLY, vfs::VFS);
        let connection = connection.map_err(|error| format!("cannot be opened: {error}"))?;
        let mut found = read_tables(&connection).map_err(|error| format!("cannot be read: {error}"))?;
        check_tables(&connection)?;
        for (execution, row) in rows(&connection).map_err(|error| format!("its rows cannot be read: {error}"))? {
            let journal = found.executions.get_mut(&execution).expect("both have every execution");
            load(store, &execution, &row, journal).map_err(|broken| format!("{execution}: {broken}"))?;
        }
        Ok(found)
    }
}

fn check_plans(account: &StoreAccount, found: &StoreContents) -> Result<(), String> {
    for (id, hash) in &found.plans {
        if !account.plans.iter().any(|(asked, of, message)| (asked, of) == (id, hash) && may_be(message)) {
            return Err(format!("{id} is present and was never saved"));
        }
    }
    for (id, hash, statement) in &account.plans {
        if *statement == StoreAnswer::Yes && !found.plans.contains(&(id.clone(), *hash)) {
            return Err(format!("{id} was saved and is missing"));
        }
    }
    Ok(())
}

fn check_entries(handed: &[HandedEntries], hashes: &[Hash]) -> Result<(), String> {
    let at = |seq: u64| usize::try_from(seq).ok().and_then(|seq| hashes.get(seq.checked_sub(1)?));
    let is_there = |(seq, hash): &(u64, &Hash)| at(*seq) == Some(hash);
    let accepted = || handed.iter().filter(|piece| may_be(&piece.answer));
    for piece in accepted() {
        let there = piece.entries().filter(is_there).count();
        let (first, length) = (piece.first, piece.hashes.len());
        if there == length {
            continue;
        }
        if piece.answer == StoreAnswer::Yes {
            return Err(format!("{length} entries from {first} on were acknowledged and are missing"));
        }
        // Two workers that decide the same at the same moment begin with the same entries.
        let is_of_another = |entry: &(u64, &Hash)| {
            accepted().any(|other| other != piece && other.entries().any(|known| known == *entry))
        };
        if piece.entries().filter(is_there).any(|entry| !is_of_another(&entry)) {
            return Err(format!("of {length} entries appended together from {first} on {there} are present"));
        }
    }
    let known: BTreeSet<(u64, &Hash)> = accepted().flat_map(HandedEntries::entries).collect();
    for (seq, hash) in (1..).zip(hashes) {
        if !known.contains(&(seq, hash)) {
            let refused = handed.iter().find(|piece| piece.hashes.contains(hash)).map(|piece| &piece.answer);
            return Err(format!("entry {seq} is present, and its append was answered {refused:?}"));
        }
    }
    Ok(())
}

fn check_commands(
    handed: &[HandedEntries],
    form: &[(String, StoreAnswer)],
    journal: &JournalContents,
) -> Result<(), String> {
    let waiting: BTreeSet<&String> = journal.commands.iter().collect();
    if waiting.len() != journal.commands.len() {
        return Err(format!("a command is present twice: {:?}", journal.commands));
    }
    for text in &waiting {
        if !form.iter().any(|(asked, message)| asked == *text && may_be(message)) {
            return Err(format!("command {text} is present and was not sent"));
        }
    }
    // Whether an append without entries happened cannot be seen, so its commands may be present or not.
    let is_answered = |text: &String| {
        handed
            .iter()
            .filter(|piece| piece.consumed.contains(text))
            .any(|piece| may_be(&piece.answer) && piece.hashes.iter().all(|hash| journal.hashes.contains(hash)))
    };
    for (text, statement) in form {
        let is_waiting = waiting.contains(text);
        if *statement == StoreAnswer::Yes && !is_waiting && !is_answered(text) {
            return Err(format!("command {text} was acknowledged and not consumed, and it is missing"));
        }
        let is_surely_answered = handed.iter().any(|piece| {
            piece.consumed.contains(text)
                && (piece.answer == StoreAnswer::Yes || !piece.hashes.is_empty() && is_answered(text))
        });
        if is_waiting && is_surely_answered {
            return Err(format!("command {text} was consumed and is present again"));
        }
    }
    Ok(())
}

fn may_be(message: &StoreAnswer) -> bool {
    !matches!(message, StoreAnswer::No { .. })
}

/// The columns of an execution that follow from its journal.
#[derive(Debug, PartialEq)]
struct ExecutionColumns {
    status: String,
    settled: u32,
    total: u32,
    questions: u32,
    last_at: i64,
    seq: u64,
    head: Vec<u8>,
    commands: u64,
}

const PLANS: &str = "select plan.id, revision.hash from plan join revision on revision.plan = plan.number";
const EXECUTIONS: &str = "select number, id, epoch from execution";
const HASHES: &str = "select seq, hash from entry where execution = ?1 order by seq";
const ROWS: &str = "select id, status, settled, total, questions, last_at, seq, head, commands from execution";

fn read_tables(connection: &Connection) -> Result<StoreContents, rusqlite::Error> {
    let mut found = StoreContents::default();
    let mut plans = connection.prepare(PLANS)?;
    for plan in plans.query_map([], |row| Ok((row.get(0)?, Hash(row.get(1)?))))? {
        found.plans.insert(plan?);
    }
    let mut executions = connection.prepare(EXECUTIONS)?;
    let mut entries = connection.prepare(HASHES)?;
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get(2)?));
    for execution in executions.query_map([], row)? {
        let (number, id, epoch) = execution?;
        let mut hashes = Vec::new();
        for entry in entries.query_map([number], |row| Ok((row.get::<_, u64>(0)?, Hash(row.get(1)?))))? {
            let (seq, hash) = entry?;
            assert_eq!(seq, hashes.len() as u64 + 1, "{id} has a gap");
            hashes.push(hash);
        }
        found.executions.insert(id, JournalContents { hashes, epoch, commands: Vec::new() });
    }
    Ok(found)
}

fn rows(connection: &Connection) -> Result<Vec<(String, ExecutionColumns)>, rusqlite::Error> {
    let mut statement = connection.prepare(ROWS)?;
    let rows = statement.query_map([], |row| {
        let listed = ExecutionColumns {
            status: row.get(1)?,
            settled: row.get(2)?,
            total: row.get(3)?,
            questions: row.get(4)?,
            last_at: row.get(5)?,
            seq: row.get(6)?,
            head: row.get(7)?,
            commands: row.get(8)?,
        };
        Ok((row.get(0)?, listed))
    })?;
    rows.collect()
}

/// Each query counts what must not exist.
const BROKEN: &[(&str, &str)] = &[
    ("pages that SQLite finds damaged", "select count(*) from pragma_integrity_check where integrity_check <> 'ok'"),
    ("references to nothing", "select count(*) from pragma_foreign_key_check"),
    (
        "ledgers with a gap",
        "select count(*) from (
            select tenant from entry group by place >> 40 having max(place) - min(place) + 1 <> count(*)
                or min(place) & ((1 << 40) - 1) <> 0)",
    ),
    (
        "ledgers whose own journal has a wrong length",
        "select count(*) from tenant where seq <> (select count(*) from entry where execution = -tenant.number)",
    ),
    (
        "totals with a wrong count",
        "select count(*) from total
        where count <> (select count(*) from execution
            where execution.tenant = total.tenant and execution.status = total.status)",
    ),
    ("executions without entries", "select count(*) from execution where number not in (select execution from entry)"),
    ("unused blobs", "select count(*) from blob where number not in (select blob from payload where blob > 0)"),
];

fn check_tables(connection: &Connection) -> Result<(), String> {
    for (what, count) in BROKEN {
        let found = connection.query_row(count, [], |row| row.get::<_, i64>(0));
        match found.map_err(|error| format!("cannot count {what}: {error}"))? {
            0 => {}
            found => return Err(format!("there are {found} {what}")),
        }
    }
    Ok(())
}

/// Loads an execution through the port and compares it with its row.
fn load(
    store: &SqliteStore,
    execution: &str,
    listed: &ExecutionColumns,
    journal: &mut JournalContents,
) -> Result<(), String> {
    let identity = ExecutionIdentity { tenant: TenantId::new(TENANT), execution: ExecutionId::new(execution) };
    let loaded = wait(store.load(&identity)).map_err(|error: Error| format!("cannot be loaded: {error}"))?;
    let replayed = Execution::replay(identity, &loaded.records).map_err(|why| format!("cannot be replayed: {why}"))?;
    let ExecutionProjection { status, settled, total, questions, last_at, .. } = replayed.row();
    let derived = ExecutionColumns {
        status: status.as_str().to_owned(),
        settled,
        total,
        questions,
        last_at: last_at.0,
        seq: loaded.head.seq,
        head: loaded.head.hash.0.to_vec(),
        commands: loaded.commands.len() as u64,
    };
    if derived != *listed {
        return Err(format!("its journal says {derived:?}, its row {listed:?}"));
    }
    if journal.hashes.len() != loaded.records.len() || journal.hashes.last() != Some(&loaded.head.hash) {
        return Err("the loaded entries differ from the stored ones".to_owned());
    }
    journal.commands = loaded.commands.iter().map(|command: &StoredCommand| text_of(command)).collect();
    Ok(())
}
