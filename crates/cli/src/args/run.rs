//! What was typed after `rutter run` and `rutter exec`.

use super::{StoreArgs, TenantArgs};
use clap::{Args as Options, Subcommand, ValueEnum};
use rutter_core::execution::view::Status;
use std::path::PathBuf;

/// Which tools there are.
#[derive(Clone, Debug, Default, Options)]
pub(crate) struct ToolArgs {
    /// More MCP servers, as a file with `mcpServers` or `servers`; may be given several times
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,
}

#[derive(Debug, Options)]
pub(crate) struct RunArgs {
    /// The plan, in YAML or JSON; `-` is stdin
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// An input as `name=value`; the value is JSON if it can be read as such, otherwise a text
    #[arg(long = "input", value_name = "K=V")]
    pub(crate) inputs: Vec<String>,
    /// Inputs as a JSON file; `--input` comes before it
    #[arg(long, value_name = "FILE")]
    pub(crate) inputs_file: Option<PathBuf>,
    /// Whoever starts twice with one key gets the execution of the first time
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Stay when it waits for somebody, until it goes on or ends
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExecCommand {
    /// List executions, newest first
    List(ListArgs),
    /// Tell how one stands: steps, questions and how to answer them
    Show(ShowArgs),
    /// Carry one on if nobody does, and follow what happens
    Watch(WatchArgs),
    /// Begin nothing new; what is under way comes to its end
    Pause(ActArgs),
    /// Go on after a pause
    Resume(ActArgs),
    /// Stop: what is under way is cancelled or awaited, then what the plan says
    Cancel(CancelArgs),
    /// Stop at once, without clean-up; what was under way stays unknown
    Kill(ActArgs),
    /// Try a failed step, or a failed undoing, again
    Retry(StepArgs),
    /// Go on without a failed step
    Skip(StepArgs),
    /// Say how something ended that nobody knows, or that a step was done by hand; with evidence
    Resolve(ResolveArgs),
    /// Answer a question with stop, continue, compensate or replan
    Answer(AnswerArgs),
    /// Say yes to the call a step wants to make
    Approve(ApproveArgs),
    /// Say no to it
    Reject(ApproveArgs),
    /// Answer what a tool asks in the middle of a call
    Reply(ReplyArgs),
    /// Undo what was done: everything, or after the end single steps and what depends on them
    Undo(UndoArgs),
    /// Go on with another plan, which keeps what is done
    Replan(ReplanArgs),
    /// Let the agent drive
    TakeOver(ActArgs),
    /// Let Rutter drive again
    HandBack(ActArgs),
    /// Accept a tool that has changed since the plan was checked
    AcceptTool(AcceptToolArgs),
}

#[derive(Debug, Options)]
pub(crate) struct ListArgs {
    /// Only those with this status; may be given several times
    #[arg(long, value_parser = status, value_name = "STATUS")]
    pub(crate) status: Vec<Status>,
    /// Only those that wait for somebody
    #[arg(long)]
    pub(crate) asking: bool,
    /// At most so many
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) count: u32,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ShowArgs {
    pub(crate) execution: String,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct WatchArgs {
    pub(crate) execution: String,
    /// Stay when it waits for somebody, until it goes on or ends
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// What every request to an execution has.
#[derive(Debug, Options)]
pub(crate) struct ActArgs {
    pub(crate) execution: String,
    /// Why; it stands in the journal
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(crate) reason: String,
    /// The same request twice with one key is one request
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Do not carry the execution on afterwards
    #[arg(long)]
    pub(crate) no_wait: bool,
    #[command(flatten)]
    pub(crate) tools: ToolArgs,
    #[command(flatten)]
    pub(crate) tenant: TenantArgs,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

#[derive(Debug, Options)]
pub(crate) struct CancelArgs {
    /// Undo what was done [default: as the plan's on_failure says]
    #[arg(long, conflicts_with = "no_undo")]
    pub(crate) undo: bool,
    /// Leave what was done
    #[arg(long)]
    pub(crate) no_undo: bool,
    #[command(flatten)]
    pub(crate) act: ActArgs,
}

#[derive(Debug, Options)]
pub(crate) struct StepArgs {
    /// The step, or `step[item]`; needed when more than one thing is asked
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) act: ActArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ResolveArgs {
    /// The step, or `step[item]`; needed when more than one thing is asked
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    /// It certainly did not happen; it is then done
    #[arg(long)]
    pub(crate) not_done: bool,
    /// What came out of it, as JSON, for the steps that need it
    #[arg(long, value_name = "JSON")]
    pub(crate) result: Option<String>,
    /// How you know: a text, or JSON
    #[arg(long, value_name = "TEXT")]
    pub(crate) evidence: Option<String>,
    #[command(flatten)]
    pub(crate) act: ActArgs,
}

#[derive(Debug, Options)]
pub(crate) struct AnswerArgs {
    /// The answer
    #[arg(long = "with", value_enum, value_name = "ANSWER")]
    pub(crate) answer: AnswerArg,
    /// The step, or `step[item]`; needed when more than one thing is asked
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    #[command(flatten)]
    pub(crate) act: ActArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AnswerArg {
    Stop,
    Continue,
    Compensate,
    Replan,
}

#[derive(Debug, Options)]
pub(crate) struct ApproveArgs {
    /// The step, or `step[item]`; needed when more than one call waits
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    /// The call as you saw it; refused if it is another one by now
    #[arg(long, value_name = "HASH")]
    pub(crate) call: Option<String>,
    #[command(flatten)]
    pub(crate) act: ActArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ReplyArgs {
    /// The step, or `step[item]`; needed when more than one tool asks
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<String>,
    /// What the tool wants to know, as a JSON object
    #[arg(long, value_name = "JSON", required_unless_present = "decline")]
    pub(crate) answer: Option<String>,
    /// Do not tell it
    #[arg(long, conflicts_with = "answer")]
    pub(crate) decline: bool,
    #[command(flatten)]
    pub(crate) act: ActArgs,
}

#[derive(Debug, Options)]
pub(crate) struct UndoArgs {
    /// A step to undo, with what depends on it; may be given several times
    #[arg(long = "step", value_name = "STEP")]
    pub(crate) steps: Vec<String>,
    #[command(flatten)]
    pub(crate) act: ActArgs,
}

#[derive(Debug, Options)]
pub(crate) struct ReplanArgs {
    /// The new plan, in YAML or JSON; `-` is stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) plan: PathBuf,
    #[command(flatten)]
    pub(crate) act: ActArgs,
}

#[derive(Debug, Options)]
pub(crate) struct AcceptToolArgs {
    /// `server.tool`
    #[arg(long, value_name = "TOOL")]
    pub(crate) tool: String,
    /// The tool as you saw it; refused if it is another one by now
    #[arg(long, value_name = "HASH")]
    pub(crate) definition: Option<String>,
    #[command(flatten)]
    pub(crate) act: ActArgs,
}

fn status(text: &str) -> Result<Status, String> {
    Status::parse(text).ok_or_else(|| {
        let known: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
        format!("expected one of {}", known.join(", "))
    })
}

impl ExecCommand {
    pub(crate) fn store(&self) -> &StoreArgs {
        match self {
            ExecCommand::List(args) => &args.store,
            ExecCommand::Show(args) => &args.store,
            ExecCommand::Watch(args) => &args.store,
            ExecCommand::Pause(args)
            | ExecCommand::Resume(args)
            | ExecCommand::Kill(args)
            | ExecCommand::TakeOver(args)
            | ExecCommand::HandBack(args) => &args.store,
            ExecCommand::Cancel(args) => &args.act.store,
            ExecCommand::Retry(args) | ExecCommand::Skip(args) => &args.act.store,
            ExecCommand::Resolve(args) => &args.act.store,
            ExecCommand::Answer(args) => &args.act.store,
            ExecCommand::Approve(args) | ExecCommand::Reject(args) => &args.act.store,
            ExecCommand::Reply(args) => &args.act.store,
            ExecCommand::Undo(args) => &args.act.store,
            ExecCommand::Replan(args) => &args.act.store,
            ExecCommand::AcceptTool(args) => &args.act.store,
        }
    }
}
