//! The ledger as a whole: its size, signed checkpoints, export and verification.

use crate::idempotent_replies::Idempotency;
use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Response, header};
use rutter_app::cleanup::{CleanupFindings, CleanupRequest, clean};
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_app::view::VerdictView;
use rutter_core::id::ExecutionId;
use rutter_core::port::proof::SignedCheckpoint;
use rutter_core::port::query::ListPage;
use rutter_core::time::calendar::utc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Lines buffered for the reader of an export.
const LINES_AHEAD: usize = 64;
const EXECUTIONS_MAX: usize = 1_000;
const EXPORT: &str = "application/x-ndjson";

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::new(RouteSpec::get("/ledger", "getLedger", "The size of the ledger and the key that signs it"), show),
        ApiRoute::new(
            RouteSpec::get("/ledger/checkpoints", "listCheckpoints", "Signed checkpoints, newest first"),
            checkpoints,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/ledger/checkpoints", "signCheckpoint", "Sign a checkpoint now")
                .right(Operation::SignCheckpoint)
                .success(&[201, 200])
                .idempotency(Idempotency::Reply { without: None }),
            sign,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/ledger/verify", "verifyLedger", "Verify the ledger from beginning to end")
                .right(Operation::VerifyLedger),
            verify,
        ),
        ApiRoute::other(
            RouteSpec::get(
                "/ledger/export",
                "exportLedger",
                "The ledger, or some executions, one JSON object per line",
            )
            .right(Operation::ExportLedger),
            EXPORT,
            export,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/history/cleanup", "cleanupHistory", "Remove old executions; hashes stay")
                .right(Operation::CleanUp)
                .idempotency(Idempotency::Reply { without: None }),
            cleanup,
        ),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct LedgerJson {
    /// Entries ever written, including removed ones; also the last position of the event stream.
    size: u64,
    plans: u64,
    /// The number of executions by status.
    executions: std::collections::BTreeMap<String, u64>,
    /// Verifies the signatures.
    #[serde(skip_serializing_if = "Option::is_none")]
    public_key: Option<String>,
}

async fn show(call: ApiRequest, _: NoParameters) -> Result<ApiReply<LedgerJson>, AppError> {
    let (app, tenant) = (call.app(), &call.principal.tenant);
    let totals = app.query.totals(tenant).await?;
    Ok(ApiReply::ok(LedgerJson {
        size: app.feed.size(tenant).await?,
        plans: totals.plans,
        executions: totals.executions.into_iter().map(|(status, count)| (status.to_owned(), count)).collect(),
        public_key: app.public_key().await?,
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
struct CheckpointJson {
    /// How many entries it covers.
    size: u64,
    at: String,
    /// The signed note, to be stored elsewhere.
    note: String,
}

impl CheckpointJson {
    fn of(head: SignedCheckpoint) -> CheckpointJson {
        CheckpointJson { size: head.size, at: utc(head.at), note: head.note }
    }
}

async fn checkpoints(
    call: ApiRequest,
    query: CheckpointsQuery,
) -> Result<ApiReply<ListReply<CheckpointJson>>, AppError> {
    let page = call.page(query.limit, query.cursor)?;
    let found = call.app().checkpoints(&call.principal, page).await?;
    let items = found.items.into_iter().map(CheckpointJson::of).collect();
    Ok(call.list(ListPage { items, next: found.next }))
}

#[derive(Debug, Serialize, JsonSchema)]
struct SignAnswer {
    /// False when there was nothing new to sign.
    is_new: bool,
    /// The signed note.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

async fn sign(call: ApiRequest, _: NoParameters) -> Result<ApiReply<SignAnswer>, AppError> {
    let note = call.app().sign_checkpoint(&call.principal).await?;
    let answer = SignAnswer { is_new: note.is_some(), note };
    Ok(match answer.is_new {
        true => ApiReply::created(answer, &format!("{}/ledger/checkpoints", crate::route::BASE)),
        false => ApiReply::ok(answer),
    })
}

async fn verify(call: ApiRequest, _: NoParameters) -> Result<ApiReply<VerdictView>, AppError> {
    Ok(ApiReply::ok(VerdictView::of(&call.app().verify_ledger(&call.principal).await?)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    /// Only these executions, separated by commas.
    executions: Option<String>,
}

async fn export(call: ApiRequest, query: ExportQuery) -> Result<Response<Body>, AppError> {
    let executions = query.executions.as_deref().map(|text| {
        text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(ExecutionId::new).collect::<Vec<_>>()
    });
    if executions.as_ref().is_some_and(|executions| executions.len() > EXECUTIONS_MAX) {
        let message = format!("expected at most {EXECUTIONS_MAX} executions, or none for all of them");
        return Err(AppError::new("server.arguments", message));
    }
    for execution in executions.iter().flatten() {
        let identity = rutter_core::execution::ExecutionIdentity {
            tenant: call.principal.tenant.clone(),
            execution: execution.clone(),
        };
        crate::executions::find_summary(&call, &identity).await?;
    }
    let lines = lines(&call, executions);
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

/// The lines of an export, with backpressure.
fn lines(call: &ApiRequest, executions: Option<Vec<ExecutionId>>) -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(LINES_AHEAD);
    let (app, caller) = (Arc::clone(call.app()), call.principal.clone());
    tokio::spawn(async move {
        let each = move |line: rutter_core::journal::export::ExportLine| {
            let Ok(mut bytes) = serde_json::to_vec(&line) else { return false };
            bytes.push(b'\n');
            // The store calls this on its own thread, which may block.
            sender.blocking_send(Bytes::from(bytes)).is_ok()
        };
        if let Err(error) = app.export_ledger(&caller, executions, Box::new(each)).await {
            tracing::warn!(error.code = %error.code, "an export ended early: {error}");
        }
    });
    receiver
}

#[derive(Debug, Serialize, JsonSchema)]
struct CleanupAnswer {
    dry_run: bool,
    items_found: u64,
    items_deleted: u64,
    payloads: u64,
    bytes: u64,
}

async fn cleanup(call: ApiRequest, cleanup: CleanupRequest) -> Result<ApiReply<CleanupAnswer>, AppError> {
    let dry_run = cleanup.is_dry_run();
    Ok(ApiReply::ok(match clean(call.app(), &call.principal, cleanup).await? {
        CleanupFindings::Orphans { count, .. } => {
            CleanupAnswer { dry_run: true, items_found: count, items_deleted: 0, payloads: 0, bytes: 0 }
        }
        CleanupFindings::Cleaned(cleaned) => CleanupAnswer {
            dry_run,
            items_found: cleaned.executions,
            items_deleted: if dry_run { 0 } else { cleaned.executions },
            payloads: cleaned.payloads,
            bytes: cleaned.bytes,
        },
    }))
}
