//! What is done for whoever asks, whichever way they came in: each deed once, for MCP and for HTTP alike.

pub(crate) mod call;
pub(crate) mod cleanup;
pub(crate) mod forecast;
pub(crate) mod options;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod replan;
pub(crate) mod rollback;

use crate::desk::Desk;
use rutter_core::actor::Actor;
use rutter_core::id::TenantId;
use std::sync::Arc;

/// Whoever asks, and at which desk.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) desk: Arc<Desk>,
    pub(crate) tenant: TenantId,
    /// In whose name it is done.
    pub(crate) actor: Actor,
}
