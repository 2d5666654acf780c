//! `rutter exec pause`, `approve`, `undo` and the others: something is asked of an execution, and what follows is followed.

use super::watch;
use crate::Exit;
use crate::args::run::{ActArgs, AnswerArg, ExecCommand};
use crate::config::Config;
use crate::daemon::{self, Done};
use crate::failure::Refusal;
use crate::helm::{self, Helm};
use crate::outcome::part_of;
use crate::plan;
use crate::progress::Progress;
use crate::run::conclude;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, StepId, ToolName};
use rutter_core::journal::event::Answer;
use rutter_engine::control::Control;
use rutter_server::socket::{Greeting, Sent, What};
use serde_json::Value;
use std::sync::Arc;

pub(crate) fn run(command: &ExecCommand, terminal: &Terminal) -> anyhow::Result<Exit> {
    let (args, what) = read(command)?;
    let config = Config::load_with(&args.store, &args.tools)?;
    let sent = Sent {
        tenant: args.tenant.id(),
        execution: ExecutionId::new(&args.execution),
        actor: Actor::person(&config.operator),
        what,
        reason: args.reason.clone(),
        key: args.key.clone(),
    };
    // Only what follows from the request is told.
    let told = store::archive(&args.store)?.receipt(&sent.identity(), None)?.seq;
    let greeting = Greeting::Say(Box::new(sent.clone()));
    let here = || helm::on_runtime(here(args, sent.clone(), told, terminal));
    match daemon::here_or_there(&config.directory, &greeting, here)? {
        Done::Here(exit) => Ok(exit),
        Done::There(answer) if answer["ok"] != true => Err(Refusal::told(&answer).into()),
        Done::There(_) if args.no_wait => said(args, terminal),
        Done::There(_) => watch::follow(&args.store, &args.tools, &sent.identity(), false, told, terminal),
    }
}

/// Asks it here, and carries the execution on.
async fn here(args: &ActArgs, sent: Sent, told: u64, terminal: &Terminal) -> anyhow::Result<Exit> {
    let helm = Helm::open(&args.store, &args.tools).await?;
    let identity = sent.identity();
    let happenings = helm.engine.listen();
    let ended = match sent.say(&helm.engine).await {
        Err(error) => Err(helm::told(error)),
        Ok(()) if args.no_wait => said(args, terminal),
        Ok(()) => {
            let progress = Progress::new(terminal, args.store.json && !terminal.is_watched);
            let mut progress = progress.after(told);
            match helm.follow(&identity, happenings, false, &mut progress).await {
                Ok(()) => conclude(&helm, &identity, args.store.json, terminal).await,
                Err(error) => Err(error),
            }
        }
    };
    helm.close().await;
    ended
}

fn said(args: &ActArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    if args.store.json {
        terminal.answer("{\"ok\":true}\n")?;
    }
    Ok(Exit::Done)
}

/// What was typed, as it is said to the execution.
fn read(command: &ExecCommand) -> anyhow::Result<(&ActArgs, What)> {
    let control = |args, control| (args, What::Control(control));
    Ok(match command {
        ExecCommand::Pause(args) => control(args, Control::Pause),
        ExecCommand::Resume(args) => control(args, Control::Resume),
        ExecCommand::Kill(args) => control(args, Control::Kill),
        ExecCommand::TakeOver(args) => control(args, Control::TakeOver),
        ExecCommand::HandBack(args) => control(args, Control::HandBack),
        ExecCommand::Cancel(args) => {
            let undo = match (args.undo, args.no_undo) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                (false, false) => None,
            };
            control(&args.act, Control::Cancel { undo })
        }
        ExecCommand::Retry(args) => {
            control(&args.act, Control::Answer { about: part(&args.step)?, answer: Answer::Retry })
        }
        ExecCommand::Skip(args) => {
            control(&args.act, Control::Answer { about: part(&args.step)?, answer: Answer::Skip })
        }
        ExecCommand::Answer(args) => {
            let answer = match args.answer {
                AnswerArg::Stop => Answer::Stop,
                AnswerArg::Continue => Answer::Continue,
                AnswerArg::Compensate => Answer::Compensate,
                AnswerArg::Replan => Answer::Replan,
            };
            control(&args.act, Control::Answer { about: part(&args.step)?, answer })
        }
        ExecCommand::Resolve(args) => {
            let result = args.result.as_deref().map(json).transpose()?;
            // Evidence is mostly a sentence.
            let evidence =
                args.evidence.as_deref().map(|text| json(text).unwrap_or_else(|_| Value::from(text).into()));
            let part = part(&args.step)?;
            control(&args.act, Control::Resolve { part, happened: !args.not_done, result, evidence })
        }
        ExecCommand::Approve(args) => {
            control(&args.act, Control::Approve { part: part(&args.step)?, call: hash(&args.call)? })
        }
        ExecCommand::Reject(args) => {
            control(&args.act, Control::Reject { part: part(&args.step)?, call: hash(&args.call)? })
        }
        ExecCommand::Reply(args) => {
            let answer = args.answer.as_deref().map(json).transpose()?;
            control(&args.act, Control::Reply { part: part(&args.step)?, answer })
        }
        ExecCommand::Undo(args) => {
            let steps: Vec<StepId> = args.steps.iter().map(|step| StepId::new(step)).collect();
            control(&args.act, Control::Undo { steps: (!steps.is_empty()).then_some(steps) })
        }
        ExecCommand::AcceptTool(args) => {
            let (tool, definition) = (ToolName::new(&args.tool), hash(&args.definition)?);
            control(&args.act, Control::AcceptTool { tool, definition })
        }
        ExecCommand::Replan(args) => {
            let bytes = plan::bytes_of(&args.plan).map_err(|error| {
                Refusal::new("file.unreadable", format!("cannot read {}: {error}", args.plan.display()))
            })?;
            let text = String::from_utf8(bytes).map_err(|_| {
                Refusal::new("file.unreadable", format!("{} is no text", args.plan.display()))
            })?;
            (&args.act, What::Replan(text))
        }
        ExecCommand::List(_) | ExecCommand::Show(_) | ExecCommand::Watch(_) => {
            unreachable!("these only look, and have their own files")
        }
    })
}

fn part(step: &Option<String>) -> Result<Option<PartId>, Refusal> {
    let part = step.as_deref().map(part_of).transpose();
    part.map_err(|message| Refusal::new("execution.unknown_part", message))
}

fn hash(text: &Option<String>) -> Result<Option<Hash>, Refusal> {
    let wrong = |text: &String| Refusal::new("execution.other_call", format!("{text:?} is no hash"));
    text.as_ref().map(|text| Hash::parse(text).ok_or_else(|| wrong(text))).transpose()
}

fn json(text: &str) -> Result<Arc<Value>, Refusal> {
    let wrong = |error| Refusal::new("command.inputs", format!("this must be JSON: {error}"));
    serde_json::from_str(text).map(Arc::new).map_err(wrong)
}
