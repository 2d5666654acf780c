//! `rutter exec pause`, `approve`, `undo` and the others: sends a command to an execution and follows the effect.

use super::watch;
use crate::args::run::{ExecActionArgs, ExecCommand};
use crate::config::Config;
use crate::daemon::{self, HandledBy};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::plan::named;
use crate::progress::ProgressPrinter;
use crate::runtime::LocalRuntime;
use crate::socket::{SocketCommand, SocketCommandKind, SocketRequest};
use crate::store;
use crate::terminal::Terminal;
use rutter_app::command::CommandArguments;
use rutter_app::verb::Verb;
use rutter_core::id::ExecutionId;
use rutter_core::plan::document::read_exact;
use serde_json::{Map, Value};
use std::path::Path;

pub(crate) fn run(command: &ExecCommand, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let (args, what) = read(command)?;
    let config = Config::load_with(&args.store, &args.tools)?;
    let sent = SocketCommand {
        tenant: args.tenant.id(),
        execution: ExecutionId::new(&args.execution),
        person: config.operator.clone(),
        reason: reason(args, &what, terminal)?,
        what,
        key: args.key.clone(),
    };
    // Only entries after the command are printed.
    let count = store::archive(&args.store)?.receipt(&sent.identity(), None)?.seq;
    let greeting = SocketRequest::Say(Box::new(sent.clone()));
    let here = || crate::blocking::block_on(run_locally(args, sent.clone(), count, terminal));
    match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::ThisProcess(exit) => Ok(exit),
        HandledBy::Server(answer) if answer["ok"] != true => Err(CommandRefusal::from_answer(&answer).into()),
        HandledBy::Server(_) if args.no_wait => print_acknowledgement(args, terminal),
        HandledBy::Server(_) => watch::follow(&args.store, &args.tools, &sent.identity(), false, count, terminal),
    }
}

/// Performs the command in this process, and continues the execution.
async fn run_locally(
    args: &ExecActionArgs,
    sent: SocketCommand,
    count: u64,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let runtime = LocalRuntime::open(&args.store, &args.tools).await?;
    let identity = sent.identity();
    let updates = runtime.app.updates();
    let ended = match sent.perform(&runtime.app).await {
        Err(app_error) => Err(CommandRefusal::of(app_error).into()),
        Ok(()) if args.no_wait => print_acknowledgement(args, terminal),
        Ok(()) => {
            let progress = ProgressPrinter::new(terminal, args.store.json && !terminal.is_watched);
            let mut progress = progress.after(count);
            match runtime.follow(&identity, updates, false, &mut progress).await {
                Ok(()) => runtime.conclude(&identity, args.store.json, terminal).await,
                Err(error) => Err(error),
            }
        }
    };
    runtime.close().await;
    ended
}

fn print_acknowledgement(args: &ExecActionArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    if args.store.json {
        terminal.answer("{\"ok\":true}\n")?;
    }
    Ok(CommandExit::Done)
}

/// The arguments as a command.
fn read(command: &ExecCommand) -> anyhow::Result<(&ExecActionArgs, SocketCommandKind)> {
    let none = CommandArguments::default;
    let (args, verb, arguments) = match command {
        ExecCommand::Pause(args) => (args, Verb::Pause, none()),
        ExecCommand::Resume(args) => {
            let expire = args.expire.as_ref().map(|_| true);
            let expire_only = args.expire.clone().filter(|names| !names.is_empty());
            (&args.act, Verb::Resume, CommandArguments { expire, expire_only, ..none() })
        }
        ExecCommand::Kill(args) => (args, Verb::Kill, none()),
        ExecCommand::TakeOver(args) => (args, Verb::TakeOver, none()),
        ExecCommand::HandBack(args) => (args, Verb::HandBack, none()),
        ExecCommand::Cancel(args) => {
            let undo = match (args.undo, args.no_undo) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                (false, false) => None,
            };
            (&args.act, Verb::Cancel, CommandArguments { undo, ..none() })
        }
        ExecCommand::Retry(args) => (&args.act, Verb::Retry, about(&args.step)),
        ExecCommand::Skip(args) => (&args.act, Verb::Skip, about(&args.step)),
        ExecCommand::Stop(args) => (&args.act, Verb::Stop, about(&args.step)),
        ExecCommand::Continue(args) => (&args.act, Verb::Continue, about(&args.step)),
        ExecCommand::Answer(args) => {
            let with = Verb::parse(&args.answer);
            (&args.about.act, Verb::Answer, CommandArguments { with, ..about(&args.about.step) })
        }
        ExecCommand::Resolve(args) => {
            let result = args.result.as_deref().map(json).transpose()?;
            // Evidence is usually a sentence.
            let evidence = args.evidence.as_deref().map(|text| json(text).unwrap_or_else(|_| Value::from(text)));
            let happened = Some(!args.not_done);
            let result_unknown = args.result_unknown.then_some(true);
            let arguments = CommandArguments { happened, result, result_unknown, evidence, ..about(&args.about.step) };
            (&args.about.act, Verb::Resolve, arguments)
        }
        ExecCommand::Correct(args) => {
            let result = args.result.as_deref().map(json).transpose()?;
            let evidence = args.evidence.as_deref().map(|text| json(text).unwrap_or_else(|_| Value::from(text)));
            let (happened, result_unknown) = (Some(!args.not_done), args.result_unknown.then_some(true));
            let arguments = CommandArguments { happened, result, result_unknown, evidence, ..about(&args.about.step) };
            (&args.about.act, Verb::Correct, arguments)
        }
        ExecCommand::Approve(args) => {
            (&args.about.act, Verb::Approve, CommandArguments { call: args.call.clone(), ..about(&args.about.step) })
        }
        ExecCommand::Reject(args) => {
            (&args.about.act, Verb::Reject, CommandArguments { call: args.call.clone(), ..about(&args.about.step) })
        }
        ExecCommand::Reply(args) => {
            let reply = args.answer.as_deref().map(fields).transpose()?;
            (&args.about.act, Verb::Reply, CommandArguments { reply, ..about(&args.about.step) })
        }
        ExecCommand::Undo(args) => {
            let steps = Some(args.steps.clone()).filter(|steps| !steps.is_empty());
            (&args.act, Verb::Undo, CommandArguments { steps, ..none() })
        }
        ExecCommand::Reopen(args) => {
            let steps = Some(args.steps.clone()).filter(|steps| !steps.is_empty());
            (&args.act, Verb::Reopen, CommandArguments { steps, ..none() })
        }
        ExecCommand::AcceptTool(args) => {
            let (tool, definition) = (Some(args.tool.clone()), args.definition.clone());
            (&args.act, Verb::AcceptTool, CommandArguments { tool, definition, ..none() })
        }
        ExecCommand::Replan(args) => match &args.plan {
            None => (&args.act, Verb::Replan, about(&args.step)),
            Some(plan) => return Ok((&args.act, SocketCommandKind::Replan(plan_text(plan)?))),
        },
        ExecCommand::List(_) | ExecCommand::Show(_) | ExecCommand::Watch(_) => {
            unreachable!("these only read, and have their own modules")
        }
    };
    Ok((args, SocketCommandKind::Command { verb, arguments: Box::new(arguments) }))
}

fn plan_text(path: &Path) -> Result<String, CommandRefusal> {
    let unreadable = |why: String| CommandRefusal::new("file.unreadable", why);
    let bytes =
        named::bytes_of(path).map_err(|error| unreadable(format!("cannot read {}: {error}", path.display())))?;
    String::from_utf8(bytes).map_err(|_| unreadable(format!("{} is not text", path.display())))
}

fn about(step: &Option<String>) -> CommandArguments {
    CommandArguments { step: step.clone(), ..Default::default() }
}

/// The reason from the command line; at a terminal the user is asked for it if the verb needs one.
fn reason(args: &ExecActionArgs, what: &SocketCommandKind, terminal: &Terminal) -> anyhow::Result<String> {
    let name = match what {
        SocketCommandKind::Command { verb, arguments } if arguments.needs_reason(*verb) => verb.name(),
        SocketCommandKind::Replan(_) => Verb::Replan.name(),
        SocketCommandKind::Command { .. } => return Ok(args.reason.clone()),
    };
    match args.reason.trim().is_empty() && terminal.can_ask() {
        true => terminal.ask(&format!("Why {}? The reason is journaled: ", name.replace('_', " "))),
        false => Ok(args.reason.clone()),
    }
}

fn json(text: &str) -> Result<Value, CommandRefusal> {
    let wrong = |error| CommandRefusal::new("command.inputs", format!("this must be JSON: {error}"));
    read_exact(text.as_bytes()).map_err(wrong)
}

fn fields(text: &str) -> Result<Map<String, Value>, CommandRefusal> {
    let wrong = |error| CommandRefusal::new("command.inputs", format!("this must be a JSON object: {error}"));
    read_exact(text.as_bytes()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Args, CliCommand, command as command_line};
    use clap::FromArgMatches;
    use rutter_app::question::commands;
    use rutter_core::execution::view::{PendingQuestion, SurpriseKind};
    use rutter_core::hash::Hash;
    use rutter_core::id::{PartId, StepId, ToolName};
    use rutter_core::journal::event::{CallSide, ExecutionLimit, Question};
    use rutter_core::time::Timestamp;
    use rutter_core::tool::{FailureCategory, ToolFailure};

    /// One question of every kind, with all answers that it can take.
    fn questions() -> Vec<PendingQuestion> {
        let (step, item) = (StepId::new("update"), PartId { step: StepId::new("update"), item: Some(12) });
        let (hash, at) = (Hash::of(&[b"seen"]), Timestamp(0));
        let failure = ToolFailure::new(FailureCategory::Unavailable, "it's down");
        let failed = |part: PartId| PendingQuestion::Failure {
            step: step.clone(),
            failures: vec![(part, failure.clone())],
            answers: Question::FAILURE_ANSWERS,
            proof: None,
            only_people: Vec::new(),
        };
        let late = |surprise: SurpriseKind| PendingQuestion::SecondEffect {
            part: item.clone(),
            surprise,
            attempts: vec![1],
            effects: Vec::new(),
            answers: surprise.answers(),
        };
        let (tool, side) = (ToolName::new("shop.update"), CallSide::Do);
        vec![
            PendingQuestion::Approval {
                part: item.clone(),
                call: hash,
                tool: tool.clone(),
                parameters: None,
                expires_at: at,
                sends: 1,
                rule: None,
                by: Vec::new(),
                proof: None,
                denied: None,
            },
            PendingQuestion::Doubt {
                part: item.clone(),
                side,
                attempt: 1,
                tool: None,
                parameters: None,
                key: None,
                sent_at: None,
                reason: String::new(),
                failure: None,
            },
            failed(PartId::whole(step.clone())),
            failed(item.clone()),
            PendingQuestion::Compensation {
                part: item.clone(),
                failure: failure.clone(),
                answers: Question::COMPENSATION_ANSWERS,
            },
            PendingQuestion::Limit { limit: ExecutionLimit::Calls, answers: Question::LIMIT_ANSWERS },
            PendingQuestion::Replan {
                plan: hash,
                revision: 2,
                weakens: Vec::new(),
                changes: Vec::new(),
                reason: String::new(),
                proof: None,
            },
            late(SurpriseKind::Second),
            late(SurpriseKind::Only),
            late(SurpriseKind::OtherResult),
            PendingQuestion::Drift { tool, pinned: hash, found: Hash::of(&[b"found"]) },
            PendingQuestion::Hold { reason: String::new(), since: at, due: Vec::new(), more: 0 },
            PendingQuestion::Silence { since: at, answers: Question::SILENCE_ANSWERS },
            PendingQuestion::Tool {
                part: item,
                side,
                attempt: 1,
                message: String::new(),
                schema: None,
                person_only: false,
            },
        ]
    }

    /// A new kind of question does not compile here: [`questions`] needs one of it too.
    fn kind(question: &PendingQuestion) -> usize {
        match question {
            PendingQuestion::Approval { .. } => 0,
            PendingQuestion::Doubt { .. } => 1,
            PendingQuestion::Failure { .. } => 2,
            PendingQuestion::Compensation { .. } => 3,
            PendingQuestion::Limit { .. } => 4,
            PendingQuestion::Replan { .. } => 5,
            PendingQuestion::SecondEffect { .. } => 6,
            PendingQuestion::Drift { .. } => 7,
            PendingQuestion::Hold { .. } => 8,
            PendingQuestion::Silence { .. } => 9,
            PendingQuestion::Tool { .. } => 10,
        }
    }

    /// The words of a command, as a shell splits them. What a person fills in is filled in.
    fn words(command: &str) -> Vec<String> {
        let command = command.replace("{…}", "{}").replace('…', "I looked");
        let (mut words, mut is_quoted) = (vec![String::new()], false);
        for character in command.chars() {
            match character {
                '\'' => is_quoted = !is_quoted,
                ' ' if !is_quoted => words.push(String::new()),
                '[' | '{' | '(' | '$' | '*' if !is_quoted => {
                    panic!("a shell would not leave {character} as it is: {command}")
                }
                other => words.last_mut().expect("there is one from the start").push(other),
            }
        }
        assert!(!is_quoted, "{command}");
        words
    }

    #[test]
    fn every_command_that_answers_a_question_can_be_typed() {
        let mut kinds: Vec<usize> = Vec::new();
        for question in questions() {
            kinds.push(kind(&question));
            let commands = commands(&ExecutionId::new("exec_01"), &question);
            assert!(!commands.is_empty(), "{question:?}");
            for typed in commands {
                let matches = command_line().try_get_matches_from(words(&typed));
                let args = matches.and_then(|matches| Args::from_arg_matches(&matches));
                let args = args.unwrap_or_else(|error| panic!("{typed}: {error}"));
                let CliCommand::Exec(command) = args.command else { panic!("{typed}") };
                let (act, what) = read(&command).unwrap_or_else(|error| panic!("{typed}: {error}"));
                assert_eq!(act.execution, "exec_01", "{typed}");
                let SocketCommandKind::Command { verb, arguments } = what else { panic!("{typed}") };
                assert!(!arguments.needs_reason(verb) || typed.contains(" --reason "), "{typed}: it needs a reason");
            }
        }
        kinds.dedup();
        assert_eq!(kinds, (0..=10).collect::<Vec<usize>>());
    }
}
