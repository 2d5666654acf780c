//! The table of tools, in the order clients see them.

mod call_tool;
mod cleanup_history;
mod control;
mod create_execution_plan;
pub(crate) mod execute_plan;
mod find_plans;
mod find_tools;
mod fit;
mod preview;
mod query_history;
mod query_ledger;
mod record_action;
mod record_compensation;
mod record_decision;
mod record_execution_start;
mod record_plan;
mod record_step;
mod recording;
mod replan;
mod save_plan;
mod status;
mod summarize;

use crate::tool::McpToolDefinition;
use std::sync::LazyLock;

static TOOLS: LazyLock<Vec<McpToolDefinition>> = LazyLock::new(|| {
    vec![
        save_plan::tool(),
        find_plans::tool(),
        find_tools::tool(),
        create_execution_plan::tool(),
        execute_plan::tool(),
        status::tool(),
        control::tool(),
        preview::tool(),
        replan::tool(),
        record_plan::tool(),
        record_execution_start::tool(),
        record_step::tool(),
        record_decision::tool(),
        record_action::tool(),
        record_compensation::tool(),
        query_ledger::tool(),
        query_history::tool(),
        summarize::tool(),
        cleanup_history::tool(),
        call_tool::tool(),
    ]
});

pub(crate) fn all() -> &'static [McpToolDefinition] {
    &TOOLS
}
