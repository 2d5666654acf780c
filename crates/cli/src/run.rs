//! `rutter run`: checks a plan, starts it and follows it until it ends or waits for a person.

use crate::args::run::RunPlanArgs;
use crate::config::Config;
use crate::daemon::{self, HandledBy};
use crate::exec::watch;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::plan;
use crate::progress::ProgressPrinter;
use crate::runtime::LocalRuntime;
use crate::socket::{SocketRequest, start_plan};
use crate::terminal::Terminal;
use rutter_app::principal::Principal;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(crate) fn run(args: &RunPlanArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let inputs = Arc::new(Value::Object(inputs(args)?));
    let unreadable =
        |why: String| CommandRefusal::new("file.unreadable", format!("cannot read {}: {why}", args.file.display()));
    let source = plan::bytes_of(&args.file).map_err(|error| unreadable(error.to_string()))?;
    let config = Config::load_with(&args.store, &args.tools)?;
    daemon::check_tools(&args.store, &args.tools, &config)?;
    let greeting = SocketRequest::Run {
        tenant: args.tenant.id(),
        person: config.operator.clone(),
        // If it is not text, the receiver refuses it.
        plan: String::from_utf8_lossy(&source).into_owned(),
        inputs: (*inputs).clone(),
        key: args.key.clone(),
    };
    let here = || {
        crate::blocking::block_on(async {
            let runtime = LocalRuntime::open(&args.store, &args.tools).await?;
            let ended = begin(args, &runtime, source.clone(), Arc::clone(&inputs), terminal).await;
            runtime.close().await;
            ended
        })
    };
    match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::ThisProcess(exit) => Ok(exit),
        HandledBy::Server(answer) => begun(args, &source, &answer, terminal),
    }
}

/// The server has started the execution, or refused; the rest is in the journal.
fn begun(args: &RunPlanArgs, source: &[u8], answer: &Value, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    if let Some((file, absent)) = plan::CheckedPlanFile::from_answer(&args.file, source, answer) {
        return file.refuse(&absent, args.store.json, terminal);
    }
    let Some(execution) = answer["execution"].as_str().filter(|_| answer["ok"] == true) else {
        return Err(CommandRefusal::from_answer(answer).into());
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
    source: Vec<u8>,
    inputs: Arc<Value>,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let caller = Principal::owner(args.tenant.id(), &runtime.config.operator);
    let updates = runtime.app.updates();
    let started = match start_plan(&runtime.app, &caller, source.clone(), inputs, args.key.clone()).await {
        Ok(started) => started,
        Err(error) => {
            let answer = json!({ "ok": false, "error": error });
            return match plan::CheckedPlanFile::from_answer(&args.file, &source, &answer) {
                Some((file, absent)) => file.refuse(&absent, args.store.json, terminal),
                None => Err(CommandRefusal::of(error).into()),
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
fn inputs(args: &RunPlanArgs) -> anyhow::Result<Map<String, Value>> {
    let wrong = |message: String| CommandRefusal::new("command.inputs", message);
    let mut inputs = match &args.inputs_file {
        None => Map::new(),
        Some(path) => {
            let bytes =
                plan::bytes_of(path).map_err(|error| wrong(format!("cannot read {}: {error}", path.display())))?;
            serde_json::from_slice(&bytes)
                .map_err(|error| wrong(format!("{} must hold a JSON object: {error}", path.display())))?
        }
    };
    for typed in &args.inputs {
        let (name, value) =
            typed.split_once('=').ok_or_else(|| wrong(format!("expected an input as name=value, got {typed:?}")))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        inputs.insert(name.to_owned(), value);
    }
    Ok(inputs)
}
