//! Who may write: claiming, renewing, releasing.

use super::fixture::{ConformanceFixture, ConformanceWriter, WORKER, claim, done, refused, worker};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::port::Error;
use rutter_core::port::journal::{AppendOutcome, Lease};
use rutter_core::time::Timestamp;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    what_is_not_due_is_not_claimed,
    what_is_due_is_claimed_at_that_moment,
    a_claim_gives_the_lease_to_write,
    what_was_claimed_is_not_claimed_again,
    the_oldest_due_come_first_and_no_more_than_asked_for,
    those_due_at_the_same_time_come_in_the_order_of_opening,
    executions_of_all_tenants_are_claimed,
    a_living_worker_keeps_what_it_holds,
    a_worker_lives_to_the_last_moment_of_its_renewal,
    a_worker_that_never_renewed_counts_as_dead,
    each_claim_raises_the_epoch,
    a_worker_that_was_replaced_is_fenced,
    the_same_worker_with_an_older_epoch_is_fenced,
    an_expired_lease_that_was_not_taken_still_counts,
    a_released_execution_can_be_claimed_by_any_worker,
    releasing_twice_does_no_harm,
    releasing_an_execution_that_another_took_is_fenced,
    only_the_holder_can_release,
    an_append_makes_due_or_not,
    the_longer_renewal_counts_even_if_it_came_first,
    claiming_none_claims_none,
];

/// Opens an execution that no worker holds and that is due at this time.
fn due(stage: &ConformanceFixture<'_>, execution: &str, at: i64) -> ConformanceWriter {
    let mut pen = stage.pen(execution);
    pen.row.due_at = Some(Timestamp(at));
    stage.open(&pen);
    pen
}

fn what_is_not_due_is_not_claimed(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.opened("exec_1");
    due(&stage, "exec_2", 100);
    stage.renew(WORKER, 1_000);
    assert!(stage.claim(WORKER, 99, 10).is_empty());
}

fn what_is_due_is_claimed_at_that_moment(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    due(&stage, "exec_1", 100);
    stage.renew(WORKER, 1_000);
    assert_eq!(stage.claim(WORKER, 100, 10), ["exec_1"]);
}

fn a_claim_gives_the_lease_to_write(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = due(&stage, "exec_1", 0);
    stage.renew(WORKER, 1_000);
    let leases = done(store.claim(claim(WORKER, 1, 10)));
    let lease = Lease { identity: pen.identity.clone(), worker: worker(WORKER), epoch: 1 };
    assert_eq!(leases, std::slice::from_ref(&lease));
    pen.lease = lease;
    stage.write(&mut pen, "mine");
}

fn what_was_claimed_is_not_claimed_again(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    due(&stage, "exec_1", 0);
    for name in [WORKER, "worker_2"] {
        stage.renew(name, 1_000);
    }
    assert_eq!(stage.claim(WORKER, 1, 10), ["exec_1"]);
    assert!(stage.claim("worker_2", 1, 10).is_empty());
    assert!(stage.claim(WORKER, 1, 10).is_empty(), "not even by its holder");
}

fn the_oldest_due_come_first_and_no_more_than_asked_for(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for (name, at) in [("exec_1", 30), ("exec_2", 10), ("exec_3", 20)] {
        due(&stage, name, at);
    }
    stage.renew(WORKER, 1_000);
    assert_eq!(stage.claim(WORKER, 50, 2), ["exec_2", "exec_3"]);
    assert_eq!(stage.claim(WORKER, 50, 2), ["exec_1"]);
}

fn those_due_at_the_same_time_come_in_the_order_of_opening(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for name in ["exec_b", "exec_c", "exec_a"] {
        due(&stage, name, 5);
    }
    stage.renew(WORKER, 1_000);
    assert_eq!(stage.claim(WORKER, 50, 2), ["exec_b", "exec_c"]);
}

fn executions_of_all_tenants_are_claimed(store: &dyn ConformingStore) {
    let other = ConformanceFixture::of(store, "elsewhere");
    due(&ConformanceFixture::new(store), "exec_1", 2);
    due(&other, "exec_1", 1);
    other.renew(WORKER, 1_000);
    let leases = done(store.claim(claim(WORKER, 5, 10)));
    let tenants: Vec<&str> = leases.iter().map(|lease| lease.identity.tenant.as_str()).collect();
    assert_eq!(tenants, ["elsewhere", "harbour"]);
}

fn a_living_worker_keeps_what_it_holds(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    due(&stage, "exec_1", 0);
    stage.renew(WORKER, 10);
    stage.renew("worker_2", 1_000);
    stage.claim(WORKER, 1, 1);
    stage.renew(WORKER, 500);
    assert!(stage.claim("worker_2", 400, 10).is_empty());
    assert_eq!(stage.claim("worker_2", 501, 10), ["exec_1"]);
}

fn a_worker_lives_to_the_last_moment_of_its_renewal(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    due(&stage, "exec_1", 0);
    stage.renew(WORKER, 10);
    stage.renew("worker_2", 1_000);
    stage.claim(WORKER, 1, 1);
    assert!(stage.claim("worker_2", 10, 10).is_empty());
    assert_eq!(stage.claim("worker_2", 11, 10), ["exec_1"]);
}

/// So a worker must renew before it claims; otherwise others may take what it has claimed.
fn a_worker_that_never_renewed_counts_as_dead(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    pen.row.due_at = Some(Timestamp(0));
    stage.drive(pen);
    stage.renew("worker_2", 1_000);
    assert_eq!(stage.claim("worker_2", 1, 10), ["exec_1"]);
}

fn each_claim_raises_the_epoch(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    due(&stage, "exec_1", 0);
    for epoch in 1..=4 {
        let lease = done(store.claim(claim(WORKER, 1, 1))).remove(0);
        assert_eq!(lease.epoch, epoch);
        if epoch % 2 == 0 {
            done(store.release(lease));
        }
    }
}

fn a_worker_that_was_replaced_is_fenced(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    pen.row.due_at = Some(Timestamp(0));
    let mut pen = stage.drive(pen);
    stage.claim("worker_2", 1, 1);
    let expected = pen.head();
    let entry = pen.note("too late");
    let error = refused(store.append(pen.append(expected, vec![entry.clone()])), "store.fenced");
    assert_eq!(error, Error::Fenced { execution: pen.identity.execution.clone(), epoch: 2 });
    assert_eq!(done(store.load(&pen.identity)).head, expected);
    pen.lease = Lease { worker: worker("worker_2"), epoch: 2, ..pen.lease };
    assert_eq!(done(store.append(pen.append(expected, vec![entry]))), AppendOutcome::New);
}

fn the_same_worker_with_an_older_epoch_is_fenced(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    pen.row.due_at = Some(Timestamp(0));
    let mut pen = stage.drive(pen);
    stage.claim(WORKER, 1, 1);
    let (expected, entry) = (pen.head(), pen.note("from before"));
    refused(store.append(pen.append(expected, vec![entry])), "store.fenced");
    pen.lease.epoch = 3;
    refused(store.append(pen.append(expected, Vec::new())), "store.fenced");
}

fn an_expired_lease_that_was_not_taken_still_counts(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.renew(WORKER, 1);
    pen.now = Timestamp(1_000_000);
    stage.write(&mut pen, "slow, but alone");
}

fn a_released_execution_can_be_claimed_by_any_worker(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    pen.row.due_at = Some(Timestamp(0));
    let pen = stage.drive(pen);
    for name in [WORKER, "worker_2"] {
        stage.renew(name, 1_000);
    }
    done(store.release(pen.lease.clone()));
    refused(store.append(pen.append(pen.head(), Vec::new())), "store.fenced");
    assert_eq!(stage.claim("worker_2", 1, 1), ["exec_1"]);
}

fn releasing_twice_does_no_harm(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.driven("exec_1");
    done(store.release(pen.lease.clone()));
    done(store.release(pen.lease));
}

fn releasing_an_execution_that_another_took_is_fenced(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.pen("exec_1");
    pen.row.due_at = Some(Timestamp(0));
    let mut pen = stage.drive(pen);
    stage.claim("worker_2", 1, 1);
    refused(store.release(pen.lease.clone()), "store.fenced");
    pen.lease = Lease { worker: worker("worker_2"), epoch: 2, ..pen.lease };
    stage.write(&mut pen, "still mine");
}

fn only_the_holder_can_release(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let other = Lease { worker: worker("worker_2"), ..pen.lease.clone() };
    refused(store.release(other), "store.fenced");
    refused(store.release(Lease { epoch: 2, ..pen.lease.clone() }), "store.fenced");
    let nowhere = Lease { identity: stage.identity("exec_2"), ..pen.lease.clone() };
    refused(store.release(nowhere), "store.not_found");
    stage.write(&mut pen, "still mine");
}

fn an_append_makes_due_or_not(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    pen.row.due_at = Some(Timestamp(50));
    stage.write(&mut pen, "wake me");
    assert_eq!(done(store.execution(&pen.identity)).expect("it is there").row.due_at, Some(Timestamp(50)));
    assert!(stage.claim("worker_2", 49, 1).is_empty());
    pen.row.due_at = None;
    stage.write(&mut pen, "let me sleep");
    assert!(stage.claim("worker_2", 1_000, 1).is_empty());
}

fn the_longer_renewal_counts_even_if_it_came_first(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    due(&stage, "exec_1", 0);
    stage.renew(WORKER, 1_000);
    stage.claim(WORKER, 1, 1);
    stage.renew(WORKER, 5);
    assert!(stage.claim("worker_2", 1_000, 1).is_empty());
    assert_eq!(stage.claim("worker_2", 1_001, 1), ["exec_1"]);
}

fn claiming_none_claims_none(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    due(&stage, "exec_1", 0);
    assert!(stage.claim(WORKER, 1, 0).is_empty());
    assert_eq!(done(store.claim(claim(WORKER, 1, 1)))[0].epoch, 1);
}
