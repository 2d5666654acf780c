//! Every verb at every surface, with a reason and without, with every set of rights: the same principal sends the same
//! command and gets the same answer, and a command that is performed has the same effect and the same record.

use crate::server::agent::Agent;
use crate::server::doors::{ASKING, COMPLETING, DOUBTFUL, ENDING, FAILING, Key, Served};
use crate::server::sent::{Door, Sent};
use rutter_app::verb::{VERBS, Verb};
use serde_json::{Value, json};

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

/// A state of an execution.
struct StateCase {
    name: &'static str,
    /// The plan that leads there, and the status it has then.
    plan: &'static str,
    status: &'static str,
    /// Whether a person settles the doubt of the plan first.
    is_by_hand: bool,
    /// The step that is named to the verbs that take one.
    step: Option<&'static str>,
    /// The verbs that change it.
    possible: &'static [Verb],
    /// The answers that `answer` can give.
    answers: &'static [&'static str],
}

const COMPLETED: StateCase = StateCase {
    name: "completed",
    plan: COMPLETING,
    status: "completed",
    is_by_hand: false,
    step: None,
    possible: &[],
    answers: &[],
};

const STATES: [StateCase; 6] = [
    COMPLETED,
    StateCase {
        name: "waiting for an approval",
        plan: ASKING,
        status: "waiting",
        possible: &[Verb::Approve, Verb::Cancel, Verb::Kill, Verb::Pause, Verb::Reject, Verb::TakeOver, Verb::Undo],
        ..COMPLETED
    },
    StateCase {
        name: "waiting for a decision",
        plan: FAILING,
        status: "waiting",
        possible: &[
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
        answers: &["retry", "skip", "stop", "undo"],
        ..COMPLETED
    },
    StateCase {
        name: "in doubt",
        plan: DOUBTFUL,
        status: "waiting",
        possible: &[Verb::Cancel, Verb::Kill, Verb::Pause, Verb::Resolve, Verb::TakeOver, Verb::Undo],
        ..COMPLETED
    },
    StateCase {
        name: "failed, ended",
        plan: ENDING,
        status: "failed",
        step: Some("only"),
        possible: &[Verb::Answer, Verb::Reopen, Verb::Resolve, Verb::Retry, Verb::Skip],
        answers: &["retry", "skip"],
        ..COMPLETED
    },
    StateCase { name: "resolved by hand", plan: DOUBTFUL, is_by_hand: true, possible: &[Verb::Correct], ..COMPLETED },
];

impl StateCase {
    /// A new execution in this state.
    fn execution(&self, served: &Served, key: &Key) -> String {
        if !self.is_by_hand {
            return served.execution_over_http(key, self.plan, self.status);
        }
        let execution = served.execution_over_http(key, self.plan, "waiting");
        let settled = json!({ "action": "resolve", "result": "by hand", "evidence": "I looked" }).to_string();
        let path = format!("/api/v1/executions/{execution}/signals");
        let response = served.post(&path, &key.bearer(), "application/json", &settled);
        assert!(response.status < 300, "{}", response.body);
        assert_eq!(served.ended(key, &execution)["status"], self.status);
        execution
    }

    /// The right a verb needs: only a person may say what happened.
    fn right(&self, verb: Verb) -> &'static str {
        match (verb, self.name) {
            (Verb::Resolve, "in doubt") => "approve",
            _ => verb.row().scope.as_str(),
        }
    }
}

#[test]
fn the_same_right_and_reason_give_the_same_answer_at_every_surface() {
    let served = Served::new();
    let mut agent = Agent::start(&served.fixture, &[]);
    agent.introduce();
    let keys: Vec<Key> = RIGHTS.iter().map(|rights| served.key(rights)).collect();
    let all_rights = keys.last().unwrap();
    for state in STATES {
        let execution = state.execution(&served, all_rights);
        for row in VERBS {
            for word in [row.name].iter().chain(row.synonyms) {
                for reason in [None, Some(""), Some(REASON)] {
                    let lacks_reason = row.needs_reason && reason != Some(REASON);
                    // What would be performed is left to the other test.
                    let is_refused = |rights: &str, door: Door| {
                        let right = state.right(row.verb);
                        let may = rights.split(',').any(|one| one == right);
                        !may || (door.is_for_agents() && right == "approve") || lacks_reason
                    };
                    let mut refusals = Vec::new();
                    for key in &keys {
                        let (verb, step, execution) = (row.verb, state.step, execution.as_str());
                        let sent = Sent { verb, word, execution, reason, step, with: "retry", key };
                        for door in Door::ALL {
                            let rights = door.rights(key);
                            let is_repeated =
                                matches!(door, Door::CommandLine | Door::McpOverPipes) && key.rights != ALL_RIGHTS;
                            if is_repeated || (state.possible.contains(&verb) && !is_refused(rights, door)) {
                                continue;
                            }
                            let case = format!("{word} ({}), reason {reason:?}, rights {rights}, {door:?}", state.name);
                            let code = sent.by(door, &served, &mut agent);
                            let code = code.unwrap_or_else(|| panic!("{case}: it was performed"));
                            check(&case, verb, state.right(verb), (rights, door, lacks_reason), &code, &mut refusals);
                        }
                    }
                    refusals.dedup();
                    assert!(refusals.len() <= 1, "{word} ({}): one answer: {refusals:?}", state.name);
                }
            }
        }
        assert_eq!(served.fixture.status(&execution), state.status, "{}: nothing has changed", state.name);
    }
    agent.leave();
}

/// Rights come first, then the reason, then the state of the execution.
fn check(
    case: &str,
    verb: Verb,
    right: &str,
    (rights, door, lacks_reason): (&str, Door, bool),
    code: &str,
    refusals: &mut Vec<String>,
) {
    let has = |right: &str| rights.split(',').any(|one| one == right);
    let may = has(verb.row().scope.as_str()) && !(door.is_for_agents() && verb.row().scope.as_str() == "approve");
    match may {
        false => assert_eq!(code, "server.not_allowed", "{case}"),
        true if lacks_reason => assert_eq!(code, "command.reason_missing", "{case}"),
        true if right == "approve" && (!has("approve") || door.is_for_agents()) => {
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
    for state in STATES {
        let name = state.name;
        for verb in state.possible {
            for with in if *verb == Verb::Answer { state.answers } else { &[""] } {
                let mut effects: Vec<(Door, Effect)> = Vec::new();
                for door in Door::ALL {
                    if door.is_for_agents() && state.right(*verb) == "approve" {
                        continue;
                    }
                    let execution = state.execution(&served, &key);
                    let before = entries(&served, &key, &execution).len();
                    let (word, reason, step) = (verb.name(), Some(REASON), state.step);
                    let sent = Sent { verb: *verb, word, execution: &execution, reason, step, with, key: &key };
                    let refused = sent.by(door, &served, &mut agent);
                    assert_eq!(refused, None, "{word} {with} ({name}) by {door:?}");
                    effects.push((door, Effect::of(&served, &key, &execution, before)));
                }
                let (_, first) = &effects[0];
                for (door, effect) in &effects {
                    assert_eq!(effect, first, "{verb} {with} ({name}) by {door:?}");
                }
                let reason = &first.reason;
                assert_eq!(reason.as_deref(), Some(REASON), "{verb} {with} ({name}): the reason is journaled");
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
