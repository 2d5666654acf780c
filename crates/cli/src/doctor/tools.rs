//! Tool servers, secrets and the sandbox.

use super::DoctorCheck;
use crate::config::Config;
use crate::config::sources::variable_text;
use crate::tools;
use rutter_core::port::tools::ServerSelection;
use rutter_core::tool::report::ServerReport;
use rutter_tools::child::confine::{SandboxSupport, sandbox};
use rutter_tools::secret::SecretVault;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

pub(super) fn look(config: &Config, checks: &mut Vec<DoctorCheck>) {
    secrets(config, checks);
    match server_reports(config) {
        Ok(reports) => checks.extend(reports.iter().map(|(report, elapsed_ms)| server_check(report, *elapsed_ms))),
        Err(error) => {
            checks.push(DoctorCheck::failed(
                "tools",
                format!("{error:#}"),
                "correct the tables named above in rutter.toml",
            ));
        }
    }
    checks.push(match sandbox() {
        found @ SandboxSupport::FilesAndNetwork => DoctorCheck::fine("sandbox for commands", found.to_string()),
        found => DoctorCheck::doubtful(
            "sandbox for commands",
            found.to_string(),
            "commands run without it; Linux 6.7 or later (Landlock) restricts their access to files and the network",
        ),
    });
}

/// Each server's report, and how long listing its tools took.
fn server_reports(config: &Config) -> anyhow::Result<Vec<(ServerReport, u128)>> {
    tools::with_registry_of(config.clone(), async |registry| {
        let names: Vec<String> = registry.report().into_iter().map(|report| report.server).collect();
        let asking = names.into_iter().map(|name| {
            let registry = Arc::clone(&registry);
            tokio::spawn(async move {
                let began = Instant::now();
                registry.refresh(&ServerSelection::Named(BTreeSet::from([name.clone()]))).await;
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

fn server_check(report: &ServerReport, elapsed_ms: u128) -> DoctorCheck {
    let name = format!("tools of {}", report.server);
    match &report.failure {
        None => DoctorCheck::fine(&name, format!("{}, within {elapsed_ms} ms", report.tools.len())),
        Some(listing) => DoctorCheck::failed(
            &name,
            listing.failure.to_string(),
            "try its command by hand; `rutter tools doctor` prints more, `disabled = true` disables it",
        ),
    }
}

/// Each secret is looked up as for a call; none is printed.
fn secrets(config: &Config, checks: &mut Vec<DoctorCheck>) {
    let sources = config.tools.secrets.clone();
    if sources.is_empty() {
        return;
    }
    let names: Vec<String> = sources.keys().cloned().collect();
    let failures = crate::blocking::block_on(async {
        let vault = SecretVault::new(sources, Arc::new(variable_text));
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
        checks.push(DoctorCheck::fine("secrets", format!("{readable} of {} can be read", names.len())));
    }
    for failure in failures {
        let fix = "set the variable or correct the file under [secrets]; tools that need it fail until then";
        checks.push(DoctorCheck::failed("secrets", failure, fix));
    }
}
