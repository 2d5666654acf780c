//! `rutter run`: checks a plan, starts it and follows it until it ends or waits for a person.

use crate::args::run::RunPlanArgs;
use crate::config::Config;
use crate::daemon::{self, HandledBy};
use crate::exec::watch;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::plan;
use crate::plan::named::{self, RunnablePlan};
use crate::progress::ProgressPrinter;
use crate::runtime::LocalRuntime;
use crate::socket::{SocketRequest, start_plan, start_saved};
use crate::terminal::Terminal;
use rutter_app::limits::BODY_BYTES_MAX;
use rutter_app::principal::Principal;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use rutter_core::plan::document::{DocumentFormat, PlanDocument, read_exact};
use rutter_engine::submit::servers_named;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(crate) fn run(args: &RunPlanArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let plan = RunnablePlan::found_at(&args.file, &args.store, &args.tenant.id())?;
    let inputs = Arc::new(Value::Object(inputs(args, &plan)?));
    let config = Config::load_with(&args.store, &args.tools)?;
    daemon::check_tools(&args.store, &args.tools, &config)?;
    let (tenant, person, key) = (args.tenant.id(), config.operator.clone(), args.key.clone());
    let greeting = match &plan {
        RunnablePlan::Saved(plan) => {
            SocketRequest::Start { tenant, person, plan: plan.clone(), inputs: (*inputs).clone(), key }
        }
        RunnablePlan::File(source) => match String::from_utf8(source.clone()) {
            Ok(plan) => SocketRequest::Run { tenant, person, plan, inputs: (*inputs).clone(), key },
            // What is no text cannot be sent as such; it gets the diagnostics of `plan check`.
            Err(_) => {
                return plan::CheckedPlanFile::unread(&args.file, source).refuse(&[], args.store.json, terminal);
            }
        },
    };
    let here = || {
        crate::blocking::block_on(async {
            let runtime = LocalRuntime::open(&args.store, &args.tools).await?;
            let ended = begin(args, &runtime, &plan, Arc::clone(&inputs), terminal).await;
            runtime.close().await;
            ended
        })
    };
    match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::ThisProcess(exit) => Ok(exit),
        HandledBy::Server(answer) => begun(args, &plan, &answer, terminal),
    }
}

/// The server has started the execution, or refused; the rest is in the journal.
fn begun(args: &RunPlanArgs, plan: &RunnablePlan, answer: &Value, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    if let Some((file, absent)) = plan::CheckedPlanFile::from_answer(&args.file, plan.source(), answer) {
        return file.refuse(&absent, args.store.json, terminal);
    }
    let Some(execution) = answer["execution"].as_str().filter(|_| answer["ok"] == true) else {
        return Err(plan.refusal(answer).into());
    };
    terminal.remark(&format!("{execution}\n"));
    if let Some(url) = answer["url"].as_str() {
        terminal.remark(&format!("{url}\n"));
    }
    let identity = ExecutionIdentity { tenant: args.tenant.id(), execution: ExecutionId::new(execution) };
    watch::follow(&args.store, &args.tools, &identity, args.wait, 0, terminal)
}

async fn begin(
    args: &RunPlanArgs,
    runtime: &LocalRuntime,
    plan: &RunnablePlan,
    inputs: Arc<Value>,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let caller = Principal::owner(args.tenant.id(), &runtime.config.operator);
    let updates = runtime.app.updates();
    if let (RunnablePlan::File(source), Some(tools)) = (plan, &runtime.runtime.tools)
        && let Ok(document) = PlanDocument::read(source, DocumentFormat::guess(source))
    {
        tools.registry.list_unknown(&servers_named(&document.value)).await;
    }
    let begun = match plan {
        RunnablePlan::File(source) => start_plan(&runtime.app, &caller, source.clone(), inputs, args.key.clone()).await,
        RunnablePlan::Saved(name) => start_saved(&runtime.app, &caller, name, inputs, args.key.clone()).await,
    };
    let started = match begun {
        Ok(started) => started,
        Err(error) => {
            let answer = json!({ "ok": false, "error": error });
            return match plan::CheckedPlanFile::from_answer(&args.file, plan.source(), &answer) {
                Some((file, absent)) => file.refuse(&absent, args.store.json, terminal),
                None => Err(plan.refusal(&answer).into()),
            };
        }
    };
    let identity = ExecutionIdentity { tenant: caller.tenant, execution: started.execution };
    let mut progress = ProgressPrinter::new(terminal, args.store.json && !terminal.is_watched);
    terminal.remark(&format!("{}\n", identity.execution));
    runtime.follow(&identity, updates, args.wait, &mut progress).await?;
    runtime.conclude(&identity, args.store.json, terminal).await
}

/// Inputs from the file and from the command line, which takes precedence.
fn inputs(args: &RunPlanArgs, plan: &RunnablePlan) -> anyhow::Result<Map<String, Value>> {
    let wrong = |message: String| CommandRefusal::new("command.inputs", message);
    let mut inputs = match &args.inputs_file {
        None => Map::new(),
        Some(path) => {
            let unreadable = |error: std::io::Error| wrong(format!("cannot read {}: {error}", path.display()));
            let bytes = named::bytes_within(path, BODY_BYTES_MAX).map_err(unreadable)?;
            if bytes.len() > BODY_BYTES_MAX {
                return Err(wrong(format!("{} has more than {BODY_BYTES_MAX} bytes", path.display()))
                    .with_hint(
                        "a request may have that many, over HTTP and MCP as well; pass where the data is instead",
                    )
                    .into());
            }
            read_exact(&bytes).map_err(|error| wrong(format!("{} must hold a JSON object: {error}", path.display())))?
        }
    };
    let schema = match args.inputs.is_empty() {
        true => Value::Null,
        false => plan.inputs(&args.store, &args.tenant.id()),
    };
    inputs.extend(named::typed_values(&args.inputs, &schema)?);
    Ok(inputs)
}
