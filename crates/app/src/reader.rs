//! Who reads an answer, and whether it names the commands with which people answer questions.

use crate::app::App;
use crate::principal::Principal;
use rutter_core::id::ExecutionId;

/// The reader of an answer. A person gets the commands that answer a question. An agent is told that a person must
/// decide and where people look: it must not find the command that would decide for the person.
#[derive(Clone, Debug)]
pub struct AnswerReader {
    is_person: bool,
    /// The base URL of the dashboard, if there is one.
    base: Option<String>,
}

impl AnswerReader {
    pub fn person(base: Option<&str>) -> AnswerReader {
        AnswerReader { is_person: true, base: base.map(str::to_owned) }
    }

    pub fn agent(base: Option<&str>) -> AnswerReader {
        AnswerReader { is_person: false, base: base.map(str::to_owned) }
    }

    /// The reader of answers to this principal.
    pub fn of(principal: &Principal, base: Option<&str>) -> AnswerReader {
        if principal.is_person() { AnswerReader::person(base) } else { AnswerReader::agent(base) }
    }

    pub fn is_person(&self) -> bool {
        self.is_person
    }

    /// The page of an execution, if there are pages.
    pub fn page(&self, execution: &ExecutionId) -> Option<String> {
        self.base.as_ref().map(|base| format!("{base}/executions/{execution}"))
    }

    /// Where people see the open questions of an execution.
    pub fn place(&self, execution: &ExecutionId) -> String {
        match self.page(execution) {
            Some(page) => format!("at {page}#questions"),
            None => "on the operator's machine, where `rutter exec list --asking` shows what waits".to_owned(),
        }
    }
}

impl App {
    /// The reader of answers to this principal.
    pub fn reader(&self, principal: &Principal) -> AnswerReader {
        AnswerReader::of(principal, self.link.get().map(String::as_str))
    }

    /// The reader of answers to a program, whoever uses it.
    pub fn agent_reader(&self) -> AnswerReader {
        AnswerReader::agent(self.link.get().map(String::as_str))
    }
}
