//! The one path every call takes, from the plan's word to the tool's answer.

use super::discreet::Discreet;
use super::offer::{Offer, Offers};
use super::server::{Freshness, Server};
use super::underway::Entered;
use super::{Registry, server_of};
use crate::connector::Request;
use futures::FutureExt;
use rutter_core::id::ToolName;
use rutter_core::limits;
use rutter_core::plan::schema::{Schema, Violation};
use rutter_core::port::tools::{Call, Return};
use rutter_core::redact::Redactor;
use rutter_core::time::Timestamp;
use rutter_core::tool::{Category, Failure, Outcome};
use serde_json::Value;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Connectors end calls at their timeout by themselves. This much later it is done for them.
const GRACE: Duration = Duration::from_secs(15);
/// Larger results are looked through on a thread of their own: it takes long enough to hold up other calls.
const QUICK_BYTES_MAX: usize = 64 << 10;

impl Registry {
    pub(super) async fn make(&self, call: Call, entered: Entered<'_>) -> Return {
        let deadline = Instant::now() + Duration::from_millis(call.timeout.min(limits::STEP_TIMEOUT_MAX).0);
        let Some(server) = self.servers.get(server_of(&call.tool)) else {
            let message = format!("there is no server {:?}", server_of(&call.tool));
            let failure = Failure::new(Category::NotFound, message);
            return Return::Outcome(unasked(&call, failure));
        };
        if call.ticket.is_some() {
            return Return::Outcome(self.follow(&call, deadline, server, &entered).await);
        }
        let offers = match timeout_at(deadline, self.offers(server)).await {
            Ok(Ok(offers)) => offers,
            Ok(Err(failure)) => return not_done(self.secrets.redactor().failure(failure)),
            Err(_) => return not_done(late("the server did not say in time which tools it has")),
        };
        let Some(offer) = offers.by_name.get(&call.tool) else {
            return not_done(Failure::new(Category::NotFound, absent(&call, &offers)));
        };
        if offer.tool.definition != call.definition {
            return Return::Drifted { found: offer.tool.definition };
        }
        let in_flight = InFlight::new(server, &call.tool);
        let (outcome, took) = match self.send(&call, deadline, server, offer, &entered).await {
            Ok((outcome, took)) => (outcome, Some(took)),
            Err(failure) => (Outcome::NotDone(self.secrets.redactor().failure(failure)), None),
        };
        in_flight.ended(&outcome, took, (self.clock)());
        Return::Outcome(outcome)
    }

    /// What a server offers now. It is asked when nobody did so far, or when it said that something changed.
    pub(super) async fn offers(&self, server: &Arc<Server>) -> Result<Arc<Offers>, Failure> {
        match server.freshness() {
            Freshness::Fresh(offers) => Ok(offers),
            Freshness::Aging(offers) => {
                // The answer comes by itself; the old one serves until then.
                drop(server.asking((self.clock)()));
                Ok(offers)
            }
            Freshness::Unknown => server.ask((self.clock)()).await,
        }
    }

    /// Makes a call of a tool that may be called. An `Err` is a call that was never sent.
    async fn send(
        &self,
        call: &Call,
        deadline: Instant,
        server: &Server,
        offer: &Arc<Offer>,
        entered: &Entered<'_>,
    ) -> Result<(Outcome, Duration), Failure> {
        let filling = timeout_at(deadline, self.secrets.fill(&call.parameters)).await;
        let parameters = filling.map_err(|_| late("the secrets of this call took too long to fetch"))??;
        // Only now: a schema that wants a text means the secret, not the reference to it.
        if let Some(message) = misfit(&offer.input, &parameters) {
            return Err(Failure::new(
                Category::InvalidInput,
                format!("the parameters do not fit: {message}"),
            ));
        }
        let passage = server.breaker.enter((self.clock)())?;
        if entered.cancel.is_cancelled() {
            return Err(Failure::new(Category::Cancelled, "cancelled before it was sent"));
        }
        let request = self.request(call, Arc::new(parameters), deadline, entered);
        let (outcome, took) = self.carry_out(server, request, deadline, Some(offer)).await;
        passage.ended(&outcome, (self.clock)());
        Ok((outcome, took))
    }

    /// Asks after a call that was sent long ago. Nothing is sent anew, so nothing is checked anew, and a failure to ask
    /// says nothing of the call.
    async fn follow(
        &self,
        call: &Call,
        deadline: Instant,
        server: &Server,
        entered: &Entered<'_>,
    ) -> Outcome {
        let in_flight = InFlight::new(server, &call.tool);
        let request = self.request(call, Arc::clone(&call.parameters), deadline, entered);
        let offer = server.offer(&call.tool).filter(|offer| offer.tool.definition == call.definition);
        let (outcome, took) = self.carry_out(server, request, deadline, offer.as_ref()).await;
        let outcome = match outcome {
            Outcome::NotDone(failure) if !is_the_tools_word(failure.category) => Outcome::Maybe(failure),
            outcome => outcome,
        };
        in_flight.ended(&outcome, Some(took), (self.clock)());
        outcome
    }

    fn request(
        &self,
        call: &Call,
        parameters: Arc<Value>,
        deadline: Instant,
        entered: &Entered<'_>,
    ) -> Request {
        let reporter = Discreet { redactor: self.secrets.redactor(), reporter: Arc::clone(&call.reporter) };
        let (_, name) = call.tool.as_str().split_once('.').unwrap_or_default();
        Request {
            id: call.id.clone(),
            tool: name.to_owned(),
            parameters,
            key: call.key.to_string(),
            timeout: deadline.duration_since(Instant::now()),
            now: call.now,
            cancel: entered.cancel.clone(),
            ticket: call.ticket.clone(),
            reporter: Arc::new(reporter),
        }
    }

    /// Hands the call to its connector and looks at what comes back, however the connector behaves.
    async fn carry_out(
        &self,
        server: &Server,
        request: Request,
        deadline: Instant,
        offer: Option<&Arc<Offer>>,
    ) -> (Outcome, Duration) {
        let began = Instant::now();
        let calling = AssertUnwindSafe(async { server.connector.call(request).await }).catch_unwind();
        let outcome = match timeout_at(deadline + GRACE, calling).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => maybe(Category::Internal, "the connector failed in the middle of the call"),
            Err(_) => maybe(Category::Timeout, "the connector did not end the call at its timeout"),
        };
        let took = began.elapsed();
        // What the connector has fetched by itself meanwhile is known to this redactor too.
        (inspected(outcome, offer.cloned(), self.secrets.redactor()).await, took)
    }
}

/// How a call ended that nobody could be asked about.
fn unasked(call: &Call, failure: Failure) -> Outcome {
    match call.ticket {
        Some(_) => Outcome::Maybe(failure),
        None => Outcome::NotDone(failure),
    }
}

/// Whether a failure tells how the work went, and not only that it could not be asked after.
fn is_the_tools_word(category: Category) -> bool {
    matches!(
        category,
        Category::ToolError | Category::InvalidInput | Category::Conflict | Category::Cancelled
    )
}

/// Checks a result and takes secrets out of the outcome. A result that cannot be used does not mean that nothing was
/// done: it is never "not done".
async fn inspected(outcome: Outcome, offer: Option<Arc<Offer>>, redactor: Redactor) -> Outcome {
    let is_quick = match &outcome {
        Outcome::Done { result, .. } => json_bytes(result, QUICK_BYTES_MAX).is_some(),
        Outcome::NotDone(_) | Outcome::Maybe(_) => true,
    };
    let inspect = move || {
        let output = offer.as_ref().and_then(|offer| offer.output.as_ref());
        redactor.outcome(checked(outcome, output))
    };
    if is_quick {
        return inspect();
    }
    let stopped = |_| maybe(Category::Internal, "looking through the result failed");
    tokio::task::spawn_blocking(inspect).await.unwrap_or_else(stopped)
}

fn checked(outcome: Outcome, output: Option<&Schema>) -> Outcome {
    let Outcome::Done { result, .. } = &outcome else { return outcome };
    if json_bytes(result, limits::PAYLOAD_BYTES_MAX).is_none() {
        let message = format!(
            "the tool answered, but its result has more than {} bytes and cannot be kept",
            limits::PAYLOAD_BYTES_MAX
        );
        return maybe(Category::Protocol, message);
    }
    match output.and_then(|schema| misfit(schema, result)) {
        Some(message) => {
            let message =
                format!("the tool answered, but its result does not fit its output schema: {message}");
            maybe(Category::Protocol, message)
        }
        None => outcome,
    }
}

/// The first few places where a value does not fit.
fn misfit(schema: &Schema, value: &Value) -> Option<String> {
    const SHOWN_MAX: usize = 3;
    let found = schema.validate(value);
    let shown = found.iter().take(SHOWN_MAX).map(|Violation { pointer, message }| match pointer.as_str() {
        "" => message.clone(),
        pointer => format!("{pointer}: {message}"),
    });
    (!found.is_empty()).then(|| shown.collect::<Vec<_>>().join("; "))
}

/// Why a tool is not there, as far as that is known.
fn absent(call: &Call, offers: &Offers) -> String {
    let (server, name) = call.tool.as_str().split_once('.').unwrap_or_default();
    match offers.left_out.iter().find(|left_out| left_out.name == name) {
        Some(left_out) => format!("tool {name:?} of {server:?} is not offered: {}", left_out.reason),
        None => format!("server {server:?} has no tool {name:?}"),
    }
}

/// The bytes of a value as JSON, or nothing once there are more than `max`. Nothing is kept of it.
fn json_bytes(value: &Value, max: usize) -> Option<usize> {
    struct Count {
        left: usize,
    }
    impl io::Write for Count {
        fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
            self.left = self.left.checked_sub(piece.len()).ok_or(io::ErrorKind::FileTooLarge)?;
            Ok(piece.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count { left: max };
    serde_json::to_writer(&mut count, value).ok()?;
    Some(max - count.left)
}

fn not_done(failure: Failure) -> Return {
    Return::Outcome(Outcome::NotDone(failure))
}

fn late(message: &str) -> Failure {
    Failure::new(Category::Timeout, message)
}

fn maybe(category: Category, message: impl Into<String>) -> Outcome {
    Outcome::Maybe(Failure::new(category, message))
}

/// A call that is being made, until this is dropped.
struct InFlight<'a> {
    server: &'a Server,
    tool: &'a ToolName,
}

impl<'a> InFlight<'a> {
    fn new(server: &'a Server, tool: &'a ToolName) -> InFlight<'a> {
        server.stats().entry(tool.clone()).or_default().began();
        InFlight { server, tool }
    }

    fn ended(self, outcome: &Outcome, took: Option<Duration>, at: Timestamp) {
        if let Some(stats) = self.server.stats().get_mut(self.tool) {
            stats.ended(outcome, took, at);
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(stats) = self.server.stats().get_mut(self.tool) {
            stats.left();
        }
    }
}
