//! `rutter tools call`: one call, by hand, if the operator's policy allows it. A call is not journaled, its refusal is.

use super::with_registry_of;
use crate::args::tools::ToolsCallArgs;
use crate::config::Config;
use crate::daemon::{self, HandledBy};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::socket::SocketRequest;
use crate::store;
use crate::terminal::Terminal;
use rutter_app::error::AppError;
use rutter_app::principal::Principal;
use rutter_app::refusals::RefusalLog;
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::{TenantId, ToolName};
use rutter_core::plan::document::read_exact;
use rutter_core::policy::{ResolvedCall, server_of};
use rutter_core::port::tools::{CallReturn, ServerSelection, ToolGateway};
use rutter_core::tool::{CallOutcome, Safety, Tool};
use rutter_observe::metrics::ServerMetrics;
use rutter_store::SqliteStore;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Servers that are built in.
pub(crate) const BUILT_IN: &[&str] = &["timer", "memory", "notify", "journal"];

pub(crate) fn run(args: &ToolsCallArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let parameters: Value = read_exact(args.parameters.as_bytes()).map_err(|error| {
        CommandRefusal::new("command.inputs", format!("the parameters must be a JSON object: {error}"))
    })?;
    if BUILT_IN.iter().any(|server| args.tool.split_once('.').is_some_and(|(name, _)| name == *server)) {
        let message = format!("{} stores its data with the executions: call it from a plan", args.tool);
        return Err(CommandRefusal::new("command.invalid", message).into());
    }
    let tool = ToolName::new(&args.tool);
    let config = Config::load_with(&args.common.store, &args.common.tools)?;
    let returned = with_registry_of(config.clone(), async |registry| {
        let server = ServerSelection::Named(BTreeSet::from([server_of(&tool).to_owned()]));
        registry.refresh(&server).await;
        let catalog = registry.catalog(server).await;
        super::list::absent(&catalog, terminal);
        let known = catalog.tools.tools.get(&tool);
        if let Err(refusal) = judge(&config, &tool, known.map(|tool| &**tool), &parameters) {
            return Ok(Err(refusal));
        }
        // What was judged is what is called.
        let judged = known.map_or(Hash::ZERO, |tool| tool.definition);
        let calling = registry.call_once(&tool, Some(judged), parameters);
        Ok(Ok(tokio::time::timeout(Duration::from_secs(args.timeout), calling).await))
    })?;
    let returned = match returned {
        Ok(returned) => returned,
        Err(refusal) => {
            if let Err(error) = put_on_record(&config, &refusal) {
                terminal.remark(&format!("warning: the refusal could not be recorded: {error:#}\n"));
            }
            return Err(refusal.into());
        }
    };
    let (word, value, exit) = match returned {
        Ok(CallReturn::Outcome(CallOutcome::Done { result, .. })) => ("done", (*result).clone(), CommandExit::Done),
        Ok(CallReturn::Outcome(CallOutcome::NotDone(failure))) => ("not_done", json!(failure), CommandExit::Differs),
        Ok(CallReturn::Outcome(CallOutcome::Maybe(failure))) => ("maybe", json!(failure), CommandExit::Differs),
        Ok(CallReturn::Drifted { .. }) => ("not_done", json!("the tool has just changed"), CommandExit::Differs),
        Err(_) => ("maybe", json!(format!("no response within {} s", args.timeout)), CommandExit::Differs),
    };
    match args.common.store.json {
        true => terminal.answer(&format!("{}\n", json!({ "outcome": word, "value": value })))?,
        false if word == "done" => terminal.answer(&format!("{value:#}\n"))?,
        false => terminal.remark(&format!("{}: {}\n", word.replace('_', " "), printable(&value.to_string()))),
    }
    Ok(exit)
}

/// Records a refusal in the ledger: through the server if one runs, otherwise in the database itself.
fn put_on_record(config: &Config, refusal: &CommandRefusal) -> anyhow::Result<()> {
    let (tenant, person) = (TenantId::new("default"), config.operator.clone());
    let (code, message) = (refusal.code().to_owned().into(), refusal.to_string());
    let refusal = AppError { code, message, hint: None, retryable: false, details: None };
    let greeting = SocketRequest::RefusedCall { tenant: tenant.clone(), person, refusal: refusal.clone() };
    let caller = Principal::owner(tenant, &config.operator);
    let here = || crate::blocking::block_on(put_on_record_here(config, &caller, &refusal));
    match daemon::locally_or_by_server(&config.directory, &greeting, here)? {
        HandledBy::Server(answer) if answer["ok"] != true => Err(CommandRefusal::from_answer(&answer).into()),
        HandledBy::Server(_) | HandledBy::ThisProcess(()) => Ok(()),
    }
}

/// No server owns the database.
async fn put_on_record_here(config: &Config, caller: &Principal, refusal: &AppError) -> anyhow::Result<()> {
    let store = Arc::new(SqliteStore::open(store::options(config))?);
    let metrics = ServerMetrics::new(env!("CARGO_PKG_VERSION"), crate::clock::now());
    RefusalLog::new(store, Arc::new(crate::clock::now), metrics).record_refused_call(caller, refusal).await;
    Ok(())
}

/// Refuses a call that the policy forbids, and one that it allows only with what a direct call does not have: a journal,
/// in which a person is asked and calls are counted. An unknown tool counts as `once`.
fn judge(config: &Config, tool: &ToolName, known: Option<&Tool>, parameters: &Value) -> Result<(), CommandRefusal> {
    let safety = known.map_or(Safety::Once, |tool| tool.safety);
    let (tenant, caller) = (TenantId::new("default"), Actor::person(&config.operator));
    let principals = std::slice::from_ref(&caller);
    let call = ResolvedCall { tool, safeties: [safety; 2], parameters, tenant: &tenant, principals };
    let verdict = config.policy.judge(&call);
    if verdict.deny.is_some() {
        let error = CommandRefusal::new("command.forbidden", format!("{tool}: {verdict}"));
        return Err(error.with_hint("nothing was called; `rutter policy check --call` explains every rule"));
    }
    if verdict.approval.is_some() || verdict.limit.is_some() {
        let message = format!("{tool}: {verdict}; a direct call has no journal in which this could be done");
        let hint = "nothing was called; carry it out as a plan of one step with `rutter run`, or from the page of the \
                    tool: there the rule is followed";
        return Err(CommandRefusal::new("command.not_direct", message).with_hint(hint));
    }
    Ok(())
}
