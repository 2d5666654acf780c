//! `cleanup_history`: takes away what is no longer to be kept; the hashes stay, and so does the proof.

use crate::auth::Scope;
use crate::deed::Caller;
use crate::deed::cleanup::{Cleanup, CleanupType, Found, clean, days};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::visit::Visit;
use rutter_core::port::upkeep::CleanedPart;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "cleanup_history",
        title: "Clean up the history",
        description: "Remove old executions that have ended; hashes stay, so the ledger still verifies. Only shows what \
                      would go unless dry_run is false. Plans are part of the ledger and never removed: orphaned_plans \
                      only counts them.",
        nature: Nature::Removes,
        toolsets: &[Toolset::Journal, Toolset::Admin],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    cleanup_type: CleanupType,
    /// Default 30.
    #[schemars(range(min = 1, max = 365))]
    older_than_days: Option<u32>,
    /// Default true: nothing is removed.
    dry_run: Option<bool>,
    /// true: the whole executions go; false: only parameters and results, the story stays.
    #[serde(default)]
    include_events: bool,
    reason: Option<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct Output {
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

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let is_operator = visit.guest.may(Scope::Admin);
    // Whoever opened the socket has these tools only if the operator chose them for it.
    if !visit.guest.may_administer() {
        return Err(Fault::new("server.not_allowed", "only an operator may clean up")
            .hint("tell the user: `rutter` on the server, or a token with the role operator, can"));
    }
    let (kind, days) = (input.cleanup_type, days(input.older_than_days)?);
    let dry_run = input.dry_run.unwrap_or(true);
    let what = if input.include_events { CleanedPart::Executions } else { CleanedPart::Payloads };
    let actor = if is_operator { visit.person() } else { visit.agent() };
    let caller = Caller { actor, ..visit.caller() };
    let cleanup = Cleanup { kind, days, dry_run, what, reason: input.reason };
    let cleaned = match clean(&caller, cleanup).await? {
        Found::Cleaned(cleaned) => cleaned,
        Found::Orphans { count, among } => return orphans(count, among),
    };
    let thing = if input.include_events { "executions" } else { "executions' parameters and results" };
    let count = cleaned.executions;
    let again = json!({ "cleanup_type": kind.as_str(), "older_than_days": days, "dry_run": false,
        "include_events": input.include_events });
    let (summary, next) = match dry_run {
        true if count == 0 => ("nothing is old enough".to_owned(), "nothing".to_owned()),
        true => (
            format!("{count} {thing} would go, {} bytes; nothing was removed", cleaned.bytes),
            format!("if the user agrees: cleanup_history {again}"),
        ),
        false => (
            format!("{count} {thing} are gone, {} bytes; their hashes stay", cleaned.bytes),
            "nothing; the ledger's own journal says what was removed".to_owned(),
        ),
    };
    Answer::done(&Output {
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

fn orphans(items_found: u64, among: Option<u32>) -> Result<Answer, Fault> {
    let more = among.map(|count| format!(" among the {count} newest")).unwrap_or_default();
    Answer::done(&Output {
        summary: format!(
            "{items_found} old plans{more} have no execution; they stay, since revisions are part of the ledger"
        ),
        next: "nothing; plans are not removed".to_owned(),
        cleanup_type: CleanupType::OrphanedPlans.as_str().to_owned(),
        dry_run: true,
        items_found,
        items_to_delete: Some(0),
        ..Output::default()
    })
}
