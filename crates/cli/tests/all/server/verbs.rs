//! Every verb at every surface, with a reason and without, with every set of rights: the same principal sends the same
//! command and gets the same answer, and a command that is performed has the same effect and the same record.

use crate::server::agent::Agent;
use crate::server::doors::{ASKING, COMPLETING, DOUBTFUL, FAILING, Key, Served};
use crate::server::sent::{Door, Sent};
use rutter_app::verb::{VERBS, Verb};
use serde_json::Value;

/// The rights of the keys. Pages and MCP need `read`, so every key has it.
const RIGHTS: [&str; 8] = [
    "read",
    "read,operate",
    "read,approve",
    "read,admin",
    "read,operate,approve",
    "read,operate,admin",
    "read,approve,admin",
    "read,operate,approve,admin",
];
const ALL_RIGHTS: &str = RIGHTS[7];
const REASON: &str = "a good reason";

/// States of an execution, each with the plan that leads there and the verbs that change it.
const STATES: [(&str, &str, &str, &[Verb]); 4] = [
    ("completed", COMPLETING, "completed", &[]),
    (
        "waiting for an approval",
        ASKING,
        "waiting",
        &[Verb::Approve, Verb::Cancel, Verb::Kill, Verb::Pause, Verb::Reject, Verb::TakeOver, Verb::Undo],
    ),
    (
        "waiting for a decision",
        FAILING,
        "waiting",
        &[
            Verb::Answer,
            Verb::Cancel,
            Verb::Continue,
            Verb::Kill,
            Verb::Pause,
            Verb::Replan,
            Verb::Resolve,
            Verb::Retry,
            Verb::Skip,
            Verb::Stop,
            Verb::TakeOver,
            Verb::Undo,
        ],
    ),
    (
        "in doubt",
        DOUBTFUL,
        "waiting",
        &[Verb::Cancel, Verb::Kill, Verb::Pause, Verb::Resolve, Verb::TakeOver, Verb::Undo],
    ),
];

/// The right a verb needs in a state: only a person may say what happened.
fn right(verb: Verb, state: &str) -> &'static str {
    match (verb, state) {
        (Verb::Resolve, "in doubt") => "approve",
        _ => verb.row().scope.as_str(),
    }
}

#[test]
fn the_same_right_and_reason_give_the_same_answer_at_every_surface() {
    let served = Served::new();
    let mut agent = Agent::start(&served.fixture, &[]);
    agent.introduce();
    let keys: Vec<Key> = RIGHTS.iter().map(|rights| served.key(rights)).collect();
    for (state, plan, status, possible) in STATES {
        let execution = served.execution(plan, status);
        for row in VERBS {
            for word in [row.name].iter().chain(row.synonyms) {
                for reason in [None, Some(""), Some(REASON)] {
                    let lacks_reason = row.needs_reason && reason != Some(REASON);
                    // What would be performed is left to the other test.
                    let is_refused = |rights: &str, door: Door| {
                        let may = rights.split(',').any(|one| one == right(row.verb, state));
                        !may || (door.is_for_agents() && right(row.verb, state) == "approve") || lacks_reason
                    };
                    let mut refusals = Vec::new();
                    for key in &keys {
                        let sent = Sent { verb: row.verb, word, execution: &execution, reason, with: "retry", key };
                        for door in Door::ALL {
                            let rights = door.rights(key);
                            let is_repeated =
                                matches!(door, Door::CommandLine | Door::McpOverPipes) && key.rights != ALL_RIGHTS;
                            if is_repeated || (possible.contains(&row.verb) && !is_refused(rights, door)) {
                                continue;
                            }
                            let case = format!("{word} ({state}), reason {reason:?}, rights {rights}, {door:?}");
                            let code = sent.by(door, &served, &mut agent);
                            let code = code.unwrap_or_else(|| panic!("{case}: it was performed"));
                            check(&case, row.verb, state, (rights, door, lacks_reason), &code, &mut refusals);
                        }
                    }
                    refusals.dedup();
                    assert!(refusals.len() <= 1, "{word} ({state}): the execution gives one answer: {refusals:?}");
                }
            }
        }
        assert_eq!(served.fixture.status(&execution), status, "{state}: nothing has changed");
    }
    agent.leave();
}

/// Rights come first, then the reason, then the state of the execution.
fn check(
    case: &str,
    verb: Verb,
    state: &str,
    (rights, door, lacks_reason): (&str, Door, bool),
    code: &str,
    refusals: &mut Vec<String>,
) {
    let has = |right: &str| rights.split(',').any(|one| one == right);
    let may = has(verb.row().scope.as_str()) && !(door.is_for_agents() && verb.row().scope.as_str() == "approve");
    match may {
        false => assert_eq!(code, "server.not_allowed", "{case}"),
        true if lacks_reason => assert_eq!(code, "command.reason_missing", "{case}"),
        true if right(verb, state) == "approve" && (!has("approve") || door.is_for_agents()) => {
            assert_eq!(code, "execution.not_a_person", "{case}");
        }
        true => {
            assert!(code.starts_with("execution."), "{case}: {code}");
            refusals.push(code.to_owned());
        }
    }
}

#[test]
fn a_command_has_the_same_effect_and_record_at_every_surface() {
    let served = Served::new();
    let mut agent = Agent::start(&served.fixture, &[]);
    agent.introduce();
    let key = served.key(ALL_RIGHTS);
    for (state, plan, status, possible) in STATES {
        for verb in possible {
            let answers: &[&str] = if *verb == Verb::Answer { &["retry", "skip", "stop", "undo"] } else { &[""] };
            for with in answers {
                let mut effects: Vec<(Door, Effect)> = Vec::new();
                for door in Door::ALL {
                    if door.is_for_agents() && right(*verb, state) == "approve" {
                        continue;
                    }
                    let execution = served.execution_over_http(&key, plan, status);
                    let before = entries(&served, &key, &execution).len();
                    let word = verb.name();
                    let sent = Sent { verb: *verb, word, execution: &execution, reason: Some(REASON), with, key: &key };
                    let refused = sent.by(door, &served, &mut agent);
                    assert_eq!(refused, None, "{word} {with} ({state}) by {door:?}");
                    effects.push((door, Effect::of(&served, &key, &execution, before)));
                }
                let (_, first) = &effects[0];
                for (door, effect) in &effects {
                    assert_eq!(effect, first, "{verb} {with} ({state}) by {door:?}");
                }
                let reason = &first.reason;
                assert_eq!(reason.as_deref(), Some(REASON), "{verb} {with} ({state}): the reason is journaled");
            }
        }
    }
    agent.leave();
}

/// What a command did: the event it led to first, with its reason.
#[derive(Debug, PartialEq)]
struct Effect {
    kind: String,
    reason: Option<String>,
}

impl Effect {
    fn of(served: &Served, key: &Key, execution: &str, before: usize) -> Effect {
        let entries = entries(served, key, execution);
        let first = entries.get(before).unwrap_or_else(|| panic!("nothing was recorded: {entries:?}"));
        assert_ne!(first["actor"]["party"], "rutter", "{first}");
        let reason = entries[before..].iter().find_map(|entry| entry["event"]["reason"].as_str());
        Effect { kind: first["kind"].as_str().unwrap().to_owned(), reason: reason.map(str::to_owned) }
    }
}

/// The journal of an execution.
fn entries(served: &Served, key: &Key, execution: &str) -> Vec<Value> {
    let page = served.get(key, &format!("/api/v1/executions/{execution}/journal?limit=100"));
    page["items"].as_array().unwrap_or_else(|| panic!("{page}")).clone()
}
