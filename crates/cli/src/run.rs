//! `rutter run`: checks a plan, starts it and follows it to its end, or to where somebody is needed.

use crate::Exit;
use crate::args::run::RunArgs;
use crate::config::Config;
use crate::daemon::{self, Done};
use crate::exec::watch;
use crate::failure::Refusal;
use crate::helm::{self, Helm};
use crate::outcome::Outcome;
use crate::plan;
use crate::progress::Progress;
use crate::terminal::Terminal;
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::id::ExecutionId;
use rutter_core::plan::Driver;
use rutter_core::plan::document::Format;
use rutter_engine::submit::PlanText;
use rutter_engine::{Error, Start};
use rutter_server::socket::Greeting;
use serde_json::{Map, Value};
use std::sync::Arc;

pub(crate) fn run(args: &RunArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let inputs = Arc::new(Value::Object(inputs(args)?));
    let unreadable =
        |why: String| Refusal::new("file.unreadable", format!("cannot read {}: {why}", args.file.display()));
    let source = plan::bytes_of(&args.file).map_err(|error| unreadable(error.to_string()))?;
    let config = Config::load_with(&args.store, &args.tools)?;
    daemon::check_tools(&args.store, &args.tools, &config)?;
    let greeting = Greeting::Run {
        tenant: args.tenant.id(),
        actor: Actor::person(&config.operator),
        // What is no text is refused as such by whoever reads it.
        plan: String::from_utf8_lossy(&source).into_owned(),
        inputs: (*inputs).clone(),
        key: args.key.clone(),
    };
    let here = || {
        helm::on_runtime(async {
            let helm = Helm::open(&args.store, &args.tools).await?;
            let ended = begin(args, &helm, source.clone(), Arc::clone(&inputs), terminal).await;
            helm.close().await;
            ended
        })
    };
    match daemon::here_or_there(&config.directory, &greeting, here)? {
        Done::Here(exit) => Ok(exit),
        Done::There(answer) => begun(args, &source, &answer, terminal),
    }
}

/// The process that has the database has started it, or not; what follows is in the journal.
fn begun(args: &RunArgs, source: &[u8], answer: &Value, terminal: &Terminal) -> anyhow::Result<Exit> {
    if let Some((file, absent)) = plan::PlanFile::told(&args.file, source, answer) {
        return file.refuse(&absent, args.store.json, terminal);
    }
    let Some(execution) = answer["execution"].as_str().filter(|_| answer["ok"] == true) else {
        return Err(Refusal::told(answer).into());
    };
    terminal.remark(&format!("{execution}\n"));
    if let Some(page) = answer["page"].as_str() {
        terminal.remark(&format!("{page}\n"));
    }
    let identity = Identity { tenant: args.tenant.id(), execution: ExecutionId::new(execution) };
    watch::follow(&args.store, &args.tools, &identity, args.wait, 0, terminal)
}

async fn begin(
    args: &RunArgs,
    helm: &Helm,
    source: Vec<u8>,
    inputs: Arc<Value>,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let (tenant, actor) = (args.tenant.id(), Actor::person(&helm.config.operator));
    let format = Format::guess(&source);
    let text = PlanText { tenant: tenant.clone(), source: source.clone(), format, driver: Driver::Server };
    let submitted = match helm.engine.submit(text, None, None, actor.clone()).await {
        Ok(submitted) => submitted,
        Err(Error::Plan { found, absent }) => {
            let file = plan::PlanFile::found(&args.file, &source, found);
            return file.refuse(&plan::Absent::all(&absent), args.store.json, terminal);
        }
        Err(error) => return Err(helm::told(error)),
    };
    let happenings = helm.engine.listen();
    let start = Start {
        tenant: tenant.clone(),
        plan: submitted.id,
        revision: None,
        inputs,
        driver: Driver::Server,
        actor,
        request: args.key.clone(),
    };
    let started = helm.engine.start(start).await.map_err(helm::told)?;
    let identity = Identity { tenant, execution: started.execution };
    let mut progress = Progress::new(terminal, args.store.json && !terminal.is_watched);
    terminal.remark(&format!("{}\n", identity.execution));
    helm.follow(&identity, happenings, args.wait, &mut progress).await?;
    conclude(helm, &identity, args.store.json, terminal).await
}

/// Tells how the execution stands, and ends with the code for that.
pub(crate) async fn conclude(
    helm: &Helm,
    identity: &Identity,
    is_json: bool,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let outcome = helm.engine.look(identity, Outcome::of).await.map_err(helm::told)?;
    let receipt = helm.receipt(identity).await?;
    match is_json {
        true => terminal.answer(&format!("{}\n", outcome.json(Some(&receipt))))?,
        false => terminal.answer(&outcome.text(terminal))?,
    }
    Ok(outcome.exit())
}

/// Inputs from the file and from the line; what was typed comes first.
fn inputs(args: &RunArgs) -> anyhow::Result<Map<String, Value>> {
    let wrong = |message: String| Refusal::new("command.inputs", message);
    let mut inputs = match &args.inputs_file {
        None => Map::new(),
        Some(path) => {
            let bytes = plan::bytes_of(path)
                .map_err(|error| wrong(format!("cannot read {}: {error}", path.display())))?;
            serde_json::from_slice(&bytes)
                .map_err(|error| wrong(format!("{} must hold a JSON object: {error}", path.display())))?
        }
    };
    for typed in &args.inputs {
        let (name, value) = typed
            .split_once('=')
            .ok_or_else(|| wrong(format!("expected an input as name=value, got {typed:?}")))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        inputs.insert(name.to_owned(), value);
    }
    Ok(inputs)
}
