//! `rutter plan import`: checks and saves plans of an export, here or through the server.

use super::CheckedPlanFile;
use super::named::bytes_within;
use crate::args::plan::{DriverValue, PlanImportArgs};
use crate::config::Config;
use crate::daemon::{self, HandledBy};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::runtime::LocalRuntime;
use crate::socket::SocketRequest;
use crate::terminal::Terminal;
use rutter_app::limits::{IMPORT_BYTES_MAX, MESSAGE_BYTES_MAX};
use rutter_app::plans::archive::{self, ArchivedPlan, ImportResult, ImportedPlanView};
use rutter_app::plans::{DriverChoice, PlanInput};
use rutter_app::principal::Principal;
use serde_json::{Value, json};

/// Plans are sent to the server in messages of about this size, unless one alone is larger.
const BATCH_BYTES: usize = MESSAGE_BYTES_MAX / 4;

pub(crate) fn run(args: &PlanImportArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let named = args.file.display();
    let unreadable = |why: String| CommandRefusal::new("file.unreadable", format!("cannot read {named}: {why}"));
    let bytes = bytes_within(&args.file, IMPORT_BYTES_MAX).map_err(|error| unreadable(error.to_string()))?;
    if bytes.len() > IMPORT_BYTES_MAX {
        return Err(unreadable(format!("it has more than {IMPORT_BYTES_MAX} bytes")).into());
    }
    let driver = match args.driver {
        DriverValue::Server => DriverChoice::Server,
        DriverValue::Agent => DriverChoice::Agent,
    };
    let plans = archive::read(&bytes, driver).map_err(CommandRefusal::of)?;
    let config = Config::load_with(&args.store, &args.tools)?;
    daemon::check_tools(&args.store, &args.tools, &config)?;
    let mut exit = CommandExit::Done;
    for batch in batches(plans) {
        for (plan, text) in import(args, &config, batch)? {
            if plan.result == ImportResult::Refused {
                exit = CommandExit::Refused;
            }
            tell(args, &plan, &text, terminal)?;
        }
    }
    Ok(exit)
}

/// What became of each plan, with its text.
fn import(
    args: &PlanImportArgs,
    config: &Config,
    plans: Vec<ArchivedPlan>,
) -> anyhow::Result<Vec<(ImportedPlanView, String)>> {
    let caller = Principal::owner(args.tenant.id(), &config.operator);
    let person = config.operator.clone();
    let greeting = SocketRequest::Import { tenant: caller.tenant.clone(), person, plans: plans.clone() };
    let here = || {
        crate::blocking::block_on(async {
            let runtime = LocalRuntime::open(&args.store, &args.tools).await?;
            let imported = archive::import(&runtime.app, &caller, plans.clone()).await;
            runtime.close().await;
            Ok(imported)
        })
    };
    let imported = match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::ThisProcess(imported) => imported.map_err(CommandRefusal::of)?,
        HandledBy::Server(answer) if answer["ok"] == true => serde_json::from_value(answer["plans"].clone())?,
        HandledBy::Server(answer) => return Err(CommandRefusal::from_answer(&answer).into()),
    };
    let texts = plans.into_iter().map(|plan| text_of(&plan.document));
    Ok(imported.into_iter().zip(texts).collect())
}

/// Splits a large import into messages that the server accepts.
fn batches(plans: Vec<ArchivedPlan>) -> Vec<Vec<ArchivedPlan>> {
    let mut batches: Vec<Vec<ArchivedPlan>> = Vec::new();
    let mut bytes = 0;
    for plan in plans {
        let size = text_of(&plan.document).len();
        match batches.last_mut() {
            Some(batch) if bytes + size <= BATCH_BYTES => {
                batch.push(plan);
                bytes += size;
            }
            _ => {
                batches.push(vec![plan]);
                bytes = size;
            }
        }
    }
    batches
}

fn text_of(plan: &PlanInput) -> String {
    match plan {
        PlanInput::Text(text) => text.clone(),
        PlanInput::Object(fields) => Value::Object(fields.clone()).to_string(),
    }
}

fn tell(args: &PlanImportArgs, plan: &ImportedPlanView, text: &str, terminal: &Terminal) -> anyhow::Result<()> {
    if args.store.json {
        return Ok(terminal.answer(&format!("{}\n", json!(plan)))?);
    }
    let (name, revision) = (printable(&plan.name), plan.revision.unwrap_or_default());
    let line = match plan.result {
        ImportResult::New => format!("{name}: new, revision {revision}"),
        ImportResult::NextRevision => format!("{name}: next revision, {revision}"),
        ImportResult::Unchanged => format!("{name}: unchanged, revision {revision}"),
        ImportResult::Refused => {
            let error = plan.error.as_ref();
            let answer = json!({ "error": error });
            if let Some((file, _)) = CheckedPlanFile::from_answer(&args.file, text.as_bytes(), &answer) {
                terminal.remark(&file.findings_in(&name));
            }
            if json!(error)["details"]["diagnostics"].to_string().contains("plan.unknown_tool") {
                terminal.remark("an agent's own tools are not looked up with --driver agent\n");
            }
            let why = error.map(ToString::to_string).unwrap_or_default();
            format!("{name}: refused: {}", printable(&why))
        }
    };
    Ok(terminal.answer(&format!("{line}\n"))?)
}
