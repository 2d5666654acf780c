//! `rutter policy check`: the rules of the operator's policy, explained.

use crate::args::DatabaseArgs;
use crate::args::policy::{PolicyCheckArgs, PolicyCommand};
use crate::args::run::ToolSourceArgs;
use crate::config::sources::ConfigSources;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::report::plural;
use crate::table::{CellColor, TableCell, columns};
use crate::terminal::Terminal;
use crate::tools::call::BUILT_IN;
use rutter_core::actor::Actor;
use rutter_core::glob::NamePattern;
use rutter_core::id::{TenantId, ToolName};
use rutter_core::plan::document::read_exact;
use rutter_core::policy::expect::PlanCaller;
use rutter_core::policy::{OperatorPolicy, PolicyEffect, ResolvedCall, actor_named, server_of};
use rutter_core::port::tools::{ServerSelection, ToolGateway};
use rutter_core::text::spelled;
use rutter_core::tool::{Safety, Tool};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

pub(crate) fn run(command: &PolicyCommand, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let PolicyCommand::Check(args) = command;
    let (settings, plan) = match &args.file {
        Some(file) if file.extension().is_some_and(|name| name == "toml") => (Some(file), None),
        file => (None, file.as_deref()),
    };
    if settings.is_some() && args.store.config.is_some() {
        let message = "give the settings as FILE or with --config, not both";
        return Err(CommandRefusal::new("command.invalid", message).into());
    }
    let store = DatabaseArgs { config: settings.or(args.store.config.as_ref()).cloned(), ..args.store.clone() };
    let sources = ConfigSources::read(&store, &ToolSourceArgs::default())?;
    let policy = sources.policy()?;
    let wrong = |message: &str| Err(CommandRefusal::new("command.invalid", message).into());
    match (plan, &args.call) {
        (Some(_), Some(_)) => wrong("give a plan or --call, not both"),
        (None, None) if args.principal.is_some() || args.tenant.is_some() => {
            wrong("--principal and --tenant are about a plan or --call")
        }
        (Some(plan), None) => explain_plan(args, plan, policy, terminal),
        (None, Some(tool)) => explain_call(args, tool, &sources, &policy, terminal),
        (None, None) => list(args, &sources, &policy, terminal),
    }
}

fn list(
    args: &PolicyCheckArgs,
    sources: &ConfigSources,
    policy: &OperatorPolicy,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let files: Vec<String> = sources.files().map(|path| path.display().to_string()).collect();
    let rules = policy.summaries();
    let warnings = warnings(policy, sources)?;
    for warning in &warnings {
        terminal.remark(&format!("warning: {}\n", printable(warning)));
    }
    if args.store.json {
        terminal
            .answer(&format!("{}\n", json!({ "ok": true, "files": files, "rules": rules, "warnings": warnings })))?;
        return Ok(CommandExit::Done);
    }
    let mut rows = vec![["RULE", "CALLS", "EFFECT"].map(|name| TableCell::new(name, CellColor::Dim)).to_vec()];
    rows.extend(rules.iter().map(|rule| {
        let name = TableCell::new(printable(&rule.rule), CellColor::Bold);
        vec![name, printable(&rule.calls).into(), printable(&rule.effect).into()]
    }));
    let table = match rules.is_empty() {
        true => String::new(),
        false => columns(&rows).into_iter().map(|line| line + "\n").collect(),
    };
    let read = if files.is_empty() { "no settings file".to_owned() } else { files.join(", ") };
    terminal.answer(&format!("{table}ok: {}, {}\n", printable(&read), plural(rules.len(), "rule")))?;
    Ok(CommandExit::Done)
}

/// What rules name that does not exist here: they are read without a mistake, and are about no call.
fn warnings(policy: &OperatorPolicy, sources: &ConfigSources) -> Result<Vec<String>, CommandRefusal> {
    let tools = sources.config_without_data()?.tools;
    let configured = tools.servers.keys().chain(tools.http.keys()).chain(tools.commands.keys()).map(String::as_str);
    let servers: Vec<&str> = configured.chain(BUILT_IN.iter().copied()).collect();
    let mut warnings = Vec::new();
    for rule in &policy.rules {
        let mut warn = |field: &str, pattern: &NamePattern, why: &str| {
            warnings.push(format!("{}: `{field}` names {:?}, {why}", rule.name, pattern.as_str()));
        };
        for pattern in &rule.calls.principals {
            let kind = pattern.as_str().split_once(':').map(|(kind, _)| kind);
            if kind.is_some_and(|kind| !kind.contains('*') && !["agent", "person", "rutter"].contains(&kind)) {
                warn("principals", pattern, "which is neither an `agent:` nor a `person:`");
            }
        }
        for pattern in rule.calls.servers.iter().filter(|name| !servers.iter().any(|server| name.matches(server))) {
            warn("servers", pattern, "and no such server is configured");
        }
        if let PolicyEffect::Approval { by, .. } = &rule.effect {
            for pattern in by.iter().filter(|name| name.as_str().starts_with("agent:")) {
                warn("by", pattern, "but only people approve");
            }
        }
    }
    Ok(warnings)
}

/// The definition of a tool, if its server is configured and can be asked. Only that server is started.
fn definition(sources: &ConfigSources, tool: &ToolName) -> anyhow::Result<Option<Arc<Tool>>> {
    let server = ServerSelection::Named([server_of(tool).to_owned()].into());
    let catalog = crate::tools::with_registry_of(sources.config_without_data()?, async |registry| {
        Ok(registry.catalog(server).await)
    })?;
    Ok(catalog.tools.tools.get(tool).cloned())
}

fn explain_call(
    args: &PolicyCheckArgs,
    tool: &str,
    sources: &ConfigSources,
    policy: &OperatorPolicy,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let parameters: Value = read_exact(args.parameters.as_deref().unwrap_or("{}").as_bytes())
        .map_err(|error| CommandRefusal::new("command.invalid", format!("--parameters must be JSON: {error}")))?;
    let tenant = TenantId::new(args.tenant.as_deref().unwrap_or("default"));
    let principal = args.principal.as_deref().map_or_else(|| Actor::person(sources.operator()), actor_named);
    let tool = ToolName::new(tool);
    let known = definition(sources, &tool)?;
    if known.is_none() {
        let judged = args.safety.map_or(Safety::Once, Safety::from);
        let unknown = format!("unknown tool {tool}: it is judged as {}", spelled(&judged));
        terminal.remark(&format!("warning: {}\n", printable(&unknown)));
    }
    // A plan can give a tool a stricter safety; the tool keeps its own.
    let own = known.as_ref().map(|tool| tool.safety);
    let safety = args.safety.map(Safety::from).max(own).unwrap_or(Safety::Once);
    let (safeties, principals) = ([own.unwrap_or(safety), safety], std::slice::from_ref(&principal));
    let call = ResolvedCall { tool: &tool, safeties, parameters: &parameters, tenant: &tenant, principals };
    let rules = policy.explain(&call);
    let verdict = policy.judge(&call).to_string();
    if args.store.json {
        let call = json!({
            "tool": tool, "is_known": known.is_some(), "safety": safety, "parameters": parameters, "tenant": tenant,
            "principal": { "kind": principal.party, "name": principal.name },
        });
        let answer = json!({ "ok": true, "call": call, "rules": rules, "verdict": verdict });
        terminal.answer(&format!("{answer}\n"))?;
        return Ok(CommandExit::Done);
    }
    let mut text = format!(
        "a call of {tool} ({}) by {} {}, tenant {tenant}\n",
        spelled(&safety),
        spelled(&principal.party),
        principal.name
    );
    for rule in &rules {
        let state = match (rule.matches, rule.applies) {
            (true, true) => "applies",
            (true, false) => "matches, but an earlier rule of its kind applies",
            (false, _) => "does not match",
        };
        text.push_str(&format!("  {:?} {state}: {}\n", rule.rule, rule.why));
    }
    text.push_str(&format!("{verdict}\n"));
    terminal.answer(&text.lines().map(|line| printable(line) + "\n").collect::<String>())?;
    Ok(CommandExit::Done)
}

fn explain_plan(
    args: &PolicyCheckArgs,
    path: &Path,
    policy: OperatorPolicy,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let tenant = args.tenant.as_deref().map(TenantId::new);
    let principal = args.principal.as_deref().map(actor_named);
    let caller = PlanCaller { tenant: tenant.as_ref(), principals: principal.as_ref().map(std::slice::from_ref) };
    crate::plan::explain_policy(path, policy, caller, args.store.clone(), terminal)
}
