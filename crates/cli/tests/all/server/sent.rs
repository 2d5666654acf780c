//! One command to an execution, sent by any surface.

use crate::server::agent::Agent;
use crate::server::doors::{Key, Served};
use crate::server::fixture::output_text;
use rutter_app::verb::{OfferedTo, Verb};
use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Door {
    Http,
    McpOverHttp,
    /// As an agent that started `rutter mcp`.
    McpOverPipes,
    Form,
    /// As the owner of the database.
    CommandLine,
}

impl Door {
    pub const ALL: [Door; 5] = [Door::Http, Door::McpOverHttp, Door::McpOverPipes, Door::Form, Door::CommandLine];

    /// Whether a program sends the command, which never has a person's rights.
    pub fn is_for_agents(self) -> bool {
        matches!(self, Door::McpOverHttp | Door::McpOverPipes)
    }

    /// The rights of a principal there: those of its key, but the owner and a local agent need none.
    pub fn rights(self, key: &Key) -> &str {
        match self {
            Door::CommandLine => "read,operate,approve,admin",
            Door::McpOverPipes => "read,operate",
            Door::Http | Door::McpOverHttp | Door::Form => key.rights,
        }
    }
}

pub struct Sent<'a> {
    pub verb: Verb,
    /// Its name or a synonym.
    pub word: &'a str,
    pub execution: &'a str,
    pub reason: Option<&'a str>,
    /// For the verbs that take one: `step` or `step[item]`.
    pub step: Option<&'a str>,
    /// For `answer`.
    pub with: &'a str,
    pub key: &'a Key,
}

impl Sent<'_> {
    /// Returns the code of the refusal, or `None` if the command was performed.
    pub fn by(&self, door: Door, served: &Served, agent: &mut Agent) -> Option<String> {
        let code = match door {
            Door::Http => self.http(served),
            Door::McpOverHttp => served.tool(self.key, "control", self.arguments())["error"]["code"].clone(),
            Door::McpOverPipes => self.pipes(agent),
            Door::Form => self.form(served),
            Door::CommandLine => self.command_line(served),
        };
        code.as_str().map(str::to_owned)
    }

    fn body(&self) -> Value {
        let mut body = json!({ "action": self.word });
        if let Some(reason) = self.reason {
            body["reason"] = json!(reason);
        }
        if let Some(step) = self.step() {
            body["step_id"] = json!(step);
        }
        match self.verb {
            Verb::Answer => body["with"] = json!(self.with),
            Verb::Resolve | Verb::Correct => body["result"] = json!("done"),
            _ => {}
        }
        body
    }

    fn step(&self) -> Option<&str> {
        self.step.filter(|_| self.verb.row().takes.contains(&"step"))
    }

    fn http(&self, served: &Served) -> Value {
        let mut body = self.body();
        if self.verb == Verb::AcceptTool {
            body["tool"] = json!("gate.ask");
        }
        let path = format!("/api/v1/executions/{}/signals", self.execution);
        let response = served.post(&path, &self.key.bearer(), "application/json", &body.to_string());
        serde_json::from_str::<Value>(&response.body).unwrap()["code"].clone()
    }

    fn arguments(&self) -> Value {
        let mut arguments = self.body();
        arguments["execution_id"] = json!(self.execution);
        arguments["wait_seconds"] = json!(0);
        arguments
    }

    fn pipes(&self, agent: &mut Agent) -> Value {
        let answer = agent.request("tools/call", json!({ "name": "control", "arguments": self.arguments() }));
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str::<Value>(text).unwrap()["error"]["code"].clone()
    }

    fn form(&self, served: &Served) -> Value {
        let base = format!("/executions/{}", self.execution);
        let (path, verb, step) = match self.verb.is_offered_to(OfferedTo::ExecutionPage) {
            true => (format!("{base}/act"), format!("act={}", self.word), "step"),
            false => (format!("{base}/answer"), format!("say={}", self.word), "part"),
        };
        let step = self.step().map(|name| format!("&{step}={}", name.replace('[', "%5B").replace(']', "%5D")));
        let arguments = match self.verb {
            Verb::Answer => format!("&with={}", self.with),
            Verb::AcceptTool => "&tool=gate.ask".to_owned(),
            Verb::Resolve | Verb::Correct => "&result=%22done%22".to_owned(),
            Verb::Reply => "&decline=true".to_owned(),
            _ => String::new(),
        };
        let reason = self.reason.map(|reason| format!("&reason={}", reason.replace(' ', "+")));
        let fields = [verb, arguments, step.unwrap_or_default(), reason.unwrap_or_default()].concat();
        let page = served.form(self.key, &path, &fields);
        let code = page.body.split("<code class=\"quiet\">").nth(1).and_then(|rest| rest.split('<').next());
        assert!(code.is_some() || page.status == 303, "{}: {} {}", self.word, page.status, page.body);
        json!(code)
    }

    fn command_line(&self, served: &Served) -> Value {
        let word = self.word.replace('_', "-");
        let mut words = vec!["exec", &word, self.execution, "--no-wait", "--json"];
        words.extend(self.reason.iter().flat_map(|reason| ["--reason", reason]));
        words.extend(self.step().iter().flat_map(|step| ["--step", step]));
        match self.verb {
            Verb::Answer => words.extend(["--with", self.with]),
            Verb::AcceptTool => words.extend(["--tool", "gate.ask"]),
            Verb::Resolve | Verb::Correct => words.extend(["--result", "\"done\""]),
            Verb::Reply => words.push("--decline"),
            _ => {}
        }
        let output = served.fixture.rutter(&words);
        let answer: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", output_text(&output)));
        let code = answer["error"]["code"].clone();
        assert_eq!(
            output.status.code(),
            Some(if code.is_null() { 0 } else { 2 }),
            "{words:?}: {}",
            output_text(&output)
        );
        code
    }
}
