//! What a tool knows of the call it answers: who asks, with which program, and what that program can do.

use crate::deed::Caller;
use crate::desk::Desk;
use crate::guest::Guest;
use rmcp::model::{
    CallToolRequestParams, InputResponses, ProgressNotificationParam, ProgressToken, ProtocolVersion,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::id::ExecutionId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;

pub(crate) struct Visit {
    pub(crate) desk: Arc<Desk>,
    pub(crate) guest: Guest,
    pub(crate) tool: &'static str,
    /// The name of the program at the other end, if it said one.
    pub(crate) client: Option<String>,
    /// It speaks the protocol without a handshake.
    pub(crate) is_modern: bool,
    /// It can put a form before its user.
    pub(crate) can_ask: bool,
    /// It can be given a ticket for a call that goes on.
    pub(crate) takes_tickets: bool,
    /// What the user said to questions this call put before.
    pub(crate) replies: Option<(String, InputResponses)>,
    pub(crate) peer: Peer<RoleServer>,
    /// Whoever called does not wait any more.
    pub(crate) gone: CancellationToken,
    token: Option<ProgressToken>,
    /// Counts up with every report of progress, which must never go back.
    reported: AtomicU64,
}

impl Visit {
    pub(crate) fn new(
        desk: Arc<Desk>,
        guest: Guest,
        tool: &'static str,
        request: &CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Visit {
        let capabilities = context.client_capabilities().unwrap_or_default();
        let is_modern =
            context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        // One that says nothing of modes means forms.
        let forms = |modes: &rmcp::model::ElicitationCapability| modes.form.is_some() || modes.url.is_none();
        Visit {
            can_ask: desk.settings.ask_at_client && capabilities.elicitation.as_ref().is_some_and(forms),
            takes_tickets: is_modern && capabilities.supports_tasks(),
            client: context.client_info().map(|client| client.name.to_string()),
            replies: request
                .request_state
                .clone()
                .map(|state| (state, request.input_responses.clone().unwrap_or_default())),
            token: context.meta.get_progress_token(),
            gone: context.ct.clone(),
            peer: context.peer,
            reported: AtomicU64::new(0),
            desk,
            guest,
            tool,
            is_modern,
        }
    }

    pub(crate) fn identity(&self, execution: &str) -> Identity {
        Identity { tenant: self.guest.tenant.clone(), execution: ExecutionId::new(execution) }
    }

    /// Whoever asks, for what can be asked in other ways too.
    pub(crate) fn caller(&self) -> Caller {
        let (desk, tenant) = (Arc::clone(&self.desk), self.guest.tenant.clone());
        Caller { desk, tenant, actor: self.agent() }
    }

    pub(crate) fn agent(&self) -> Actor {
        self.guest.agent(self.client.as_deref())
    }

    /// Whoever sits at the client.
    pub(crate) fn person(&self) -> Actor {
        self.guest.person(self.client.as_deref())
    }

    /// Tells the client how far it is, if it wants to know.
    pub(crate) async fn progress(&self, done: usize, total: usize, message: &str) {
        let Some(token) = &self.token else { return };
        // Steps done in thousandths, so that every report counts up a little even if no step was finished.
        let step = self.reported.load(Ordering::Relaxed).max(done as u64 * 1000) + 1;
        self.reported.store(step, Ordering::Relaxed);
        let report = ProgressNotificationParam::new(token.clone(), step as f64 / 1000.0)
            .with_total(total.max(done) as f64 + 1.0)
            .with_message(message);
        // One that went away misses it.
        let _ = self.peer.notify_progress(report).await;
    }
}
