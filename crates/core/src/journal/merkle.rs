//! The RFC 6962 tree over all entries of a tenant: its head commits to every entry and their order.
//!
//! A leaf is `SHA-256(0x00 ‖ entry hash)`, a node `SHA-256(0x01 ‖ left ‖ right)`. Appending needs only the
//! [`MerkleFrontier`]; proofs need the complete nodes, which the caller stores.

use crate::hash::Hash;

/// Returns the hash of a leaf.
pub fn leaf(entry: Hash) -> Hash {
    Hash::of(&[&[0], &entry.0])
}

/// Returns the head of a tree without leaves.
pub fn empty_root() -> Hash {
    Hash::of(&[])
}

fn join(left: Hash, right: Hash) -> Hash {
    Hash::of(&[&[1], &left.0, &right.0])
}

/// The position of a complete subtree: it covers the leaves `index << level ..(index + 1) << level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SubtreePosition {
    pub level: u32,
    pub index: u64,
}

/// The state needed to append and to compute the root: one hash for each bit set in the size.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MerkleFrontier {
    size: u64,
    /// Roots of the complete subtrees, the largest first.
    peaks: Vec<Hash>,
}

impl MerkleFrontier {
    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn peaks(&self) -> &[Hash] {
        &self.peaks
    }

    /// Restores a stored frontier; the size determines the number of peaks.
    pub fn restore(size: u64, peaks: Vec<Hash>) -> Option<MerkleFrontier> {
        (peaks.len() == size.count_ones() as usize).then_some(MerkleFrontier { size, peaks })
    }

    /// Appends a leaf and passes every node that this completes to `keep`, the leaf itself first.
    pub fn append(&mut self, leaf: Hash, keep: &mut dyn FnMut(SubtreePosition, Hash)) {
        let mut node = SubtreePosition { level: 0, index: self.size };
        let mut hash = leaf;
        keep(node, hash);
        while node.index & 1 == 1
            && let Some(left) = self.peaks.pop()
        {
            hash = join(left, hash);
            node = SubtreePosition { level: node.level + 1, index: node.index >> 1 };
            keep(node, hash);
        }
        self.peaks.push(hash);
        self.size += 1;
    }

    pub fn root(&self) -> Hash {
        self.peaks.iter().rev().copied().reduce(|right, left| join(left, right)).unwrap_or_else(empty_root)
    }
}

/// A tree with all its complete nodes in memory.
#[derive(Clone, Debug, Default)]
pub struct MerkleTree {
    frontier: MerkleFrontier,
    levels: Vec<Vec<Hash>>,
}

impl MerkleTree {
    pub fn append(&mut self, leaf: Hash) {
        let levels = &mut self.levels;
        self.frontier.append(leaf, &mut |node, hash| {
            let level = node.level as usize;
            if levels.len() <= level {
                levels.push(Vec::new());
            }
            levels[level].push(hash);
        });
    }

    pub fn frontier(&self) -> &MerkleFrontier {
        &self.frontier
    }

    pub fn node(&self, node: SubtreePosition) -> Option<Hash> {
        self.levels.get(node.level as usize)?.get(usize::try_from(node.index).ok()?).copied()
    }

    /// Returns the root the tree had at `size`.
    pub fn root_at(&self, size: u64) -> Option<Hash> {
        match size {
            0 => Some(empty_root()),
            _ => range_root(&|node| self.node(node), 0, size),
        }
    }
}

/// Proves that leaf `index` is in the tree of `size`; `None` when it is not, or a node is missing.
pub fn inclusion_proof(nodes: &dyn Fn(SubtreePosition) -> Option<Hash>, index: u64, size: u64) -> Option<Vec<Hash>> {
    if index >= size {
        return None;
    }
    let (mut start, mut end) = (0, size);
    let mut path = Vec::new();
    while end - start > 1 {
        let middle = start + split(end - start);
        if index < middle {
            path.push(range_root(nodes, middle, end)?);
            end = middle;
        } else {
            path.push(range_root(nodes, start, middle)?);
            start = middle;
        }
    }
    path.reverse();
    Some(path)
}

/// Proves that the tree of `size` continues the tree of `old`; empty when there is nothing to prove.
pub fn consistency_proof(nodes: &dyn Fn(SubtreePosition) -> Option<Hash>, old: u64, size: u64) -> Option<Vec<Hash>> {
    if old > size {
        return None;
    }
    if old == 0 || old == size {
        return Some(Vec::new());
    }
    let (mut start, mut end) = (0, size);
    let mut path = Vec::new();
    // Descend to the subtree that ends where the old tree ended.
    while end != old {
        let middle = start + split(end - start);
        if old <= middle {
            path.push(range_root(nodes, middle, end)?);
            end = middle;
        } else {
            path.push(range_root(nodes, start, middle)?);
            start = middle;
        }
    }
    if start != 0 {
        path.push(range_root(nodes, start, end)?);
    }
    path.reverse();
    Some(path)
}

/// Checks an inclusion proof for the leaf hash `leaf`.
pub fn verify_inclusion(leaf: Hash, index: u64, size: u64, path: &[Hash], root: Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut at, mut last) = (index, size - 1);
    let mut hash = leaf;
    for &sibling in path {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            hash = join(sibling, hash);
            // A node at the right edge without a sibling is carried up unchanged.
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = join(hash, sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && hash == root
}

/// Checks that the tree with `root` at `size` continues the one with `old_root` at `old`.
pub fn verify_consistency(old: u64, old_root: Hash, size: u64, root: Hash, path: &[Hash]) -> bool {
    if old == 0 {
        return path.is_empty() && old_root == empty_root() && (size > 0 || root == empty_root());
    }
    if old >= size {
        return old == size && path.is_empty() && old_root == root;
    }
    // Where the old tree is one complete subtree, its own root begins the path and is left out of it.
    let mut path = path.iter().copied();
    let Some(first) = (if old.is_power_of_two() { Some(old_root) } else { path.next() }) else {
        return false;
    };
    let shift = (old - 1).trailing_ones();
    let (mut at, mut last) = ((old - 1) >> shift, (size - 1) >> shift);
    let (mut old_hash, mut hash) = (first, first);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            old_hash = join(sibling, old_hash);
            hash = join(sibling, hash);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = join(hash, sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    last == 0 && old_hash == old_root && hash == root
}

/// The largest power of two below `count`: where RFC 6962 divides a tree. `count` is at least two.
fn split(count: u64) -> u64 {
    1 << (u64::BITS - 1 - (count - 1).leading_zeros())
}

/// Returns the root over the leaves `start..end` of one RFC 6962 subtree, so `start` is a multiple of its width.
fn range_root(nodes: &dyn Fn(SubtreePosition) -> Option<Hash>, start: u64, end: u64) -> Option<Hash> {
    let mut frontier = Vec::new();
    let mut at = start;
    while at < end {
        let level = (u64::BITS - 1 - (end - at).leading_zeros()).min(at.trailing_zeros());
        frontier.push(nodes(SubtreePosition { level, index: at >> level })?);
        at += 1 << level;
    }
    frontier.into_iter().rev().reduce(|right, left| join(left, right))
}

#[cfg(test)]
mod tests;
