//! The tree against a naive reading of RFC 6962, for every small size, and against published values.

use super::*;

/// MTH of RFC 6962 §2.1, word for word.
fn naive_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => empty_root(),
        [one] => *one,
        _ => {
            let (left, right) = leaves.split_at(naive_split(leaves.len()));
            join(naive_root(left), naive_root(right))
        }
    }
}

fn naive_split(count: usize) -> usize {
    let mut k = 1;
    while k * 2 < count {
        k *= 2;
    }
    k
}

/// PATH of RFC 6962 §2.1.1.
fn naive_path(index: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() <= 1 {
        return Vec::new();
    }
    let k = naive_split(leaves.len());
    let (left, right) = leaves.split_at(k);
    let (mut path, sibling) = if index < k {
        (naive_path(index, left), naive_root(right))
    } else {
        (naive_path(index - k, right), naive_root(left))
    };
    path.push(sibling);
    path
}

/// SUBPROOF of RFC 6962 §2.1.2.
fn naive_subproof(old: usize, leaves: &[Hash], whole: bool) -> Vec<Hash> {
    if old == leaves.len() {
        return if whole { Vec::new() } else { vec![naive_root(leaves)] };
    }
    let k = naive_split(leaves.len());
    let (left, right) = leaves.split_at(k);
    let (mut path, sibling) = if old <= k {
        (naive_subproof(old, left, whole), naive_root(right))
    } else {
        (naive_subproof(old - k, right, false), naive_root(left))
    };
    path.push(sibling);
    path
}

fn leaves(count: u64) -> Vec<Hash> {
    (0..count).map(|n| leaf(Hash::of(&[&n.to_be_bytes()]))).collect()
}

fn tree(leaves: &[Hash]) -> MerkleTree {
    let mut tree = MerkleTree::default();
    leaves.iter().for_each(|&leaf| tree.append(leaf));
    tree
}

fn flipped(path: &[Hash], bit: usize) -> Vec<Hash> {
    let mut path = path.to_vec();
    path[bit / 256].0[bit % 256 / 8] ^= 1 << (bit % 8);
    path
}

/// The leaves and roots that the certificate-transparency implementations test against.
#[test]
fn roots_are_the_published_ones() {
    let data = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"];
    let roots = [
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];
    let mut frontier = MerkleFrontier::default();
    assert_eq!(frontier.root().to_string(), roots[0]);
    for (hex, root) in data.iter().zip(&roots[1..]) {
        let bytes: Vec<u8> =
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap()).collect();
        frontier.append(Hash::of(&[&[0], &bytes]), &mut |_, _| {});
        assert_eq!(&frontier.root().to_string(), root);
    }
}

#[test]
fn roots_and_proofs_agree_with_the_naive_tree_for_every_size() {
    let leaves = leaves(200);
    let tree = tree(&leaves);
    let nodes = |node| tree.node(node);
    let mut frontier = MerkleFrontier::default();
    let mut roots = Vec::new();
    for size in 0..=leaves.len() {
        let now = &leaves[..size];
        let root = naive_root(now);
        // The naive proofs hash the whole tree anew each time: enough for small trees and one large one.
        let compared = size <= 66 || size == leaves.len();
        roots.push(root);
        assert_eq!(frontier.root(), root);
        assert_eq!(tree.root_at(size as u64), Some(root));
        assert_eq!(MerkleFrontier::restore(size as u64, frontier.peaks().to_vec()).as_ref(), Some(&frontier));
        for (index, &leaf) in now.iter().enumerate() {
            let path = inclusion_proof(&nodes, index as u64, size as u64).unwrap();
            assert!(!compared || path == naive_path(index, now), "{index} of {size}");
            assert!(verify_inclusion(leaf, index as u64, size as u64, &path, root));
        }
        for (old, &old_root) in roots.iter().enumerate() {
            let path = consistency_proof(&nodes, old as u64, size as u64).unwrap();
            assert!(old == 0 || !compared || path == naive_subproof(old, now, true), "{old} to {size}");
            assert!(verify_consistency(old as u64, old_root, size as u64, root, &path));
        }
        if let Some(&next) = leaves.get(size) {
            frontier.append(next, &mut |_, _| {});
        }
    }
}

#[test]
fn wrong_inclusion_proofs_are_refused() {
    let leaves = leaves(20);
    let tree = tree(&leaves);
    for size in 1..=20_u64 {
        let root = tree.root_at(size).unwrap();
        for index in 0..size {
            let leaf = leaves[index as usize];
            let path = inclusion_proof(&|node| tree.node(node), index, size).unwrap();
            let holds = |leaf, index, size, path: &[Hash]| verify_inclusion(leaf, index, size, path, root);
            for bit in 0..path.len() * 256 {
                assert!(!holds(leaf, index, size, &flipped(&path, bit)), "{index} of {size}, bit {bit}");
            }
            for other in 0..size {
                assert!(other == index || !holds(leaf, other, size, &path), "{index} as {other} of {size}");
                assert!(other == index || !holds(leaves[other as usize], index, size, &path));
            }
            assert!(!holds(leaf, size, size, &path) && !holds(leaf, u64::MAX, u64::MAX, &path));
            assert!(!holds(leaf, index, size, &[path.as_slice(), &[root]].concat()));
            assert!(path.is_empty() || !holds(leaf, index, size, &path[1..]));
        }
        assert_eq!(inclusion_proof(&|node| tree.node(node), size, size), None);
    }
}

#[test]
fn wrong_consistency_proofs_are_refused() {
    let leaves = leaves(20);
    let tree = tree(&leaves);
    for size in 1..=20_u64 {
        let root = tree.root_at(size).unwrap();
        for old in 1..=size {
            let old_root = tree.root_at(old).unwrap();
            let path = consistency_proof(&|node| tree.node(node), old, size).unwrap();
            for bit in 0..path.len() * 256 {
                assert!(!verify_consistency(old, old_root, size, root, &flipped(&path, bit)));
            }
            for other in 0..=size {
                let claimed = tree.root_at(other).unwrap();
                let same = other == old;
                assert!(same || !verify_consistency(other, old_root, size, root, &path), "{old} as {other}");
                assert!(same || !verify_consistency(old, claimed, size, root, &path));
            }
            assert!(!verify_consistency(old, old_root, size, root, &[path.as_slice(), &[root]].concat()));
            assert!(path.is_empty() || !verify_consistency(old, old_root, size, root, &path[1..]));
            assert!(old == size || !verify_consistency(size, root, old, old_root, &path));
        }
        assert_eq!(consistency_proof(&|node| tree.node(node), size + 1, size), None);
    }
    assert!(!verify_consistency(0, leaves[0], 1, leaves[0], &[]));
    assert!(!verify_consistency(0, empty_root(), 0, leaves[0], &[]));
    assert!(!verify_consistency(0, empty_root(), 1, leaves[0], &[leaves[0]]));
}

#[test]
fn a_proof_says_the_size_of_its_tree() {
    // A proof holds for another size of the same shape only if the roots are equal; these roots differ.
    let leaves = leaves(64);
    let tree = tree(&leaves);
    for size in 1..=64_u64 {
        for index in 0..size {
            let path = inclusion_proof(&|node| tree.node(node), index, size).unwrap();
            for other in (1..=64_u64).filter(|&other| other != size) {
                let root = tree.root_at(other).unwrap();
                assert!(!verify_inclusion(leaves[index as usize], index, other, &path, root));
            }
        }
    }
}

#[test]
fn nothing_breaks_at_the_largest_sizes() {
    let hash = leaf(Hash::ZERO);
    for path in [vec![], vec![hash], vec![hash; 63], vec![hash; 64], vec![hash; 65], vec![hash; 200]] {
        for (a, b) in [(0, u64::MAX), (u64::MAX, u64::MAX), (u64::MAX - 1, u64::MAX), (1 << 63, u64::MAX)] {
            assert!(!verify_inclusion(hash, a, b, &path, Hash::ZERO));
            assert!(!verify_consistency(a, hash, b, Hash::ZERO, &path));
        }
    }
    assert_eq!(inclusion_proof(&|_| None, 5, u64::MAX), None);
    assert_eq!(consistency_proof(&|_| None, 5, u64::MAX), None);
    assert_eq!(MerkleFrontier::restore(3, vec![hash]), None);
}
