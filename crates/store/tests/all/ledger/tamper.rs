//! Tampering by an attacker with write access to the file, and what each level of verification finds.
//!
//! Thirteen ways, a hundred times each at positions drawn by seed, and two thousand flipped bits. V0 has the database
//! alone, V1 the public key as well, V2 a checkpoint and a receipt that were stored elsewhere.

use crate::ledger::fixture::{behind_the_back, database, identity, scratch, tenant, trusted, verify};
use rusqlite::{Connection, params};
use rutter_core::hash::Hash;
use rutter_core::id::ExecutionId;
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::checkpoint::{Checkpoint, CheckpointGuard};
use rutter_core::journal::merkle;
use rutter_core::journal::note::SigningKey;
use rutter_core::journal::verify::{Assurance, TrustAnchors, VerificationReport};
use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use rutter_store::{SqliteArchive, compress};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

const EXECUTIONS: u64 = 12;
const ROUNDS: u64 = 100;
const FLIPS: u64 = 2_000;
const LENGTH_MAX: usize = 1 << 20;

/// A number for each seed and question, always the same.
fn draw(seed: u64, what: &str, below: u64) -> u64 {
    let hash = Hash::of(&[&seed.to_be_bytes(), what.as_bytes()]);
    u64::from_be_bytes(hash.0[..8].try_into().unwrap()) % below
}

struct Scene {
    directory: tempfile::TempDir,
    original: Vec<u8>,
    trust: [TrustAnchors; 3],
    entries: u64,
}

impl Scene {
    fn new() -> Scene {
        let directory = scratch();
        let path = database(directory.path(), EXECUTIONS);
        let archive = SqliteArchive::open_file(&path).unwrap();
        let signed = trusted(directory.path());
        let last = identity(EXECUTIONS - 1);
        let stored = TrustAnchors {
            checkpoints: vec![archive.checkpoint(&tenant()).unwrap().unwrap()],
            receipts: vec![archive.receipt(&last, None).unwrap()],
            ..signed.clone()
        };
        let entries = archive.stats().unwrap().tenants[0].entries;
        drop(archive);
        let original = fs::read(&path).unwrap();
        Scene { directory, original, trust: [TrustAnchors::default(), signed, stored], entries }
    }

    /// A copy to tamper with.
    fn copy(&self, name: &str) -> PathBuf {
        let path = self.directory.path().join(format!("{name}.db"));
        fs::write(&path, &self.original).unwrap();
        path
    }

    /// The reports of the three levels.
    fn check_levels(&self, path: &Path) -> [Result<Found, Error>; 3] {
        self.trust.clone().map(|trust| {
            verify(path, trust, false).map(|checked| Found { rows: checked.rows.len(), verdict: checked.verdict })
        })
    }
}

#[derive(Debug)]
struct Found {
    verdict: VerificationReport,
    rows: usize,
}

/// The entry at which tampering should be found first, if it is one entry.
type FirstFault = Option<(ExecutionId, u64)>;

/// A way to change a database, and whether V0, V1 and V2 find it.
struct Way {
    name: &'static str,
    change: fn(&Connection, u64, u64) -> FirstFault,
    found: [bool; 3],
}

const WAYS: [Way; 13] = [
    Way { name: "change an entry", change: change_entry, found: [true; 3] },
    Way { name: "change a hash", change: change_hash, found: [true; 3] },
    Way { name: "delete an entry", change: delete_entry, found: [true; 3] },
    Way { name: "insert an entry", change: insert_entry, found: [true; 3] },
    Way { name: "swap two entries", change: swap_entries, found: [true; 3] },
    Way { name: "move an entry to another execution", change: move_entry, found: [true; 3] },
    Way { name: "change a payload", change: change_payload, found: [true; 3] },
    Way { name: "swap two payloads", change: swap_payloads, found: [true; 3] },
    Way { name: "change a checkpoint", change: change_checkpoint, found: [true; 3] },
    Way { name: "rewrite with new hashes", change: rewrite, found: [true; 3] },
    Way { name: "rewrite and sign with another key", change: rewrite_and_sign, found: [false, true, true] },
    Way { name: "cut the end with its checkpoints", change: cut_end, found: [false, false, true] },
    Way { name: "rewrite all and drop the checkpoints", change: rewrite_unsigned, found: [false, false, true] },
];

#[test]
fn each_way_of_tampering_is_found_by_the_levels_that_can() {
    let scene = Scene::new();
    std::thread::scope(|scope| {
        for way in &WAYS {
            let scene = &scene;
            scope.spawn(move || {
                for seed in 0..ROUNDS {
                    try_way(scene, way, seed);
                }
            });
        }
    });
}

fn try_way(scene: &Scene, way: &Way, seed: u64) {
    let path = scene.copy(&way.name.replace(' ', "-"));
    let connection = behind_the_back(&path);
    let first = (way.change)(&connection, seed, scene.entries);
    drop(connection);
    for ((level, report), found) in scene.check_levels(&path).into_iter().enumerate().zip(way.found) {
        let report = report.unwrap_or_else(|error| panic!("{}, seed {seed}, V{level}: {error}", way.name));
        let clean = report.verdict.is_clean() && report.rows == 0;
        assert_eq!(!clean, found, "{}, seed {seed}, V{level}: {report:?}", way.name);
        if let (Some(first), Some(fault)) = (&first, &report.verdict.fault) {
            assert_eq!(fault.entry.as_ref(), Some(first), "{}, seed {seed}, V{level}: {fault}", way.name);
        }
    }
}

struct EntryRow {
    place: i64,
    execution: i64,
    seq: u64,
    hash: Vec<u8>,
    bytes: Vec<u8>,
}

fn entries(connection: &Connection) -> Vec<EntryRow> {
    let sql = "select place, execution, seq, hash, bytes from entry order by place";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| {
        let packed: Vec<u8> = row.get(4)?;
        let bytes = compress::unpack_entry(&packed, LENGTH_MAX).unwrap().into_owned();
        Ok(EntryRow { place: row.get(0)?, execution: row.get(1)?, seq: row.get(2)?, hash: row.get(3)?, bytes })
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn id(connection: &Connection, execution: i64) -> ExecutionId {
    let found =
        connection.query_row("select id from execution where number = ?1", [execution], |row| row.get::<_, String>(0));
    ExecutionId::new(&found.unwrap_or("ledger".to_owned()))
}

/// Some entry of an execution, not its last.
fn some_entry(connection: &Connection, seed: u64) -> EntryRow {
    let mut all = entries(connection);
    all.retain(|entry| entry.execution > 0 && entry.seq < 7);
    let at = draw(seed, "entry", all.len() as u64) as usize;
    all.swap_remove(at)
}

fn named(connection: &Connection, entry: &EntryRow) -> FirstFault {
    Some((id(connection, entry.execution), entry.seq))
}

fn change_entry(connection: &Connection, seed: u64, _: u64) -> FirstFault {
    let mut entry = some_entry(connection, seed);
    let at = draw(seed, "byte", entry.bytes.len() as u64) as usize;
    entry.bytes[at] ^= 1 << draw(seed, "bit", 7);
    let packed = compress::pack_entry(&entry.bytes);
    connection.execute("update entry set bytes = ?2 where place = ?1", params![entry.place, packed]).unwrap();
    named(connection, &entry)
}

fn change_hash(connection: &Connection, seed: u64, _: u64) -> FirstFault {
    let mut entry = some_entry(connection, seed);
    entry.hash[draw(seed, "byte", 32) as usize] ^= 1 << draw(seed, "bit", 8);
    connection.execute("update entry set hash = ?2 where place = ?1", params![entry.place, entry.hash]).unwrap();
    named(connection, &entry)
}

fn delete_entry(connection: &Connection, seed: u64, _: u64) -> FirstFault {
    let entry = some_entry(connection, seed);
    connection.execute("delete from entry where place = ?1", [entry.place]).unwrap();
    // The next entry in the ledger shows it: by its number or its position.
    let next = entries(connection).into_iter().find(|next| next.place > entry.place).unwrap();
    named(connection, &next)
}

fn insert_entry(connection: &Connection, seed: u64, _: u64) -> FirstFault {
    let entry = some_entry(connection, seed);
    for shift in ["-place - 1", "-place"] {
        let sql = format!("update entry set place = {shift} where place > ?1 or place < 0");
        connection.execute(&sql, [entry.place]).unwrap();
    }
    let bytes = compress::pack_entry(&entry.bytes);
    let forged = params![entry.place + 1, entry.execution, entry.seq + 100, entry.hash, bytes];
    let sql = "insert into entry (place, execution, seq, tenant, at, kind, actor, hash, bytes)
        values (?1, ?2, ?3, 1, 1, 1, 1, ?4, ?5)";
    connection.execute(sql, forged).unwrap();
    Some((id(connection, entry.execution), entry.seq + 100))
}

fn swap_entries(connection: &Connection, seed: u64, _: u64) -> FirstFault {
    let first = some_entry(connection, seed);
    let all = entries(connection);
    let second = all.iter().find(|other| (other.execution, other.seq) == (first.execution, first.seq + 1)).unwrap();
    let sql = "update entry set hash = ?2, bytes = ?3 where place = ?1";
    for (place, from) in [(first.place, second), (second.place, &first)] {
        connection.execute(sql, params![place, from.hash, compress::pack_entry(&from.bytes)]).unwrap();
    }
    named(connection, &first)
}

fn move_entry(connection: &Connection, seed: u64, _: u64) -> FirstFault {
    let entry = some_entry(connection, seed);
    let other = if entry.execution == 1 { 2 } else { 1 };
    let sql = "update entry set execution = ?2, seq = 50 where place = ?1";
    connection.execute(sql, params![entry.place, other]).unwrap();
    None
}

fn some_payload(connection: &Connection, seed: u64, what: &str) -> (i64, Vec<u8>, Vec<u8>) {
    let count: u64 = connection.query_row("select count(*) from payload", [], |row| row.get(0)).unwrap();
    let sql = "select number, salt, bytes from payload order by number limit 1 offset ?1";
    let at = draw(seed, what, count);
    connection.query_row(sql, [at], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap()
}

fn entry_of_payload(connection: &Connection, number: i64) -> FirstFault {
    let all = entries(connection);
    let entry = all.iter().find(|entry| entry.place == number / 4).unwrap();
    named(connection, entry)
}

fn change_payload(connection: &Connection, seed: u64, _: u64) -> FirstFault {
    let (number, salt, mut bytes) = some_payload(connection, seed, "payload");
    let at = draw(seed, "byte", bytes.len() as u64) as usize;
    bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
    connection
        .execute("update payload set salt = ?2, bytes = ?3 where number = ?1", params![number, salt, bytes])
        .unwrap();
    entry_of_payload(connection, number)
}

fn swap_payloads(connection: &Connection, seed: u64, _: u64) -> FirstFault {
    let first = some_payload(connection, seed, "one");
    let mut second = some_payload(connection, seed, "other");
    if first.0 == second.0 {
        second = some_payload(connection, seed + 1_000, "other");
    }
    assert_ne!(first.0, second.0, "another seed");
    let sql = "update payload set salt = ?2, bytes = ?3 where number = ?1";
    for (number, from) in [(first.0, &second), (second.0, &first)] {
        connection.execute(sql, params![number, from.1, from.2]).unwrap();
    }
    entry_of_payload(connection, first.0.min(second.0))
}

fn change_checkpoint(connection: &Connection, seed: u64, _: u64) -> FirstFault {
    let sql = "select epoch, size, note from checkpoint order by size limit 1 offset ?1";
    let count: u64 = connection.query_row("select count(*) from checkpoint", [], |row| row.get(0)).unwrap();
    let (epoch, size, note): (i64, i64, String) = connection
        .query_row(sql, [draw(seed, "checkpoint", count)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap();
    // Any character but the line ends and the dash of the signature line, which are the form of a note.
    let places: Vec<usize> =
        note.char_indices().filter(|(_, char)| char.is_ascii_alphanumeric()).map(|(at, _)| at).collect();
    let at = places[draw(seed, "character", places.len() as u64) as usize];
    let mut note = note.into_bytes();
    note[at] = if note[at] == b'A' { b'B' } else { b'A' };
    let note = String::from_utf8(note).unwrap();
    let sql = "update checkpoint set note = ?3 where epoch = ?1 and size = ?2";
    connection.execute(sql, params![epoch, size, note]).unwrap();
    None
}

/// Changes one entry and makes every hash after it right again.
fn rewrite(connection: &Connection, seed: u64, _: u64) -> FirstFault {
    let chosen = some_entry(connection, seed);
    let mut heads: HashMap<i64, Hash> = HashMap::new();
    for entry in entries(connection) {
        let id = id(connection, entry.execution);
        let prev = *heads.entry(entry.execution).or_insert_with(|| HashChain::new(tenant(), id).head().hash);
        let mut text = String::from_utf8(entry.bytes).unwrap();
        if entry.place == chosen.place {
            let from = text.find("\"at\":").unwrap() + 5;
            let digit = text.as_bytes()[from];
            let other = if digit == b'9' { "8" } else { "9" };
            text.replace_range(from..=from, other);
        }
        let hash = Hash::of(&[b"rutter/entry/v1", &prev.0, text.as_bytes()]);
        heads.insert(entry.execution, hash);
        let row = params![entry.place, hash.0, compress::pack_entry(text.as_bytes())];
        connection.execute("update entry set hash = ?2, bytes = ?3 where place = ?1", row).unwrap();
    }
    for (execution, head) in heads {
        connection.execute("update execution set head = ?2 where number = ?1", params![execution, head.0]).unwrap();
    }
    // Without the stored nodes, the tree is that of the new hashes.
    connection.execute("delete from node", []).unwrap();
    None
}

fn rewrite_unsigned(connection: &Connection, seed: u64, entries: u64) -> FirstFault {
    rewrite(connection, seed, entries);
    connection.execute("delete from checkpoint", []).unwrap();
    None
}

/// As an attacker with the file but without the key would do it.
fn rewrite_and_sign(connection: &Connection, seed: u64, size: u64) -> FirstFault {
    rewrite_unsigned(connection, seed, size);
    let mut tree = merkle::MerkleTree::default();
    for entry in entries(connection) {
        tree.append(merkle::leaf(Hash(entry.hash.try_into().unwrap())));
    }
    let key = SigningKey::new("rutter-forged", [7; 32]).unwrap();
    let origin: String = connection.query_row("select origin from tenant", [], |row| row.get(0)).unwrap();
    let head = Checkpoint::new(&origin, size, tree.frontier().root(), Timestamp(1));
    let note = CheckpointGuard::new(None).sign(&key, head, &[]).unwrap().to_string();
    connection.execute("update signer set key = ?1", [key.verifier().to_string()]).unwrap();
    let sql = "insert into checkpoint (tenant, epoch, size, at, note) values (1, 1, ?1, 1, ?2)";
    connection.execute(sql, params![size, note]).unwrap();
    None
}

/// Cuts off the last entries, and everything that refers to them.
fn cut_end(connection: &Connection, seed: u64, size: u64) -> FirstFault {
    let all = entries(connection);
    let keep = size - 1 - draw(seed, "cut", size / 2);
    for entry in &all[keep as usize..] {
        connection.execute("delete from entry where place = ?1", [entry.place]).unwrap();
        connection.execute("delete from payload where number / 4 = ?1", [entry.place]).unwrap();
    }
    let sql = "update execution set seq = (select max(seq) from entry where execution = number),
        head = (select hash from entry where execution = number order by seq desc limit 1)
        where number in (select execution from entry)";
    connection.execute(sql, []).unwrap();
    connection.execute("delete from execution where number not in (select execution from entry)", []).unwrap();
    connection.execute("delete from checkpoint where size > ?1", [keep]).unwrap();
    connection.execute("delete from node", []).unwrap();
    None
}

#[test]
fn no_flipped_bit_goes_undetected() {
    let scene = Scene::new();
    let page_size = 4_096;
    // Most of a small database is empty pages, and a bit there has no meaning.
    let used: Vec<usize> = (0..scene.original.len()).filter(|at| scene.original[*at] != 0).collect();
    let used = &used;
    let counts = std::thread::scope(|scope| {
        let halves: Vec<_> = (0..2)
            .map(|half| {
                let scene = &scene;
                scope.spawn(move || {
                    let mut counts = [0_u64; 3];
                    for seed in (half..FLIPS).step_by(2) {
                        let path = scene.directory.path().join(format!("flip-{half}.db"));
                        let mut bytes = scene.original.clone();
                        let at = used[draw(seed, "at", used.len() as u64) as usize];
                        bytes[at] ^= 1 << draw(seed, "bit", 8);
                        fs::write(&path, &bytes).unwrap();
                        counts[classify_flip(scene, &path, seed, at / page_size)] += 1;
                    }
                    counts
                })
            })
            .collect();
        halves
            .into_iter()
            .map(|half| half.join().unwrap())
            .fold([0; 3], |sum, counts| [sum[0] + counts[0], sum[1] + counts[1], sum[2] + counts[2]])
    });
    let [found, unreadable, harmless] = counts;
    println!("{found} found, {unreadable} made the file unreadable, {harmless} changed nothing that is in the ledger");
    assert!(found > FLIPS / 4, "{counts:?}");
}

/// Returns 0 if found, 1 if the file is unreadable, 2 if harmless: then the export is unchanged.
fn classify_flip(scene: &Scene, path: &Path, seed: u64, page: usize) -> usize {
    let report = verify(path, scene.trust[2].clone(), false);
    let report = match report {
        // What the ledger does not show, the rows derived from it may.
        Ok(checked) if checked.is_clean() => verify(path, scene.trust[2].clone(), true),
        report => report,
    };
    match report {
        Err(_) => 1,
        // Without its checkpoints a ledger has a lower assurance.
        Ok(checked) if !checked.is_clean() || checked.verdict.assurance < Assurance::Compared => 0,
        Ok(_) => {
            let exported = |path: &Path| {
                let mut lines = Vec::new();
                let mut archive = SqliteArchive::open_file(path).unwrap();
                let each = &mut |line| {
                    lines.push(line);
                    Ok(())
                };
                archive.export(&tenant(), None, each).unwrap();
                lines
            };
            let original = scene.directory.path().join("rutter.db");
            let differs = exported(path).into_iter().zip(exported(&original)).find(|(now, then)| now != then);
            assert_eq!(differs, None, "seed {seed}, page {page}: changed, and not detected");
            2
        }
    }
}
