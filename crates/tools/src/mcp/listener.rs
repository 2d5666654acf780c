//! Messages that a server sends by itself: progress, questions, and that its tools have changed.

use super::wire::PipeState;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ExtensionCapabilities, FormElicitationCapability, Implementation, JsonObject, ProgressNotificationParam,
    ProgressToken, ProtocolVersion, RequestId, TASKS_EXTENSION_ID,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use rutter_core::port::tools::{CallReporter, ToolProgress};
use rutter_core::tool::Elicitation;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Handles the server's messages on one connection.
pub(super) struct ConnectionListener {
    pub(super) calls: Arc<OpenCalls>,
    pub(super) wire: Arc<PipeState>,
    pub(super) changes: Arc<watch::Sender<u64>>,
}

impl ClientHandler for ConnectionListener {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
        capabilities.extensions =
            Some(ExtensionCapabilities::from_iter([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())]));
        let mut info = ClientConfig::new(capabilities, Implementation::new("rutter", env!("CARGO_PKG_VERSION")));
        info.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        info
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            _ => None,
        };
        let Some((reporter, over)) = self.calls.asking(request) else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        tokio::select! {
            result = answer(&params, None, &*reporter) => Ok(result),
            _ = over.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            _ = context.ct.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
            _ = self.wire.lost.cancelled() => Ok(ElicitResult::new(ElicitationAction::Cancel)),
        }
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(reporter) = self.calls.progressing(&params.progress_token) {
            reporter.progress(ToolProgress { done: params.progress, total: params.total, message: params.message });
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|count| *count += 1);
    }
}

/// Forwards a question to the caller of the tool. Only forms are supported; anything else is declined.
pub(super) async fn answer(
    params: &ElicitRequestParams,
    continuation: Option<Arc<Value>>,
    reporter: &dyn CallReporter,
) -> ElicitResult {
    let declined = || ElicitResult::new(ElicitationAction::Decline);
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = params else {
        return declined();
    };
    let Ok(schema) = serde_json::to_value(requested_schema) else {
        return declined();
    };
    let schema = Arc::new(schema);
    match reporter.ask(Elicitation { message: message.clone(), schema: schema.clone(), continuation }).await {
        Some(Value::Object(mut statement)) => {
            // Missing fields get the form's defaults.
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = property.get("default") {
                    statement.entry(name).or_insert_with(|| default.clone());
                }
            }
            ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(statement))
        }
        Some(_) | None => declined(),
    }
}

/// The calls in flight on one connection.
#[derive(Default)]
pub(super) struct OpenCalls(Mutex<OpenCallTable>);

#[derive(Default)]
struct OpenCallTable {
    next: u64,
    calls: Vec<OpenCall>,
}

struct OpenCall {
    number: u64,
    reporter: Arc<dyn CallReporter>,
    over: CancellationToken,
    /// The ids under which it was sent last.
    sent: Option<(RequestId, ProgressToken)>,
}

impl OpenCalls {
    /// Must come before the call is sent, so that every message about it finds its call.
    pub(super) fn enter(self: &Arc<OpenCalls>, reporter: Arc<dyn CallReporter>) -> OpenCallGuard {
        let over = CancellationToken::new();
        let mut open = self.lock();
        let number = open.next;
        open.next += 1;
        open.calls.push(OpenCall { number, reporter, over: over.clone(), sent: None });
        OpenCallGuard { calls: self.clone(), number, _over: over.drop_guard() }
    }

    /// The call that a question belongs to. Over pipes a server does not name it; with several calls in flight the
    /// question is ambiguous, and declined.
    fn asking(&self, request: Option<&RequestId>) -> Option<(Arc<dyn CallReporter>, CancellationToken)> {
        let open = self.lock();
        let of_request = |call: &&OpenCall| request.is_some() && call.sent.as_ref().map(|sent| &sent.0) == request;
        let call = open.calls.iter().find(of_request).or(open.only())?;
        Some((call.reporter.clone(), call.over.clone()))
    }

    fn progressing(&self, token: &ProgressToken) -> Option<Arc<dyn CallReporter>> {
        let open = self.lock();
        let of_token = |call: &&OpenCall| call.sent.as_ref().is_some_and(|sent| sent.1 == *token);
        Some(open.calls.iter().find(of_token)?.reporter.clone())
    }

    fn lock(&self) -> MutexGuard<'_, OpenCallTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenCallTable {
    fn only(&self) -> Option<&OpenCall> {
        self.calls.first().filter(|_| self.calls.len() == 1)
    }
}

/// One call in flight, for as long as this lives.
pub(super) struct OpenCallGuard {
    calls: Arc<OpenCalls>,
    number: u64,
    _over: DropGuard,
}

impl OpenCallGuard {
    pub(super) fn sent(&self, request: RequestId, token: ProgressToken) {
        let mut open = self.calls.lock();
        if let Some(call) = open.calls.iter_mut().find(|call| call.number == self.number) {
            call.sent = Some((request, token));
        }
    }
}

impl Drop for OpenCallGuard {
    fn drop(&mut self) {
        self.calls.lock().calls.retain(|call| call.number != self.number);
    }
}
