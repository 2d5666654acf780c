//! Arguments of `rutter run` and `rutter exec`.

use super::{DatabaseArgs, TenantArgs};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args as Options, Subcommand};
use rutter_app::verb::Verb;
use rutter_core::execution::view::ExecutionStatus;
use std::path::PathBuf;

/// Sources of tools.
#[derive(Clone, Debug, Default, Options)]
pub(crate) struct ToolSourceArgs {
    /// A file with more MCP servers, under `mcpServers` or `servers`; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,
}

#[derive(Debug, Options)]
pub(crate) struct RunPlanArgs {
    /// The plan: a file in YAML or JSON, `-` for stdin, or the name or id of a saved plan, also as `NAME@REVISION`. A
    /// file takes precedence
    #[arg(value_name = "PLAN")]
    pub(crate) file: PathBuf,
    /// An input as `name=value`; the value is JSON if it can be parsed as such, otherwise text
    #[arg(long = "input", value_name = "K=V")]
    pub(crate) inputs: Vec<String>,
    /// Inputs as a JSON file; `--input` takes precedence
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs_file: Option<PathBuf>,
    /// Idempotency key: starting again with the same key returns the first execution
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// When it waits for a person, stay until it continues or ends
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

/// The subcommands that are verbs take their help and aliases from the table of verbs, see [`super::command`].
#[derive(Debug, Subcommand)]
pub(crate) enum ExecCommand {
    /// List executions, newest first
    List(ExecListArgs),
    /// Show an execution: steps, questions and how to answer them
    Show(ExecShowArgs),
    /// Continue an execution if no server does, and follow it
    Watch(ExecWatchArgs),
    Pause(ExecActionArgs),
    Resume(ExecResumeArgs),
    Cancel(ExecCancelArgs),
    Undo(ExecUndoArgs),
    Reopen(ExecReopenArgs),
    Kill(ExecActionArgs),
    TakeOver(ExecActionArgs),
    HandBack(ExecActionArgs),
    Retry(ExecStepArgs),
    Skip(ExecStepArgs),
    Resolve(ExecResolveArgs),
    Stop(ExecStepArgs),
    Continue(ExecStepArgs),
    Replan(ExecReplanArgs),
    Answer(ExecAnswerArgs),
    Approve(ExecApproveArgs),
    Reject(ExecApproveArgs),
    Reply(ExecReplyArgs),
    AcceptTool(ExecAcceptToolArgs),
    Correct(ExecCorrectArgs),
}

#[derive(Debug, Options)]
pub(crate) struct ExecListArgs {
    /// Only executions with this status; may be given several times
    #[arg(long, value_parser = ExecutionStatus::named, value_name = "STATUS")]
    pub(crate) status: Vec<ExecutionStatus>,
    /// Only executions with open questions
    #[arg(long)]
    pub(crate) asking: bool,
    /// At most this many
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) count: u32,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecShowArgs {
    pub(crate) execution: String,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecWatchArgs {
    pub(crate) execution: String,
    /// When it waits for a person, stay until it continues or ends
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

/// Arguments of every command to an execution.
#[derive(Debug, Options)]
pub(crate) struct ExecActionArgs {
    pub(crate) execution: String,
    /// The reason, for the journal
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) reason: String,
    /// Idempotency key: the same command with the same key is performed once
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Do not continue the execution afterwards
    #[arg(long)]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) tools: ToolSourceArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: DatabaseArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecResumeArgs {
    /// After a hold, let happen now what came due, of all or of these: steps, deadline, time, agent [default: the time of
    /// the hold does not count]
    #[arg(long, value_name = "NAMES", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    pub(crate) expire: Option<Vec<String>>,
    #[command(flatten)]
    pub(crate) act: ExecActionArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecCancelArgs {
    /// Undo completed steps [default: as the plan's on_failure says]
    #[arg(long, conflicts_with = "no_undo")]
    pub(crate) undo: bool,
    /// Undo nothing
    #[arg(long)]
    pub(crate) no_undo: bool,
    #[command(flatten)]
    pub(crate) act: ExecActionArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecStepArgs {
    /// The step, or `step[item]`; needed if more than one question is open
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) act: ExecActionArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecResolveArgs {
    /// The call certainly did not happen; it is then made
    #[arg(long)]
    pub(crate) not_done: bool,
    /// The result, as JSON, for the steps and the compensation that need it
    #[arg(long, value_name = "JSON")]
    pub(crate) result: Option<String>,
    /// Nobody knows the result; what reads it fails until it is added with correct
    #[arg(long, conflicts_with = "result")]
    pub(crate) result_unknown: bool,
    /// How you know: text, or JSON
    #[arg(long, value_name = "TEXT")]
    pub(crate) evidence: Option<String>,
    #[command(flatten)]
    pub(crate) about: ExecStepArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecCorrectArgs {
    /// The call did not happen after all; somebody decides what follows
    #[arg(long)]
    pub(crate) not_done: bool,
    /// The right result, as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) result: Option<String>,
    /// Nobody knows the result
    #[arg(long, conflicts_with = "result")]
    pub(crate) result_unknown: bool,
    /// How you know: text, or JSON
    #[arg(long, value_name = "TEXT")]
    pub(crate) evidence: Option<String>,
    #[command(flatten)]
    pub(crate) about: ExecStepArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecAnswerArgs {
    /// The answer
    #[arg(long = "with", value_parser = answer_parser(), value_name = "ANSWER")]
    pub(crate) answer: String,
    #[command(flatten)]
    pub(crate) about: ExecStepArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecApproveArgs {
    /// The hash of the call you reviewed; refused if the call has changed
    #[arg(long, value_name = "HASH")]
    pub(crate) call: Option<String>,
    #[command(flatten)]
    pub(crate) about: ExecStepArgs,
}

#[derive(Debug, Options)]
#[group(id = "reply", required = true, multiple = false)]
pub(crate) struct ExecReplyArgs {
    /// The values the tool asks for, as a JSON object
    #[arg(long, value_name = "JSON", group = "reply")]
    pub(crate) answer: Option<String>,
    /// Decline to answer
    #[arg(long, group = "reply")]
    pub(crate) decline: bool,
    #[command(flatten)]
    pub(crate) about: ExecStepArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecUndoArgs {
    /// A step to undo, with its dependents; may be given several times
    #[arg(long = "step", value_name = "STEP")]
    pub(crate) steps: Vec<String>,
    #[command(flatten)]
    pub(crate) act: ExecActionArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecReopenArgs {
    /// A step to go on from; may be given several times [default: all that failed]
    #[arg(long = "step", value_name = "STEP")]
    pub(crate) steps: Vec<String>,
    #[command(flatten)]
    pub(crate) act: ExecActionArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecReplanArgs {
    /// The new plan, in YAML or JSON; `-` is stdin. Without it the execution waits for one
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: Option<PathBuf>,
    /// The failed step; needed if more than one question is open
    #[arg(long, value_name = "STEP", conflicts_with = "plan")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) act: ExecActionArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ExecAcceptToolArgs {
    /// `server.tool`
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: String,
    /// The hash of the definition you reviewed; refused if it has changed
    #[arg(long, value_name = "HASH")]
    pub(crate) definition: Option<String>,
    #[command(flatten)]
    pub(crate) act: ExecActionArgs,
}

/// The answers of the table, with their synonyms.
fn answer_parser() -> PossibleValuesParser {
    let rows = Verb::answers().map(Verb::row);
    PossibleValuesParser::new(rows.map(|row| PossibleValue::new(row.name).aliases(row.synonyms.iter().copied())))
}
