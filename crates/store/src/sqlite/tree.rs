//! The ledger's Merkle tree over the stored entries: leaves are the entries' hashes, and every eighth level is stored.

use super::fault;
use super::position::EntryPosition;
use super::session::{hash_of, size_of};
use rusqlite::{Connection, params};
use rutter_core::hash::Hash;
use rutter_core::journal::merkle::{self, MerkleFrontier, SubtreePosition};
use rutter_core::port::Error;
use std::cell::RefCell;

/// Levels between two stored ones: a stored node covers 256 of the stored level below.
const STRIDE: u32 = 8;
const WIDTH: u64 = 1 << STRIDE;

const LEAVES: &str = "select place, hash from entry where place between ?1 and ?2 order by place";
const NODES: &str = "
    select position, hash
    from node
    where tenant = ?1 and level = ?2 and position between ?3 and ?4
    order by position";
const LAST_NODE: &str = "select max(position) from node where tenant = ?1 and level = ?2";

/// One tenant's tree, read as needed. A read error is saved in `trouble`, as the tree functions only know `None`.
pub(super) struct StoredMerkleTree<'a> {
    connection: &'a Connection,
    tenant: i64,
    trouble: RefCell<Option<Error>>,
}

/// A node to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MerkleNodeRow {
    pub level: u32,
    pub position: u64,
    pub hash: Hash,
}

impl<'a> StoredMerkleTree<'a> {
    pub fn new(connection: &'a Connection, tenant: i64) -> StoredMerkleTree<'a> {
        StoredMerkleTree { connection, tenant, trouble: RefCell::new(None) }
    }

    pub fn size(&self) -> Result<u64, Error> {
        size_of(self.connection, self.tenant).map_err(fault::of)
    }

    pub fn root(&self, size: u64) -> Result<Hash, Error> {
        let mut at = 0;
        let mut peaks = Vec::new();
        // The complete subtrees of a tree are those of the bits of its size, the largest first.
        for level in (0..u64::BITS).rev().filter(|level| size >> level & 1 == 1) {
            peaks.push(self.whole(SubtreePosition { level, index: at >> level })?);
            at += 1 << level;
        }
        let frontier = MerkleFrontier::restore(size, peaks).expect("there is a peak for each bit");
        Ok(frontier.root())
    }

    pub fn inclusion(&self, leaf: u64, size: u64) -> Result<Vec<Hash>, Error> {
        let proof = merkle::inclusion_proof(&|node| self.node(node), leaf, size);
        proof.ok_or_else(|| self.no_proof())
    }

    pub fn consistency(&self, old: u64, size: u64) -> Result<Vec<Hash>, Error> {
        let proof = merkle::consistency_proof(&|node| self.node(node), old, size);
        proof.ok_or_else(|| self.no_proof())
    }

    /// The nodes up to `size` that are still to be stored, lower levels first.
    pub fn missing(&self, size: u64) -> Result<Vec<MerkleNodeRow>, Error> {
        let mut missing: Vec<MerkleNodeRow> = Vec::new();
        let mut level = STRIDE;
        while size >> level > 0 {
            let last: Option<u64> = self
                .connection
                .prepare_cached(LAST_NODE)
                .and_then(|mut statement| statement.query_row(params![self.tenant, level], |row| row.get(0)))
                .map_err(fault::of)?;
            let mut row = Vec::new();
            for position in last.map_or(0, |last| last + 1)..size >> level {
                let children = self.children(level, position, &missing)?;
                row.push(MerkleNodeRow { level, position, hash: fold(children) });
            }
            missing.extend(row);
            level += STRIDE;
        }
        Ok(missing)
    }

    /// The 256 hashes below a node, some of which may not be stored yet.
    fn children(&self, level: u32, position: u64, fresh: &[MerkleNodeRow]) -> Result<Vec<Hash>, Error> {
        let below = level - STRIDE;
        let first = position * WIDTH;
        let mut found = self.row(below, first, first + WIDTH - 1)?;
        let next = first + found.len() as u64;
        let not_stored = fresh.iter().filter(|stored| stored.level == below && stored.position >= next);
        found.extend(not_stored.map(|retained| retained.hash).take((first + WIDTH - next) as usize));
        match found.len() as u64 == WIDTH {
            true => Ok(found),
            false => Err(Error::Corrupt(format!("the ledger has gaps near position {first}"))),
        }
    }

    fn node(&self, node: SubtreePosition) -> Option<Hash> {
        match self.whole(node) {
            Ok(hash) => Some(hash),
            Err(error) => {
                self.trouble.borrow_mut().get_or_insert(error);
                None
            }
        }
    }

    /// The root of a complete subtree.
    fn whole(&self, node: SubtreePosition) -> Result<Hash, Error> {
        // Descends to the nearest level whose nodes are all stored; the newest ones may not be stored yet.
        let mut level = node.level / STRIDE * STRIDE;
        loop {
            let height = node.level - level;
            let (first, last) = (node.index << height, ((node.index + 1) << height) - 1);
            let found = self.row(level, first, last)?;
            if found.len() as u64 == last - first + 1 {
                return Ok(fold(found));
            }
            if level == 0 {
                return Err(Error::Corrupt(format!("the ledger has gaps near position {first}")));
            }
            level -= STRIDE;
        }
    }

    /// Hashes of one level from `first` to `last`, up to the first gap.
    fn row(&self, level: u32, first: u64, last: u64) -> Result<Vec<Hash>, Error> {
        let read = || -> rusqlite::Result<Vec<(u64, Vec<u8>)>> {
            if level > 0 {
                let mut statement = self.connection.prepare_cached(NODES)?;
                let rows = statement
                    .query_map(params![self.tenant, level, first, last], |row| Ok((row.get(0)?, row.get(1)?)))?;
                return rows.collect();
            }
            let base = EntryPosition::range(self.tenant).0;
            let (from, to) = (base + first as i64, base + last as i64);
            let mut statement = self.connection.prepare_cached(LEAVES)?;
            let rows = statement.query_map(params![from, to], |row| {
                Ok((EntryPosition::from(row.get::<_, i64>(0)?).leaf(), row.get(1)?))
            })?;
            rows.collect()
        };
        let in_order = read().map_err(fault::of)?.into_iter().zip(first..).take_while(|((at, _), wanted)| at == wanted);
        in_order
            .map(|((_, hash), _)| {
                let hash = hash_of(&hash)?;
                Ok(if level == 0 { merkle::leaf(hash) } else { hash })
            })
            .collect()
    }

    fn no_proof(&self) -> Error {
        let missing = || Error::Corrupt("the ledger's tree has gaps".to_owned());
        self.trouble.borrow_mut().take().unwrap_or_else(missing)
    }
}

/// Joins a complete row of nodes into their root.
fn fold(row: Vec<Hash>) -> Hash {
    let mut frontier = MerkleFrontier::default();
    row.into_iter().for_each(|hash| frontier.append(hash, &mut |_, _| {}));
    frontier.root()
}

#[cfg(test)]
mod tests;
