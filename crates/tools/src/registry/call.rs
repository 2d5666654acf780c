//! The one path every call takes, from the plan's request to the tool's answer.

use super::breaker::BreakerPass;
use super::offered_tool::{OfferedTool, OfferedTools};
use super::redacting_reporter::RedactingReporter;
use super::running_calls::RunningCallGuard;
use super::server::{Freshness, RegisteredServer};
use super::{ToolRegistry, server_of};
use crate::connector::{ConnectorRequest, ConnectorState, preparation};
use futures::FutureExt;
use rutter_core::id::ToolName;
use rutter_core::limits::{self, KNOWN_SERVER_WAIT, UNKNOWN_SERVER_WAIT};
use rutter_core::plan::schema::{CompiledSchema, SchemaViolation};
use rutter_core::port::tools::{CallReturn, ToolCallRequest};
use rutter_core::redact::Redactor;
use rutter_core::time::Timestamp;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::Value;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Connectors end calls at their timeout by themselves. This much later the registry ends them.
const GRACE: Duration = Duration::from_secs(15);
/// Larger results are checked on a thread of their own: that takes long enough to block other calls.
const QUICK_BYTES_MAX: usize = 64 << 10;

impl ToolRegistry {
    pub(super) async fn make(
        &self,
        call: ToolCallRequest,
        entered: RunningCallGuard<'_>,
        pass: Option<BreakerPass>,
    ) -> CallReturn {
        let (has_ticket, has_asked) = (call.ticket.is_some(), call.continuation.is_some());
        let returned = self.make_now(call, entered, pass).await;
        if !has_ticket && !has_asked {
            return returned;
        }
        // It was sent before; that nothing was sent now says nothing about it.
        match returned {
            CallReturn::Outcome(CallOutcome::NotDone(failure)) if has_asked || !is_the_tools_word(failure.category) => {
                CallReturn::Outcome(CallOutcome::Maybe(failure))
            }
            CallReturn::Drifted { .. } => CallReturn::Outcome(maybe(
                FailureCategory::Unavailable,
                "the tool has changed since it asked, so the answer was not sent",
            )),
            outcome @ CallReturn::Outcome(_) => outcome,
        }
    }

    async fn make_now(
        &self,
        call: ToolCallRequest,
        entered: RunningCallGuard<'_>,
        pass: Option<BreakerPass>,
    ) -> CallReturn {
        let timeout = Duration::from_millis(call.timeout.min(limits::STEP_TIMEOUT_MAX).0);
        let (deadline, prepared_by) = (Instant::now() + timeout, Instant::now() + preparation(timeout));
        let Some(server) = self.servers.get(server_of(&call.tool)) else {
            let message = format!("there is no server {:?}", server_of(&call.tool));
            return not_done(ToolFailure::new(FailureCategory::NotFound, message));
        };
        if call.ticket.is_some() {
            return CallReturn::Outcome(self.follow(&call, deadline, server, &entered).await);
        }
        let (offers, connection) = match timeout_at(prepared_by, self.current_offers(server, &call.tool)).await {
            Ok(Ok(current)) => current,
            Ok(Err(failure)) => return not_done(self.secrets.redactor().failure(failure)),
            Err(_) => {
                server.connector.suspect();
                return not_done(late("the call was not sent: the server did not list its tools in time"));
            }
        };
        let Some(offer) = offers.by_name.get(&call.tool) else {
            return not_done(ToolFailure::new(FailureCategory::NotFound, absent(&call, &offers)));
        };
        if offer.tool.definition != call.definition {
            return CallReturn::Drifted { found: offer.tool.definition };
        }
        let in_flight = CallStatsGuard::new(server, &call.tool);
        let times = (prepared_by, deadline);
        let (outcome, took) = match self.send(&call, times, server, (offer, connection), &entered, pass).await {
            Ok((outcome, took)) => (outcome, Some(took)),
            Err(failure) => (CallOutcome::NotDone(self.secrets.redactor().failure(failure)), None),
        };
        in_flight.ended(&outcome, took, (self.clock)());
        CallReturn::Outcome(outcome)
    }

    /// What a server offers now. Its tools are listed at the first use, and after it reported a change.
    pub(super) async fn offers(&self, server: &Arc<RegisteredServer>) -> Result<Arc<OfferedTools>, ToolFailure> {
        match server.freshness() {
            Freshness::Fresh(offers) => Ok(offers),
            Freshness::Aging(offers) => {
                // The list is refreshed in the background; the old one is used until then.
                drop(server.asking((self.clock)()));
                Ok(offers)
            }
            Freshness::Unknown => server.ask((self.clock)()).await,
        }
    }

    /// What a server offers, listed by the process or connection that the call will go to, and its number. So a tool that
    /// changed with a restart is not called once before that is noticed.
    async fn current_offers(
        &self,
        server: &Arc<RegisteredServer>,
        tool: &ToolName,
    ) -> Result<(Arc<OfferedTools>, u64), ToolFailure> {
        let connection = server.connector.ready().await?;
        match server.is_current(connection, tool) {
            true => Ok((self.offers(server).await?, connection)),
            false => Ok((server.ask((self.clock)()).await?, connection)),
        }
    }

    /// What a server offers now; or what it offered last, and why it cannot be asked. A server that is known from before
    /// is not waited for if it is down, and only briefly if it does not answer; an unknown one a little longer.
    pub(super) async fn offers_or_last_known(
        &self,
        server: &Arc<RegisteredServer>,
        wait_max: Duration,
    ) -> (Option<Arc<OfferedTools>>, Option<ToolFailure>) {
        let known = server.last_known();
        let down = match server.connector.state() {
            ConnectorState::Down { reason, .. } => Some(ToolFailure::new(FailureCategory::Unavailable, reason)),
            _ => server.failure().map(|(_, failure)| failure),
        };
        if down.is_none()
            && let Some(offers) = server.reliable()
        {
            return (Some(offers), None);
        }
        let wait = match (&known, &down) {
            (Some(_), Some(_)) => Duration::ZERO,
            (Some(_), None) => Duration::from_millis(KNOWN_SERVER_WAIT.0),
            (None, _) => Duration::from_millis(UNKNOWN_SERVER_WAIT.0),
        };
        // A listing that has begun goes on; the next check finds its result.
        match tokio::time::timeout(wait.min(wait_max), server.ask((self.clock)())).await {
            Ok(Ok(offers)) => (Some(offers), None),
            Ok(Err(failure)) => (known, Some(failure)),
            Err(_) => {
                let silent = || {
                    ToolFailure::new(
                        FailureCategory::Unavailable,
                        "it did not answer in time when it was asked for its tools",
                    )
                };
                let failure = server.failure().map(|(_, failure)| failure).or(down).unwrap_or_else(silent);
                server.note_failure((self.clock)(), &failure);
                (known, Some(failure))
            }
        }
    }

    /// Makes a call of a tool that may be called. An `Err` is a call that was never sent.
    async fn send(
        &self,
        call: &ToolCallRequest,
        (prepared_by, deadline): (Instant, Instant),
        server: &RegisteredServer,
        (offer, connection): (&Arc<OfferedTool>, u64),
        entered: &RunningCallGuard<'_>,
        pass: Option<BreakerPass>,
    ) -> Result<(CallOutcome, Duration), ToolFailure> {
        let filling = timeout_at(prepared_by, self.secrets.fill(&call.parameters)).await;
        let parameters = filling.map_err(|_| late("the call was not sent: its secrets took too long to fetch"))??;
        // Only now: a schema that wants a string means the secret, not the reference to it.
        if let Some(message) = misfit(&offer.input, &parameters) {
            return Err(ToolFailure::new(
                FailureCategory::InvalidInput,
                format!("the parameters do not fit: {message}"),
            ));
        }
        // A call that was let through before the breaker opened is made.
        let pass = match pass {
            Some(pass) => pass,
            None => server.breaker.enter((self.clock)())?,
        };
        if entered.cancel.is_cancelled() {
            return Err(ToolFailure::new(FailureCategory::Cancelled, "cancelled before it was sent"));
        }
        let mut request = self.request(call, Arc::new(parameters), deadline, Some(offer), entered);
        request.connection = Some(connection);
        let (outcome, took) = self.carry_out(server, request, deadline, Some(offer)).await;
        pass.ended(&outcome, (self.clock)());
        Ok((outcome, took))
    }

    /// Follows a call that was sent earlier. Nothing is sent again, so nothing is checked again, and a failure to ask
    /// says nothing about the call.
    async fn follow(
        &self,
        call: &ToolCallRequest,
        deadline: Instant,
        server: &RegisteredServer,
        entered: &RunningCallGuard<'_>,
    ) -> CallOutcome {
        let in_flight = CallStatsGuard::new(server, &call.tool);
        let offer = server.offer(&call.tool).filter(|offer| offer.tool.definition == call.definition);
        let request = self.request(call, Arc::clone(&call.parameters), deadline, offer.as_ref(), entered);
        let (outcome, took) = self.carry_out(server, request, deadline, offer.as_ref()).await;
        in_flight.ended(&outcome, Some(took), (self.clock)());
        outcome
    }

    fn request(
        &self,
        call: &ToolCallRequest,
        parameters: Arc<Value>,
        deadline: Instant,
        offer: Option<&Arc<OfferedTool>>,
        entered: &RunningCallGuard<'_>,
    ) -> ConnectorRequest {
        let reporter = RedactingReporter {
            call: call.id.clone(),
            tool: call.tool.clone(),
            offer: offer.cloned(),
            secrets: Arc::clone(&self.secrets),
            reporter: Arc::clone(&call.reporter),
        };
        let (_, name) = call.tool.as_str().split_once('.').unwrap_or_default();
        ConnectorRequest {
            id: call.id.clone(),
            tool: name.to_owned(),
            parameters,
            key: call.key.to_string(),
            timeout: deadline.duration_since(Instant::now()),
            now: call.now,
            cancel: entered.cancel.clone(),
            connection: None,
            declares_output: offer.is_some_and(|offer| offer.output.is_some()),
            ticket: call.ticket.clone(),
            continuation: call.continuation.clone(),
            reporter: Arc::new(reporter),
        }
    }

    /// Passes the call to its connector and checks the outcome, however the connector behaves.
    async fn carry_out(
        &self,
        server: &RegisteredServer,
        request: ConnectorRequest,
        deadline: Instant,
        offer: Option<&Arc<OfferedTool>>,
    ) -> (CallOutcome, Duration) {
        let began = Instant::now();
        let calling = AssertUnwindSafe(async { server.connector.call(request).await }).catch_unwind();
        let outcome = match timeout_at(deadline + GRACE, calling).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => maybe(FailureCategory::Internal, "the connector failed during the call"),
            Err(_) => maybe(FailureCategory::Timeout, "the connector did not end the call at its timeout"),
        };
        let took = began.elapsed();
        // This redactor also knows the secrets that the connector fetched by itself meanwhile.
        (inspected(outcome, offer.cloned(), self.secrets.redactor()).await, took)
    }
}

/// Whether a failure is the tool's own, and not only a failure to ask about the call.
fn is_the_tools_word(category: FailureCategory) -> bool {
    matches!(
        category,
        FailureCategory::ToolError
            | FailureCategory::InvalidInput
            | FailureCategory::Conflict
            | FailureCategory::Cancelled
    )
}

/// Checks a result and redacts the outcome. A result that cannot be used does not mean that nothing was
/// done: it is never "not done".
pub(super) async fn inspected(
    outcome: CallOutcome,
    offer: Option<Arc<OfferedTool>>,
    redactor: Redactor,
) -> CallOutcome {
    let is_quick = match &outcome {
        CallOutcome::Done { result, .. } => json_bytes(result, QUICK_BYTES_MAX).is_some(),
        CallOutcome::NotDone(_) | CallOutcome::Maybe(_) => true,
    };
    let inspect = move || {
        let output = offer.as_ref().and_then(|offer| offer.output.as_ref());
        redactor.outcome(checked(outcome, output))
    };
    if is_quick {
        return inspect();
    }
    let stopped = |_| maybe(FailureCategory::Internal, "checking the result failed");
    tokio::task::spawn_blocking(inspect).await.unwrap_or_else(stopped)
}

fn checked(outcome: CallOutcome, output: Option<&CompiledSchema>) -> CallOutcome {
    let CallOutcome::Done { result, .. } = &outcome else { return outcome };
    if json_bytes(result, limits::PAYLOAD_BYTES_MAX).is_none() {
        let why = format!("its result has more than {} bytes and cannot be stored", limits::PAYLOAD_BYTES_MAX);
        return CallOutcome::Maybe(ToolFailure::answered(&why));
    }
    match output.and_then(|schema| misfit(schema, result)) {
        Some(message) => {
            let why = format!("its result does not fit its output schema: {message}");
            CallOutcome::Maybe(ToolFailure::answered(&why))
        }
        None => outcome,
    }
}

/// The first few violations of a schema.
fn misfit(schema: &CompiledSchema, value: &Value) -> Option<String> {
    const LISTED_MAX: usize = 3;
    let found = schema.validate(value);
    let violations = found.iter().take(LISTED_MAX).map(|SchemaViolation { pointer, message }| match pointer.as_str() {
        "" => message.clone(),
        pointer => format!("{pointer}: {message}"),
    });
    (!found.is_empty()).then(|| violations.collect::<Vec<_>>().join("; "))
}

/// Why a tool is missing, as far as that is known.
fn absent(call: &ToolCallRequest, offers: &OfferedTools) -> String {
    let (server, name) = call.tool.as_str().split_once('.').unwrap_or_default();
    match offers.left_out.iter().find(|left_out| left_out.name == name) {
        Some(left_out) => format!("tool {name:?} of {server:?} is not offered: {}", left_out.reason),
        None => format!("server {server:?} has no tool {name:?}"),
    }
}

/// The bytes of a value as JSON, or nothing once there are more than `max`. Nothing of it is stored.
fn json_bytes(value: &Value, max: usize) -> Option<usize> {
    struct ByteBudget {
        left: usize,
    }
    impl io::Write for ByteBudget {
        fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
            self.left = self.left.checked_sub(piece.len()).ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(piece.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = ByteBudget { left: max };
    serde_json::to_writer(&mut count, value).ok()?;
    Some(max - count.left)
}

fn not_done(failure: ToolFailure) -> CallReturn {
    CallReturn::Outcome(CallOutcome::NotDone(failure))
}

fn late(message: &str) -> ToolFailure {
    ToolFailure::new(FailureCategory::Timeout, message)
}

fn maybe(category: FailureCategory, message: impl Into<String>) -> CallOutcome {
    CallOutcome::Maybe(ToolFailure::new(category, message))
}

/// Counts a call as in flight until this is dropped.
struct CallStatsGuard<'a> {
    server: &'a RegisteredServer,
    tool: &'a ToolName,
}

impl<'a> CallStatsGuard<'a> {
    fn new(server: &'a RegisteredServer, tool: &'a ToolName) -> CallStatsGuard<'a> {
        server.stats().entry(tool.clone()).or_default().began();
        CallStatsGuard { server, tool }
    }

    fn ended(self, outcome: &CallOutcome, took: Option<Duration>, at: Timestamp) {
        if let Some(stats) = self.server.stats().get_mut(self.tool) {
            stats.ended(outcome, took, at);
        }
    }
}

impl Drop for CallStatsGuard<'_> {
    fn drop(&mut self) {
        if let Some(stats) = self.server.stats().get_mut(self.tool) {
            stats.left();
        }
    }
}
