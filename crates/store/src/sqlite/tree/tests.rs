//! The stored tree equals the tree in memory, whichever of its nodes are stored.

use super::*;
use crate::sqlite::migration;
use rutter_core::time::Timestamp;

const TENANT: i64 = 3;

fn with_entries(count: u64) -> (Connection, merkle::MerkleTree) {
    let mut connection = Connection::open_in_memory().unwrap();
    migration::migrate(&mut connection, migration::ALL, Timestamp(0)).unwrap();
    let mut tree = merkle::MerkleTree::default();
    let transaction = connection.transaction().unwrap();
    {
        let mut insert = transaction.prepare("insert into entry (place, hash) values (?1, ?2)").unwrap();
        for leaf in 0..count {
            let hash = Hash::of(&[&leaf.to_be_bytes()]);
            insert.execute(params![EntryPosition::new(TENANT, leaf).unwrap().number(), hash.0]).unwrap();
            tree.append(merkle::leaf(hash));
        }
    }
    transaction.commit().unwrap();
    (connection, tree)
}

fn keep(connection: &Connection, size: u64) {
    for stored in StoredMerkleTree::new(connection, TENANT).missing(size).unwrap() {
        let row = params![TENANT, stored.level, stored.position, stored.hash.0];
        connection.execute("insert into node (tenant, level, position, hash) values (?1, ?2, ?3, ?4)", row).unwrap();
    }
}

#[test]
fn roots_and_proofs_are_those_of_the_tree_in_memory() {
    let (connection, expected) = with_entries(66_000);
    let tree = StoredMerkleTree::new(&connection, TENANT);
    let sizes = [1, 2, 255, 256, 257, 511, 512, 1_000, 40_000, 65_535, 65_536, 65_537, 66_000];
    let mut last = 0;
    for size in sizes {
        for round in 0..2 {
            let root = expected.root_at(size).unwrap();
            assert_eq!(tree.root(size).unwrap(), root, "{size}, round {round}");
            let path = tree.consistency(last, size).unwrap();
            let old = expected.root_at(last).unwrap();
            assert!(merkle::verify_consistency(last, old, size, root, &path), "{last} to {size}");
            for leaf in [0, 1, 254, 255, 256, 40_000, size - 1] {
                let leaf = leaf.min(size - 1);
                let path = tree.inclusion(leaf, size).unwrap();
                let hash = merkle::leaf(Hash::of(&[&leaf.to_be_bytes()]));
                assert!(merkle::verify_inclusion(hash, leaf, size, &path, root), "{leaf} of {size}");
            }
            // First from the entries alone, then with the stored nodes.
            keep(&connection, size);
        }
        last = size;
    }
    let stored: i64 = connection.query_row("select count(*) from node", [], |row| row.get(0)).unwrap();
    assert_eq!(stored, 66_000 / 256 + 1);
    assert_eq!(tree.size().unwrap(), 66_000);
}

#[test]
fn a_gap_in_the_ledger_is_not_bridged() {
    let (connection, _) = with_entries(600);
    let gone = EntryPosition::new(TENANT, 300).unwrap().number();
    connection.execute("delete from entry where place = ?1", [gone]).unwrap();
    let tree = StoredMerkleTree::new(&connection, TENANT);
    assert!(tree.root(256).is_ok());
    for result in [tree.root(600).map(|_| ()), tree.inclusion(5, 600).map(|_| ()), tree.missing(600).map(|_| ())] {
        assert!(matches!(result, Err(Error::Corrupt(_))), "{result:?}");
    }
}
