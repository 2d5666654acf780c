//! Compares what a store has with the account of what it was asked and what it answered.

use crate::account::{Account, Handed, Said};
use crate::vfs;
use crate::workload::{TENANT, text_of};
use rusqlite::{Connection, OpenFlags};
use rutter_core::execution::row::Row;
use rutter_core::execution::{Execution, Identity};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::port::Error;
use rutter_core::port::journal::{Journal, Letter};
use rutter_store::sqlite::DATABASE;
use rutter_store::{Store, wait};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What an open store has. An error names the first promise that is broken.
///
/// Everything that was acknowledged is there and nothing that was never handed over, nor anything that was refused;
/// each append is there whole or not at all; each journal can be read, follows its chain and is replayed to
/// what its row says.
pub fn check(account: &Account, store: &Store, directory: &Path) -> Result<Found, String> {
    let found = Found::read(store, directory)?;
    check_plans(account, &found)?;
    let known: BTreeSet<&String> = found.executions.keys().chain(account.executions.keys()).collect();
    for execution in known {
        let handed = account.executions.get(execution).map_or(&[][..], Vec::as_slice);
        let journal = found.executions.get(execution);
        let told = |broken: String| format!("{execution}: {broken}");
        check_entries(handed, journal.map_or(&[][..], |journal| &journal.hashes)).map_err(told)?;
        let posted = account.letters.get(execution).map_or(&[][..], Vec::as_slice);
        if let Some(journal) = journal {
            check_letters(handed, posted, journal).map_err(told)?;
            let epoch = account.epochs.get(execution).copied().unwrap_or(0);
            if journal.epoch < epoch {
                return Err(told(format!("epoch {epoch} was given, and it is at {}", journal.epoch)));
            }
        }
    }
    Ok(found)
}

/// What a store has, read from its tables and through its port.
#[derive(Debug, Default)]
pub struct Found {
    pub plans: BTreeSet<(String, Hash)>,
    pub executions: BTreeMap<String, Journaled>,
}

#[derive(Debug)]
pub struct Journaled {
    /// Of its entries, from the first on.
    pub hashes: Vec<Hash>,
    pub epoch: u64,
    /// The texts of the letters that wait.
    pub letters: Vec<String>,
}

impl Found {
    /// Reads everything, and fails if it does not fit together.
    pub fn read(store: &Store, directory: &Path) -> Result<Found, String> {
        vfs::register();
        let path = directory.join(DATABASE);
        let connection =
            Connection::open_with_flags_and_vfs(path, OpenFlags::SQLITE_OPEN_READ_ONLY, vfs::VFS);
        let connection = connection.map_err(|error| format!("cannot be looked at: {error}"))?;
        let mut found = read_tables(&connection).map_err(|error| format!("cannot be read: {error}"))?;
        check_tables(&connection)?;
        for (execution, row) in
            rows(&connection).map_err(|error| format!("its rows cannot be read: {error}"))?
        {
            let journal = found.executions.get_mut(&execution).expect("both have every execution");
            load(store, &execution, &row, journal).map_err(|broken| format!("{execution}: {broken}"))?;
        }
        Ok(found)
    }
}

fn check_plans(account: &Account, found: &Found) -> Result<(), String> {
    for (id, hash) in &found.plans {
        if !account.plans.iter().any(|(asked, of, said)| (asked, of) == (id, hash) && may_be(said)) {
            return Err(format!("{id} is there and was never saved"));
        }
    }
    for (id, hash, said) in &account.plans {
        if *said == Said::Yes && !found.plans.contains(&(id.clone(), *hash)) {
            return Err(format!("{id} was saved and is not there"));
        }
    }
    Ok(())
}

fn check_entries(handed: &[Handed], hashes: &[Hash]) -> Result<(), String> {
    let at = |seq: u64| usize::try_from(seq).ok().and_then(|seq| hashes.get(seq.checked_sub(1)?));
    let is_there = |(seq, hash): &(u64, &Hash)| at(*seq) == Some(hash);
    let accepted = || handed.iter().filter(|piece| may_be(&piece.said));
    for piece in accepted() {
        let there = piece.entries().filter(is_there).count();
        let (first, length) = (piece.first, piece.hashes.len());
        if there == length {
            continue;
        }
        if piece.said == Said::Yes {
            return Err(format!("{length} entries from {first} on were acknowledged and are not there"));
        }
        // Two workers that decide the same at the same moment begin with the same entries.
        let is_of_another = |entry: &(u64, &Hash)| {
            accepted().any(|other| other != piece && other.entries().any(|known| known == *entry))
        };
        if piece.entries().filter(is_there).any(|entry| !is_of_another(&entry)) {
            return Err(format!("of {length} entries appended together from {first} on {there} are there"));
        }
    }
    let known: BTreeSet<(u64, &Hash)> = accepted().flat_map(Handed::entries).collect();
    for (seq, hash) in (1..).zip(hashes) {
        if !known.contains(&(seq, hash)) {
            let refused = handed.iter().find(|piece| piece.hashes.contains(hash)).map(|piece| &piece.said);
            return Err(format!("entry {seq} is there, and the answer to it was {refused:?}"));
        }
    }
    Ok(())
}

fn check_letters(handed: &[Handed], posted: &[(String, Said)], journal: &Journaled) -> Result<(), String> {
    let waiting: BTreeSet<&String> = journal.letters.iter().collect();
    if waiting.len() != journal.letters.len() {
        return Err(format!("a letter is there twice: {:?}", journal.letters));
    }
    for text in &waiting {
        if !posted.iter().any(|(asked, said)| asked == *text && may_be(said)) {
            return Err(format!("letter {text} is there and was not posted"));
        }
    }
    // Whether an append without entries happened cannot be seen, so its letters may be there or not.
    let is_answered = |text: &String| {
        handed
            .iter()
            .filter(|piece| piece.consumed.contains(text))
            .any(|piece| may_be(&piece.said) && piece.hashes.iter().all(|hash| journal.hashes.contains(hash)))
    };
    for (text, said) in posted {
        let is_waiting = waiting.contains(text);
        if *said == Said::Yes && !is_waiting && !is_answered(text) {
            return Err(format!("letter {text} was acknowledged, nobody answered it, and it is not there"));
        }
        let is_surely_answered = handed.iter().any(|piece| {
            piece.consumed.contains(text)
                && (piece.said == Said::Yes || !piece.hashes.is_empty() && is_answered(text))
        });
        if is_waiting && is_surely_answered {
            return Err(format!("letter {text} was answered and is there again"));
        }
    }
    Ok(())
}

fn may_be(said: &Said) -> bool {
    !matches!(said, Said::No { .. })
}

/// The columns of an execution that its journal decides.
#[derive(Debug, PartialEq)]
struct Listed {
    status: String,
    settled: u32,
    total: u32,
    questions: u32,
    last_at: i64,
    seq: u64,
    head: Vec<u8>,
    letters: u64,
}

const PLANS: &str = "select plan.id, revision.hash from plan join revision on revision.plan = plan.number";
const EXECUTIONS: &str = "select number, id, epoch from execution";
const HASHES: &str = "select seq, hash from entry where execution = ?1 order by seq";
const ROWS: &str = "select id, status, settled, total, questions, last_at, seq, head, letters from execution";

fn read_tables(connection: &Connection) -> Result<Found, rusqlite::Error> {
    let mut found = Found::default();
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
        found.executions.insert(id, Journaled { hashes, epoch, letters: Vec::new() });
    }
    Ok(found)
}

fn rows(connection: &Connection) -> Result<Vec<(String, Listed)>, rusqlite::Error> {
    let mut statement = connection.prepare(ROWS)?;
    let rows = statement.query_map([], |row| {
        let listed = Listed {
            status: row.get(1)?,
            settled: row.get(2)?,
            total: row.get(3)?,
            questions: row.get(4)?,
            last_at: row.get(5)?,
            seq: row.get(6)?,
            head: row.get(7)?,
            letters: row.get(8)?,
        };
        Ok((row.get(0)?, listed))
    })?;
    rows.collect()
}

/// Each query counts what must not be.
const BROKEN: &[(&str, &str)] = &[
    (
        "pages that SQLite finds damaged",
        "select count(*) from pragma_integrity_check where integrity_check <> 'ok'",
    ),
    ("references to nothing", "select count(*) from pragma_foreign_key_check"),
    (
        "ledgers with a gap",
        "select count(*) from (
            select tenant from entry group by place >> 40 having max(place) - min(place) + 1 <> count(*)
                or min(place) & ((1 << 40) - 1) <> 0)",
    ),
    (
        "ledgers whose own journal does not end where it should",
        "select count(*) from tenant where seq <> (select count(*) from entry where execution = -tenant.number)",
    ),
    (
        "totals that were counted wrong",
        "select count(*) from total
        where count <> (select count(*) from execution
            where execution.tenant = total.tenant and execution.status = total.status)",
    ),
    (
        "executions without entries",
        "select count(*) from execution where number not in (select execution from entry)",
    ),
    (
        "blobs that nobody uses",
        "select count(*) from blob where number not in (select blob from payload where blob > 0)",
    ),
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
fn load(store: &Store, execution: &str, listed: &Listed, journal: &mut Journaled) -> Result<(), String> {
    let identity = Identity { tenant: TenantId::new(TENANT), execution: ExecutionId::new(execution) };
    let loaded = wait(store.load(&identity)).map_err(|error: Error| format!("cannot be loaded: {error}"))?;
    let replayed =
        Execution::replay(identity, &loaded.records).map_err(|why| format!("cannot be replayed: {why}"))?;
    let Row { status, settled, total, questions, last_at, .. } = replayed.row();
    let derived = Listed {
        status: status.as_str().to_owned(),
        settled,
        total,
        questions,
        last_at: last_at.0,
        seq: loaded.head.seq,
        head: loaded.head.hash.0.to_vec(),
        letters: loaded.letters.len() as u64,
    };
    if derived != *listed {
        return Err(format!("its journal says {derived:?}, its row {listed:?}"));
    }
    if journal.hashes.len() != loaded.records.len() || journal.hashes.last() != Some(&loaded.head.hash) {
        return Err("what was loaded is not what is there".to_owned());
    }
    journal.letters = loaded.letters.iter().map(|letter: &Letter| text_of(letter)).collect();
    Ok(())
}
