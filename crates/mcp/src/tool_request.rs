//! The context of a tool call: the principal, the client, and what the client can do.

use rmcp::model::{CallToolRequestParams, InputResponses, ProgressNotificationParam, ProgressToken, ProtocolVersion};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rutter_app::app::App;
use rutter_app::principal::Principal;
use rutter_app::reader::AnswerReader;
use rutter_app::rights::scope_to_answer;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::id::ExecutionId;
use rutter_core::policy::may_approve;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_util::sync::CancellationToken;

pub(crate) struct ToolRequest {
    pub(crate) app: Arc<App>,
    pub(crate) principal: Principal,
    pub(crate) tool: &'static str,
    /// The client's name, if it sent one.
    pub(crate) client: Option<String>,
    /// It speaks a protocol version without a handshake.
    pub(crate) is_modern: bool,
    /// It can show a form to its user.
    pub(crate) can_ask: bool,
    /// It accepts an MCP task for a long call.
    pub(crate) takes_tickets: bool,
    /// The user's answers to questions that an earlier round of this call asked.
    pub(crate) replies: Option<(String, InputResponses)>,
    pub(crate) peer: Peer<RoleServer>,
    /// Cancelled when the client no longer waits for the response.
    pub(crate) gone: CancellationToken,
    token: Option<ProgressToken>,
    /// Progress reported so far, which must never decrease.
    reported: AtomicU64,
}

impl ToolRequest {
    pub(crate) fn new(
        app: Arc<App>,
        caller: Principal,
        tool: &'static str,
        request: &CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> ToolRequest {
        let capabilities = context.client_capabilities().unwrap_or_default();
        let is_modern = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
        // A client that names no modes supports forms.
        let forms = |modes: &rmcp::model::ElicitationCapability| modes.form.is_some() || modes.url.is_none();
        ToolRequest {
            can_ask: app.settings.ask_at_client && capabilities.elicitation.as_ref().is_some_and(forms),
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
            app,
            principal: caller,
            tool,
            is_modern,
        }
    }

    pub(crate) fn identity(&self, execution: &str) -> ExecutionIdentity {
        ExecutionIdentity { tenant: self.principal.tenant.clone(), execution: ExecutionId::new(execution) }
    }

    /// The client program, acting for its user.
    pub(crate) fn principal(&self) -> Principal {
        self.principal.through(self.client.as_deref())
    }

    /// Who answers a form: the user of that program if their answer counts as a person's, or else the program, which
    /// may answer what agents may.
    pub(crate) fn answering(&self) -> Principal {
        self.principal.person_at(self.client.as_deref()).unwrap_or_else(|| self.principal())
    }

    /// Whether the client is asked this question: it can show forms, and its answer would be accepted.
    pub(crate) fn may_ask(&self, question: &PendingQuestion) -> bool {
        let person = self.answering();
        let actor = person.actor();
        let may_decide = match question {
            PendingQuestion::Approval { proof, by, .. } => actor.satisfies(*proof) && may_approve(by, &actor),
            PendingQuestion::Failure { proof, .. } | PendingQuestion::Replan { proof, .. } => actor.satisfies(*proof),
            PendingQuestion::Doubt { .. }
            | PendingQuestion::Compensation { .. }
            | PendingQuestion::Limit { .. }
            | PendingQuestion::SecondEffect { .. }
            | PendingQuestion::Drift { .. }
            | PendingQuestion::Hold { .. }
            | PendingQuestion::Silence { .. }
            | PendingQuestion::Tool { .. } => true,
        };
        self.can_ask && person.may(scope_to_answer(question)) && may_decide
    }

    /// Answers are read by the program.
    pub(crate) fn reader(&self) -> AnswerReader {
        self.app.agent_reader()
    }

    /// Reports progress to the client, if it asked for it.
    pub(crate) async fn progress(&self, done: usize, total: usize, message: &str) {
        let Some(token) = &self.token else { return };
        // Steps done in thousandths, so that every report increases a little even if no step was finished.
        let step = self.reported.load(Ordering::Relaxed).max(done as u64 * 1000) + 1;
        self.reported.store(step, Ordering::Relaxed);
        let report = ProgressNotificationParam::new(token.clone(), step as f64 / 1000.0)
            .with_total(total.max(done) as f64 + 1.0)
            .with_message(message);
        // Ignored if the client disconnected.
        let _ = self.peer.notify_progress(report).await;
    }
}
