//! The checker of the torture can fail: for every invariant, accounts that violate just that one.

mod story;

use rutter_testkit::torture::TortureReport;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use story::{Story, call, effect, failed, handed_over, recorded, start, succeeded};

#[test]
fn accounts_that_agree_are_clean() {
    assert_eq!(story::check(&[Story::told()]), [[]]);
}

#[test]
fn each_invariant_is_detected_when_it_alone_is_violated() {
    type Doctor = fn(&mut Story);
    let table: &[(&str, &str, Doctor)] = &[
        ("I1", "an acknowledged pause is gone", |story| {
            let json = json!({ "execution": "exec_1", "what": "pause", "reason": "lunch" });
            story.notes.push(json!({ "acknowledged": json }));
        }),
        ("I1", "an acknowledged execution is gone", |story| {
            story.notes.push(json!({ "started": "exec_9", "tag": "p9", "code": null }));
        }),
        ("I1", "a refused cancel happened", |story| {
            let answer = json!({ "execution": "exec_2", "what": "cancel", "reason": "enough" });
            story.notes.push(json!({ "refused": answer, "code": "execution.ended" }));
        }),
        ("I1", "a receipt is for another entry", |story| {
            let receipt = json!({ "seq": 2, "hash": "00" });
            story.notes.push(json!({ "concluded": "exec_1", "status": "completed", "receipt": receipt }));
        }),
        ("I1", "an execution reported as completed is not", |story| {
            story.notes.push(json!({ "started": "exec_2", "tag": "p2", "code": 0 }));
        }),
        ("I1", "one key, two executions", |story| story.copy("exec_1", "exec_3")),
        ("I1", "what an agent recorded is gone", |story| {
            story.change("exec_4", "attempt_succeeded", |event| event["result"] = json!({ "$": {} }));
        }),
        ("I1", "the beginning of an agent's call is gone", |story| story.remove("exec_4", "attempt_started")),
        ("I1", "an acknowledged replan is gone", |story| story.remove("exec_4", "replanned")),
        ("I1", "an acknowledged hand-over is gone", |story| {
            let told = json!({ "execution": "exec_4", "what": "take_over", "reason": "because-p4-9" });
            story.notes.push(json!({ "acknowledged": told }));
        }),
        ("I1", "a refused record is there", |story| {
            let told = json!({ "execution": "exec_4", "what": "record_step", "reason": "because-p4-1" });
            story.notes.retain(|note| note["recorded"]["status"] != "completed");
            story.notes.push(json!({ "refused": told, "code": "execution.driver" }));
        }),
        ("I2", "a call is not recorded", |story| {
            story.log.extend(call("b", "p2", "do", 5_000));
        }),
        ("I2", "the program makes a call that only an agent recorded", |story| {
            story.change_last("exec_4", "attempt_started", |event| event["by"] = json!("agent"));
        }),
        ("I2", "a call came before its record", |story| story.move_call("b", "p1", "do", 100)),
        ("I2", "a call had other arguments than its record", |story| {
            let line = story.log.iter_mut().find(|line| line["call"] == "keyed").unwrap();
            line["arguments"]["amount"] = json!(1_000);
        }),
        ("I3", "a lost call is repeated without permission", |story| {
            story.insert("exec_1", 3, [story::lost("a", "do", 1), start("a", "p1", "do", 2)]);
            story.change("exec_1", "attempt_succeeded", |event| event["attempt"] = json!(2));
        }),
        ("I3", "a second effect is known and not reported", |story| {
            let at = story.place("exec_1", "attempt_succeeded");
            let late =
                json!({ "late_answer_arrived": { "part": "a", "side": "do", "attempt": 1, "effect": "second" } });
            story.insert("exec_1", at + 1, [late]);
        }),
        ("I3", "a probe is believed at once", |story| {
            let plan = story.notes.iter_mut().find(|note| note["plan"] == "p1").unwrap();
            plan["document"]["steps"][0]["probe"] = json!({ "settle": "3000s" });
            let settled =
                json!({ "doubt_settled": { "part": "a", "side": "do", "happened": false, "source": "probe" } });
            story.insert("exec_1", 3, [story::lost("a", "do", 1), settled, start("a", "p1", "do", 2)]);
            story.change("exec_1", "attempt_succeeded", |event| event["attempt"] = json!(2));
        }),
        ("I3", "the program repeats what an agent began", |story| {
            story.notes.retain(|note| note["recorded"]["status"] != "completed");
            story.replace("exec_4", "attempt_succeeded", story::lost("a", "do", 1));
            let at = story.place("exec_4", "handed_over");
            story.insert("exec_4", at + 1, [start("a", "p4", "do", 2), succeeded("a", "do", 2)]);
        }),
        ("I3", "the program does what an agent says it did after all", |story| {
            story.replace("exec_4", "attempt_succeeded", failed("a", "do", 1));
            let details = json!({ "action_recorded": { "kind": "duplicate", "description": "a, because-p4-1" } });
            story.insert("exec_4", 4, [details]);
            *story.note("recorded", |told| told["status"] == "completed") = recorded("completed", "because-p4-1", 400);
            let at = story.place("exec_4", "handed_over");
            story.insert("exec_4", at + 1, [start("a", "p4", "do", 2), succeeded("a", "do", 2)]);
            story.log.extend(call("a", "p4", "do", 750));
        }),
        ("I4", "a retry has another key", |story| {
            story.change_last("exec_1", "attempt_started", |event| event["key"] = json!("other"));
        }),
        ("I4", "two steps share a key", |story| {
            story.change("exec_2", "attempt_started", |event| event["key"] = json!("b-p2-do"));
        }),
        ("I4", "the tool saw an unrecorded key", |story| {
            let line = story.log.iter_mut().find(|line| line["effect"] == "keyed").unwrap();
            let mut again = line.clone();
            again["key"] = json!("other");
            story.log.push(again);
        }),
        ("I5", "an attempt ends twice", |story| {
            let at = story.place("exec_1", "attempt_succeeded");
            story.insert("exec_1", at + 1, [story::lost("a", "do", 1)]);
        }),
        ("I5", "a step succeeds twice", |story| {
            let at = story.place("exec_1", "attempt_succeeded");
            story.insert("exec_1", at + 1, [start("a", "p1", "do", 2), succeeded("a", "do", 2)]);
            // It was requested, so the repetition itself is not wrong.
            story.insert("exec_1", at + 1, [story::retry("a")]);
        }),
        ("I5", "something begins after the end", |story| {
            let count = story.journals["exec_1"].len();
            story.insert("exec_1", count, [start("b", "p1", "undo", 1)]);
        }),
        ("I6", "something begins after a cancel", |story| {
            let at = story.place("exec_2", "cancel_requested");
            story.insert("exec_2", at + 1, [start("c", "p2", "do", 1), failed("c", "do", 1)]);
        }),
        ("I6", "something begins during a pause", |story| {
            let at = story.place("exec_2", "cancel_requested");
            let pause = json!({ "paused": { "reason": "lunch" } });
            story.insert("exec_2", at, [pause, start("c", "p2", "do", 1), failed("c", "do", 1)]);
            let resume = json!({ "resumed": { "reason": "back" } });
            story.insert("exec_2", at + 3, [resume]);
        }),
        ("I6", "the program begins something while an agent drives", |story| {
            let at = story.place("exec_4", "handed_over");
            story.insert("exec_4", at + 1, [handed_over("agent", "because-p4-4")]);
        }),
        ("I7", "a step begins before what the new plan puts before it", |story| {
            let replan = story.note("replan", |execution| *execution == "exec_4");
            replan["document"]["steps"][1]["depends_on"] = json!(["a", "d"]);
        }),
        ("I7", "an execution follows a plan that nobody sent", |story| {
            story.notes.retain(|note| note.get("replan").is_none());
        }),
        ("I7", "a step begins before what it depends on has ended", |story| {
            let at = story.place("exec_1", "attempt_succeeded");
            story.journals.get_mut("exec_1").unwrap().swap(at, at + 1);
            story.move_call("b", "p1", "do", 4_000);
        }),
        ("I8", "the program's own verification fails", |story| {
            story.notes.push(json!({ "verified": false, "said": "an entry was changed" }));
        }),
        ("I8", "an entry was changed", |story| story.tampered = true),
        ("I9", "a server sees too many calls at once", |story| {
            story.notes[0]["limits"]["dock"] = json!(1);
            let ends = story.log.iter_mut().filter(|line| line["end"] == "a-p1-do");
            ends.for_each(|line| line["at"] = json!(2_000));
        }),
        ("I10", "the plan for undoing is in the order of doing", |story| {
            story.change("exec_2", "compensation_started", |event| event["parts"] = json!(["a", "b"]));
        }),
        ("I10", "a step is undone before what depends on it", |story| {
            let at = story.place("exec_2", "compensation_started");
            let journal = story.journals.get_mut("exec_2").unwrap();
            journal[at + 1..at + 5].rotate_left(2);
            story.log.retain(|line| line["arguments"]["side"] != "undo");
        }),
        ("I10", "a step is undone twice", |story| {
            story.log.push(effect("a", "p2", "undo", 6_000));
        }),
        ("I10", "what was undone by hand is undone again", |story| {
            let at = story.place("exec_2", "compensation_started");
            let by_hand =
                json!({ "compensation_recorded": { "part": "b", "description": "by hand", "evidence": null } });
            story.insert("exec_2", at + 1, [by_hand]);
        }),
        ("I13", "an execution neither ends nor waits", |story| story.end_as("exec_1", "running", 0)),
        ("I13", "an execution waits without a question", |story| story.end_as("exec_1", "waiting", 0)),
        ("I13", "one is not listed", |story| {
            story.notes.retain(|note| note["final"] != "exec_1");
        }),
        ("process", "a process panicked", |story| {
            story.notes.push(json!({ "life": "l0-1", "code": 4, "broken": { "stderr": "panicked at" } }));
        }),
    ];
    let doctored = table.iter().map(|(_, _, doctor)| {
        let mut story = Story::told();
        doctor(&mut story);
        story
    });
    let found = story::check(&doctored.collect::<Vec<_>>());
    for ((invariant, what, _), found) in table.iter().zip(found) {
        let named: BTreeSet<&str> = found.iter().map(|(invariant, _)| invariant.as_str()).collect();
        assert_eq!(named, BTreeSet::from([*invariant]), "{what}: {found:#?}");
    }
    let covered: BTreeSet<&str> = table.iter().map(|(invariant, _, _)| *invariant).collect();
    assert_eq!(covered.len(), 12, "every invariant has a row: {covered:?}");
}

#[test]
fn a_run_without_agents_replans_or_hand_overs_or_with_few_successes_proves_too_little() {
    let counted = |kills: u64, count: u64| TortureReport {
        kills: BTreeMap::from([("time", kills)]),
        counted: ["agent executions", "agent calls", "agent records", "replans", "late answers", "faults freeze"]
            .into_iter()
            .chain(["handed to agents", "handed to the program", "silent agents replaced"])
            .map(|what| (what.to_owned(), count))
            .chain([("steps begun".to_owned(), 10), ("steps done".to_owned(), 5)])
            .collect(),
        ..TortureReport::default()
    };
    let missing = |report: TortureReport| report.proves_too_little();
    assert_eq!((missing(counted(1_000, 1)), missing(counted(199, 0))), (Vec::new(), Vec::new()));
    assert_eq!((missing(counted(200, 0)).len(), missing(counted(1_000, 0)).len()), (6, 9));
    let mut one = counted(200, 1);
    one.counted.remove("replans");
    let found = missing(one);
    assert!(found[0].evidence.contains("without replans") && found[0].invariant == "I14", "{found:#?}");
    let mut few = counted(200, 1);
    few.counted.insert("steps done".to_owned(), 4);
    assert!(missing(few)[0].evidence.contains("4 of 10 steps"));
    assert!(missing(TortureReport::default())[0].evidence.contains("0 of 0 steps"));
}
