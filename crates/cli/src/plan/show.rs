//! `rutter plan show`: prints a saved plan as it was written.

use crate::args::plan::PlanShowArgs;
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::store;
use crate::terminal::Terminal;
use rutter_app::view::PlanView;
use rutter_core::id::PlanId;
use rutter_core::port::Error;
use rutter_core::time::calendar::utc;
use serde_json::json;

pub(crate) fn run(args: &PlanShowArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let id = PlanId::new(&args.plan);
    let found = store::archive(&args.store)?.plan(&args.tenant.id(), &id, args.revision)?;
    let named = match args.revision {
        Some(revision) => format!("{} with revision {revision}", args.plan),
        None => args.plan.clone(),
    };
    let saved = found.ok_or(Error::NotFound { what: "plan", id: named })?;
    let source = String::from_utf8_lossy(&saved.plan.source);
    if args.store.json {
        let mut json = json!(PlanView::of(&saved.summary));
        json["ok"] = json!(true);
        json["source"] = json!(source);
        terminal.answer(&format!("{json}\n"))?;
        return Ok(CommandExit::Done);
    }
    let summary = &saved.summary;
    terminal.remark(&printable(&format!(
        "{} revision {}, saved {} by {}",
        summary.id,
        summary.revision,
        utc(summary.saved_at),
        summary.actor
    )));
    terminal.remark("\n");
    let end = if source.ends_with('\n') { "" } else { "\n" };
    let text: String = source.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    terminal.answer(&format!("{text}{end}"))?;
    Ok(CommandExit::Done)
}
