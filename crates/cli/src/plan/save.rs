//! `rutter plan save`: checks a plan against the available tools and saves it, here or through the server.

use super::CheckedPlanFile;
use super::named::bytes_of;
use crate::args::plan::PlanSaveArgs;
use crate::config::Config;
use crate::daemon::{self, HandledBy};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::report::plural;
use crate::runtime::LocalRuntime;
use crate::socket::{SocketRequest, text_of};
use crate::terminal::Terminal;
use rutter_app::plans::save_plan;
use rutter_app::principal::Principal;
use rutter_app::view::SavedPlanView;
use serde_json::{Value, json};

pub(crate) fn run(args: &PlanSaveArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let unreadable =
        |why: String| CommandRefusal::new("file.unreadable", format!("cannot read {}: {why}", args.file.display()));
    let source = bytes_of(&args.file).map_err(|error| unreadable(error.to_string()))?;
    let plan = String::from_utf8(source.clone()).map_err(|_| unreadable("it is not text".to_owned()))?;
    let config = Config::load_with(&args.store, &args.tools)?;
    let caller = Principal::owner(args.tenant.id(), &config.operator);
    let id = args.id.clone();
    daemon::check_tools(&args.store, &args.tools, &config)?;
    let greeting = SocketRequest::Save {
        tenant: caller.tenant.clone(),
        person: config.operator.clone(),
        plan,
        id: id.clone(),
        revision: None,
        driver: args.driver.into(),
    };
    let here = || {
        let text = text_of(&caller, source.clone(), args.driver.into());
        crate::blocking::block_on(async {
            let runtime = LocalRuntime::open(&args.store, &args.tools).await?;
            let submitted = save_plan(&runtime.app, &caller, text, id.as_deref(), None, None).await;
            runtime.close().await;
            Ok(submitted)
        })
    };
    let answer = match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::ThisProcess(Ok(submitted)) => {
            return tell(json!(SavedPlanView::of(&submitted)), args.store.json, terminal);
        }
        HandledBy::ThisProcess(Err(error)) => json!({ "ok": false, "error": error }),
        HandledBy::Server(answer) => answer,
    };
    if let Some((file, absent)) = CheckedPlanFile::from_answer(&args.file, &source, &answer) {
        return file.refuse(&absent, args.store.json, terminal);
    }
    if answer["ok"] != true {
        return Err(CommandRefusal::from_answer(&answer).into());
    }
    tell(answer, args.store.json, terminal)
}

fn tell(mut answer: Value, is_json: bool, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    answer["ok"] = json!(true);
    if is_json {
        terminal.answer(&format!("{answer}\n"))?;
        return Ok(CommandExit::Done);
    }
    let text = |name: &str| printable(answer[name].as_str().unwrap_or_default());
    let steps = plural(answer["steps_count"].as_u64().unwrap_or_default() as usize, "step");
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
