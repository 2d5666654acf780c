//! Every verb at every surface, with a reason and without, with every set of rights: the same principal sends the same
//! command and gets the same answer, whether over HTTP, over MCP, by a form of the dashboard or on the command line.

use crate::server::doors::{ASKING, COMPLETING, Key, Served};
use crate::server::fixture::output_text;
use rutter_app::verb::{VERBS, Verb, VerbRow};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The rights of a key; the one with all of them stands for the owner of the database too.
const RIGHTS: [&str; 3] = ["read", "read,operate", "read,operate,approve"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Door {
    Http,
    Mcp,
    Form,
    CommandLine,
}

/// An execution that has completed: it accepts no command.
const COMPLETED: &str = "completed";
/// One that waits for an approval: other commands are refused.
const WAITING: &str = "waiting";

/// Whether a verb changes an execution that waits for an approval.
fn is_possible_while_waiting(verb: Verb) -> bool {
    use Verb::{Approve, Cancel, Kill, Pause, Reject, TakeOver, Undo};
    matches!(verb, Approve | Cancel | Kill | Pause | Reject | TakeOver | Undo)
}

#[test]
fn the_same_right_and_reason_give_the_same_answer_at_every_surface() {
    let served = Served::new();
    let completed = served.execution(COMPLETING, COMPLETED);
    let waiting = served.execution(ASKING, WAITING);
    let keys: Vec<Key> = RIGHTS.iter().map(|rights| served.key(rights)).collect();
    let mut answers = BTreeMap::new();
    for row in VERBS {
        let waiting = Some(&waiting).filter(|_| !is_possible_while_waiting(row.verb));
        for (state, execution) in [(COMPLETED, &completed)].into_iter().chain(waiting.map(|id| (WAITING, id))) {
            for word in [row.name].iter().chain(row.synonyms) {
                for reason in ["", "a reason"] {
                    for key in &keys {
                        let ask = Ask { row, word, execution, reason, key };
                        let codes = ask.all(&served);
                        ask.check(state, &codes);
                        let case = (row.name, state, reason.is_empty(), key.rights);
                        let same = answers.entry(case).or_insert_with(|| codes.clone());
                        assert_eq!(*same, codes, "{word} is answered like {}", row.name);
                    }
                }
            }
        }
    }
    assert_eq!(served.fixture.status(&completed), COMPLETED);
    assert_eq!(served.fixture.status(&waiting), WAITING);
}

/// One command.
struct Ask<'a> {
    row: &'static VerbRow,
    /// Its name or a synonym.
    word: &'static str,
    execution: &'a str,
    reason: &'a str,
    key: &'a Key,
}

impl Ask<'_> {
    fn all(&self, served: &Served) -> BTreeMap<Door, String> {
        let mut codes = BTreeMap::from([(Door::Http, self.http(served)), (Door::Form, self.form(served))]);
        // An agent gives the answer itself; `control` has no field for another one.
        if self.row.verb != Verb::Answer {
            codes.insert(Door::Mcp, self.mcp(served));
        }
        // The command line acts as the owner of the database, who may do everything.
        if self.key.may("approve") {
            codes.insert(Door::CommandLine, self.command_line(served));
        }
        codes
    }

    /// What every surface must check: rights first, then the reason, then the state of the execution.
    fn check(&self, state: &str, codes: &BTreeMap<Door, String>) {
        let Ask { row, word, reason, key, .. } = self;
        let case = format!("{word} on a {state} execution, reason {reason:?}, rights {}: {codes:?}", key.rights);
        let right = row.scope.as_str();
        let needs_reason = row.needs_reason && reason.is_empty();
        let mut refusals = Vec::new();
        for (door, code) in codes {
            // A program never has a person's rights, whatever key it uses.
            let may = key.may(right) && !(*door == Door::Mcp && right == "approve");
            match may {
                false => assert_eq!(code, "server.not_allowed", "{door:?}: {case}"),
                true if needs_reason => assert_eq!(code, "command.reason_missing", "{door:?}: {case}"),
                true => {
                    assert!(code.starts_with("execution."), "{door:?}: {case}");
                    refusals.push(code);
                }
            }
        }
        assert!(refusals.windows(2).all(|pair| pair[0] == pair[1]), "the execution gives one answer: {case}");
    }

    fn http(&self, served: &Served) -> String {
        let mut body = json!({ "action": self.word, "reason": self.reason });
        match self.row.verb {
            Verb::Answer => body["with"] = json!("retry"),
            Verb::AcceptTool => body["tool"] = json!("gate.ask"),
            _ => {}
        }
        let path = format!("/api/v1/executions/{}/signals", self.execution);
        let response = served.post(&path, &self.key.bearer(), "application/json", &body.to_string());
        let problem: Value = serde_json::from_str(&response.body).unwrap();
        problem["code"].as_str().unwrap_or_else(|| panic!("{} is done: {problem}", self.word)).to_owned()
    }

    fn mcp(&self, served: &Served) -> String {
        let arguments = json!({ "execution_id": self.execution, "action": self.word, "reason": self.reason,
            "wait_seconds": 0 });
        let json = served.tool(self.key, "control", arguments);
        json["error"]["code"].as_str().unwrap_or_else(|| panic!("{} is done: {json}", self.word)).to_owned()
    }

    fn form(&self, served: &Served) -> String {
        use Verb::{Cancel, HandBack, Kill, Pause, Resume, TakeOver, Undo};
        let base = format!("/executions/{}", self.execution);
        let (path, verb) = match self.row.verb {
            Pause | Resume | Cancel | Undo | TakeOver | HandBack | Kill => {
                (format!("{base}/act"), format!("act={}", self.word))
            }
            Verb::Answer => (format!("{base}/answer"), "say=answer&with=retry".to_owned()),
            Verb::AcceptTool => (format!("{base}/answer"), format!("say={}&tool=gate.ask", self.word)),
            _ => (format!("{base}/answer"), format!("say={}", self.word)),
        };
        let page = served.form(self.key, &path, &format!("{verb}&reason={}", self.reason.replace(' ', "+")));
        let code = page.body.split("<code class=\"quiet\">").nth(1).and_then(|rest| rest.split('<').next());
        code.unwrap_or_else(|| panic!("{} is done: {} {}", self.word, page.status, page.body)).to_owned()
    }

    fn command_line(&self, served: &Served) -> String {
        let word = self.word.replace('_', "-");
        let mut words = vec!["exec", &word, self.execution, "--no-wait", "--json", "--reason", self.reason];
        match self.row.verb {
            Verb::Answer => words.extend(["--with", "retry"]),
            Verb::AcceptTool => words.extend(["--tool", "gate.ask"]),
            Verb::Reply => words.push("--decline"),
            _ => {}
        }
        let output = served.fixture.rutter(&words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", output_text(&output));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["error"]["code"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}
