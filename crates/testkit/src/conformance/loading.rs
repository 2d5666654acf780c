//! Loading an execution: everything that was written, for its owner only.

use super::fixture::{ConformanceFixture, ConformanceWriter, PLAN, WORKER, done, plan, refused, worker};
use super::{ConformanceCase, ConformingStore, cases};
use crate::chance::SeededRandom;
use crate::simulator::plans;
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::hash::Hash;
use rutter_core::journal::event::{Event, EventRecord, PlanReference};
use rutter_core::journal::payload::EventPayload;
use rutter_core::port::journal::{AppendOutcome, AppendRequest, ExecutionOpening, Lease, OpenOutcome};
use rutter_core::time::Timestamp;
use serde_json::{Value, json};

pub(super) const CASES: &[(&str, ConformanceCase)] = cases![
    what_was_appended_is_loaded,
    payloads_are_loaded_unchanged,
    a_loaded_journal_replays_to_the_live_state,
    a_replanned_execution_comes_with_both_plans,
    an_append_that_names_an_unsaved_plan_is_refused,
    an_unknown_execution_is_not_found,
    the_execution_of_another_tenant_is_not_found,
    the_lease_of_another_tenant_writes_nothing,
];

fn what_was_appended_is_loaded(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    stage.write(&mut pen, "a");
    let expected = pen.head();
    let entries = vec![pen.note("b"), pen.note("c")];
    done(store.append(pen.append(expected, entries)));
    let loaded = done(store.load(&pen.identity));
    assert_eq!((loaded.head, loaded.plan.as_str()), (pen.head(), PLAN));
    let words: Vec<Option<String>> = loaded.records.iter().map(|record| record.event.words()).collect();
    assert_eq!(words, [None, Some("a".into()), Some("b".into()), Some("c".into())]);
    assert!(loaded.commands.is_empty());
}

fn payloads_are_loaded_unchanged(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let values = [
        json!({ "z": 1, "a": [1.5, -0.0, 1e300, null, true], "text": "ä\u{0}\u{1F6A2}\"\\" }),
        json!(9_007_199_254_740_993_u64),
        json!(""),
        Value::Null,
    ];
    let expected = pen.head();
    let entries = values.iter().map(|value| pen.note_with("with a payload", value.clone())).collect();
    done(store.append(pen.append(expected, entries)));
    let loaded = done(store.load(&pen.identity));
    for (record, value) in loaded.records[1..].iter().zip(values) {
        let Event::DecisionRecorded { details: Some(EventPayload::Present(details)), .. } = &record.event else {
            panic!("{record:?}")
        };
        assert_eq!(details.to_string(), value.to_string());
    }
}

/// A real execution of a random plan, written to the store as it proceeds.
struct LiveExecution {
    pen: ConformanceWriter,
    execution: Execution,
}

impl LiveExecution {
    fn open(stage: &ConformanceFixture<'_>, seed: u64) -> LiveExecution {
        let document = plans::document(&mut SeededRandom::new(seed));
        let plan = plans::compile(&document, &plans::catalog()).unwrap_or_else(|found| panic!("{found}"));
        stage.save(PLAN, &plan);
        let mut pen = ConformanceWriter::new(stage.identity(&format!("exec_{seed}")), PLAN, &plan, Timestamp(0));
        let opening = ExecutionOpening { worker: Some(worker(WORKER)), ..pen.opening() };
        let OpenOutcome::New { lease: Some(lease) } = done(stage.store.open(opening)) else { panic!("not opened") };
        pen.lease = lease;
        let loaded = done(stage.store.load(&pen.identity));
        let execution = Execution::replay(pen.identity.clone(), &loaded.records).expect("it replays");
        LiveExecution { pen, execution }
    }

    fn decide(&mut self, store: &dyn ConformingStore, room: u32, input: ExecutionInput) {
        let moment = DecisionContext { now: Timestamp(10), room };
        let decision = self.execution.decide(&Actor::agent("pilot"), input, moment).expect("it is possible");
        let expected = self.pen.head();
        self.pen.now = moment.now;
        let entries =
            decision.records.into_iter().map(|EventRecord { actor, event, .. }| self.pen.seal_as(actor, event));
        let entries = entries.collect();
        self.pen.row = self.execution.row();
        assert_eq!(done(store.append(self.pen.append(expected, entries))), AppendOutcome::New);
    }

    fn compare(&self, store: &dyn ConformingStore) {
        let loaded = done(store.load(&self.pen.identity));
        assert_eq!(loaded.head, self.pen.head());
        let replayed = Execution::replay(self.pen.identity.clone(), &loaded.records).expect("it replays");
        assert_eq!(replayed, self.execution);
        assert_eq!(done(store.execution(&self.pen.identity)).expect("it is there").row, self.execution.row());
    }
}

fn a_loaded_journal_replays_to_the_live_state(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    for seed in 0..8 {
        let mut live = LiveExecution::open(&stage, seed);
        live.decide(store, 4, ExecutionInput::Start);
        live.compare(store);
        live.decide(store, 4, ExecutionInput::Recovered);
        live.compare(store);
    }
}

fn a_replanned_execution_comes_with_both_plans(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut live = LiveExecution::open(&stage, 1);
    let (first, second) = (live.execution.plan().hash, plan("second"));
    stage.save(PLAN, &second);
    stage.save(PLAN, &plan("third"));
    live.decide(store, 0, ExecutionInput::Start);
    let reason = "a better way".into();
    live.decide(store, 0, ExecutionInput::Replan { plan: second.clone(), revision: 2, reason });
    live.compare(store);
    let loaded = done(store.load(&live.pen.identity));
    let named = loaded.records.iter().filter_map(|record| match &record.event {
        Event::ExecutionOpened { plan, .. } | Event::Replanned { plan, .. } => plan.plan.as_ref(),
        _ => None,
    });
    assert_eq!(named.map(|plan| plan.hash).collect::<Vec<_>>(), [first, second.hash]);
}

/// Otherwise the execution could never be loaded again.
fn an_append_that_names_an_unsaved_plan_is_refused(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let mut pen = stage.driven("exec_1");
    let expected = pen.head();
    let plan = PlanReference { hash: Hash::of(&[b"unsaved"]), plan: None };
    pen.row.plan = plan.hash;
    let entry = pen.seal(Event::Replanned { plan, revision: 2, reason: "why not".into() });
    refused(store.append(pen.append(expected, vec![entry])), "store.not_found");
    assert_eq!(done(store.load(&pen.identity)).head, expected);
}

fn an_unknown_execution_is_not_found(store: &dyn ConformingStore) {
    let stage = ConformanceFixture::new(store);
    let pen = stage.pen("exec_1");
    refused(store.load(&pen.identity), "store.not_found");
    refused(store.append(pen.append(pen.head(), Vec::new())), "store.not_found");
    refused(store.release(pen.lease), "store.not_found");
    assert!(done(store.execution(&pen.identity)).is_none());
}

fn the_execution_of_another_tenant_is_not_found(store: &dyn ConformingStore) {
    let stranger = ConformanceFixture::of(store, "elsewhere");
    ConformanceFixture::new(store).driven("exec_1");
    let error = |name: &str| refused(store.load(&stranger.identity(name)), "store.not_found").to_string();
    assert_eq!(error("exec_1").replace("exec_1", "exec_2"), error("exec_2"));
    assert!(done(store.execution(&stranger.identity("exec_1"))).is_none());
    refused(store.enqueue(stranger.new_command("exec_1", 1)), "store.not_found");
}

fn the_lease_of_another_tenant_writes_nothing(store: &dyn ConformingStore) {
    let stranger = ConformanceFixture::of(store, "elsewhere");
    let mut pen = ConformanceFixture::new(store).driven("exec_1");
    let expected = pen.head();
    let entry = pen.note("not mine");
    let lease = Lease { identity: stranger.identity("exec_1"), ..pen.lease.clone() };
    let append = AppendRequest { lease, ..pen.append(expected, vec![entry]) };
    refused(store.append(append), "store.not_found");
    assert_eq!(done(store.load(&pen.identity)).head, expected);
}
