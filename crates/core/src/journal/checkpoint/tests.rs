//! Round trips of checkpoints, and the guard that refuses to sign a contradiction.

use super::*;
use crate::journal::merkle::MerkleTree;
use proptest::prelude::*;

const ORIGIN: &str = "rutter.example/acme";

fn key() -> SigningKey {
    SigningKey::new("rutter.example", [3; 32]).unwrap()
}

fn tree(count: u8) -> MerkleTree {
    let mut tree = MerkleTree::default();
    (0..count).for_each(|n| tree.append(merkle::leaf(Hash::of(&[&[n]]))));
    tree
}

fn checkpoint(size: u64, root: Hash) -> Checkpoint {
    Checkpoint::new(ORIGIN, size, root, Timestamp(1_700_000_000_000))
}

fn at(tree: &MerkleTree, size: u64) -> Checkpoint {
    checkpoint(size, tree.root_at(size).unwrap())
}

#[test]
fn the_text_is_the_one_c2sp_describes() {
    let text = "rutter.example/acme\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\ntime 1700000000000\n";
    let empty = checkpoint(0, merkle::empty_root());
    assert_eq!(empty.to_string(), text);
    assert_eq!(Checkpoint::parse(text), Ok(empty.clone()));
    assert_eq!(empty.time(), Some(Timestamp(1_700_000_000_000)));
}

#[test]
fn invalid_checkpoints_are_refused() {
    let root = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    for text in [
        String::new(),
        "o\n1\n".to_owned(),
        format!("\n1\n{root}\n"),
        format!("o\n01\n{root}\n"),
        format!("o\n+1\n{root}\n"),
        format!("o\n-1\n{root}\n"),
        format!("o\n\n{root}\n"),
        format!("o\n18446744073709551616\n{root}\n"),
        format!("o\n1\n{root}"),
        format!("o\n1\n{}\n", &root[..43]),
        "o\n1\nAAAA\n".to_owned(),
        format!("o\n1\n{root}\n\n"),
        format!("o\n1\n{root}\n\nx\n"),
    ] {
        assert_eq!(Checkpoint::parse(&text), Err(Error::Form), "{text:?}");
    }
}

#[test]
fn a_checkpoint_opens_only_for_its_ledger_and_key() {
    let note = CheckpointGuard::new(None).sign(&key(), at(&tree(3), 3), &[]).unwrap().to_string();
    let keys = [key().verifier()];
    assert_eq!(Checkpoint::open(&note, ORIGIN, &keys), Ok(at(&tree(3), 3)));
    assert!(matches!(Checkpoint::open(&note, "another", &keys), Err(Error::Origin { .. })));
    assert_eq!(Checkpoint::open(&note, ORIGIN, &[]), Err(Error::Note(note::Error::Unsigned)));
    let text = key().sign("not a checkpoint\n").unwrap().to_string();
    assert_eq!(Checkpoint::open(&text, ORIGIN, &keys), Err(Error::Form));
}

#[test]
fn the_guard_signs_only_continuations() {
    let tree = tree(9);
    let proof = |old, new| merkle::consistency_proof(&|node| tree.node(node), old, new).unwrap();
    let mut guard = CheckpointGuard::new(None);
    for (old, new) in [(0, 0), (0, 3), (3, 3), (3, 4), (4, 9)] {
        assert!(guard.sign(&key(), at(&tree, new), &proof(old, new)).is_ok(), "{old} to {new}");
        assert_eq!(guard.last(), Some(&at(&tree, new)));
    }

    let mut guard = CheckpointGuard::new(Some(at(&tree, 5)));
    let other = Checkpoint { origin: "another".to_owned(), ..at(&tree, 9) };
    let forged = checkpoint(9, Hash::ZERO);
    for (next, proof, refused) in [
        (at(&tree, 4), vec![], CheckpointRefusal::Shrunk { last: 5, next: 4 }),
        (checkpoint(5, Hash::ZERO), vec![], CheckpointRefusal::Forked { size: 5 }),
        (at(&tree, 9), vec![], CheckpointRefusal::Inconsistent { last: 5, next: 9 }),
        (at(&tree, 9), proof(4, 9), CheckpointRefusal::Inconsistent { last: 5, next: 9 }),
        (forged, proof(5, 9), CheckpointRefusal::Inconsistent { last: 5, next: 9 }),
        (other, proof(5, 9), CheckpointRefusal::OtherLedger { last: ORIGIN.to_owned(), next: "another".to_owned() }),
    ] {
        assert_eq!(guard.sign(&key(), next, &proof), Err(refused));
        assert_eq!(guard.last(), Some(&at(&tree, 5)), "a refusal changes nothing");
    }
    assert!(guard.sign(&key(), at(&tree, 9), &proof(5, 9)).is_ok());
}

#[test]
fn the_guard_signs_nothing_that_reads_back_differently() {
    let odd = Checkpoint { extensions: vec!["a\nb".to_owned()], ..checkpoint(0, merkle::empty_root()) };
    assert_eq!(CheckpointGuard::new(None).sign(&key(), odd, &[]), Err(CheckpointRefusal::Unreadable));
    let control = Checkpoint { extensions: vec!["a\tb".to_owned()], ..checkpoint(0, merkle::empty_root()) };
    assert_eq!(CheckpointGuard::new(None).sign(&key(), control, &[]), Err(CheckpointRefusal::Note(note::Error::Text)));
}

proptest! {
    #[test]
    fn arbitrary_text_is_refused_or_written_back_as_it_was(text in "[a-z]{0,2}\n[0-9]{0,3}\n([A-Za-z0-9+/]{42}[AQgw]=)?\n(\\PC{0,5}\n)?") {
        if let Ok(checkpoint) = Checkpoint::parse(&text) {
            prop_assert_eq!(checkpoint.to_string(), text);
        }
    }
}
