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
    /// The same where the server was killed before it had answered.
    pub perhaps_approved: BTreeSet<String>,
}

/// What a person did about one question.
pub enum PersonAnswer {
    Yes(String),
    No(String),
    /// A new plan that asks for less was approved.
    Loosened,
    /// The server was killed before it had answered.
    Lost(String),
}

/// Whether an answer counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignalOutcome {
    Accepted,
    Refused,
    Lost,
}

impl Person {
    pub fn open(fixture: &ClientFixture) -> Person {
        let (approved, perhaps_approved) = (BTreeSet::new(), BTreeSet::new());
        Person { line: line(fixture), record: PeopleRecord::default(), approved, perhaps_approved }
    }

    /// Finds the server again after a restart.
    pub fn reconnect(&mut self, fixture: &ClientFixture) {
        self.line = line(fixture);
    }

    /// Creates a key for an agent: it may try tools out, and approve nothing.
    pub fn create_key(&self, name: &str) -> String {
        let body = json!({ "name": name, "scopes": ["read", "operate", "admin"] });
        let reply = http(&self.line, "POST", "/api/v1/keys", Some(&body)).expect("the server answers");
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        answer["secret"].as_str().unwrap_or_else(|| panic!("{reply:?}")).to_owned()
    }

    /// Answers some of the open questions of an execution.
    pub fn answer_some(&mut self, random: &mut SeededRandom, execution: &str, order: &str) -> Vec<PersonAnswer> {
        let view = self.view(execution);
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

    /// The calls that wait for approval in an execution in which nothing else goes on.
    pub fn open_approvals(&self, execution: &str) -> Option<BTreeSet<String>> {
        let view = self.view(execution);
        let questions = view["questions"].as_array()?;
        let is_quiet = view["status"] == "waiting" && questions.iter().all(|question| question["kind"] == "approval");
        let calls = questions.iter().filter_map(|question| question["call"].as_str()).map(str::to_owned);
        is_quiet.then(|| calls.collect())
    }

    /// Null if the server is gone.
    fn view(&self, execution: &str) -> Value {
        let reply = http(&self.line, "GET", &format!("/api/v1/executions/{execution}"), None);
        reply.map_or(Value::Null, |reply| serde_json::from_str(&reply.body).unwrap_or_else(|_| panic!("{reply:?}")))
    }

    fn decide(&mut self, random: &mut SeededRandom, execution: &str, question: &Value) -> Option<PersonAnswer> {
        let tool = question["tool"].as_str().expect("a question names its tool");
        assert!(question["parameters"].is_object(), "a person is asked about a call that is not shown: {question}");
        let call = GuardedCall::new(tool, &question["parameters"]);
        let text = format!("{tool} {}", question["parameters"]);
        let mut signal = json!({ "step_id": question["part"], "call": question["call"], "reason": "decided" });
        match random.below(10) {
            0..4 => {
                signal["action"] = json!("approve");
                let sends = question["sends"].as_u64().expect("a question says how often the call may be sent");
                self.record.approve(call.clone(), now(), usize::try_from(sends).unwrap());
                let digest = question["call"].as_str().map(str::to_owned);
                match self.signal(execution, &signal) {
                    SignalOutcome::Accepted => {
                        self.approved.extend(digest);
                        Some(PersonAnswer::Yes(text))
                    }
                    SignalOutcome::Refused => {
                        self.record.retract(&call);
                        None
                    }
                    SignalOutcome::Lost => {
                        self.perhaps_approved.extend(digest);
                        Some(PersonAnswer::Lost(text))
                    }
                }
            }
            4..7 => {
                signal["action"] = json!("reject");
                match self.signal(execution, &signal) {
                    SignalOutcome::Accepted => {
                        self.record.deny(call, now());
                        Some(PersonAnswer::No(text))
                    }
                    SignalOutcome::Refused => None,
                    SignalOutcome::Lost => Some(PersonAnswer::Lost(text)),
                }
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
        let (answer, is_yes) = match random.below(10) {
            0 => {
                // The new plan may act before the answer arrives, and what it did then counts as allowed.
                self.record.open(order, false);
                ("approve", true)
            }
            1..7 => ("reject", false),
            _ => return None,
        };
        signal["action"] = json!(answer);
        match self.signal(execution, &signal) {
            SignalOutcome::Accepted if is_yes => Some(PersonAnswer::Loosened),
            SignalOutcome::Accepted => Some(PersonAnswer::No(question["weakens"].to_string())),
            SignalOutcome::Refused => None,
            SignalOutcome::Lost => Some(PersonAnswer::Lost(format!("{answer} a new plan"))),
        }
    }

    /// Starts an execution of this plan, as the person.
    pub fn start(&self, plan: &Value) -> Value {
        let body = json!({ "plan": plan, "wait_seconds": 0 });
        let Some(reply) = http(&self.line, "POST", "/api/v1/executions", Some(&body)) else {
            return json!({ "error": { "lost": body } });
        };
        assert!(reply.status < 500, "{reply:?}");
        let answer: Value = serde_json::from_str(&reply.body).unwrap_or_default();
        if reply.status < 300 { answer } else { json!({ "error": answer }) }
    }

    /// Ends an execution, so that it does not go on beside later sequences.
    pub fn end(&self, execution: &str) {
        self.signal(execution, &json!({ "action": "kill", "reason": "the sequence is over" }));
    }

    fn signal(&self, execution: &str, signal: &Value) -> SignalOutcome {
        let path = format!("/api/v1/executions/{execution}/signals");
        let Some(reply) = http(&self.line, "POST", &path, Some(signal)) else { return SignalOutcome::Lost };
        assert!(reply.status < 500, "{reply:?}");
        if reply.status < 300 { SignalOutcome::Accepted } else { SignalOutcome::Refused }
    }
}

fn line(fixture: &ClientFixture) -> Line {
    let token = fs::read_to_string(fixture.path("data/operator.token")).unwrap().trim().to_owned();
    Line { token, ..Line::to(fixture.served()) }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs_f64()
}
