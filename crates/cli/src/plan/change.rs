//! `rutter plan archive`, `restore`, `rename` and `delete`: changes a saved plan, here or through the server.

use crate::args::plan::PlanChangeArgs;
use crate::args::run::ToolSourceArgs;
use crate::config::Config;
use crate::daemon::{self, HandledBy};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::runtime::LocalRuntime;
use crate::socket::SocketRequest;
use crate::terminal::Terminal;
use rutter_app::plans::state::{PlanAction, change_plan};
use rutter_app::principal::Principal;
use serde_json::json;

pub(crate) fn run(args: &PlanChangeArgs, action: PlanAction, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let config = Config::load(&args.store)?;
    let caller = Principal::owner(args.tenant.id(), &config.operator);
    let greeting = SocketRequest::ChangePlan {
        tenant: caller.tenant.clone(),
        person: config.operator.clone(),
        plan: args.plan.clone(),
        action: action.clone(),
        reason: args.reason.clone(),
    };
    let here = || {
        crate::blocking::block_on(async {
            let runtime = LocalRuntime::open(&args.store, &ToolSourceArgs::default()).await?;
            let changed = change_plan(&runtime.app, &caller, &args.plan, action.clone(), args.reason.clone()).await;
            runtime.close().await;
            Ok(changed)
        })
    };
    let answer = match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::ThisProcess(Ok(changed)) => {
            let mut answer = json!(changed);
            answer["ok"] = json!(true);
            answer
        }
        HandledBy::ThisProcess(Err(error)) => return Err(CommandRefusal::of(error).into()),
        HandledBy::Server(answer) => answer,
    };
    if answer["ok"] != true {
        return Err(CommandRefusal::from_answer(&answer).into());
    }
    match args.store.json {
        true => terminal.answer(&format!("{answer}\n"))?,
        false => terminal.answer(&format!("{}\n", printable(answer["summary"].as_str().unwrap_or_default())))?,
    }
    Ok(CommandExit::Done)
}
