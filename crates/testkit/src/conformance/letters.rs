//! The inbox: what is asked of an execution waits until its worker has answered it.

use super::stage::{Pen, Stage, WORKER, done, refused, request};
use super::{Case, Store, cases};
use rutter_core::actor::Actor;
use rutter_core::execution::view::Status;
use rutter_core::port::journal::{Append, NewLetter, Opening, Posted};
use rutter_core::time::Timestamp;

pub(super) const CASES: &[(&str, Case)] = cases![
    letters_are_loaded_oldest_first,
    a_letter_makes_its_execution_due,
    a_letter_does_not_make_it_due_later_than_it_was,
    an_answered_letter_is_gone,
    a_letter_that_is_not_answered_keeps_it_due,
    the_oldest_letter_left_says_when_it_is_due,
    answering_a_letter_twice_does_no_harm,
    letters_of_another_execution_cannot_be_answered,
    a_letter_to_nobody_is_not_found,
    a_letter_to_an_ended_execution_is_accepted,
    the_same_letter_twice_is_one_letter,
    a_letter_is_known_after_it_was_answered,
    a_letter_that_was_refused_may_come_again,
    another_letter_under_a_used_key_is_refused,
    a_letter_without_a_key_is_always_new,
    a_letter_does_not_take_the_lease_away,
];

fn due_at(store: &dyn Store, stage: &Stage<'_>) -> Option<Timestamp> {
    done(store.execution(&stage.identity("exec_1"))).expect("it is there").row.due_at
}

fn letters_are_loaded_oldest_first(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.opened("exec_1");
    let letter = |text: &str, at| NewLetter { bytes: text.into(), ..stage.letter("exec_1", at) };
    done(store.post(letter("first", 9)));
    done(store.post(NewLetter { actor: Actor::agent("pilot"), ..letter("second", 5) }));
    done(store.post(letter("", 7)));
    let letters = done(store.load(&stage.identity("exec_1"))).letters;
    let texts: Vec<&[u8]> = letters.iter().map(|letter| &letter.bytes[..]).collect();
    assert_eq!(texts, [&b"first"[..], b"second", b""], "in the order of posting, whatever the clocks said");
    assert_eq!((&letters[1].actor, letters[1].at), (&Actor::agent("pilot"), Timestamp(5)));
    assert!(letters.is_sorted_by(|a, b| a.number < b.number));
    assert_eq!(done(store.execution(&stage.identity("exec_1"))).expect("it is there").letters, 3);
}

fn a_letter_makes_its_execution_due(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.opened("exec_1");
    stage.post("exec_1", 40);
    assert_eq!(due_at(store, &stage), Some(Timestamp(40)));
    assert!(stage.claim(WORKER, 39, 1).is_empty());
    assert_eq!(stage.claim(WORKER, 40, 1), ["exec_1"]);
}

fn a_letter_does_not_make_it_due_later_than_it_was(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.pen("exec_1");
    pen.row.due_at = Some(Timestamp(10));
    stage.open(&pen);
    stage.post("exec_1", 40);
    assert_eq!(due_at(store, &stage), Some(Timestamp(10)));
}

fn an_answered_letter_is_gone(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.driven("exec_1");
    let (first, second) = (stage.post("exec_1", 4), stage.post("exec_1", 5));
    let expected = pen.head();
    let entry = pen.note("so be it");
    done(store.append(Append { consumed: vec![first], ..pen.append(expected, vec![entry]) }));
    let letters = done(store.load(&pen.identity)).letters;
    assert_eq!(letters.iter().map(|letter| letter.number).collect::<Vec<_>>(), [second]);
    stage.settle(&pen, &[second]);
    assert!(done(store.load(&pen.identity)).letters.is_empty());
    assert_eq!(due_at(store, &stage), None);
}

/// It may have come while the worker was deciding; the worker's row knows nothing of it.
fn a_letter_that_is_not_answered_keeps_it_due(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.driven("exec_1");
    stage.post("exec_1", 4);
    stage.write(&mut pen, "meanwhile");
    assert_eq!(due_at(store, &stage), Some(Timestamp(4)));
    pen.row.due_at = Some(Timestamp(2));
    stage.write(&mut pen, "sooner");
    assert_eq!(due_at(store, &stage), Some(Timestamp(2)));
    pen.row.due_at = Some(Timestamp(1_000));
    stage.write(&mut pen, "later");
    assert_eq!(due_at(store, &stage), Some(Timestamp(4)));
    assert_eq!(stage.claim("worker_2", 4, 1), ["exec_1"]);
}

fn the_oldest_letter_left_says_when_it_is_due(store: &dyn Store) {
    let stage = Stage::new(store);
    let pen = stage.driven("exec_1");
    let first = stage.post("exec_1", 4);
    stage.post("exec_1", 6);
    stage.post("exec_1", 8);
    stage.settle(&pen, &[first]);
    assert_eq!(due_at(store, &stage), Some(Timestamp(6)));
}

fn answering_a_letter_twice_does_no_harm(store: &dyn Store) {
    let stage = Stage::new(store);
    let pen = stage.driven("exec_1");
    let letter = stage.post("exec_1", 4);
    stage.settle(&pen, &[letter]);
    let later = stage.post("exec_1", 5);
    stage.settle(&pen, &[letter, 0, u64::MAX]);
    let letters = done(store.load(&pen.identity)).letters;
    assert_eq!(letters.iter().map(|letter| letter.number).collect::<Vec<_>>(), [later]);
}

fn letters_of_another_execution_cannot_be_answered(store: &dyn Store) {
    let stage = Stage::new(store);
    let (pen, other) = (stage.driven("exec_1"), stage.opened("exec_2"));
    let letter = stage.post("exec_2", 4);
    stage.settle(&pen, &[letter]);
    assert_eq!(done(store.load(&other.identity)).letters.len(), 1);
}

fn a_letter_to_nobody_is_not_found(store: &dyn Store) {
    let stage = Stage::new(store);
    refused(store.post(stage.letter("exec_1", 1)), "store.not_found");
}

fn a_letter_to_an_ended_execution_is_accepted(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.ended("exec_1", Status::Completed, 10);
    stage.post("exec_1", 20);
    assert_eq!(stage.claim("worker_2", 20, 1), ["exec_1"]);
}

fn the_same_letter_twice_is_one_letter(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.opened("exec_1");
    let letter = || NewLetter { request: request("key", "a"), ..stage.letter("exec_1", 5) };
    assert!(matches!(done(store.post(letter())), Posted::New { .. }));
    assert_eq!(done(store.post(letter())), Posted::Already);
    assert_eq!(done(store.load(&stage.identity("exec_1"))).letters.len(), 1);
}

fn a_letter_is_known_after_it_was_answered(store: &dyn Store) {
    let stage = Stage::new(store);
    let pen = stage.driven("exec_1");
    let letter = || NewLetter { request: request("key", "a"), ..stage.letter("exec_1", 5) };
    let Posted::New { letter: number } = done(store.post(letter())) else { panic!("it is new") };
    stage.settle(&pen, &[number]);
    assert_eq!(done(store.post(letter())), Posted::Already);
    assert!(done(store.load(&pen.identity)).letters.is_empty());
    assert_eq!(due_at(store, &stage), None, "what is known makes nothing due");
}

fn a_letter_that_was_refused_may_come_again(store: &dyn Store) {
    let stage = Stage::new(store);
    let (pen, other) = (stage.driven("exec_1"), stage.driven("exec_2"));
    let letter = || NewLetter { request: request("key", "a"), ..stage.letter("exec_1", 5) };
    let Posted::New { letter: number } = done(store.post(letter())) else { panic!("it is new") };
    let forget = |pen: &Pen, consumed: Vec<u64>| {
        let forgotten = vec!["key".to_owned(), "unknown".to_owned()];
        done(store.append(Append { consumed, forgotten, ..pen.append(pen.head(), Vec::new()) }))
    };
    forget(&other, Vec::new());
    assert_eq!(done(store.post(letter())), Posted::Already, "another execution has no say in it");
    forget(&pen, vec![number]);
    assert!(matches!(done(store.post(letter())), Posted::New { .. }));
}

fn another_letter_under_a_used_key_is_refused(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.opened("exec_1");
    done(store.open(Opening { request: request("opening", "a"), ..stage.pen("exec_2").opening() }));
    let letter = |key, about| NewLetter { request: request(key, about), ..stage.letter("exec_1", 5) };
    done(store.post(letter("key", "a")));
    refused(store.post(letter("key", "b")), "store.key_reused");
    refused(store.post(letter("opening", "b")), "store.key_reused");
    assert_eq!(done(store.load(&stage.identity("exec_1"))).letters.len(), 1);
}

fn a_letter_without_a_key_is_always_new(store: &dyn Store) {
    let stage = Stage::new(store);
    stage.opened("exec_1");
    assert_ne!(stage.post("exec_1", 1), stage.post("exec_1", 1));
    assert_eq!(done(store.load(&stage.identity("exec_1"))).letters.len(), 2);
}

fn a_letter_does_not_take_the_lease_away(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.driven("exec_1");
    stage.renew(WORKER, 100);
    stage.post("exec_1", 1);
    assert!(stage.claim("worker_2", 50, 1).is_empty());
    stage.write(&mut pen, "still mine");
}
