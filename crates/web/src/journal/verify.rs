//! Verifies the whole ledger and shows the result; signs a checkpoint.

use crate::format::{self, IdentifierLink, StatusBadge};
use crate::page::{self, FormRequest, PageResult};
use crate::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::State;
use rutter_app::app::App;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "journal_verify.html")]
struct VerificationPage {
    shell: PageShell,
    look: StatusBadge,
    /// The result as a sentence.
    words: String,
    /// The first bad entry.
    bad: Option<(IdentifierLink, u64)>,
    /// Database rows that contradict the journals.
    rows: Vec<String>,
    counts: Vec<(&'static str, String)>,
    key: Option<String>,
}

pub(crate) async fn run(State(app): State<Arc<App>>, form: FormRequest) -> PageResult {
    let request = &form.request;
    let checked = app.verify_ledger(&request.principal).await?;
    let (is_clean, verdict) = (checked.is_clean(), checked.verdict);
    let entry = verdict.fault.as_ref().and_then(|fault| fault.entry.as_ref());
    let count = |label: &'static str, count: u64| (label, format::count(count));
    let page = VerificationPage {
        shell: PageShell::open(&app, request, PageSection::Journal, "Verify").await?,
        look: if is_clean {
            StatusBadge::like("completed", "intact")
        } else {
            StatusBadge::like("failed", "not intact")
        },
        words: verdict.to_string(),
        bad: entry.map(|(execution, seq)| (IdentifierLink::execution(execution.as_str()), *seq)),
        rows: checked.rows,
        counts: vec![
            count("entries", verdict.entries),
            count("executions", verdict.executions),
            count("checkpoints", verdict.checkpoints),
            count("covered by a checkpoint", verdict.protected),
            count("payloads erased", verdict.erased),
            count("entries removed", verdict.removed),
        ],
        key: app.public_key().await?,
    };
    page::render(&page)
}

pub(crate) async fn sign(State(app): State<Arc<App>>, form: FormRequest) -> PageResult {
    let request = &form.request;
    let signed = app.sign_checkpoint(&request.principal).await?;
    Ok(page::redirect_with_flash("/journal", if signed.is_some() { "signed" } else { "nothing_new" }))
}
