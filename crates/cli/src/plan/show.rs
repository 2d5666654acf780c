//! `rutter plan show`: prints a saved plan as it was written.

use crate::args::plan::PlanShowArgs;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::store;
use crate::terminal::Terminal;
use rutter_app::plans::identity;
use rutter_app::view::PlanView;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::limits::PAGE_MAX;
use rutter_core::port::Error;
use rutter_core::port::query::{Pagination, PlanFilter, SavedPlan};
use rutter_core::time::calendar::utc;
use rutter_store::SqliteArchive;
use serde_json::json;

pub(crate) fn run(args: &PlanShowArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let (mut archive, tenant) = (store::archive(&args.store)?, args.tenant.id());
    let saved = saved(&mut archive, &tenant, &args.plan, args.revision)?;
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

/// A saved plan by its name or id, with or without `@revision`, beside the process that owns the database.
pub(crate) fn saved(
    archive: &mut SqliteArchive,
    tenant: &TenantId,
    text: &str,
    revision: Option<u32>,
) -> anyhow::Result<SavedPlan> {
    let mut found = None;
    for (name, named) in identity::readings(text) {
        if let Some(newest) = exactly(archive, tenant, name)? {
            found = Some((newest, named));
            break;
        }
    }
    let (newest, named) = found.ok_or_else(|| Error::NotFound { what: "plan", id: text.to_owned() })?;
    let revision = identity::one_revision(text, named, revision).map_err(CommandRefusal::of)?;
    let Some(revision) = revision else { return Ok(newest) };
    let saved = archive.plan(tenant, &newest.summary.id, Some(revision))?;
    saved.ok_or_else(|| CommandRefusal::of(identity::no_revision(&newest, revision)).into())
}

fn exactly(archive: &mut SqliteArchive, tenant: &TenantId, text: &str) -> anyhow::Result<Option<SavedPlan>> {
    if let Some(saved) = archive.plan(tenant, &PlanId::new(text), None)? {
        return Ok(Some(saved));
    }
    for archived in [false, true] {
        let filter = PlanFilter { name: Some(text.to_owned()), archived, ..PlanFilter::default() };
        let mut listed = Vec::new();
        for plan in archive.plans(tenant, &filter, &Pagination::first(PAGE_MAX))?.items {
            listed.extend(archive.plan(tenant, &plan.id, None)?);
        }
        if let Some(saved) = identity::meant(text, listed).map_err(CommandRefusal::of)? {
            return Ok(Some(saved));
        }
    }
    Ok(None)
}
