//! The person: looks at open questions with the operator's token, answers some, and remembers every answer.

use super::agent::http;
use crate::clients::fixture::ClientFixture;
use crate::hostile::wire::Line;
use rutter_testkit::adversary::judge::{GuardedCall, PeopleRecord};
use rutter_testkit::chance::SeededRandom;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

pub struct Person {
    line: Line,
    pub record: PeopleRecord,
    /// The digests of the calls that were approved.
    pub approved: BTreeSet<String>,
}

/// What a person did about one question.
pub enum PersonAnswer {
    Yes(String),
    No(String),
    /// A new plan that asks for less was approved.
    Loosened,
}

impl Person {
    pub fn open(fixture: &mut ClientFixture) -> Person {
        let line = Line::open(fixture);
        let token = fs::read_to_string(fixture.path("data/operator.token")).unwrap().trim().to_owned();
        Person { line: Line { token, ..line }, record: PeopleRecord::default(), approved: BTreeSet::new() }
    }

    /// Answers some of the open questions of an execution.
    pub fn answer_some(&mut self, random: &mut SeededRandom, execution: &str, order: &str) -> Vec<PersonAnswer> {
        let reply = http(&self.line, "GET", &format!("/api/v1/executions/{execution}"), None);
        let view: Value = serde_json::from_str(&reply.body).unwrap_or_else(|_| panic!("{reply:?}"));
        let questions = view["questions"].as_array().cloned().unwrap_or_default();
        let mut answers = Vec::new();
        for question in questions {
            match question["kind"].as_str() {
                Some("approval") => answers.extend(self.decide(random, execution, &question)),
                Some("replan") => answers.extend(self.decide_replan(random, execution, order, &question)),
                _ => {}
            }
        }
        answers
    }

    fn decide(&mut self, random: &mut SeededRandom, execution: &str, question: &Value) -> Option<PersonAnswer> {
        let tool = question["tool"].as_str().expect("a question names its tool");
        let call = GuardedCall::new(tool, &question["parameters"]);
        let text = format!("{tool} {}", question["parameters"]);
        let mut signal = json!({ "step_id": question["part"], "call": question["call"], "reason": "decided" });
        match random.below(10) {
            0..4 => {
                signal["action"] = json!("approve");
                self.record.approve(call.clone(), now());
                if self.signal(execution, &signal) {
                    self.approved.extend(question["call"].as_str().map(str::to_owned));
                    return Some(PersonAnswer::Yes(text));
                }
                self.record.retract(&call);
                None
            }
            4..7 => {
                signal["action"] = json!("reject");
                self.signal(execution, &signal).then_some(PersonAnswer::No(text))
            }
            _ => None,
        }
    }

    fn decide_replan(
        &mut self,
        random: &mut SeededRandom,
        execution: &str,
        order: &str,
        question: &Value,
    ) -> Option<PersonAnswer> {
        let mut signal = json!({ "call": question["plan"], "reason": "decided" });
        match random.below(10) {
            0 => {
                signal["action"] = json!("approve");
                // The new plan may act before the answer arrives, and what it did then counts as allowed.
                self.record.open(order, false);
                self.signal(execution, &signal).then_some(PersonAnswer::Loosened)
            }
            1..7 => {
                signal["action"] = json!("reject");
                self.signal(execution, &signal).then(|| PersonAnswer::No(question["weakens"].to_string()))
            }
            _ => None,
        }
    }

    /// Starts an execution of this plan, as the person.
    pub fn start(&self, plan: &Value) -> Value {
        let body = json!({ "plan": plan, "wait_seconds": 0 });
        let reply = http(&self.line, "POST", "/api/v1/executions", Some(&body));
        assert!(reply.status < 500, "{reply:?}");
        let answer: Value = serde_json::from_str(&reply.body).unwrap_or_default();
        if reply.status < 300 { answer } else { json!({ "error": answer }) }
    }

    /// Ends an execution, so that it does not go on beside later sequences.
    pub fn end(&self, execution: &str) {
        self.signal(execution, &json!({ "action": "kill", "reason": "the sequence is over" }));
    }

    fn signal(&self, execution: &str, signal: &Value) -> bool {
        let reply = http(&self.line, "POST", &format!("/api/v1/executions/{execution}/signals"), Some(signal));
        assert!(reply.status < 500, "{reply:?}");
        reply.status < 300
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs_f64()
}
