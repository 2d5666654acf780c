//! Agents: whether one of their server lists contains Rutter.

use super::DoctorCheck;
use crate::init::{client, found};
use std::path::Path;

pub(super) fn look(checks: &mut Vec<DoctorCheck>) {
    let project = Path::new(".").canonicalize().unwrap_or_else(|_| Path::new(".").to_owned());
    let naming = found::lists(&project).into_iter().find(|path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.contains("rutter")
    });
    checks.push(match naming {
        Some(path) => DoctorCheck::fine("agents", format!("{} contains Rutter", path.display())),
        None => DoctorCheck::doubtful(
            "agents",
            "no list of MCP servers contains Rutter",
            format!("claude mcp add rutter -- {} mcp", client::program()),
        ),
    });
}
