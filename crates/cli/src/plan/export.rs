//! `rutter plan export`: writes saved plans as JSON, beside the process that owns the database.

use super::show::saved;
use crate::args::plan::PlanExportArgs;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::output::CommandOutput;
use crate::report::plural;
use crate::store;
use crate::terminal::Terminal;
use rutter_app::plans::archive;
use rutter_core::limits::PAGE_MAX;
use rutter_core::port::query::{PageWalk, PlanFilter, SavedPlan};
use std::io::Write;

pub(crate) fn run(args: &PlanExportArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let plans = if args.all { all(args)? } else { named(args)? };
    let document = match plans.as_slice() {
        [plan] if !args.all => archive::document(plan),
        plans => archive::envelope(plans),
    };
    let document = document.map_err(CommandRefusal::of)?;
    let mut output = CommandOutput::open(&args.out)?;
    writeln!(output, "{document:#}")?;
    output.finish()?;
    if let Some(path) = &args.out.out {
        let count = plural(plans.len(), "plan");
        terminal.remark(&format!("{count} in {}; `rutter plan import` reads it\n", path.display()));
    }
    Ok(CommandExit::Done)
}

fn named(args: &PlanExportArgs) -> anyhow::Result<Vec<SavedPlan>> {
    let (mut archive, tenant) = (store::archive(&args.store)?, args.tenant.id());
    args.plans.iter().map(|plan| saved(&mut archive, &tenant, plan, None)).collect()
}

/// By name, so that two exports of the same plans are the same file.
fn all(args: &PlanExportArgs) -> anyhow::Result<Vec<SavedPlan>> {
    let (mut archive, tenant) = (store::archive(&args.store)?, args.tenant.id());
    let mut found = Vec::new();
    let mut walk = PageWalk::new(PAGE_MAX);
    while let Some(page) = walk.next_page() {
        for plan in walk.take(archive.plans(&tenant, &PlanFilter::default(), &page)?) {
            found.extend(archive.plan(&tenant, &plan.id, Some(plan.revision))?);
        }
    }
    found.sort_by(|a, b| (&a.summary.name, &a.summary.id).cmp(&(&b.summary.name, &b.summary.id)));
    Ok(found)
}
