//! Checks the whole ledger and says what was found; signs its head.

use crate::auth::{Scope, require};
use crate::dashboard::format::{self, Id, Look};
use crate::dashboard::page::{self, Answer, Posted};
use crate::dashboard::shell::{Section, Shell};
use crate::desk::Desk;
use askama::Template;
use axum::extract::State;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "journal_verify.html")]
struct Checked {
    shell: Shell,
    look: Look,
    /// The verdict in words.
    words: String,
    /// The first entry that is wrong.
    bad: Option<(Id, u64)>,
    /// Where lists do not say what the journals say.
    rows: Vec<String>,
    counts: Vec<(&'static str, String)>,
    key: Option<String>,
}

pub(in crate::dashboard) async fn run(State(desk): State<Arc<Desk>>, posted: Posted) -> Answer {
    let visitor = &posted.visitor;
    require(&visitor.guest, Scope::Read)?;
    let checked = desk.watch.verify(&visitor.guest.tenant).await?;
    let (is_clean, verdict) = (checked.is_clean(), checked.verdict);
    let entry = verdict.fault.as_ref().and_then(|fault| fault.entry.as_ref());
    let count = |label: &'static str, count: u64| (label, format::count(count));
    let page = Checked {
        shell: Shell::open(&desk, visitor, Section::Journal, "Verify").await?,
        look: if is_clean { Look::like("completed", "intact") } else { Look::like("failed", "not intact") },
        words: verdict.to_string(),
        bad: entry.map(|(execution, seq)| (Id::execution(execution.as_str()), *seq)),
        rows: checked.rows,
        counts: vec![
            count("entries", verdict.entries),
            count("executions", verdict.executions),
            count("checkpoints", verdict.checkpoints),
            count("covered by a checkpoint", verdict.protected),
            count("payloads erased", verdict.erased),
            count("entries removed", verdict.removed),
        ],
        key: desk.proof.public_key().await?,
    };
    page::show(&page)
}

pub(in crate::dashboard) async fn sign(State(desk): State<Arc<Desk>>, posted: Posted) -> Answer {
    let visitor = &posted.visitor;
    require(&visitor.guest, Scope::Operate)?;
    let signed = desk.proof.sign(&visitor.guest.tenant).await?;
    Ok(page::go("/journal", if signed.is_some() { "signed" } else { "nothing_new" }))
}
