//! Health checks of the installation.

use super::{KeyTableRow, bytes};
use crate::format::{self, StatusBadge};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::principal::Principal;
use rutter_app::rights::{Operation, may};
use rutter_core::port::proof::StoreHealth;
use rutter_core::port::query::Pagination;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::report::{BreakerReport, ConnectorReport};

/// With less free space the disk is about to be full.
const FREE_BYTES_MIN: u64 = 256 << 20;
/// With more queued writes the disk is too slow for the load.
const QUEUE_MAX: u64 = 100;
/// A growing ledger should be signed at least this often.
const SIGNED_WITHIN: Millis = Millis::hours(24);

pub(super) struct HealthCheck {
    pub(super) look: StatusBadge,
    pub(super) what: &'static str,
    pub(super) message: String,
    pub(super) fix: &'static str,
}

pub(super) async fn all(
    app: &App,
    caller: &Principal,
    health: &StoreHealth,
    keys: &[KeyTableRow],
    now: Timestamp,
) -> Result<Vec<HealthCheck>, AppError> {
    let mut checks = vec![store(health), disk(health), queue(health)];
    checks.push(signature(app, caller, now).await?);
    checks.push(executions(app));
    checks.push(servers(app));
    if may(caller, Operation::ReadWebhooks) {
        checks.push(match app.delivery_counts(caller, None).await?.dead {
            0 => fine("webhooks", "no failed deliveries".to_owned()),
            dead => doubtful(
                "webhooks",
                format!("{} deliveries failed permanently", format::count(dead)),
                "see the Alerts page, where they can be sent again",
            ),
        });
    }
    let soon = keys.iter().filter(|key| key.is_active && key.expires.is_some()).count();
    if soon > 0 {
        checks.push(fine("keys", format!("{soon} active keys have an expiry date")));
    }
    Ok(checks)
}

fn store(health: &StoreHealth) -> HealthCheck {
    match &health.trouble {
        None => fine("database", "writable".to_owned()),
        Some(trouble) => failed("database", trouble.clone(), "executions wait until it is writable again"),
    }
}

fn disk(health: &StoreHealth) -> HealthCheck {
    let free = format!("{} free", bytes(health.free_bytes));
    match health.free_bytes < FREE_BYTES_MIN {
        true => failed("disk", free, "free some space, or remove old data with `rutter db clean`"),
        false => fine("disk", free),
    }
}

fn queue(health: &StoreHealth) -> HealthCheck {
    let waiting = format!("{} queued writes", health.queue);
    match health.queue > QUEUE_MAX {
        true => doubtful("load", waiting, "the disk is too slow for the load"),
        false => fine("load", waiting),
    }
}

async fn signature(app: &App, caller: &Principal, now: Timestamp) -> Result<HealthCheck, AppError> {
    let size = app.feed.size(&caller.tenant).await?;
    let newest = app.checkpoints(caller, Pagination::first(1)).await?.items.into_iter().next();
    let uncovered = size.saturating_sub(newest.as_ref().map_or(0, |head| head.size));
    let is_old = newest.as_ref().is_none_or(|head| now.since(head.at) > SIGNED_WITHIN);
    let message = match &newest {
        _ if size == 0 => "empty".to_owned(),
        Some(head) => {
            format!("signed {}, {} entries since", format::relative(head.at, now), format::count(uncovered))
        }
        None => format!("{} entries, no checkpoint yet", format::count(size)),
    };
    Ok(match uncovered > 0 && is_old {
        true => doubtful("ledger", message, "sign a checkpoint on the Journal page"),
        false => fine("ledger", message),
    })
}

fn executions(app: &App) -> HealthCheck {
    match app.broken().len() {
        0 => fine("executions", "none broken".to_owned()),
        broken => failed("executions", format!("{broken} cannot continue"), "run `rutter journal verify` to see why"),
    }
}

fn servers(app: &App) -> HealthCheck {
    let reports = app.servers();
    let is_down = |report: &&rutter_core::tool::report::ServerReport| {
        matches!(report.connector, ConnectorReport::Down { .. }) || matches!(report.breaker, BreakerReport::Open { .. })
    };
    let down: Vec<&str> = reports.iter().filter(is_down).map(|report| report.server.as_str()).collect();
    match down.as_slice() {
        [] => fine("tools", format!("{} servers, none down", reports.len())),
        down => doubtful("tools", format!("unreachable: {}", down.join(", ")), "see the Tools page"),
    }
}

fn fine(what: &'static str, text: String) -> HealthCheck {
    HealthCheck { look: StatusBadge::like("completed", "ok"), what, message: text, fix: "" }
}

fn doubtful(what: &'static str, text: String, fix: &'static str) -> HealthCheck {
    HealthCheck { look: StatusBadge::like("waiting", "warning"), what, message: text, fix }
}

fn failed(what: &'static str, text: String, fix: &'static str) -> HealthCheck {
    HealthCheck { look: StatusBadge::like("failed", "failed"), what, message: text, fix }
}
