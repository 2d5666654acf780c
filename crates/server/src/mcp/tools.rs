//! Every tool there is, in the order clients see them.

mod cleanup_history;
mod create_execution_plan;
mod execute_plan;
mod execution;
mod fit;
mod plan;
mod query_history;
mod query_ledger;
mod record_action;
mod record_compensation;
mod record_decision;
mod record_execution_start;
mod record_plan;
mod record_step;
mod recording;
mod save_plan;
mod status;
mod summarize;

use crate::mcp::tool::Tool;
use std::sync::LazyLock;

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    vec![
        save_plan::tool(),
        execute_plan::tool(),
        status::tool(),
        record_plan::tool(),
        record_execution_start::tool(),
        record_step::tool(),
        record_decision::tool(),
        record_action::tool(),
        record_compensation::tool(),
        query_ledger::tool(),
        query_history::tool(),
        create_execution_plan::tool(),
        summarize::tool(),
        cleanup_history::tool(),
    ]
});

pub(crate) fn all() -> &'static [Tool] {
    &TOOLS
}
