//! `rutter journal export`: journals for others, with everything needed to verify them.

use crate::args::journal::JournalExportArgs;
use crate::exit::CommandExit;
use crate::output::CommandOutput;
use crate::report::plural;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::id::ExecutionId;
use rutter_core::journal::export::ExportLine;
use rutter_core::port::Error;
use serde_json::json;
use std::io::{self, Write};

pub(crate) fn run(args: &JournalExportArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let tenant = args.tenant.id();
    let mut archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &tenant)?;
    let executions: Vec<ExecutionId> = args.executions.iter().map(|id| ExecutionId::new(id)).collect();
    let executions = (!executions.is_empty()).then_some(executions.as_slice());
    let mut outlet = CommandOutput::open(&args.out)?;
    let (mut lines, mut text) = (0, String::new());
    // The store knows nothing of files, so the write error is stored here.
    let mut unwritten: Option<io::Error> = None;
    let exported = archive.export(&tenant, executions, &mut |line: ExportLine| {
        lines += 1;
        text.clear();
        line.write(&mut text).map_err(|error| Error::Io(error.to_string()))?;
        outlet.write_all(text.as_bytes()).map_err(|error| {
            unwritten = Some(error);
            Error::Closed
        })
    });
    if let Some(error) = unwritten {
        return Err(error.into());
    }
    exported?;
    outlet.finish()?;
    if let Some(path) = &args.out.out {
        let name = path.display().to_string();
        match args.store.json {
            true => terminal.answer(&format!("{}\n", json!({ "ok": true, "file": name, "lines": lines })))?,
            false => terminal.remark(&format!("{name}: {}\n", plural(lines, "line"))),
        }
    }
    Ok(CommandExit::Done)
}
