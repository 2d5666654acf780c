//! `rutter plan save`: checks a plan against the available tools and saves it, here or through the server.

use super::{CheckedPlanFile, UnreachableServer, bytes_of};
use crate::args::plan::PlanSaveArgs;
use crate::config::Config;
use crate::daemon::{self, HandledBy};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::report::plural;
use crate::runtime::{self, LocalRuntime};
use crate::socket::{SocketRequest, submitted_json};
use crate::terminal::Terminal;
use rutter_core::actor::Actor;
use rutter_core::id::PlanId;
use rutter_core::plan::document::DocumentFormat;
use rutter_engine::Error;
use rutter_engine::submit::PlanText;
use serde_json::{Value, json};

pub(crate) fn run(args: &PlanSaveArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let unreadable =
        |why: String| CommandRefusal::new("file.unreadable", format!("cannot read {}: {why}", args.file.display()));
    let source = bytes_of(&args.file).map_err(|error| unreadable(error.to_string()))?;
    let plan = String::from_utf8(source.clone()).map_err(|_| unreadable("it is not text".to_owned()))?;
    let config = Config::load_with(&args.store, &args.tools)?;
    let actor = Actor::person(&config.operator);
    let (tenant, id) = (args.tenant.id(), args.id.as_deref().map(PlanId::new));
    daemon::check_tools(&args.store, &args.tools, &config)?;
    let greeting = SocketRequest::Save {
        tenant: tenant.clone(),
        actor: actor.clone(),
        plan,
        id: id.clone(),
        driver: args.driver.into(),
    };
    let here = || {
        let format = DocumentFormat::guess(&source);
        let text = PlanText { tenant: tenant.clone(), source: source.clone(), format, driver: args.driver.into() };
        crate::blocking::block_on(async {
            let runtime = LocalRuntime::open(&args.store, &args.tools).await?;
            let submitted = runtime.app.engine.submit(text, id.clone(), None, actor.clone()).await;
            runtime.close().await;
            Ok(submitted)
        })
    };
    let answer = match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::ThisProcess(Ok(submitted)) => submitted_json(&submitted),
        HandledBy::ThisProcess(Err(Error::Plan { found, absent })) => {
            let file = CheckedPlanFile::found(&args.file, &source, found);
            return file.refuse(&UnreachableServer::all(&absent), args.store.json, terminal);
        }
        HandledBy::ThisProcess(Err(error)) => return Err(runtime::command_error(error)),
        HandledBy::Server(answer) => match CheckedPlanFile::from_answer(&args.file, &source, &answer) {
            Some((file, absent)) => return file.refuse(&absent, args.store.json, terminal),
            None if answer["ok"] != true => return Err(CommandRefusal::from_answer(&answer).into()),
            None => answer,
        },
    };
    tell(answer, args.store.json, terminal)
}

fn tell(mut answer: Value, is_json: bool, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    answer["ok"] = json!(true);
    if is_json {
        terminal.answer(&format!("{answer}\n"))?;
        return Ok(CommandExit::Done);
    }
    let text = |name: &str| printable(answer[name].as_str().unwrap_or_default());
    let steps = plural(answer["steps"].as_u64().unwrap_or_default() as usize, "step");
    let stored = match answer["is_new"] == true {
        true => "saved",
        false => "already saved",
    };
    let warnings = answer["warnings"].as_array().map_or(0, Vec::len);
    if warnings > 0 {
        let warnings = plural(warnings, "warning");
        terminal.remark(&format!("{warnings}; `rutter plan check FILE` lists them\n"));
    }
    terminal.answer(&format!(
        "{}  revision {}  {stored}: {}, {steps}\n",
        text("plan_id"),
        answer["revision"],
        text("name")
    ))?;
    Ok(CommandExit::Done)
}
