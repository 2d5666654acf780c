//! `rutter plan save`: checks a plan against the tools there are and keeps it, here or by whoever has the database.

use super::{Absent, PlanFile, bytes_of};
use crate::Exit;
use crate::args::plan::SaveArgs;
use crate::config::Config;
use crate::daemon::{self, Done};
use crate::failure::Refusal;
use crate::helm::{self, Helm};
use crate::report::plural;
use crate::terminal::{Terminal, printable};
use rutter_core::actor::Actor;
use rutter_core::id::PlanId;
use rutter_core::plan::document::Format;
use rutter_engine::Error;
use rutter_engine::submit::PlanText;
use rutter_server::socket::{Greeting, kept};
use serde_json::{Value, json};

pub(crate) fn run(args: &SaveArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let unreadable =
        |why: String| Refusal::new("file.unreadable", format!("cannot read {}: {why}", args.file.display()));
    let source = bytes_of(&args.file).map_err(|error| unreadable(error.to_string()))?;
    let plan = String::from_utf8(source.clone()).map_err(|_| unreadable("it is no text".to_owned()))?;
    let config = Config::load_with(&args.store, &args.tools)?;
    let actor = Actor::person(&config.operator);
    let (tenant, id) = (args.tenant.id(), args.id.as_deref().map(PlanId::new));
    daemon::check_tools(&args.store, &args.tools, &config)?;
    let greeting = Greeting::Save {
        tenant: tenant.clone(),
        actor: actor.clone(),
        plan,
        id: id.clone(),
        driver: args.driver.into(),
    };
    let here = || {
        let format = Format::guess(&source);
        let text =
            PlanText { tenant: tenant.clone(), source: source.clone(), format, driver: args.driver.into() };
        helm::on_runtime(async {
            let helm = Helm::open(&args.store, &args.tools).await?;
            let submitted = helm.engine.submit(text, id.clone(), None, actor.clone()).await;
            helm.close().await;
            Ok(submitted)
        })
    };
    let answer = match daemon::here_or_there(&config.directory, &greeting, here)? {
        Done::Here(Ok(submitted)) => kept(&submitted),
        Done::Here(Err(Error::Plan { found, absent })) => {
            let file = PlanFile::found(&args.file, &source, found);
            return file.refuse(&Absent::all(&absent), args.store.json, terminal);
        }
        Done::Here(Err(error)) => return Err(helm::told(error)),
        Done::There(answer) => match PlanFile::told(&args.file, &source, &answer) {
            Some((file, absent)) => return file.refuse(&absent, args.store.json, terminal),
            None if answer["ok"] != true => return Err(Refusal::told(&answer).into()),
            None => answer,
        },
    };
    tell(answer, args.store.json, terminal)
}

fn tell(mut answer: Value, is_json: bool, terminal: &Terminal) -> anyhow::Result<Exit> {
    answer["ok"] = json!(true);
    if is_json {
        terminal.answer(&format!("{answer}\n"))?;
        return Ok(Exit::Done);
    }
    let text = |name: &str| printable(answer[name].as_str().unwrap_or_default());
    let steps = plural(answer["steps"].as_u64().unwrap_or_default() as usize, "step");
    let kept = match answer["is_new"] == true {
        true => "kept",
        false => "was kept already",
    };
    let warnings = answer["warnings"].as_array().map_or(0, Vec::len);
    if warnings > 0 {
        let warnings = plural(warnings, "warning");
        terminal.remark(&format!("{warnings}; `rutter plan check FILE` tells them\n"));
    }
    terminal.answer(&format!(
        "{}  revision {}  {kept}: {}, {steps}\n",
        text("plan_id"),
        answer["revision"],
        text("name")
    ))?;
    Ok(Exit::Done)
}
