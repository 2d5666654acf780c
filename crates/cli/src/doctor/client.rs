//! Agents: whether one of their lists names Rutter.

use super::Check;
use crate::init::{client, found};
use std::path::Path;

pub(super) fn look(checks: &mut Vec<Check>) {
    let project = Path::new(".").canonicalize().unwrap_or_else(|_| Path::new(".").to_owned());
    let naming = found::lists(&project).into_iter().find(|path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.contains("rutter")
    });
    checks.push(match naming {
        Some(path) => Check::fine("agents", format!("{} names Rutter", path.display())),
        None => Check::doubtful(
            "agents",
            "no list of MCP servers names Rutter",
            format!("claude mcp add rutter -- {} mcp", client::program()),
        ),
    });
}
