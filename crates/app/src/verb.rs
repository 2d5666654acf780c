//! The verbs of commands to an execution: one row per verb, from which every surface takes its names, scope and texts.

use crate::scope::AccessScope;
use rutter_core::journal::event::QuestionAnswer;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Pause,
    Resume,
    Cancel,
    Undo,
    Reopen,
    Kill,
    TakeOver,
    HandBack,
    Retry,
    Skip,
    Resolve,
    Stop,
    Continue,
    Replan,
    Answer,
    Approve,
    Reject,
    Reply,
    AcceptTool,
    Correct,
}

/// A verb and its properties.
#[derive(Clone, Copy, Debug)]
pub struct VerbRow {
    pub verb: Verb,
    /// Its name in JSON and in forms; on the command line with hyphens.
    pub name: &'static str,
    /// Other names that every surface accepts.
    pub synonyms: &'static [&'static str],
    /// The scope it needs.
    pub scope: AccessScope,
    /// Whether it needs a reason, which is journaled: verbs that end, undo, settle or grant do.
    pub needs_reason: bool,
    /// The label of its button.
    pub label: &'static str,
    /// The heading of its confirmation form.
    pub question: &'static str,
    /// A description for people.
    pub meaning: &'static str,
    /// The name of the notice shown afterwards.
    pub notice: &'static str,
    /// Where it is offered besides HTTP and the command line, which offer every verb. Every surface accepts every verb
    /// all the same.
    pub offered: &'static [OfferedTo],
    /// The answer it gives to an open question.
    pub answer: Option<QuestionAnswer>,
    /// The arguments it takes, by their names in [`CommandArguments`](crate::command::CommandArguments). Others are
    /// refused.
    pub takes: &'static [&'static str],
}

/// Who is shown a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferedTo {
    /// Agents: the tool `control` lists it.
    Agents,
    /// Pages of an execution have a button for it.
    ExecutionPage,
    /// The list of executions has a button for it.
    ExecutionList,
}

const fn row(verb: Verb, name: &'static str, label: &'static str, meaning: &'static str) -> VerbRow {
    VerbRow {
        verb,
        name,
        synonyms: &[],
        scope: AccessScope::Operate,
        needs_reason: false,
        label,
        question: "",
        meaning,
        notice: "answered",
        offered: &[OfferedTo::Agents],
        answer: None,
        takes: &[],
    }
}

impl VerbRow {
    const fn with_reason(self) -> VerbRow {
        VerbRow { needs_reason: true, ..self }
    }

    const fn by_a_person(self, notice: &'static str) -> VerbRow {
        VerbRow { scope: AccessScope::Approve, offered: &[], notice, ..self }
    }

    const fn confirmed(self, question: &'static str, notice: &'static str) -> VerbRow {
        VerbRow { question, notice, ..self }
    }

    const fn answering(self, answer: QuestionAnswer) -> VerbRow {
        VerbRow { answer: Some(answer), takes: &["step"], ..self }
    }

    const fn taking(self, takes: &'static [&'static str]) -> VerbRow {
        VerbRow { takes, ..self }
    }

    const fn offered_to(self, offered: &'static [OfferedTo]) -> VerbRow {
        VerbRow { offered, ..self }
    }

    const fn also(self, synonyms: &'static [&'static str]) -> VerbRow {
        VerbRow { synonyms, ..self }
    }

    /// The name and its synonyms.
    pub fn words(&self) -> String {
        match self.synonyms {
            [] => self.name.to_owned(),
            synonyms => format!("{} (also {})", self.name, synonyms.join(", ")),
        }
    }
}

const AGENTS_AND_PAGE: &[OfferedTo] = &[OfferedTo::Agents, OfferedTo::ExecutionPage];
const EVERYWHERE: &[OfferedTo] = &[OfferedTo::Agents, OfferedTo::ExecutionPage, OfferedTo::ExecutionList];

/// The one table. Its order is the order in which surfaces list verbs.
pub const VERBS: &[VerbRow] = &[
    row(Verb::Pause, "pause", "Pause", "Start nothing new until it is resumed; calls in flight end")
        .offered_to(EVERYWHERE)
        .confirmed("Pause this execution?", "paused"),
    row(Verb::Resume, "resume", "Resume", "Continue after a pause; after a hold, only a person can")
        .taking(&["expire", "expire_only"])
        .offered_to(EVERYWHERE)
        .confirmed("Resume this execution?", "resumed"),
    row(
        Verb::Cancel,
        "cancel",
        "Cancel",
        "Stop: calls in flight are cancelled or awaited, nothing new starts; undo as the plan says",
    )
    .with_reason()
    .taking(&["undo"])
    .offered_to(EVERYWHERE)
    .confirmed("Cancel this execution?", "cancelled"),
    row(Verb::Undo, "undo", "Undo", "Undo everything, or after the end single steps and their dependents")
        .also(&["compensate"])
        .with_reason()
        .answering(QuestionAnswer::Compensate)
        .taking(&["step", "steps"])
        .offered_to(AGENTS_AND_PAGE)
        .confirmed("Undo what this execution did?", "undoing"),
    row(
        Verb::Reopen,
        "reopen",
        "Reopen",
        "Go on after the end: from these steps, or from all that failed and what did not run because of that",
    )
    .with_reason()
    .taking(&["step", "steps"])
    .offered_to(AGENTS_AND_PAGE)
    .confirmed("Go on with this execution?", "reopened"),
    row(
        Verb::TakeOver,
        "take_over",
        "Hand to an agent",
        "Rutter stops calling tools; an agent calls them and records each call",
    )
    .offered_to(AGENTS_AND_PAGE)
    .confirmed("Hand this execution to an agent?", "handed_over"),
    row(Verb::HandBack, "hand_back", "Hand back to Rutter", "Rutter calls the remaining tools")
        .offered_to(AGENTS_AND_PAGE)
        .confirmed("Let Rutter continue this execution?", "handed_over"),
    row(
        Verb::Kill,
        "kill",
        "Kill",
        "Stop at once without cleaning up; the outcome of calls in flight stays unknown. Prefer cancel",
    )
    .with_reason()
    .offered_to(AGENTS_AND_PAGE)
    .confirmed("Kill this execution?", "killed"),
    row(Verb::Retry, "retry", "Retry", "Try a failed step, or a failed compensation, again")
        .answering(QuestionAnswer::Retry),
    row(Verb::Skip, "skip", "Skip", "Continue without a failed step").with_reason().answering(QuestionAnswer::Skip),
    row(
        Verb::Resolve,
        "resolve",
        "Resolve",
        "Record that a failed step was done by hand; or, as a person, how a step in doubt ended. With evidence",
    )
    .also(&["settle"])
    .with_reason()
    .answering(QuestionAnswer::Resolve)
    .taking(&["step", "happened", "result", "result_unknown", "evidence"])
    .confirmed("", "settled"),
    row(Verb::Stop, "stop", "Stop", "End the execution instead of continuing")
        .with_reason()
        .answering(QuestionAnswer::Stop),
    row(Verb::Continue, "continue", "Continue", "Continue with the steps that do not need the failed one")
        .answering(QuestionAnswer::Continue),
    row(Verb::Replan, "replan", "Replan", "Wait for a new plan, then continue with it")
        .answering(QuestionAnswer::Replan)
        .offered_to(&[]),
    row(Verb::Answer, "answer", "Answer", "Answer a question with retry, skip, stop, continue, undo or replan")
        .taking(&["step", "with"])
        .offered_to(&[]),
    row(Verb::Reply, "reply", "Reply", "Answer what a tool asks during a call; without an answer, decline")
        .taking(&["step", "reply"]),
    row(Verb::Approve, "approve", "Approve this call", "Allow the exact call a step is about to make")
        .with_reason()
        .taking(&["step", "call"])
        .by_a_person("approved"),
    row(Verb::Reject, "reject", "Reject", "Forbid the call a step is about to make")
        .also(&["deny"])
        .with_reason()
        .taking(&["step", "call"])
        .by_a_person("rejected"),
    row(
        Verb::AcceptTool,
        "accept_tool",
        "Accept changed tool",
        "Accept a tool that has changed since the plan was checked",
    )
    .with_reason()
    .taking(&["tool", "definition"])
    .by_a_person("answered"),
    row(
        Verb::Correct,
        "correct",
        "Correct",
        "Correct what was settled by hand: its result, that it did not happen, or that it did",
    )
    .with_reason()
    .taking(&["step", "happened", "result", "result_unknown", "evidence"])
    .by_a_person("corrected"),
];

impl Verb {
    pub fn row(self) -> &'static VerbRow {
        VERBS.iter().find(|row| row.verb == self).expect("every verb has a row, as a test checks")
    }

    /// The verb of a name or a synonym, with hyphens or underscores.
    pub fn parse(text: &str) -> Option<Verb> {
        let text = text.replace('-', "_");
        VERBS.iter().find(|row| row.name == text || row.synonyms.contains(&text.as_str())).map(|row| row.verb)
    }

    /// The verb that gives this answer.
    pub fn answering(answer: QuestionAnswer) -> Verb {
        let row = VERBS.iter().find(|row| row.answer == Some(answer));
        row.expect("every answer has a verb, as a test checks").verb
    }

    /// The verbs offered there, in the order of the table.
    pub fn offered_to(whom: OfferedTo) -> impl Iterator<Item = Verb> {
        VERBS.iter().filter(move |row| row.offered.contains(&whom)).map(|row| row.verb)
    }

    pub fn is_offered_to(self, whom: OfferedTo) -> bool {
        self.row().offered.contains(&whom)
    }

    pub fn name(self) -> &'static str {
        self.row().name
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::journal::event::Question;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    const PAGE: &str = "\
# Commands to an execution

For operators, and for authors of programs that control executions: every command an execution accepts. Verbs, scopes
and reasons are the same on the [command line](cli.md) (`rutter exec VERB`), over [HTTP](http-api.md) (`action` of a
signal), over [MCP](mcp-tools.md) (`action` of `control`) and on the [dashboard](dashboard.md).

- A synonym means the same verb everywhere. Words are joined by `_` in JSON and by `-` on the command line.
- *Scope* is the scope of the [key or token](security.md). An agent over MCP never has `approve`. Settling a doubt with
  `resolve` needs `approve` too: only a person may say what happened.
- A verb with *reason* is refused without one: [`command.reason_missing`](errors.md). For `resolve`, evidence
  in words is the reason; `answer` needs one if the verb it answers with does.

Generated from the table of verbs by `UPDATE_GOLDENS=1 cargo test -p rutter-app verb`.

| verb | synonyms | scope | reason | effect |
|---|---|---|---|---|
";

    #[test]
    fn every_name_and_synonym_means_one_verb() {
        let mut seen = BTreeSet::new();
        for row in VERBS {
            for name in [row.name].iter().chain(row.synonyms) {
                assert!(seen.insert(*name), "{name} is used twice");
                assert_eq!(Verb::parse(name), Some(row.verb));
                assert_eq!(Verb::parse(&name.replace('_', "-")), Some(row.verb));
            }
        }
        assert_eq!(Verb::parse("explode"), None);
    }

    #[test]
    fn the_page_of_commands_is_up_to_date() {
        let mut now = PAGE.to_owned();
        for row in VERBS {
            let synonyms: Vec<String> = row.synonyms.iter().map(|word| format!("`{word}`")).collect();
            let (name, right, reason) = (row.name, row.scope.as_str(), if row.needs_reason { "yes" } else { "" });
            now += &format!("| `{name}` | {} | `{right}` | {reason} | {} |\n", synonyms.join(", "), row.meaning);
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(&path, &now).unwrap();
        }
        let written = fs::read_to_string(&path).unwrap_or_default();
        assert!(written == now, "docs/commands.md is out of date; UPDATE_GOLDENS=1 regenerates it");
    }

    #[test]
    fn every_verb_has_a_row_and_every_answer_a_verb() {
        for answers in [Question::FAILURE_ANSWERS, Question::COMPENSATION_ANSWERS, Question::LIMIT_ANSWERS] {
            for answer in answers {
                assert_eq!(Verb::answering(*answer).row().answer, Some(*answer));
            }
        }
        for row in VERBS {
            assert_eq!(row.verb.row().name, row.name);
        }
    }

    #[test]
    fn verbs_that_grant_need_a_person_and_a_reason() {
        for row in VERBS.iter().filter(|row| row.scope == AccessScope::Approve) {
            assert!(row.needs_reason && row.offered.is_empty(), "{}", row.name);
        }
    }
}
