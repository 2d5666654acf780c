//! The inbox: a command to an execution waits until its worker has answered it.

use super::fixture::{ConformanceFixture, ConformanceWriter, WORKER, done, refused, request};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::actor::Actor;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::port::journal::{AppendRequest, EnqueueOutcome, ExecutionOpening, NewCommand};
use rutter_core::time::Timestamp;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    commands_are_loaded_oldest_first,
    a_command_makes_its_execution_due,
    a_command_does_not_make_it_due_later_than_it_was,
    an_answered_command_is_gone,
    a_command_that_is_not_answered_keeps_it_due,
    the_oldest_remaining_command_sets_when_it_is_due,
    answering_a_command_twice_does_no_harm,
    commands_of_another_execution_cannot_be_answered,
    a_command_to_an_unknown_execution_is_not_found,
    a_command_to_an_ended_execution_is_accepted,
    the_same_command_twice_is_one_command,
    a_command_is_known_after_it_was_answered,
    a_command_that_was_refused_may_come_again,
    another_command_under_a_used_key_is_refused,
    a_command_without_a_key_is_always_new,
    a_command_does_not_take_the_lease_away,
];

fn due_at(store: &dyn ConformingStore, stage: &ConformanceFixture<'_>) -> Option<Timestamp> {
    done(store.execution(&stage.identity("exec_1"))).expect("it is there").row.due_at
}

fn commands_are_loaded_oldest_first(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    let command = |text: &str, at| NewCommand { bytes: text.into(), ..stage.new_command("exec_1", at) };
    done(store.enqueue(command("first", 9)));
    done(store.enqueue(NewCommand { actor: Actor::agent("pilot"), ..command("second", 5) }));
    done(store.enqueue(command("", 7)));
    let commands = done(store.load(&stage.identity("exec_1"))).commands;
    let texts: Vec<&[u8]> = commands.iter().map(|stored_command| &stored_command.bytes[..]).collect();
    assert_eq!(texts, [&b"first"[..], b"second", b""], "in the order of arrival, whatever the clocks say");
    assert_eq!((&commands[1].actor, commands[1].at), (&Actor::agent("pilot"), Timestamp(5)));
    assert!(commands.is_sorted_by(|a, b| a.number < b.number));
    assert_eq!(done(store.execution(&stage.identity("exec_1"))).expect("it is there").pending_commands, 3);
}

fn a_command_makes_its_execution_due(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    stage.enqueue("exec_1", 40);
    assert_eq!(due_at(store, &stage), Some(Timestamp(40)));
    assert!(stage.claim(WORKER, 39, 1).is_empty());
    assert_eq!(stage.claim(WORKER, 40, 1), ["exec_1"]);
}

fn a_command_does_not_make_it_due_later_than_it_was(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    pen.row.due_at = Some(Timestamp(10));
    stage.open(&pen);
    stage.enqueue("exec_1", 40);
    assert_eq!(due_at(store, &stage), Some(Timestamp(10)));
}

fn an_answered_command_is_gone(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let (first, second) = (stage.enqueue("exec_1", 4), stage.enqueue("exec_1", 5));
    let expected = pen.head();
    let entry = pen.note("so be it");
    done(store.append(AppendRequest { decided_commands: vec![first], ..pen.append(expected, vec![entry]) }));
    let commands = done(store.load(&pen.identity)).commands;
    assert_eq!(commands.iter().map(|command| command.number).collect::<Vec<_>>(), [second]);
    stage.settle(&pen, &[second]);
    assert!(done(store.load(&pen.identity)).commands.is_empty());
    assert_eq!(due_at(store, &stage), None);
}

/// It may have arrived while the worker was deciding; the worker's row does not include it.
fn a_command_that_is_not_answered_keeps_it_due(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.enqueue("exec_1", 4);
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

fn the_oldest_remaining_command_sets_when_it_is_due(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.driven("exec_1");
    let first = stage.enqueue("exec_1", 4);
    stage.enqueue("exec_1", 6);
    stage.enqueue("exec_1", 8);
    stage.settle(&pen, &[first]);
    assert_eq!(due_at(store, &stage), Some(Timestamp(6)));
}

fn answering_a_command_twice_does_no_harm(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.driven("exec_1");
    let command = stage.enqueue("exec_1", 4);
    stage.settle(&pen, &[command]);
    let later = stage.enqueue("exec_1", 5);
    stage.settle(&pen, &[command, 0, u64::MAX]);
    let commands = done(store.load(&pen.identity)).commands;
    assert_eq!(commands.iter().map(|stored_command| stored_command.number).collect::<Vec<_>>(), [later]);
}

fn commands_of_another_execution_cannot_be_answered(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (pen, other) = (stage.driven("exec_1"), stage.opened("exec_2"));
    let command = stage.enqueue("exec_2", 4);
    stage.settle(&pen, &[command]);
    assert_eq!(done(store.load(&other.identity)).commands.len(), 1);
}

fn a_command_to_an_unknown_execution_is_not_found(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    refused(store.enqueue(stage.new_command("exec_1", 1)), "store.not_found");
}

fn a_command_to_an_ended_execution_is_accepted(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.ended("exec_1", ExecutionStatus::Completed, 10);
    stage.enqueue("exec_1", 20);
    assert_eq!(stage.claim("worker_2", 20, 1), ["exec_1"]);
}

fn the_same_command_twice_is_one_command(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    let command = || NewCommand { request: request("key", "a"), ..stage.new_command("exec_1", 5) };
    assert!(matches!(done(store.enqueue(command())), EnqueueOutcome::New { .. }));
    assert_eq!(done(store.enqueue(command())), EnqueueOutcome::Already);
    assert_eq!(done(store.load(&stage.identity("exec_1"))).commands.len(), 1);
}

fn a_command_is_known_after_it_was_answered(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.driven("exec_1");
    let stored_command = || NewCommand { request: request("key", "a"), ..stage.new_command("exec_1", 5) };
    let EnqueueOutcome::New { command: number } = done(store.enqueue(stored_command())) else { panic!("it is new") };
    stage.settle(&pen, &[number]);
    assert_eq!(done(store.enqueue(stored_command())), EnqueueOutcome::Already);
    assert!(done(store.load(&pen.identity)).commands.is_empty());
    assert_eq!(due_at(store, &stage), None, "what is known makes nothing due");
}

fn a_command_that_was_refused_may_come_again(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let (pen, other) = (stage.driven("exec_1"), stage.driven("exec_2"));
    let stored_command = || NewCommand { request: request("key", "a"), ..stage.new_command("exec_1", 5) };
    let EnqueueOutcome::New { command: number } = done(store.enqueue(stored_command())) else { panic!("it is new") };
    let forget = |pen: &ConformanceWriter, consumed: Vec<u64>| {
        let forgotten = vec!["key".to_owned(), "unknown".to_owned()];
        done(store.append(AppendRequest {
            decided_commands: consumed,
            refused_keys: forgotten,
            ..pen.append(pen.head(), Vec::new())
        }))
    };
    forget(&other, Vec::new());
    assert_eq!(done(store.enqueue(stored_command())), EnqueueOutcome::Already, "another execution cannot forget it");
    forget(&pen, vec![number]);
    assert!(matches!(done(store.enqueue(stored_command())), EnqueueOutcome::New { .. }));
}

fn another_command_under_a_used_key_is_refused(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    done(store.open(ExecutionOpening { request: request("opening", "a"), ..stage.pen("exec_2").opening() }));
    let command = |key, about| NewCommand { request: request(key, about), ..stage.new_command("exec_1", 5) };
    done(store.enqueue(command("key", "a")));
    refused(store.enqueue(command("key", "b")), "store.key_reused");
    refused(store.enqueue(command("opening", "b")), "store.key_reused");
    assert_eq!(done(store.load(&stage.identity("exec_1"))).commands.len(), 1);
}

fn a_command_without_a_key_is_always_new(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    assert_ne!(stage.enqueue("exec_1", 1), stage.enqueue("exec_1", 1));
    assert_eq!(done(store.load(&stage.identity("exec_1"))).commands.len(), 2);
}

fn a_command_does_not_take_the_lease_away(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.renew(WORKER, 100);
    stage.enqueue("exec_1", 1);
    assert!(stage.claim("worker_2", 50, 1).is_empty());
    stage.write(&mut pen, "still mine");
}
