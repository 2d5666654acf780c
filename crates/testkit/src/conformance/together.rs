//! Concurrency: whatever the interleaving, each promise holds.

use super::fixture::{ConformanceFixture, PLAN, WORKER, claim, done, plan, request, worker};
use super::{ConformanceCase, ConformingStore, cases};
use rutter_core::port::journal::{
    AppendOutcome, EnqueueOutcome, ExecutionOpening, NewCommand, OpenOutcome, SaveOutcome,
};
use rutter_core::port::query::Pagination;
use rutter_core::time::Timestamp;
use rutter_store::wait;
use std::thread;

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    no_two_workers_claim_the_same_execution,
    of_many_appends_at_one_head_one_wins,
    of_many_openings_with_one_key_one_wins,
    of_many_commands_with_one_key_one_is_retained,
    revisions_saved_at_once_are_numbered_without_gaps,
    executions_written_at_once_keep_their_chains,
];

const THREADS: u64 = 8;

/// Does the same work in several threads at once and collects the results.
fn at_once<T: Send>(work: impl Fn(u64) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS).map(|at| scope.spawn(move || work(at))).collect();
        threads.into_iter().map(|thread| thread.join().expect("the work does not panic")).collect()
    })
}

fn no_two_workers_claim_the_same_execution(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for at in 0..40 {
        let mut pen = stage.pen(&format!("exec_{at}"));
        pen.row.due_at = Some(Timestamp(0));
        stage.open(&pen);
    }
    let claimed = at_once(|at| {
        let name = format!("worker_{at}");
        stage.renew(&name, 1_000);
        (0..3).flat_map(|_| done(store.claim(claim(&name, 1, 3)))).collect::<Vec<_>>()
    });
    let claimed = claimed.concat();
    assert!(claimed.iter().all(|lease| lease.epoch == 1));
    let mut names: Vec<_> = claimed.iter().map(|lease| lease.identity.execution.to_string()).collect();
    names.sort();
    names.dedup();
    assert_eq!((claimed.len(), names.len()), (40, 40), "each once, none left");
}

fn of_many_appends_at_one_head_one_wins(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.driven("exec_1");
    let answers = at_once(|at| {
        let mut pen = pen.clone();
        let expected = pen.head();
        let entry = pen.note(&format!("from {at}"));
        wait(store.append(pen.append(expected, vec![entry])))
    });
    let won = answers.iter().filter(|answer| **answer == Ok(AppendOutcome::New)).count();
    let lost = answers.iter().filter_map(|answer| answer.as_ref().err());
    let conflicts = lost.filter(|error| error.code() == "store.conflict").count();
    assert_eq!((won, conflicts as u64), (1, THREADS - 1));
    assert_eq!(done(store.load(&pen.identity)).records.len(), 2);
}

fn of_many_openings_with_one_key_one_wins(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    stage.save(PLAN, &plan("simple"));
    let answers = at_once(|at| {
        let pen = stage.pen(&format!("exec_{at}"));
        let ask = ExecutionOpening { request: request("key", "a"), worker: Some(worker(WORKER)), ..pen.opening() };
        done(store.open(ask))
    });
    let lease = answers.iter().find_map(|opened| match opened {
        OpenOutcome::New { lease } => lease.clone(),
        OpenOutcome::Already { .. } => None,
    });
    let execution = lease.expect("one of them opened it").identity.execution;
    let already = answers.iter().filter(|opened| **opened == OpenOutcome::Already { execution: execution.clone() });
    assert_eq!(already.count() as u64, THREADS - 1);
    assert_eq!(done(store.executions(&stage.tenant(), Default::default(), Pagination::first(10))).items.len(), 1);
}

fn of_many_commands_with_one_key_one_is_retained(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.opened("exec_1");
    let command = || NewCommand { request: request("key", "a"), ..stage.new_command("exec_1", 1) };
    let answers = at_once(|_| done(store.enqueue(command())));
    assert_eq!(answers.iter().filter(|form| matches!(form, EnqueueOutcome::New { .. })).count(), 1);
    assert_eq!(done(store.load(&pen.identity)).commands.len(), 1);
}

fn revisions_saved_at_once_are_numbered_without_gaps(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let saved = at_once(|at| stage.save(PLAN, &plan(&format!("plan {at}"))));
    assert!(saved.iter().all(|saved| matches!(saved, SaveOutcome::New { .. })));
    let mut revisions: Vec<u32> = saved.into_iter().map(SaveOutcome::revision).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=THREADS as u32).collect::<Vec<_>>());
    assert_eq!(done(store.totals(&stage.tenant())).entries, THREADS);
}

fn executions_written_at_once_keep_their_chains(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pens = at_once(|at| {
        let mut pen = stage.driven(&format!("exec_{at}"));
        for round in 0..5 {
            stage.write(&mut pen, &format!("round {round}"));
        }
        pen
    });
    for pen in &pens {
        assert_eq!(done(store.load(&pen.identity)).head, pen.head());
    }
    assert_eq!(done(store.totals(&stage.tenant())).entries, 1 + THREADS * 6);
}
