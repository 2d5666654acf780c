//! The revisions of a plan, and the semantic diff of two.

use crate::format::{self, TimeLabel};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::plans::identity::revision_before;
use rutter_core::id::TenantId;
use rutter_core::plan::diff::diff;
use rutter_core::port::query::SavedPlan;
use rutter_core::time::Timestamp;

/// Revisions listed; each is read in full.
const VERSIONS_MAX: u32 = 20;

pub(super) struct RevisionRow {
    pub(super) revision: u32,
    pub(super) href: String,
    pub(super) diff_href: String,
    pub(super) is_current: bool,
    pub(super) saved: TimeLabel,
    pub(super) by: String,
    pub(super) steps: u32,
}

/// The newest revisions, the one compared with, and the changes since.
pub(super) async fn read(
    app: &App,
    tenant: &TenantId,
    current: &SavedPlan,
    from: Option<&str>,
    now: Timestamp,
) -> Result<(Vec<RevisionRow>, Option<u32>, Vec<String>), AppError> {
    let id = &current.summary.id;
    let newest = app.query.plan(tenant, id, None).await?.map_or(current.summary.revision, |plan| plan.summary.revision);
    let plan = format!("/plans/{}", format::encoded(id.as_str()));
    let here = format!("{plan}@{}", current.summary.revision);
    let mut versions = Vec::new();
    for revision in (newest.saturating_sub(VERSIONS_MAX) + 1..=newest).rev() {
        let saved = app.query.plan(tenant, id, Some(revision)).await?;
        let Some(saved) = saved.filter(|saved| !saved.summary.is_for_execution) else { continue };
        versions.push(RevisionRow {
            revision,
            href: format!("{plan}@{revision}"),
            diff_href: format!("{here}?tab=versions&from={revision}"),
            is_current: revision == current.summary.revision,
            saved: TimeLabel::of(saved.summary.saved_at, now),
            by: saved.summary.actor.to_string(),
            steps: saved.summary.steps,
        });
    }
    let before = revision_before(app, current, tenant).await?;
    let Some(from) = from.and_then(|from| from.parse::<u32>().ok()).or(before) else {
        return Ok((versions, None, Vec::new()));
    };
    let Some(old) = app.query.plan(tenant, id, Some(from)).await? else {
        return Ok((versions, None, Vec::new()));
    };
    Ok((versions, Some(from), diff(&old.plan, &current.plan).lines()))
}
