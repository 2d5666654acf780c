//! `rutter db stats`: the size of the database and what it contains.

use super::sized;
use crate::args::db::DbStatsArgs;
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::store;
use crate::table::{CellColor, TableCell, columns};
use crate::terminal::Terminal;
use rutter_store::sqlite::archive::{DatabaseStats, TenantStats};
use serde_json::{Map, Value, json};

pub(crate) fn run(args: &DbStatsArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let stats = store::archive(&args.store)?.stats()?;
    match args.store.json {
        true => terminal.answer(&format!("{}\n", answer(&stats)))?,
        false => terminal.answer(&text(&stats))?,
    }
    Ok(CommandExit::Done)
}

fn text(stats: &DatabaseStats) -> String {
    let rows = [
        ("database", sized(stats.database_bytes)),
        ("write-ahead log", sized(stats.log_bytes)),
        ("unused pages", sized(stats.free_page_bytes)),
        ("free disk space", sized(stats.free_disk_bytes)),
        ("schema", stats.schema.to_string()),
    ];
    let mut lines = columns(&rows.map(|(name, value)| vec![name.into(), value.into()]));
    for tenant in &stats.tenants {
        lines.push(String::new());
        lines.push(CellColor::Bold.on(&printable(&format!("tenant {}", tenant.tenant))));
        lines.extend(columns(&tenant_rows(tenant)));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn tenant_rows(tenant: &TenantStats) -> Vec<Vec<TableCell>> {
    let row =
        |name: &str, value: String| vec![TableCell::from(format!("  {name}")), TableCell::from(printable(&value))];
    let mut rows = vec![
        row("ledger", tenant.origin.clone()),
        row("entries", tenant.entries.to_string()),
        row("signed", format!("{} of them", tenant.covered)),
    ];
    rows.extend(tenant.executions.iter().map(|(status, count)| row(status, count.to_string())));
    rows
}

fn answer(stats: &DatabaseStats) -> Value {
    let tenants = stats.tenants.iter().map(|tenant| {
        let executions: Map<String, Value> =
            tenant.executions.iter().map(|(status, count)| (status.clone(), json!(count))).collect();
        json!({
            "tenant": tenant.tenant,
            "origin": tenant.origin,
            "entries": tenant.entries,
            "signed": tenant.covered,
            "executions": executions,
        })
    });
    json!({
        "ok": true,
        "schema": stats.schema,
        "database_bytes": stats.database_bytes,
        "log_bytes": stats.log_bytes,
        "unused_bytes": stats.free_page_bytes,
        "free_disk_bytes": stats.free_disk_bytes,
        "tenants": tenants.collect::<Vec<_>>(),
    })
}
