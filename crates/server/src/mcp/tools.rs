//! Every tool there is, in the order clients see them.

pub(crate) mod execute_plan;
mod execution;
mod plan;
mod save_plan;
mod status;

use crate::mcp::tool::Tool;
use std::sync::LazyLock;

static TOOLS: LazyLock<Vec<Tool>> =
    LazyLock::new(|| vec![save_plan::tool(), execute_plan::tool(), status::tool()]);

pub(crate) fn all() -> &'static [Tool] {
    &TOOLS
}
