//! `rutter plan optimize`: prints what would improve a plan, and with `--apply` applies the fixes.

use super::CheckedPlanFile;
use super::fix::write;
use super::named::RunnablePlan;
use crate::args::plan::PlanOptimizeArgs;
use crate::config::Config;
use crate::daemon::{self, HandledBy};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::report::{counted, plural};
use crate::runtime::LocalRuntime;
use crate::socket::{SocketRequest, text_of};
use crate::table::CellColor;
use crate::terminal::Terminal;
use anyhow::Context;
use rutter_app::error::AppError;
use rutter_app::optimize::{OptimizedPlan, SuggestionView, SuggestionsView, optimize_plan};
use rutter_app::plans::save_plan;
use rutter_app::principal::Principal;
use rutter_app::view::SavedPlanView;
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) fn run(args: &PlanOptimizeArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let plan = RunnablePlan::found_at(&args.plan, &args.store, &args.tenant.id())?;
    let config = Config::load_with(&args.store, &args.tools)?;
    daemon::check_tools(&args.store, &args.tools, &config)?;
    let answer = suggestions(args, &config, &plan)?;
    if let RunnablePlan::File(source) = &plan
        && let Some((file, absent)) = CheckedPlanFile::from_answer(&args.plan, source, &answer)
    {
        return file.refuse(&absent, args.store.json, terminal);
    }
    if answer["ok"] == false {
        return Err(plan.refusal(&answer).into());
    }
    let found: SuggestionsView = serde_json::from_value(answer)?;
    let document = found.document.clone().filter(|_| args.apply);
    let saved = match (&document, &plan) {
        (Some(document), RunnablePlan::Saved(_)) => Some(save(args, &config, &found, document)?),
        _ => None,
    };
    tell(args, &found, saved.as_ref(), terminal)?;
    if let (Some(document), RunnablePlan::File(source)) = (&document, &plan) {
        let text = format!("{document:#}\n");
        let is_json = DocumentFormat::guess(source) == DocumentFormat::Json;
        match is_json && args.plan != Path::new("-") {
            true => write(&args.plan, &text).with_context(|| format!("cannot write {}", args.plan.display()))?,
            false if args.store.json => {}
            false => terminal.answer(&text)?,
        }
    }
    Ok(CommandExit::Done)
}

/// The suggestions as JSON, or a refusal.
fn suggestions(args: &PlanOptimizeArgs, config: &Config, plan: &RunnablePlan) -> anyhow::Result<Value> {
    let caller = Principal::owner(args.tenant.id(), &config.operator);
    let driver: Driver = args.driver.into();
    let (text, saved) = match plan {
        RunnablePlan::File(source) => {
            let text = String::from_utf8(source.clone());
            let unreadable = |_| CommandRefusal::new("file.unreadable", format!("{} is not text", args.plan.display()));
            (Some(text.map_err(unreadable)?), String::new())
        }
        RunnablePlan::Saved(name) => (None, name.clone()),
    };
    let (tenant, person) = (caller.tenant.clone(), config.operator.clone());
    let greeting = SocketRequest::Optimize { tenant, person, text, saved, driver };
    let here = || {
        let plan = match plan {
            RunnablePlan::File(source) => OptimizedPlan::Given(text_of(&caller, source.clone(), driver)),
            RunnablePlan::Saved(name) => OptimizedPlan::Saved(name.clone()),
        };
        crate::blocking::block_on(async {
            let runtime = LocalRuntime::open(&args.store, &args.tools).await?;
            let found = optimize_plan(&runtime.app, &caller, plan).await;
            runtime.close().await;
            Ok(found)
        })
    };
    Ok(match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::ThisProcess(found) => reply(found.map(|found| json!(found))),
        HandledBy::Server(answer) => answer,
    })
}

/// Saves the improved plan as the next revision of the one it was made from.
fn save(args: &PlanOptimizeArgs, config: &Config, found: &SuggestionsView, document: &Value) -> anyhow::Result<Value> {
    let caller = Principal::owner(args.tenant.id(), &config.operator);
    let id = found.plan_id.clone();
    let (tenant, person, plan) = (caller.tenant.clone(), config.operator.clone(), document.to_string());
    let driver: Driver = found.driver.into();
    let greeting =
        SocketRequest::Save { tenant, person, plan: plan.clone(), id: id.clone(), revision: found.revision, driver };
    let here = || {
        let text = text_of(&caller, plan.clone().into_bytes(), driver);
        crate::blocking::block_on(async {
            let runtime = LocalRuntime::open(&args.store, &args.tools).await?;
            let saved = save_plan(&runtime.app, &caller, text, id.as_deref(), found.revision, None).await;
            runtime.close().await;
            Ok(saved)
        })
    };
    let answer = match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::ThisProcess(saved) => reply(saved.map(|saved| json!(SavedPlanView::of(&saved)))),
        HandledBy::Server(answer) => answer,
    };
    match answer["ok"] == false {
        true => Err(CommandRefusal::from_answer(&answer).into()),
        false => Ok(answer),
    }
}

fn reply(result: Result<Value, AppError>) -> Value {
    result.unwrap_or_else(|error| json!({ "ok": false, "error": error }))
}

/// Suggestions go to stdout, unless the improved plan does: then they go to stderr.
fn tell(
    args: &PlanOptimizeArgs,
    found: &SuggestionsView,
    saved: Option<&Value>,
    terminal: &Terminal,
) -> anyhow::Result<()> {
    if args.store.json {
        let mut answer = json!(found);
        answer["ok"] = json!(true);
        answer["saved_revision"] = saved.map_or(Value::Null, |saved| saved["revision"].clone());
        return Ok(terminal.answer(&format!("{answer}\n"))?);
    }
    let mut text: String = found.suggestions.iter().map(lines).collect();
    let fixable = found.suggestions.iter().filter(|suggestion| suggestion.fix.is_some()).count();
    let count = plural(found.suggestions.len(), "suggestion");
    let offer = match (fixable, args.apply) {
        (0, _) => String::new(),
        // One may make another needless.
        (fixable, false) => format!(", --apply carries out up to {fixable}"),
        (_, true) => format!(", applied: {}", counted(found.applied as u64, "fix", "fixes")),
    };
    text.push_str(&format!("{}: {count}{offer}\n", printable(&found.name)));
    if let Some(saved) = saved {
        text.push_str(&format!("saved as revision {}\n", saved["revision"]));
    }
    found.notes.iter().for_each(|note| terminal.remark(&format!("note: {}\n", printable(note))));
    match args.apply && found.document.is_some() && saved.is_none() {
        true => terminal.remark(&text),
        false => terminal.answer(&text)?,
    }
    Ok(())
}

fn lines(suggestion: &SuggestionView) -> String {
    let place = suggestion.step.as_deref().unwrap_or("the plan");
    let mut text =
        format!("{} {}: {}\n", CellColor::Bold.on(&suggestion.code), printable(place), printable(&suggestion.reason));
    let more = suggestion.doubt.iter().map(|doubt| format!("no fix: {doubt}")).chain(suggestion.diff.iter().cloned());
    more.for_each(|line| text.push_str(&format!("  {}\n", printable(&line))));
    text
}
