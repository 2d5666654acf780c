//! `rutter tools doctor`: starts every server, and reports what works, what does not and how to fix it.

use super::with_registry;
use crate::args::tools::ToolsDoctorArgs;
use crate::config::Config;
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::table::{CellColor, wrapped};
use crate::terminal::Terminal;
use rutter_app::view::ServerView;
use rutter_core::port::tools::ServerSelection;
use rutter_core::tool::report::ServerReport;
use rutter_core::tool::{Safety, SafetySource};
use serde_json::json;

pub(crate) fn run(args: &ToolsDoctorArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let config = Config::load_with(&args.common.store, &args.common.tools)?;
    let (reports, sandbox) = with_registry(&args.common, async |registry| {
        registry.refresh(&ServerSelection::All).await;
        Ok((registry.report(), rutter_tools::child::confine::sandbox()))
    })?;
    let is_well = reports.iter().all(|report| report.failure.is_none());
    if args.common.store.json {
        let servers: Vec<ServerView> = reports.iter().map(ServerView::of).collect();
        let json = json!({ "ok": is_well, "servers": servers, "sandbox": format!("{sandbox:?}") });
        terminal.answer(&format!("{json}\n"))?;
    } else {
        for report in &reports {
            let kind = match &report.server {
                server if config.tools.http.contains_key(server) => "http",
                server if config.tools.commands.contains_key(server) => "commands",
                _ => "servers",
            };
            terminal.answer(&server_text(report, kind, terminal))?;
        }
        if reports.is_empty() {
            terminal.answer("no server is configured in rutter.toml or with --mcp-config\n")?;
        }
        terminal.answer(&format!("sandbox for commands: {sandbox}\n"))?;
    }
    Ok(if is_well { CommandExit::Done } else { CommandExit::Differs })
}

fn server_text(report: &ServerReport, kind: &str, terminal: &Terminal) -> String {
    let signs = terminal.signs;
    let mut text = match &report.failure {
        None => {
            format!("{} {}: {} tools\n", CellColor::Green.on(signs.done), report.server, report.tools.len())
        }
        Some(listing) => {
            let failure = printable(&listing.failure.to_string());
            format!("{} {}: {failure}\n", CellColor::Red.on(signs.failed), report.server)
        }
    };
    let unknown = report
        .tools
        .iter()
        .filter(|tool| tool.safety == Safety::Once && tool.safety_source == SafetySource::Unknown)
        .count();
    if unknown > 0 {
        let server = &report.server;
        let trust = match kind {
            "servers" => ", or set `trust = true` if you trust the server's own description",
            _ => "",
        };
        text += &line(&format!(
            "{unknown} tools count as `once`, because their safety is unknown: set their `safety` under \
             [{kind}.{server}.tools]{trust}"
        ));
    }
    for left_out in &report.left_out {
        text += &line(&format!("left out: {}", json!(left_out)));
    }
    report.doubts.iter().for_each(|doubt| text += &line(doubt));
    text
}

fn line(text: &str) -> String {
    format!("    {}\n", wrapped(&printable(text), 4))
}
