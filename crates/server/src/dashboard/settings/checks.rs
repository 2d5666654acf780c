//! What somebody would look at first when something is wrong, looked at already.

use super::{KeyRow, bytes};
use crate::dashboard::format::{self, Look};
use crate::desk::Desk;
use crate::fault::Fault;
use rutter_core::id::TenantId;
use rutter_core::port::proof::Health;
use rutter_core::port::query::Page;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::report::{BreakerReport, ConnectorReport};

/// Less than this and a disk is about to be full.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// Requests to write that wait; more, and the disk is too slow for what is asked of it.
const QUEUE_MAX: u64 = 100;
/// A ledger that grew is signed at least so often.
const SIGNED_WITHIN: Millis = Millis::hours(24);

pub(super) struct Check {
    pub(super) look: Look,
    pub(super) what: &'static str,
    pub(super) said: String,
    pub(super) fix: &'static str,
}

pub(super) async fn all(
    desk: &Desk,
    tenant: &TenantId,
    health: &Health,
    keys: &[KeyRow],
    now: Timestamp,
) -> Result<Vec<Check>, Fault> {
    let mut checks = vec![store(health), disk(health), queue(health)];
    checks.push(signature(desk, tenant, now).await?);
    checks.push(executions(desk));
    checks.push(servers(desk));
    let dead = desk.outbox.counts(tenant, None).await?.dead;
    checks.push(match dead {
        0 => fine("webhooks", "nothing was given up".to_owned()),
        dead => doubtful(
            "webhooks",
            format!("{} deliveries were given up", format::count(dead)),
            "the page Alerts says why, and sends them again",
        ),
    });
    let soon = keys.iter().filter(|key| key.is_active && key.expires.is_some()).count();
    if soon > 0 {
        checks.push(fine("keys", format!("{soon} of those that are good expire by themselves")));
    }
    Ok(checks)
}

fn store(health: &Health) -> Check {
    match &health.trouble {
        None => fine("database", "it can be written".to_owned()),
        Some(trouble) => {
            failed("database", trouble.clone(), "executions wait; they go on when it can be written again")
        }
    }
}

fn disk(health: &Health) -> Check {
    let free = format!("{} are free", bytes(health.free_bytes));
    match health.free_bytes < FREE_BYTES_MIN {
        true => failed("disk", free, "make room, or `rutter db clean` what is not needed any more"),
        false => fine("disk", free),
    }
}

fn queue(health: &Health) -> Check {
    let waiting = format!("{} requests to write wait", health.queue);
    match health.queue > QUEUE_MAX {
        true => doubtful("load", waiting, "the disk is slower than what is asked of it"),
        false => fine("load", waiting),
    }
}

async fn signature(desk: &Desk, tenant: &TenantId, now: Timestamp) -> Result<Check, Fault> {
    let size = desk.feed.size(tenant).await?;
    let newest = desk.proof.checkpoints(tenant, Page::first(1)).await?.items.into_iter().next();
    let uncovered = size.saturating_sub(newest.as_ref().map_or(0, |head| head.size));
    let is_old = newest.as_ref().is_none_or(|head| now.since(head.at) > SIGNED_WITHIN);
    let said = match &newest {
        _ if size == 0 => "it is empty".to_owned(),
        Some(head) => {
            format!("signed {}, {} entries since", format::relative(head.at, now), format::count(uncovered))
        }
        None => format!("{} entries, none of them signed", format::count(size)),
    };
    Ok(match uncovered > 0 && is_old {
        true => doubtful("ledger", said, "the page Journal signs it"),
        false => fine("ledger", said),
    })
}

fn executions(desk: &Desk) -> Check {
    match desk.engine.broken().len() {
        0 => fine("executions", "none is broken".to_owned()),
        broken => failed(
            "executions",
            format!("{broken} cannot go on"),
            "`rutter journal verify` says what is wrong",
        ),
    }
}

fn servers(desk: &Desk) -> Check {
    let reports = desk.tools.report();
    let is_down = |report: &&rutter_core::tool::report::ServerReport| {
        matches!(report.connector, ConnectorReport::Down { .. })
            || matches!(report.breaker, BreakerReport::Open { .. })
    };
    let down: Vec<&str> = reports.iter().filter(is_down).map(|report| report.server.as_str()).collect();
    match down.as_slice() {
        [] => fine("tools", format!("{} servers, none of them down", reports.len())),
        down => doubtful("tools", format!("not reached: {}", down.join(", ")), "the page Tools says why"),
    }
}

fn fine(what: &'static str, said: String) -> Check {
    Check { look: Look::like("completed", "fine"), what, said, fix: "" }
}

fn doubtful(what: &'static str, said: String, fix: &'static str) -> Check {
    Check { look: Look::like("waiting", "look"), what, said, fix }
}

fn failed(what: &'static str, said: String, fix: &'static str) -> Check {
    Check { look: Look::like("failed", "wrong"), what, said, fix }
}
