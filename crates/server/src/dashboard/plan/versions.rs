//! The revisions of a plan, and what changed between two of them by meaning.

use crate::dashboard::format::{self, Moment};
use crate::desk::Desk;
use crate::fault::Fault;
use rutter_core::id::TenantId;
use rutter_core::plan::diff::diff;
use rutter_core::port::query::SavedPlan;
use rutter_core::time::Timestamp;

/// Revisions listed at the most; each is read whole.
const VERSIONS_MAX: u32 = 20;

pub(super) struct Version {
    pub(super) revision: u32,
    pub(super) href: String,
    pub(super) diff_href: String,
    pub(super) is_shown: bool,
    pub(super) saved: Moment,
    pub(super) by: String,
    pub(super) steps: u32,
}

/// The newest revisions, the one that is compared with, and what changed since that.
pub(super) async fn read(
    desk: &Desk,
    tenant: &TenantId,
    shown: &SavedPlan,
    from: Option<&str>,
    now: Timestamp,
) -> Result<(Vec<Version>, Option<u32>, Vec<String>), Fault> {
    let id = &shown.summary.id;
    let newest =
        desk.query.plan(tenant, id, None).await?.map_or(shown.summary.revision, |plan| plan.summary.revision);
    let plan = format!("/plans/{}", format::encoded(id.as_str()));
    let here = format!("{plan}@{}", shown.summary.revision);
    let mut versions = Vec::new();
    for revision in (newest.saturating_sub(VERSIONS_MAX) + 1..=newest).rev() {
        let Some(saved) = desk.query.plan(tenant, id, Some(revision)).await? else { continue };
        versions.push(Version {
            revision,
            href: format!("{plan}@{revision}"),
            diff_href: format!("{here}?tab=versions&from={revision}"),
            is_shown: revision == shown.summary.revision,
            saved: Moment::of(saved.summary.saved_at, now),
            by: saved.summary.actor.to_string(),
            steps: saved.summary.steps,
        });
    }
    let before = shown.summary.revision.checked_sub(1).filter(|before| *before > 0);
    let Some(from) = from.and_then(|from| from.parse::<u32>().ok()).or(before) else {
        return Ok((versions, None, Vec::new()));
    };
    let Some(old) = desk.query.plan(tenant, id, Some(from)).await? else {
        return Ok((versions, None, Vec::new()));
    };
    Ok((versions, Some(from), diff(&old.plan, &shown.plan).lines()))
}
