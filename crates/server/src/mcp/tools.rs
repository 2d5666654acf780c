//! Every tool there is, in the order clients see them.

mod call_tool;
mod control;
mod execute_plan;
mod execution;
mod find_plans;
mod find_tools;
mod forecast;
mod options;
mod plan;
mod preview;
mod replan;
mod save_plan;
mod status;
mod terse;

use crate::mcp::tool::Tool;
use std::sync::LazyLock;

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    vec![
        find_tools::tool(),
        find_plans::tool(),
        save_plan::tool(),
        preview::tool(),
        execute_plan::tool(),
        status::tool(),
        control::tool(),
        replan::tool(),
        call_tool::tool(),
    ]
});

pub(crate) fn all() -> &'static [Tool] {
    &TOOLS
}
