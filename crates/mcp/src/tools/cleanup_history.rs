//! `cleanup_history`: removes old data; the hashes stay, so the ledger still verifies.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::cleanup::{CleanupFindings, CleanupRequest, CleanupType, clean};
use rutter_app::error::AppError;
use rutter_app::principal::McpToolset;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "cleanup_history",
        title: "Clean up the history",
        description: "Remove old executions that have ended; hashes stay, so the ledger still verifies. Removes nothing \
                      unless dry_run is false. Plans are part of the ledger and never removed: orphaned_plans only \
                      counts them.",
        behavior: ToolBehavior::Removes,
        toolsets: &[McpToolset::Journal, McpToolset::Admin],
    };
    McpToolDefinition::new::<CleanupRequest, CleanupHistoryResult, _>(about, run)
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct CleanupHistoryResult {
    summary: String,
    next: String,
    cleanup_type: String,
    dry_run: bool,
    items_found: u64,
    /// In a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    items_to_delete: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items_deleted: Option<u64>,
    payloads: u64,
    bytes: u64,
}

async fn run(request: ToolRequest, cleanup: CleanupRequest) -> Result<ToolAnswer, AppError> {
    let (kind, days, dry_run) = (cleanup.cleanup_type, cleanup.days()?, cleanup.is_dry_run());
    let include_events = cleanup.include_events;
    let caller = request.principal.administrator_at(request.client.as_deref());
    let cleaned = match clean(&request.app, &caller, cleanup).await? {
        CleanupFindings::Cleaned(cleaned) => cleaned,
        CleanupFindings::Orphans { count, among } => return orphans(count, among),
    };
    let thing = if include_events { "executions" } else { "executions' parameters and results" };
    let count = cleaned.executions;
    let again = json!({ "cleanup_type": kind.as_str(), "older_than_days": days, "dry_run": false,
        "include_events": include_events });
    let (summary, next) = match dry_run {
        true if count == 0 => ("nothing is old enough".to_owned(), "nothing".to_owned()),
        true => (
            format!("{count} {thing} would be removed, {} bytes; nothing was removed", cleaned.bytes),
            format!("if the user agrees: cleanup_history {again}"),
        ),
        false => (
            format!("{count} {thing} were removed, {} bytes; their hashes stay", cleaned.bytes),
            "nothing; the ledger's own journal records what was removed".to_owned(),
        ),
    };
    ToolAnswer::done(&CleanupHistoryResult {
        summary,
        next,
        cleanup_type: kind.as_str().to_owned(),
        dry_run,
        items_found: count,
        items_to_delete: dry_run.then_some(count),
        items_deleted: (!dry_run).then_some(count),
        payloads: cleaned.payloads,
        bytes: cleaned.bytes,
    })
}

fn orphans(items_found: u64, among: Option<u32>) -> Result<ToolAnswer, AppError> {
    let more = among.map(|count| format!(" among the {count} newest")).unwrap_or_default();
    ToolAnswer::done(&CleanupHistoryResult {
        summary: format!(
            "{items_found} old plans{more} have no execution; they stay because revisions are part of the ledger"
        ),
        next: "nothing; plans are not removed".to_owned(),
        cleanup_type: CleanupType::OrphanedPlans.as_str().to_owned(),
        dry_run: true,
        items_found,
        items_to_delete: Some(0),
        ..CleanupHistoryResult::default()
    })
}
