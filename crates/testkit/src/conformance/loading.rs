//! Reading an execution back: what was written, all of it, for its owner only.

use super::stage::{PLAN, Pen, Stage, WORKER, done, plan, refused, worker};
use super::{Case, Store, cases};
use crate::chance::Chance;
use crate::simulator::plans;
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::input::{Input, Moment};
use rutter_core::hash::Hash;
use rutter_core::journal::event::{Event, PlanRef, Record};
use rutter_core::journal::payload::Payload;
use rutter_core::port::journal::{Append, Appended, Lease, Opened, Opening};
use rutter_core::time::Timestamp;
use serde_json::{Value, json};

pub(super) const CASES: &[(&str, Case)] = cases![
    what_was_appended_is_loaded,
    payloads_come_back_as_they_were,
    a_loaded_journal_replays_to_the_live_state,
    a_replanned_execution_comes_with_both_plans,
    an_append_that_names_an_unsaved_plan_is_refused,
    an_unknown_execution_is_not_found,
    the_execution_of_another_tenant_is_as_unknown_as_one_that_never_was,
    the_lease_of_another_tenant_writes_nothing,
];

fn what_was_appended_is_loaded(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.driven("exec_1");
    stage.write(&mut pen, "a");
    let expected = pen.head();
    let entries = vec![pen.note("b"), pen.note("c")];
    done(store.append(pen.append(expected, entries)));
    let loaded = done(store.load(&pen.identity));
    assert_eq!((loaded.head, loaded.plan.as_str()), (pen.head(), PLAN));
    let words: Vec<Option<String>> = loaded.records.iter().map(|record| record.event.words()).collect();
    assert_eq!(words, [None, Some("a".into()), Some("b".into()), Some("c".into())]);
    assert!(loaded.letters.is_empty());
}

fn payloads_come_back_as_they_were(store: &dyn Store) {
    let stage = Stage::new(store);
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
        let Event::DecisionRecorded { details: Some(Payload::Present(details)), .. } = &record.event else {
            panic!("{record:?}")
        };
        assert_eq!(details.to_string(), value.to_string());
    }
}

/// A real execution of a random plan, written to the store as it goes.
struct Live {
    pen: Pen,
    execution: Execution,
}

impl Live {
    fn open(stage: &Stage<'_>, seed: u64) -> Live {
        let document = plans::document(&mut Chance::new(seed));
        let plan = plans::compile(&document, &plans::catalog()).unwrap_or_else(|found| panic!("{found}"));
        stage.save(PLAN, &plan);
        let mut pen = Pen::new(stage.identity(&format!("exec_{seed}")), PLAN, &plan, Timestamp(0));
        let opening = Opening { worker: Some(worker(WORKER)), ..pen.opening() };
        let Opened::New { lease: Some(lease) } = done(stage.store.open(opening)) else {
            panic!("not opened")
        };
        pen.lease = lease;
        let loaded = done(stage.store.load(&pen.identity));
        let execution = Execution::replay(pen.identity.clone(), &loaded.records).expect("it replays");
        Live { pen, execution }
    }

    fn decide(&mut self, store: &dyn Store, room: u32, input: Input) {
        let moment = Moment { now: Timestamp(10), room };
        let decision = self.execution.decide(&Actor::agent("pilot"), input, moment).expect("it is possible");
        let expected = self.pen.head();
        self.pen.now = moment.now;
        let entries =
            decision.records.into_iter().map(|Record { actor, event, .. }| self.pen.seal_as(actor, event));
        let entries = entries.collect();
        self.pen.row = self.execution.row();
        assert_eq!(done(store.append(self.pen.append(expected, entries))), Appended::New);
    }

    fn compare(&self, store: &dyn Store) {
        let loaded = done(store.load(&self.pen.identity));
        assert_eq!(loaded.head, self.pen.head());
        let replayed = Execution::replay(self.pen.identity.clone(), &loaded.records).expect("it replays");
        assert_eq!(replayed, self.execution);
        assert_eq!(done(store.execution(&self.pen.identity)).expect("it is there").row, self.execution.row());
    }
}

fn a_loaded_journal_replays_to_the_live_state(store: &dyn Store) {
    let stage = Stage::new(store);
    for seed in 0..8 {
        let mut live = Live::open(&stage, seed);
        live.decide(store, 4, Input::Start);
        live.compare(store);
        live.decide(store, 4, Input::Recovered);
        live.compare(store);
    }
}

fn a_replanned_execution_comes_with_both_plans(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut live = Live::open(&stage, 1);
    let (first, second) = (live.execution.plan().hash, plan("second"));
    stage.save(PLAN, &second);
    stage.save(PLAN, &plan("third"));
    live.decide(store, 0, Input::Start);
    live.decide(store, 0, Input::Replan { plan: second.clone(), reason: "a better way".into() });
    live.compare(store);
    let loaded = done(store.load(&live.pen.identity));
    let named = loaded.records.iter().filter_map(|record| match &record.event {
        Event::ExecutionOpened { plan, .. } | Event::Replanned { plan, .. } => plan.plan.as_ref(),
        _ => None,
    });
    assert_eq!(named.map(|plan| plan.hash).collect::<Vec<_>>(), [first, second.hash]);
}

/// Otherwise the execution could never be loaded again.
fn an_append_that_names_an_unsaved_plan_is_refused(store: &dyn Store) {
    let stage = Stage::new(store);
    let mut pen = stage.driven("exec_1");
    let expected = pen.head();
    let plan = PlanRef { hash: Hash::of(&[b"unsaved"]), plan: None };
    pen.row.plan = plan.hash;
    let entry = pen.seal(Event::Replanned { plan, revision: 2, reason: "why not".into() });
    refused(store.append(pen.append(expected, vec![entry])), "store.not_found");
    assert_eq!(done(store.load(&pen.identity)).head, expected);
}

fn an_unknown_execution_is_not_found(store: &dyn Store) {
    let stage = Stage::new(store);
    let pen = stage.pen("exec_1");
    refused(store.load(&pen.identity), "store.not_found");
    refused(store.append(pen.append(pen.head(), Vec::new())), "store.not_found");
    refused(store.release(pen.lease), "store.not_found");
    assert!(done(store.execution(&pen.identity)).is_none());
}

fn the_execution_of_another_tenant_is_as_unknown_as_one_that_never_was(store: &dyn Store) {
    let stranger = Stage::of(store, "elsewhere");
    Stage::new(store).driven("exec_1");
    let error = |name: &str| refused(store.load(&stranger.identity(name)), "store.not_found").to_string();
    assert_eq!(error("exec_1").replace("exec_1", "exec_2"), error("exec_2"));
    assert!(done(store.execution(&stranger.identity("exec_1"))).is_none());
    refused(store.post(stranger.letter("exec_1", 1)), "store.not_found");
}

fn the_lease_of_another_tenant_writes_nothing(store: &dyn Store) {
    let stranger = Stage::of(store, "elsewhere");
    let mut pen = Stage::new(store).driven("exec_1");
    let expected = pen.head();
    let entry = pen.note("not mine");
    let lease = Lease { identity: stranger.identity("exec_1"), ..pen.lease.clone() };
    let append = Append { lease, ..pen.append(expected, vec![entry]) };
    refused(store.append(append), "store.not_found");
    assert_eq!(done(store.load(&pen.identity)).head, expected);
}
