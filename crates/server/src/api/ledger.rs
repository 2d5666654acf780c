//! The ledger as a whole: its size, its signed heads, its export, and the check of all of it.

use crate::api::call::Call;
use crate::api::reply::{List, Reply};
use crate::api::route::{About, Keyed, Nothing, Route};
use crate::auth::Scope;
use crate::deed::cleanup::{Cleanup, CleanupType, Found, clean, days};
use crate::fault::Fault;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::port::proof::SignedHead;
use rutter_core::port::query::Listing;
use rutter_core::port::upkeep::CleanedPart;
use rutter_core::time::calendar::utc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Lines that are read before the reader of an export takes them.
const LINES_AHEAD: usize = 64;
const EXECUTIONS_MAX: usize = 1_000;
const EXPORT: &str = "application/x-ndjson";

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            About::get("/ledger", "getLedger", "How much is kept, and with which key it is signed"),
            show,
        ),
        Route::new(
            About::get("/ledger/checkpoints", "listCheckpoints", "Signed heads of the ledger, newest first"),
            checkpoints,
        ),
        Route::with_body(
            About::post("/ledger/checkpoints", "signCheckpoint", "Sign the head of the ledger now")
                .scope(Scope::Admin)
                .success(&[201, 200])
                .keyed(Keyed::Reply { without: None }),
            sign,
        ),
        Route::with_body(
            About::post("/ledger/verify", "verifyLedger", "Check the ledger from beginning to end"),
            verify,
        ),
        Route::other(
            About::get(
                "/ledger/export",
                "exportLedger",
                "The ledger, or some executions, one JSON object a line",
            ),
            EXPORT,
            export,
        ),
        Route::with_body(
            About::post("/history/cleanup", "cleanupHistory", "Take away what is old; hashes stay")
                .scope(Scope::Admin)
                .keyed(Keyed::Reply { without: None }),
            cleanup,
        ),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct Ledger {
    /// Entries ever written, those that were cleaned up among them; also the last place of the stream of events.
    size: u64,
    plans: u64,
    /// How many executions have which status.
    executions: std::collections::BTreeMap<String, u64>,
    /// With which the signatures can be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
}

async fn show(call: Call, _: Nothing) -> Result<Reply<Ledger>, Fault> {
    let (desk, tenant) = (call.desk(), &call.guest.tenant);
    let totals = desk.query.totals(tenant).await?;
    Ok(Reply::ok(Ledger {
        size: desk.feed.size(tenant).await?,
        plans: totals.plans,
        executions: totals.executions.into_iter().map(|(status, count)| (status.to_owned(), count)).collect(),
        public_key: desk.proof.public_key().await?,
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CheckpointsQuery {
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Checkpoint {
    /// How many entries it covers.
    size: u64,
    at: String,
    /// The signed note, to be kept elsewhere.
    note: String,
}

impl Checkpoint {
    fn of(head: SignedHead) -> Checkpoint {
        Checkpoint { size: head.size, at: utc(head.at), note: head.note }
    }
}

async fn checkpoints(call: Call, query: CheckpointsQuery) -> Result<Reply<List<Checkpoint>>, Fault> {
    let page = call.page(query.limit, query.cursor)?;
    let found = call.desk().proof.checkpoints(&call.guest.tenant, page).await?;
    let items = found.items.into_iter().map(Checkpoint::of).collect();
    Ok(call.list(Listing { items, next: found.next }))
}

#[derive(Debug, Serialize, JsonSchema)]
struct SignAnswer {
    /// False when there was nothing new to sign.
    is_new: bool,
    /// The signed note.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

async fn sign(call: Call, _: Nothing) -> Result<Reply<SignAnswer>, Fault> {
    let note = call.desk().proof.sign(&call.guest.tenant).await?;
    let answer = SignAnswer { is_new: note.is_some(), note };
    Ok(match answer.is_new {
        true => Reply::created(answer, &format!("{}/ledger/checkpoints", crate::api::BASE)),
        false => Reply::ok(answer),
    })
}

#[derive(Debug, Serialize, JsonSchema)]
struct VerifyAnswer {
    is_clean: bool,
    /// The verdict in words.
    verdict: String,
    /// The first thing that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<BadEntry>,
    entries: u64,
    executions: u64,
    checkpoints: u64,
    erased: u64,
    removed: u64,
    /// Entries that a signed head covers.
    protected: u64,
    /// Where the rows of the store do not say what the journals say.
    rows: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct BadEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    execution_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
    why: String,
}

async fn verify(call: Call, _: Nothing) -> Result<Reply<VerifyAnswer>, Fault> {
    let checked = call.desk().watch.verify(&call.guest.tenant).await?;
    let verdict = &checked.verdict;
    let fault = verdict.fault.as_ref().map(|fault| BadEntry {
        execution_id: fault.entry.as_ref().map(|(execution, _)| execution.to_string()),
        seq: fault.entry.as_ref().map(|(_, seq)| *seq),
        why: fault.why.to_string(),
    });
    Ok(Reply::ok(VerifyAnswer {
        is_clean: checked.is_clean(),
        verdict: verdict.to_string(),
        fault,
        entries: verdict.entries,
        executions: verdict.executions,
        checkpoints: verdict.checkpoints,
        erased: verdict.erased,
        removed: verdict.removed,
        protected: verdict.protected,
        rows: checked.rows.clone(),
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    /// Only these executions, separated by commas.
    executions: Option<String>,
}

async fn export(call: Call, query: ExportQuery) -> Result<Response<Body>, Fault> {
    let executions = query.executions.as_deref().map(|text| {
        text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(ExecutionId::new).collect::<Vec<_>>()
    });
    if executions.as_ref().is_some_and(|executions| executions.len() > EXECUTIONS_MAX) {
        let message = format!("name at most {EXECUTIONS_MAX} executions, or none for all of them");
        return Err(Fault::new("server.arguments", message));
    }
    for execution in executions.iter().flatten() {
        let identity = rutter_core::execution::Identity {
            tenant: call.guest.tenant.clone(),
            execution: execution.clone(),
        };
        crate::api::executions::found(&call, &identity).await?;
    }
    let lines = lines(&call, call.guest.tenant.clone(), executions);
    let pieces = futures::stream::unfold(lines, |mut lines: mpsc::Receiver<Bytes>| async move {
        let line = lines.recv().await?;
        Some((Ok::<Bytes, Infallible>(line), lines))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(EXPORT));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let attachment = HeaderValue::from_static("attachment; filename=\"ledger.ndjson\"");
    headers.insert(header::CONTENT_DISPOSITION, attachment);
    Ok(response)
}

/// The lines as the store hands them out, no faster than they are read.
fn lines(call: &Call, tenant: TenantId, executions: Option<Vec<ExecutionId>>) -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    let desk = Arc::clone(call.desk());
    tokio::spawn(async move {
        let each = move |line: rutter_core::journal::export::Line| {
            let Ok(mut bytes) = serde_json::to_vec(&line) else { return false };
            bytes.push(b'\n');
            // The store hands lines out on a thread of its own, which may wait for the reader.
            sender.blocking_send(Bytes::from(bytes)).is_ok()
        };
        if let Err(error) = desk.proof.export(&tenant, executions, Box::new(each)).await {
            tracing::warn!(error.code = error.code(), "an export ends early: {error}");
        }
    });
    receiver
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewCleanup {
    cleanup_type: CleanupType,
    /// Default 30.
    #[schemars(range(min = 1, max = 365))]
    older_than_days: Option<u32>,
    /// Default true: nothing is removed.
    dry_run: Option<bool>,
    /// true: whole executions go; false: only parameters and results, the story stays.
    #[serde(default)]
    include_events: bool,
    reason: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CleanupAnswer {
    dry_run: bool,
    items_found: u64,
    items_deleted: u64,
    payloads: u64,
    bytes: u64,
}

async fn cleanup(call: Call, new: NewCleanup) -> Result<Reply<CleanupAnswer>, Fault> {
    let dry_run = new.dry_run.unwrap_or(true);
    let what = if new.include_events { CleanedPart::Executions } else { CleanedPart::Payloads };
    let days = days(new.older_than_days)?;
    let cleanup = Cleanup { kind: new.cleanup_type, days, dry_run, what, reason: new.reason };
    Ok(Reply::ok(match clean(&call.caller(), cleanup).await? {
        Found::Orphans { count, .. } => {
            CleanupAnswer { dry_run: true, items_found: count, items_deleted: 0, payloads: 0, bytes: 0 }
        }
        Found::Cleaned(cleaned) => CleanupAnswer {
            dry_run,
            items_found: cleaned.executions,
            items_deleted: if dry_run { 0 } else { cleaned.executions },
            payloads: cleaned.payloads,
            bytes: cleaned.bytes,
        },
    }))
}
