//! Tool servers, secrets and the sandbox.

use super::Check;
use crate::config::Config;
use crate::config::sources::held;
use crate::{helm, tools};
use rutter_core::port::tools::{Servers, Tools};
use rutter_core::tool::report::ServerReport;
use rutter_tools::child::confine::{Sandbox, sandbox};
use rutter_tools::secret::Vault;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

pub(super) fn look(config: &Config, checks: &mut Vec<Check>) {
    secrets(config, checks);
    match asked(config) {
        Ok(reports) => checks.extend(reports.iter().map(|(report, elapsed_ms)| told(report, *elapsed_ms))),
        Err(error) => {
            checks.push(Check::failed(
                "tools",
                format!("{error:#}"),
                "correct the tables it names in rutter.toml",
            ));
        }
    }
    checks.push(match sandbox() {
        found @ Sandbox::FilesAndNetwork => Check::fine("sandbox for commands", found.to_string()),
        found => Check::doubtful(
            "sandbox for commands",
            found.to_string(),
            "commands run without it; a kernel with Landlock (6.7 or later) keeps them from files and the network",
        ),
    });
}

/// Each server's report, and how long it took to say which tools it has.
fn asked(config: &Config) -> anyhow::Result<Vec<(ServerReport, u128)>> {
    tools::with_registry_of(config.clone(), async |registry| {
        let names: Vec<String> = registry.report().into_iter().map(|report| report.server).collect();
        let asking = names.into_iter().map(|name| {
            let registry = Arc::clone(&registry);
            tokio::spawn(async move {
                let began = Instant::now();
                registry.catalog(Servers::Named(BTreeSet::from([name.clone()]))).await;
                (name, began.elapsed().as_millis())
            })
        });
        let mut took = std::collections::BTreeMap::new();
        for asked in asking.collect::<Vec<_>>() {
            took.extend([asked.await?]);
        }
        let reports = registry.report().into_iter();
        Ok(reports
            .map(|report| (took.get(&report.server).copied().unwrap_or(0), report))
            .map(|(ms, report)| (report, ms))
            .collect())
    })
}

fn told(report: &ServerReport, elapsed_ms: u128) -> Check {
    let name = format!("tools of {}", report.server);
    match &report.failure {
        None => Check::fine(&name, format!("{}, within {elapsed_ms} ms", report.tools.len())),
        Some(listing) => Check::failed(
            &name,
            listing.failure.to_string(),
            "try its command by hand; `rutter tools doctor` says more, `disabled = true` leaves it out",
        ),
    }
}

/// Each is looked up as for a call; nothing of it is told.
fn secrets(config: &Config, checks: &mut Vec<Check>) {
    let sources = config.tools.secrets.clone();
    if sources.is_empty() {
        return;
    }
    let names: Vec<String> = sources.keys().cloned().collect();
    let failures = helm::on_runtime(async {
        let vault = Vault::new(sources, Arc::new(held));
        let mut failures = Vec::new();
        for name in &names {
            if let Err(failure) = vault.resolve(name).await {
                failures.push(failure.to_string());
            }
        }
        Ok(failures)
    });
    let failures = failures.unwrap_or_else(|error| vec![error.to_string()]);
    let readable = names.len() - failures.len().min(names.len());
    if readable > 0 {
        checks.push(Check::fine("secrets", format!("{readable} of {} can be read", names.len())));
    }
    for failure in failures {
        let fix = "set the variable or correct the file under [secrets]; tools that need it fail until then";
        checks.push(Check::failed("secrets", failure, fix));
    }
}
